"""One direction of a run as a row of numbers, each with the interval that the source's precision allows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from iodelta.audit.numbers import known
from iodelta.ingest import Refusal
from iodelta.study.devices import Served
from iodelta.trial import (
    Direction,
    Finding,
    Latency,
    Quantity,
    bin_edges,
)

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
        return _half_width(self)


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
        return _half_width(self)

    @property
    def thin(self) -> bool:
        """Return whether too few I/Os lie beyond it."""
        return self.beyond is not None and self.beyond < BEYOND


def _half_width(value: Number | Point) -> float:
    """Half the interval as a share of the value; 0 where the value is 0."""
    if not value.value:
        return 0.0
    return (value.high - value.low) / 2 / value.value


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
        """Return the percentile ``percent``, or None."""
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
    """Return a quantity as a Number; None when it is not known."""
    if quantity is None or not (known(quantity) and math.isfinite(quantity.low)):
        return None
    return Number(quantity.value, quantity.low, quantity.high)


def relative_spread(numbers: Sequence[Number]) -> float | None:
    """Sample standard deviation as a share of the mean; None for fewer than two numbers, or a mean of 0."""
    values = [number.value for number in numbers]
    mean = sum(values) / max(1, len(values))
    if len(values) < 2 or not mean:
        return None
    squares = sum((value - mean) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1)) / mean


def percentiles_of(direction: Direction) -> Latency | None:
    """Return the latency that has percentiles: fio prints those of clat unless ``lat_percentiles`` is set."""
    for latency in (direction.lat, direction.clat):
        if latency is not None and (
            bool(latency.percentiles) or latency.histogram is not None
        ):
            return latency
    return None


def points(latency: Latency | None) -> tuple[Point, ...]:
    """Return the usual percentiles of a latency: interpolated where bins were kept, else as printed."""
    if latency is None:
        return ()
    return tuple(filter(None, (point_of(latency, percent) for percent in POINTS)))


def point_of(latency: Latency, percent: float) -> Point | None:
    """Return one percentile (0 to 100) with the interval of its bin or of its rounding; None where the source lacks it."""
    if latency.histogram is not None and latency.histogram.total:
        # A percentile from kept bins: the bin that it lies in bounds it.
        place = latency.histogram.place(percent / 100)
        low, high = bin_edges(latency.histogram.indexes[place])
        return Point(
            percent,
            latency.histogram.quantile(percent / 100),
            float(low),
            float(high),
            beyond=latency.histogram.total * (100 - percent) / 100,
        )
    return _as_printed(latency, percent)


def _as_printed(latency: Latency, percent: float) -> Point | None:
    """Return a percentile that the source printed; None without it, or where only its lower end is known."""
    printed = _printed(latency, percent)
    if printed is None or math.isnan(printed.value):
        return None
    value, high = printed.value, printed.high
    # Of fio's last bin only the maximum is a bound; any centre may lie above it.
    if printed.low <= latency.max.high:
        value = min(value, latency.max.high)
        high = min(high, latency.max.high)
    if not high < math.inf:
        return None
    beyond = latency.count * (100 - percent) / 100 if latency.count else None
    return Point(percent, value, printed.low, high, beyond)


def _printed(latency: Latency, percent: float) -> Quantity | None:
    """Return the printed percentile; sources write the same one as 99, 99.0 or 99.000000."""
    for printed_percent, value in latency.percentiles.items():
        if abs(printed_percent - percent) < 1e-9:
            return value
    return None
