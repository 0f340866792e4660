"""Background: how much I/O the background load did while the trials ran."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

from iodelta.report.formats.charts.model import (
    Figure,
    Source,
    label,
    number,
    percent_of,
)
from iodelta.study.units import axis_unit
from iodelta.study.words import quantity
from iodelta.trial import Background, Trial

if TYPE_CHECKING:
    import altair as alt


def chart() -> alt.LayerChart:
    """Return a point per trial."""
    import altair as alt

    from iodelta.report.formats.charts import build

    point = (
        alt.Chart()
        .mark_point(filled=True, size=30, opacity=0.8)
        .encode(
            x=build.trials(),
            y=build.y("value", zero=True),
            tooltip=build.tips("variant", "cell", "said=@y"),
            **build.by_variant(gap=build.TALL),
        )
    )
    return build.layered(point, height=180)


def figures(source: Source) -> Iterator[Figure]:
    """Its rate where that is known, else the share of each trial during which it ran."""
    loads: dict[str, list[tuple[int, Trial, Background]]] = {}
    for place, trial in enumerate(source.trials, 1):
        if trial.background is not None:
            name = source.backgrounds.get(trial.cell, "background")
            loads.setdefault(name, []).append((place, trial, trial.background))
    for number_, (name, loaded) in enumerate(loads.items(), 1):
        rates = [
            (place, trial, load.rate)
            for place, trial, load in loaded
            if load.rate is not None
        ]
        alive = [(place, trial, load.alive) for place, trial, load in loaded]
        by_rate = len(rates) == len(loaded)
        shown = rates if by_rate else alive
        yield _figure(source, name, number_, shown, by_rate=by_rate)


def _figure(
    source: Source,
    name: str,
    at: int,
    rates: list[tuple[int, Trial, float]],
    *,
    by_rate: bool,
) -> Figure:
    size, unit = (
        axis_unit("B/s", max(value for _, _, value in rates)) if by_rate else (1.0, "%")
    )
    y = f"its own rate, {unit}" if by_rate else "share of the trial in which it ran, %"
    words = {}
    for variant in source.variants:
        words[variant] = _said(
            [value for _, trial, value in rates if trial.variant == variant], by_rate
        )
    commands = dict.fromkeys(
        " ".join(t.background.command) for _, t, _ in rates if t.background
    )
    return Figure(
        name=f"background-{at}",
        spec="background",
        title=f"Background load: {label(name)}",
        alt=f"{label('; '.join(commands), 90)}. Medians: "
        + ", ".join(
            f"{label(variant)} {text}" for variant, text in words.items() if text
        )
        + ".",
        about="The background load's own rate during each trial. It reveals a variant that is fast because it "
        "starves the load.",
        rows=[
            {
                "trial": place,
                "variant": label(trial.variant),
                "cell": label(trial.cell, 40),
                "value": number(value / size) if by_rate else percent_of(value),
                "said": _said([value], by_rate),
            }
            for place, trial, value in rates
        ],
        texts={"y": y, "variants": list(map(label, source.variants))},
        head=("variant", "median rate" if by_rate else "median share of the trial"),
        table=[(label(variant), text) for variant, text in words.items() if text],
        wide=True,
    )


def _said(values: list[float], by_rate: bool) -> str:
    if not values:
        return ""
    if by_rate:
        return quantity(median(values), "B/s")
    return f"{100 * median(values):.0f} %"
