"""Course: a series of a history night by night, with its epochs and the ranges of its steps."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from iodelta.history.answers import HistoryPoint
from iodelta.history.courses import Course, scale_of
from iodelta.history.placebo import against
from iodelta.plural import plural
from iodelta.report.formats.charts.model import Figure, label, number
from iodelta.report.stories.course import MOST, day
from iodelta.study.units import axis_unit
from iodelta.study.words import inert, percent, quantity

Z95 = 1.959963984540054

ABOUT = (
    "Each point is one night, with the 95 % interval of its blocks, which may run off the chart. "
    "Shaded: the nights among which a step is; line: the level between steps; dotted: a new epoch of "
    "the machine begins, and nights are not compared across it; dashed with a number: a note."
)


def charts_of(courses: Sequence[Course]) -> tuple[tuple[str, tuple[Figure, ...]], ...]:
    """Return a chapter for each series: its ratio to the reference, and its value."""
    return tuple(
        (label(course.name), tuple(_figures(place, course)))
        for place, course in enumerate(courses[:MOST], 1)
    )


def _figures(place: int, course: Course) -> Iterator[Figure]:
    if any(point.r is not None for point in course.line.points):
        yield _ratio(place, course)
    yield _value(place, course)


def _ratio(place: int, course: Course) -> Figure:
    rows = []
    for point in course.line.points:
        log = course.log_ratio(point)
        if log is not None:
            half = Z95 * (point.r_se or 0.0)
            ends = [100 * math.expm1(end) for end in (log, log - half, log + half)]
            rows.append(_row(point, ends, percent(math.expm1(log), half)))
    ratio = f"{inert(course.line.key.metric)} {against(course.line.variant)}"
    return Figure(
        name=f"course-{place}-ratio",
        spec="course",
        title=f"{ratio} in the same blocks",
        alt=_seen(course)
        if course.by == "ratio"
        else "Too few nights have a reference: steps are searched in the values below.",
        about=ABOUT,
        rows=_cut(rows),
        texts={"y": f"{ratio}, %"},
        extra={**_drawn(course, 1.0, by="ratio"), "beyond": _beyond(rows)},
        wide=True,
    )


def _value(place: int, course: Course) -> Figure:
    highest = scale_of([math.exp(point.y) for point in course.line.points])[1]
    scale, unit = axis_unit(course.line.unit, highest)
    rows = []
    for point in course.line.points:
        half = Z95 * point.se
        ends = [
            math.exp(end) / scale for end in (point.y, point.y - half, point.y + half)
        ]
        rows.append(_row(point, ends, quantity(math.exp(point.y), course.line.unit)))
    name = inert(course.line.key.metric)
    return Figure(
        name=f"course-{place}-value",
        spec="course",
        title=f"{name} as measured",
        alt=_seen(course)
        if course.by == "level"
        else "These values include the effect of each night on all variants.",
        about=ABOUT,
        rows=_cut(rows),
        texts={"y": f"{name}, {unit}"},
        extra={**_drawn(course, scale, by="level"), "beyond": _beyond(rows)},
        head=(
            "night",
            "build",
            "value",
            "95 % interval",
            against(course.line.variant),
            "95 % interval",
            "flags",
        ),
        table=[_row_of(course, point) for point in course.line.points],
        wide=True,
    )


def _cut(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Intervals and lone nights far off end where the chart does: one night that is hardly known, or that something
    disturbed, would make a step between the others too small to see. The table has all of them whole."""
    if not rows:
        return []
    lowest, highest = scale_of([row["value"] for row in rows])
    room = statistics.median(row["high"] - row["low"] for row in rows)
    low, high = number(lowest - room), number(highest + room)

    def inside(row: dict[str, Any]) -> dict[str, Any]:
        ends = {name: row[name] for name in ("value", "low", "high")}
        return row | {name: min(max(end, low), high) for name, end in ends.items()}

    return list(map(inside, rows))


def _beyond(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lone nights that are drawn at the edge of the chart."""
    cut = _cut(rows)
    pairs = zip(rows, cut, strict=True)
    return [
        {"t": drawn["t"], "value": drawn["value"]}
        for row, drawn in pairs
        if row["value"] != drawn["value"]
    ]


def _row(point: HistoryPoint, ends: Sequence[float], text: str) -> dict[str, Any]:
    value, low, high = map(number, ends)
    return {
        "t": round(1000 * point.t),
        "value": value,
        "low": low,
        "high": high,
        "night": day(point.t),
        "build": inert(point.describe or point.commit[:12] or "not known"),
        "said": text,
        "flags": ", ".join(point.flags) or "none",
    }


def _drawn(course: Course, scale: float, *, by: str) -> dict[str, list[dict[str, Any]]]:
    """Epochs and notes; and where this is what steps are looked for in, those and the levels between them."""
    epochs = [
        {"t": round(1000 * epoch.t), "said": inert("; ".join(epoch.differs))}
        for epoch in course.epochs
    ]
    both = {"epochs": epochs, "notes": _notes(course)}
    if by != course.by:
        return {**both, "steps": [], "flats": []}
    steps = [
        {
            "t": round(1000 * step.last_good.t),
            "t2": round(1000 * step.first_bad.t),
            "said": f"{percent(step.change, step.error)}, z {step.z:.1f}",
        }
        for step in course.steps
    ]
    flats = [
        {
            "t": round(1000 * flat.first),
            "t2": round(1000 * flat.last),
            "value": number(
                100 * math.expm1(flat.value)
                if by == "ratio"
                else math.exp(flat.value) / scale
            ),
        }
        for flat in course.flats
    ]
    return {**both, "steps": steps, "flats": flats}


def _notes(course: Course) -> list[dict[str, Any]]:
    """Return those among the nights of the series, by their number in the list of all."""
    points = course.line.points
    first, last = (points[0].t, points[-1].t) if points else (0.0, 0.0)
    return [
        {"t": round(1000 * note.t), "number": str(number), "said": inert(note.text)}
        for number, note in enumerate(course.notes, 1)
        if note.t is not None and first <= note.t <= last
    ]


def _seen(course: Course) -> str:
    nights = len(course.line.points)
    steps = (
        "no step"
        if not course.steps
        else "one step"
        if len(course.steps) == 1
        else plural(len(course.steps), "step")
    )
    epochs = "" if not course.epochs else f" in {len(course.epochs) + 1} epochs"
    return f"{plural(nights, 'night')}{epochs}, {steps}."


def _row_of(course: Course, point: HistoryPoint) -> tuple[str, ...]:
    unit, half = course.line.unit, Z95 * point.se
    ends = [quantity(math.exp(point.y + sign * half), unit) for sign in (-1, 1)]
    between = "not known" if "no-error" in point.flags else " .. ".join(ends)
    log, ratio_half = course.log_ratio(point), Z95 * (point.r_se or 0.0)
    ratio_cells = ("-", "-")
    if log is not None:
        bounds = [
            percent(math.expm1(log + sign * ratio_half), ratio_half) for sign in (-1, 1)
        ]
        ratio_cells = (percent(math.expm1(log), ratio_half), " .. ".join(bounds))
    build = inert(point.describe or point.commit[:12] or "-")
    return (
        day(point.t),
        build,
        quantity(math.exp(point.y), unit),
        between,
        *ratio_cells,
        ", ".join(point.flags) or "-",
    )
