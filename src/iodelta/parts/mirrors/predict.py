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
from iodelta.parts.mirrors.simulate import geometric_mean, simulate
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
    members = []
    for devid, word in enumerate(words, start=1):
        kind, *parts = word.split(":")
        if kind == "ssd" and parts in ([], ["stalls"]):
            members.append(ssd(devid, Flash(stall_part=0.05 if parts else 0.0)))
            continue
        numbers = [
            int(part) for part in parts[:2] if part.isdecimal() and int(part) > 0
        ]
        if kind != "hdd" or not 1 <= len(parts) <= 3 or len(numbers) != len(parts[:2]):
            raise RequestError(
                f"not a member: {word!r}", place="--member", remedy=FORMS
            )
        rpm, *rates = numbers
        if rpm not in SEEKS:
            raise RequestError(
                f"no model of {rpm} rpm", place=word, remedy="7200, 5400 or 4200"
            )
        try:
            capacity = size_bytes(parts[2]) if len(parts) > 2 else CAPACITY
        except ValueError as error:
            raise RequestError(str(error), place=word, remedy=FORMS) from error
        members.append(disk(devid, rpm, (*rates, RATES[rpm])[0], capacity=capacity))
    return tuple(members)


def predict(asked: Asked) -> tuple[Predicted, ...]:
    """Return one prediction for each depth or rate, and policy, in that order. Raises RequestError, MeasureError."""
    layout, size = _layout(asked)
    loads: list[tuple[int, float | None]] = [(0, rate) for rate in asked.rates]
    loads = loads or [(depth, None) for depth in asked.iodepths]
    cells = list(itertools.product(loads, asked.policies))
    worlds = []
    for ((iodepth, rate), policy), seed in itertools.product(cells, asked.seeds):
        chance = random.Random(seed)
        load = Workload(
            random=asked.random,
            length=asked.length,
            iodepth=iodepth or 1,
            size=size,
            seed=seed,
            pids=pids_in_a_row(chance, asked.jobs),
            read_percent=asked.read_percent,
            rate=rate or 0.0,
        )
        background = (
            Background(chance.randrange(1000, 30_000)) if asked.loaded else None
        )
        run = Run(
            policy, load, asked.seconds, background=background, ramp=asked.seconds / 30
        )
        worlds.append(World(seed, asked.members, layout, (run,), asked.cache))
    # One world for each seed, cell after cell.
    outcomes = iter([runs[0] for runs in simulate(worlds)])
    predictions = []
    for (iodepth, rate), policy in cells:
        of_cell = list(itertools.islice(outcomes, len(asked.seeds)))
        rates = [outcome.iops for outcome in of_cell]
        tallies = [
            tally for each in of_cell for tally in (each.read, each.write) if tally.ios
        ]
        ios = sum(tally.ios for tally in tallies)
        served = [
            sum(of_world.reads for of_world in member)
            for member in zip(*(each.members for each in of_cell), strict=True)
        ]
        unfinished = max(outcome.unfinished for outcome in of_cell) if rate else 0
        predictions.append(
            Predicted(
                policy=policy,
                iodepth=iodepth,
                iops=geometric_mean(rates),
                least=min(rates),
                most=max(rates),
                mean_ns=sum(tally.mean * tally.ios for tally in tallies) / max(1, ios),
                p99_ns=Histogram.merged(tally.histogram for tally in tallies).quantile(
                    0.99
                )
                if tallies
                else 0.0,
                shares=tuple(reads / max(1, sum(served)) for reads in served),
                rate=rate,
                unfinished=unfinished,
                overloaded=bool(rate)
                and unfinished
                > max(BACKLOG, BACKLOG_SHARE * (rate or 0) * asked.seconds),
            )
        )
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
