"""Percentiles: the middle and the tail of latency of every cell on one line, the variants below each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.charts.bars import frame
from iodelta.report.formats.charts.cells import (
    COLORS,
    ELSEWHERE,
    Sheet,
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
    """A row per cell and variant: a shape for each percentile, its interval behind it."""
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
    """One for each direction; more where there are many cells."""
    values = source.values
    if values is None:
        return
    for kind in values.kinds():
        points = {point: values.of(kind, point) for point in TABLED}
        arms = chain.from_iterable(points[point] for point in TABLED[1:])
        held = dict.fromkeys(cell for cell, _ in arms)
        own = list(sheets(values, held))
        for place, sheet in enumerate(own, 1):
            yield _figure(
                source,
                values,
                sheet,
                kind,
                points,
                numbered(f"percentiles-{kind}", place, len(own)),
            )


Points = Mapping[str, Mapping[tuple[str, str], Value]]


def _figure(
    source: Source, values: Values, sheet: Sheet, kind: Kind, points: Points, name: str
) -> Figure:
    cells = dict(zip((place.cell for place in sheet.places), sheet.rows, strict=True))
    known = set(chain.from_iterable(points[point] for point in TABLED[1:]))
    arms = [arm for arm in product(cells, values.variants) if arm in known]
    drawn = [
        (point, points[point][arm])
        for arm, point in product(arms, SHOWN)
        if arm in points[point]
    ]
    drawn = [(point, value) for point, value in drawn if value.value > 0]
    log = source.logarithmic(True, [value.value for _, value in drawn])
    size, unit = sized(
        [value for _, value in drawn] or [next(iter(points["p50"].values()))], log=log
    )
    names, crowded = variant_names(values), len(values.variants) > COLORS
    rows: list[dict[str, Any]] = []
    for point, value in drawn:
        row, variant = cells[value.cell], names[value.variant]
        line = {
            "row": f"{row}, {variant}" if crowded else row,
            "variant": ELSEWHERE if crowded else variant,
        }
        rows.append(datum(value, size, point=point, **line))
    colors = [ELSEWHERE] if crowded else list(names.values())
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
            "variants": colored(colors),
            "legend": colors,
            "points": sorted({point for point, _ in drawn}, key=list(SHOWN).index),
        },
        head=("cell", "variant", *TABLED),
        table=[(label(arm[0]), names[arm[1]], *_row(points, arm)) for arm in arms],
        wide=max((len(str(row["row"])) for row in rows), default=0) > LONG,
    )


def _row(points: Points, arm: tuple[str, str]) -> Iterator[str]:
    for point in TABLED:
        yield _said(points[point].get(arm))


def _reaches(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From the first to the last point of each line."""
    reaches: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        name, variant, value = row["row"], row["variant"], row["value"]
        known = reaches.setdefault(
            (name, variant),
            {"row": name, "variant": variant, "low": value, "high": value},
        )
        known["low"], known["high"] = (
            min(known["low"], value),
            max(known["high"], value),
        )
    return list(reaches.values())


def _seen(drawn: list[tuple[str, Value]]) -> str:
    """The range of each percentile over cells and variants."""
    parts = []
    for point in SHOWN:
        own = [value for name, value in drawn if name == point]
        if own:
            times = [value.value for value in own]
            low, high = quantity(min(times), "ns"), quantity(max(times), "ns")
            parts.append(
                f"{point} {low}" if low == high else f"{point} {low} to {high}"
            )
    if not parts:
        return "Every latency is zero."
    return f"{'; '.join(parts)}."


def _said(value: Value | None) -> str:
    if value is None:
        return "-"
    return quantity(value.value, value.unit)
