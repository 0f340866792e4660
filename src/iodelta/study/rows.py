"""One direction of a run as a row of numbers, each with the interval that its source allows."""

from __future__ import annotations

import math

import msgspec

from iodelta.audit.numbers import known
from iodelta.ingest import Refusal
from iodelta.study.devices import Served
from iodelta.trial import Finding, Latency, Quantity, bin_edges

POINTS = (50.0, 99.0, 99.9)

BEYOND = 100
"""I/Os that must lie beyond a percentile for it to be more than an anecdote."""

OWN = "iodelta"
"""The kind of layout that iodelta's own experiment folders have: always medians, their trials are many."""

SEVERITIES = ("hard", "warning", "note", "")
"""The gravest first; the last of what has no finding."""


class Number(msgspec.Struct, frozen=True):
    """A number with the interval that its source allows."""

    value: float
    low: float
    high: float

    @property
    def resolution(self) -> float:
        """Half the interval, as a share of the value."""
        if not self.value:
            return 0.0
        return (self.high - self.low) / 2 / self.value


class OfCommand(msgspec.Struct, frozen=True):
    """A number that a command printed or used, with the interval that its digits allow."""

    value: float
    low: float
    high: float
    unit: str


class Point(msgspec.Struct, frozen=True):
    """A latency percentile in ns; ``beyond`` is how many I/Os were slower, None where that is not known."""

    percent: float
    value: float
    low: float
    high: float
    beyond: float | None

    @property
    def resolution(self) -> float:
        """Half the interval, as a share of the value."""
        if not self.value:
            return 0.0
        return (self.high - self.low) / 2 / self.value

    @property
    def thin(self) -> bool:
        """Whether too few I/Os lie beyond it."""
        return self.beyond is not None and self.beyond < BEYOND


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One direction of one run; or, with ``runs`` above 1, the medians of several. Latencies in ns, rates per second.

    ``latency`` says which one mean and percentiles are of: lat (total), clat (completion), or sync in a row of its own.
    """

    group: str
    name: str
    kind: str = ""
    runs: int = 1
    spread: float | None = None
    """Standard deviation of IOPS over the runs, as a share of their mean."""
    iops: Number | None = None
    bandwidth: Number | None = None
    """Bytes per second; None where the source does not say."""
    mean: Number | None = None
    """Mean latency, ns; None where the source does not say."""
    points: tuple[Point, ...] = ()
    """Percentiles of latency; empty where the source has none."""
    latency: str = ""
    """Which latency the mean is of: lat (total), clat (completion) or sync (fsync and its like); empty without any."""
    measured: dict[str, OfCommand] = {}
    """Of a command that is not fio: its numbers by name."""
    rw: str | None = None
    bs: int | None = None
    iodepth: int | None = None
    jobs: int | None = None
    ioengine: str | None = None
    direct: bool | None = None
    fio_version: str | None = None
    format: str = ""
    file: str = ""
    line: int = 0
    error: int = 0
    short: int = 0
    dropped: int = 0
    rules: tuple[str, ...] = ()
    """Findings about it."""
    severity: str = ""
    """The gravest of them."""

    def point(self, percent: float) -> Point | None:
        """The percentile ``percent``, or None."""
        return next((point for point in self.points if point.percent == percent), None)


class Shown(msgspec.Struct, frozen=True):
    """Everything ``iodelta show`` has to say."""

    schema: str
    rows: tuple[Row, ...]
    """One per direction of a run, or of several runs that were put together."""
    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]
    runs: int
    files: int
    paths: tuple[str, ...] = ()
    """As they were given."""
    devices: tuple[Served, ...] = ()
    """What read_stats dumps say."""
    systems: dict[str, tuple[tuple[str, str], ...]] = {}
    """Name and value of what each machine was, by path; of foreign results nothing is recorded."""


def number(quantity: Quantity | None) -> Number | None:
    """A quantity as a Number; None when it is not known."""
    if quantity is None or not known(quantity) or not math.isfinite(quantity.low):
        return None
    return Number(quantity.value, quantity.low, quantity.high)


def points(latency: Latency | None) -> tuple[Point, ...]:
    """The usual percentiles of a latency: interpolated where bins were kept, else as printed."""
    if not latency:
        return ()
    return tuple(
        point for percent in POINTS if (point := point_of(latency, percent)) is not None
    )


def point_of(latency: Latency, percent: float) -> Point | None:
    """One percentile with the interval of its bin or its rounding."""
    beyond = latency.count * (100 - percent) / 100 if latency.count else None
    if latency.histogram is not None and latency.histogram.total:
        value = latency.histogram.quantile(percent / 100)
        return Point(
            percent,
            value,
            *_bin(latency, percent),
            beyond=latency.histogram.total * (100 - percent) / 100,
        )
    printed = next(
        (value for p, value in latency.percentiles.items() if abs(p - percent) < 1e-9),
        None,
    )
    if printed is None or printed.value != printed.value:
        return None
    value, high = printed.value, printed.high
    # Of fio's last bin only the maximum is a bound; any centre may lie above it.
    if printed.low <= latency.max.high:
        value, high = min(value, latency.max.high), min(high, latency.max.high)
    if high < math.inf:
        return Point(percent, value, printed.low, high, beyond)
    return None


def _bin(latency: Latency, percent: float) -> tuple[float, float]:
    assert latency.histogram is not None
    low, high = bin_edges(
        latency.histogram.indexes[latency.histogram.place(percent / 100)]
    )
    return float(low), float(high)
