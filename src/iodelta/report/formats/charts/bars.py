"""Bars: IOPS, bandwidth, mean latency and CPU time of every cell, the variants below each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.charts.cells import (
    NAMES,
    Sheet,
    Variants,
    above_zero,
    axis_title,
    colored,
    datum,
    metric_title,
    notes,
    numbered,
    sheets,
    sized,
    spans,
    tick_format,
    titled,
    variant_names,
    wide_apart,
)
from iodelta.report.formats.charts.model import LONG, Figure, Source, label, number
from iodelta.study.values import Value, Values
from iodelta.study.words import quantity
from iodelta.trial import Kind

if TYPE_CHECKING:
    import altair as alt

LETTER, GAP = 6.2, 12
"""Pixels of a letter of a number, and those around the number, behind a bar of full length."""


def chart(*, log: bool = False) -> alt.LayerChart:
    """Return a row per cell and variant: a bar from zero, or a point where only a logarithmic axis shows all of them."""
    import altair as alt

    from iodelta.report.formats.charts import build

    kind: build.Encoding = {"type": "log"} if log else {}
    scale = alt.Scale(
        domain=["@frame"], range=[0, alt.ExprRef("@room")], nice=False, **kind
    )
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
    looks = build.by_variant(names="@legend", shape=log)
    tips = build.tips("cell", "variant", "said=@name", "interval", "runs")
    value = alt.X(field="value", **across)
    marks = alt.Chart().mark_bar()
    if log:
        marks = alt.Chart().mark_point(filled=True, size=56)
    shown = marks.encode(x=value, tooltip=tips, **place, **looks)
    span = (
        alt.Chart(build.data("spans"))
        .mark_rule(style="whisker", strokeWidth=1.3)
        .encode(x=alt.X(field="low", **across), x2=alt.X2("high"), **place)
    )
    text = (
        alt.Chart()
        .mark_text(style="label", align="left", dx=7 if log else 5, fontSize=10.5)
        .encode(
            x=alt.X(field="end", **across),
            text=alt.Text(field="text", type="nominal"),
            **place,
        )
    )
    return build.layered(shown, span, text, height=alt.Step(15, **{"for": "offset"}))


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each metric and direction; more where there are many cells."""
    values = source.values
    if values is None:
        return
    for metric, kind in product(NAMES, values.kinds()):
        by_arm = values.of(kind, metric)
        name = f"values-{kind}-{metric}"
        yield from _sheets(source, values, metric, kind, by_arm, name)
    # The CPU time of fio's jobs is that of a run, not of a direction.
    by_arm = {(value.cell, value.variant): value for value in values.cpu}
    if by_arm:
        kind = values.cpu[0].kind
        yield from _sheets(source, values, "cpu", kind, by_arm, "values-cpu")


def _sheets(
    source: Source,
    values: Values,
    metric: str,
    kind: Kind,
    by_arm: Mapping[tuple[str, str], Value],
    name: str,
) -> Iterator[Figure]:
    """Yield the charts of one metric: more than one where there are many cells."""
    charts = list(sheets(values, (cell for cell, _ in by_arm)))
    for place, sheet in enumerate(charts, 1):
        figure_name = numbered(name, place, len(charts))
        yield _figure(source, values, sheet, metric, kind, by_arm, figure_name)


def _figure(
    source: Source,
    values: Values,
    sheet: Sheet,
    metric: str,
    kind: Kind,
    by_arm: Mapping[tuple[str, str], Value],
    name: str,
) -> Figure:
    row_of = {
        place.cell: row for place, row in zip(sheet.places, sheet.rows, strict=True)
    }
    arms = [arm for arm in product(row_of, values.variants) if arm in by_arm]
    drawn = [by_arm[arm] for arm in arms]
    log = source.logarithmic(wide_apart(drawn), [value.value for value in drawn])
    size, unit = sized(drawn, log=log)
    title = metric_title(metric, kind, values.kinds())
    variants = Variants(variant_names(values))
    rows = [_row(value, row_of[value.cell], variants, size) for value in drawn]
    shown = above_zero(rows) if log else rows
    return Figure(
        name=name,
        spec="values-log" if log else "values",
        title=titled(title, sheet.panel),
        alt=_seen(drawn),
        about=_about(drawn),
        rows=shown,
        extra={"spans": [row for row in shown if row["low"] != row["high"]]},
        texts={
            "x": axis_title(title, unit),
            "name": title,
            "frame": frame(
                [row["high"] for row in shown], [row["low"] for row in shown], log=log
            ),
            "room": room([row["text"] for row in shown]),
            "format": tick_format(unit, log=log),
            "variants": colored(variants.legend),
            "legend": variants.legend,
        },
        head=("cell", "variant", "median", "interval", "runs"),
        table=[
            (
                label(value.cell),
                variants.names[value.variant],
                quantity(value.value, value.unit),
                spans(value),
                str(value.runs),
            )
            for value in drawn
        ],
        note=notes("", shown, rows),
        wide=max(len(row["row"]) for row in rows) > LONG,
    )


def _row(value: Value, row: str, variants: Variants, size: float) -> dict[str, Any]:
    """Return what a bar is drawn from; its number is written behind its ``end``."""
    made = datum(value, size, **variants.lane(row, value.variant))
    return {**made, "end": made["high"], "text": quantity(value.value / size, "")}


def room(numbers: Sequence[str]) -> str:
    """Return the length of the longest bar in pixels, as an expression of Vega: the width less that of the number
    behind it."""
    return f"width - {LETTER * max(map(len, numbers), default=0) + GAP:.0f}"


def frame(
    highs: list[float], lows: list[float], *, log: bool, beyond: float = 1.0
) -> list[float]:
    """Ends of the axis: all values with their intervals, and ``beyond`` times that length."""
    top = max(highs, default=1.0) or 1.0
    if not log:
        return [0.0, top * beyond]
    low = min((value for value in lows if value > 0), default=top) / 1.5
    return [number(low, 4) or low, top * (top / low) ** (beyond - 1)]


def _seen(values: Sequence[Value]) -> str:
    """Return the least and the greatest value."""
    low = min(values, key=attrgetter("value"))
    high = max(values, key=attrgetter("value"))
    if low.value == high.value:
        return f"{quantity(high.value, high.unit)} in {label(high.cell)}."
    several = len({value.variant for value in values}) > 1
    ends = [
        f"{quantity(value.value, value.unit)} ({_where(value, several=several)})"
        for value in (low, high)
    ]
    return f"From {ends[0]} to {ends[1]}."


def _where(value: Value, *, several: bool) -> str:
    """Return the cell of a value, and its variant where there are ``several`` and it has a name."""
    parts = [label(value.cell), label(value.variant)]
    return ", ".join(filter(None, parts if several else parts[:1]))


def _about(values: Sequence[Value]) -> str:
    """Return what the numbers and the lines at the bars' ends are."""
    bases = list(dict.fromkeys(value.basis for value in values if value.basis))
    if not bases:
        return "One run each: there is no interval."
    return (
        f"Medians over runs; the line at a bar's end is the {' or the '.join(bases)}."
    )
