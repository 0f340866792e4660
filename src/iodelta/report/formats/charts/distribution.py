"""Distribution: how many I/Os took how long, all blocks together, one line per variant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from iodelta.report.formats.charts.model import Figure, Source, label, number, some
from iodelta.study.units import axis_unit
from iodelta.study.words import quantity
from iodelta.trial import BINS, Direction, Histogram, Kind, Trial, bin_edges

if TYPE_CHECKING:
    import altair as alt

PER_OCTAVE = 8
"""Steps of the line for each doubling of latency: fio's own 64 are finer than the eye."""

LEAST = 1e-5
"""The axis of shares begins here: below one I/O in 100 000 the shape of a tail says nothing."""

POINTS = (0.5, 0.9, 0.99, 0.999)


def chart() -> alt.LayerChart:
    """Share of I/Os per step of latency, both axes logarithmic, so that the tail is seen."""
    import altair as alt

    from iodelta.report.formats.charts import build

    line = alt.Chart().mark_line(interpolate="step-after", strokeWidth=1.6)
    return build.layered(
        line.encode(
            x=build.x("latency", log=True, format=",~g", tickCount=6, grid=False),
            y=build.y(
                "share",
                "share of I/Os, %",
                log=True,
                format=",~g",
                values=[0.001, 0.01, 0.1, 1, 10, 100],
            ),
            **build.by_variant(line=True, shape=False, gap=build.TALL),
        ),
        height=210,
    )


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each telling cell and direction whose bins were kept."""
    cells = source.by_cell()
    known = [cell for cell, trials in cells.items() if _kinds(trials)]
    shown = source.telling(among=known)
    note = some("cells", len(shown), len(known), compared=bool(source.effects))
    for cell in shown:
        for kind in _kinds(cells[cell]):
            yield _figure(source, cell, kind, cells[cell], note)


def bins_of(direction: Direction) -> Histogram | None:
    """Return the bins of total latency, else those of completion latency, which are fio's unless it is asked for
    others.
    """
    for latency in (direction.lat, direction.clat):
        if (
            latency is not None
            and latency.histogram is not None
            and latency.histogram.total
        ):
            return latency.histogram
    return None


def histogram(trials: Sequence[Trial], kind: Kind, variant: str) -> Histogram | None:
    """Return all kept bins of a variant together: total latency, else completion latency."""
    parts = []
    for trial in trials:
        direction = trial.direction(kind) if trial.variant == variant else None
        if direction is not None:
            bins = bins_of(direction)
            if bins is not None:
                parts.append(bins)
    if not parts:
        return None
    # A merge one by one takes a third of a report's time.
    counts = np.zeros(BINS, dtype=np.int64)
    for part in parts:
        counts[list(part.indexes)] += np.asarray(part.counts, dtype=np.int64)
    (held,) = counts.nonzero()
    return Histogram(tuple(held.tolist()), tuple(counts[held].tolist()))


def _kinds(trials: Sequence[Trial]) -> list[Kind]:
    kinds: dict[Kind, None] = {}
    for trial in trials:
        for direction in trial.directions:
            if bins_of(direction) is not None:
                kinds[direction.kind] = None
    return list(kinds)


def _figure(
    source: Source, cell: str, kind: Kind, trials: Sequence[Trial], note: str
) -> Figure:
    held = {variant: histogram(trials, kind, variant) for variant in source.variants}
    known = {variant: bins for variant, bins in held.items() if bins is not None}
    points = []
    for variant, bins in known.items():
        points += [(variant, at, share) for at, share in _steps(bins)]
    ends = [at for _, at, _ in points]
    size, unit = axis_unit("ns", max(ends), min(ends))
    directions = chain.from_iterable(trial.directions for trial in trials)
    several = len({direction.kind for direction in directions}) > 1
    rows = [
        {
            "variant": label(variant),
            "latency": number(at / size, 4),
            "share": number(100 * share, 4),
        }
        for variant, at, share in points
    ]
    medians = [
        f"{label(name)} {quantity(bins.quantile(0.5), 'ns')}"
        for name, bins in known.items()
    ]
    return Figure(
        name=f"distribution-{kind}-{place(source, cell)}",
        spec="distribution",
        title=f"{label(cell)}{f', {kind}' if several else ''}",
        alt=f"{'Medians' if len(medians) > 1 else 'Median'}: {', '.join(medians)}.",
        about=f"How many I/Os took how long, all runs together, {PER_OCTAVE} steps to a doubling; both axes are "
        "logarithmic so that the tail is seen.",
        rows=rows,
        texts={
            "x": f"{kind} latency, {unit}",
            "variants": list(map(label, source.variants)),
        },
        head=("variant", "I/Os", *(f"p{100 * p:g}" for p in POINTS)),
        table=[
            (label(variant), f"{bins.total:,}", *_points(bins))
            for variant, bins in known.items()
        ],
        note=note,
    )


def _points(bins: Histogram) -> Iterator[str]:
    """Yield the percentiles with at least 100 I/Os beyond them."""
    for p in POINTS:
        yield (
            quantity(bins.quantile(p), "ns")
            if bins.total * (1 - p) >= 100
            else "too few I/Os"
        )


def place(source: Source, cell: str) -> str:
    """Return a cell's number, for the names of files: its own name may be anything."""
    if cell not in source.cells:
        return "000"
    return f"{source.cells.index(cell) + 1:03d}"


def _steps(bins: Histogram) -> Iterator[tuple[float, float]]:
    """(latency in ns where a step begins, share of I/Os in it); the last ends the line."""
    step_of = _step_of_bins()
    counts: dict[int, float] = {}
    for index, count in zip(bins.indexes, bins.counts, strict=True):
        counts[step_of[index]] = counts.get(step_of[index], 0.0) + count
    first, last = min(counts), max(counts)
    for step in range(first, last + 1):
        share = counts.get(step, 0.0) / bins.total
        yield 2 ** (step / PER_OCTAVE), max(share, LEAST)
    yield 2 ** ((last + 1) / PER_OCTAVE), LEAST


@cache
def _step_of_bins() -> tuple[int, ...]:
    """Return the step of the line that each of fio's bins falls into, by its centre."""
    centres = (sum(bin_edges(index)) / 2 for index in range(BINS))
    return tuple(
        math.floor(PER_OCTAVE * math.log2(max(1.0, centre))) for centre in centres
    )
