"""Knee: latency against IOPS along a rising depth: where the curve turns up, more depth buys latency and no IOPS."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.charts.cells import (
    axis_title,
    metric_title,
    notes,
    sized,
    spans,
    titled,
    wide_apart,
)
from iodelta.report.formats.charts.curves import AXES, LEAST, Curve, curve_groups, whose
from iodelta.report.formats.charts.model import Figure, Source, number
from iodelta.study.values import Place, Value, Values
from iodelta.study.words import inert, quantity
from iodelta.trial import Kind

if TYPE_CHECKING:
    import altair as alt

LATENCIES = ("mean", "p99")

SIDE, ASIDE = "datum.first ? 'left' : 'right'", "datum.first ? 7 : -7"
"""A label stands left of its point, at the left end of the axis right of it."""

NEAR = (0.09, 0.08)
"""Shares of the axes within which the labels of two points would meet, on the narrowest screen."""

Pair = tuple[Curve, int, Value, Value]
"""A curve's point: its depth, its IOPS, its latency."""


def chart(*, log: bool = True, wide: bool = False) -> alt.LayerChart:
    """Return a line in the order of depth, points with their depth; ``wide``: the rates have a logarithmic axis too."""
    import altair as alt

    from iodelta.report.formats.charts import build

    kind: build.Encoding = {"type": "log"} if wide else {}
    scale = alt.Scale(domain=["@frame"], nice=False, **kind)
    axis = alt.Axis(grid=True, format="~s", tickCount=6, **build.logarithmic(wide))
    x = alt.X(field="rate", type="quantitative", title="@x", scale=scale, axis=axis)
    y = build.y("value", log=log, format=",~g" if log else ",~f", tickCount=5)
    if not log:  # with room above the highest point for its label
        y = y.scale(domain=["@heights"], nice=False)
    looks = build.by_variant(line=True, gap=build.TALL)
    tips = build.tips(
        "variant", "at=@axis", "rated=IOPS", "said=@y", "interval", "runs"
    )
    line = (
        alt.Chart()
        .mark_line()
        .encode(x=x, y=y, order=alt.Order(field="depth", type="quantitative"), **looks)
    )
    point = (
        alt.Chart()
        .mark_point(filled=True, size=48)
        .encode(x=x, y=y, tooltip=tips, **build.by_variant(gap=build.TALL))
    )
    text = (
        alt.Chart(build.data("marks"))
        .mark_text(
            style="label",
            align=alt.ExprRef(SIDE),
            dx=alt.ExprRef(ASIDE),
            dy=-6,
            fontSize=10,
        )
        .encode(x=x, y=y, text=alt.Text(field="at", type="nominal"))
    )
    return build.layered(line, point, text, height=260)


