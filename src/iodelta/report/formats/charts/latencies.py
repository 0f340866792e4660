"""Distribution: how many I/Os took how long, all blocks together, one line per variant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

import numpy as np

from iodelta.report.formats.charts.model import Figure, Source, label, number, some
from iodelta.study.units import axis_unit
from iodelta.study.words import quantity
from iodelta.trial import BINS, Direction, Histogram, Kind, Trial, bin_edges

PER_OCTAVE = 8
"""Steps of the line for each doubling of latency: fio's own 64 are finer than the eye."""

LEAST = 1e-5
"""The axis of shares begins here: below one I/O in 100 000 the shape of a tail says nothing."""

POINTS = (0.5, 0.9, 0.99, 0.999)


def distributions(source: Source) -> Iterator[Figure]:
    """Yield one for each telling cell and direction whose bins were kept."""
    cells = source.by_cell()
    kinds = {cell: _kinds(trials) for cell, trials in cells.items()}
    known = [cell for cell, own in kinds.items() if own]
    shown = source.telling(among=known)
    note = some("cells", len(shown), len(known), compared=bool(source.effects))
    for cell in shown:
        for kind in kinds[cell]:
            yield _figure(source, cell, kind, cells[cell], note)


def _bins_of(direction: Direction) -> Histogram | None:
    """Return the bins of total latency, else those of completion latency, which are fio's unless it is asked for
    others.
    """
    for latency in (direction.lat, direction.clat):
        histogram = latency.histogram if latency is not None else None
        if histogram is not None and histogram.total:
            return histogram
    return None


def _kinds(trials: Sequence[Trial]) -> list[Kind]:
    """Return the directions with bins."""
    directions = chain.from_iterable(trial.directions for trial in trials)
    return list(dict.fromkeys(each.kind for each in directions if _bins_of(each)))


def _figure(
    source: Source, cell: str, kind: Kind, trials: Sequence[Trial], note: str
) -> Figure:
    known: dict[str, Histogram] = {}
    for variant in source.variants:
        # A merge one by one takes a third of a report's time.
        counts = np.zeros(BINS, dtype=np.int64)
        for trial in trials:
            direction = trial.direction(kind) if trial.variant == variant else None
            bins = _bins_of(direction) if direction is not None else None
            if bins is not None:
                counts[list(bins.indexes)] += np.asarray(bins.counts, dtype=np.int64)
        (held,) = counts.nonzero()
        if len(held):
            indexes, kept = held.tolist(), counts[held].tolist()
            known[variant] = Histogram(tuple(indexes), tuple(kept))
    points = [
        (variant, at, share)
        for variant, bins in known.items()
        for at, share in _steps(bins)
    ]
    ends = [at for _, at, _ in points]
    size, unit = axis_unit("ns", max(ends), min(ends))
    directions = chain.from_iterable(trial.directions for trial in trials)
    several = len({direction.kind for direction in directions}) > 1
    medians, table = [], []
    for variant, bins in known.items():
        texts = [
            quantity(bins.quantile(p), "ns")
            if bins.total * (1 - p) >= 100
            else "too few I/Os"
            for p in POINTS
        ]
        table.append((label(variant), f"{bins.total:,}", *texts))
        medians.append(f"{label(variant)} {quantity(bins.quantile(0.5), 'ns')}")
    return Figure(
        name=f"distribution-{kind}-{source.place(cell)}",
        spec="distribution",
        title=f"{label(cell)}{f', {kind}' if several else ''}",
        alt=f"{'Medians' if len(medians) > 1 else 'Median'}: {', '.join(medians)}.",
        about=f"How many I/Os took how long, all runs together, {PER_OCTAVE} steps to a doubling; both axes are "
        "logarithmic so that the tail is seen.",
        rows=[
            {
                "variant": label(variant),
                "latency": number(at / size, 4),
                "share": number(100 * share, 4),
            }
            for variant, at, share in points
        ],
        texts={
            "x": f"{kind} latency, {unit}",
            "variants": list(map(label, source.variants)),
        },
        head=("variant", "I/Os", *(f"p{100 * p:g}" for p in POINTS)),
        table=table,
        note=note,
    )


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
