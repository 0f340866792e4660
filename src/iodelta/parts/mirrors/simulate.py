"""Run simulated worlds on all cores, and read the outcome of each run."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import msgspec

from iodelta.decoding import converted
from iodelta.errors import RequestError
from iodelta.parts.mirrors.model import World
from iodelta.probe.native import native
from iodelta.trial import Histogram


class Tally(msgspec.Struct, frozen=True):
    """One direction of a run: latencies in ns, ``bins`` of fio."""

    ios: int
    bytes: int
    min: int
    max: int
    mean: float
    stddev: float
    bins: dict[int, int]

    @property
    def histogram(self) -> Histogram:
        return Histogram.from_counts(self.bins)


class Share(msgspec.Struct, frozen=True):
    """Counters of one member for load and background together, as kakra's read_stats has them; ``wait`` in ns."""

    reads: int
    writes: int
    read_bytes: int
    hits: int
    wait: int
    age: int
    ignored: int
    checkpoints: int


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one run. ``trace``: I/Os in flight on each member at even intervals."""

    read: Tally
    write: Tally
    seconds: float
    events: int
    background_reads: int
    background_writes: int
    members: tuple[Share, ...]
    trace: tuple[tuple[int, ...], ...]
    unfinished: int = 0
    """Requests that had arrived but not completed at the end of the run."""

    @property
    def iops(self) -> float:
        if self.seconds:
            return (self.read.ios + self.write.ios) / self.seconds
        return math.nan


def simulate(
    worlds: Sequence[World], threads: int | None = None
) -> tuple[tuple[Outcome, ...], ...]:
    """The outcomes of each world's runs. Raises RequestError for an impossible world, MeasureError without the core.

    The same worlds give the same outcomes to the last digit on any number of threads.
    """
    count = threads or os.cpu_count() or 1
    try:
        results = native().simulate(
            [msgspec.to_builtins(world) for world in worlds], count
        )
    except (ValueError, OverflowError) as error:
        raise RequestError(str(error), place="simulation") from error
    return tuple(converted(world, tuple[Outcome, ...]) for world in results)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean; 0 if a value is 0."""
    if not all(value > 0 for value in values):
        return 0.0
    return math.exp(sum(map(math.log, values)) / len(values))
