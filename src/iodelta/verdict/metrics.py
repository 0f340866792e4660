"""Metrics: what is compared, which way is better, and a trial's value of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product
from statistics import median
from typing import Literal, Protocol

import msgspec
import numpy as np

from iodelta.errors import RequestError
from iodelta.experiment.command import in_unit
from iodelta.stats.cost import switches_per_io, system_ns_per_io
from iodelta.trial import (
    Direction,
    Finding,
    Kind,
    Latency,
    Quantity,
    Trial,
    bin_edges,
    bin_index,
)

Better = Literal["higher", "lower"]

Reading = tuple[float, Finding | None]
UNMEASURED: Reading = (math.nan, None)

BEYOND = 100
"""Samples that must lie beyond a percentile before one trial's value of it is used: p99 from 10^4 I/Os on."""

LATENCIES = ("lat", "clat", "slat")

OF_DIRECTION: dict[str, tuple[Better, str]] = {
    "iops": ("higher", "IOPS"),
    "bandwidth": ("higher", "B/s"),
    "jitter": ("lower", "ratio"),
}
"""The metrics of a direction apart from latencies: which way is better, and the unit."""

SYNC = "sync"
"""The kind of metrics of fsync and similar calls, which are not a direction: they have latencies only."""

SPARSE, CROWDED = 0.05, 0.25
"""Shares of all samples in a percentile's bin: up to SPARSE interpolation inside the bin is exact enough; from CROWDED
on the place inside the bin is unknown."""

COMMAND = "command"
"""The kind of metrics of a command: what it prints, and the time and memory that it uses."""

LARGE_BLOCK = 65536
"""From this block size on, storage people read bandwidth rather than IOPS."""


PER_IO: dict[str, tuple[str, Callable[[Trial], float]]] = {
    "cpu.system": ("ns", system_ns_per_io),
    "cpu.switches": ("per I/O", switches_per_io),
}
"""What an I/O costs the CPU: unit and value; all directions together."""


class Metric(msgspec.Struct, frozen=True):
    """One number of a trial: a dotted ``name`` (``read.iops``, ``write.lat.p99``), which way is better, its unit."""

    name: str
    better: Better
    unit: str

    @property
    def kind(self) -> str:
        """Return the direction it belongs to, or ``sync``: the name up to the first dot."""
        return self.name.partition(".")[0]


def metric(name: str) -> Metric:
    """Return the metric called ``name``: ``KIND.iops``, ``.bandwidth``, ``.jitter``, or ``.lat``, ``.clat`` or
    ``.slat`` followed by ``.mean`` or ``.pNN[.N]``; KIND is read, write or trim. Or ``sync.lat.mean``, ``sync.lat.pNN[.N]``:
    the latency of fsync and its like. Or ``cpu.system`` (kernel ns per I/O) and ``cpu.switches`` (context switches per
    I/O): a longer path shows there before it shows in IOPS. Raises RequestError for any other name."""
    if name in PER_IO:
        return Metric(name, "lower", PER_IO[name][0])
    kind, _, what = name.partition(".")
    family, _, point = what.partition(".")
    of_direction = kind in ("read", "write", "trim")
    if of_direction and what in OF_DIRECTION:
        return Metric(name, *OF_DIRECTION[what])
    is_latency = (of_direction and family in LATENCIES) or (kind, family) == (
        SYNC,
        "lat",
    )
    if is_latency and (point == "mean" or percent_of(point) is not None):
        return Metric(name, "lower", "ns")
    raise RequestError(
        f"unknown metric {name!r}",
        remedy="use read, write or trim, then .iops, .bandwidth, .jitter, .lat.mean or a percentile such as .lat.p99; "
        "or sync.lat.mean, sync.lat.p99; or cpu.system, cpu.switches",
    )


