"""Percentiles side by side: the middle and the tail of each variant's latency, and their range over blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from iodelta.report.formats.charts.distribution import place
from iodelta.report.formats.charts.model import Figure, Source, label, number, some
from iodelta.report.formats.charts.sweep import scale
from iodelta.study.words import quantity
from iodelta.trial import Direction, Kind, Latency, Trial

if TYPE_CHECKING:
    import altair as alt

POINTS = (50.0, 90.0, 99.0, 99.9)

BEYOND = 100
"""I/Os beyond a percentile without which a trial's value of it is not shown."""


def chart() -> alt.LayerChart:
    """A row per percentile, the variants below each other in it."""
    import altair as alt

    from iodelta.report.formats.charts import build

    rows = build.names("percentile")
    span = (
        alt.Chart()
        .mark_rule(strokeWidth=1.4)
        .encode(
            x=build.x("low", log=True),
            x2=alt.X2("high"),
            y=rows,
            yOffset=build.offset(),
            color=build.by_variant()["color"],
        )
    )
    point = (
        alt.Chart()
        .mark_point(size=56, filled=True)
        .encode(
            x=build.x("value", log=True, format="~g", tickCount=6),
            y=rows,
            yOffset=build.offset(),
            tooltip=build.tips("variant", "percentile", "said=latency"),
            **build.by_variant(),
        )
    )
    return build.layered(span, point, height=alt.Step(13))


def figures(source: Source) -> Iterator[Figure]:
    """One for each telling cell and direction."""
    cells = source.by_cell()
    shown = source.telling(among=list(cells))
    for cell in shown:
        for kind in dict.fromkeys(direction.kind for trial in cells[cell] for direction in trial.directions):
            rows = _rows(source, cells[cell], kind)
            if rows:
                yield _figure(source, cell, kind, rows, some("cells", len(shown), len(cells)))


Row = tuple[str, float, float, float, float]
"""Variant, percentile, median over blocks, and the range of their middle half."""


def _rows(source: Source, trials: Sequence[Trial], kind: Kind) -> list[Row]:
    found = []
    for variant in source.variants:
        own = [trial.direction(kind) for trial in trials if trial.variant == variant]
        latencies = [pointed(direction) for direction in own if direction is not None]
        for percent in POINTS:
            values = sorted(v for one in latencies if one is not None and (v := _value(one, percent)) is not None)
            if values and len(values) == len(own):
                spread = values[len(values) // 4], values[-1 - len(values) // 4]
                found.append((variant, percent, median(values), *spread))
    return found


def pointed(direction: Direction) -> Latency | None:
    """The latency that has percentiles."""
    own = (direction.lat, direction.clat)
    return next((one for one in own if one is not None and (one.percentiles or one.histogram is not None)), None)


def _value(found: Latency, percent: float) -> float | None:
    value = found.quantile(percent / 100)
    borne = not found.count or found.count * (100 - percent) / 100 >= BEYOND * (1 - 1e-9)
    return value if math.isfinite(value) and value > 0 and borne else None


def _said(rows: list[Row], percent: float) -> str:
    own = [f"{quantity(value, 'ns')} ({label(variant)})" for variant, at, value, _, _ in rows if at == percent]
    return f"p{percent:g} {', '.join(own)}"


def _figure(source: Source, cell: str, kind: Kind, rows: list[Row], note: str) -> Figure:
    size, unit = scale("ns", min(value for _, _, value, _, _ in rows))
    variants = [label(variant) for variant in source.variants]
    blocks = max(sum(trial.variant == rows[0][0] for trial in source.by_cell()[cell]), 1)
    what = "medians over blocks with the range of their middle half" if blocks > 1 else "one run each"
    return Figure(
        name=f"percentiles-{kind}-{place(source, cell)}",
        spec="percentiles",
        title=label(cell) + (f", {kind}" if kind not in ("read", "mixed") else ""),
        alt="; ".join(_said(rows, percent) for percent in POINTS if any(row[1] == percent for row in rows)) + ".",
        about=f"Percentiles of latency, logarithmic: {what}.",
        rows=[
            {
                "variant": label(variant),
                "percentile": f"p{percent:g}",
                "value": number(value / size),
                "low": number(low / size),
                "high": number(high / size),
                "said": quantity(value, "ns"),
            }
            for variant, percent, value, low, high in sorted(rows, key=lambda row: row[1])
        ],
        texts={"x": f"latency, {unit}", "variants": variants},
        head=("variant", *(f"p{percent:g}" for percent in POINTS)),
        table=[
            (label(v), *(next((quantity(r[2], "ns") for r in rows if r[:2] == (v, p)), "-") for p in POINTS))
            for v in source.variants
        ],
        note=note,
    )
