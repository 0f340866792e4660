"""Two revisions over all series of a history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from iodelta.history.answers import RevisionChange
from iodelta.history.kept import kept_of, parts
from iodelta.history.store import Line, Store
from iodelta.stats import levels


def compared(
    store: Store, old: str, new: str, words: Sequence[str] = ()
) -> list[RevisionChange]:
    """Return what differs between two builds in each series that measured both, the clearest first."""
    wanted = [number for number, _, _, _ in store.scans()]
    if words:
        own = {
            one.series
            for one in kept_of(store)[0]
            if all(word in " ".join(one.name) for word in words)
        }
        wanted = [number for number in wanted if number in own]
    rows = [
        row
        for part in parts(wanted)
        for line in store.lines(part)
        for row in _change(line, old, new)
    ]
    return sorted(rows, key=lambda row: -abs(row.z))


def _change(line: Line, old: str, new: str) -> Iterator[RevisionChange]:
    """Yield the mean over the nights of each build, with the scatter between the nights of the series; epochs are not
    mixed.
    """
    of_old, of_new = (
        [
            point
            for point in line.points
            if (
                point.describe == build
                or (
                    len(build) >= 7
                    and bool(point.commit)
                    and point.commit.startswith(build)
                )
            )
        ]
        for build in (old, new)
    )
    shared = {point.epoch for point in of_old} & {point.epoch for point in of_new}
    sides = [
        [point for point in side if point.epoch in shared] for side in (of_old, of_new)
    ]
    if not all(sides):
        return
    by_ratio = all(point.r is not None for side in sides for point in side)
    rises = -1.0 if line.better == "higher" else 1.0
    every = [
        point
        for point in line.points
        if point.epoch in shared and (point.r is not None or not by_ratio)
    ]
    y = np.asarray(
        [rises * (point.r or 0.0) if by_ratio else point.y for point in every]
    )
    se = np.asarray([(point.r_se or 0.0) if by_ratio else point.se for point in every])
    tau = (
        levels.robust_between(
            np.diff(y) / math.sqrt(2), np.hypot(se[1:], se[:-1]) / math.sqrt(2)
        )
        if len(y) > 2
        else 0.0
    )
    places = [
        [place for place, point in enumerate(every) if point in side] for side in sides
    ]
    before, after = (levels.level(y[place], se[place], tau) for place in places)
    change, error = (
        after.value - before.value,
        max(math.hypot(before.error, after.error), levels.RESOLUTION),
    )
    name = "  ".join(
        filter(None, (line.key.machine, line.cell, line.variant, line.key.metric))
    )
    worse = change * rises > 0.0
    yield RevisionChange(
        str(line.key.number),
        name,
        change,
        error,
        change / error,
        worse,
        *map(len, places),
    )
