"""What a history says, kept until a night, a note or a decision is added."""

from __future__ import annotations

import contextlib
import math
import threading
from pathlib import Path
from typing import Any

import msgspec

from iodelta.errors import IodeltaError, pasted
from iodelta.experiment.model import PLACEBO
from iodelta.history.alerts import history, is_asking
from iodelta.history.answers import Alert
from iodelta.history.courses import Course, courses_of
from iodelta.history.log import Entry, Log
from iodelta.history.newest import openmetrics
from iodelta.history.store import Store
from iodelta.report.stories.course import valued
from iodelta.study.words import percent
from iodelta.web.folders import stamp_of

NIGHTS = 40
"""Nights of the small drawings."""

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
    schema: str = "iodelta.web-board/1"

    @property
    def asking(self) -> tuple[Alert, ...]:
        """Alerts that wait for somebody."""
        return tuple(alert for alert in self.alerts if is_asking(alert))


_Stamp = tuple[int, ...]


class Histories:
    """One history. What all of its nights say together is found once, and again when it grew."""

    def __init__(self, store: Store, log: Log) -> None:
        self.store, self.log = store, log
        self._board: tuple[_Stamp, Board] | None = None
        self._courses: dict[int, tuple[_Stamp, Course]] = {}
        self._metrics: tuple[_Stamp, str] | None = None
        self._scanning = threading.Lock()
        self._following = threading.Lock()

    def board(self) -> Board:
        """The whole history at a glance."""
        stamp = self._stamp()
        if self._board is not None and self._board[0] == stamp:
            return self._board[1]
        with self._scanning:
            if self._board is None or self._board[0] != stamp:
                self._board = (stamp, self._seen())
        return self._board[1]

    def metrics(self) -> str:
        """The newest value of every series, as OpenMetrics: a scraper asks again and again."""
        stamp = self._stamp()
        with self._following:
            if self._metrics is None or self._metrics[0] != stamp:
                self._metrics = (stamp, openmetrics(self.store.lines()))
            return self._metrics[1]

    def warm(self) -> None:
        """Read it before the first request, which gets the message if it cannot be read."""
        with contextlib.suppress(IodeltaError):
            self.board()

    def course(self, number: int) -> Course | None:
        """One series; none where there is no such number."""
        known = self._kept(number)
        if known is not None:
            return known
        # One at a time: readers of one series wait for the first of them.
        with self._following:
            return self._kept(number) or self._followed(number)

    def _kept(self, number: int) -> Course | None:
        """A series that was found since the history last grew."""
        stamp, course = self._courses.get(number, ((), None))
        return course if stamp == self._stamp() else None

    def _followed(self, number: int) -> Course | None:
        stamp = self._stamp()
        lines = self.store.lines([number])
        if not lines or not lines[0].points:
            return None
        machine = lines[0].key.machine
        # The machine's own unchanged series say how much its nights differ.
        unchanged = [
            int(line.id)
            for line in self.board().series
            if line.machine == machine
            and (line.variant == PLACEBO or line.role == "reference")
        ]
        others = [other for other in unchanged if other != number]
        whole = [*lines, *(self.store.lines(others) if others else ())]
        (course,) = courses_of(lines, whole, self.experiments(), self.log.entries()[0])
        if len(self._courses) > COURSES:
            self._courses.clear()
        self._courses[number] = (stamp, course)
        return course

    @property
    def known(self) -> Board | None:
        """What was found last, without a look whether the history grew; none before the first time."""
        return self._board[1] if self._board is not None else None

    @property
    def named(self) -> str:
        """The options that name this history on a command line."""
        if self.store.is_file:
            return f"--history {pasted(Path(self.store.place).parent)}"
        return f"--history {pasted(self.store.place)} --log {pasted(self.log.path)}"

    def experiments(self) -> dict[str, dict[str, Any]]:
        """Rows of all experiments, by identifier."""
        return {row["id"]: row for row in self.store.experiments()}

    def alert(self, identifier: str) -> Alert | None:
        """The alert with that identifier."""
        by_id = {alert.id: alert for alert in self.board().alerts}
        return by_id.get(identifier)

    def write(self, *entries: Entry) -> None:
        """Add to the log; alerts that are new go first, so that what is decided of one has something to stand on."""
        with self._scanning:
            scan = history(self.store.lines(), self.log.entries()[0])
            self.log.append(*scan.opened, *entries)

    def _stamp(self) -> _Stamp:
        """What changes with every night and every word."""
        if not self.store.is_file:
            return (len(self.store.experiments()), *stamp_of([self.log.path]))
        database = Path(self.store.url.database or "")
        # SQLite writes to the write-ahead log first.
        written_ahead = database.with_name(f"{database.name}-wal")
        return stamp_of([self.log.path, database, written_ahead])

    def _seen(self) -> Board:
        lines, entries = self.store.lines(), self.log.entries()[0]
        experiments = self.experiments()
        scan = history(lines, entries)
        series = [
            _line(course) for course in courses_of(lines, lines, experiments, entries)
        ]
        return Board(len(experiments), tuple(series), scan.alerts)


def _line(course: Course) -> SeriesLine:
    line, points = course.line, course.line.points
    newest = points[-1]
    log = course.log_ratio(newest)
    shown = map(course.shown, points[-NIGHTS:])
    return SeriesLine(
        id=str(line.key.number),
        machine=line.key.machine,
        cell=line.cell,
        variant=line.variant,
        metric=line.key.metric,
        role=line.key.role,
        nights=len(points),
        newest=newest.t,
        value=valued(newest.y, line.unit),
        against="" if log is None else percent(math.expm1(log), newest.r_se),
        steps=len(course.steps),
        last=course.steps[-1].way if course.steps else "",
        course=tuple(value for value in shown if value is not None),
    )
