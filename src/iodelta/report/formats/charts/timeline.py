"""Timeline: fio's logs over time, or over what had been written: mean as a line, least to greatest as a band."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.charts.cells import axis_title
from iodelta.report.formats.charts.model import Figure, Source, label, number, time_step
from iodelta.study.timelines import Point, Timeline, Track
from iodelta.study.units import axis_unit
from iodelta.study.words import duration, quantity

if TYPE_CHECKING:
    import altair as alt

POINTS = 1200
"""Buckets in one chart, shared out among its lines."""

LINES = 20
"""Rows of the table below a chart, for each of its lines."""

FEW = 40
"""A line of no more buckets shows each as a dot."""

STEEP = 30.0
"""Greatest over middle value from which on an axis is logarithmic."""

CHARTS = 24
"""Charts of logs on one page."""

NAMES = {
    "bw": "bandwidth",
    "iops": "IOPS",
    "lat": "latency",
    "clat": "completion latency",
    "slat": "submission latency",
}

ABOUT = (
    "A line is the mean of each time bucket, its band the minimum and maximum: a spike of one row is "
    "visible in a log of any length."
)

TOTAL = "Total is reads and writes together; its band goes from the sum of their minima to the sum of their maxima."


def chart(*, log: bool = False) -> alt.LayerChart:
    """Return a line with its band for each log; dots where buckets are few."""
    import altair as alt

    from iodelta.report.formats.charts import build

    at = build.x("t", grid=False)
    # The legend shows the lines themselves: colour and dash.
    looks: dict[str, Any] = {
        **build.LEGEND,
        "symbolType": "stroke",
        "symbolSize": 420,
        "symbolStrokeWidth": 2,
    }
    legend = alt.Legend(values=["@variants"], offset=build.TALL, **looks)
    sides: dict[str, Any] = {"field": "variant", "type": "nominal", "sort": None}
    domain = ["@variants"]
    color = alt.Color(
        scale=alt.Scale(domain=domain, range="category"), legend=legend, **sides
    )
    dashes = alt.Scale(domain=domain, range=list(map(list, build.DASHES)))
    dash, detail = (
        alt.StrokeDash(scale=dashes, legend=legend, **sides),
        alt.Detail(field="name", type="nominal"),
    )
    level = build.y("value", zero=not log, log=log)
    tips = build.tips("name=log", "at=@x", "said=@y")
    band = (
        alt.Chart()
        .mark_area(opacity=0.16)
        .encode(x=at, y=build.y("low", zero=not log, log=log), y2=alt.Y2("high"))
    )
    line = (
        alt.Chart()
        .mark_line(strokeWidth=1.6)
        .encode(x=at, y=level, detail=detail, color=color, strokeDash=dash)
    )
    dots = (
        alt.Chart(build.data("dots"))
        .mark_point(filled=True, size=22)
        .encode(x=at, y=level, color=color)
    )
    hover = (
        alt.Chart()
        .mark_point(filled=True, size=90, opacity=0)
        .encode(x=at, y=level, tooltip=tips)
    )
    return build.layered(
        band.encode(color=color, detail=detail), line, dots, hover, height=260
    )


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each chart of logs."""
    charts = len(source.timelines)
    for place, timeline in enumerate(source.timelines[:CHARTS], 1):
        is_cut = place == CHARTS < charts
        note = f"Shown: {CHARTS} of {charts} charts of logs." if is_cut else ""
        yield figure(source, timeline, place, note)


