"""Curves: rate and latency over iodepth and over jobs, a line for each variant or for each of the other axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import msgspec

from iodelta.plural import plural
from iodelta.report.formats.charts.cells import (
    COLORS,
    above_zero,
    axis_title,
    datum,
    metric_title,
    notes,
    rate_of,
    sized,
    spans,
    titled,
    variant_names,
    wide_apart,
)
from iodelta.report.formats.charts.model import Figure, Source
from iodelta.study.values import Place, Value, Values
from iodelta.study.words import inert, quantity
from iodelta.trial import Kind

LEAST = 3
"""Points of a curve."""

LATENCIES = ("mean", "p99")

AXES = {"depth": "iodepth", "jobs": "jobs"}


class Curve(msgspec.Struct, frozen=True):
    """One line: its name and its cells along the axis."""

    name: str
    variant: str
    points: tuple[tuple[int, str], ...]
    """Place on the axis, and cell."""
    held: int | None = None
    """Place on the other axis."""


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each panel, axis, direction and metric."""
    values = source.values
    if values is None:
        return
    number = 0
    for panel, places in values.panels().items():
        for axis in AXES:
            for curves, note in curve_groups(values, places, axis):
                number += 1
                yield from _figures(source, values, panel, axis, curves, note, number)


def curve_groups(
    values: Values, places: Sequence[Place], axis: str
) -> Iterator[tuple[list[Curve], str]]:
    """Yield the curves of a panel, at most 7 in a chart, and what is left out of it."""
    other = "jobs" if axis == "depth" else "depth"
    names = variant_names(values)
    lines: dict[tuple[str, int | None], list[tuple[int, str]]] = {}
    for variant, place in product(values.variants, places):
        coordinate = getattr(place, axis)
        if coordinate:
            line = lines.setdefault((variant, getattr(place, other)), [])
            line.append((coordinate, place.cell))
    lines = {key: sorted(line) for key, line in lines.items() if len(line) >= LEAST}
    others = list(dict.fromkeys(held for _, held in lines))
    groups, left_out = _groups(list(lines), others, values.variants)
    for group in filter(None, groups):
        note = left_out
        variants = {variant for variant, _ in group}
        if note and len(variants) == 1 and len(values.variants) > 1:
            note = f"{names[group[0][0]]}: {note}"
        curves = [
            Curve(
                name=_named(names, key, other, len(others)),
                variant=key[0],
                points=tuple(lines[key]),
                held=key[1],
            )
            for key in group
        ]
        yield curves, note


Line = tuple[str, int | None]
"""A curve's variant, and its place on the other axis."""


def _groups(
    lines: Sequence[Line], others: Sequence[int | None], variants: Sequence[str]
) -> tuple[list[list[Line]], str]:
    """Return the curves of each chart, and what is left out: a chart for each variant where one chart cannot hold all."""
    if len(lines) <= COLORS or len(others) == 1:
        begins = range(0, len(lines), COLORS)
        return [list(lines[begin : begin + COLORS]) for begin in begins], ""
    kept = thinned(others, COLORS)
    known = set(lines)
    groups = []
    for variant in variants:
        groups.append([(variant, held) for held in kept if (variant, held) in known])
    if len(kept) == len(others):
        return groups, ""
    return groups, f"Shown: {len(kept)} of {len(others)} curves of each variant."


def thinned(items: Sequence[int | None], most: int) -> list[int | None]:
    """At most ``most`` of them, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    step = (len(items) - 1) / (most - 1)
    return [items[round(at * step)] for at in range(most)]


def whose(panel: str, curves: Sequence[Curve], values: Values) -> str:
    """Return what a chart is of: with the variant where charts have one each."""
    variants = {curve.variant for curve in curves}
    if len(variants) != 1 or len(values.variants) == 1:
        return panel
    return ", ".join(filter(None, (panel, variant_names(values)[variants.pop()])))


def _named(
    names: Mapping[str, str], key: tuple[str, int | None], other: str, others: int
) -> str:
    """Return the variant where there are several, the place on the other axis where there are several of those."""
    variant, held = key
    if others < 2 or held is None:
        return names[variant]
    where = plural(held, "job") if other == "jobs" else f"iodepth {held}"
    if len(names) > 1:
        return f"{names[variant]}, {where}"
    return where


def _figures(
    source: Source,
    values: Values,
    panel: str,
    axis: str,
    curves: list[Curve],
    note: str,
    number: int,
) -> Iterator[Figure]:
    for kind in values.kinds():
        rate = rate_of(values, kind)
        # Over iodepth it was drawn.
        crossed = axis == "jobs" and len({curve.held for curve in curves}) > 1
        metrics = [rate] if crossed else [rate, *LATENCIES]
        if source.sweeps and axis == "depth":
            # The chapter on depth has a sweep's IOPS and mean latency, with their knees.
            metrics = [metric for metric in metrics if metric not in ("iops", "mean")]
        for metric in metrics:
            by_arm = values.of(kind, metric)
            points: list[Point] = []
            for curve in curves:
                points += _points(curve, by_arm)
            if len({place for _, place, _ in points}) >= LEAST:
                yield _figure(
                    source, values, panel, axis, kind, metric, points, note, number
                )


Point = tuple[Curve, int, Value]
"""A value with its curve, and its place on the axis."""


def _points(curve: Curve, by_arm: Mapping[tuple[str, str], Value]) -> Iterator[Point]:
    for place, cell in curve.points:
        value = by_arm.get((cell, curve.variant))
        if value is not None:
            yield curve, place, value


def _figure(
    source: Source,
    values: Values,
    panel: str,
    axis: str,
    kind: Kind,
    metric: str,
    points: Sequence[Point],
    note: str,
    number: int,
) -> Figure:
    title = metric_title(metric, kind, values.kinds())
    drawn = [value for _, _, value in points]
    log = source.logarithmic(
        metric in LATENCIES or wide_apart(drawn), [value.value for value in drawn]
    )
    size, unit = sized(drawn, log=log)
    rows = [
        datum(value, size, variant=inert(curve.name), depth=place, at=str(place))
        for curve, place, value in points
    ]
    shown_rows = above_zero(rows) if log else rows
    names = list(dict.fromkeys(inert(curve.name) for curve, _, _ in points))
    best_curve, best_place, best = max(points, key=lambda point: point[2].value)
    shown = AXES[axis]
    where = f"iodepth {best_place}" if axis == "depth" else plural(best_place, "job")
    highest = f"Highest: {quantity(best.value, best.unit)} at {where}"
    return Figure(
        name=f"over-{axis}-{number}-{kind}-{metric}",
        spec="sweep-log" if log else "sweep",
        title=titled(
            f"{title} over {shown}",
            whose(panel, [curve for curve, _, _ in points], values),
        ),
        alt=f"{highest} ({inert(best_curve.name)})."
        if len(names) > 1
        else f"{highest}.",
        about="Medians over runs; the line at a point is its interval where there are several.",
        rows=shown_rows,
        texts={
            "x": shown,
            "y": axis_title(title, unit),
            "variants": names,
            "depths": sorted({place for _, place, _ in points}),
        },
        extra={"knees": []},
        head=(shown, "curve", "median", "interval", "runs"),
        table=[
            (
                str(place),
                inert(curve.name),
                quantity(value.value, value.unit),
                spans(value),
                str(value.runs),
            )
            for curve, place, value in points
        ],
        note=notes(note, shown_rows, rows),
    )
