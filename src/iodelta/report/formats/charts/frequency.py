"""Frequency: the clock that the CPUs were seen to run at, trial by trial."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import median
from typing import TYPE_CHECKING

from iodelta.report.formats.charts.model import Figure, Source, label, number

if TYPE_CHECKING:
    import altair as alt


def chart() -> alt.LayerChart:
    """Mean over CPUs and samples, and the range from the slowest to the fastest."""
    import altair as alt

    from iodelta.report.formats.charts import build

    at = build.trials()
    shown = build.by_variant(gap=build.TALL)
    span = (
        alt.Chart()
        .mark_rule(opacity=0.35)
        .encode(
            x=at,
            y=build.y("low", "CPU clock, MHz"),
            y2=alt.Y2("high"),
            color=shown["color"],
        )
    )
    point = (
        alt.Chart()
        .mark_point(filled=True, size=26, opacity=0.8)
        .encode(
            x=at,
            y=build.y("mean", "CPU clock, MHz"),
            tooltip=build.tips("variant", "cell", "said=MHz"),
            **shown,
        )
    )
    return build.layered(span, point, height=180)


def figures(source: Source) -> Iterator[Figure]:
    """Yield one, where clocks were sampled and differ at all."""
    seen = [
        (place, t)
        for place, t in enumerate(source.trials, 1)
        if "cpu.mhz_mean" in t.counters
    ]
    clocks = {
        t.counters[name]
        for (_, t), name in product(seen, ("cpu.mhz_min", "cpu.mhz_max"))
        if name in t.counters
    }
    if len(seen) < 2 or not clocks:
        return
    means = {}
    for variant in source.variants:
        clocks_of_variant = [
            trial.counters["cpu.mhz_mean"]
            for _, trial in seen
            if trial.variant == variant
        ]
        if clocks_of_variant:
            means[variant] = median(clocks_of_variant)
    text = ", ".join(
        f"{label(variant)} {value:.0f}" for variant, value in means.items()
    )
    fixed = (
        " It never changed: the clock is fixed, or the machine (a guest) does not show it."
        * (len(clocks) == 1)
    )
    yield Figure(
        name="frequency",
        spec="frequency",
        title="CPU clock during the trials",
        about="Clock of the CPUs during each trial: mean, and range over CPUs and samples, one a second.",
        alt=f"Median of the means in MHz: {text}; seen from {min(clocks):.0f} to {max(clocks):.0f}.{fixed}",
        rows=[
            {
                "trial": place,
                "variant": label(trial.variant),
                "cell": label(trial.cell, 40),
                "mean": number(trial.counters["cpu.mhz_mean"], 5),
                "low": number(trial.counters.get("cpu.mhz_min"), 5),
                "high": number(trial.counters.get("cpu.mhz_max"), 5),
                "said": f"{trial.counters['cpu.mhz_mean']:.0f}",
            }
            for place, trial in seen
        ]
        if len(clocks) > 1
        else (),
        texts={"variants": list(map(label, source.variants))},
        head=("variant", "median of the means, MHz"),
        table=[(label(variant), f"{value:.0f}") for variant, value in means.items()],
        wide=True,
    )
