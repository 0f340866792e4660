"""Trial by trial, in run order: rates against their own level, the clocks of the CPUs, background loads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import median
from typing import Any

from iodelta.plural import plural
from iodelta.report.formats.charts.model import (
    Figure,
    Source,
    label,
    number,
    percent_of,
)
from iodelta.study.units import axis_unit
from iodelta.study.words import metric_name, percent, quantity
from iodelta.trial import Trial
from iodelta.verdict import Metric
from iodelta.verdict.metrics import reader

WINDOW = 15
"""Trials over which the line of the level is a median."""

NAMED = 2000
"""With more trials than this the tooltip does not name the cell."""

Point = tuple[int, Trial, float]
"""Place in the run, trial, value."""


def _by_trial(
    source: Source,
    points: Sequence[Point],
    said: Sequence[str],
    y: str,
    *,
    ends: Sequence[tuple[float, float]] = (),
    zero: bool = False,
    level: Sequence[Mapping[str, Any]] = (),
    **texts: Any,
) -> Figure:
    """Return a point per trial, named by what is ``said`` of it; ``ends`` are those of a line through each."""
    rows = []
    for (place, trial, value), text in zip(points, said, strict=False):
        row = {
            "trial": place,
            "variant": label(trial.variant),
            "value": number(value, 5),
        }
        if len(points) <= NAMED:
            row |= {"cell": label(trial.cell, 40), "said": text}
        rows.append(row)
    spans = [
        {**row, "low": number(low, 5), "high": number(high, 5)}
        for row, (low, high) in zip(rows, ends, strict=False)
    ]
    return Figure(
        spec="trials",
        rows=rows,
        texts={"y": y, "variants": list(map(label, source.variants))},
        extra={"zero": [{"value": 0}] * zero, "spans": spans, "level": level},
        wide=True,
        **texts,
    )


def _medians(source: Source, points: Sequence[Point]) -> dict[str, float]:
    """Return the median of each variant that has some values."""
    values: dict[str, list[float]] = {variant: [] for variant in source.variants}
    for _, trial, value in points:
        values.setdefault(trial.variant, []).append(value)
    return {variant: median(own) for variant, own in values.items() if own}


def rates(source: Source) -> list[Metric]:
    """Return the metrics that say how much was done."""
    return [m for m in source.metrics if m.name.endswith((".iops", ".bandwidth"))]


def relative(source: Source, metric: Metric) -> list[Point]:
    """Return the trials with their values over the median of their cell and variant, less 1."""
    read = reader(metric)
    values: list[Point] = []
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


def in_order(source: Source) -> Iterator[Figure]:
    """Yield every trial where it stood in the run, against its cell's own level, so that drift is seen; for each rate,
    where the order is known."""
    for metric in rates(source) if source.ordered else ():
        changes = relative(source, metric)
        if len(changes) <= 3:
            continue
        name = metric_name(metric, with_kind=len(rates(source)) > 1)
        levels = [value for _, _, value in changes]
        half, third = WINDOW // 2, max(1, len(changes) // 3)
        first, last = median(levels[:third]), median(levels[-third:])
        moved = (1 + last) / (1 + first) - 1  # both are against the same levels
        level = [
            {
                "trial": place,
                "value": percent_of(median(levels[max(0, at - half) : at + half + 1])),
            }
            for at, (place, _, _) in enumerate(changes)
        ]
        table = []
        part_length = max(1, math.ceil(len(changes) / 3))
        for start in range(0, len(changes), part_length):
            part = changes[start : start + part_length]
            medians = _medians(source, part)
            cells = [
                percent(medians[v], 0.01) if v in medians else "-"
                for v in source.variants
            ]
            table.append((f"{part[0][0]} to {part[-1][0]}", *cells))
        yield _by_trial(
            source,
            [(place, trial, 100 * value) for place, trial, value in changes],
            [percent(value, 0.01) for value in levels],
            f"{name} against its level, %",
            zero=True,
            level=level[:: max(1, len(changes) // 800)],
            name=f"order-{metric.name}",
            title=f"{name} in run order",
            alt=f"{plural(len(changes), 'trial')}; from the first to the last third the level moved by "
            f"{percent(moved, 0.002)}.",
            about="Every trial at its place in the run, against the median of its own cell and variant; the line is the "
            f"median of {WINDOW} neighbours. Drift affects all variants alike only if they were interleaved.",
            head=("trials", *map(label, source.variants)),
            table=table,
        )


def clocks(source: Source) -> Iterator[Figure]:
    """Yield the clock that the CPUs were seen to run at, where it was sampled."""
    points = [
        (place, trial, trial.counters["cpu.mhz_mean"])
        for place, trial in enumerate(source.trials, 1)
        if "cpu.mhz_mean" in trial.counters
    ]
    names = ("cpu.mhz_min", "cpu.mhz_max")
    seen = {
        trial.counters[name]
        for (_, trial, _), name in product(points, names)
        if name in trial.counters
    }
    if len(points) < 2 or not seen:
        return
    ends = []
    for _, trial, value in points:
        low, high = (trial.counters.get(name, value) for name in names)
        ends.append((low, high))
    texts = {
        label(variant): f"{value:.0f}"
        for variant, value in _medians(source, points).items()
    }
    text = ", ".join(f"{variant} {value}" for variant, value in texts.items())
    fixed = len(seen) == 1
    alt = f"Median of the means in MHz: {text}; seen from {min(seen):.0f} to {max(seen):.0f}."
    if fixed:
        alt += " It never changed: the clock is fixed, or the machine (a guest) does not show it."
    yield _by_trial(
        source,
        [] if fixed else points,
        [f"{value:.0f}" for _, _, value in points],
        "CPU clock, MHz",
        ends=ends,
        name="frequency",
        title="CPU clock during the trials",
        alt=alt,
        about="Clock of the CPUs during each trial: mean, and range over CPUs and samples, one a second.",
        head=("variant", "median of the means, MHz"),
        table=list(texts.items()),
    )


def backgrounds(source: Source) -> Iterator[Figure]:
    """Yield how much I/O each background load did while the trials ran; its rate where that is known, else the share of
    each trial during which it ran."""
    loads: dict[str, list[tuple[int, Trial]]] = {}
    for place, trial in enumerate(source.trials, 1):
        if trial.background is not None:
            name = source.backgrounds.get(trial.cell, "background")
            loads.setdefault(name, []).append((place, trial))
    for at, (name, loaded) in enumerate(loads.items(), 1):
        known = [(p, t, t.background) for p, t in loaded if t.background]
        rates = [(p, t, load.rate) for p, t, load in known if load.rate is not None]
        by_rate = len(rates) == len(known)
        points = rates if by_rate else [(p, t, load.alive) for p, t, load in known]
        size, unit = (0.01, "%")
        y, column = "share of the trial in which it ran, %", "median share of the trial"
        if by_rate:
            size, unit = axis_unit("B/s", max(value for _, _, value in points))
            y, column = f"its own rate, {unit}", "median rate"

        def said(value: float, by_rate: bool = by_rate) -> str:
            return quantity(value, "B/s") if by_rate else f"{100 * value:.0f} %"

        texts = {
            label(variant): said(value)
            for variant, value in _medians(source, points).items()
        }
        commands = dict.fromkeys(" ".join(load.command) for _, _, load in known)
        medians = ", ".join(f"{variant} {text}" for variant, text in texts.items())
        yield _by_trial(
            source,
            [(place, trial, value / size) for place, trial, value in points],
            [said(value) for _, _, value in points],
            y,
            zero=True,
            name=f"background-{at}",
            title=f"Background load: {label(name)}",
            alt=f"{label('; '.join(commands), 90)}. Medians: {medians}.",
            about="The background load's own rate during each trial. It reveals a variant that is fast because it "
            "starves the load.",
            head=("variant", column),
            table=list(texts.items()),
        )
