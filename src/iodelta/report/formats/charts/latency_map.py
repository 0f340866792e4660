"""Latency map: fio's histogram logs, the share of I/Os in each band of latency over time, with p50 and p99 as lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any

from iodelta.figures import share
from iodelta.report.formats.charts.model import Figure, Source, label, number, time_step
from iodelta.study.latency_maps import LatencyMap
from iodelta.study.units import axis_unit
from iodelta.study.words import duration, quantity

if TYPE_CHECKING:
    import altair as alt

MAPS = 12
"""Maps on one page."""

LINES = 20
"""Rows of the table below a map."""

LIMITS = (0.0001, 0.001, 0.01, 0.1, 0.3)
LEVELS = ("to 0.01 %", "to 0.1 %", "to 1 %", "to 10 %", "to 30 %", "more")
"""Bounds of the shares of a column's I/Os, and names of the six colours between them: a rare slow I/O is visible, and
the colours differ in how dark they are."""


def chart() -> alt.LayerChart:
    """Tiles, and two lines over them."""
    import altair as alt

    from iodelta.report.formats.charts import build

    band = alt.Y(
        field="low",
        type="quantitative",
        title="@y",
        scale=alt.Scale(type="log", domain=["@latencies"], nice=False),
        axis=alt.Axis(
            titleAngle=0,
            titleAlign="left",
            titleAnchor="start",
            titleX=0,
            titleY=-8,
            titleBaseline="bottom",
            grid=True,
            **build.logarithmic(True),
        ),
    )
    level: dict[str, Any] = {"field": "level", "type": "ordinal", "sort": None}
    legend = alt.Legend(
        values=["@levels"], symbolType="square", offset=build.TALL, **build.LEGEND
    )
    color = alt.Color(
        scale=alt.Scale(domain=["@levels"], range="heatmap"), legend=legend, **level
    )
    at = build.x("t", grid=False)
    tiles = (
        alt.Chart()
        .mark_rect(strokeWidth=0)
        .encode(
            x=at,
            x2=alt.X2("t2"),
            y=band,
            y2=alt.Y2("high"),
            color=color,
            tooltip=build.tips("at=@x", "took", "said=I/Os"),
        )
    )
    kinds = alt.Scale(domain=["p50", "p99"], range=[[1, 0], [5, 3]])
    dash = alt.StrokeDash(
        field="point",
        type="nominal",
        sort=None,
        scale=kinds,
        legend=alt.Legend(
            title=None,
            orient="top",
            offset=build.TALL,
            symbolType="stroke",
            symbolSize=420,
        ),
    )
    middle = alt.Y(
        field="value",
        type="quantitative",
        scale=alt.Scale(type="log", domain=["@latencies"], nice=False),
    )
    lines = alt.Chart(build.data("lines"))
    # A light edge keeps a dark line legible on dark tiles.
    edge = lines.mark_line(style="paper", strokeWidth=4, strokeDash=[1, 0]).encode(
        x=at, y=middle, detail="point:N"
    )
    drawn = lines.mark_line(style="trend", strokeWidth=1.8).encode(
        x=at, y=middle, strokeDash=dash
    )
    return build.layered(tiles, edge, drawn, height=280)


def figures(source: Source) -> Iterator[Figure]:
    """One for each direction of each histogram log; those of one direction have the same axis."""
    drawn = [heat_map for heat_map in source.latency_maps if any(heat_map.columns(1))]
    shown = drawn[:MAPS]
    for place, heat_map in enumerate(shown, 1):
        alike = [other for other in shown if other.kind == heat_map.kind]
        last = place == len(shown) < len(drawn)
        yield _figure(
            heat_map,
            place,
            alike,
            f"Shown: {MAPS} of {len(drawn)} histogram logs." * last,
        )


def _figure(
    heat_map: LatencyMap, place: int, alike: Sequence[LatencyMap], note: str
) -> Figure:
    tiles = list(heat_map.tiles())
    every = list(chain.from_iterable(other.tiles() for other in alike))
    low, high = (
        min(max(tile.low, 1.0) for tile in every),
        max(tile.high for tile in every),
    )
    size, unit = axis_unit("ns", high, low)
    end = max(tile.end for tile in every)
    step, across = time_step(end)
    columns = list(heat_map.columns(LINES))
    slowest = max(column.slowest[1] for column in columns)
    ios = sum(tile.ios for tile in tiles)
    return Figure(
        name=f"latency-map-{place}-{heat_map.kind}",
        spec="latency_map",
        title=f"Completion latency of {heat_map.kind}s over time: {label(heat_map.name)}",
        alt=f"{ios:,} I/Os in {duration(tiles[-1].end)}; the slowest took up to {quantity(slowest, 'ns', 3)}.",
        about="Each column is a time bucket; a stronger colour means that more of its I/Os had that latency. "
        "Lines: p50 and p99 of each column. fio logs histograms of completion latency only.",
        rows=[
            {
                "t": number(tile.start / step, 5),
                "t2": number(tile.end / step, 5),
                "low": number(max(tile.low, 1.0) / size, 4),
                "high": number(tile.high / size, 4),
                "level": LEVELS[bisect_right(LIMITS, tile.share)],
                "at": f"{tile.start / step:.4g} to {tile.end / step:.4g}",
                "took": f"{quantity(tile.low, 'ns', 3)} to {quantity(tile.high, 'ns', 3)}",
                "said": f"{tile.ios:,} ({share(tile.share)})",
            }
            for tile in tiles
        ],
        extra={"lines": list(_lines(heat_map, step, size))},
        texts={
            "x": f"time since the start of the log, {across}",
            "y": f"completion latency, {unit}",
            "levels": list(LEVELS),
            "latencies": [number(low / size, 4), number(high / size, 4)],
        },
        head=(
            f"time, {across}",
            "I/Os",
            "p50 between",
            "p99 between",
            "slowest between",
        ),
        table=[
            (
                f"{column.start / step:.4g} to {column.end / step:.4g}",
                f"{column.ios:,}",
                *starmap(_between, (column.p50, column.p99, column.slowest)),
            )
            for column in columns
        ],
        note=note,
        wide=True,
    )


def _between(low: float, high: float) -> str:
    return f"{quantity(low, 'ns', 3)} and {quantity(high, 'ns', 3)}"


def _lines(heat_map: LatencyMap, step: float, size: float) -> Iterator[dict[str, Any]]:
    for middle, p50, p99 in heat_map.quantiles():
        for point, value in (("p50", p50), ("p99", p99)):
            yield {
                "t": number(middle / step, 5),
                "value": number(max(value, 1.0) / size, 5),
                "point": point,
            }