def metrics_for(
    source: Iterable[Kind | Trial], *, block_size: int = 4096, syncs: bool = False
) -> tuple[Metric, ...]:
    """Return the default primary metrics of the directions in ``source`` (direction names, or trials that did them):
    IOPS (bandwidth from 64 KiB blocks on), mean total latency and p99 total latency of each, in first-seen order;
    then mean and p99 latency of ``syncs``, where the load or a trial in ``source`` has them.

    In a closed loop at a fixed iodepth IOPS and mean latency are one effect seen twice (Little's law: depth = IOPS x
    latency). Both are kept because either may be missing from a foreign file; reports say whether they are one effect.
    """
    kinds: dict[str, None] = {}
    for item in source:
        syncs = syncs or (isinstance(item, Trial) and item.sync is not None)
        for kind in (
            [item]
            if isinstance(item, str)
            else [direction.kind for direction in item.directions]
        ):
            kinds[kind] = None
    rate = "bandwidth" if block_size >= LARGE_BLOCK else "iops"
    names = [
        f"{kind}.{what}" for kind, what in product(kinds, (rate, "lat.mean", "lat.p99"))
    ]
    if syncs:
        names += ["sync.lat.mean", "sync.lat.p99"]
    return tuple(map(metric, names))


def value_of(trial: Trial, wanted: Metric) -> Reading:
    """Return the value of ``wanted`` in ``trial``, in its unit; nan when it was not measured, or was refused with a
    Finding.

    Refused: a percentile with fewer than 100 samples beyond it (the sum over blocks may still support it), and a
    jitter from fewer than 3 seconds or with a second that did no I/O (its logarithm has no value).
    """
    thin = thin_tail(wanted.name, [trial])
    return (math.nan, thin) if thin is not None else reader(wanted)(trial)


def thin_tail(name: str, trials: Sequence[Trial]) -> Finding | None:
    """Return why the percentile ``name`` cannot be read from these trials one by one; None when it can, or for another
    metric.

    Judged by the median I/O count of all trials together. Refusing single trials would leave out the slow ones, which
    did fewer I/Os, and so bias what is left.
    """
    kind, _, what = name.partition(".")
    family, _, point = what.partition(".")
    percent = percent_of(point)
    if percent is None:
        return None
    latencies = [latency_of(trial, kind, family) for trial in trials]
    counts = [latency.count for latency in latencies if latency is not None]
    needed = BEYOND / (100.0 - percent) * 100.0
    if not counts or (typical := median(counts)) >= needed * (1 - 1e-9):
        return None
    return Finding(
        "verdict.tail-too-thin",
        "warning",
        f"trial {trials[0].number}, {name}" if len(trials) == 1 else name,
        f"{typical:.0f} I/Os leave {typical * (100.0 - percent) / 100.0:.0f} beyond p{percent:g}; {BEYOND} are needed",
        f"run trials of at least {needed:.0f} I/Os, or read the percentile pooled over all blocks",
    )


@lru_cache(maxsize=256)
def reader(wanted: Metric) -> Callable[[Trial], Reading]:
    """``value_of`` for one metric, whose name is parsed once; ``thin_tail`` checks whether a tail is too thin."""
    name = wanted.name
    if name in PER_IO:
        per_io = PER_IO[name][1]
        return lambda trial: (per_io(trial), None)
    kind, _, what = name.partition(".")
    if kind == COMMAND:

        def printed(trial: Trial) -> Reading:
            if what not in trial.measured:
                return UNMEASURED
            number = trial.measured[what]
            return in_unit(number.value, number.unit, wanted.unit), None

        return printed
    if what == "jitter":
        return lambda trial: _jitter(trial, kind)
    if kind == SYNC:
        percent = percent_of(what.partition(".")[2])
        return lambda trial: _of_sync(trial, percent)
    return _direction_reader(kind, what)


def _direction_reader(kind: str, what: str) -> Callable[[Trial], Reading]:
    """Return the reader of a rate or a latency of one direction."""
    family, _, point = what.partition(".")
    percent = percent_of(point)

    def read(trial: Trial) -> Reading:
        direction = next((one for one in trial.directions if one.kind == kind), None)
        if direction is None:
            return UNMEASURED
        if family in LATENCIES and not direction.iops.value:
            return math.inf, None  # no I/O came back: the worst latency there is
        if what == "iops":
            return direction.iops.value, None
        if what == "bandwidth":
            return direction.bandwidth.value, None
        latency = latency_of(trial, kind, family)
        if latency is None:
            return UNMEASURED
        if point == "mean":
            return latency.mean.value, None
        return (
            UNMEASURED if percent is None else (latency.quantile(percent / 100.0), None)
        )

    return read


def weight_of(trial: Trial, wanted: Metric) -> float:
    """Return the weight of ``trial`` in a total of ``wanted``: its I/Os for a latency or a cost per I/O, 1 for a rate."""
    kind, _, what = wanted.name.partition(".")
    if wanted.name in PER_IO:
        return float(sum(direction.ios for direction in trial.directions))
    if what.partition(".")[0] not in LATENCIES:
        return 1.0
    if kind == SYNC:
        return float(trial.sync.count if trial.sync is not None else 0)
    return float(
        sum(direction.ios for direction in trial.directions if direction.kind == kind)
    )


