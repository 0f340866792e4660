"""Steps in the series of a history. Each is a candidate: nothing here measured both builds in one experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
import numpy as np

from iodelta.history.answers import Candidate, HistoryPoint
from iodelta.history.commits import Arranged, Order, Span
from iodelta.history.placebo import NIGHTS, Placebos, is_quiet
from iodelta.history.store import Line
from iodelta.stats import changepoints, levels

ENOUGH = 0.8
"""Share of points that need a ratio to the reference for the series to be followed by it."""

STANDS = 10
"""A candidate of the newest nights stands for so many points; then the whole series has to show it."""


class Found(msgspec.Struct, frozen=True):
    """A candidate, and where its change almost certainly lies."""

    candidate: Candidate
    span: Span


class Gone(msgspec.Struct, frozen=True):
    """A change of a series that went away within five points."""

    series: int
    span: Span
    size: float


class Scanned(msgspec.Struct, frozen=True):
    """What stands out in all series."""

    found: tuple[Found, ...]
    """The largest z first."""
    gone: tuple[Gone, ...]


def scan(
    lines: Iterable[Line], order: Order | None = None, whole: Iterable[Line] = ()
) -> list[Candidate]:
    """Candidates of these series, each epoch by itself, the largest z first. Where they are a part of a history,
    ``whole`` is all of it: its placebos say how nights resemble each other."""
    return [item.candidate for item in scanned(lines, order or Order(), whole).found]


def scanned(lines: Iterable[Line], order: Order, whole: Iterable[Line] = ()) -> Scanned:
    """Candidates and incidents of all series, each epoch by itself."""
    lines = list(lines)
    placebos = Placebos(whole or lines)
    candidates: list[Found] = []
    gone: list[Gone] = []
    for line in lines:
        for _, points in groupby(line.points, key=lambda point: point.epoch):
            epoch = _Epoch(line, order.arranged(tuple(points)), order, placebos)
            candidates += epoch.found()
            gone += epoch.gone()
    return Scanned(
        tuple(sorted(candidates, key=lambda item: _clearest(item.candidate))),
        tuple(gone),
    )


def _clearest(step: Candidate) -> tuple[float, str, str, str]:
    return -step.z, step.cell, step.variant, step.metric


class _Epoch:
    """The points of a series that can be compared."""

    def __init__(
        self, line: Line, arranged: Arranged, order: Order, placebos: Placebos
    ) -> None:
        self._line, self._arranged, self._order = line, arranged, order
        self._y, self._se, self._by = followed(line, arranged.points)
        self._points = [
            point
            for point in arranged.points
            if self._by == "level" or point.r is not None
        ]
        self._inflation, self._nights = self._resemblance(placebos)
        self._segments = changepoints.segments(
            self._y, self._se, inflation=self._inflation
        )

    def found(self) -> list[Found]:
        """The steps of the whole series, and the newest candidate where these have not got it yet."""
        steps = list(self._segments.steps)
        last = len(self._y) - STANDS
        for step in self._newest(last - 1)[-1:]:
            is_new = step.found >= last and not self._is_gone(step)
            is_among = any(step.first <= known.at <= step.last for known in steps)
            if is_new and not is_among:
                steps.append(step)
        return [self._found(step) for step in steps]

    def _newest(self, since: int) -> tuple[changepoints.Step, ...]:
        """Candidates of the nights ``since`` then, on the level that the whole series had before them. One that stood
        out already in the first of them is an older one."""
        before = tuple(start for start in self._segments.starts if start <= since)
        return changepoints.online(
            self._y,
            self._se,
            threshold=changepoints.CANDIDATE,
            inflation=self._inflation,
            starts=before or (0,),
            since=since,
        )

    def gone(self) -> list[Gone]:
        """What went away."""
        gone: list[Gone] = []
        for incident in self._segments.incidents:
            span = self._span(max(incident.at - 1, 0), incident.end - 1)
            gone.append(Gone(self._line.key.number, span, incident.size))
        return gone

    def _is_gone(self, step: changepoints.Step) -> bool:
        return any(
            incident.at <= step.last and step.first <= incident.end
            for incident in self._segments.incidents
        )

    def _resemblance(self, placebos: Placebos) -> tuple[float, int]:
        """Long-run inflation, and the nights that it is known from: of the machine's placebo, else of the series."""
        known = placebos.inflation(self._line, self._by)
        if known:
            return known
        y, se = self._y, self._se
        first = changepoints.segments(y, se)
        numbers = np.zeros(0, dtype=np.intp)
        if len(y):
            numbers = changepoints.numbered(first.starts, len(y))
        return levels.inflation(y, se, first.tau, numbers), len(y)

    def _span(self, good: int, bad: int) -> Span:
        return self._order.span(self._points[good], self._points[bad])

    def _found(self, step: changepoints.Step) -> Found:
        line = self._line
        candidate = Candidate(
            machine=line.key.machine,
            cell=line.cell,
            variant=line.variant,
            metric=line.key.metric,
            by=self._by,
            size=step.size,
            error=step.error,
            z=step.z,
            last_good=self._points[max(step.low - 1, 0)],
            first_bad=self._points[step.high],
            nights=len(self._points),
            inflation=self._inflation,
            few=self._nights < NIGHTS,
            series=line.key.number,
            order=self._arranged.by,
            order_word=self._arranged.word,
            placebo=is_quiet(line),
            better=line.better,
        )
        return Found(candidate, self._span(max(step.first - 1, 0), step.last))


def followed(
    line: Line, points: Sequence[HistoryPoint]
) -> tuple[levels.Floats, levels.Floats, str]:
    """Values that are higher where it is worse, with their errors, and whether they are ratios or levels."""
    ratios = [
        (point.r, point.r_se, point.n)
        for point in points
        if point.r is not None and point.r_se is not None
    ]
    if ratios and len(ratios) >= ENOUGH * len(points):
        rows, by = np.asarray(ratios, dtype=float), "ratio"
    else:
        worse = -1.0 if line.better == "higher" else 1.0
        rows = np.asarray(
            [(worse * point.y, point.se, point.n) for point in points], dtype=float
        ).reshape(-1, 3)
        by = "level"
    return rows[:, 0], levels.steadied(rows[:, 1], rows[:, 2]), by
