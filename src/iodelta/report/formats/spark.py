"""A series in two lines of a terminal: a bar for each night, and below it the ranges of its steps."""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.history.courses import Course

BARS = "▁▂▃▄▅▆▇█"
PLAIN = "12345678"
"""For terminals that have no such characters."""

NIGHTS = 60
"""The newest that are drawn."""


def spark(course: Course, bars: str = BARS) -> tuple[str, str]:
    """The bars, ``|`` before another epoch, and marks below: ``~`` may be the first night of the new level, ``^`` the
    night from which on it surely is."""
    points = [point for point in course.line.points if course.shown(point) is not None][-NIGHTS:]
    values = [course.shown(point) or 0.0 for point in points]
    begins = {epoch.t for epoch in course.epochs}
    above: list[str] = []
    below: list[str] = []
    for point, bar in zip(points, _bars(values, bars), strict=True):
        if point.t in begins and above:
            above.append("|")
            below.append(" ")
        above.append(bar)
        below.append(_mark(course, point.t))
    return "".join(above), "".join(below).rstrip()


def _bars(values: Sequence[float], bars: str) -> list[str]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high - low <= 1e-12:
        return [bars[len(bars) // 2]] * len(values)
    return [bars[min(int((value - low) / (high - low) * len(bars)), len(bars) - 1)] for value in values]


def _mark(course: Course, t: float) -> str:
    if any(step.first_bad.t == t for step in course.steps):
        return "^"
    return "~" if any(step.last_good.t < t < step.first_bad.t for step in course.steps) else " "
