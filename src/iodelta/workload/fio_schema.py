"""fio's JSON and JSON+ as every version since 2.0.10 writes it, and its directions as ``iodelta.trial`` has them.

Facts about the format by version are from fio's ``stat.c`` at its tags.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Annotated

import msgspec

from iodelta.decoding import decoder, from_json
from iodelta.probe.native import native_function
from iodelta.trial import (
    BINS,
    Direction,
    Histogram,
    Kind,
    Latency,
    Quantity,
    bin_edges,
    bin_index,
    unknown,
)

US_BINS = 1216
"""Number of latency bins before 2.99, of microseconds: 19 groups of 64."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class RawLatency(msgspec.Struct, dict=True):
    min: float = math.nan
    max: float = math.nan
    mean: float = math.nan
    stddev: float = math.nan
    N: Count | None = None  # since 3.18
    percentile: dict[str, float] = {}
    bins: msgspec.Raw = msgspec.Raw(b"{}")  # integers by name, nearly all of a JSON+

    @property
    def binned(self) -> bool:
        """Return whether there are bins, or something else in their place."""
        return bytes(self.bins).strip(b"{} \t\r\n") != b""

    @cached_property
    def histogram(self) -> Histogram:
        """From the bins of fio >= 2.99. Raises ValueError for bins that fio cannot have written; it is a DecodeError
        for values that are not integers."""
        counts = from_json(self.bins, dict[str, int])
        try:
            indexes = tuple(map(_centres().__getitem__, counts))
        except KeyError:
            return Histogram.from_fio(counts)
        if min(counts.values(), default=1) > 0 and list(indexes) == sorted(indexes):
            return Histogram(indexes, tuple(counts.values()))
        return Histogram.from_fio(counts)


class RawPriority(msgspec.Struct):
    """One entry of ``prios``, since 3.30."""

    prioclass: int = 0
    prio: int = 0
    priohint: int = 0  # since 3.36
    clat_ns: RawLatency | None = None
    lat_ns: RawLatency | None = None


class RawDirection(msgspec.Struct):
    io_bytes: Count | None = None  # KiB up to 2.20
    io_kbytes: Count | None = None  # since 2.21
    bw: float = math.nan  # KiB/s
    bw_bytes: float | None = None  # since 3.0
    iops: float | None = None  # an integer before 2.2.6
    runtime: Count = 0
    total_ios: Count | None = None  # since 2.1.14
    short_ios: Count = 0
    drop_ios: Count = 0
    slat_ns: RawLatency | None = None  # since 2.99
    clat_ns: RawLatency | None = None
    lat_ns: RawLatency | None = None
    slat: RawLatency | None = None  # in us, before
    clat: RawLatency | None = None
    lat: RawLatency | None = None
    bw_min: float = math.nan
    bw_max: float = math.nan
    bw_mean: float = 0.0
    bw_dev: float = math.nan
    bw_samples: Count | None = None  # since 2.99
    iops_min: float = math.nan
    iops_max: float = math.nan
    iops_mean: float | None = None  # since 2.99
    iops_stddev: float = math.nan
    iops_samples: Count | None = None
    prios: list[RawPriority] = []
    clat_high_prio: RawLatency | None = None  # 3.18 to 3.29
    clat_low_prio: RawLatency | None = None
    lat_high_prio: RawLatency | None = None
    lat_low_prio: RawLatency | None = None


class RawSync(msgspec.Struct):
    total_ios: Count = 0
    lat_ns: RawLatency | None = None


class RawSteady(msgspec.Struct):
    ss: str = ""
    attained: int = 0


class RawDisk(msgspec.Struct):
    name: str = ""
    read_ios: Count | None = None
    write_ios: Count | None = None
    read_sectors: Count | None = None  # since 3.36
    write_sectors: Count | None = None
    read_merges: Count | None = None
    write_merges: Count | None = None
    read_ticks: Count | None = None
    write_ticks: Count | None = None
    in_queue: Count | None = None
    util: float = math.nan
    aggr_util: float | None = None  # of a device above others, which follow it
    hostname: str = ""


