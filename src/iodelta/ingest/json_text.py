"""Decode damaged JSON: with nan and inf, cut short, with raw control characters or stray commas.

Time and memory are linear in the text, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from iodelta.decoding import converted

DEEPEST = 64
"""Most levels of nested brackets; fio has seven."""

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*+"?|[{}\[\]]')
_OPENER = {b"}": b"{", b"]": b"["}
_CLOSER = {b"{": b"}", b"[": b"]"}
_RAW_CONTROL = bytes(
    32 if code < 32 and code not in (10, 13) else code for code in range(256)
)

_HALF_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""Half of an escaped surrogate pair, which is not a character."""

T = TypeVar("T")


class Extent(NamedTuple):
    """Where a JSON object ends, or where the last complete part of a cut object ends."""

    end: int
    """The offset after its closing bracket, or after its last complete part."""
    open: bytes
    """The brackets that are open there, outermost first; empty for a complete object."""


def extent(data: bytes, start: int, limit: int) -> Extent | None:
    """Return the extent of the object whose ``{`` is at ``start``, looking no further than ``limit``.

    None if brackets do not match, or are nested deeper than ``DEEPEST``.
    """
    stack: list[bytes] = []
    last = Extent(start, b"{")
    for match in _TOKEN.finditer(data, start, limit):
        token = match[0]
        if token in _CLOSER:
            stack.append(token)
            if len(stack) > DEEPEST:
                return None
        elif token in _OPENER:
            if not stack or stack.pop() != _OPENER[token]:
                return None
            last = Extent(match.end(), b"".join(stack))
            if not stack:
                return last
    return last if last.end > start else None


def holders(data: bytes, keys: Sequence[bytes]) -> list[int]:
    """Sorted offsets of the ``{`` of the objects with one of ``keys``, in any surrounding text."""
    starts: set[int] = set()
    stack: list[int] = []
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in _CLOSER:
            stack.append(match.start())
            del stack[: -2 * DEEPEST]
        elif token in _OPENER:
            if stack and data[stack[-1]] == _OPENER[token][0]:
                stack.pop()
        elif token in keys and stack and data[stack[-1]] == ord("{"):
            starts.add(stack[-1])
    return sorted(starts)


def closed(data: bytes, start: int, span: Extent) -> bytes:
    """Return the text of ``span`` as a complete object: open brackets are closed."""
    return data[start : span.end] + b"".join(
        _CLOSER[bytes([code])] for code in reversed(span.open)
    )


def tolerant(text: bytes) -> Any:
    """Return the value of ``text`` after repairs of the usual damage. Raises ValueError if it still is not JSON."""
    text = text.decode("utf-8", "replace").encode().translate(_RAW_CONTROL)
    text = re.sub(
        rb"([:\[,]\s{0,20})[+-]?(?:nan|inf|infinity)\b", rb"\1null", text, flags=re.I
    )
    text = re.sub(
        rb"[+-]?\d{25,}+(?:\.\d++)?(?:[eE][+-]?\d++)?|\d++(?:\.\d++)?[eE][+-]?\d{3,}+",
        b"null",
        text,
    )
    text = re.sub(rb",(\s{0,100}[}\]])", rb"\1", text)
    text = _HALF_PAIR.sub(rb"\\ufffd", text)
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        text = re.sub(rb'\\(?!["\\/bfnrtu])', rb"\\\\", text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def lenient(kind: type[T], value: Any) -> tuple[T, int]:
    """``value`` as the msgspec struct ``kind`` without the parts of a wrong type, and the number of these.

    Fields that ``kind`` leaves undecoded (``msgspec.Raw``) must be integers by name.
    """
    lost = [0]
    fitted = _fit(kind, value, lost)
    return (kind() if fitted is _LOST else fitted), lost[0]


_LOST = object()


def _fit(kind: Any, value: Any, lost: list[int]) -> Any:
    try:
        return converted(value, kind, strict=False)
    except (msgspec.ValidationError, OverflowError):
        pass
    inner = get_args(kind)
    if get_origin(kind) is list and isinstance(value, list):
        items = [_fit(inner[0], item, lost) for item in value]
        return [item for item in items if item is not _LOST]
    if isinstance(value, dict):
        if _is_struct(kind):
            members: dict[str, Any] = {}
            for field in msgspec.structs.fields(kind):
                if field.encode_name in value:
                    members[field.name] = _fit(
                        field.type, value[field.encode_name], lost
                    )
            return kind(**_kept(members))
        if kind is msgspec.Raw:
            before = lost[0]
            bins = _fit(dict[str, int], value, lost)
            # Percentiles of a part of the bins would be wrong.
            if lost[0] != before:
                return _LOST
            return msgspec.Raw(msgspec.json.encode(bins))
        inner_ = get_args(kind)
        if get_origin(kind) is dict:
            return _kept(
                {key: _fit(inner_[1], item_, lost) for key, item_ in value.items()}
            )
        is_union = get_origin(kind) in (Union, UnionType)
        struct = next(filter(_is_struct, inner_), None) if is_union else None
        if struct is not None:
            return _fit(struct, value, lost)
        lost[0] += 1
        return _LOST
    lost[0] += 1
    return _LOST


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _kept(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part is not _LOST}
