"""Knee: latency against IOPS along a rising depth: where the curve turns up, more depth buys latency and no IOPS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.charts.cells import axis_title, metric_title, sized, spans, titled
from iodelta.report.formats.charts.curves import AXES, LEAST, Curve, curve_groups, whose
from iodelta.report.formats.charts.model import Figure, Source, number
from iodelta.study.values import Place, Value, Values
from iodelta.study.words import inert, quantity
from iodelta.trial import Kind

if TYPE_CHECKING:
    import altair as alt

LATENCIES = ("mean", "p99")

Pair = tuple[Curve, int, Value, Value]
"""A curve's point: its depth, its IOPS, its latency."""


def chart(*, log: bool = True) -> alt.LayerChart:
    """A line in the order of depth, each point with its depth."""
    import altair as alt

    from iodelta.report.formats.charts import build

    scale = alt.Scale(domain=["@frame"], nice=False)
    x = alt.X(field="rate", type="quantitative", title="@x", scale=scale, axis=alt.Axis(grid=True, format="~s"))
    y = build.y("value", zero=not log, log=log, format=",~g", tickCount=5)
    looks = build.by_variant(line=True, gap=build.TALL)
    tips = build.tips("variant", "at=@axis", "rated=IOPS", "said=@y", "interval", "runs")
    line = alt.Chart().mark_line().encode(x=x, y=y, order=alt.Order(field="depth", type="quantitative"), **looks)
    point = (
        alt.Chart().mark_point(filled=True, size=48).encode(x=x, y=y, tooltip=tips, **build.by_variant(gap=build.TALL))
    )
    text = (
        alt.Chart(build.data("marks"))
        .mark_text(style="label", align="right", dx=-7, dy=-6, fontSize=10)
        .encode(x=x, y=y, text=alt.Text(field="at", type="nominal"))
    )
    return build.layered(line, point, text, height=260)


def figures(source: Source) -> Iterator[Figure]:
    """One for each panel, direction and latency; over jobs where only these vary."""
    values = source.values
    if values is None:
        return
    place = 0
    for panel, places in values.panels().items():
        axes = [axis for axis in AXES if _varies(places, axis)]
        for curves, note in curve_groups(values, places, axes[0]) if axes else ():
            place += 1
            for kind in values.kinds():
                for latency in LATENCIES:
                    own = _pairs(values, curves, kind, latency)
                    if len(own) >= LEAST:
                        yield _figure(source, values, panel, AXES[axes[0]], kind, latency, own, note, place)


def _varies(places: Sequence[Place], axis: str) -> bool:
    """Whether the axis has enough values for a curve."""
    return len({getattr(place, axis) for place in places} - {None}) >= LEAST


def _pairs(values: Values, curves: Sequence[Curve], kind: Kind, latency: str) -> list[Pair]:
    rates, times = values.of(kind, "iops"), values.of(kind, latency)
    found = []
    for curve in curves:
        for at, cell in curve.points:
            rate, time = rates.get((cell, curve.variant)), times.get((cell, curve.variant))
            if rate is not None and time is not None and time.value > 0:
                found.append((curve, at, rate, time))
    return found


def _figure(
    source: Source,
    values: Values,
    panel: str,
    axis: str,
    kind: Kind,
    latency: str,
    own: Sequence[Pair],
    note: str,
    place: int,
) -> Figure:
    title = metric_title(latency, kind, values.kinds())
    size, unit = sized([time for *_, time in own])
    names = list(dict.fromkeys(inert(curve.name) for curve, *_ in own))
    best = max(own, key=lambda one: one[2].value)
    rows: list[dict[str, Any]] = [
        {
            "variant": inert(curve.name),
            "depth": at,
            "at": str(at),
            "rate": number(rate.value),
            "rated": quantity(rate.value, "IOPS"),
            "value": number(time.value / size),
            "said": quantity(time.value, "ns"),
            "interval": spans(time),
            "runs": str(time.runs),
        }
        for curve, at, rate, time in own
    ]
    return Figure(
        name=f"knee-{place}-{kind}-{latency}",
        spec="knee" if source.logarithmic(True) else "knee-linear",
        title=titled(f"{title} against IOPS", whose(panel, [curve for curve, *_ in own], values)),
        alt=f"Most IOPS: {quantity(best[2].value, 'IOPS')} at {axis} {best[1]}, "
        f"with {title} {quantity(best[3].value, 'ns')}.",
        about=f"Each point is a cell, joined in the order of {axis}; the points of the first curve are "
        "labelled. Where a curve turns up, more of it adds latency but no IOPS.",
        rows=rows,
        extra={"marks": [row for row in rows if row["variant"] == names[0]]},
        texts={
            "x": "IOPS",
            "frame": [0, number(1.06 * best[2].value, 4) or 1],
            "y": axis_title(title, unit),
            "axis": axis,
            "variants": names,
        },
        head=(axis, "curve", "IOPS", title),
        table=[
            (str(at), inert(curve.name), quantity(rate.value, "IOPS"), quantity(time.value, "ns"))
            for curve, at, rate, time in own
        ],
        note=note,
    )
