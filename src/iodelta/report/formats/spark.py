"""A series in two lines of a terminal: a bar for each night, and below it the ranges of its steps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from iodelta.history.answers import HistoryPoint
from iodelta.history.courses import Course
from iodelta.report.formats.pictures import BARS

PLAIN = "12345678"
"""For terminals that have no such characters."""

NIGHTS = 60
"""The newest that are drawn."""


def spark(course: Course, bars: str = BARS) -> tuple[str, str]:
    """The bars, ``|`` before another epoch, and marks below: ``~`` may be the first night of the new level, ``^`` the
    night from which on it surely is, ``*`` the first night after a note."""
    points = [point for point in course.line.points if course.shown(point) is not None][-NIGHTS:]
    values = [course.shown(point) or 0.0 for point in points]
    begins = {epoch.t for epoch in course.epochs}
    noted = _after(course, points)
    above: list[str] = []
    below: list[str] = []
    for point, bar in zip(points, _bars(values, bars), strict=True):
        if point.t in begins and above:
            above.append("|")
            below.append(" ")
        above.append(bar)
        below.append(_mark(course, point.t, is_noted=point.t in noted))
    return "".join(above), "".join(below).rstrip()


def _bars(values: Sequence[float], bars: str) -> list[str]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high - low <= 1e-12:
        return [bars[len(bars) // 2]] * len(values)
    return [bars[min(int((value - low) / (high - low) * len(bars)), len(bars) - 1)] for value in values]


def _after(course: Course, points: Sequence[HistoryPoint]) -> set[float]:
    """When the first of these nights after each note was; none for a note before all of them."""
    times = [point.t for point in points]
    places = [bisect_left(times, note.t) for note in course.notes if note.t is not None and times[:1] <= [note.t]]
    return {times[place] for place in places if place < len(times)}


def _mark(course: Course, t: float, *, is_noted: bool) -> str:
    if any(step.first_bad.t == t for step in course.steps):
        return "^"
    if is_noted:
        return "*"
    return "~" if any(step.last_good.t < t < step.first_bad.t for step in course.steps) else " "