class RawJob(msgspec.Struct):
    jobname: str = ""
    groupid: int = 0
    job_start: Count | None = None  # Unix ms, since 3.36
    error: int = 0
    eta: int = 0  # seconds left: above 0 in a report before the end
    elapsed: Count | None = None
    read: RawDirection | None = None
    write: RawDirection | None = None
    trim: RawDirection | None = None
    mixed: RawDirection | None = None
    sync: RawSync | None = None
    job_runtime: Count = 0  # since 3.8; the sum over the members of a group
    usr_cpu: float | None = None
    sys_cpu: float | None = None
    ctx: Count | None = None
    iodepth_level: dict[str, float] = {}
    latency_ns: dict[str, float] = {}
    latency_us: dict[str, float] = {}
    latency_ms: dict[str, float] = {}
    steadystate: RawSteady | None = None
    hostname: str = ""
    description: str = msgspec.field(name="desc", default="")
    options: dict[str, str] = msgspec.field(name="job options", default_factory=dict)


class RawMember(msgspec.Struct):
    path: str
    reads: Count = 0
    writes: Count = 0
    mean_ns: float = 0.0


class RawMirror(msgspec.Struct):
    """What the user-space mirror adds when it replaces fio."""

    members: list[RawMember] = []


class RawDocument(msgspec.Struct):
    jobs: list[RawJob] = []
    clients: list[RawJob] = msgspec.field(name="client_stats", default_factory=list)
    version: str = msgspec.field(name="fio version", default="")
    options: dict[str, str] = msgspec.field(name="global options", default_factory=dict)
    timestamp: Count | None = None
    timestamp_ms: Count | None = None
    disks: list[RawDisk] = msgspec.field(name="disk_util", default_factory=list)
    mirror: RawMirror | None = None

    @property
    def printed(self) -> float | None:
        """Unix seconds at which fio printed it; None before 2.2.5."""
        if self.timestamp_ms is not None:
            return self.timestamp_ms / 1000
        if self.timestamp is None:
            return None
        return float(self.timestamp)


_NUMBERED = re.compile(rb"\[(\d{1,6})\]")
"""What the native core puts in the place of bins; in the text itself they are an error."""
_decoder = decoder(RawDocument)


def decoded(text: bytes) -> RawDocument:
    """Return one whole document. Raises DecodeError. Where the native core is installed, it reads the bins."""
    take = native_function("take_bins") if b'"bins"' in text else None
    taken = take(text) if take else None
    if taken is None:
        return _decoder.decode(text)
    rest, histograms = taken
    try:
        raw = _decoder.decode(rest)
    except msgspec.DecodeError:
        return _decoder.decode(text)  # to say where in the whole text
    for part in _latencies(raw):
        number = _NUMBERED.fullmatch(part.bins)
        if number:
            part.histogram = Histogram(*histograms[int(number[1])])
    return raw


def _latencies(raw: RawDocument) -> Iterator[RawLatency]:
    for job in (*raw.jobs, *raw.clients):
        for part in (job.read, job.write, job.trim, job.mixed):
            if part is not None:
                latencies = (
                    part.slat_ns,
                    part.clat_ns,
                    part.lat_ns,
                    part.slat,
                    part.clat,
                    part.lat,
                )
                yield from filter(None, latencies)
                for priority in part.prios:
                    yield from filter(None, (priority.clat_ns, priority.lat_ns))
                high_and_low = (
                    part.clat_high_prio,
                    part.clat_low_prio,
                    part.lat_high_prio,
                    part.lat_low_prio,
                )
                yield from filter(None, high_and_low)
        if job.sync is not None and job.sync.lat_ns is not None:
            yield job.sync.lat_ns


@lru_cache(maxsize=1)
def _centres() -> dict[str, int]:
    """Bin index by the name that fio gives the bin: its centre (``plat_idx_to_val``)."""
    edges = (bin_edges(index) for index in range(BINS))
    centres = (
        low + (high - low) // 2 if high - low > 1 else low for low, high in edges
    )
    return {str(centre): index for index, centre in enumerate(centres)}


