"""The array of the read-policy benchmark of May 2025 as worlds: which part of its table is due to policies, and which
to the order of runs.

Six disks (four of 7200 rpm, one of 5400, one of 4200), 50 chunks of 1 GiB on random pairs, five policies in a fixed
order, each with three workloads, then all again during a defragmentation. Column A has no cache and fresh offsets; in
F every slot runs the same random policy, but behind a cache that warms, on the same offsets; B is both together.

The rates and the cache are chosen so that they give the anchors of that study (see docs/read-policies.md): 1/2 of the
missed blocks are taken into a cache in front of the array, which was cold at the beginning of each phase.
"""

from __future__ import annotations

import random
from typing import Literal

from iodelta.parts.mirrors.catalogue import POLICIES
from iodelta.parts.mirrors.model import (
    GIB,
    MIB,
    Background,
    Cache,
    Layout,
    Run,
    Workload,
    World,
    disk,
)
from iodelta.parts.mirrors.simulate import Outcome, geometric_mean, simulate

Column = Literal["A", "F", "B"]
GROUPS = (
    "rand 4k QD1",
    "rand 4k QD32",
    "seq 1M QD16",
    "QD1 + load",
    "QD32 + load",
    "seq + load",
)
WORLDS = (1, 2, 3, 4, 5)
"""Seeds of the worlds whose geometric mean is shown."""

CACHE = Cache(fill=0.5, per_member=False)
_SHAPES = ((True, 4096, 1), (True, 4096, 32), (False, MIB, 16))


def world(
    seed: int,
    column: Column,
    *,
    policies: tuple[str, ...] = POLICIES,
    cache: Cache = CACHE,
    seconds: float = 60.0,
) -> World:
    """Return one world of a column: ``policies`` in their order, 2 x 3 runs each."""
    members = (
        *(disk(devid, 7200, 170) for devid in range(1, 5)),
        disk(5, 5400, 85),
        disk(6, 4200, 55),
    )
    chance = random.Random(seed)
    runs = []
    for loaded in (False, True):
        for slot, policy in enumerate(policies):
            for number, (is_random, length, iodepth) in enumerate(_SHAPES):
                fresh, pid, other = (
                    chance.getrandbits(32),
                    chance.randrange(1000, 30000),
                    chance.randrange(1000, 30000),
                )
                load = Workload(
                    random=is_random,
                    length=length,
                    iodepth=iodepth,
                    size=50 * GIB,
                    seed=fresh if column == "A" else 4242 + seed,
                    pids=(pid,),
                )
                run = Run(
                    policy="random" if column == "F" else policy,
                    workload=load,
                    seconds=seconds,
                    background=Background(other) if loaded else None,
                    cold=slot == 0 and number == 0,
                )
                runs.append(run)
    return World(seed, members, Layout("raid1"), tuple(runs), None if column == "A" else cache)


def table(column: Column, *, seeds: tuple[int, ...] = WORLDS, cache: Cache = CACHE) -> dict[str, tuple[float, ...]]:
    """Group -> IOPS of the five slots in their order, geometric means over the worlds of ``seeds``."""
    return grouped(simulate([world(seed, column, cache=cache) for seed in seeds]), len(POLICIES))


def grouped(worlds: tuple[tuple[Outcome, ...], ...], slots: int) -> dict[str, tuple[float, ...]]:
    """The runs of ``world`` by group."""
    rows = {}
    for index, name in enumerate(GROUPS):
        phase, kind = divmod(index, len(_SHAPES))
        places = [(phase * slots + slot) * len(_SHAPES) + kind for slot in range(slots)]
        rows[name] = tuple(geometric_mean([runs[place].iops for runs in worlds]) for place in places)
    return rows
