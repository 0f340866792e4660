"""Steps in the series of a history. Each is a candidate: nothing here measured both builds in one experiment."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np

from iodelta.history.answers import Candidate, HistoryPoint
from iodelta.history.store import Line
from iodelta.stats import changepoints, levels

ENOUGH = 0.8
"""Share of points that need a ratio to the reference for the series to be followed by it."""

NIGHTS = 60
"""Below so many points in an epoch, how much nights resemble each other is hardly known."""


def scan(lines: Iterable[Line]) -> list[Candidate]:
    """Candidates of all series, each epoch by itself, the largest z first."""
    found = [
        candidate
        for line in lines
        for _, points in groupby(line.points, key=lambda point: point.epoch)
        for candidate in _epoch(line, list(points))
    ]
    return sorted(found, key=lambda one: (-one.z, one.cell, one.variant, one.metric))


def _epoch(line: Line, points: list[HistoryPoint]) -> list[Candidate]:
    y, se, by = followed(line, points)
    kept = [point for point in points if by == "level" or point.r is not None]
    first = changepoints.segments(y, se)
    numbers = changepoints.numbered(first.starts, len(y)) if len(y) else np.zeros(0, dtype=np.intp)
    inflation = levels.inflation(y, se, first.tau, numbers)
    steps = {step.at: step for step in changepoints.segments(y, se, inflation=inflation).steps}
    for step in changepoints.online(y, se, threshold=changepoints.CANDIDATE, inflation=inflation)[-1:]:
        if not any(step.low <= at <= step.high for at in steps) and step.found == len(y) - 1:
            steps[step.at] = step
    return [_candidate(line, kept, step, by, inflation) for step in steps.values()]


def followed(line: Line, points: list[HistoryPoint]) -> tuple[levels.Floats, levels.Floats, str]:
    """Values that are higher where it is worse, with their errors, and whether they are ratios or levels."""
    ratios = [(point.r, point.r_se) for point in points if point.r is not None and point.r_se is not None]
    if ratios and len(ratios) >= ENOUGH * len(points):
        pairs, by = np.asarray(ratios, dtype=float), "ratio"
    else:
        worse = -1.0 if line.better == "higher" else 1.0
        pairs, by = np.asarray([(worse * point.y, point.se) for point in points], dtype=float).reshape(-1, 2), "level"
    return pairs[:, 0], pairs[:, 1], by


def _candidate(line: Line, points: list[HistoryPoint], step: changepoints.Step, by: str, inflation: float) -> Candidate:
    return Candidate(
        machine=line.key.machine,
        cell=line.cell,
        variant=line.variant,
        metric=line.key.metric,
        by=by,
        size=step.size,
        error=step.error,
        z=step.z,
        last_good=points[max(step.low - 1, 0)],
        first_bad=points[step.high],
        nights=len(points),
        inflation=inflation,
        few=len(points) < NIGHTS,
    )