def direction(kind: Kind, raw: RawDirection, *, kibibytes: bool = False) -> Direction:
    """``raw`` as a Direction; ``kibibytes``: ``io_bytes`` counts KiB, as fio did up to 2.20.

    Raises ValueError for a histogram that fio cannot have written.
    """
    scale = 1024 if kibibytes else 1
    ios = raw.total_ios or 0
    size = (raw.io_bytes or 0) * scale
    return Direction(
        kind=kind,
        ios=ios,
        bytes=size,
        runtime_ms=raw.runtime,
        iops=rate(ios, raw.runtime, "1/s")
        if raw.total_ios is not None
        else _printed_iops(raw.iops),
        bandwidth=rate(size, raw.runtime, "B/s", spare=scale - 1)
        if raw.io_bytes is not None
        else Quantity.around(raw.bw * 1024, 0.0, 1024.0, "B/s"),
        lat=latency(raw.lat_ns, ios)
        if raw.lat_ns
        else latency(raw.lat, ios, microseconds=True),
        clat=latency(raw.clat_ns, ios)
        if raw.clat_ns
        else latency(raw.clat, ios, microseconds=True),
        slat=latency(raw.slat_ns, ios)
        if raw.slat_ns
        else latency(raw.slat, ios, microseconds=True),
        short=raw.short_ios,
        dropped=raw.drop_ios,
    )


def rate(amount: float, runtime_ms: int, unit: str, *, spare: int = 0) -> Quantity:
    """``amount`` (up to ``spare`` more) over a run time that fio knows to 1 ms; its own rates are the same division."""
    if runtime_ms <= 0:
        return unknown(unit)
    high = (amount + spare) * 1000 / (runtime_ms - 1) if runtime_ms > 1 else math.inf
    return Quantity(
        amount * 1000 / runtime_ms, amount * 1000 / (runtime_ms + 1), high, unit
    )


def latency(
    raw: RawLatency | None, ios: int, *, microseconds: bool = False
) -> Latency | None:
    """In ns; None when nothing was measured: fio prints zeros then (gtod_reduce, disable_clat, slat of sync engines).
    A number that is missing or not finite is unknown.

    Before 2.99 fio cut each latency to a whole microsecond, printed means with two decimals at first, and had bins of
    microseconds: they fall between ours and are left out. Raises ValueError for bins that fio cannot have written.
    """
    if (
        raw is None
        or raw.N == 0
        or (raw.N is None and not (raw.max > 0 or raw.mean > 0))
    ):
        return None
    scale, spare, half = (1000.0, 1000.0, 5.0) if microseconds else (1.0, 0.0, 0.0)
    # fio prints zeros for all percentiles when it kept none; an I/O that was measured takes longer.
    quick = raw.max < 1 and raw.mean < 1
    listed = raw.percentile if quick or any(raw.percentile.values()) else {}
    return Latency(
        count=ios if raw.N is None else raw.N,
        mean=Quantity.around(raw.mean * scale, half, half, "ns"),
        stddev=Quantity.around(raw.stddev * scale, half, half, "ns"),
        min=Quantity.around(raw.min * scale, 0.0, spare, "ns"),
        max=Quantity.around(raw.max * scale, 0.0, spare, "ns"),
        percentiles={
            percent: centre(value, microseconds)
            for percent, value in zip(
                _percents(tuple(listed)), listed.values(), strict=True
            )
            if percent and math.isfinite(value)
        },
        histogram=raw.histogram if raw.binned and not microseconds else None,
    )


@lru_cache(maxsize=64)
def _percents(keys: tuple[str, ...]) -> tuple[float, ...]:
    """Return the keys as percentages. All runs of an experiment list the same ones, so they are parsed once."""
    return tuple(map(_percent, keys))


def _percent(key: str) -> float:
    """0 for a key that is not a percentage, such as the keys "0.00" with which fio < 3.4 pads its list."""
    try:
        percent = float(key)
    except ValueError:
        return 0.0
    return percent if 0 < percent <= 100 else 0.0


@lru_cache(maxsize=2 * BINS)
def centre(value: float, microseconds: bool = False) -> Quantity:
    """Return a percentile printed as the centre of its bin: anything inside the bin prints the same.

    The last bin, from 17.0 s (16.6 s before 2.99), takes all that is longer.
    """
    index = bin_index(int(value))
    low, high = bin_edges(index)
    scale, last = (1000, US_BINS - 1) if microseconds else (1, BINS - 1)
    return Quantity(
        value * scale,
        float(low * scale),
        float(high * scale) if index < last else math.inf,
        "ns",
    )


def _printed_iops(iops: float | None) -> Quantity:
    """Before 2.2.6 fio cut its IOPS to an integer, and there was no count to divide."""
    value = math.nan if iops is None else iops
    return Quantity.around(value, 0.0, float(value.is_integer()), "1/s")
