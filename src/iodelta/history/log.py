"""The log of a history: folders that were added, alerts that were opened, what was measured and decided of them. A line
each, synced and chained (``lab/seal.py``). With the folders it is all that is needed to make the database again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from iodelta.decoding import decoder
from iodelta.errors import MeasureError
from iodelta.lab.folder import room_for
from iodelta.lab.journal import Journal, readable, whole
from iodelta.lab.seal import Seal, read_seal


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
    repo: str = ""
    """The repository of the commits."""


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
    by: str = ""
    """Who, where it was said on a page."""
    owner: str = ""
    """Who looks after it."""
    bug: str = ""
    """Address of its bug report."""


class Annotated(msgspec.Struct, frozen=True, tag="annotated"):
    """A note at a time, or at a commit."""

    at: float
    text: str
    t: float | None = None
    commit: str = ""
    by: str = ""
    """Who, where it was said on a page."""


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
    Added
    | Named
    | Removed
    | Ordered
    | Opened
    | Confirming
    | Confirmed
    | Decided
    | Annotated
    | NightBegun
    | NightEnded
)
_decoder: msgspec.json.Decoder[Entry] = decoder(Entry)


def read_entry(text: str) -> Entry:
    """Return one line of a log."""
    return _decoder.decode(text)


class _GrowingJournal(Journal[Entry]):
    """A journal that is read again for every folder that is added: of lines that were read and held together, only
    those after them are read."""

    def __init__(self, path: Path, failed: Callable[[OSError], MeasureError]) -> None:
        super().__init__(path, _decoder, failed, owner="log")
        self.forget()

    def forget(self) -> None:
        """Read it from its beginning the next time."""
        self._known, self._known_end = Seal(), 0
        self._events: dict[int, Entry] = {}
        self._damaged: dict[int, str] = {}

    def readable(self) -> tuple[dict[int, Entry], dict[int, str]]:
        """As of any journal. Raises MeasureError."""
        if not self._caught_up():
            return super().readable()
        self._seal = self._known
        return self._events, self._damaged

    def _written(self) -> tuple[Seal, int]:
        return (
            (self._known, self._known_end) if self._caught_up() else super()._written()
        )

    def _caught_up(self) -> bool:
        """Take the lines after those that are known; False where they do not hold together."""
        data = self._after(self._known_end)
        seal = read_seal(whole(data), self._known)
        if seal.broken:
            self.forget()
            return False
        first = self._known.lines
        events, damaged = readable(data, _decoder)
        self._events |= {first + number: event for number, event in events.items()}
        self._damaged |= {first + number: why for number, why in damaged.items()}
        self._known, self._known_end = seal, self._known_end + data.rfind(b"\n") + 1
        return True

    def _after(self, start: int) -> bytes:
        try:
            if start > self.path.stat().st_size:
                self.forget()
                start = 0
            with open(self.path, "rb") as file:
                file.seek(start)
                return file.read()
        except FileNotFoundError:
            self.forget()
            return b""
        except OSError as error:
            raise MeasureError(
                f"cannot read: {os.strerror(error.errno or 0)}", place=str(self.path)
            ) from error


class _Folders(msgspec.Struct):
    """What the entries say of folders and machines, up to the one of line ``last``."""

    last: int = 0
    added: dict[str, Added] = {}
    removed: set[str] = set()
    machines: dict[str, str] = {}
    places: dict[str, set[str]] = {}
    """Folder or file -> the experiments in it."""

    def take(self, entry: Entry) -> None:
        """One more entry."""
        if isinstance(entry, Added):
            self._leave_place(entry.identifier)
            self.added[entry.identifier] = entry
            self.places.setdefault(entry.folder, set()).add(entry.identifier)
            self.removed.discard(entry.identifier)
        elif isinstance(entry, Removed):
            self._leave_place(entry.identifier)
            self.added.pop(entry.identifier, None)
            self.removed.add(entry.identifier)
        elif isinstance(entry, Named) and entry.identity not in self.machines:
            taken = entry.name in self.machines.values()
            self.machines[entry.identity] = (
                f"{entry.name}-{entry.identity[:8]}" if taken else entry.name
            )

    def _leave_place(self, identifier: str) -> None:
        if identifier in self.added:
            self.places[self.added[identifier].folder].discard(identifier)


class Log:
    """``decisions.jsonl``: lines are only ever appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = _GrowingJournal(path, self._failed)
        self._folders = _Folders()

    def append(self, *entries: Entry) -> None:
        """All on disk when this returns; another writer is waited for. Raises MeasureError, also for a log in which a
        line was changed; then none of these is in it."""
        if not entries:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed(error) from error
        with self._journal.held(wait=True):
            self._journal.append_all(entries)

    @staticmethod
    @contextlib.contextmanager
    def ahead() -> Iterator[None]:
        """Carry out in the database what the log says already. Raises MeasureError, which says so."""
        try:
            yield
        except MeasureError as error:
            error.remedy += (
                ". The log has this step already: `iodelta history check` finishes it"
            )
            raise

    def entries(self) -> tuple[list[Entry], list[int]]:
        """Return every entry, and the numbers of lines that are damaged. Raises MeasureError."""
        entries, damaged = self._journal.readable()
        return list(entries.values()), list(damaged)

    def broken(self) -> int:
        """Return the first line that is not what was written there; 0 when there is none. Raises MeasureError."""
        self._journal.forget()
        self._journal.readable()
        return self._journal.seal.broken

    def added(self) -> dict[str, Added]:
        """Return the last entry of every experiment that was not removed since, in the order in which they were added."""
        return dict(self._of_folders().added)

    def entry_of(self, identifier: str) -> Added | None:
        """Return the last entry of an experiment; none where it is not, or no longer, part of the history."""
        return self._of_folders().added.get(identifier)

    def at_place(self, folder: str) -> set[str]:
        """Experiments of the history that are in this folder or file."""
        return set(self._of_folders().places.get(folder, ()))

    def removed(self) -> set[str]:
        """Experiments whose last word is that they were taken out."""
        return set(self._of_folders().removed)

    def machines(self) -> dict[str, str]:
        """Identity of a machine -> its name in this history: the one it had first. Where two machines had the same,
        the later one has a part of its identity added."""
        return dict(self._of_folders().machines)

    def _of_folders(self) -> _Folders:
        """Return what is known of them by now: entries that were taken before are not taken again."""
        entries, _ = self._journal.readable()
        last = next(reversed(entries), 0)
        if last < self._folders.last:
            self._folders = _Folders()
        for number in range(self._folders.last + 1, last + 1):
            if number in entries:
                self._folders.take(entries[number])
        self._folders.last = last
        return self._folders

    def _failed(self, error: OSError) -> MeasureError:
        return MeasureError(
            f"cannot write the log of the history: {os.strerror(error.errno or 0)}",
            place=str(self.path),
            remedy=f"{room_for(error)}, then repeat the command; this step was not recorded",
        )
