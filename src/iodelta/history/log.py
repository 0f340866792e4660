"""The log of a history: folders that were added, alerts that were opened, what was measured and decided of them. A line
each, synced and chained (``lab/seal.py``). With the folders it is all that is needed to make the database again."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from iodelta.errors import MeasureError
from iodelta.lab.journal import Journal


class Given(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person said of results that do not say it themselves."""

    machine: str = ""
    """On which machine they were measured."""
    at: float | None = None
    """When, in Unix seconds."""
    describe: str = ""
    """Name of the build."""
    commit: str = ""
    """Its commit."""
    format: str = ""
    """Of a file that was imported."""
    better: tuple[tuple[str, str], ...] = ()
    """Measure -> ``higher`` or ``lower``."""


class Added(msgspec.Struct, frozen=True, tag="added", omit_defaults=True):
    """A folder became part of the history, or was found again at another place or with more in it."""

    at: float
    identifier: str
    sha: str
    folder: str
    given: Given = Given()


class Named(msgspec.Struct, frozen=True, tag="machine"):
    """A machine was seen for the first time: what it is called in this history from then on."""

    at: float
    identity: str
    name: str


class Removed(msgspec.Struct, frozen=True, tag="removed"):
    """An experiment is no longer part of the history. Its folder stays where it is."""

    at: float
    identifier: str
    reason: str


class LoggedCommit(msgspec.Struct, frozen=True):
    """One commit of a repository, as candidates list it."""

    sha: str
    t: float
    author: str
    subject: str


class Ordered(msgspec.Struct, frozen=True, tag="ordered"):
    """Commits of ``repo`` by first parent, oldest first. They follow ``after``; empty where a line begins."""

    at: float
    repo: str
    after: str
    commits: tuple[LoggedCommit, ...]
    words: dict[str, str] = {}
    """Measured commits that are not on the line, and why."""


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """An alert was seen for the first time, in these series between these experiments."""

    at: float
    alert: str
    series: tuple[int, ...]
    last_good: str
    first_bad: str


class Confirming(msgspec.Struct, frozen=True, tag="confirming"):
    """A fresh experiment of both builds begins in ``folder``. Without an entry about its end it was cut short."""

    at: float
    alert: str
    folder: str


class Confirmed(msgspec.Struct, frozen=True, tag="confirmed"):
    """Such an experiment ended with ``word`` about the alert."""

    at: float
    alert: str
    folder: str
    identifier: str
    sha: str
    word: str
    verdicts: tuple[str, ...] = ()
    """What it found in each cell, a sentence each."""


class Decided(msgspec.Struct, frozen=True, tag="decided"):
    """A person said what is to become of an alert."""

    at: float
    alert: str
    word: str
    why: str = ""


class Annotated(msgspec.Struct, frozen=True, tag="annotated"):
    """A note at a time, or at a commit."""

    at: float
    text: str
    t: float | None = None
    commit: str = ""


class NightBegun(msgspec.Struct, frozen=True, tag="night"):
    """A night of the experiment file begins in ``folder``."""

    at: float
    file: str
    folder: str
    commit: str = ""


class NightEnded(msgspec.Struct, frozen=True, tag="night ended"):
    """The night in ``folder`` was added, scanned and confirmed."""

    at: float
    folder: str


Entry = (
    Added | Named | Removed | Ordered | Opened | Confirming | Confirmed | Decided | Annotated | NightBegun | NightEnded
)
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


class Log:
    """``decisions.jsonl``: lines are only ever appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = Journal(path, _decoder, self._failed, owner="log")

    def append(self, *entries: Entry) -> None:
        """On disk when this returns; another writer is waited for. Raises MeasureError, also for a log in which a line
        was changed."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed(error) from error
        with self._journal.held(wait=True):
            for entry in entries:
                self._journal.append(entry)

    def entries(self) -> tuple[list[Entry], list[int]]:
        """Every entry, and the numbers of lines that are damaged. Raises MeasureError."""
        entries, damaged = self._journal.readable()
        return list(entries.values()), list(damaged)

    def broken(self) -> int:
        """The first line that is not what was written there; 0 when there is none. Raises MeasureError."""
        self._journal.readable()
        return self._journal.seal.broken

    def added(self) -> dict[str, Added]:
        """The last entry of every experiment that was not removed since, in the order in which they were added."""
        found: dict[str, Added] = {}
        for entry in self.entries()[0]:
            if isinstance(entry, Added):
                found[entry.identifier] = entry
            elif isinstance(entry, Removed):
                found.pop(entry.identifier, None)
        return found

    def removed(self) -> set[str]:
        """Experiments whose last word is that they were taken out."""
        found: set[str] = set()
        for entry in self.entries()[0]:
            if isinstance(entry, Removed):
                found.add(entry.identifier)
            elif isinstance(entry, Added):
                found.discard(entry.identifier)
        return found

    def machines(self) -> dict[str, str]:
        """Identity of a machine -> its name in this history: the one it had first. Where two machines had the same,
        the later one has a part of its identity added."""
        found: dict[str, str] = {}
        for entry in self.entries()[0]:
            if isinstance(entry, Named) and entry.identity not in found:
                taken = entry.name in found.values()
                found[entry.identity] = f"{entry.name}-{entry.identity[:8]}" if taken else entry.name
        return found

    def _failed(self, error: OSError) -> MeasureError:
        return MeasureError(
            f"cannot write the log of the history: {os.strerror(error.errno or 0)}",
            place=str(self.path),
            remedy="nothing was changed; make it writable or make room, then do it again",
        )
