"""fio's coarse histogram, which every JSON has: which share of I/Os took how long, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain, product

import msgspec

from iodelta.ingest import Run
from iodelta.ingest.layouts import Entry

_STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)

BOUNDS = (
    *(step * size for size, step in product((1.0, 1e3, 1e6), _STEPS)),
    2e9,
    math.inf,
)
"""Upper ends of fio's buckets, ns."""


class Shares(msgspec.Struct, frozen=True):
    """The I/Os of a cell under a variant, all directions and runs together."""

    cell: str
    variant: str
    runs: int
    ios: int
    percents: tuple[tuple[float, float], ...]
    """Upper end of a bucket in ns and percent of all I/Os in it, from the first to the last that holds any."""


def of_entries(entries: Iterable[tuple[str, str, Entry]]) -> tuple[Shares, ...]:
    """One for each cell and variant whose runs have the coarse histogram alone: a fine one says more."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for cell, variant, entry in entries:
        groups.setdefault((cell, variant), []).append(entry.run)
    return tuple(
        _together(*key, runs) for key, runs in groups.items() if all(map(_coarse, runs))
    )


def _coarse(run: Run) -> bool:
    latencies = chain.from_iterable(
        (direction.lat, direction.clat) for direction in run.directions
    )
    fine = any(
        latency is not None and latency.histogram is not None for latency in latencies
    )
    return bool(run.shares) and _ios(run) > 0 and not fine


def _ios(run: Run) -> int:
    return sum(direction.ios for direction in run.directions)


def _together(cell: str, variant: str, runs: list[Run]) -> Shares:
    ios = sum(map(_ios, runs))
    percents: dict[float, float] = {}
    for run in runs:
        for bound, share in run.shares:
            percents[bound] = percents.get(bound, 0.0) + share * _ios(run) / ios
    first, last = min(percents), max(percents)
    whole = tuple(
        (bound, percents.get(bound, 0.0)) for bound in BOUNDS if first <= bound <= last
    )
    return Shares(cell=cell, variant=variant, runs=len(runs), ios=ios, percents=whole)
