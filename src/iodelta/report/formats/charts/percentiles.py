"""Percentiles: the middle and the tail of latency of every cell on one line, the variants below each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.charts.bars import frame
from iodelta.report.formats.charts.cells import (
    Sheet,
    Variants,
    colored,
    datum,
    numbered,
    sheets,
    sized,
    tick_format,
    titled,
    variant_names,
)
from iodelta.report.formats.charts.model import LONG, Figure, Source, label
from iodelta.study.values import Value, Values
from iodelta.study.words import quantity
from iodelta.trial import Kind

if TYPE_CHECKING:
    import altair as alt

SHOWN = {
    "mean": "cross",
    "p50": "circle",
    "p99": "square",
    "p99.9": "triangle-up",
    "p99.99": "triangle-right",
}
"""Points of a line and their shapes; the table has p90 and p95 too."""

TABLED = ("mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99")


def chart(*, log: bool = True) -> alt.LayerChart:
    """Return a row per cell and variant: a shape for each percentile, its interval behind it."""
    import altair as alt

    from iodelta.report.formats.charts import build

    kind: build.Encoding = {"type": "log"} if log else {}
    scale = alt.Scale(domain=["@frame"], nice=False, **kind)
    axis = alt.Axis(grid=True, tickCount=6, format="@format", **build.logarithmic(log))
    across: build.Encoding = {
        "type": "quantitative",
        "title": "@x",
        "scale": scale,
        "axis": axis,
    }
    place: build.Encoding = {
        "y": build.names("row"),
        "yOffset": build.offset("@legend"),
    }
    colors = build.by_variant(names="@legend", shape=False)
    legend = alt.Legend(
        values=["@points"], offset=12, symbolFillColor="transparent", **build.LEGEND
    )
    shape = alt.Shape(
        field="point",
        type="nominal",
        scale=alt.Scale(domain=list(SHOWN), range=list(SHOWN.values())),
        legend=legend,
    )
    reach = (
        alt.Chart(build.data("reaches"))
        .mark_rule(strokeWidth=1, opacity=0.4)
        .encode(x=alt.X(field="low", **across), x2=alt.X2("high"), **place, **colors)
    )
    span = (
        alt.Chart()
        .mark_rule(strokeWidth=3, opacity=0.4)
        .encode(x=alt.X(field="low", **across), x2=alt.X2("high"), **place, **colors)
    )
    point = (
        alt.Chart()
        .mark_point(size=46, filled=True)
        .encode(
            x=alt.X(field="value", **across),
            shape=shape,
            tooltip=build.tips(
                "cell",
                "variant",
                "point=percentile",
                "said=latency",
                "interval",
                "runs",
            ),
            **place,
            **colors,
        )
    )
    return build.layered(reach, span, point, height=alt.Step(14, **{"for": "offset"}))


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each direction; more where there are many cells."""
    values = source.values
    if values is None:
        return
    for kind in values.kinds():
        points = {point: values.of(kind, point) for point in TABLED}
        charts = list(sheets(values, (cell for cell, _ in _arms(points))))
        for place, sheet in enumerate(charts, 1):
            name = numbered(f"percentiles-{kind}", place, len(charts))
            yield _figure(source, values, sheet, kind, points, name)


Points = Mapping[str, Mapping[tuple[str, str], Value]]
"""Point -> cell and variant -> value."""


def _arms(points: Points) -> set[tuple[str, str]]:
    """Cells and variants with a percentile: a mean alone makes no chart."""
    return set(chain.from_iterable(points[point] for point in TABLED[1:]))


def _figure(
    source: Source, values: Values, sheet: Sheet, kind: Kind, points: Points, name: str
) -> Figure:
    cells = dict(zip((place.cell for place in sheet.places), sheet.rows, strict=True))
    known = _arms(points)
    arms = [arm for arm in product(cells, values.variants) if arm in known]
    drawn = [
        (point, points[point][arm])
        for arm, point in product(arms, SHOWN)
        if arm in points[point] and points[point][arm].value > 0
    ]
    drawn_values = [value for _, value in drawn]
    log = source.logarithmic(True, [value.value for value in drawn_values])
    # An axis of zeros alone has a unit, too.
    size, unit = sized(drawn_values or points["p50"].values(), log=log)
    variants = Variants(variant_names(values))
    rows: list[dict[str, Any]] = []
    for point, value in drawn:
        lane = variants.lane(cells[value.cell], value.variant)
        rows.append(datum(value, size, point=point, **lane))
    title = f"{kind} latency" if len(values.kinds()) > 1 else "Latency"
    return Figure(
        name=name,
        spec="percentiles" if log else "percentiles-linear",
        title=titled(title, sheet.panel),
        alt=_seen(drawn),
        about=f"Mean and percentiles of latency{', logarithmic' if log else ''}; a thick line is the interval of a "
        "median over runs. Percentiles are of completion latency if fio gave no others; those with fewer than 100 I/Os "
        "beyond them are omitted.",
        rows=rows,
        extra={"reaches": _reaches(rows)},
        texts={
            "x": f"latency, {unit}",
            "format": tick_format(unit, log=log),
            "frame": frame(
                [row["high"] for row in rows],
                [row["low"] for row in rows],
                log=log,
                beyond=1.05,
            ),
            "variants": colored(variants.legend),
            "legend": variants.legend,
            "points": sorted({point for point, _ in drawn}, key=list(SHOWN).index),
        },
        head=("cell", "variant", *TABLED),
        table=[
            (label(cell), variants.names[variant], *_row(points, (cell, variant)))
            for cell, variant in arms
        ],
        wide=max((len(row["row"]) for row in rows), default=0) > LONG,
    )


def _row(points: Points, arm: tuple[str, str]) -> Iterator[str]:
    """Yield the points of a cell and variant for the table; ``-`` for one that is unknown."""
    for point in TABLED:
        value = points[point].get(arm)
        yield quantity(value.value, value.unit) if value else "-"


def _reaches(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From the first to the last point of each line."""
    lines: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        lines.setdefault((row["row"], row["variant"]), []).append(row["value"])
    return [
        {"row": row, "variant": variant, "low": min(line), "high": max(line)}
        for (row, variant), line in lines.items()
    ]


def _seen(drawn: list[tuple[str, Value]]) -> str:
    """Return the range of each percentile over cells and variants."""
    parts = []
    for point in SHOWN:
        times = [value.value for name, value in drawn if name == point]
        if times:
            ends = dict.fromkeys(
                quantity(end, "ns") for end in (min(times), max(times))
            )
            parts.append(f"{point} {' to '.join(ends)}")
    if not parts:
        return "Every latency is zero."
    return f"{'; '.join(parts)}."
