"""What a history says, kept until a night, a note or a decision is added."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import threading
from pathlib import Path

import msgspec

from iodelta.errors import IodeltaError, pasted
from iodelta.history.alerts import alerts_of, is_asking
from iodelta.history.answers import Alert, Candidate, HistoryPoint
from iodelta.history.courses import Course, courses
from iodelta.history.kept import decoded, kept_of, parts, refresh
from iodelta.history.log import Entry, Log, Opened
from iodelta.history.scan import Kept, clearest, unscanned
from iodelta.history.services import openmetrics
from iodelta.history.store import Store
from iodelta.report.stories.course import valued
from iodelta.study.words import percent
from iodelta.web.folders import stamp_of

COURSES = 40
"""Series that are kept in memory."""


class SeriesLine(msgspec.Struct, frozen=True):
    """One series in a list."""

    id: str
    """Part of its address: ``/series/ID``."""
    machine: str
    cell: str
    variant: str
    metric: str
    role: str
    nights: int
    """How many points it has."""
    newest: float
    """Unix seconds of the newest."""
    value: str
    """Its number, for people."""
    against: str
    """Against the reference variant in the same blocks; empty where there is none."""
    steps: int
    """Steps that stand out; none of them is a verdict."""
    last: str
    """``worse`` or ``better`` by the newest of them; empty where there is none."""
    course: tuple[float, ...]
    """The newest nights, as logarithms of what is followed; rises where the number rises."""


class Board(msgspec.Struct, frozen=True):
    """A history at a glance."""

    experiments: int
    """How many nights it has."""
    series: tuple[SeriesLine, ...]
    """Those with steps first."""
    alerts: tuple[Alert, ...]
    """The newest first."""
    behind: int = 0
    """Series with nights that are not scanned yet: they are being scanned now."""
    schema: str = "iodelta.web-board/1"

    @property
    def asking(self) -> tuple[Alert, ...]:
        """Alerts that wait for somebody."""
        return tuple(alert for alert in self.alerts if is_asking(alert))


AT_ONCE = 50_000
"""Points up to which a scan takes no process of its own."""

_Stamp = tuple[int, ...]


class Histories:
    """One history, as its last scans saw it: a page reads what they kept. A thread scans what changed since."""

    def __init__(self, store: Store, log: Log) -> None:
        self.store, self.log = store, log
        self._board: tuple[_Stamp, Board] | None = None
        self._kept: list[Kept] = []
        self._lines: tuple[_Stamp, tuple[SeriesLine, ...], int] | None = None
        """Of what state of the database, and how many series are behind it."""
        self._unwritten: list[Kept] = []
        """Of a database that cannot be written."""
        self._nights: tuple[_Stamp, dict[str, HistoryPoint]] | None = None
        self._courses: dict[int, tuple[_Stamp, Course]] = {}
        self._metrics: tuple[_Stamp, str] | None = None
        self._reading = threading.Lock()
        self._following = threading.Lock()
        self._scanning = threading.Lock()

    def board(self) -> Board:
        """Return the whole history at a glance."""
        stamp = self.stamp()
        if self._board is not None and self._board[0] == stamp:
            return self._board[1]
        with self._reading:
            if self._board is None or self._board[0] != stamp:
                self._read(stamp)
        assert self._board is not None
        return self._board[1]

    def _read(self, stamp: _Stamp) -> None:
        state = self._state()
        # A word in the log changes neither what scans found nor the list of series.
        if self._lines is None or self._lines[0] != state:
            self._kept, behind = kept_of(self.store)
            if behind:
                scan = threading.Thread(target=self.scan, daemon=True)
                scan.start()
                if not self._kept:  # nothing could be shown yet: the first look at a history of an older iodelta
                    scan.join()
                    stamp, state = self.stamp(), self._state()
                    self._kept, behind = kept_of(self.store)
                    self._kept = self._kept or self._unwritten
            self._lines = (
                state,
                tuple(map(_line, sorted(self._kept, key=_clearest))),
                behind,
            )
        nights, (_, series, behind) = self._seen(), self._lines
        alerts = alerts_of(self._kept, self.log.entries()[0], nights).alerts
        self._board = (stamp, Board(len(nights), series, alerts, behind))

    def scan(self) -> None:
        """Scan what changed, in a process of its own: its memory goes with it."""
        if not self._scanning.acquire(blocking=False):
            return
        try:
            if self.store.behind() <= AT_ONCE:
                with contextlib.suppress(IodeltaError):
                    found, failed = refresh(self.store, self.log.entries()[0])
                    self._unwritten = found if failed is not None else []
                return
            words = [sys.executable, "-m", "iodelta.history.kept", str(self.log.path)]
            address = self.store.url.render_as_string(hide_password=False)
            subprocess.run(
                words,
                input=address.encode(),
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        finally:
            self._scanning.release()

    def metrics(self) -> str:
        """Return the newest value of every series, as OpenMetrics: a scraper asks again and again."""
        stamp = self.stamp()
        with self._following:
            if self._metrics is None or self._metrics[0] != stamp:
                rows = self.store.scans()
                stale = [number for number, _, is_fresh, _ in rows if not is_fresh]
                fresh = {number: kept for number, _, is_fresh, kept in rows if is_fresh}
                lines = {
                    line.key.number: line
                    for part in parts(stale)
                    for line in self.store.lines(part)
                }
                bare = {number: unscanned(line) for number, line in lines.items()}
                every = [
                    bare[number] if number in bare else decoded(fresh[number])
                    for number, _, _, _ in rows
                ]
                self._metrics = (stamp, openmetrics(every))
            return self._metrics[1]

    def warm(self) -> None:
        """Scan and read it before the first request, which gets the message if it cannot be read."""
        with contextlib.suppress(IodeltaError):
            if self.board().behind:
                self.scan()
                self.board()

    def course(self, number: int) -> Course | None:
        """Return one series; none where there is no such number."""
        # One at a time: readers of one series wait for the first of them.
        with self._following:
            stamp, known = self._courses.get(number, ((), None))
            if known is not None and stamp == self.stamp():
                return known
            stamp, board = self.stamp(), self.board()
            own = [one for one in self._kept if one.series == number]
            if not own:
                return None
            (course,) = courses(
                self.store, board.alerts, own, (), self.log.entries()[0]
            )
            if len(self._courses) > COURSES:
                self._courses.clear()
            self._courses[number] = (stamp, course)
            return course

    @property
    def known(self) -> Board | None:
        """Return what was found last, without a look whether the history grew; none before the first time."""
        return self._board[1] if self._board is not None else None

    @property
    def named(self) -> str:
        """Return the options that name this history on a command line."""
        if self.store.is_file:
            return f"--history {pasted(Path(self.store.place).parent)}"
        return f"--history {pasted(self.store.place)} --log {pasted(self.log.path)}"

    def alert(self, identifier: str) -> Alert | None:
        """Return the alert with that identifier."""
        by_id = {alert.id: alert for alert in self.board().alerts}
        return by_id.get(identifier)

    def candidates(self) -> tuple[Candidate, ...]:
        """Steps that stand out, the clearest first."""
        self.board()
        return tuple(one.candidate for one in clearest(self._kept))

    def write(self, *entries: Entry) -> None:
        """Add to the log; alerts that are new go first, so that what is decided of one has something to stand on."""
        board = self.board()
        logged = self.log.entries()[0]
        known = {entry.alert for entry in logged if isinstance(entry, Opened)}
        if any(alert.id not in known for alert in board.alerts):
            self.log.append(*alerts_of(self._kept, logged, self._seen()).opened)
        self.log.append(*entries)

    def _seen(self) -> dict[str, HistoryPoint]:
        """Return the nights: a word in the log changes none of them."""
        state = self._state()
        if self._nights is None or self._nights[0] != state:
            self._nights = (state, self.store.nights())
        return self._nights[1]

    def stamp(self) -> _Stamp:
        """Return what changes with every night, every scan and every word."""
        return (*stamp_of([self.log.path]), *self._state())

    def _state(self) -> _Stamp:
        if not self.store.is_file:
            return self.store.state()
        database = Path(self.store.url.database or "")
        # SQLite writes to the write-ahead log first.
        return stamp_of([database, database.with_name(f"{database.name}-wal")])


def _clearest(one: Kept) -> float:
    return -max((found.candidate.z for found in one.found), default=0.0)


def _line(one: Kept) -> SeriesLine:
    newest = one.newest
    log = newest.r if newest is not None else None
    rises = -1.0 if one.better == "higher" else 1.0
    steps = sorted(
        (found.candidate for found in one.found), key=lambda step: step.first_bad.t
    )
    return SeriesLine(
        id=str(one.series),
        machine=one.machine,
        cell=one.cell,
        variant=one.variant,
        metric=one.metric,
        role=one.role,
        nights=one.nights,
        newest=newest.t if newest is not None else 0.0,
        value=valued(newest.y, one.unit) if newest is not None else "",
        against=""
        if log is None or newest is None
        else percent(math.expm1(rises * log), newest.r_se),
        steps=len(steps),
        last=steps[-1].way if steps else "",
        course=one.course,
    )
