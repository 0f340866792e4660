"""A series in two lines of a terminal: a bar for each night, and below it the ranges of its steps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from iodelta.history.answers import HistoryPoint
from iodelta.history.courses import Course, scale_of
from iodelta.report.formats.pictures import BARS

PLAIN = "12345678"
"""For terminals that have no such characters."""

NIGHTS = 60
"""The newest that are drawn."""


def spark(course: Course, bars: str = BARS) -> tuple[str, str]:
    """Return the bars, ``|`` before another epoch, and marks below: ``~`` may be the first night of the new level,
    ``^`` the night from which on it surely is, ``!`` a night beyond the scale, ``*`` the first night after a note."""
    known = []
    for point in course.line.points:
        value = course.shown(point)
        if value is not None:
            known.append((point, value))
    newest = known[-NIGHTS:]
    points = [point for point, _ in newest]
    values = [value for _, value in newest]
    begins = {epoch.t for epoch in course.epochs}
    noted = _after(course, points)
    scale = scale_of(values)
    above: list[str] = []
    below: list[str] = []
    for point, value in newest:
        if point.t in begins and above:
            above.append("|")
            below.append(" ")
        above.append(_bar(value, scale, bars))
        is_beyond = not scale[0] <= value <= scale[1]
        below.append(
            _mark(course, point.t, is_beyond=is_beyond, is_noted=point.t in noted)
        )
    return "".join(above), "".join(below).rstrip()


def _bar(value: float, scale: tuple[float, float], bars: str) -> str:
    """Return the bar of a value; those beyond the scale are as low or as high as any."""
    low, high = scale
    if high - low <= 1e-12 and low <= value <= high:
        return bars[len(bars) // 2]
    share = (value - low) / max(high - low, 1e-12)
    place = int(min(1.0, max(0.0, share)) * len(bars))
    return bars[min(place, len(bars) - 1)]


def _after(course: Course, points: Sequence[HistoryPoint]) -> set[float]:
    """When the first of these nights after each note was; none for a note before all of them."""
    times = [point.t for point in points]
    places = [
        bisect_left(times, note.t)
        for note in course.notes
        if note.t is not None and times[:1] <= [note.t]
    ]
    return {times[place] for place in places if place < len(times)}


def _mark(course: Course, t: float, *, is_beyond: bool, is_noted: bool) -> str:
    if any(step.first_bad.t == t for step in course.steps):
        return "^"
    if is_beyond:
        return "!"
    if is_noted:
        return "*"
    if any(step.last_good.t < t < step.first_bad.t for step in course.steps):
        return "~"
    return " "
