"""The TOML text of an experiment or of a disk's preparation: the line of each key, and the keys that are allowed."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

import msgspec

from iodelta.errors import RequestError

COMMAND_LINE = "command line"
"""Name of a text that was made of options."""


def text_of(path: Path, what: str = "the experiment file", *, remedy: str = "") -> str:
    """Return the text of a file. Raises RequestError."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"{what} is not text in UTF-8", place=str(path), remedy=remedy
        ) from error
    except OSError as error:
        raise RequestError(
            f"cannot read {what}: {error.strerror}", place=str(path), remedy=remedy
        ) from error


class Refuse(Protocol):
    """Raises RequestError with the place of a key: tables first, the key last."""

    def __call__(self, what: str, *path: str, remedy: str = "") -> NoReturn: ...


class Source:
    """A TOML text that knows the line of each key, for error messages."""

    def __init__(self, text: str, name: str, *, numbered: bool = True) -> None:
        self.name = name
        self.is_file = name != COMMAND_LINE
        """Whether the user wrote keys of a file rather than options."""
        self._lines = text.splitlines() if numbered else []

    def place(self, *path: str) -> str:
        """``file:line`` of the key at ``path`` (tables first), or of the nearest table above it, or the file."""
        for depth in range(len(path), 0, -1):
            line = self._line(path[:depth])
            if line:
                return f"{self.name}:{line}"
        return self.name

    def _line(self, path: Sequence[str]) -> int:
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._lines, 1):
            header = re.match(r"\s*\[+\s*(.+?)\s*\]+\s*(#.*)?$", line)
            if header:
                table = _dotted(header[1])
                if table[: len(path)] == tuple(path):
                    return number
                continue
            key = re.match(
                r"\s*((?:\"[^\"]*\"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:\"[^\"]*\"|'[^']*'|[\w-]+))*)\s*=",
                line,
            )
            if key and (*table, *_dotted(key[1])) == tuple(path):
                return number
        return 0

    def refuse(self, what: str, *path: str, remedy: str = "") -> NoReturn:
        raise RequestError(what, place=self.place(*path), remedy=remedy)


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(
        part.strip().strip("\"'")
        for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", text)
    )


def toml_data(
    text: str, name: str, *, page: str = "docs/experiment-file.md"
) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises RequestError with the line, and the ``page`` that describes the file."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        place = f"{name}:{line[1]}" if line else name
        raise RequestError(
            f"not valid TOML: {error}", place=place, remedy=f"see {page}"
        ) from error


def check_keys(
    refuse: Refuse,
    table: Mapping[str, Any],
    path: tuple[str, ...],
    allowed: Iterable[str],
) -> None:
    """Refuse a key of the table at ``path`` that is not ``allowed``, with the key that it may be meant for."""
    names = list(allowed)
    for key in table:
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            where = f"[{'.'.join(path)}]" if path else "the experiment file"
            refuse(
                f"{where} has no key {key!r}",
                *path,
                key,
                remedy=f"{hint}allowed: {', '.join(names)}",
            )


def is_filled(value: Any) -> bool:
    """Return whether it is a text that is not blank, without a NUL, which would end an argument or a path."""
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def text_value(source: Source, value: Any, *path: str) -> str:
    """Return a value as fio and the kernel's files read it: one line of text. Refuses with the key."""
    # Before the numbers, since true is one in Python.
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | int | float):
        text = str(value)
        if "\n" in text or "\0" in text:
            source.refuse("a value is one line of text", *path)
        return text
    if path[-1] == "command" and isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    source.refuse(f"{path[-1]} needs a single value, not {value!r}", *path)


def number_value(source: Source, value: Any, convert: Any, *path: str) -> Any:
    """Return a value as ``convert`` reads it. Refuses with the key."""
    try:
        return convert(value)
    except (ValueError, TypeError) as error:
        source.refuse(str(error), *path)
