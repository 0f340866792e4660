"""Depth and jobs: curves of rate and latency with the knees of sweeps, latency against IOPS, and tiles of both axes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

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
from iodelta.report.formats.charts.model import (
    Figure,
    Source,
    number,
    tabled,
)
from iodelta.study.values import Place, Value, Values
from iodelta.study.words import inert, quantity
from iodelta.trial import Kind
from iodelta.verdict.derived import Knee

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


class Group(msgspec.Struct, frozen=True):
    """The curves of one chart, and what is left out of it."""

    panel: str
    axis: str
    curves: tuple[Curve, ...]
    note: str
    number: int


def _groups(values: Values, axes: Sequence[str]) -> Iterator[Group]:
    """Yield the curves of each panel over those of ``axes`` that have some, at most 7 in a chart."""
    names = variant_names(values)
    count = 0
    for (panel, places), axis in product(values.panels().items(), axes):
        other = "jobs" if axis == "depth" else "depth"
        lines: dict[tuple[str, int | None], list[tuple[int, str]]] = {}
        for variant, place in product(values.variants, places):
            coordinate = getattr(place, axis)
            if coordinate:
                line = lines.setdefault((variant, getattr(place, other)), [])
                line.append((coordinate, place.cell))
        lines = {key: sorted(line) for key, line in lines.items() if len(line) >= LEAST}
        others = list(dict.fromkeys(held for _, held in lines))
        keys, left_out = list(lines), ""
        if len(keys) <= COLORS or len(others) == 1:
            begins = range(0, len(keys), COLORS)
            groups = [keys[begin : begin + COLORS] for begin in begins]
        else:
            # One chart cannot hold all: each variant gets its own, with the first and the last of its curves.
            kept = others
            if len(others) > COLORS:
                step = (len(others) - 1) / (COLORS - 1)
                kept = [others[round(at * step)] for at in range(COLORS)]
                left_out = f"Shown: {COLORS} of {len(others)} curves of each variant."
            groups = [
                [(variant, held) for held in kept if (variant, held) in lines]
                for variant in values.variants
            ]
        for group in filter(None, groups):
            note = left_out
            if note and len({v for v, _ in group}) == 1 and len(values.variants) > 1:
                note = f"{names[group[0][0]]}: {note}"
            curves = []
            for key in group:
                variant, held = key
                name = names[variant]
                if len(others) > 1 and held is not None:
                    name = plural(held, "job") if other == "jobs" else f"iodepth {held}"
                    name = f"{names[variant]}, {name}" if len(names) > 1 else name
                curves.append(Curve(inert(name), variant, tuple(lines[key]), held))
            count += 1
            yield Group(panel, axis, tuple(curves), note, count)


def _titled(title: str, group: Group, values: Values, curves: Sequence[Curve]) -> str:
    """Return the title of a chart; with the variant where charts have one each."""
    variants = {curve.variant for curve in curves}
    panel = group.panel
    if len(variants) == 1 and len(values.variants) > 1:
        name = variant_names(values)[variants.pop()]
        panel = ", ".join(filter(None, (panel, name)))
    return titled(title, panel)


def curves(source: Source) -> Iterator[Figure]:
    """Yield rate and latency over each axis, for each panel and direction: a line for each variant, or for each place on
    the other axis."""
    values = source.values
    if values is None:
        return
    for group in _groups(values, tuple(AXES)):
        # Over iodepth it was drawn.
        held = {curve.held for curve in group.curves}
        crossed = group.axis == "jobs" and len(held) > 1
        for kind in values.kinds():
            rate = rate_of(values, kind)
            for metric in (rate,) if crossed else (rate, *LATENCIES):
                by_arm = values.of(kind, metric)
                points = [
                    (curve, place, by_arm[cell, curve.variant])
                    for curve in group.curves
                    for place, cell in curve.points
                    if (cell, curve.variant) in by_arm
                ]
                if len({place for _, place, _ in points}) >= LEAST:
                    yield _curved(source, values, group, kind, metric, points)


Point = tuple[Curve, int, Value]
"""A value with its curve, and its place on the axis."""


def _curved(
    source: Source,
    values: Values,
    group: Group,
    kind: Kind,
    metric: str,
    points: Sequence[Point],
) -> Figure:
    title = metric_title(metric, kind, values.kinds())
    drawn = [value for _, _, value in points]
    chosen = metric in LATENCIES or wide_apart(drawn)
    log = source.logarithmic(chosen, [value.value for value in drawn])
    size, unit = sized(drawn, log=log)
    rows = [
        datum(value, size, variant=curve.name, depth=place, at=str(place))
        for curve, place, value in points
    ]
    shown_rows = above_zero(rows) if log else rows
    names = list(dict.fromkeys(curve.name for curve, _, _ in points))
    best_curve, best_place, best = max(points, key=lambda point: point[2].value)
    shown = AXES[group.axis]
    where = plural(best_place, "job") if shown == "jobs" else f"iodepth {best_place}"
    seen = f"Highest: {quantity(best.value, best.unit)} at {where}"
    seen += f" ({best_curve.name})." if len(names) > 1 else "."
    about = "Medians over runs; the line at a point is its interval where there are several."
    knees: list[dict[str, Any]] = []
    if group.axis == "depth":
        knees = list(_knees(source, f"{kind}.{metric}", points, size, log=log))
    if knees:
        said = "; ".join(f"{knee['variant']} {knee['said']}" for knee in knees)
        seen = f"Knee: {said}. {seen}"
        about += (
            " A ring marks the knee, beyond which more depth adds latency but no IOPS; the line through it is its "
            "interval."
        )
    return Figure(
        name=f"over-{group.axis}-{group.number}-{kind}-{metric}",
        spec="sweep-log" if log else "sweep",
        title=_titled(
            f"{title} over {shown}", group, values, [curve for curve, _, _ in points]
        ),
        alt=seen,
        about=about,
        rows=shown_rows,
        texts={
            "x": shown,
            "y": axis_title(title, unit),
            "variants": names,
            "depths": sorted({place for _, place, _ in points}),
        },
        extra={"knees": knees},
        note=notes(group.note, shown_rows, rows),
        **tabled(
            rows,
            at=shown,
            variant="curve",
            said="median",
            interval="interval",
            runs="runs",
        ),
    )


def _knees(
    source: Source, metric: str, points: Sequence[Point], size: float, *, log: bool
) -> Iterator[dict[str, Any]]:
    """Yield the knee of every curve that is a sweep of an experiment, at its height on the curve as it is drawn."""
    moves = [move for move in source.knees if move.metric.name == metric]
    per = max(1, len(moves) // max(1, len(source.sweeps)))
    for at, sweep in enumerate(source.sweeps):  # moves stand in the order of the sweeps
        knees: dict[str, Knee | None] = {}
        for move in moves[at * per : (at + 1) * per]:
            knees |= {move.baseline: move.before, move.variant: move.after}
        for curve in dict.fromkeys(curve for curve, _, _ in points):
            knee = knees.get(curve.variant)
            place, cell = curve.points[0]
            if knee is None or cell not in sweep:
                continue
            jobs = sweep[cell] / place  # a sweep counts the I/Os of all jobs
            own = [(x, value.value / size) for c, x, value in points if c == curve]
            first, last = own[0][0], own[-1][0]
            depth = min(knee.depth / jobs, last)
            level = own[-1][1]
            for (before, low), (after, high) in pairwise(own):
                if before <= depth <= after:
                    share = math.log(depth / before) / math.log(after / before)
                    level = low + (high - low) * share
                    if log:
                        level = low * (high / low) ** share
                    break
            said = (knee.depth / jobs, knee.low / jobs, knee.high / jobs)
            yield {
                "variant": curve.name,
                "knee": number(depth),
                "low": number(max(said[1], first)),
                "high": number(min(said[2], last)),
                "said": "{:.3g} ({:.3g}-{:.3g})".format(*said),
                "level": number(level),
            }


NEAR = (0.09, 0.08)
"""Shares of the axes within which the labels of two points would meet, on the narrowest screen."""

Pair = tuple[Curve, int, Value, Value]
"""A curve's point: its depth, its IOPS, its latency."""