def figure(source: Source, timeline: Timeline, place: int, note: str = "") -> Figure:
    """Return the chart of ``timeline``."""
    most = max(100, POINTS // len(timeline.tracks))
    drawn = [(track, track.points(most, timeline.axis)) for track in timeline.tracks]
    every = list(chain.from_iterable(points for _, points in drawn))
    values = [point.mean for point in every if point.mean > 0]
    log = source.logarithmic(_steep(timeline, every), values)
    size, unit = axis_unit(
        timeline.unit,
        max((point.high for point in every), default=0.0),
        min(values, default=None) if log else None,
    )
    x, step = _across(timeline, max((point.x for point in every), default=0.0))
    floor = None
    if log:
        floor = min((point.low / size for point in every if point.low > 0), default=1.0)
    rows: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for track, points in drawn:
        rows += _rows(track, points, timeline, size, step, floor)
        table += _table(track, timeline, step)
    few = {label(track.name) for track, points in drawn if len(points) <= FEW}
    by_written = timeline.axis == "written"
    figure_name = f"timeline-{place}-{timeline.of}-{timeline.kind}"
    title = f"{timeline.kind.capitalize()} {NAMES[timeline.of]} {'over what had been written' if by_written else 'over time'}"
    if timeline.part:
        title += f": {label(timeline.part)}"
    if timeline.kind == "total":
        note = f"{TOTAL} {note}".rstrip()
    return Figure(
        name=figure_name + "-written" * by_written,
        spec="timeline-log" if log else "timeline",
        title=title,
        alt=_seen(timeline),
        about=ABOUT,
        rows=rows,
        texts={
            "x": x,
            "y": axis_title(f"{timeline.kind} {NAMES[timeline.of]}", unit),
            "variants": list(
                dict.fromkeys(label(track.side) for track in timeline.tracks)
            ),
        },
        extra={"dots": [row for row in rows if row["name"] in few]},
        head=("log", x, "mean", "least", "greatest"),
        table=table,
        note=note,
        wide=True,
    )


def _rows(
    track: Track,
    points: Sequence[Point],
    timeline: Timeline,
    size: float,
    step: float,
    floor: float | None,
) -> Iterator[dict[str, Any]]:
    for point in points:
        value, low, high = (each / size for each in point[1:])
        if floor is not None:
            value, low, high = above(floor, value, low, high)
        text = quantity(point.mean, timeline.unit)
        yield {
            "t": number(point.x / step, 5),
            "value": number(value, 5),
            "low": number(low, 5),
            "high": number(high, 5),
            "name": label(track.name),
            "variant": label(track.side),
            "at": f"{point.x / step:.4g}",
            "said": f"{text} ({quantity(point.low, timeline.unit)} to {quantity(point.high, timeline.unit)})",
        }


def above(floor: float, value: float, low: float, high: float) -> tuple[float, ...]:
    """Return a point of a logarithmic axis, which has no place for 0: its band ends at ``floor``, its line is
    interrupted.
    """
    ends = (value, max(low, floor), high)
    return tuple(end if end > 0 else math.nan for end in ends)


def _steep(timeline: Timeline, every: Sequence[Point]) -> bool:
    """Return whether a linear axis would show one spike and a flat line."""
    means = [point.mean for point in every if point.mean > 0]
    tops = means
    if is_latency(timeline):
        tops = [point.high for point in every if point.high > 0]
    if not means:
        return False
    return max(tops, default=0.0) > STEEP * median(means)


def is_latency(timeline: Timeline) -> bool:
    """Return whether the logs are of a latency: total, completion or submission."""
    return timeline.of.endswith("lat")


def _across(timeline: Timeline, end: float) -> tuple[str, float]:
    """Title of the x axis, and its unit in seconds or bytes."""
    if timeline.axis == "written":
        steps = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))
        step, unit = next((step for step in steps if end >= step[0]), steps[-1])
        return f"written by this log's job, {unit}", step
    step, unit = time_step(end)
    begins = "the start of each log" if timeline.aligned else "the first log began"
    return f"time since {begins}, {unit}", step


def _seen(timeline: Timeline) -> str:
    """Return what can be seen, line by line."""
    parts = []
    for track in timeline.tracks:
        whole, idle = track.whole(), track.idle()
        ends = f"{quantity(whole.low, timeline.unit, 3)} to {quantity(whole.high, timeline.unit, 3)}"
        mean, without = "mean", ""
        if not is_latency(timeline):
            without = f", {idle:.3g} s without I/O" if idle else ""
        elif track.weighs_time():
            mean = "mean over time"
        parts.append(
            f"{label(track.name)}: {duration(whole.x)}, {mean} {quantity(whole.mean, timeline.unit)}, {ends}{without}"
        )
    counted = next((track.line.over for track in timeline.tracks if track.line.over), 0)
    how = f" Rates are counted over {counted:g} ms." if counted else ""
    return f"{'; '.join(parts)}.{how}"


def _table(track: Track, timeline: Timeline, step: float) -> Iterator[tuple[str, ...]]:
    for point in track.points(LINES, timeline.axis):
        numbers = (quantity(value, timeline.unit) for value in point[1:])
        yield (label(track.name), f"{point.x / step:.4g}", *numbers)
