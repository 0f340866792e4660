"""The folder of a search: its question, and an append-only log from which every decision follows.

    question.json   the question, verbatim; hashed into the log
    log.jsonl       append-only, fsynced: opened, session, asked, answered, undone, extended, ended
    output/         output of builds and commands
    built/          kept artifacts, by item
    environment.json  the machine that runs all of it, when a command prints the number
    trials/         an experiment folder with every trial, when a cell is measured
    tree/           the worktree

Readers ignore a torn last line (from a kill during the write), and the next writer removes it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import msgspec

from iodelta.bisect.model import Answer
from iodelta.bisect.question import Question
from iodelta.decoding import decoder, from_json, sound
from iodelta.errors import MeasureError, RequestError
from iodelta.lab.folder import now
from iodelta.lab.journal import Journal
from iodelta.lab.opened import has_member, read_member
from iodelta.lab.seal import sha256

QUESTION = "question.json"
LOG = "log.jsonl"
OUTPUT = "output"
BUILT = "built"
TRIALS = "trials"
TREE = "tree"
ENVIRONMENT = "environment.json"


def is_search(path: Path) -> bool:
    """Return whether the folder of a search or an attribution lies here."""
    return has_member(path, QUESTION)


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The question is on disk and fixed from here on; ``identifier`` marks every process that is started for it."""

    at: float
    version: str
    question_sha256: str
    identifier: str


class Session(msgspec.Struct, frozen=True, tag="session"):
    """A run, or its continuation, began; ``machine`` says in a line on what."""

    at: float
    boot_id: str
    pid: int
    machine: str


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    """A run was requested, and why. If no answer follows, the run was cut short and will be repeated."""

    at: float
    item: str
    stage: str
    why: str


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """The answer; ``values`` are those of the visit's runs in the metric's unit, ``trials`` their numbers."""

    at: float
    item: str
    stage: str
    answer: Answer
    values: tuple[float, ...] = ()
    trials: tuple[int, ...] = ()


class Undone(msgspec.Struct, frozen=True, tag="undone"):
    """The last answer that counted no longer counts."""

    at: float
    item: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A session ended by itself: ``complete``, ``interrupted`` or ``failed: ...``."""

    at: float
    reason: str


class Extended(msgspec.Struct, frozen=True, tag="extended"):
    """From here on the rest of the search may take ``rest`` times the runs of the first culprit."""

    at: float
    rest: float


Event = Opened | Session | Asked | Answered | Undone | Extended | Ended
_decoder: msgspec.json.Decoder[Event] = decoder(Event)


class SearchFolder:
    """One folder. Reading needs no lock; ``writing`` takes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = Journal(path / LOG, _decoder, self._failed)

    @classmethod
    def make(
        cls, path: Path, question: Question, version: str, identifier: str
    ) -> SearchFolder:
        """Return a new folder with its question on disk. Raises RequestError if the path exists, MeasureError."""
        if path.exists() or path.is_symlink():
            raise RequestError(
                "this path exists already",
                place=str(path),
                remedy="name a new folder with --folder",
            )
        data = msgspec.json.format(msgspec.json.encode(question), indent=1) + b"\n"
        folder = cls(path)
        try:
            (path / OUTPUT).mkdir(parents=True)
            with open(path / QUESTION, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise folder._failed(error) from error
        with folder.writing():
            folder.append(Opened(now(), version, sha256(data), identifier))
        return folder

    @classmethod
    def open(cls, path: Path) -> SearchFolder:
        """Return an existing folder. Raises RequestError if ``path`` is not one."""
        if not has_member(path, QUESTION) or not has_member(path, LOG):
            raise RequestError(
                f"not the folder of a bisection or attribution: it has no {QUESTION}",
                place=str(path),
                remedy="give the folder that `iodelta bisect` or `iodelta attribute` printed",
            )
        return cls(path)

    def question(self) -> Question:
        """Return the question, unchanged since it was asked. Raises MeasureError."""
        try:
            data = read_member(self.path, QUESTION)
            question = from_json(data, Question)
        except (FileNotFoundError, msgspec.MsgspecError) as error:
            raise MeasureError(
                f"cannot be read: {error}", place=str(self.path / QUESTION)
            ) from error
        if self.opened().question_sha256 != sha256(data):
            raise MeasureError(
                "it was changed after the search began, so the log no longer matches it",
                place=str(self.path / QUESTION),
                remedy="put the original back, or begin a new search",
            )
        further = tuple(
            event.rest for event in self.events() if isinstance(event, Extended)
        )
        return msgspec.structs.replace(
            question, rules=msgspec.structs.replace(question.rules, further=further)
        )

    def extend(self, rest: float) -> None:
        """Let the rest of the search take more runs. Raises RequestError unless that is more than before."""
        rules = self.question().rules
        before = (rules.rest, *rules.further)[-1]
        if rest <= before:
            raise RequestError(
                f"the search has taken --rest {before:g} already",
                place="--rest",
                remedy="give more",
            )
        with self.writing():
            self.append(Extended(now(), rest))

    def opened(self) -> Opened:
        """Return the first line of the log. Raises MeasureError."""
        first = next(iter(self.events()), None)
        if not isinstance(first, Opened):
            raise MeasureError(
                "the log does not start like that of a search",
                place=str(self.path / LOG),
            )
        return first

    def events(self) -> list[Event]:
        """Return every whole line of the log, in order. Raises MeasureError naming a line that is damaged or was
        changed.
        """
        events = self._log.events()
        self._log.check()
        return events

    def answers(self) -> list[Answered]:
        """Return the answers that count, in order."""
        answered: list[Answered] = []
        for event in self.events():
            if isinstance(event, Answered):
                answered.append(event)
            elif isinstance(event, Undone) and answered:
                answered.pop()
        return answered

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Lock the folder for writing and remove a torn last line. Raises RequestError if another run holds the
        lock."""
        return self._log.held()

    def append(self, event: Event) -> None:
        """Append a line and sync it. Raises MeasureError (a full disk) and leaves whole lines only."""
        self._log.append(event)

    def write(self, name: str, value: object) -> None:
        """Write a file of the folder as JSON. Raises MeasureError."""
        try:
            (self.path / name).write_bytes(
                msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
            )
        except OSError as error:
            raise self._failed(error) from error

    def environment(self) -> dict[str, Any]:
        """Return the recorded environment of the measured machine, as plain data; empty before it is recorded."""
        for place in (self.path / TRIALS / ENVIRONMENT, self.path / ENVIRONMENT):
            try:
                return sound(
                    from_json(read_member(place.parent, place.name), dict[str, Any])
                )
            except FileNotFoundError:
                continue
            except msgspec.MsgspecError as error:
                raise MeasureError(
                    f"cannot be read: {error}", place=str(place)
                ) from error
        return {}

    def _failed(self, error: OSError) -> MeasureError:
        return MeasureError(
            f"cannot write to the folder: {os.strerror(error.errno or 0)}",
            place=str(self.path),
            remedy="free some space or make it writable, then give the folder again to continue; no result is lost",
        )
