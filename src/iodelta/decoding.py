"""Data to types by msgspec, also from several threads at once.

msgspec 0.22 ends the process with a segmentation fault where two threads meet a type for the first time together: each
begins to build what msgspec knows of it, and one reads what the other has not filled. Here one thread at a time builds.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, TypeVar, overload

import msgspec

_T = TypeVar("_T")
_building = threading.Lock()


def from_json(data: bytes | str, kind: type[_T]) -> _T:
    """JSON as a ``kind``. Raises msgspec.MsgspecError where it does not fit, or is no JSON, or too deep."""
    try:
        return decoder(kind).decode(data)
    except (
        ValueError,
        RecursionError,
    ) as error:  # bytes that are no UTF-8, which msgspec passes on
        raise msgspec.DecodeError(str(error)) from error


def converted(value: Any, kind: type[_T], *, strict: bool = True) -> _T:
    """Plain lists, dictionaries and numbers as a ``kind``. Raises msgspec.ValidationError where they do not fit."""
    decoder(kind)
    return msgspec.convert(value, kind, strict=strict)


@overload
def decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]: ...
@overload
def decoder(kind: UnionType) -> msgspec.json.Decoder[Any]: ...
def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return what reads JSON as a ``kind``; made once."""
    with _building:
        return _built(kind)


@cache
def _built(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def sound(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded environment in the shape that readers rely on, sections of texts. The record may be another
    version's or a stranger's; parts of another shape are left out."""
    sections: dict[str, Any] = {}
    for name, section in recorded.items():
        if name == "devices":
            sections[name] = (
                [_texts(item) for item in section if isinstance(item, dict)]
                if isinstance(section, list)
                else []
            )
        elif isinstance(section, dict):
            sections[name] = _texts(section)
        elif isinstance(section, int):
            sections[name] = section
    return sections


def _texts(section: Mapping[Any, Any]) -> dict[str, str]:
    return {
        str(key): str(value)
        for key, value in section.items()
        if isinstance(value, str | int | float)
    }


def active(text: str) -> str:
    """``none [mq-deadline]`` -> ``mq-deadline``; a text without brackets is the value."""
    match = re.search(r"(?:^|\s)\[([^\]]+)\](?:\s|$)", text)
    if not match:
        return text.strip()
    return match[1]
