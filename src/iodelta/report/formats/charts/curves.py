"""Curves: rate and latency over iodepth and over jobs, a line for each variant or for each of the other axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from iodelta.plural import plural
from iodelta.report.formats.charts.cells import (
    COLORS,
    NO_ZEROS,
    above_zero,
    axis_title,
    datum,
    metric_title,
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
    """One for each panel, axis, direction and metric."""
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
    """The curves of a panel, at most 7 in a chart, and what is left out of it."""
    other = "jobs" if axis == "depth" else "depth"
    names = variant_names(values)
    lines: dict[tuple[str, int | None], list[tuple[int, str]]] = {}
    for variant in values.variants:
        for place in places:
            at = getattr(place, axis)
            if at:
                lines.setdefault((variant, getattr(place, other)), []).append(
                    (at, place.cell)
                )
    lines = {key: sorted(own) for key, own in lines.items() if len(own) >= LEAST}
    others = list(dict.fromkeys(held for _, held in lines))
    if len(lines) <= COLORS or len(others) == 1:
        keys = list(lines)
        groups = [keys[begin : begin + COLORS] for begin in range(0, len(keys), COLORS)]
        left_out = ""
    else:
        kept = thinned(others, COLORS)
        groups = []
        for name in values.variants:
            groups.append([(name, held) for held in kept if (name, held) in lines])
        left_out = (
            f"Shown: {len(kept)} of {len(others)} curves of each variant."
            if len(kept) < len(others)
            else ""
        )
    for group in groups:
        variants = {variant for variant, _ in group}
        made = [
            Curve(
                name=_named(names, key, other, variants, len(others)),
                variant=key[0],
                points=tuple(lines[key]),
                held=key[1],
            )
            for key in group
        ]
        if made:
            alone = (
                f"{names[group[0][0]]}: "
                if len(variants) == 1 and len(values.variants) > 1
                else ""
            )
            yield made, f"{alone}{left_out}" if left_out else ""


def thinned(items: Sequence[int | None], most: int) -> list[int | None]:
    """At most ``most`` of them, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    step = (len(items) - 1) / (most - 1)
    return [items[round(at * step)] for at in range(most)]


def whose(panel: str, curves: Sequence[Curve], values: Values) -> str:
    """What a chart is of: with the variant where charts have one each."""
    variants = {curve.variant for curve in curves}
    if len(variants) != 1 or len(values.variants) == 1:
        return panel
    return ", ".join(filter(None, (panel, variant_names(values)[variants.pop()])))


def _named(
    names: Mapping[str, str],
    key: tuple[str, int | None],
    other: str,
    variants: set[str],
    others: int,
) -> str:
    """The variant where charts have several, the place on the other axis where there are several of those."""
    variant, held = key
    where = (
        ""
        if held is None
        else plural(held, "job")
        if other == "jobs"
        else f"iodepth {held}"
    )
    if others > 1 and where:
        if len(variants) > 1 or len(names) > 1:
            return f"{names[variant]}, {where}"
        return where
    return names[variant]


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
        for metric in (rate,) if crossed else (rate, *LATENCIES):
            swept = (
                bool(source.sweeps) and axis == "depth" and metric in ("iops", "mean")
            )
            held = values.of(kind, metric)
            own = list(chain.from_iterable(_points(curve, held) for curve in curves))
            # The chapter on depth has a sweep's IOPS and mean latency, with their knees.
            if len({at for _, at, _ in own}) >= LEAST and not swept:
                yield _figure(
                    source, values, panel, axis, kind, metric, own, note, number
                )


def _points(
    curve: Curve, held: Mapping[tuple[str, str], Value]
) -> Iterator[tuple[Curve, int, Value]]:
    for at, cell in curve.points:
        value = held.get((cell, curve.variant))
        if value is not None:
            yield curve, at, value


def _figure(
    source: Source,
    values: Values,
    panel: str,
    axis: str,
    kind: Kind,
    metric: str,
    own: Sequence[tuple[Curve, int, Value]],
    note: str,
    number: int,
) -> Figure:
    latency = metric in LATENCIES
    title = metric_title(metric, kind, values.kinds())
    wide = latency or wide_apart([value for _, _, value in own])
    log = source.logarithmic(wide, [value.value for _, _, value in own])
    size, unit = sized([value for _, _, value in own], log=log)
    rows = [
        datum(value, size, variant=inert(curve.name), depth=at, at=str(at))
        for curve, at, value in own
    ]
    shown_rows = above_zero(rows) if log else rows
    names = list(dict.fromkeys(inert(curve.name) for curve, _, _ in own))
    best = max(own, key=lambda point: point[2].value)
    shown = AXES[axis]
    where = f"iodepth {best[1]}" if axis == "depth" else plural(best[1], "job")
    most = f"Highest: {quantity(best[2].value, best[2].unit)} at {where}"
    return Figure(
        name=f"over-{axis}-{number}-{kind}-{metric}",
        spec="sweep-log" if log else "sweep",
        title=titled(
            f"{title} over {shown}",
            whose(panel, [curve for curve, _, _ in own], values),
        ),
        alt=f"{most} ({inert(best[0].name)})." if len(names) > 1 else f"{most}.",
        about="Medians over runs; the line at a point is its interval where there are several.",
        rows=shown_rows,
        texts={
            "x": shown,
            "y": axis_title(title, unit),
            "variants": names,
            "depths": sorted({at for _, at, _ in own}),
        },
        extra={"knees": []},
        head=(shown, "curve", "median", "interval", "runs"),
        table=[
            (
                str(at),
                inert(curve.name),
                quantity(value.value, value.unit),
                spans(value),
                str(value.runs),
            )
            for curve, at, value in own
        ],
        note=" ".join(
            filter(None, (note, NO_ZEROS if len(shown_rows) < len(rows) else ""))
        ),
    )
