"""Every JSON document iodelta prints: its schema, made from the structs it consists of, and how it is written.

A document's ``schema`` is ``iodelta.NAME/VERSION``. Fields may be added within a version; nothing is taken away or
given another meaning without a new one.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import math
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec
import msgspec.inspect

from iodelta.report.glossary import FIELDS

PLACES = {
    "iodelta.verdict/1": (
        "iodelta.report.verdict_json",
        "Document",
        "iodelta report, iodelta run, verdict.json",
    ),
    "iodelta.compare/1": ("iodelta.study.comparison", "Comparison", "iodelta compare"),
    "iodelta.show/1": ("iodelta.study.rows", "Shown", "iodelta show"),
    "iodelta.audit/1": ("iodelta.study.audited", "Audited", "iodelta audit"),
    "iodelta.audit-rules/1": (
        "iodelta.study.audited",
        "RulesAnswer",
        "iodelta audit --rules",
    ),
    "iodelta.plan/1": (
        "iodelta.study.planned",
        "PlanAnswer",
        "iodelta run --dry-run, iodelta reproduce --dry-run",
    ),
    "iodelta.prepare/1": (
        "iodelta.study.preparation",
        "PrepareAnswer",
        "iodelta prepare, iodelta report",
    ),
    "iodelta.prepare-plan/1": (
        "iodelta.study.preparation",
        "DiskPlanAnswer",
        "iodelta prepare --dry-run",
    ),
    "iodelta.path-plan/1": (
        "iodelta.path.plan",
        "PathPlanAnswer",
        "iodelta run --dry-run with the instruction clock",
    ),
    "iodelta.search-plan/1": (
        "iodelta.study.search",
        "SearchPlanAnswer",
        "iodelta bisect --plan",
    ),
    "iodelta.calibration/1": (
        "iodelta.report.answers",
        "CalibrationAnswer",
        "iodelta calibrate",
    ),
    "iodelta.env/1": ("iodelta.report.answers", "EnvAnswer", "iodelta env"),
    "iodelta.env-diff/1": (
        "iodelta.report.answers",
        "EnvDiffAnswer",
        "iodelta env --diff",
    ),
    "iodelta.knobs/1": ("iodelta.report.answers", "KnobsAnswer", "iodelta knobs"),
    "iodelta.restore/1": ("iodelta.report.answers", "RestoreAnswer", "iodelta restore"),
    "iodelta.reproduction/1": (
        "iodelta.study.reproduction",
        "Reproduced",
        "iodelta reproduce",
    ),
    "iodelta.fleet/1": ("iodelta.study.fleet", "FleetAccount", "iodelta fleet report"),
    "iodelta.fleet-reproduction/1": (
        "iodelta.study.fleet_reproduction",
        "FleetReproduced",
        "iodelta reproduce --hosts",
    ),
    "iodelta.pack/1": ("iodelta.report.answers", "PackAnswer", "iodelta pack"),
    "iodelta.path/1": (
        "iodelta.path.judge",
        "PathAccount",
        "iodelta run, iodelta report with the instruction clock",
    ),
    "iodelta.doctor/1": ("iodelta.api.doctor", "DoctorAnswer", "iodelta doctor"),
    "iodelta.kernels/1": (
        "iodelta.report.answers",
        "KernelsAnswer",
        "iodelta kernel list, fetch and build",
    ),
    "iodelta.rebuild/1": ("iodelta.report.answers", "RebuildAnswer", "iodelta rebuild"),
    "iodelta.serve/1": (
        "iodelta.report.answers",
        "ServeAnswer",
        "iodelta serve --format json",
    ),
    "iodelta.fio-build/1": (
        "iodelta.report.answers",
        "FioBuildAnswer",
        "iodelta fio build",
    ),
    "iodelta.bisect/2": ("iodelta.study.search", "SearchAccount", "iodelta bisect"),
    "iodelta.attribution/2": (
        "iodelta.study.attribution",
        "AttributionAccount",
        "iodelta attribute",
    ),
    "iodelta.policy-list/1": (
        "iodelta.policy.answers",
        "PolicyListAnswer",
        "iodelta policy list",
    ),
    "iodelta.policy-explanation/1": (
        "iodelta.policy.answers",
        "ExplainAnswer",
        "iodelta policy explain",
    ),
    "iodelta.policy-simulation/1": (
        "iodelta.policy.answers",
        "SimulationAnswer",
        "iodelta policy simulate",
    ),
    "iodelta.policy-mirror/1": (
        "iodelta.policy.answers",
        "MirrorAnswer",
        "iodelta policy mirror",
    ),
    "iodelta.policy-calibration/1": (
        "iodelta.policy.calibrate",
        "Calibration",
        "iodelta policy calibrate",
    ),
    "iodelta.policy-defrag/1": (
        "iodelta.policy.answers",
        "DefragAnswer",
        "iodelta policy defrag",
    ),
    "iodelta.history-add/1": (
        "iodelta.history.answers",
        "HistoryAddAnswer",
        "iodelta history add",
    ),
    "iodelta.history-show/1": (
        "iodelta.history.answers",
        "HistoryShowAnswer",
        "iodelta history show",
    ),
    "iodelta.history-scan/1": (
        "iodelta.history.answers",
        "HistoryScanAnswer",
        "iodelta history scan",
    ),
    "iodelta.history-alert/1": (
        "iodelta.history.answers",
        "Alert",
        "iodelta history alert, decide and confirm",
    ),
    "iodelta.history-night/1": (
        "iodelta.history.answers",
        "HistoryNightAnswer",
        "iodelta history night",
    ),
    "iodelta.history-note/1": (
        "iodelta.history.answers",
        "HistoryNoteAnswer",
        "iodelta history annotate",
    ),
    "iodelta.history-check/1": (
        "iodelta.history.answers",
        "HistoryCheckAnswer",
        "iodelta history check",
    ),
    "iodelta.history-rebuild/1": (
        "iodelta.history.answers",
        "HistoryRebuildAnswer",
        "iodelta history rebuild",
    ),
    "iodelta.history-prune/1": (
        "iodelta.history.answers",
        "HistoryPruneAnswer",
        "iodelta history prune",
    ),
    "iodelta.history-export/1": (
        "iodelta.history.exchange",
        "HistoryExportAnswer",
        "iodelta history export --to json",
    ),
    "iodelta.fleet-check/1": (
        "iodelta.fleet.answers",
        "FleetCheckAnswer",
        "iodelta fleet check",
    ),
    "iodelta.fleet-status/1": (
        "iodelta.fleet.answers",
        "FleetStatusAnswer",
        "iodelta fleet run and status",
    ),
    "iodelta.fleet-cancel/1": (
        "iodelta.fleet.answers",
        "FleetCancelAnswer",
        "iodelta fleet cancel",
    ),
    "iodelta.fleet-fetch/1": (
        "iodelta.fleet.answers",
        "FleetFetchAnswer",
        "iodelta fleet fetch",
    ),
    "iodelta.scenario-list/1": (
        "iodelta.scenarios.answers",
        "ScenarioListAnswer",
        "iodelta scenario list",
    ),
    "iodelta.scenario-plan/1": (
        "iodelta.study.rehearsed",
        "ScenarioPlanAnswer",
        "iodelta scenario run --dry-run",
    ),
    "iodelta.scenario/1": (
        "iodelta.scenarios.answers",
        "ScenarioAnswer",
        "iodelta scenario show",
    ),
}
"""Schema -> module and struct it is made from, and who prints it. Imported only when it is asked for."""


def written(document: object) -> bytes:
    """A document as indented JSON in ASCII, which cannot control a terminal; unknown and infinite numbers are null."""
    finite = _finite(msgspec.to_builtins(document, str_keys=True))
    try:
        text = msgspec.json.encode(finite).decode()
    except UnicodeEncodeError:  # half a surrogate pair, which some JSON readers accept
        text = msgspec.json.encode(_whole(finite)).decode()
    ascii_text = re.sub(r"[^\x00-\x7e]", _escaped, text)
    return msgspec.json.format(ascii_text.encode(), indent=1) + b"\n"


def _escaped(match: re.Match[str]) -> str:
    """A character as JSON escapes it: its UTF-16 code units, one or two."""
    data = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(_whole, value))
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_finite, value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document, each field with what its struct's source says of it.

    Raises KeyError for an unknown name.
    """
    module, struct, printed_by = PLACES[name]
    kind = getattr(importlib.import_module(module), struct)
    (top,), components = described([kind], "#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": f"Printed by {printed_by}. Numbers that are not known, or infinite, are null.",
        **top,
        "$defs": components,
    }


