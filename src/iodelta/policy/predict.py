"""From words of a command line to worlds, and from their outcomes to predictions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from iodelta.errors import RequestError
from iodelta.policy.answers import Predicted
from iodelta.policy.model import GIB, SEEKS, Background, Cache, Flash, Layout, Member, Run, Workload, World, disk, ssd
from iodelta.policy.simulate import Outcome, geometric_mean, simulate
from iodelta.trial import Histogram

RATES = {7200: 170, 5400: 85, 4200: 55}
"""Media rate in MiB/s of a usual disk of that speed."""

LAYOUTS = {
    "mirror": Layout("mirror"),
    "raid1": Layout("raid1", 2),
    "raid1c3": Layout("raid1", 3),
    "raid1c4": Layout("raid1", 4),
    "raid10": Layout("raid10"),
}
CACHES = {"none": None, "array": Cache(fill=0.5, per_member=False), "members": Cache()}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What shall be predicted; ``size`` None: 50 GiB, or what a plain mirror has."""

    members: tuple[Member, ...]
    policies: tuple[str, ...]
    iodepths: tuple[int, ...]
    layout: Layout
    random: bool = True
    length: int = 4096
    jobs: int = 1
    read_percent: int = 100
    size: int | None = None
    loaded: bool = False
    cache: Cache | None = None
    seconds: float = 30.0
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)


def members_of(words: Sequence[str]) -> tuple[Member, ...]:
    """``hdd:7200``, ``hdd:5400:90`` (MiB/s), ``ssd``, ``ssd:stalls`` (1 read in 20 takes 8 ms more). RequestError."""
    found: list[Member] = []
    for word in words:
        kind, _, rest = word.partition(":")
        parts = rest.split(":") if rest else []
        devid = len(found) + 1
        if kind == "ssd" and parts in ([], ["stalls"]):
            found.append(ssd(devid, Flash(stall_part=0.05 if parts else 0.0)))
        elif kind == "hdd" and 1 <= len(parts) <= 2 and all(part.isdecimal() and int(part) for part in parts):
            rpm = int(parts[0])
            if rpm not in SEEKS:
                raise RequestError(f"no model of {rpm} rpm", place=word, remedy="7200, 5400 or 4200")
            found.append(disk(devid, rpm, int(parts[1]) if len(parts) > 1 else RATES[rpm]))
        else:
            raise RequestError("is no member", place=word, remedy="hdd:7200, hdd:5400:90 (MiB/s), ssd or ssd:stalls")
    return tuple(found)


def predict(asked: Asked) -> tuple[Predicted, ...]:
    """One prediction for each depth and policy, in that order. Raises RequestError, MeasureError."""
    cells = [(depth, policy) for depth in asked.iodepths for policy in asked.policies]
    worlds = [_world(asked, depth, policy, seed) for depth, policy in cells for seed in asked.seeds]
    outcomes = [runs[0] for runs in simulate(worlds)]
    count = len(asked.seeds)
    return tuple(
        _predicted(policy, depth, outcomes[index * count : (index + 1) * count])
        for index, (depth, policy) in enumerate(cells)
    )


def _world(asked: Asked, depth: int, policy: str, seed: int) -> World:
    chance = random.Random(seed)
    pids = tuple(chance.randrange(1000, 30_000) for _ in range(asked.jobs))
    layout = asked.layout
    if layout.kind == "raid10":
        layout = msgspec.structs.replace(layout, pairs=max(1, len(asked.members) // 2))
    whole = min((member.capacity for member in asked.members), default=0)
    room = whole if layout.kind == "mirror" else layout.chunks * layout.chunk
    size = min(asked.size or 50 * GIB, room)
    load = Workload(asked.random, asked.length, depth, size, seed, pids, asked.read_percent)
    background = Background(chance.randrange(1000, 30_000)) if asked.loaded else None
    run = Run(policy, load, asked.seconds, background=background, ramp=asked.seconds / 30)
    return World(seed, asked.members, layout, (run,), asked.cache)


def _predicted(policy: str, depth: int, outcomes: Sequence[Outcome]) -> Predicted:
    rates = [outcome.iops for outcome in outcomes]
    tallies = [tally for outcome in outcomes for tally in (outcome.read, outcome.write) if tally.ios]
    ios = sum(tally.ios for tally in tallies)
    served = [sum(outcome.members[at].reads for outcome in outcomes) for at in range(len(outcomes[0].members))]
    return Predicted(
        policy=policy,
        iodepth=depth,
        iops=geometric_mean(rates),
        least=min(rates),
        most=max(rates),
        mean_ns=sum(tally.mean * tally.ios for tally in tallies) / ios if ios else 0.0,
        p99_ns=Histogram.merged(tally.histogram for tally in tallies).quantile(0.99) if ios else 0.0,
        shares=tuple(reads / max(1, sum(served)) for reads in served),
    )
