"""Spread: how far the trials of each variant lie from each other; a result in its own right."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import stdev
from typing import TYPE_CHECKING

from iodelta.figures import share
from iodelta.report.formats.charts.model import (
    Figure,
    Source,
    label,
    number,
    percent_of,
    some,
)
from iodelta.report.formats.charts.order import rates, relative
from iodelta.study.words import metric_name
from iodelta.verdict import Metric

if TYPE_CHECKING:
    import altair as alt

CELLS = 8


def chart() -> alt.LayerChart:
    """Return a tick per trial; the bar is one standard deviation each way."""
    import altair as alt

    from iodelta.report.formats.charts import build

    rows = build.names("cell")
    shown = build.by_variant(shape=False)
    bar = (
        alt.Chart(build.data("sds"))
        .mark_bar(opacity=0.22, height=alt.RelativeBandSize(band=0.9))
        .encode(
            x=build.x("low", "@x"),
            x2=alt.X2("high"),
            y=rows,
            yOffset=build.offset(),
            **shown,
            tooltip=build.tips("variant", "said=standard deviation"),
        )
    )
    tick = (
        alt.Chart()
        .mark_tick(thickness=1.2, opacity=0.8)
        .encode(x=build.x("value", "@x"), y=rows, yOffset=build.offset(), **shown)
    )
    return build.layered(bar, tick, height=alt.Step(16))


def figures(source: Source) -> Iterator[Figure]:
    """Yield one per rate."""
    for metric in rates(source):
        figure = _figure(source, metric)
        if figure is not None:
            yield figure


def _figure(source: Source, metric: Metric) -> Figure | None:
    arms: dict[tuple[str, str], list[float]] = {}
    for _, trial, value in relative(source, metric):
        arms.setdefault((trial.cell, trial.variant), []).append(value)
    sds = {arm: stdev(values) for arm, values in arms.items() if len(values) > 2}
    if not sds:
        return None
    spread = {cell for cell, _ in sds}
    cells = [cell for cell in source.cells if cell in spread]
    shown = source.telling(CELLS, cells)
    name = metric_name(metric, with_kind=len(rates(source)) > 1)
    drawn = [arm for arm in product(shown, source.variants) if arm in sds]
    rows = []
    for cell, variant in drawn:
        for value in arms[cell, variant]:
            rows.append(
                {
                    "cell": label(cell),
                    "variant": label(variant),
                    "value": percent_of(number(value, 4)),
                }
            )
    widest, least = max(drawn, key=sds.__getitem__), min(drawn, key=sds.__getitem__)
    return Figure(
        name=f"spread-{metric.name}",
        spec="spread",
        title=f"Spread of {name} from trial to trial",
        about="Every trial against the median of its cell and variant; the bar is one standard deviation each way. "
        "Variants stand below each other in the order of the legend.",
        alt="Standard deviation: most in "
        f"{label(widest[0])}, {label(widest[1])} ({share(sds[widest])}), least in {label(least[0])}, "
        f"{label(least[1])} ({share(sds[least])}).",
        rows=rows,
        extra={
            "sds": [
                {
                    "cell": label(cell),
                    "variant": label(variant),
                    "low": percent_of(number(-sds[cell, variant], 4)),
                    "high": percent_of(number(sds[cell, variant], 4)),
                    "said": share(sds[cell, variant]),
                }
                for cell, variant in drawn
            ]
        },
        texts={
            "x": f"{name} against its median, %",
            "variants": list(map(label, source.variants)),
        },
        head=("cell", "variant", "trials", "standard deviation"),
        table=[
            (label(arm[0]), label(arm[1]), str(len(arms[arm])), share(sds[arm]))
            for arm in drawn
        ],
        note=some("cells", len(shown), len(cells)),
    )