def spec_of(*, log: bool, wide: bool) -> str:
    """Return the name of the specification with these axes."""
    name = "knee-wide" if wide else "knee"
    return name if log else f"{name}-linear"


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each panel, direction and latency; over jobs where only these vary."""
    values = source.values
    if values is None:
        return
    number = 0
    for panel, places in values.panels().items():
        axis = next((axis for axis in AXES if _varies(places, axis)), None)
        if axis is None:
            continue
        for curves, note in curve_groups(values, places, axis):
            number += 1
            for kind, latency in product(values.kinds(), LATENCIES):
                pairs = _pairs(values, curves, kind, latency)
                if len(pairs) >= LEAST:
                    chart = (panel, AXES[axis], kind, latency)
                    yield _figure(source, values, *chart, pairs, note, number)


def _varies(places: Sequence[Place], axis: str) -> bool:
    """Return whether the axis has enough values for a curve."""
    return len({getattr(place, axis) for place in places} - {None}) >= LEAST


def _pairs(
    values: Values, curves: Sequence[Curve], kind: Kind, latency: str
) -> list[Pair]:
    rates, times = values.of(kind, "iops"), values.of(kind, latency)
    pairs = []
    for curve in curves:
        for place, cell in curve.points:
            rate = rates.get((cell, curve.variant))
            time = times.get((cell, curve.variant))
            if rate and time and time.value > 0:
                pairs.append((curve, place, rate, time))
    return pairs


def _figure(
    source: Source,
    values: Values,
    panel: str,
    axis: str,
    kind: Kind,
    latency: str,
    pairs: Sequence[Pair],
    note: str,
    chart_number: int,
) -> Figure:
    curves, _, rates_of, times_of = zip(*pairs, strict=True)
    rates = [rate.value for rate in rates_of]
    times = [time.value for time in times_of]
    log = source.logarithmic(True, times)
    wide = source.logarithmic(wide_apart(rates_of), rates)
    title = metric_title(latency, kind, values.kinds())
    size, unit = sized(times_of, log=log)
    names = list(dict.fromkeys(inert(curve.name) for curve in curves))
    _, most_depth, most, its_time = max(pairs, key=lambda pair: pair[2].value)
    rows: list[dict[str, Any]] = [
        {
            "variant": inert(curve.name),
            "depth": place,
            "at": str(place),
            "rate": number(rate.value),
            "rated": quantity(rate.value, "IOPS"),
            "value": number(time.value / size),
            "said": quantity(time.value, "ns"),
            "interval": spans(time),
            "runs": str(time.runs),
        }
        for curve, place, rate, time in pairs
        if rate.value > 0 or not wide
    ]
    frame = _frame(rates, wide=wide)
    of_first = [row for row in rows if row["variant"] == names[0]]
    return Figure(
        name=f"knee-{chart_number}-{kind}-{latency}",
        spec=spec_of(log=log, wide=wide),
        title=titled(f"{title} against IOPS", whose(panel, curves, values)),
        alt=f"Most IOPS: {quantity(most.value, 'IOPS')} at {axis} {most_depth}, "
        f"with {title} {quantity(its_time.value, 'ns')}.",
        about=f"Each point is a cell, joined in the order of {axis}; points of the first curve are "
        "labelled where there is room. Where a curve turns up, more of it adds latency but no IOPS.",
        rows=rows,
        extra={"marks": list(_labelled(of_first, frame, log=log, wide=wide))},
        texts={
            "x": "IOPS",
            "frame": frame,
            "heights": [0, number(1.15 * max(times) / size, 4)],
            "y": axis_title(title, unit),
            "axis": axis,
            "variants": names,
        },
        head=(axis, "curve", "IOPS", title),
        table=[
            (
                str(place),
                inert(curve.name),
                quantity(rate.value, "IOPS"),
                quantity(time.value, "ns"),
            )
            for curve, place, rate, time in pairs
        ],
        note=notes(note, rows, pairs),
    )


def _frame(rates: Sequence[float], *, wide: bool) -> list[float]:
    """Return the ends of the axis of rates."""
    top = max(rates)
    if not wide:
        return [0, number(1.06 * top, 4) or 1]
    low = min(rate for rate in rates if rate > 0)
    return [number(low / 1.5, 4) or low, number(1.5 * top, 4) or top]


def _labelled(
    rows: Sequence[dict[str, Any]], frame: Sequence[float], *, log: bool, wide: bool
) -> Iterator[dict[str, Any]]:
    """Yield the points of a curve that have room for a label, the deepest first."""
    across = _shares([row["rate"] for row in rows], frame, log=wide)
    heights = [row["value"] for row in rows]
    up = _shares(heights, [min(heights) if log else 0.0, max(heights)], log=log)
    taken: list[tuple[float, float]] = []
    points = zip(rows, across, up, strict=True)
    for row, x, y in sorted(points, key=lambda point: -point[0]["depth"]):
        if all(
            abs(x - left) > NEAR[0] or abs(y - top) > NEAR[1] for left, top in taken
        ):
            taken.append((x, y))
            yield {**row, "first": x < NEAR[0]}


def _shares(
    values: Sequence[float], ends: Sequence[float], *, log: bool
) -> list[float]:
    """Where values lie on an axis: 0 at its beginning, 1 at its end."""
    place = math.log if log else float
    low, high = map(place, ends)
    return [(place(value) - low) / ((high - low) or 1.0) for value in values]