def against_rate(source: Source) -> Iterator[Figure]:
    """Yield latency against IOPS along a rising depth, or along jobs where only these vary: where the curve turns up,
    more of it buys latency and no IOPS."""
    values = source.values
    if values is None:
        return
    varies: dict[str, str] = {}
    for panel, places in values.panels().items():
        for axis in reversed(AXES):
            if len({getattr(place, axis) for place in places} - {None}) >= LEAST:
                varies[panel] = axis
    count = 0
    for group in _groups(values, tuple(AXES)):
        if varies.get(group.panel) != group.axis:
            continue
        count += 1
        for kind, latency in product(values.kinds(), LATENCIES):
            rates, times = values.of(kind, "iops"), values.of(kind, latency)
            pairs = []
            for curve in group.curves:
                for place, cell in curve.points:
                    arm = (cell, curve.variant)
                    if arm in rates and arm in times and times[arm].value > 0:
                        pairs.append((curve, place, rates[arm], times[arm]))
            if len(pairs) >= LEAST:
                yield _against(source, values, group, kind, latency, pairs, count)


def _against(
    source: Source,
    values: Values,
    group: Group,
    kind: Kind,
    latency: str,
    pairs: Sequence[Pair],
    count: int,
) -> Figure:
    own_curves, _, rates_of, times_of = zip(*pairs, strict=True)
    rates = [rate.value for rate in rates_of]
    times = [time.value for time in times_of]
    log = source.logarithmic(True, times)
    wide = source.logarithmic(wide_apart(rates_of), rates)
    title = metric_title(latency, kind, values.kinds())
    size, unit = sized(times_of, log=log)
    names = list(dict.fromkeys(curve.name for curve in own_curves))
    _, most_depth, most, its_time = max(pairs, key=lambda pair: pair[2].value)
    every = [
        datum(
            time,
            size,
            variant=curve.name,
            depth=place,
            at=str(place),
            rate=number(rate.value),
            rated=quantity(rate.value, "IOPS"),
        )
        for curve, place, rate, time in pairs
    ]
    rows = [row for row in every if row["rate"] > 0 or not wide]
    top = max(rates)
    frame = [0.0, number(1.06 * top, 4) or 1]
    if wide:
        low = min(rate for rate in rates if rate > 0)
        frame = [number(low / 1.5, 4) or low, number(1.5 * top, 4) or top]
    axis = AXES[group.axis]
    of_first = [row for row in rows if row["variant"] == names[0]]
    return Figure(
        name=f"knee-{count}-{kind}-{latency}",
        spec="knee" + "-log" * log + "-wide" * wide,
        title=_titled(f"{title} against IOPS", group, values, own_curves),
        alt=f"Most IOPS: {quantity(most.value, 'IOPS')} at {axis} {most_depth}, "
        f"with {title} {quantity(its_time.value, 'ns')}.",
        about=f"Each point is a cell, joined in the order of {axis}; points of the first curve are "
        "labelled where there is room. Where a curve turns up, more of it adds latency but no IOPS.",
        rows=rows,
        extra={"marks": list(_labelled(of_first, frame, log=log, wide=wide))},
        texts={
            "x": "IOPS",
            "frame": frame,
            "heights": [0, number(1.15 * max(times) / size, 4)],
            "y": axis_title(title, unit),
            "axis": axis,
            "variants": names,
        },
        note=notes(group.note, rows, pairs),
        **tabled(every, at=axis, variant="curve", rated="IOPS", said=title),
    )


