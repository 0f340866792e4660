"""Shift: how far each percentile of latency moved, from the middle of the distribution to its tail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from iodelta.plural import plural
from iodelta.report.formats.charts.distribution import place
from iodelta.report.formats.charts.forest import margins, run_off
from iodelta.report.formats.charts.model import (
    Figure,
    Source,
    frame,
    label,
    percent_of,
    some,
)
from iodelta.report.stories.statements import relative
from iodelta.stats.shift import ShiftFunction
from iodelta.study.words import interval, measured

if TYPE_CHECKING:
    import altair as alt


def chart() -> alt.LayerChart:
    """Percentiles from left to right; pale ones come from counts of all blocks together."""
    import altair as alt

    from iodelta.report.formats.charts import build

    at = alt.X(
        field="percentile",
        type="nominal",
        sort=None,
        title="percentile of latency",
        axis=alt.Axis(
            labelAngle=0,
            grid=False,
            labelOverlap="greedy",
            labelSeparation=2,
            labelFlush=False,
        ),
    )
    offset = alt.XOffset(
        field="variant", type="nominal", sort=None, scale=alt.Scale(domain=["@others"])
    )
    shown = build.by_variant(names="@others", gap=build.TALL)
    change = build.y("change", "change, % (more is slower)", framed=True)
    span = (
        alt.Chart()
        .mark_rule(strokeWidth=1.6, clip=True)
        .encode(
            x=at,
            xOffset=offset,
            y=build.y("low", "change, % (more is slower)", framed=True),
            y2=alt.Y2("high"),
            color=shown["color"],
        )
    )
    point = (
        alt.Chart()
        .mark_point(size=56, filled=True)
        .encode(
            x=at,
            xOffset=offset,
            y=change,
            opacity=alt.Opacity(field="solid", type="quantitative", scale=None),
            tooltip=build.tips("variant", "percentile", "said=change"),
            **shown,
        )
    )
    cut = [
        alt.Chart(build.data(name))
        .mark_point(size=44, filled=True, shape=f"triangle-{side}", yOffset=inwards)
        .encode(
            x=at,
            xOffset=offset,
            y=build.y("at", "change, % (more is slower)", framed=True),
            color=shown["color"],
        )
        for name, side, inwards in (("below", "down", -3), ("above", "up", 3))
    ]
    return build.layered(
        build.band("y"), build.rule_at(0, "y"), span, *cut, point, height=210
    )


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each telling cell."""
    shifts: dict[str, list[tuple[str, ShiftFunction]]] = {}
    for cell, variant, shift in source.shifts:
        if shift.shifts:
            shifts.setdefault(cell, []).append((variant, shift))
    shown = source.telling(among=list(shifts))
    for cell in shown:
        yield _figure(
            source, cell, shifts[cell], some("cells", len(shown), len(shifts))
        )


def _figure(
    source: Source, cell: str, shifts: list[tuple[str, ShiftFunction]], note: str
) -> Figure:
    rows, table, moved = [], [], []
    changes: list[float | None] = []
    bounds: list[float | None] = []
    for variant, shift in shifts:
        for point in shift.shifts:
            change = math.expm1(point.change)
            low, high = map(relative, (point.low, point.high))
            changes.append(change)
            bounds += [low, high]
            name = f"p{100 * point.p:g}"
            if point.moved:
                moved.append(f"{label(variant)} {name}")
            size, span = measured(change, low, high), interval(low, high)
            basis = f"band over {plural(shift.blocks, 'block')}"
            said = f"{size} ({span})"
            if point.pooled:
                basis = "all blocks together"
                said += f", {basis}"
            rows.append(
                {
                    "variant": label(variant),
                    "percentile": name,
                    "change": percent_of(change),
                    "low": percent_of(low),
                    "high": percent_of(high),
                    "solid": 0.4 if point.pooled else 1,
                    "said": said,
                }
            )
            table.append((label(variant), name, size, span, basis))
    seen = "None moved beyond its interval."
    if moved:
        seen = f"Moved beyond its interval: {', '.join(moved)}."
    level = 100 * shifts[0][1].level
    ends = frame(changes, bounds, source.margin)
    return Figure(
        name=f"shift-{place(source, cell)}",
        spec="shift",
        title=label(cell),
        alt=seen,
        about=f"How far each percentile of latency moved against {label(source.baseline)}, with a {level:g} % band "
        "that holds for all percentiles of a chart. Pale marks come from the counts of all blocks together; each of "
        "their intervals stands alone. An arrowhead marks an interval that runs off the chart; the table has all of it.",
        rows=rows,
        extra=run_off(rows, ends),
        texts={
            "variants": list(map(label, source.variants)),
            "others": list(map(label, source.others)),
            "frame": ends,
            **margins(source),
        },
        head=("variant", "percentile", "change", "interval", "from"),
        table=table,
        note=note,
    )