def resolution_of(trial: Trial, wanted: Metric) -> float:
    """Half the width (a log-ratio) within which ``trial``'s value is known: a source's rounding, or a percentile's bin.

    A percentile read from bins is interpolated, which is exact where its bin holds few of the samples and worth
    nothing where a quiet device puts a quarter of them into one bin.
    """
    kind, _, what = wanted.name.partition(".")
    if kind == COMMAND:
        return _half_width(trial.measured[what]) if what in trial.measured else 0.0
    family, _, point = what.partition(".")
    if family not in LATENCIES:
        direction = next(
            (resolution for resolution in trial.directions if resolution.kind == kind),
            None,
        )
        rates = (
            {"iops": direction.iops, "bandwidth": direction.bandwidth}
            if direction is not None
            else {}
        )
        return _half_width(rates[what]) if what in rates else 0.0
    latency, percent = latency_of(trial, kind, family), percent_of(point)
    if latency is None:
        return 0.0
    if percent is None:
        return _half_width(latency.mean)
    if latency.histogram is not None and latency.histogram.total:
        # Half the width of the quantile's bin, times how far the bin is from holding few of the samples.
        p = percent / 100.0
        place = min(latency.histogram.place(p), len(latency.histogram.counts) - 1)
        crowd = (latency.histogram.counts[place] / latency.histogram.total - SPARSE) / (
            CROWDED - SPARSE
        )
        return _half_bin(latency.histogram.indexes[place]) * min(1.0, max(0.0, crowd))
    printed = latency.percentiles.get(percent)
    if printed is None or not printed.value > 0:
        return 0.0
    return max(_half_width(printed), _half_bin(bin_index(int(printed.value))))


def _half_width(quantity: Quantity) -> float:
    return (
        0.5 * math.log(quantity.high / quantity.low)
        if 0 < quantity.low < quantity.high < math.inf
        else 0.0
    )


def _half_bin(index: int) -> float:
    low, high = bin_edges(index)
    return 0.5 * math.log(high / low) if low else 0.0


def percent_of(point: str) -> float | None:
    """99.9 from ``p99.9``; None when it is not a percentile strictly between 0 and 100."""
    if not point.startswith("p") or not point[1:].replace(".", "", 1).isdigit():
        return None
    percent = float(point[1:])
    return percent if 0.0 < percent < 100.0 else None


class Measured(Protocol):
    """A trial, or a run from a foreign file."""

    @property
    def directions(self) -> tuple[Direction, ...]: ...

    @property
    def sync(self) -> Latency | None: ...


def latency_of(measured: Measured, kind: str, family: str) -> Latency | None:
    """Return one latency (lat, clat or slat) of a direction; of ``sync`` there is lat alone. None when not measured."""
    if kind == SYNC:
        return measured.sync if family == "lat" else None
    for direction in measured.directions:
        if direction.kind == kind:
            return {
                "lat": direction.lat,
                "clat": direction.clat,
                "slat": direction.slat,
            }.get(family)
    return None


def _of_sync(trial: Trial, percent: float | None) -> Reading:
    if trial.sync is None:
        stalled = bool(trial.directions) and not any(
            direction.iops.value for direction in trial.directions
        )
        return (math.inf, None) if stalled else UNMEASURED
    return (
        trial.sync.mean.value
        if percent is None
        else trial.sync.quantile(percent / 100.0)
    ), None


def _jitter(trial: Trial, kind: str) -> Reading:
    """Standard deviation of the logarithm of the per-second IOPS over the measured window."""
    series = trial.series.get(f"{kind}.iops", ())
    if not series:
        return UNMEASURED
    values = np.asarray(series, dtype=float)
    if len(values) >= 3 and np.all(np.isfinite(values)) and np.all(values > 0):
        return float(np.std(np.log(values), ddof=1)), None
    return math.nan, Finding(
        "verdict.no-jitter",
        "warning",
        f"trial {trial.number}, {kind}.jitter",
        "the spread of per-second IOPS needs 3 seconds or more, each with some I/O",
        "run longer trials; if seconds stall, that stall is the result to look at",
    )
