"""Every JSON document iodelta prints: its schema, made from the structs it consists of, and how it is written.

A document's ``schema`` is ``iodelta.NAME/VERSION``. Fields may be added within a version; nothing is taken away or
given another meaning without a new one.
"""

from __future__ import annotations

import ast
import functools
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

from iodelta.part import documents, load
from iodelta.report.glossary import FIELDS


def written(document: object) -> bytes:
    """Return a document as indented JSON in ASCII, which cannot control a terminal; unknown and infinite numbers are
    null.
    """
    finite = _finite(msgspec.to_builtins(document, str_keys=True))
    try:
        text = msgspec.json.encode(finite).decode()
    except UnicodeEncodeError:  # half a surrogate pair, which some JSON readers accept
        text = msgspec.json.encode(_whole(finite)).decode()
    ascii_text = re.sub(r"[^\x00-\x7e]", _escaped, text)
    return msgspec.json.format(ascii_text.encode(), indent=1) + b"\n"


def _escaped(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it: its UTF-16 code units, one or two."""
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
    """Return the JSON Schema (2020-12) of a document, each field with what its struct's source says of it.

    Raises KeyError for an unknown name.
    """
    document = documents()[name]
    (top,), components = described([load(document.struct)], "#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": f"Printed by {document.printed_by}. Numbers that are not known, or infinite, are null.",
        **top,
        "$defs": components,
    }


def described(
    kinds: Sequence[Any], place: str
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return a schema for each of ``kinds``, and the parts that they share, which stand at ``place`` (``{name}``:
    which).
    """
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
    """Return every struct that a document is made of, by name."""
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
    """Return a docstring as one paragraph of plain text."""
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
