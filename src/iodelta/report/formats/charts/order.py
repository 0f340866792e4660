"""Order: every trial where it stood in the run, against its cell's own level, so that drift is seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from iodelta.plural import plural
from iodelta.report.formats.charts.model import (
    Figure,
    Source,
    label,
    number,
    percent_of,
)
from iodelta.study.words import metric_name, percent
from iodelta.trial import Trial
from iodelta.verdict import Metric
from iodelta.verdict.metrics import reader

if TYPE_CHECKING:
    import altair as alt

WINDOW = 15
"""Trials over which the line of the level is a median."""

NAMED = 2000
"""With more trials than this the tooltip does not name the cell."""


def chart() -> alt.LayerChart:
    """Return a point per trial; the line is the running median over all variants."""
    import altair as alt

    from iodelta.report.formats.charts import build

    at = build.trials()
    level = build.y("value", "@y")
    tips = build.tips("variant", "cell", "said=against its level")
    point = (
        alt.Chart()
        .mark_point(filled=True, size=26, opacity=0.75)
        .encode(x=at, y=level, tooltip=tips, **build.by_variant(gap=build.TALL))
    )
    line = (
        alt.Chart(build.data("level"))
        .mark_line(style="trend", strokeWidth=2)
        .encode(x=at, y=build.y("value", "@y"))
    )
    return build.layered(build.rule_at(0, "y"), point, line, height=240)


def rates(source: Source) -> list[Metric]:
    """Return the metrics that say how much was done."""
    return [
        metric
        for metric in source.metrics
        if metric.name.endswith((".iops", ".bandwidth"))
    ]


def relative(source: Source, metric: Metric) -> list[tuple[int, Trial, float]]:
    """(place in the run, trial, its value over the median of its cell and variant, less 1)."""
    read = reader(metric)
    values: list[tuple[int, Trial, float]] = []
    arms: dict[tuple[str, str], list[float]] = {}
    for place, trial in enumerate(source.trials, 1):
        value = read(trial)[0]
        if math.isfinite(value) and value > 0:
            values.append((place, trial, value))
            arms.setdefault((trial.cell, trial.variant), []).append(value)
    # A single trial is its own median.
    levels = {arm: median(of_arm) for arm, of_arm in arms.items() if len(of_arm) > 1}
    return [
        (place, trial, value / levels[trial.cell, trial.variant] - 1)
        for place, trial, value in values
        if (trial.cell, trial.variant) in levels
    ]


def figures(source: Source) -> Iterator[Figure]:
    """Yield one per rate, where the order is known."""
    if source.ordered:
        for metric in rates(source):
            changes = relative(source, metric)
            if len(changes) > 3:
                yield _figure(source, metric, changes)


def _figure(
    source: Source, metric: Metric, changes: list[tuple[int, Trial, float]]
) -> Figure:
    name = metric_name(metric, with_kind=len(rates(source)) > 1)
    levels = [value for _, _, value in changes]
    level = _running(levels)
    third = max(1, len(changes) // 3)
    first, last = median(levels[:third]), median(levels[-third:])
    moved = (1 + last) / (1 + first) - 1  # both are against the same levels
    return Figure(
        name=f"order-{metric.name}",
        spec="order",
        title=f"{name} in run order",
        alt=f"{plural(len(changes), 'trial')}; from the first to the last third the level moved by "
        f"{percent(moved, 0.002)}.",
        about=f"Every trial at its place in the run, against the median of its own cell and variant; the line is the "
        f"median of {WINDOW} neighbours. Drift affects all variants alike only if they were interleaved.",
        rows=[
            {
                "trial": place,
                "variant": label(trial.variant),
                "value": percent_of(number(value, 4)),
                **(
                    {"cell": label(trial.cell, 40), "said": percent(value, 0.01)}
                    if len(changes) <= NAMED
                    else {}
                ),
            }
            for place, trial, value in changes
        ],
        extra={
            "level": [
                {"trial": place, "value": percent_of(number(value, 4))}
                for (place, _, _), value in zip(changes, level, strict=True)
            ][:: max(1, len(changes) // 800)]
        },
        texts={
            "y": f"{name} against its level, %",
            "variants": list(map(label, source.variants)),
        },
        head=("trials", *map(label, source.variants)),
        table=_thirds(source, changes),
        wide=True,
    )


def _running(values: Sequence[float]) -> list[float]:
    half = WINDOW // 2
    return [
        median(values[max(0, at - half) : at + half + 1]) for at in range(len(values))
    ]


def _thirds(
    source: Source, changes: list[tuple[int, Trial, float]]
) -> list[tuple[str, ...]]:
    """Return the level of each variant in the first, middle and last third of the run."""
    third = max(1, math.ceil(len(changes) / 3))
    rows = []
    for start in range(0, len(changes), third):
        part = changes[start : start + third]
        cells = []
        for variant in source.variants:
            values = [value for _, trial, value in part if trial.variant == variant]
            cells.append(percent(median(values), 0.01) if values else "-")
        rows.append((f"{part[0][0]} to {part[-1][0]}", *cells))
    return rows
