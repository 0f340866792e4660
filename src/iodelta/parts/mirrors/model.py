"""The parts of a simulated world: members, layout, cache, load. Times are ns and sizes bytes unless a name says
otherwise.

The structures are handed to the native core as they are; ``iodelta.parts.mirrors.simulate`` runs them.
"""

from __future__ import annotations

import random
from typing import Literal

import msgspec

MS = 1_000_000
SECOND = 1_000_000_000
MIB = 1 << 20
GIB = 1 << 30

SEEKS = {7200: 8.5, 5400: 12.0, 4200: 14.0}
"""Mean seek in ms of a usual disk of that speed (rpm)."""


class Traits(msgspec.Struct, frozen=True):
    """What never changes about a member. ``weight`` 0 to 100 is an operator's (dm service-time)."""

    devid: int
    """Number of the member."""
    rotational: bool
    """Whether it is a rotating disk (the kernel's ``queue/rotational``)."""
    weight: int = 1
    """Relative throughput that an operator gave it, 0 to 100."""
    optimal_io: int = 0
    """The device's optimal I/O size, bytes; 0 if it reports none."""


class Hdd(msgspec.Struct, frozen=True):
    """A disk: seek, rotation and transfer. Of 32 queued I/Os the one with the shortest positioning time goes first."""

    mean_seek: int
    """Mean seek, settling included, ns."""
    revolution: int
    """Time of one revolution, ns."""
    bytes_per_second: int
    """Rate of transfer."""
    settle: int = 1_500_000
    """The part of a seek that does not depend on the distance, ns."""
    skip: int = 2 * MIB
    """An I/O that begins at most this many bytes ahead is reached by reading on."""
    starvation: int = 2 * SECOND
    """An I/O that has waited this long goes first; static policies at depth depend on it."""


class Flash(msgspec.Struct, frozen=True):
    """Channels that each serve one I/O; a share of the reads takes ``stall`` longer."""

    channels: int = 8
    """I/Os served at once."""
    read: int = 100_000
    """Time of a read besides its transfer, ns."""
    write: int = 30_000
    """Time of a write besides its transfer, ns."""
    bytes_per_second: int = 2 * GIB
    """Rate of transfer of all channels together."""
    stall_part: float = 0.0
    """Share of the reads that stall."""
    stall: int = 8 * MS
    """What a stall adds to a read, ns."""
    spread: int = 0
    """Mean of a part of each read's time that varies (exponential), ns; 0: all reads take the same."""


class Curve(msgspec.Struct, frozen=True):
    """Mean latency at ascending depths, and at each the quantiles at even steps in units of the mean (or none)."""

    depths: tuple[int, ...]
    """I/Os in flight, ascending."""
    latency: tuple[float, ...]
    """Mean latency at each depth, ns."""
    shapes: tuple[tuple[float, ...], ...] = ()
    """Quantiles of latency at each depth, in units of the mean; empty without any."""


class Empirical(msgspec.Struct, frozen=True):
    """Any device by its measured curves; ``large`` is for reads from 128 KiB."""

    read: Curve
    large: Curve | None = None
    """Reads from 128 KiB; None where they were not measured."""
    write: Curve | None = None
    """Writes; None where they were not measured."""
    read_beside: Curve | None = None
    """Small reads during writes, by the depth of both; None if not measured."""
    write_beside: Curve | None = None
    """Writes during reads, by the depth of both."""
    slice: float = 0.0
    """Seconds of work at the full rate that a throttle lets through at once after a pause; 0 without one. With one it
    decides when an I/O passes; of the curves count the greatest depth and the median at depth 1."""


class Member(msgspec.Struct, frozen=True):
    """One member: exactly one of the three models."""

    traits: Traits
    capacity: int
    """Bytes of it that are used."""
    hdd: Hdd | None = None
    """Model of a disk; None for another model."""
    flash: Flash | None = None
    """Model of flash; None for another model."""
    empirical: Empirical | None = None
    """Measured curves; None for another model."""


class Layout(msgspec.Struct, frozen=True):
    """``mirror``: all members hold all bytes. ``raid1``: chunks of ``copies`` on random members. ``raid10``: chunks
    striped in 64 KiB over ``pairs`` pairs."""

    kind: Literal["mirror", "raid1", "raid10"] = "mirror"
    copies: int = 2
    pairs: int = 2
    chunks: int = 50
    chunk: int = GIB


class Cache(msgspec.Struct, frozen=True):
    """A cache that keeps the share ``fill`` of missed blocks forever, for reads shorter than ``bypass``.

    ``per_member``: one in front of each member, as bcache below btrfs; else one in front of the array.
    """

    hit: int = 100_000
    bypass: int = 512 * 1024
    fill: float = 1.0
    per_member: bool = True


class Background(msgspec.Struct, frozen=True):
    """A defragmentation in a loop: reads one after another, then a burst of mirrored writes at once."""

    pid: int
    reads: int = 128
    read_length: int = 256 * 1024
    large_writes: int = 24
    large_length: int = MIB
    small_writes: int = 64
    small_length: int = 16 * 1024


class Workload(msgspec.Struct, frozen=True):
    """A closed loop: each of ``pids`` is a job that keeps ``iodepth`` requests in flight; or an open load."""

    random: bool
    length: int
    iodepth: int
    size: int
    seed: int
    pids: tuple[int, ...]
    read_percent: int = 100
    rate: float = 0.0
    """Requests per second of all jobs that arrive at random (Poisson), independently of the number in flight; 0: a
    closed loop."""


class Run(msgspec.Struct, frozen=True):
    """One run in a world; ``cold`` empties the cache before it. ``ramp``, ``seconds`` and ``trace`` are seconds."""

    policy: str
    workload: Workload
    seconds: float
    background: Background | None = None
    ramp: float = 0.0
    trace: float = 0.0
    cold: bool = False


class World(msgspec.Struct, frozen=True):
    """An array and its runs, one after another; only the cache outlives a run."""

    seed: int
    members: tuple[Member, ...]
    layout: Layout
    runs: tuple[Run, ...]
    cache: Cache | None = None


def pids_in_a_row(chance: random.Random, jobs: int) -> tuple[int, ...]:
    """Consecutive pids, as fio's jobs have them, which are forked one after another; the first one is random."""
    first = chance.randrange(1000, 30_000)
    return tuple(range(first, first + jobs))


def disk(
    devid: int,
    rpm: int,
    mib_per_second: int,
    *,
    starvation: float = 2.0,
    capacity: int = 1 << 40,
) -> Member:
    """Return a usual disk by its speed. Raises KeyError for another speed than 7200, 5400 and 4200 rpm."""
    model = Hdd(
        mean_seek=round(SEEKS[rpm] * MS),
        revolution=60 * SECOND // rpm,
        bytes_per_second=mib_per_second * MIB,
        starvation=round(starvation * SECOND),
    )
    return Member(Traits(devid, rotational=True), capacity, hdd=model)


def ssd(devid: int, model: Flash | None = None, *, capacity: int = 1 << 40) -> Member:
    """Return a flash member."""
    return Member(Traits(devid, rotational=False), capacity, flash=model or Flash())
