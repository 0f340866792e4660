"""Forest: the change of every comparison with its interval, against no change and the margin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from iodelta.plural import plural
from iodelta.report.formats.charts.model import (
    LONG,
    Effect,
    Figure,
    Source,
    frame,
    label,
    labels,
    percent_of,
    some,
)
from iodelta.study.words import inert, interval, quantity

if TYPE_CHECKING:
    import altair as alt

MOST = 40
"""Rows of one chart."""


def chart() -> alt.LayerChart:
    """Return one row per comparison; the mark's shape and colour are the word."""
    import altair as alt

    from iodelta.report.formats.charts import build

    rows = build.names("row", "@rows")
    tips = build.tips(
        "row=comparison", "said=change", "values", "counted=based on", "word=verdict"
    )
    scale = alt.Scale(domain=list(build.WORDS), range="ordinal")
    shapes = alt.Scale(domain=list(build.WORDS), range=list(build.SHAPES))
    legend = alt.Legend(values=["@words"], offset=12, **build.LEGEND)
    color = alt.Color(field="word", type="nominal", scale=scale, legend=legend)
    shape = alt.Shape(field="word", type="nominal", scale=shapes, legend=legend)
    span = (
        alt.Chart()
        .mark_rule(strokeWidth=1.6, clip=True)
        .encode(
            x=build.x("low", framed=True),
            x2=alt.X2("high"),
            y=rows,
            color=color,
            tooltip=tips,
        )
    )
    point = (
        alt.Chart()
        .mark_point(size=64, filled=True)
        .encode(
            x=build.x("change", framed=True),
            y=rows,
            color=color,
            shape=shape,
            tooltip=tips,
        )
    )
    cut = [
        alt.Chart(build.data(name))
        .mark_point(size=44, filled=True, shape=f"triangle-{side}", xOffset=inwards)
        .encode(x=build.x("at", framed=True), y=rows, color=color, tooltip=tips)
        for name, side, inwards in (("below", "left", 3), ("above", "right", -3))
    ]
    return build.layered(
        build.band(), build.rule_at(0), span, *cut, point, height=alt.Step(18)
    )


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each metric."""
    places = {cell: place for place, cell in enumerate(source.cells)}
    for metric in dict.fromkeys(effect.metric for effect in source.effects):
        effects = [
            e for e in source.effects if e.metric == metric and e.change is not None
        ]
        effects.sort(
            key=lambda e: (places.get(e.cell, 0), source.others.index(e.variant))
        )
        if effects:
            yield _figure(source, effects)


def _figure(source: Source, effects: list[Effect]) -> Figure:
    shown = effects
    if len(effects) > MOST:
        strongest = sorted(
            effects, key=lambda e: -abs(e.change or 0.0) / (e.half or 1e9)
        )[:MOST]
        kept = set(map(id, strongest))
        shown = [effect for effect in effects if id(effect) in kept]
    several = len(source.others) > 1
    rows = labels([f"{e.cell}, {e.variant}" if several else e.cell for e in shown])
    words = list(dict.fromkeys(effect.word for effect in shown))
    better = "more" if effects[0].metric.better == "higher" else "less"
    name = effects[0].name
    left = some("comparisons", len(shown), len(effects))
    counted = Counter(effect.word for effect in effects)
    counts = ", ".join(f"{count} {word}" for word, count in counted.items())
    ends = framed(source, shown)
    marks = [_mark(row, effect) for row, effect in zip(rows, shown, strict=True)]
    return Figure(
        name=f"change-{effects[0].metric.name}",
        spec="forest",
        title=f"Change of {name}",
        alt=f"{plural(len(effects), 'comparison')}: {counts}; {better} is better. {left}".strip(),
        about=_about(source, any(effect.low is not None for effect in source.effects)),
        rows=marks,
        extra=run_off(marks, ends),
        texts={
            "x": f"change, % ({better} is better)",
            "words": words,
            "frame": ends,
            "rows": rows,
            **margins(source),
        },
        head=("comparison", "change", "interval", "verdict"),
        table=[
            (row, e.text, interval(e.low, e.high) if e.low is not None else "-", e.word)
            for row, e in zip(rows, shown, strict=True)
        ],
        wide=max(map(len, rows)) > LONG,
    )


def _mark(row: str, effect: Effect) -> dict[str, Any]:
    """Return a comparison as it is drawn, and what a pointer shows of it."""
    bounds = (
        interval(effect.low, effect.high) if effect.low is not None else "no interval"
    )
    return {
        "row": row,
        "change": percent_of(effect.change),
        "low": percent_of(effect.low),
        "high": percent_of(effect.high),
        "word": effect.word,
        "said": f"{effect.text} ({bounds})",
        "values": " to ".join(
            quantity(value, effect.metric.unit) for value in effect.values
        ),
        "counted": inert(effect.counted),
    }


def _about(source: Source, has_intervals: bool) -> str:
    """Return what the marks are; of intervals only where there are some."""
    against = f"Change against {label(source.baseline)}"
    margin = f"The shaded band is the margin of {100 * source.margin:g} %"
    if not has_intervals:
        return f"{against}; no change has an interval. {margin}."
    arrow = "an arrowhead marks an interval that runs off the chart; the table has all of it"
    return f"{against} with its interval. {margin}; {arrow}."


def run_off(
    marks: Sequence[dict[str, Any]], ends: Sequence[float]
) -> dict[str, list[dict[str, Any]]]:
    """Return the marks whose intervals end ``below`` or ``above`` the axis, each at that end of the axis."""
    low, high = ends
    return {
        "below": [{**mark, "at": low} for mark in marks if _under(mark["low"], low)],
        "above": [{**mark, "at": high} for mark in marks if _under(high, mark["high"])],
    }


def _under(value: float | None, other: float | None) -> bool:
    return value is not None and other is not None and value < other


def framed(source: Source, effects: list[Effect]) -> list[float]:
    """Ends of the axis."""
    bounds = list(chain.from_iterable((effect.low, effect.high) for effect in effects))
    return frame(
        [effect.change for effect in effects], bounds, source.margin, whole=True
    )


def margins(source: Source) -> dict[str, float]:
    """Both ends of the margin in percent."""
    return {"-margin": -100 * source.margin, "+margin": 100 * source.margin}
