"""Parts of fio's JSON other than the directions: disks, samplers, priorities, the coarse histogram."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from iodelta.ingest.model import Disk, Priority, Sampler, unknown
from iodelta.ingest.wording import clean
from iodelta.trial import Kind, Quantity
from iodelta.workload.fio_schema import RawDirection, RawDisk, RawJob, latency

_BUCKETS = {
    str(bound): float(bound)
    for bound in (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000)
} | {">=2000": math.inf}
"""Keys of fio's coarse histogram, in its unit; the last two are of milliseconds only."""

_DISK_COUNTERS = (
    "read_ios",
    "write_ios",
    "read_merges",
    "write_merges",
    "read_ticks",
    "write_ticks",
    "in_queue",
)


def shares_of(job: RawJob) -> Iterator[tuple[float, float]]:
    """fio's coarse histogram in ascending order; each key is the upper bound of its bucket."""
    for size, buckets in (
        (1.0, job.latency_ns),
        (1e3, job.latency_us),
        (1e6, job.latency_ms),
    ):
        for name, bound in _BUCKETS.items():
            if 0 < buckets.get(name, 0.0) <= 100:
                yield bound * size, buckets[name]


def disks_of(raw: Sequence[RawDisk]) -> tuple[tuple[str, Disk], ...]:
    """Host and disk of each; the members of a stacked device follow it."""
    stacked = [number for number, disk in enumerate(raw) if disk.aggr_util is not None]
    first = min(stacked, default=len(raw))
    disks = (
        (disk, _disk(disk, member=number > first and number not in stacked))
        for number, disk in enumerate(raw)
    )
    return tuple(
        (disk.hostname, one_disk) for disk, one_disk in disks if one_disk is not None
    )


def _disk(raw: RawDisk, *, member: bool) -> Disk | None:
    """None where one of the counters that every fio prints is missing."""
    counters = [getattr(raw, name) for name in _DISK_COUNTERS]
    if None in counters:
        return None
    return Disk(
        name=clean(raw.name),
        **dict(zip(_DISK_COUNTERS, counters, strict=True)),
        read_sectors=raw.read_sectors,
        write_sectors=raw.write_sectors,
        util=raw.util if math.isfinite(raw.util) else math.nan,
        member=member,
    )


def samplers_of(
    raw: Sequence[tuple[Kind, RawDirection]], half: float
) -> tuple[Sampler, ...]:
    samplers: list[Sampler] = []
    for kind, part in raw:
        if did_io(part):
            samplers += _samplers(kind, part, half)
    return tuple(samplers)


def _samplers(kind: Kind, raw: RawDirection, half: float) -> Iterator[Sampler]:
    if raw.iops_mean is not None:
        yield Sampler(
            kind,
            "iops",
            Quantity.exact(raw.iops_mean, "1/s"),
            Quantity.around(raw.iops_min, 0.0, 1.0, "1/s"),
            Quantity.around(raw.iops_max, 0.0, 1.0, "1/s"),
            Quantity.exact(raw.iops_stddev, "1/s"),
            raw.iops_samples,
        )
    if raw.bw_mean:
        yield Sampler(
            kind,
            "bw",
            printed(raw.bw_mean * 1024, "B/s", half * 1024),
            Quantity.around(raw.bw_min * 1024, 0.0, 1024.0, "B/s"),
            Quantity.around(raw.bw_max * 1024, 0.0, 1024.0, "B/s"),
            printed(raw.bw_dev * 1024, "B/s", half * 1024),
            raw.bw_samples,
        )


def priorities_of(kind: Kind, raw: RawDirection) -> Iterator[Priority]:
    named = [
        (f"{p.prioclass}/{p.prio}/{p.priohint}", p.clat_ns or p.lat_ns)
        for p in raw.prios
    ]
    named += [
        ("high", raw.clat_high_prio or raw.lat_high_prio),
        ("low", raw.clat_low_prio or raw.lat_low_prio),
    ]
    for name, part in named:
        times = latency(part, 0)
        if times is not None:
            yield Priority(kind, clean(name), times)


def printed(value: float | None, unit: str, half: float) -> Quantity:
    return unknown(unit) if value is None else Quantity.around(value, half, half, unit)


def did_io(raw: RawDirection) -> bool:
    rate = math.inf if raw.iops is None else raw.iops
    return bool(raw.total_ios or raw.io_bytes or raw.io_kbytes or 0 < rate < math.inf)
