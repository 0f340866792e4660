"""Trial, Direction, Latency, Histogram, Quantity: what every room speaks.

All are frozen and JSON-serialisable by msgspec. Times are nanoseconds, sizes bytes and rates per second unless a
name or a ``unit`` says otherwise.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal

import msgspec

Kind = Literal["read", "write", "trim", "mixed"]
"""``mixed``: all of them together, where fio reported only that (``unified_rw_reporting``)."""
Severity = Literal["note", "warning", "hard"]

BINS = 1856
"""Number of fio latency bins since 2.99: 29 groups of 64 (FIO_IO_U_PLAT_NR in fio's ``stat.h``)."""


class Quantity(msgspec.Struct, frozen=True):
    """A number with the interval ``[low, high]`` that its source's rounding allows.

    ``low == high == value`` for a number that was measured here or is exact in its source.
    """

    value: float
    low: float
    high: float
    unit: str

    @classmethod
    def exact(cls, value: float, unit: str) -> Quantity:
        """Return a number known as finely as it is printed; unknown where it is not finite."""
        return cls.around(value, 0.0, 0.0, unit)

    @classmethod
    def around(cls, value: float, below: float, above: float, unit: str) -> Quantity:
        """Return a printed number that may be so much lower or higher; unknown where it is not finite."""
        if math.isfinite(value):
            return cls(value, value - below, value + above, unit)
        return unknown(unit)

    def overlaps(self, other: Quantity) -> bool:
        """Return whether both may be the same number. Raises ValueError when the units differ."""
        if self.unit != other.unit:
            raise ValueError(f"cannot compare {self.unit} with {other.unit}")
        return self.low <= other.high and other.low <= self.high


def unknown(unit: str) -> Quantity:
    """Return a number that the source does not give: nan, anywhere from 0 up."""
    return Quantity(math.nan, 0.0, math.inf, unit)


def total(parts: Sequence[Quantity]) -> Quantity:
    """Return the sum of one or more quantities of one unit; its interval is the sum of theirs."""
    return Quantity(
        sum(part.value for part in parts),
        sum(part.low for part in parts),
        sum(part.high for part in parts),
        parts[0].unit,
    )


class Finding(msgspec.Struct, frozen=True):
    """Something that makes a number untrustworthy, as data: shown by reports, never printed by library code."""

    rule: str
    severity: Severity
    place: str
    explanation: str
    remedy: str = ""


def bin_edges(index: int) -> tuple[int, int]:
    """Lower (inclusive) and upper (exclusive) edge in ns of fio latency bin ``index`` (0 .. 1855).

    Source: ``plat_idx_to_val`` in fio 3.x ``stat.c``: 64 bins per power of two, exact below 128 ns.
    """
    if not 0 <= index < BINS:
        raise ValueError(f"fio has latency bins 0 to {BINS - 1}, not {index}")
    if index < 128:
        return index, index + 1
    exponent = (index >> 6) - 1
    low = (64 + (index & 63)) << exponent
    return low, low + (1 << exponent)


def bin_index(value: int) -> int:
    """Return the fio latency bin that holds ``value`` ns; longer than 17 s is the cap bin (``plat_val_to_idx``)."""
    top = value.bit_length() - 1
    if top <= 6:
        return value
    exponent = top - 6
    return min(((exponent + 1) << 6) + ((value >> exponent) & 63), BINS - 1)


class Histogram(msgspec.Struct, frozen=True, dict=True):
    """Counts in fio's latency bins, sparse: ``indexes`` ascending, ``counts`` in the same order. Mergeable by addition."""

    indexes: tuple[int, ...]
    """Numbers of the bins that hold something, ascending."""
    counts: tuple[int, ...]
    """I/Os in each of these bins."""

    @classmethod
    def from_fio(cls, bins: Mapping[str, int]) -> Histogram:
        """From json+ ``bins`` of fio >= 2.99: keys are bin centres in ns, values counts. Raises ValueError."""
        counts: dict[int, int] = {}
        for key, count in bins.items():
            index = bin_index(int(key))
            counts[index] = counts.get(index, 0) + count
        return cls.from_counts(counts)

    @classmethod
    def from_counts(cls, counts: Mapping[int, int]) -> Histogram:
        """From bin index -> count; zero counts are dropped. Raises ValueError on a negative count or bad index."""
        kept = sorted((index, count) for index, count in counts.items() if count)
        for index, count in kept:
            bin_edges(index)
            if count < 0:
                raise ValueError(f"bin {index} has the negative count {count}")
        return cls(tuple(index for index, _ in kept), tuple(count for _, count in kept))

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        """Return the histogram of all samples of ``parts`` together (exact)."""
        total: dict[int, int] = {}
        for part in parts:
            for index, count in zip(part.indexes, part.counts, strict=True):
                total[index] = total.get(index, 0) + count
        return cls.from_counts(total)

    @cached_property
    def total(self) -> int:
        """Number of samples."""
        if not self.counts:
            return 0
        return self._reached[-1]

    @cached_property
    def _reached(self) -> list[int]:
        """Samples up to and with each bin."""
        return list(accumulate(self.counts))

    def quantile(self, p: float) -> float:
        """Return the ``p`` quantile (0 < p < 1) in ns, interpolated linearly inside its bin; nan when empty.

        The cumulative count is taken as reaching ``p * total``; a bin's samples are spread evenly over
        ``[low, high)``. Measured error against the exact sample quantile at 200 000 samples: 0.03 % at p50.
        """
        if not 0.0 < p < 1.0:
            raise ValueError(f"a quantile is between 0 and 1, not {p}")
        rank, at = p * self.total, self.place(p)
        if not self.total or at == len(self.counts):
            return float("nan")
        low, high = bin_edges(self.indexes[at])
        return high - (high - low) * (self._reached[at] - rank) / self.counts[at]

    def place(self, p: float) -> int:
        """Return the place in ``indexes`` of the bin that holds the ``p`` quantile; their number when it is empty."""
        return bisect_left(self._reached, p * self.total)

    def coarse(self, points: Iterable[float]) -> Histogram:
        """Return the same samples in as few bins as leave ``total`` and the quantiles at ``points`` (0..1) what they
        are.

        The bin of each of these quantiles stays by itself; those between two of them become one, named by its last.
        """
        if not self.total:
            return self
        places = {self.place(point) for point in points}
        after = {place + 1 for place in places}
        parts = list(pairwise(sorted({0, len(self.counts)} | places | after)))
        return Histogram(
            tuple(self.indexes[end - 1] for _, end in parts),
            tuple(sum(self.counts[begin:end]) for begin, end in parts),
        )

    def mean(self) -> float:
        """Return the mean in ns from bin centres (within 0.8 %, typically 0.01 %); nan when empty."""
        if not self.total:
            return float("nan")
        centres = (sum(bin_edges(index)) / 2 for index in self.indexes)
        return (
            sum(c * n for c, n in zip(centres, self.counts, strict=True)) / self.total
        )


class Latency(msgspec.Struct, frozen=True):
    """One latency of one direction, ns. ``percentiles`` are keyed by percent (99.9) and as the source printed them."""

    count: int
    mean: Quantity
    stddev: Quantity
    min: Quantity
    max: Quantity
    percentiles: dict[float, Quantity] = {}
    histogram: Histogram | None = None
    """Counts by latency bin; None where the source has none."""

    def quantile(self, p: float) -> float:
        """Return the ``p`` quantile (0..1) in ns: interpolated where the histogram was kept, else as printed, else nan."""
        if self.histogram is not None and self.histogram.total:
            return self.histogram.quantile(p)
        for percent, quantity in self.percentiles.items():
            if abs(percent - 100 * p) < 1e-9:
                return quantity.value
        return float("nan")


class Direction(msgspec.Struct, frozen=True):
    """What a trial did in one direction. ``lat`` is total, ``clat`` completion, ``slat`` submission latency."""

    kind: Kind
    ios: int
    bytes: int
    runtime_ms: int
    iops: Quantity
    bandwidth: Quantity
    lat: Latency | None = None
    """Total latency; None where the source has none."""
    clat: Latency | None = None
    """Completion latency; None where the source has none."""
    slat: Latency | None = None
    """Submission latency; None where the source has none."""
    short: int = 0
    dropped: int = 0

    def latencies(self) -> dict[str, Latency]:
        """Return the latencies that the source has, by name: ``lat``, ``clat``, ``slat``."""
        named = {"lat": self.lat, "clat": self.clat, "slat": self.slat}
        return {name: latency for name, latency in named.items() if latency is not None}


class Background(msgspec.Struct, frozen=True):
    """The background load's account of itself during one trial."""

    command: tuple[str, ...]
    alive: float
    """Share of the measured window during which it was running, 0..1."""
    restarts: int = 0
    rate: float | None = None
    """Achieved bytes per second where it can be known (a fio background), else None."""
    exit_codes: tuple[int, ...] = ()


class Place(msgspec.Struct, frozen=True):
    """Where a number was read: file (inside an archive after ``!``) and line, 1-based; line 0 for the whole file."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        """``file:line``; the file alone for the whole of it."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Trial(msgspec.Struct, frozen=True):
    """One measured run of one cell under one variant: the smallest unit with a number."""

    number: int
    cell: str
    variant: str
    block: int
    position: int
    """Place of this trial inside its block, 0 first."""
    seed: int
    started: float
    """Unix seconds."""
    seconds: float
    directions: tuple[Direction, ...]
    sync: Latency | None = None
    """Latency of fsync, fdatasync and sync_file_range; None where the load made none of them."""
    attempt: int = 0
    """0, or how often this block had to be repeated before."""
    conditioning: bool = False
    """A trial that brings the machine into its variant's state: the trial after it counts, this one does not."""
    usr_cpu: float = float("nan")
    """User CPU of the load in percent of one CPU (fio's usr_cpu)."""
    sys_cpu: float = float("nan")
    context_switches: int = 0
    counters: dict[str, float] = {}
    """Differences of machine counters over the trial, dotted names: ``disk.vda.read_ios``, ``cpu.steal_ms``."""
    background: Background | None = None
    series: dict[str, tuple[float, ...]] = {}
    """Per-second values over the measured window: ``read.iops``."""
    measured: dict[str, Quantity] = {}
    """What a command printed and used, by the names of its metrics; it has no directions."""
    findings: tuple[Finding, ...] = ()
    source: Place = Place("")

    @property
    def problem(self) -> str:
        """Return why it cannot be used; empty when it can."""
        hard = [finding for finding in self.findings if finding.severity == "hard"]
        return "; ".join(f"{finding.explanation} ({finding.rule})" for finding in hard)

    def direction(self, kind: Kind) -> Direction | None:
        """Return the direction ``kind``, or None when the trial did none of it."""
        return next((d for d in self.directions if d.kind == kind), None)
