"""The course of each series: its points as a reader thinks of them, its epochs, and the steps in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import msgspec
import numpy as np

from iodelta.history.alerts import Standing, standing
from iodelta.history.answers import Alert, Candidate, HistoryPoint, Note
from iodelta.history.commits import Order
from iodelta.history.log import Entry
from iodelta.history.notes import between, placed
from iodelta.history.scan import Kept, followed
from iodelta.history.store import Line, Store
from iodelta.stats import levels

NAMED = 6
"""Differences between two epochs that are named."""

LONE = 6.0
"""A night so many times as far from its neighbours as nights usually are does not stretch the scale."""


class Epoch(msgspec.Struct, frozen=True):
    """Where another epoch begins in a series, and what differs from the one before."""

    t: float
    differs: tuple[str, ...]


class Flat(msgspec.Struct, frozen=True):
    """The level between two steps, as a factor or a log value like the points."""

    first: float
    last: float
    value: float


class Course(msgspec.Struct, frozen=True):
    """One series. ``value`` of a point is what was measured; ``ratio`` that over the reference's value, where there is
    one; both rise where the number rises, whether that is better or worse."""

    line: Line
    by: str
    epochs: tuple[Epoch, ...]
    """All but the first."""
    steps: tuple[Candidate, ...]
    """Oldest first."""
    flats: tuple[Flat, ...]
    """Levels of what is followed: logarithms of values, or of ratios."""
    notes: tuple[Note, ...] = ()
    """All of the history, the oldest first."""
    noted: tuple[tuple[Note, ...], ...] = ()
    """Of each step those that may explain it."""
    standings: tuple[Standing, ...] = ()
    """Of each step, what the log says of it."""

    @property
    def name(self) -> str:
        """Machine, cell, variant and metric; and what is special about it."""
        parts = (
            *_name(self.line),
            f"({self.line.key.role})" if self.line.key.role else "",
        )
        return "  ".join(filter(None, parts))

    @property
    def rises(self) -> float:
        """1 where a rising number of the point's ``r`` is a rising number of the metric, else -1."""
        return -1.0 if self.line.better == "higher" else 1.0

    def log_ratio(self, point: HistoryPoint) -> float | None:
        """Return the logarithm of the value over the reference's."""
        return None if point.r is None else self.rises * point.r

    def shown(self, point: HistoryPoint) -> float | None:
        """Return the logarithm that is followed."""
        return self.log_ratio(point) if self.by == "ratio" else point.y


def scale_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the lowest and highest of all values but those of lone nights far off. The median of three nights follows
    a step, which has at least two, and no lone night."""
    if len(values) < 3:
        return min(values, default=0.0), max(values, default=0.0)
    threes = [median(values[at : at + 3]) for at in range(len(values) - 2)]
    smooth = [threes[0], *threes, threes[-1]]
    room = (
        LONE
        * 1.4826
        * median(
            abs(value - level) for value, level in zip(values, smooth, strict=True)
        )
    )
    near = [
        value for value in values if min(smooth) - room <= value <= max(smooth) + room
    ]
    return min(near), max(near)


NONE: Mapping[str, Any] = {}


def courses(
    store: Store,
    found: Sequence[Alert],
    kept: Sequence[Kept],
    words: Sequence[str] = (),
    entries: Sequence[Entry] = (),
) -> list[Course]:
    """Return every series whose machine, cell, variant and metric contain all ``words``; those with steps first.
    ``entries`` of the log say how commits follow each other and what was noted."""
    own = [one for one in kept if all(word in " ".join(one.name) for word in words)]
    lines = store.lines([one.series for one in own]) if own else []
    begins = {
        point.experiment
        for line in lines
        for pair in pairwise(line.points)
        for point in pair
        if pair[0].epoch != pair[1].epoch
    }
    rows = store.experiments(begins) if begins else []
    facts = {row["id"]: msgspec.json.decode(row["facts"]) for row in rows}
    return courses_of(lines, own, found, entries, nights=store.nights(), facts=facts)


def courses_of(
    lines: Sequence[Line],
    kept: Iterable[Kept],
    alerts: Sequence[Alert] = (),
    entries: Sequence[Entry] = (),
    *,
    nights: Mapping[str, HistoryPoint] = NONE,
    facts: Mapping[str, Mapping[str, str]] = NONE,
) -> list[Course]:
    """These series with what a scan found in them, those with steps first; ``facts`` say how epochs differ."""
    order, found = Order(entries), {one.series: one for one in kept}
    notes = placed(entries, nights.values(), order)
    made = []
    for line in lines:
        own = found.get(line.key.number)
        steps = (
            sorted(
                (one.candidate for one in own.found), key=lambda step: step.first_bad.t
            )
            if own
            else []
        )
        course = Course(
            line=line,
            by=own.by if own else followed(line, line.points)[2],
            epochs=tuple(_epochs(line, facts)),
            steps=tuple(steps),
            flats=(),
            notes=notes,
            noted=tuple(
                between(notes, step.last_good, step.first_bad, order) for step in steps
            ),
            standings=tuple(standing(step, alerts) for step in steps),
        )
        made.append(msgspec.structs.replace(course, flats=tuple(_flats(course))))
    return sorted(
        made, key=lambda course: -max((step.z for step in course.steps), default=0.0)
    )


def _name(line: Line) -> tuple[str, str, str, str]:
    return line.key.machine, line.cell, line.variant, line.key.metric


def is_wanted(line: Line, words: Sequence[str]) -> bool:
    """Return whether its machine, cell, variant and metric contain all ``words``."""
    text = " ".join(_name(line))
    return all(word in text for word in words)


def _epochs(line: Line, facts: Mapping[str, Mapping[str, str]]) -> Iterable[Epoch]:
    """Where the machine changed under a series, and what of it."""
    for before, after in pairwise(line.points):
        if before.epoch != after.epoch:
            old, new = (facts.get(point.experiment, {}) for point in (before, after))
            yield Epoch(after.t, tuple(_differs(old, new)))


def _differs(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[str]:
    """Yield the facts that differ, of which only some are named."""
    all_names = sorted(before.keys() | after.keys())
    names = [name for name in all_names if before.get(name) != after.get(name)]
    for name in names[:NAMED]:
        old = before.get(name, "not recorded")
        new = after.get(name, "not recorded")
        yield f"{name}: {old} -> {new}"
    if len(names) > NAMED:
        yield f"{len(names) - NAMED} more"


def _flats(course: Course) -> Iterable[Flat]:
    """Yield the weighted mean between two cuts, which are steps and epochs; a lone outlier is drawn in, as for steps."""
    cuts = {step.first_bad.t for step in course.steps}
    cuts.update(epoch.t for epoch in course.epochs)
    for low, high in pairwise([-math.inf, *sorted(cuts), math.inf]):
        part = [point for point in course.line.points if low <= point.t < high]
        rows: list[tuple[float, float | None, int]] = []
        for point in part:
            value = course.shown(point)
            error = point.r_se if course.by == "ratio" else point.se
            if value is not None:
                rows.append((value, error, point.n))
        if rows:
            # The weighted mean of values with their errors and numbers of blocks, all on one level.
            values, errors, blocks = np.asarray(rows, dtype=float).T
            errors = levels.steadied(errors, blocks)
            one_level = np.zeros(len(values), dtype=np.intp)
            scatter = levels.robust_between(values, errors)
            clipped = levels.clipped(values, errors, scatter, one_level)
            values = np.asarray(clipped.values)
            tau = levels.between(values, errors, one_level)
            yield Flat(part[0].t, part[-1].t, levels.level(values, errors, tau).value)
