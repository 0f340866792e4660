"""The smallest changes that intervals could show, metric by metric.

An interval shows a change when it excludes 0, so the smallest one is as far from 0 as the estimate is from the nearer
end. Where a trial stalled, the other end is far away: a change that way could hardly be seen, however large.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

LOPSIDED = 3.0
"""An end that is so many times farther away than the other one is shown by saying which way the change goes."""


class Interval(NamedTuple):
    """A relative change of a metric and its interval; an end that is not known is None or infinite."""

    metric: str
    """What a reader calls it."""
    better: str
    """``higher`` or ``lower``."""
    value: float
    low: float | None
    high: float | None


class Smallest(NamedTuple):
    """The smallest change that could be seen, relative, and which way: ``worse``, ``better`` or either (empty)."""

    size: float
    way: str


def smallest(interval: Interval) -> Smallest | None:
    """Return what one interval could show; None where it has no end, or no width."""
    down = _distance(interval.value, interval.low)
    up = _distance(interval.value, interval.high)
    near, far = sorted((down, up))
    if not 0.0 < near < math.inf:
        return None
    size = math.expm1(near)
    if far <= LOPSIDED * near:
        return Smallest(size, "")
    # A decrease has to bring the upper end below 0.
    shows_decreases = up == near
    if shows_decreases == (interval.better == "higher"):
        return Smallest(size, "worse")
    return Smallest(size, "better")


def _distance(value: float, end: float | None) -> float:
    """From the estimate to an end, as a log-ratio."""
    if end is None or not math.isfinite(end) or min(value, end) <= -1.0:
        return math.inf
    return abs(math.log1p(end) - math.log1p(value))


def visible(intervals: Iterable[Interval]) -> str:
    """Return the smallest changes by metric, from the best cell to the worst: ``IOPS 0.6 to 12 %; p99 latency 4.0 %
    for the worse``. Empty where no interval could show any."""
    by_metric: dict[str, list[Smallest]] = {}
    for interval in intervals:
        least = smallest(interval)
        if least is not None:
            by_metric.setdefault(interval.metric, []).append(least)
    return "; ".join(_of_metric(name, least) for name, least in by_metric.items())


def _of_metric(name: str, changes: Sequence[Smallest]) -> str:
    said = f"{name} {sizes(change.size for change in changes)}"
    ways = {change.way for change in changes} - {""}
    if not ways:
        return said
    if len(ways) > 1:
        return f"{said} one way"
    return f"{said} for the {ways.pop()}"


def sizes(values: Iterable[float]) -> str:
    """Return the least and the largest of some changes: ``0.6 to 12 %``."""
    return f"{' to '.join(dict.fromkeys(_percents(values)))} %"


def _percents(values: Iterable[float]) -> Iterator[str]:
    ordered = sorted(values)
    for size in (ordered[0], ordered[-1]):
        yield f"{100 * size:.0f}" if size >= 0.1 else f"{100 * size:.1f}"
