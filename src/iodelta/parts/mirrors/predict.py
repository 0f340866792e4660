"""From the words of a command line to simulated worlds, and from their outcomes to predictions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment.values import size_bytes
from iodelta.parts.mirrors.answers import Predicted
from iodelta.parts.mirrors.model import (
    GIB,
    SEEKS,
    Background,
    Cache,
    Flash,
    Layout,
    Member,
    Run,
    Workload,
    World,
    disk,
    pids_in_a_row,
    ssd,
)
from iodelta.parts.mirrors.simulate import Outcome, Tally, geometric_mean, simulate
from iodelta.trial import Histogram

RATES = {7200: 170, 5400: 85, 4200: 55}
"""Media rate in MiB/s of a usual disk of that speed."""

WORKING_SET = 50 * GIB
"""Default working set in bytes."""

CAPACITY = 1 << 40
"""Default size of a modelled disk in bytes."""

BACKLOG = 20
BACKLOG_SHARE = 0.05
"""An open load exceeds the members if more requests than both are not complete at its end."""

LAYOUTS = {
    "mirror": Layout("mirror"),
    "raid1": Layout("raid1", 2),
    "raid1c3": Layout("raid1", 3),
    "raid1c4": Layout("raid1", 4),
    "raid10": Layout("raid10"),
}
CACHES = {"none": None, "array": Cache(fill=0.5, per_member=False), "members": Cache()}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What to predict: at each of ``iodepths``, or with an open load at each of ``rates``.

    ``size``: bytes that are read and written; None: 50 GiB, or what a plain mirror has.
    """

    members: tuple[Member, ...]
    policies: tuple[str, ...]
    iodepths: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
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


FORMS = "hdd:7200, hdd:5400:90 (MiB/s), hdd:7200:170:4t (size), ssd or ssd:stalls"


def members_of(words: Sequence[str]) -> tuple[Member, ...]:
    """``hdd:RPM[:MIB/S[:SIZE]]``, ``ssd``, ``ssd:stalls`` (1 read in 20 takes 8 ms more). Raises RequestError."""
    return tuple(_member(word, devid) for devid, word in enumerate(words, start=1))


def _member(word: str, devid: int) -> Member:
    kind, *parts = word.split(":")
    if kind == "ssd" and parts in ([], ["stalls"]):
        return ssd(devid, Flash(stall_part=0.05 if parts else 0.0))
    is_disk = kind == "hdd" and 1 <= len(parts) <= 3
    if not is_disk or not all(map(_is_positive, parts[:2])):
        raise RequestError(f"not a member: {word!r}", place="--member", remedy=FORMS)
    rpm = int(parts[0])
    if rpm not in SEEKS:
        raise RequestError(
            f"no model of {rpm} rpm", place=word, remedy="7200, 5400 or 4200"
        )
    rate = int(parts[1]) if len(parts) > 1 else RATES[rpm]
    try:
        capacity = size_bytes(parts[2]) if len(parts) > 2 else CAPACITY
    except ValueError as error:
        raise RequestError(str(error), place=word, remedy=FORMS) from error
    return disk(devid, rpm, rate, capacity=capacity)


def _is_positive(text: str) -> bool:
    return text.isdecimal() and int(text) > 0


class Cell(msgspec.Struct, frozen=True):
    """One load: a depth of the closed loop, or the rate of an open load."""

    iodepth: int = 0
    rate: float | None = None


def predict(asked: Asked) -> tuple[Predicted, ...]:
    """Return one prediction for each depth or rate, and policy, in that order. Raises RequestError, MeasureError."""
    of_rates = [Cell(rate=rate) for rate in asked.rates]
    loads = of_rates or [Cell(depth) for depth in asked.iodepths]
    cells = list(itertools.product(loads, asked.policies))
    worlds = [
        _world(asked, load, policy, seed)
        for (load, policy), seed in itertools.product(cells, asked.seeds)
    ]
    # One world for each seed, cell after cell.
    outcomes = iter([runs[0] for runs in simulate(worlds)])
    predictions = []
    for load, policy in cells:
        of_cell = list(itertools.islice(outcomes, len(asked.seeds)))
        predictions.append(_predicted(policy, load, of_cell, asked.seconds))
    return tuple(predictions)


def _layout(asked: Asked) -> tuple[Layout, int]:
    """Return the layout of the copies, and the bytes that are used. Raises RequestError if the members are too small."""
    layout = asked.layout
    if layout.kind == "mirror":
        room = min((member.capacity for member in asked.members), default=0)
        if asked.size and asked.size > room:
            text = f"{asked.size} bytes are more than the smallest member has ({room})"
            raise RequestError(text, place="--size", remedy="a smaller one")
        return layout, min(asked.size or WORKING_SET, room)
    if layout.kind == "raid10":
        layout = msgspec.structs.replace(layout, pairs=max(1, len(asked.members) // 2))
    size = asked.size or WORKING_SET
    # Chunks have random places, so seeks are short within one chunk, and span the whole disk for many chunks.
    return msgspec.structs.replace(layout, chunks=-(-size // layout.chunk)), size


def _world(asked: Asked, cell: Cell, policy: str, seed: int) -> World:
    chance = random.Random(seed)
    pids = pids_in_a_row(chance, asked.jobs)
    layout, size = _layout(asked)
    load = Workload(
        random=asked.random,
        length=asked.length,
        iodepth=cell.iodepth or 1,
        size=size,
        seed=seed,
        pids=pids,
        read_percent=asked.read_percent,
        rate=cell.rate or 0.0,
    )
    background = Background(chance.randrange(1000, 30_000)) if asked.loaded else None
    run = Run(
        policy, load, asked.seconds, background=background, ramp=asked.seconds / 30
    )
    return World(seed, asked.members, layout, (run,), asked.cache)


def _predicted(
    policy: str, cell: Cell, outcomes: Sequence[Outcome], seconds: float
) -> Predicted:
    rates = [outcome.iops for outcome in outcomes]
    both = itertools.chain.from_iterable((each.read, each.write) for each in outcomes)
    tallies = [tally for tally in both if tally.ios]
    p99 = 0.0
    if tallies:
        p99 = Histogram.merged(tally.histogram for tally in tallies).quantile(0.99)
    unfinished, overloaded = 0, False
    if cell.rate:
        unfinished = max(outcome.unfinished for outcome in outcomes)
        overloaded = unfinished > max(BACKLOG, BACKLOG_SHARE * cell.rate * seconds)
    return Predicted(
        policy=policy,
        iodepth=cell.iodepth,
        iops=geometric_mean(rates),
        least=min(rates),
        most=max(rates),
        mean_ns=_mean(tallies),
        p99_ns=p99,
        shares=_shares(outcomes),
        rate=cell.rate,
        unfinished=unfinished,
        overloaded=overloaded,
    )


def _mean(tallies: Sequence[Tally]) -> float:
    """Return the mean latency of all I/Os together; 0 without any."""
    ios = sum(tally.ios for tally in tallies)
    return sum(tally.mean * tally.ios for tally in tallies) / max(1, ios)


def _shares(outcomes: Sequence[Outcome]) -> tuple[float, ...]:
    """The share of all reads that each member served."""
    served = [0] * len(outcomes[0].members)
    for outcome in outcomes:
        for place, member in enumerate(outcome.members):
            served[place] += member.reads
    return tuple(reads / max(1, sum(served)) for reads in served)
