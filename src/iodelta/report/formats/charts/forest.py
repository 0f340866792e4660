"""Forest: the change of every comparison with its interval, against no change and the margin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iodelta.plural import plural
from iodelta.report.formats.charts.model import LONG, Effect, Figure, Source, frame, label, labels, percent_of, some
from iodelta.study.words import interval, percent

if TYPE_CHECKING:
    import altair as alt

MOST = 40
"""Rows of one chart."""


def chart() -> alt.LayerChart:
    """One row per comparison; the mark's shape and colour are the word."""
    import altair as alt

    from iodelta.report.formats.charts import build

    tips = build.tips("row=comparison", "said=change", "word")
    scale = alt.Scale(domain=list(build.WORDS), range="ordinal")
    shapes = alt.Scale(domain=list(build.WORDS), range=list(build.SHAPES))
    legend = alt.Legend(values=["@words"], offset=12, **build.LEGEND)
    color = alt.Color(field="word", type="nominal", scale=scale, legend=legend)
    shape = alt.Shape(field="word", type="nominal", scale=shapes, legend=legend)
    span = (
        alt.Chart()
        .mark_rule(strokeWidth=1.6, clip=True)
        .encode(x=build.x("low", framed=True), x2=alt.X2("high"), y=build.names("row"), color=color, tooltip=tips)
    )
    point = (
        alt.Chart()
        .mark_point(size=64, filled=True)
        .encode(
            x=build.x("change", framed=True),
            y=build.names("row"),
            color=color,
            shape=shape,
            tooltip=tips,
        )
    )
    return build.layered(build.band(), build.rule_at(0), span, point, height=alt.Step(18))


def figures(source: Source) -> Iterator[Figure]:
    """One for each metric."""
    places = {cell: place for place, cell in enumerate(source.cells)}
    for metric in dict.fromkeys(effect.metric for effect in source.effects):
        own = [e for e in source.effects if e.metric == metric and e.change is not None]
        own.sort(key=lambda e: (places.get(e.cell, 0), source.others.index(e.variant)))
        if own:
            yield _figure(source, own)


def _figure(source: Source, own: list[Effect]) -> Figure:
    shown = own
    if len(own) > MOST:
        strongest = sorted(own, key=lambda e: -abs(e.change or 0.0) / (e.half or 1e9))[:MOST]
        kept = set(map(id, strongest))
        shown = [effect for effect in own if id(effect) in kept]
    several = len(source.others) > 1
    rows = labels([f"{e.cell}, {e.variant}" if several else e.cell for e in shown])
    words = list(dict.fromkeys(effect.word for effect in shown))
    better = "more" if own[0].metric.better == "higher" else "less"
    name = own[0].name
    left = some("comparisons", len(shown), len(own))
    counts = ", ".join(f"{sum(e.word == word for e in own)} {word}" for word in dict.fromkeys(e.word for e in own))
    return Figure(
        name=f"change-{own[0].metric.name}",
        spec="forest",
        title=f"Change of {name}",
        alt=f"{plural(len(own), 'comparison')}: {counts}; {better} is better. {left}".strip(),
        about=f"Change against {label(source.baseline)} with its interval. The shaded band is the margin of "
        f"{100 * source.margin:g} %; intervals that run off the chart are given in full in the table.",
        rows=[
            {
                "row": row,
                "change": percent_of(effect.change),
                "low": percent_of(effect.low),
                "high": percent_of(effect.high),
                "word": effect.word,
                "said": f"{percent(effect.change, effect.half)} ({interval(effect.low, effect.high)})",
            }
            for row, effect in zip(rows, shown, strict=True)
        ],
        texts={
            "x": f"change, % ({better} is better)",
            "words": words,
            "frame": framed(source, shown),
            **margins(source),
        },
        head=("comparison", "change", "interval", "verdict"),
        table=[
            (row, percent(e.change, e.half), interval(e.low, e.high) if e.low is not None else "-", e.word)
            for row, e in zip(rows, shown, strict=True)
        ],
        wide=max(map(len, rows)) > LONG,
    )


def framed(source: Source, effects: list[Effect]) -> list[float]:
    """Ends of the axis."""
    bounds = [bound for effect in effects for bound in (effect.low, effect.high)]
    return frame([effect.change for effect in effects], bounds, source.margin)


def margins(source: Source) -> dict[str, float]:
    """Both ends of the margin in percent."""
    return {"-margin": -100 * source.margin, "+margin": 100 * source.margin}
