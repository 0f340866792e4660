"""fio's coarse latency histogram, which every JSON output has: the share of I/Os in each range of latency, by cell."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, product

import msgspec

from iodelta.grouping import grouped
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
    """One for each cell and variant whose runs have only the coarse histogram; where they have fine bins, use these."""
    shares = []
    for arm, of_arm in grouped(entries, lambda entry: entry[:2]).items():
        runs = [entry.run for _, _, entry in of_arm]
        if all(map(_coarse, runs)):
            shares.append(_together(*arm, runs))
    return tuple(shares)


def _coarse(run: Run) -> bool:
    """Whether a run has the coarse histogram and no fine one."""
    directions = run.directions
    latencies = chain.from_iterable((each.lat, each.clat) for each in directions)
    fine = any(latency.histogram for latency in filter(None, latencies))
    return bool(run.shares) and _ios(run) > 0 and not fine


def _ios(run: Run) -> int:
    return sum(direction.ios for direction in run.directions)


def _together(cell: str, variant: str, runs: list[Run]) -> Shares:
    ios = sum(map(_ios, runs))
    percents: defaultdict[float, float] = defaultdict(float)
    for run in runs:
        for bound, share in run.shares:
            percents[bound] += share * _ios(run) / ios
    first, last = min(percents), max(percents)
    whole = tuple(
        (bound, percents[bound]) for bound in BOUNDS if first <= bound <= last
    )
    return Shares(cell=cell, variant=variant, runs=len(runs), ios=ios, percents=whole)
