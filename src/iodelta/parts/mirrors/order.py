"""How the order of runs and repeated offsets make a ranking: a benchmark in one fixed order behind a cache that warms.

The benchmark of May 2025 ran its policies one after another, each at depth 1 and then at depth 32 over the same
offsets. What a run reads, the next finds in a cache below, and runs at depth 32 read far ahead for those at depth 1.
Here the same is done on a small mirror, real or simulated: with its policies, with a placebo that is the same random
choice in every slot, with the policies in reversed order, and with fresh offsets for every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import msgspec

from iodelta.errors import MeasureError
from iodelta.parts.mirrors.catalogue import POLICIES
from iodelta.parts.mirrors.mirror import Request, pids_of, run
from iodelta.parts.mirrors.model import (
    Cache,
    Curve,
    Empirical,
    Layout,
    Member,
    Run,
    Traits,
    Workload,
    World,
)
from iodelta.parts.mirrors.simulate import simulate

DEPTHS = (1, 32)
"""Depths that are measured in each slot, in this order."""


class Series(msgspec.Struct, frozen=True):
    """Policies in the order of their slots, on the same offsets in each slot or on fresh ones."""

    name: str
    slots: tuple[str, ...]
    fresh: bool = False


SERIES = (
    Series("as posted", POLICIES),
    Series("placebo: random in every slot", ("random",) * len(POLICIES)),
    Series("as posted, in reversed order", POLICIES[::-1]),
    Series("as posted, but with fresh offsets", POLICIES, fresh=True),
)

SLICE = 0.1
"""Seconds of reads that the kernel's throttle lets through at once after a pause (blk-throttle's throtl_slice)."""

Rates = dict[int, tuple[float, ...]]
"""Depth -> IOPS of the slots in their order."""


def requests(
    series: Series, members: Sequence[str], *, seconds: float, seed: int
) -> tuple[Request, ...]:
    """The runs of a series in their order: each slot at each of ``DEPTHS``."""
    requests = []
    for (slot, policy), (place, depth) in product(
        enumerate(series.slots), enumerate(DEPTHS)
    ):
        run_seed = seed + 1000 * (1 + slot) + place if series.fresh else seed
        requests.append(
            Request(
                members=tuple(members),
                policy=policy,
                iodepth=depth,
                seed=run_seed,
                ramp=0,
                seconds=seconds,
            )
        )
    return tuple(requests)


def measured(runs: Sequence[Request], begin: Callable[[float], None]) -> Rates:
    """Rates of real members. The caller has emptied their cache; ``begin`` gets the share that is done before each run.

    Raises MeasureError when a member fails.
    """
    rates = []
    for number, request in enumerate(runs):
        begin(number / len(runs))
        done = run(request)
        if not done.usable:
            reason = "; ".join(finding.explanation for finding in done.findings)
            raise MeasureError(f"the mirror failed: {reason}", place=request.members[0])
        rates.append(done.iops)
    return _by_depth(rates)


def simulated(
    runs: Sequence[Request], paces: Sequence[int], *, size: int, hit: int = 60_000
) -> Rates:
    """Rates of simulated members that are limited to ``paces`` reads per second, each behind a cache that keeps all
    data.

    ``size`` bytes are read at random; ``hit`` is the time of a read that is cached or not throttled, ns.
    """
    members = tuple(
        Member(Traits(devid, rotational=True), size, empirical=_held_to(pace, hit))
        for devid, pace in enumerate(paces, start=1)
    )
    same = tuple(
        Run(
            run.policy,
            Workload(run.random, run.length, run.iodepth, size, run.seed, pids_of(run)),
            run.seconds,
        )
        for run in runs
    )
    (outcomes,) = simulate(
        [World(runs[0].seed, members, Layout(), same, Cache(hit=hit))]
    )
    return _by_depth([outcome.iops for outcome in outcomes])


def _held_to(pace: int, quickest: int) -> Empirical:
    least = quickest * pace / 1e9
    return Empirical(Curve((1,), (1e9 / pace,), ((least, least),)), slice=SLICE)


def _by_depth(rates: Sequence[float]) -> Rates:
    return {
        depth: tuple(rates[place :: len(DEPTHS)]) for place, depth in enumerate(DEPTHS)
    }
