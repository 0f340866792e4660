"""Steps in the series of a history. Each is a candidate: nothing here measured both builds in one experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby

import msgspec
import numpy as np

from iodelta.history.answers import Candidate, HistoryPoint
from iodelta.history.commits import Arranged, Mark, Order, Span
from iodelta.history.placebo import NIGHTS, Placebos, Quiet, counted, is_quiet, quiet_of
from iodelta.history.store import Line
from iodelta.plural import plural
from iodelta.stats import changepoints, levels

ENOUGH = 0.8
"""Share of points that need a ratio to the reference for the series to be followed by it."""

STANDS = 10
"""A candidate of the newest nights stands for so many points; then the whole series has to show it."""


CYCLES = (1.0, 1.5, 2.0, 3.0, 4.0)
"""Waves in an epoch that may be a slow season."""

OFF = 3.0
"""A night further off than so many sd counts as so far."""

WEEKLY = 22.5
"""Chi-square with 6 degrees of freedom that is passed once in 1000 series whose nights do not know the weekday."""

SHOWN = 40
"""Nights of the small drawings."""


class Found(msgspec.Struct, frozen=True):
    """A candidate, and where its change almost certainly lies."""

    candidate: Candidate
    span: Span
    sure: Span | None = None
    """Where it lies at 97 %: of a candidate that is not clear, ``span`` may be most of the series, and meet anything."""

    @property
    def near(self) -> Span:
        """Return where a change lies that may be the same as a clearer one's."""
        is_clear = self.candidate.z >= changepoints.REPORT
        return self.span if is_clear or self.sure is None else self.sure


class Gone(msgspec.Struct, frozen=True):
    """A change of a series that went away within five points."""

    series: int
    span: Span
    size: float


class Kept(msgspec.Struct, frozen=True):
    """One series as its last scan saw it: all that lists, alerts and pages need, so that none of them scans."""

    series: int
    machine: str
    cell: str
    variant: str
    metric: str
    role: str
    better: str
    unit: str
    nights: int
    by: str
    newest: HistoryPoint | None
    course: tuple[float, ...]
    """The newest nights, as logarithms of what is followed; rises where the number rises."""
    found: tuple[Found, ...]
    gone: tuple[Gone, ...]
    known: tuple[float, int] | None
    """The inflation that was used, of the machine's placebo, and from how many nights that was known."""
    marks: tuple[Mark, ...]
    """What the order of its nights rests on."""
    quiet: Quiet | None
    """Where nothing changes in it but the machine."""

    @property
    def name(self) -> tuple[str, str, str, str]:
        """Machine, cell, variant and metric."""
        return self.machine, self.cell, self.variant, self.metric


def scan(
    lines: Iterable[Line], order: Order | None = None, whole: Iterable[Line] = ()
) -> list[Candidate]:
    """Candidates of these series, each epoch by itself, the largest z first. Where they are a part of a history,
    ``whole`` is all of it: its placebos say how nights resemble each other."""
    return [one.candidate for one in clearest(scanned(lines, order or Order(), whole))]


def scanned(
    lines: Iterable[Line], order: Order, whole: Iterable[Line] = ()
) -> list[Kept]:
    """Return what is to be seen in these series."""
    lines = list(lines)
    every = {line.key.number: line for line in (*whole, *lines) if is_quiet(line)}
    placebos = placebos_of(every.values())
    return [looked(line, order, placebos) for line in lines]


def placebos_of(lines: Iterable[Line]) -> Placebos:
    """Return what these series without a change say, with the candidates of those that are counted."""
    own = {line.key.number: line for line in lines}
    quiet = {number: quiet_of(line) for number, line in own.items()}
    first = Placebos(quiet.values())
    return Placebos(
        counted(one, own[number]) if first.is_counted(one) else one
        for number, one in quiet.items()
    )


def clearest(kept: Iterable[Kept]) -> list[Found]:
    """Return all candidates, the largest z first."""
    every = [one for series in kept for one in series.found]
    return sorted(every, key=lambda one: (-one.candidate.z, *one.candidate.name))


def looked(line: Line, order: Order, placebos: Placebos) -> Kept:
    """Scan one series, each epoch by itself."""
    found: list[Found] = []
    gone: list[Gone] = []
    for _, points in groupby(line.points, key=lambda point: point.epoch):
        epoch = _Epoch(line, order.arranged(tuple(points)), order, placebos)
        found += epoch.found()
        gone += epoch.gone()
    bare = unscanned(line)
    return msgspec.structs.replace(
        bare,
        found=tuple(found),
        gone=tuple(gone),
        known=placebos.inflation(bare.machine, bare.cell, bare.metric, bare.by),
        marks=order.mark(line.points),
        quiet=placebos.of(bare.series),
    )


