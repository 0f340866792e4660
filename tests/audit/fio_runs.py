"""Runs of fio made up for one fact each."""

from __future__ import annotations

from typing import Any

import msgspec

from iodelta.ingest import Disk, Run, Sampler, Workload, unknown
from iodelta.trial import Direction, Kind, Latency, Place, Quantity


def latency(
    mean_us: float, count: int, percentiles: dict[float, float] | None = None, longest_us: float = 0
) -> Latency:
    """Total latency with mean, percentiles and maximum in us."""
    return Latency(
        count=count,
        mean=Quantity.exact(mean_us * 1e3, "ns"),
        stddev=unknown("ns"),
        min=Quantity.exact(mean_us * 500, "ns"),
        max=Quantity.exact(longest_us * 1e3, "ns") if longest_us else unknown("ns"),
        percentiles={p: Quantity.exact(value * 1e3, "ns") for p, value in (percentiles or {}).items()},
    )


def direction(
    iops: float = 10_000, *, kind: Kind = "read", seconds: float = 10, bs: int = 4096, mean_us: float = 0, **more: Any
) -> Direction:
    """A direction of so many IOPS of ``bs`` bytes over ``seconds``."""
    ios = round(iops * seconds)
    return Direction(
        kind=kind,
        ios=ios,
        bytes=ios * bs,
        runtime_ms=round(seconds * 1000),
        iops=Quantity.exact(iops, "1/s"),
        bandwidth=Quantity.exact(iops * bs, "B/s"),
        **({"lat": latency(mean_us, ios)} | more if mean_us else more),
    )


def run(*directions: Direction, depth: int = 32, engine: str = "libaio", **more: Any) -> Run:
    """A run of fio 3.33 with direct I/O and one job, as its JSON gives it."""
    given: dict[str, Any] = {
        "place": Place("result.json", 1),
        "format": "json",
        "jobs": 1,
        "directions": directions or (direction(mean_us=3200),),
        "options": {"ioengine": engine, "iodepth": str(depth)},
        "workload": Workload(
            rw="randread", bs=4096, ioengine=engine, iodepth=depth, numjobs=1, direct=True, runtime=10
        ),
        "fio_version": "3.33",
    }
    return Run(**(given | more))


def disk(name: str = "sda", reads: int = 0, writes: int = 0, *, bs: int = 4096, **more: Any) -> Disk:
    """A disk that moved so many requests of ``bs`` bytes."""
    sectors = {"read_sectors": reads * bs // 512, "write_sectors": writes * bs // 512}
    return Disk(name, read_ios=reads, write_ios=writes, **(sectors | more))


def asked(one: Run, **changes: Any) -> Run:
    """The same run with another workload."""
    return msgspec.structs.replace(one, workload=msgspec.structs.replace(one.workload, **changes))


def sampler(mean: float, low: float, high: float) -> tuple[Sampler, ...]:
    """What fio sampled of the IOPS of reads."""
    average, least, most = (Quantity.exact(value, "1/s") for value in (mean, low, high))
    return (Sampler("read", "iops", average, least, most, Quantity.exact(1.0, "1/s")),)