def described(
    kinds: Sequence[Any], place: str
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """A schema for each of ``kinds``, and the parts that they share, which stand at ``place`` (``{name}``: which)."""
    tops, components = msgspec.json.schema_components(kinds, ref_template=place)
    structs: dict[str, type] = {}
    for kind in kinds:
        structs |= _structs(kind)
    for part, made in components.items():
        _describe(made, structs.get(part))
    _nullable([tops, components])
    return tops, components


def _describe(described: dict[str, Any], kind: type | None) -> None:
    if kind is None:
        return
    if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
        described["description"] = _prose(inspect.getdoc(kind) or "")
    own = field_docs(kind)
    for field, made in described.get("properties", {}).items():
        # A field whose type is a struct is described there.
        text = own.get(field) or ("" if "$ref" in made else FIELDS.get(field, ""))
        if text:
            described["properties"][field] = {**made, "description": text}


def _structs(kind: type) -> dict[str, type]:
    """Every struct that a document is made of, by name."""
    structs: dict[str, type] = {}
    waiting: list[Any] = [msgspec.inspect.type_info(kind)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, msgspec.inspect.StructType):
            struct = part.cls
            # msgspec names two structs of one name by their modules.
            whole = f"{struct.__module__}.{struct.__qualname__}"
            if whole in structs:
                continue
            structs[whole] = structs[struct.__name__] = struct
            waiting += [field.type for field in part.fields]
        elif isinstance(part, msgspec.inspect.Type):
            for name in ("types", "item_types", "item_type", "key_type", "value_type"):
                inner = getattr(part, name, ())
                waiting += inner if isinstance(inner, tuple) else [inner]
    return structs


@functools.cache
def field_docs(kind: type) -> dict[str, str]:
    """Field -> the text that stands below it in the class's source; for undocumented ones nothing."""
    if kind.__module__ not in sys.modules:
        return {}
    try:
        source = inspect.getsource(kind)
    except OSError:  # made by a call, not by a class statement
        return {}
    tree = ast.parse(textwrap.dedent(source))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    docs = {}
    for field, text in itertools.pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(sentence))),
            ):
                docs[name] = _prose(sentence)
    return docs


def _prose(text: str) -> str:
    """A docstring as one paragraph of plain text."""
    return " ".join(text.replace("``", "`").split())


def _nullable(node: Any) -> None:
    """Numbers may be null wherever they stand."""
    if isinstance(node, dict):
        if node.get("type") == "number":
            node["type"] = ["number", "null"]
        for inner in node.values():
            _nullable(inner)
    elif isinstance(node, list | tuple):
        for inner in node:
            _nullable(inner)