def unscanned(line: Line) -> Kept:
    """Return one series without what a scan would find."""
    by = followed(line, line.points)[2]
    rises = 1.0 if by == "level" or line.better == "lower" else -1.0
    values = [point.y if by == "level" else point.r for point in line.points[-SHOWN:]]
    return Kept(
        line.key.number,
        line.key.machine,
        line.cell,
        line.variant,
        line.key.metric,
        line.key.role,
        line.better,
        line.unit,
        nights=len(line.points),
        by=by,
        newest=line.points[-1] if line.points else None,
        course=tuple(rises * value for value in values if value is not None),
        found=(),
        gone=(),
        known=None,
        marks=(),
        quiet=None,
    )


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
        self._ranked: tuple[int, ...] | None = None
        self._inflation, self._nights = self._resemblance(placebos)
        self._segments = changepoints.segments(
            self._y, self._se, inflation=self._inflation
        )

    def found(self) -> list[Found]:
        """Return the steps of the whole series, and the newest candidate where these have not got it yet."""
        steps = list(self._segments.steps)
        last = len(self._y) - STANDS
        # Candidates of the nights ``since`` then, on the level that the whole series had before them. One that
        # stood out already in the first of them is an older one.
        since = last - 1
        before = tuple(start for start in self._segments.starts if start <= since)
        for step in changepoints.online(
            self._y,
            self._se,
            threshold=changepoints.CANDIDATE,
            inflation=self._inflation,
            starts=before or (0,),
            since=since,
        )[-1:]:
            is_new = step.found >= last and not self._is_gone(step)
            is_among = any(step.first <= known.at <= step.last for known in steps)
            if is_new and not is_among:
                steps.append(step)
        return [self._found(step) for step in steps]

    def _doubts(self, step: changepoints.Step) -> tuple[str, ...]:
        """Return what else than one change may have made a step: said, because then such series have many candidates."""
        nights = step.high - max(step.low - 1, 0)
        wide = (f"it may lie anywhere in {nights} of {len(self._y)} nights",)
        return (
            *(wide if nights > len(self._y) / 2 else ()),
            *self._shape,
            *self._second_opinion(step),
        )

    @cached_property
    def _shape(self) -> tuple[str, ...]:
        """Drift, season and a young epoch, as far as they explain the nights as well as the steps do."""
        n, said = len(self._y), []
        if n < NIGHTS:
            said.append(
                f"the epoch has {plural(n, 'night')}: in the first {NIGHTS} a rule is wrong more often"
            )
        w = levels.weights(self._se, self._segments.tau, self._inflation)
        level = np.zeros(n)
        for start, own in zip(
            self._segments.starts, self._segments.levels, strict=True
        ):
            level[start:] = own.value
        worth, rest = changepoints.penalty(n), self._y - level
        at = np.linspace(-1.0, 1.0, n)
        line = np.column_stack([np.ones(n), at])
        waves = [
            np.column_stack(
                [line, np.sin(cycles * np.pi * at), np.cos(cycles * np.pi * at)]
            )
            for cycles in CYCLES
        ]
        steps = float(np.minimum(w * rest**2, OFF**2).sum()) + worth * (
            len(self._segments.starts) - 1
        )
        drift, *seasons = (self._unexplained(shape, w) for shape in (line, *waves))
        if drift + worth <= min(steps, min(seasons) + 2.0 * worth):
            said.append("the nights drift: a line fits them as well as the steps do")
        elif min(seasons) + 3.0 * worth < steps:
            said.append(
                "the nights have a slow season: a wave fits them better than the steps do"
            )
        days = np.asarray([point.t for point in self._points]) // 86400.0
        if (
            n >= 2 * NIGHTS / 3
            and 0.5 <= float(np.median(np.diff(np.sort(days)))) <= 2.0
        ):
            weekday = (days % 7).astype(np.intp)
            clear = np.sqrt(w * self._inflation) * np.clip(
                rest, -OFF / np.sqrt(w), OFF / np.sqrt(w)
            )
            count = np.maximum(np.bincount(weekday, minlength=7), 1)
            sums = np.bincount(weekday, clear - clear.mean(), minlength=7)
            if float(np.sum(sums**2 / count)) > WEEKLY * max(
                float(np.var(clear)), 1e-12
            ):
                said.append("the nights differ by the day of the week")
        return tuple(said)

    def _unexplained(self, shape: levels.Floats, w: levels.Floats) -> float:
        """Weighted squares of the nights about the best fit of these columns; a lone night counts little."""
        root = np.sqrt(w)[:, None]
        fitted = (
            shape @ np.linalg.lstsq(shape * root, self._y * root[:, 0], rcond=None)[0]
        )
        return float(np.minimum(w * (self._y - fitted) ** 2, OFF**2).sum())

    def _second_opinion(self, step: changepoints.Step) -> Iterator[str]:
        """Yield whether the best segmentation of the nights' ranks, which knows no errors and no outliers, lacks the
        step.
        """
        n = len(self._y)
        if self._ranked is None:
            ranks = (
                np.argsort(np.argsort(self._y, kind="stable"), kind="stable") / n - 0.5
            )
            same = np.full(n, 12.0 / self._inflation)
            self._ranked = changepoints.partition(ranks, same, changepoints.penalty(n))
        if not any(
            step.first - 2 <= start <= step.last + 2 for start in self._ranked[1:]
        ):
            yield "a segmentation of the nights' ranks sees no step there"

    def gone(self) -> list[Gone]:
        """Return what went away."""
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
        key = self._line.key
        known = placebos.inflation(key.machine, self._line.cell, key.metric, self._by)
        if known:
            return known
        y, se = self._y, self._se
        first = changepoints.segments(y, se)
        numbers = np.zeros(0, dtype=np.intp)
        if len(y):
            numbers = changepoints.numbered(first.starts, len(y))
        return levels.inflation(y, se, first.tau, numbers), len(y)

    def _span(self, good: int, bad: int) -> Span:
        ends = self._points[good], self._points[bad]
        return self._order.span(
            *ends, self._line.key.machine, self._points[good + 1 : bad + 1]
        )

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
            doubts=self._doubts(step),
        )
        good = max(step.low - 1, 0)
        return Found(
            candidate,
            self._span(max(step.first - 1, 0), step.last),
            self._span(good, step.high),
        )


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
