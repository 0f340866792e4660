"""Heat map: a value over iodepth and jobs, a tile for each cell with its number in it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING

from iodelta.plural import plural
from iodelta.report.formats.charts.cells import (
    axis_title,
    metric_title,
    sized,
    spans,
    titled,
    variant_names,
)
from iodelta.report.formats.charts.model import Figure, Source
from iodelta.study.values import Place, Value, Values
from iodelta.study.words import quantity
from iodelta.trial import Kind

if TYPE_CHECKING:
    import altair as alt

LEVELS = 6
"""Colours; each is lighter or darker than the one before, so that the order is seen without colour vision."""

LEAST = 6
"""Tiles of a heat map."""

DRAWN = ("iops", "mean", "p99")

NUMBERED = 16
"""Columns with numbers in their tiles; narrower ones have no room."""


def chart() -> alt.LayerChart:
    """Tiles, and the numbers in them."""
    import altair as alt

    from iodelta.report.formats.charts import build

    axis = alt.Axis(
        ticks=False,
        domain=False,
        grid=False,
        labelAngle=0,
        labelOverlap="greedy",
        labelSeparation=4,
    )
    x = alt.X(
        field="depth",
        type="ordinal",
        sort=None,
        title="iodepth",
        scale=alt.Scale(domain=["@depths"]),
        axis=axis,
    )
    y = alt.Y(
        field="jobs",
        type="ordinal",
        sort=None,
        title="jobs",
        scale=alt.Scale(domain=["@jobs"]),
        axis=alt.Axis(
            ticks=False,
            domain=False,
            grid=False,
            titleAngle=0,
            titleAlign="right",
            titleBaseline="middle",
        ),
    )
    legend = alt.Legend(
        values=["@levels"], symbolType="square", offset=12, **build.LEGEND
    )
    tiles = (
        alt.Chart()
        .mark_rect(style="tile")
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                field="level",
                type="ordinal",
                sort=None,
                scale=alt.Scale(domain=["@levels"], range="heatmap"),
                legend=legend,
            ),
            tooltip=build.tips(
                "variant", "depth=iodepth", "jobs", "said=@name", "interval", "runs"
            ),
        )
    )
    # The second set of colours are those of text on the first.
    text = (
        alt.Chart(build.data("texts"))
        .mark_text(fontSize=10.5)
        .encode(
            x=x,
            y=y,
            text=alt.Text(field="text", type="nominal"),
            color=alt.Color(
                field="level",
                type="ordinal",
                sort=None,
                scale=alt.Scale(domain=["@levels"], range="ramp"),
                legend=None,
            ),
        )
    )
    layers = build.layered(tiles, text, height=alt.Step(26))
    layers.resolve = alt.Resolve(scale={"color": "independent"})
    return layers


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each panel, direction, metric and variant that has both axes."""
    values = source.values
    if values is None:
        return
    grids = {panel: _tiles(places) for panel, places in values.panels().items()}
    grids = {panel: tiles for panel, tiles in grids.items() if tiles}
    for place, (panel, tiles) in enumerate(grids.items(), 1):
        for kind, metric in product(values.kinds(), DRAWN):
            by_arm = values.of(kind, metric)
            drawn = by_arm.values()
            log = source.logarithmic(far_apart(drawn), [value.value for value in drawn])
            cuts = cuts_of(drawn, log=log)
            for number, variant in enumerate(values.variants, 1):
                grid = [
                    (tile, by_arm[tile.cell, variant])
                    for tile in tiles
                    if (tile.cell, variant) in by_arm
                ]
                if grid:
                    name = f"grid-{place}-{kind}-{metric}-{number}"
                    yield _figure(
                        values, panel, kind, metric, variant, grid, cuts, name
                    )


def _tiles(places: Sequence[Place]) -> list[Place]:
    """Return the cells of a panel that have both axes; empty where these make no grid."""
    tiles = [place for place in places if None not in (place.depth, place.jobs)]
    depths = {tile.depth for tile in tiles}
    jobs = {tile.jobs for tile in tiles}
    if min(len(depths), len(jobs)) < 2 or len(tiles) < LEAST:
        return []
    return tiles


def far_apart(values: Iterable[Value]) -> bool:
    """Return whether equal steps would give most values the first colour."""
    positive = [value.value for value in values if value.value > 0]
    return max(positive, default=0.0) > 20 * min(positive, default=0.0)


def cuts_of(values: Iterable[Value], *, log: bool) -> list[float]:
    """Where one colour ends and the next begins, the same for all variants: by equal factors, or in equal steps."""
    positive = [value.value for value in values if value.value > 0]
    if len(set(positive)) < 2:
        return []
    low, high = min(positive), max(positive)
    if log:
        return [low * (high / low) ** (step / LEVELS) for step in range(1, LEVELS)]
    return [low + (high - low) * step / LEVELS for step in range(1, LEVELS)]


def _figure(
    values: Values,
    panel: str,
    kind: Kind,
    metric: str,
    variant: str,
    grid: Sequence[tuple[Place, Value]],
    cuts: Sequence[float],
    name: str,
) -> Figure:
    title = metric_title(metric, kind, values.kinds())
    size, unit = sized([value for _, value in grid])
    shown = variant_names(values)[variant]
    levels = _levels(cuts, grid[0][1].unit)
    depths = sorted({tile.depth or 0 for tile, _ in grid})
    jobs = sorted({tile.jobs or 0 for tile, _ in grid})
    rows = [
        {
            "variant": shown,
            "depth": str(tile.depth),
            "jobs": str(tile.jobs),
            "level": levels[bisect_right(cuts, value.value)],
            "text": _short(value.value / size),
            "said": quantity(value.value, value.unit),
            "interval": spans(value),
            "runs": str(value.runs),
        }
        for tile, value in grid
    ]
    best_tile, best = max(grid, key=lambda pair: pair[1].value)
    of = f", {shown}" if len(values.variants) > 1 else ""
    return Figure(
        name=name,
        spec="grid",
        title=titled(f"{axis_title(title, unit)}, over iodepth and jobs{of}", panel),
        alt=f"Highest: {quantity(best.value, best.unit)} at iodepth {best_tile.depth}, "
        f"{plural(best_tile.jobs or 1, 'job')}.",
        about="A tile is a cell; darker (lighter on a dark page) is more. All variants have the same scale.",
        rows=rows,
        extra={"texts": rows if len(depths) <= NUMBERED else []},
        texts={
            "name": title,
            "levels": levels,
            "depths": list(map(str, depths)),
            "jobs": list(map(str, jobs)),
        },
        head=("iodepth", "jobs", title, "interval", "runs"),
        table=[
            (
                str(tile.depth),
                str(tile.jobs),
                quantity(value.value, value.unit),
                spans(value),
                str(value.runs),
            )
            for tile, value in grid
        ],
    )


def _levels(cuts: Sequence[float], unit: str) -> list[str]:
    """Return names of the colours, by their ends."""
    if not cuts:
        return ["all alike"]
    texts = [quantity(cut, unit, 3) for cut in cuts]
    middle = [f"{low} to {high}" for low, high in pairwise(texts)]
    return [f"below {texts[0]}", *middle, f"from {texts[-1]}"]


def _short(value: float) -> str:
    """Return a number for a tile, three digits: ``1.23k``, ``45.6``."""
    if value == 0 or not math.isfinite(value):
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return f"{_digits(value / size)}{letter}"
    return _digits(value)


def _digits(value: float) -> str:
    """Three significant digits, without an exponent where it is short enough."""
    text = f"{value:.3g}"
    if "e+" not in text:
        return text
    return f"{value:.0f}"
