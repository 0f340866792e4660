"""Bars: IOPS, bandwidth, mean latency and CPU time of every cell, the variants below each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.charts.cells import (
    COLORS,
    ELSEWHERE,
    NAMES,
    NO_ZEROS,
    Sheet,
    above_zero,
    axis_title,
    colored,
    datum,
    metric_title,
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
    """A row per cell and variant: a bar from zero, or a point where only a logarithmic axis shows all of them."""
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
    marks = (
        alt.Chart().mark_point(filled=True, size=56) if log else alt.Chart().mark_bar()
    )
    band = {} if log else {"y": build.names("row")}
    shown = marks.encode(x=value, tooltip=tips, **{**place, **band}, **looks)
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
    """One for each metric and direction; more where there are many cells."""
    values = source.values
    for metric in NAMES if values is not None else ():
        assert values is not None
        for kind in values.kinds():
            held = values.of(kind, metric)
            own = list(sheets(values, (cell for cell, _ in held)))
            for place, sheet in enumerate(own, 1):
                name = numbered(f"values-{kind}-{metric}", place, len(own))
                yield _figure(source, values, sheet, metric, kind, held, name)
    if values is not None:
        yield from _cpu(source, values)


def _cpu(source: Source, values: Values) -> Iterator[Figure]:
    """What fio's jobs took of the processors, which is of a run and not of a direction."""
    held = {(value.cell, value.variant): value for value in values.cpu}
    own = list(sheets(values, (cell for cell, _ in held)))
    for place, sheet in enumerate(own, 1):
        name = numbered("values-cpu", place, len(own))
        yield _figure(source, values, sheet, "cpu", values.cpu[0].kind, held, name)


def _figure(
    source: Source,
    values: Values,
    sheet: Sheet,
    metric: str,
    kind: Kind,
    held: Mapping[tuple[str, str], Value],
    name: str,
) -> Figure:
    order = [
        (row, held[place.cell, variant])
        for (row, place), variant in product(
            zip(sheet.rows, sheet.places, strict=True), values.variants
        )
        if (place.cell, variant) in held
    ]
    own = [value for _, value in order]
    log = source.logarithmic(wide_apart(own), [value.value for value in own])
    size, unit = sized(own, log=log)
    title = metric_title(metric, kind, values.kinds())
    names, crowded = variant_names(values), len(values.variants) > COLORS
    rows = [
        _row(value, row, names[value.variant], size, crowded=crowded)
        for row, value in order
    ]
    shown = above_zero(rows) if log else rows
    drawn = [ELSEWHERE] if crowded else list(names.values())
    longest = max(map(len, (str(row["row"]) for row in rows)))
    return Figure(
        name=name,
        spec="values-log" if log else "values",
        title=titled(title, sheet.panel),
        alt=_seen(own, metric),
        about=_about(own),
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
            "variants": colored(drawn),
            "legend": drawn,
        },
        head=("cell", "variant", "median", "interval", "runs"),
        table=[
            (
                label(v.cell),
                names[v.variant],
                quantity(v.value, v.unit),
                spans(v),
                str(v.runs),
            )
            for _, v in order
        ],
        note=NO_ZEROS if len(shown) < len(rows) else "",
        wide=longest > LONG,
    )


def _row(
    value: Value, row: str, variant: str, size: float, *, crowded: bool
) -> dict[str, Any]:
    """A mark; where colours cannot tell variants apart its row is named after both."""
    made = datum(
        value,
        size,
        row=f"{row}, {variant}" if crowded else row,
        variant=ELSEWHERE if crowded else variant,
    )
    return {**made, "end": made["high"], "text": quantity(value.value / size, "")}


def room(numbers: Sequence[str]) -> str:
    """The length of the longest bar in pixels, as Vega reads it: all but the room for the number behind it."""
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


def _seen(own: list[Value], metric: str) -> str:
    low, high = min(own, key=lambda v: v.value), max(own, key=lambda v: v.value)
    if low.value == high.value:
        return f"{quantity(high.value, high.unit)} in {label(high.cell)}."
    several = len({value.variant for value in own}) > 1
    ends = [
        f"{quantity(v.value, v.unit)} ({_where(v, several=several)})"
        for v in (low, high)
    ]
    return f"From {ends[0]} to {ends[1]}."


def _where(value: Value, *, several: bool) -> str:
    return ", ".join(
        filter(None, (label(value.cell), label(value.variant) if several else ""))
    )


def _about(own: list[Value]) -> str:
    """What the numbers and the lines at the bars' ends are."""
    bases = list(dict.fromkeys(value.basis for value in own if value.basis))
    if not bases:
        return "One run each: there is no interval."
    return (
        f"Medians over runs; the line at a bar's end is the {' or the '.join(bases)}."
    )