def _labelled(
    rows: Sequence[dict[str, Any]], frame: Sequence[float], *, log: bool, wide: bool
) -> Iterator[dict[str, Any]]:
    """Yield the points of a curve that have room for a label, the deepest first."""
    across = _shares([row["rate"] for row in rows], frame, log=wide)
    heights = [row["value"] for row in rows]
    up = _shares(heights, [min(heights) if log else 0.0, max(heights)], log=log)
    taken: list[tuple[float, float]] = []
    points = zip(rows, across, up, strict=True)
    for row, x, y in sorted(points, key=lambda point: -point[0]["depth"]):
        if all(
            abs(x - left) > NEAR[0] or abs(y - top) > NEAR[1] for left, top in taken
        ):
            taken.append((x, y))
            yield {**row, "first": x < NEAR[0]}


def _shares(
    values: Sequence[float], ends: Sequence[float], *, log: bool
) -> list[float]:
    """Where values lie on an axis: 0 at its beginning, 1 at its end."""
    place = math.log if log else float
    low, high = map(place, ends)
    return [(place(value) - low) / ((high - low) or 1.0) for value in values]


LEVELS = 6
"""Colours of tiles; each is lighter or darker than the one before, so that the order is seen without colour vision."""

TILES = 6
"""Tiles that make a grid."""

