"""The JSON document of a result as rows, for CSV and data frames; and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import math
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from iodelta.errors import pasted
from iodelta.part import kind_of, load
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result

RUNS = re.compile(r"(^|[;,|])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Where a spreadsheet would take a text for a formula: at its beginning, or after what it may split cells at."""


def csv_of(result: Result) -> str:
    """Return any result as CSV: a row for each member of the lists that its kind names, a column for each field.

    A field of a field is ``change.low``; what a row has from the document around it stands behind its own fields. Lists
    of rules are their ids, other lists of structs are left to JSON. Of several lists a row says which it is from.
    """
    kind = kind_of(result)
    if ":" in kind.rows:
        text: str = load(kind.rows)(result)
        return text
    document = load(kind.document)(result) if kind.document else result
    lists, _, others = kind.rows.partition("|")
    of_all: dict[str, object] = {}
    for place in others.split():
        value = document
        for name in place.split("."):
            value = getattr(value, name) if value is not None else None
        of_all |= _flat(value, name)
    # The schema of CSV has a name of its own, by which it is known when somebody gives it as a result.
    of_all["schema"] = str(getattr(document, "schema", "")).replace("/", ".csv/")
    rows = []
    for place in lists.split():
        of_list = {"list": place} if len(lists.split()) > 1 else {}
        for row in _rows(document, place.split("."), {}):
            row.pop("schema", None)
            rows.append({**of_list, **of_all, **row})
    columns = dict.fromkeys(name for row in rows for name in row if name not in of_all)
    columns |= dict.fromkeys(of_all)
    if not rows:
        columns = dict.fromkeys([*_flat(document), *of_all])
    # Where a struct may be missing, its own name has nothing that the names of its fields do not say.
    structs = {name[:at] for name in columns for at, c in enumerate(name) if c == "."}
    names = [name for name in columns if name not in structs]
    return csv_text(names, ([row.get(name) for name in names] for row in rows))


def _rows(
    node: Any, steps: Sequence[str], above: Mapping[str, object]
) -> Iterator[dict[str, object]]:
    """Yield what lies at the end of ``steps``, with the plain fields of everything ``above`` it."""
    if node is None:
        return
    if isinstance(node, list | tuple):
        for number, member in enumerate(node, 1):
            inside = {"number": number} if isinstance(member, list | tuple) else {}
            yield from _rows(member, steps, {**inside, **above})
        return
    own = _flat(node)
    known = [str(each["findings"]) for each in (own, above) if "findings" in each]
    findings = {"findings": " ".join(dict.fromkeys(" ".join(known).split()))}
    if not steps:
        behind = {name: value for name, value in above.items() if name not in own}
        yield {**own, **behind, **(findings if known else {})}
        return
    step, *rest = steps
    fields = node if isinstance(node, dict) else msgspec.structs.asdict(node)
    plain = {k: v for k, v in fields.items() if isinstance(v, str | int | float)}
    clash = {f"{step}.of.{name}": above[name] for name in above if name in plain}
    within = {**above, **clash, **plain, **(findings if known else {})}
    yield from _rows(fields.get(step), rest, within)


def _flat(node: Any, name: str = "") -> dict[str, object]:
    """Return the fields of a value as columns."""
    if isinstance(node, msgspec.Struct):
        fields = {field: getattr(node, field) for field in node.__struct_fields__}
        pairs = _pairs(type(node))
    elif isinstance(node, dict):
        fields, pairs = {str(key): value for key, value in node.items()}, frozenset()
    elif isinstance(node, list | tuple):
        return _listed(node, name)
    else:
        return {name or "value": node}
    columns: dict[str, object] = {}
    for field, value in fields.items():
        column = f"{name}.{field}" if name else field
        if field in pairs and isinstance(value, list | tuple):
            for end, part in zip(("1", "2"), value, strict=False):
                columns |= _flat(part, f"{column}.{end}")
        else:
            columns |= _flat(value, column)
    return columns


def _listed(node: Sequence[Any], name: str) -> dict[str, object]:
    """Return a list as one cell; of structs percentiles by their percent, and findings by their rules."""
    if node and all(isinstance(value, str | int | float | None) for value in node):
        texts = (pasted(v) if isinstance(v, str) else f"{v}".lower() for v in node)
        return {name: " ".join(texts)}
    columns: dict[str, object] = {}
    for value in node:
        percent = getattr(value, "percent", None)
        if percent is not None:
            columns |= _flat(value, f"{name}.{percent:g}")
    rules = [value.rule for value in node if hasattr(value, "rule")]
    return columns or ({name: " ".join(rules)} if rules else {})


@cache
def _pairs(kind: type[msgspec.Struct]) -> frozenset[str]:
    """Return the fields that hold two things, one of each side."""
    hints = typing.get_type_hints(kind)
    return frozenset(
        name
        for name in kind.__struct_fields__
        if typing.get_origin(hints[name]) is tuple
        and len(typing.get_args(hints[name])) == 2
        and ... not in typing.get_args(hints[name])
    )


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows with a heading. What is unknown (None, nan, infinite) is empty; numbers have all their digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in (columns, *rows):
        writer.writerow(list(map(defused, row)))
    return buffer.getvalue()


def defused(value: object) -> object:
    """Return a value as a cell: text without control characters, and with ' before what a spreadsheet would run."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return RUNS.sub(r"\1\2'", inert(value))
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return value
