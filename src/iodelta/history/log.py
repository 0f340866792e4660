"""The log of a history: which folders were added, a line each, synced. With the folders it is all that is needed to
make the database again."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from iodelta.errors import MeasureError


class Added(msgspec.Struct, frozen=True, tag="added"):
    """A folder became part of the history, or was found again at another place or with more in it."""

    at: float
    identifier: str
    sha: str
    folder: str


class Log:
    """``decisions.jsonl``: lines are only ever appended."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, entry: Added) -> None:
        """On disk when this returns. Raises MeasureError."""
        line = msgspec.json.encode(entry) + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            torn = self.path.exists() and self.path.read_bytes()[-1:] not in (b"\n", b"")
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, b"\n" + line if torn else line)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise MeasureError(
                f"cannot write the log of the history: {os.strerror(error.errno or 0)}",
                place=str(self.path),
                remedy="nothing was added; make it writable or make room, then add again",
            ) from error

    def entries(self) -> tuple[list[Added], list[int]]:
        """Every whole entry, and the numbers of lines that are none: what a kill left of one, or damage."""
        if not self.path.exists():
            return [], []
        found, torn = [], []
        for number, line in enumerate(self.path.read_bytes().splitlines(), 1):
            try:
                found.append(msgspec.json.decode(line, type=Added))
            except msgspec.DecodeError:
                torn.append(number)
        return found, torn

    def folders(self) -> dict[str, str]:
        """The last place of every experiment."""
        return {entry.identifier: entry.folder for entry in self.entries()[0]}
