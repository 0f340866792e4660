"""Lines of shell made of words: data is quoted when a line is written, so no value can become a command.

Reproducer scripts (``iodelta.reproducer``) and the script next to an undo log (``knob/registry.py``) consist of these.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import msgspec

from iodelta.errors import RequestError


class Shell(msgspec.Struct, frozen=True):
    """Text for the shell to interpret. Always a literal in the source: ``tests/reproducer/test_words.py`` checks it."""

    text: str


class Pattern(msgspec.Struct, frozen=True):
    """Paths with ``*`` for the shell to expand; everything else in it is quoted."""

    text: str


class Output(msgspec.Struct, frozen=True):
    """The words that a command prints, split at blanks."""

    words: tuple[str, ...]


Word = str | Shell | Pattern | Output
"""A str is data."""

Line = tuple[Word, ...]


class Steps(msgspec.Struct, frozen=True):
    """Commands of one setting. ``restore`` also runs at the end and after a crash, so it must be idempotent."""

    restore: Line
    apply: Line = ()
    verify: Line = ()


class Script(msgspec.Struct, frozen=True):
    """How a reproducer script handles one knob. The functions that lines may call are in ``reproducer/script.sh``."""

    values: Mapping[str, tuple[Line, ...]]
    """Value -> lines that set it, unless it is set already. They run before every trial with the value."""
    keep: tuple[Line, ...] = ()
    """Lines that save the original to disk (``keep FILE``). They run before the first trial."""
    release: tuple[Line, ...] = ()
    """Lines that restore the original. They run before every trial of a variant that does not set the knob."""
    launchers: Mapping[str, Line] = {}
    """Value -> words in front of fio's command line, for a value that binds the load."""
    steps: Mapping[str, Steps] = {}
    """Name -> commands of a ``command`` knob; each ``restore`` is saved to disk before the first trial."""


class NoScript(msgspec.Struct, frozen=True):
    """Why a script without iodelta cannot set a knob."""

    reason: str


def in_queues(file: str) -> Output:
    """Return a file below ``queue/`` of every request queue below the target."""
    return Output(("in_queues", file))


def in_disks(file: str) -> Output:
    """Return a file of every whole disk below the target."""
    return Output(("in_disks", file))


def line_text(line: Line) -> str:
    """Return a line of a script. Raises RequestError for data that no line can hold."""
    return " ".join(map(_text, line))


def quoted(text: str) -> str:
    """Data as one word of a script. Raises RequestError for a NUL, which no word can hold."""
    if "\0" in text:
        raise RequestError(
            "a script cannot hold a NUL byte", place=text.replace("\0", "?")[:80]
        )
    return shlex.quote(text)


def _text(word: Word) -> str:
    if isinstance(word, Shell):
        return word.text
    if isinstance(word, Pattern):
        parts = word.text.split("*")
        # An empty part would be quoted as '', which a shell does not expand.
        return "*".join(part and quoted(part) for part in parts)
    if isinstance(word, Output):
        return f"$({' '.join(map(quoted, word.words))})"
    return quoted(word)
