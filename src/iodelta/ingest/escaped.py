"""Expand text that a program wrote as a string, with ``\\n`` for line ends: results of Ansible, container logs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import repeat

import msgspec

from iodelta.decoding import from_json

LEAST = 5
"""Fewest escaped line ends in a line that is taken for a string."""
LONGEST = 200
"""Most characters of such a line per escaped line end."""
_TERSE = re.compile(r"(?:[\"']|\\n)[2-5];fio-\d")
_OPENING = re.compile(r"(?:^|(?<=[\s=(,\[{:bru]))[\"']")
_ESCAPES = {
    quote: re.compile(rf"\\(?:u([0-9a-fA-F]{{4}})|(.))|{quote}") for quote in "\"'"
}
_MEANT = {"n": "\n", "r": "\n", "t": "\t"}
_ALONE = re.compile(r'\s{0,60}("(?:[^"\\]|\\.){0,20000}"),?\s{0,60}')
_CONTAINER = re.compile(r'\{"log": ?("(?:[^"\\]|\\.){0,20000}")')


def opened(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """``lines`` with their numbers; a line that contains a string is replaced by the lines in the string.

    Ansible writes the same text again, as a list of JSON strings after the string; the list is omitted.
    """
    many = False
    for number, raw in lines:
        if not any(mark in raw for mark in ('"', "'", "\\n")):
            yield number, raw
        elif many and _ALONE.fullmatch(raw):
            continue
        else:
            # Whether a line has as many escaped line ends as a text in a string, or contains a terse record.
            least = max(LEAST, len(raw) // LONGEST)
            is_string = raw.count("\\n") >= least or _TERSE.search(raw) is not None
            many = many or is_string
            parts = _unescaped(raw) if is_string else _in_json(raw)
            yield from zip(repeat(number), parts, strict=False)


def _in_json(raw: str) -> list[str]:
    """Return the lines in a line that is one JSON string, or a container's log entry; else the line itself."""
    string = _CONTAINER.match(raw) or _ALONE.fullmatch(raw)
    return _decoded(string[1]) if string else [raw]


def _unescaped(raw: str) -> list[str]:
    """Return the lines of a line with strings; a quote without a backslash begins or ends a string."""
    first = raw.find("\\n")
    opening = _OPENING.search(raw, 0, first if first >= 0 else len(raw))
    return _ESCAPES[opening[0] if opening else '"'].sub(_meant, raw).splitlines()


def _meant(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if not match[2]:
        return "\n"
    return _MEANT.get(match[2], match[2])


def _decoded(string: str) -> list[str]:
    try:
        return from_json(string.encode("utf-8", "replace"), str).splitlines() or [""]
    except msgspec.DecodeError:
        return [string]
