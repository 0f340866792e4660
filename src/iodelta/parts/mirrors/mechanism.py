"""The parts of explanations of read policies: the array, a mechanism with its numbers, and the words for both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment.values import size_bytes

SECTOR = 4096
"""btrfs counts what was read in sectors of 4 KiB."""

MIN_CONTIG = 256 * 1024
STRIPE = 64 * 1024
"""btrfs cuts reads of raid10 at this length."""

READS = "reads per member in /sys/block/DEVICE/stat"
IN_FLIGHT = "in flight per member (/sys/block/DEVICE/inflight)"


class Array(msgspec.Struct, frozen=True, kw_only=True):
    """An array and its load. ``rates``: I/Os per second of each member alone; empty if unknown."""

    copies: int = 2
    """Members that hold the same bytes."""
    rates: tuple[float, ...] = ()
    """I/Os per second of each member alone; empty if unknown."""
    length: int = 4096
    """Bytes of one read."""
    iodepth: int = 1
    jobs: int = 1
    raid10: bool = False
    """Whether it is striped, so that a policy sees no read longer than a stripe."""
    iops: float | None = None
    """Decisions per second of the array; None if unknown."""

    @property
    def bio(self) -> int:
        """Bytes of one read as the policy sees it."""
        return min(self.length, STRIPE) if self.raid10 else self.length

    @property
    def flying(self) -> int:
        """Reads in flight at a time."""
        return self.iodepth * self.jobs

    @property
    def most(self) -> float:
        """Upper bound of reads per second for any policy: each read in flight keeps one member busy."""
        return sum(sorted(self.rates, reverse=True)[: self.flying])

    @property
    def even(self) -> float:
        """Reads per second, one at a time, if every member gets the same share."""
        return serial_rate([1 / self.copies] * self.copies, self)


class Explanation(msgspec.Struct, frozen=True):
    """One mechanism: what will happen, the numbers behind it, and the observation that would confirm it."""

    mechanism: str
    """Its name."""
    prediction: str
    """What will happen."""
    confirm: str
    """Observation that would confirm it."""
    numbers: dict[str, float] = {}
    """Numbers behind it, by name; empty without any."""


def together(array: Array) -> str:
    """Return the rate of the members at this depth in words. A depth below the number of copies leaves members idle."""
    if array.flying == 1:
        return f"the quickest member alone does {array.most:,.0f}/s"
    if array.flying < array.copies:
        return f"the quickest {array.flying} members together do {array.most:,.0f}/s"
    return f"the members together do {array.most:,.0f}/s"


def alone(mechanism: str, why: str, rank: int, array: Array) -> Explanation:
    """Return the explanation that all reads go to the member of this rank, for the reason ``why``."""
    text = f"{why}, and the other members stand idle"
    numbers = {}
    if array.rates:
        numbers = {"one member": array.rates[rank], "most at this depth": array.most}
        text += f": {array.rates[rank]:,.0f}/s, where {together(array)}"
    return Explanation(mechanism, text, f"{READS}: all but one stand still", numbers)


def serial_rate(parts: Sequence[float], array: Array) -> float:
    """Reads per second if one is in flight at a time and members get these shares."""
    return 1 / sum(part / rate for part, rate in zip(parts, array.rates, strict=True))


def closed_rate(parts: Sequence[float], array: Array) -> float:
    """Return the reads per second of ``array.flying`` requests that go to the members by lot, with these shares.

    Mean value analysis (Reiser and Lavenberg, JACM 1980): it assumes service times that vary, so members that are as even
    as a clock do a little more.
    """
    demands = [part / rate for part, rate in zip(parts, array.rates, strict=True)]
    queues = [0.0] * len(demands)
    rate = 0.0
    for flying in range(1, array.flying + 1):
        waits = [
            demand * (1 + queue) for demand, queue in zip(demands, queues, strict=True)
        ]
        rate = flying / sum(waits)
        queues = [rate * wait for wait in waits]
    return rate


def split_in_flight(array: Array, weights: Sequence[float]) -> dict[str, float]:
    """I/Os in flight on each member if they are split by these weights."""
    each = array.flying / sum(weights)
    return {
        f"in flight on rank {rank}": each * weight
        for rank, weight in enumerate(weights)
    }


def only(given: str, key: str) -> str:
    """Return the parameter ``key`` of a policy's parameters, as ``key=value``; empty without it."""
    return next((part for part in given.split(",") if part.startswith(f"{key}=")), "")


def value_of(given: str, key: str, position: int, default: str) -> str:
    """Return a parameter by name; the one at position 0 may also be a value without a name."""
    for part in given.split(","):
        name, equals, value = part.partition("=")
        if equals and name == key:
            return value or part
        if part and not equals and position == 0:
            return part
    return default


def number(given: str, key: str, position: int, default: int) -> int:
    """Return the same, a whole number. Raises RequestError."""
    value = value_of(given, key, position, str(default))
    if not value.isdecimal():
        raise RequestError(f"{value!r} is not a number", place=key)
    return int(value)


def contig(given: str) -> int:
    """Bytes that round-robin reads from a member before the next one. Raises RequestError."""
    text = given.partition("=")[2] or given
    try:
        unit = size_bytes(text) if text else MIN_CONTIG
    except ValueError as error:
        raise RequestError(str(error), place="min_contig") from error
    if unit < SECTOR or unit % SECTOR:
        raise RequestError(
            f"{unit} is not a multiple of the sector of {SECTOR}", place="min_contig"
        )
    return unit


def ratio(values: Iterable[float]) -> str:
    return " : ".join(f"{value:.3g}" for value in values)


def percentages(parts: Iterable[float]) -> str:
    return " : ".join(f"{100 * part:.3g} %" for part in parts)


def size(length: int) -> str:
    if length % (1 << 20) == 0:
        return f"{length >> 20} MiB"
    return f"{length / 1024:g} KiB"


def duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} us"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 120 or math.isinf(seconds):
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
