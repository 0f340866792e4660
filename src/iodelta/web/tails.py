"""The end of a growing journal: its whole lines, read once for everybody who follows it."""

from __future__ import annotations

import copy
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from iodelta.decoding import decoder
from iodelta.errors import MeasureError
from iodelta.lab.events import (
    Abandoned,
    Ended,
    Event,
    Extended,
    Failed,
    Finished,
    Repeated,
    Session,
    Started,
)
from iodelta.lab.journal import READINGS, whole
from iodelta.lab.opened import read_member
from iodelta.lab.seal import Seal, read_seal


class Tally(msgspec.Struct):
    """What all lines so far amount to, in a few numbers."""

    lines: int = 0
    state: str = "running"
    """``running``, or how the last session ended."""
    newest: Started | None = None
    """The trial with the largest number."""
    is_over: bool = True
    """Whether that trial has ended."""
    trials: int = 0
    """Finished."""
    repeated: int = 0
    """Blocks that were repeated."""
    spent: float = 0.0
    """Seconds of finished trials."""
    more_budget: float = 0.0
    """Seconds by which the run was extended."""
    abandoned: dict[str, str] = {}
    """Cell -> reason."""

    def add(self, event: Event) -> None:
        """Take one more line into account."""
        self.lines += 1
        match event:
            case Started():
                self.state = "running"
                if self.newest is None or event.trial >= self.newest.trial:
                    self.newest, self.is_over = event, False
            case Finished():
                self.trials += 1
                self.spent += event.seconds
                self._end(event.trial)
            case Failed():
                self._end(event.trial)
            case Repeated():
                self.repeated += 1
            case Abandoned():
                self.abandoned = {**self.abandoned, event.cell: event.reason}
            case Session():
                self.state = "running"
            case Extended():
                self.state, self.more_budget = "running", event.budget
            case Ended():
                self.state = event.reason
            case _:
                pass

    def _end(self, trial: int) -> None:
        if self.newest is not None and self.newest.trial == trial:
            self.is_over = True


class Tail:
    """The whole lines of a journal. A trial takes two of them, some 350 bytes together."""

    def __init__(self, path: Path) -> None:
        self.events: list[Event] = []
        self.ends = [0]
        """Numbers of lines at which a round was over: where the next one began, or the run ended. 0 first."""
        self.tally = Tally()
        """Never changed: a reader's stays as it is."""
        self.broken = ""
        """Why nothing after the last line can be believed."""
        self._path, self._offset, self._failures = path, 0, 0
        self._seal = Seal()
        self._block: int | None = None
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """``running``, or how the last session ended."""
        return self.tally.state

    def lines(self, begin: int, end: int) -> list[bytes]:
        """Some lines, as they were written but for their seals; fewer where there are no more."""
        return list(map(msgspec.json.encode, self.events[begin:end]))

    def read(self) -> None:
        """Take new lines in; half of one waits for its other half."""
        with self._lock:
            try:
                if self.broken or self._path.stat().st_size == self._offset:
                    return
                data = read_member(self._path.parent, self._path.name, self._offset)
            except FileNotFoundError as error:
                self.broken = os.strerror(error.errno or 0)
                return
            except MeasureError as error:
                self.broken = error.what
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        lines = whole(data)
        seal = read_seal(lines, self._seal)
        events = self._decoded(lines) if not seal.broken else None
        if events is None:  # a writer may have cut a torn line while it was read
            self._failures += 1
            if self._failures >= READINGS:
                number = seal.broken or len(self.events) + 1
                self.broken = (
                    f"line {number} of the journal is not what was written there"
                )
            return
        # The seals of files are for who reads the files; here they would be most of what is kept.
        self._failures, self._seal = 0, msgspec.structs.replace(seal, files={})
        self._offset += data.rfind(b"\n") + 1
        self._add(events)

    def _add(self, events: Sequence[Event]) -> None:
        tally, ends = copy.copy(self.tally), []
        for event in events:
            if isinstance(event, Started):
                if self._block not in (None, event.block):
                    ends.append(tally.lines)
                self._block = event.block
            tally.add(event)
            if isinstance(event, Ended):
                ends.append(tally.lines)
        self.events += events  # before anybody hears of them
        self.ends += ends
        self.tally = tally

    def _decoded(self, lines: Sequence[bytes]) -> list[Event] | None:
        reader = decoder(Event)
        try:
            return [_shared(reader.decode(line)) for line in lines]
        except msgspec.MsgspecError:
            return None


def _shared(event: Event) -> Event:
    """Return the event with one copy of its names for all trials."""
    if not isinstance(event, Started):
        return event
    cell, variant = sys.intern(event.cell), sys.intern(event.variant)
    return msgspec.structs.replace(event, cell=cell, variant=variant)