NUMBERED = 16
"""Columns with numbers in their tiles; narrower ones have no room."""


def tiles(source: Source) -> Iterator[Figure]:
    """Yield a value over both axes, a tile for each cell with its number in it: for each panel, direction, metric and
    variant."""
    values = source.values
    if values is None:
        return
    count = 0
    for panel, every in values.panels().items():
        places = [place for place in every if None not in (place.depth, place.jobs)]
        axes = ({place.depth for place in places}, {place.jobs for place in places})
        if min(map(len, axes)) < 2 or len(places) < TILES:
            continue
        count += 1
        for kind, metric in product(values.kinds(), ("iops", *LATENCIES)):
            by_arm = values.of(kind, metric)
            positive = [v.value for v in by_arm.values() if v.value > 0]
            low, high = min(positive, default=0.0), max(positive, default=0.0)
            # Equal steps would give most values the first colour.
            log = source.logarithmic(high > 20 * low, positive)
            # One colour ends and the next begins at the same values for all variants.
            steps = [step / LEVELS for step in range(1, LEVELS)] if low < high else []
            cuts = [
                low * (high / low) ** step if log else low + (high - low) * step
                for step in steps
            ]
            for number_, variant in enumerate(values.variants, 1):
                grid = [
                    (place, by_arm[place.cell, variant])
                    for place in places
                    if (place.cell, variant) in by_arm
                ]
                if grid:
                    name = f"grid-{count}-{kind}-{metric}-{number_}"
                    title = metric_title(metric, kind, values.kinds())
                    yield _grid(values, panel, title, variant, grid, cuts, name)


def _grid(
    values: Values,
    panel: str,
    title: str,
    variant: str,
    grid: Sequence[tuple[Place, Value]],
    cuts: Sequence[float],
    name: str,
) -> Figure:
    size, unit = sized([value for _, value in grid])
    shown = variant_names(values)[variant]
    # The colours are named by their ends.
    texts = [quantity(cut, grid[0][1].unit, 3) for cut in cuts]
    levels = ["all alike"]
    if texts:
        middle = [f"{low} to {high}" for low, high in pairwise(texts)]
        levels = [f"below {texts[0]}", *middle, f"from {texts[-1]}"]
    depths = sorted({place.depth or 0 for place, _ in grid})
    rows = [
        {
            "variant": shown,
            "depth": str(place.depth),
            "jobs": str(place.jobs),
            "level": levels[bisect_right(cuts, value.value)],
            "text": _short(value.value / size),
            "said": quantity(value.value, value.unit),
            "interval": spans(value),
            "runs": str(value.runs),
        }
        for place, value in grid
    ]
    best_place, best = max(grid, key=lambda pair: pair[1].value)
    of = f", {shown}" if len(values.variants) > 1 else ""
    return Figure(
        name=name,
        spec="grid",
        title=titled(f"{axis_title(title, unit)}, over iodepth and jobs{of}", panel),
        alt=f"Highest: {quantity(best.value, best.unit)} at iodepth {best_place.depth}, "
        f"{plural(best_place.jobs or 1, 'job')}.",
        about="A tile is a cell; darker (lighter on a dark page) is more. All variants have the same scale.",
        rows=rows,
        extra={"texts": rows if len(depths) <= NUMBERED else []},
        texts={
            "name": title,
            "levels": levels,
            "depths": list(map(str, depths)),
            "jobs": list(map(str, sorted({place.jobs or 0 for place, _ in grid}))),
        },
        **tabled(
            rows,
            depth="iodepth",
            jobs="jobs",
            said=title,
            interval="interval",
            runs="runs",
        ),
    )


def _short(value: float) -> str:
    """Return a number for a tile, three digits: ``1.23k``, ``45.6``."""
    if value == 0 or not math.isfinite(value):
        return "0"
    letter = ""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            value, letter = value / size, name
            break
    text = f"{value:.3g}"
    return f"{value:.0f}{letter}" if "e+" in text else f"{text}{letter}"
