"""Sweep: rate and latency over the depth, with the knee where more depth buys latency and no more IOPS."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from statistics import median
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.charts.cells import axis_title, numbered
from iodelta.report.formats.charts.model import Figure, Source, label, number
from iodelta.study.units import axis_unit
from iodelta.study.words import metric_name, quantity
from iodelta.verdict import Metric
from iodelta.verdict.derived import Knee, KneeMove
from iodelta.verdict.metrics import reader

if TYPE_CHECKING:
    import altair as alt


def chart(*, log: bool = False) -> alt.LayerChart:
    """Medians over blocks with the range of their middle half; the knee as a ring on the curve, with its interval."""
    import altair as alt

    from iodelta.report.formats.charts import build

    axis = alt.Axis(values=["@depths"], format="d", grid=False)
    depth = alt.X(
        field="depth",
        type="quantitative",
        title="@x",
        scale=alt.Scale(type="log", base=2, nice=False, padding=20),
        axis=axis,
    )
    value = build.y("value", zero=not log, log=log)
    tips = build.tips("variant", "at=@x", "said=@y", "interval", "runs")
    lines = build.by_variant(line=True, gap=build.TALL)
    line = alt.Chart().mark_line().encode(x=depth, y=value, **lines)
    span = (
        alt.Chart()
        .mark_rule(strokeWidth=1.2)
        .encode(
            x=depth,
            y=build.y("low", zero=not log, log=log),
            y2=alt.Y2("high"),
            color=lines["color"],
        )
    )
    point = (
        alt.Chart()
        .mark_point(filled=True, size=52)
        .encode(x=depth, y=value, tooltip=tips, **build.by_variant(gap=build.TALL))
    )
    level = build.y("level", zero=not log, log=log)
    reach = (
        alt.Chart(build.data("knees"))
        .mark_rule(strokeWidth=1.2)
        .encode(
            x=alt.X(field="low", type="quantitative"),
            x2=alt.X2("high"),
            y=level,
            color=lines["color"],
        )
    )
    knee = (
        alt.Chart(build.data("knees"))
        .mark_point(size=190, shape="circle", filled=False, strokeWidth=1.6)
        .encode(
            x=alt.X(field="knee", type="quantitative"),
            y=level,
            tooltip=build.tips("variant", "said=knee"),
            color=lines["color"],
        )
    )
    return build.layered(reach, line, span, point, knee, height=250)


def figures(source: Source) -> Iterator[Figure]:
    """Rate and mean latency of every sweep."""
    metrics = [
        metric
        for metric in source.metrics
        if metric.name.endswith((".iops", ".bandwidth", ".mean"))
    ]
    for (place, depths), metric in product(enumerate(source.sweeps, 1), metrics):
        rows = _values(source, depths, metric)
        if rows:
            name = numbered(f"sweep-{metric.name}", place, len(source.sweeps))
            yield _figure(source, depths, metric, rows, name)


Row = tuple[str, str, float, float, float]
"""Cell, variant, median over blocks, and the ends of its middle half."""


def _figure(
    source: Source,
    depths: Mapping[str, int],
    metric: Metric,
    rows: Sequence[Row],
    figure_name: str,
) -> Figure:
    latency = metric.name.endswith(".mean")
    size, unit = axis_unit(metric.unit, max(high for *_, high in rows))
    counts = Counter((trial.cell, trial.variant) for trial in source.trials)
    name = metric_name(metric, with_kind=True)
    log = source.logarithmic(latency, [middle for _, _, middle, _, _ in rows])
    knees = [] if latency else _knees(source, metric, depths)
    for row in knees:
        curve = [
            (depths[cell], middle / size)
            for cell, variant, middle, _, _ in rows
            if label(variant) == row["variant"]
        ]
        row["level"] = number(_at(curve, row["knee"], log=log))
    places = sorted(set(depths.values()))
    seen = f"At {', '.join(map(str, places))} I/Os in flight."
    if knees:
        text = "; ".join(f"{label(row['variant'])} {row['said']}" for row in knees)
        seen = f"Knee: {text}."
    several = f": {label(_common(depths))}" if len(source.sweeps) > 1 else ""
    return Figure(
        name=figure_name,
        spec="sweep-log" if log else "sweep",
        title=f"{name} over depth{several}",
        alt=seen,
        about="Medians over blocks with the range of their middle half. A ring marks the knee, beyond which more depth "
        "adds latency but no IOPS; the line through it is its interval.",
        rows=[
            {
                "variant": label(variant),
                "depth": depths[cell],
                "at": str(depths[cell]),
                "value": number(middle / size),
                "low": number(low / size),
                "high": number(high / size),
                "said": quantity(middle, metric.unit),
                "interval": f"{quantity(low, metric.unit)} .. {quantity(high, metric.unit)} (middle half)",
                "runs": str(counts[cell, variant]),
            }
            for cell, variant, middle, low, high in rows
        ],
        texts={
            "x": "I/Os in flight",
            "y": axis_title(name, unit),
            "variants": list(map(label, source.variants)),
            "depths": places,
        },
        extra={"knees": knees},
        head=("I/Os in flight", "variant", "median", "middle half"),
        table=[
            (
                str(depths[cell]),
                label(variant),
                quantity(middle, metric.unit),
                f"{quantity(low, metric.unit)} .. {quantity(high, metric.unit)}",
            )
            for cell, variant, middle, low, high in rows
        ],
    )


def _values(source: Source, depths: Mapping[str, int], metric: Metric) -> list[Row]:
    """Return the medians of a sweep, variant after variant, each in the order of depth."""
    read = reader(metric)
    values: dict[tuple[str, str], list[float]] = {}
    for trial in source.trials:
        if trial.cell in depths:
            value = read(trial)[0]
            if math.isfinite(value) and value > 0:
                values.setdefault((trial.cell, trial.variant), []).append(value)
    rows = []
    cells = sorted(depths, key=depths.__getitem__)
    for variant, cell in product(source.variants, cells):
        ordered = sorted(values.get((cell, variant), ()))
        if ordered:
            quarter = len(ordered) // 4
            middle_half = (ordered[quarter], ordered[-1 - quarter])
            rows.append((cell, variant, median(ordered), *middle_half))
    return rows


def _knees(
    source: Source, metric: Metric, depths: Mapping[str, int]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    moves = [move for move in source.knees if move.metric == metric]
    if len(source.sweeps) > 1:  # moves stand in the order of the sweeps
        per = max(1, len(moves) // len(source.sweeps))
        at = list(map(dict, source.sweeps)).index(dict(depths))
        moves = moves[at * per : (at + 1) * per]
    last = max(depths.values())
    for variant, knee in dict(_each(moves)).items():
        rows.append(
            {
                "variant": label(variant),
                "knee": number(min(knee.depth, last)),
                "low": number(max(knee.low, min(depths.values()))),
                "high": number(min(knee.high, last)),
                "said": f"{knee.depth:.3g} ({knee.low:.3g}-{knee.high:.3g})",
            }
        )
    return rows


def _at(curve: Sequence[tuple[int, float]], depth: float, *, log: bool) -> float:
    """Return the height of a curve at a depth, between its points as they are drawn: over the logarithm of the depth."""
    for (before, low), (after, high) in pairwise(curve):
        if before <= depth <= after:
            share = math.log(depth / before) / math.log(after / before)
            return low * (high / low) ** share if log else low + (high - low) * share
    return curve[-1][1] if curve else math.nan


def _each(moves: list[KneeMove]) -> Iterator[tuple[str, Knee]]:
    for move in moves:
        for variant, knee in ((move.baseline, move.before), (move.variant, move.after)):
            if knee is not None:
                yield variant, knee


def _common(depths: Mapping[str, int]) -> str:
    """Return what the names of a sweep's cells have in common besides the depth."""
    first = next(iter(depths))
    words = first.replace(",", " ").split()
    rest = [word for word in words if not word.startswith("iodepth")]
    return " ".join(rest).strip(" :,") or first
