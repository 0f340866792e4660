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
from iodelta.policy.gist import POLICIES
from iodelta.policy.mirror import Request, pids_of, run
from iodelta.policy.model import (
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
from iodelta.policy.simulate import simulate

DEPTHS = (1, 32)
"""In each slot, one after the other."""


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
    made = []
    for (slot, policy), (place, depth) in product(
        enumerate(series.slots), enumerate(DEPTHS)
    ):
        own = seed + 1000 * (1 + slot) + place if series.fresh else seed
        made.append(
            Request(
                members=tuple(members),
                policy=policy,
                iodepth=depth,
                seed=own,
                ramp=0,
                seconds=seconds,
            )
        )
    return tuple(made)


def measured(runs: Sequence[Request], begin: Callable[[float], None]) -> Rates:
    """On real members, whose cache the caller has emptied; ``begin`` is told before each run which part is done.

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
    """The same on members that are held to so many reads a second, each behind a cache that takes all in.

    ``size`` bytes are read at random; ``hit`` is what a read takes that is cached, or let through at once, ns.
    """
    members = tuple(
        Member(Traits(devid, rotational=True), size, empirical=_held_to(pace, hit))
        for devid, pace in enumerate(paces, start=1)
    )
    same = tuple(
        Run(
            one.policy,
            Workload(one.random, one.length, one.iodepth, size, one.seed, pids_of(one)),
            one.seconds,
        )
        for one in runs
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
