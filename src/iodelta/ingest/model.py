"""The contents of a foreign file: runs, device counters, and refusals with their reasons."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from iodelta.trial import Direction, Finding, Kind, Latency, Place, Quantity, unknown

Format = Literal[
    "json+",
    "json",
    "terse2",
    "terse3",
    "terse4",
    "terse5",
    "text",
    "io_uring",
    "log",
    "hist-log",
    "table",
]


class Workload(msgspec.Struct, frozen=True):
    """The requested workload as far as the source shows it. None: unknown (fio's default may apply)."""

    rw: str | None = None
    bs: int | None = None
    """Bytes per I/O, if all directions use one size."""
    ioengine: str | None = None
    iodepth: int | None = None
    numjobs: int | None = None
    direct: bool | None = None
    size: int | None = None
    """Bytes."""
    runtime: float | None = None
    """Seconds requested."""


class Sampler(msgspec.Struct, frozen=True):
    """fio's own periodic samples of a rate. Their mean is not that of the run: fio omits windows without I/O."""

    kind: Kind
    of: Literal["iops", "bw"]
    """``bw`` values are bytes per second."""
    mean: Quantity
    min: Quantity
    max: Quantity
    stddev: Quantity
    samples: int | None = None
    """Number of samples; None if the source does not give it."""


class Priority(msgspec.Struct, frozen=True):
    """The latency of the I/Os of one I/O priority, where a run had several."""

    kind: Kind
    name: str
    """``class/level/hint`` as fio prints it, or ``high`` and ``low`` before 3.30."""
    latency: Latency


class Disk(msgspec.Struct, frozen=True):
    """One line of fio's disk statistics: whole-device counters over the run, other users and the ramp included."""

    name: str
    read_ios: int = 0
    write_ios: int = 0
    read_sectors: int | None = None
    """Sectors of 512 bytes; None where the source does not say."""
    write_sectors: int | None = None
    """Sectors of 512 bytes; None where the source does not say."""
    read_merges: int = 0
    """Reads merged with one that was queued."""
    write_merges: int = 0
    """Writes merged with one that was queued."""
    read_ticks: int = 0
    """Milliseconds that reads took, summed over them."""
    write_ticks: int = 0
    """Milliseconds that writes took, summed over them."""
    in_queue: int = 0
    """Milliseconds that I/Os spent in the queue, summed over them."""
    util: float = math.nan
    """Percent."""
    member: bool = False
    """Whether it is a member of another device of the list."""


Logged = Literal["bw", "iops", "lat", "clat", "slat"]
"""The measures of fio's logs."""


class Line(msgspec.Struct, frozen=True):
    """One direction of a log in as many buckets as a chart draws, each with mean, least and greatest value."""

    kind: Kind
    of: Logged
    """What fio logged."""
    unit: str
    """``B/s``, ``1/s`` or ``ns``."""
    width: int
    """Milliseconds of a bucket; the first begins where the job did."""
    rows: int
    """Of the log."""
    data: bytes
    """Doubles: the means of all buckets, then their least values, greatest values, and weights."""
    over: int = 0
    """Milliseconds over which single I/Os were counted to give the least and the greatest rate; 0: values are rows'."""
    started: float | None = None
    """Unix seconds when the first bucket began; None where the log's clock does not say."""


class Measured(msgspec.Struct, frozen=True):
    """A number of a command, and which way it is better."""

    quantity: Quantity
    better: Literal["higher", "lower"]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One measured job or group of jobs, as one source gives it.

    In ``directions`` a count (``ios``, ``bytes``, ``runtime_ms``, ``Latency.count``) is 0 where the source does not
    say (the last is rate times run time in a terse record), and a ``Quantity`` is ``unknown`` (nan, 0 to infinity).
    Only directions with I/O are listed. The kind ``mixed`` stands for all directions together, where fio reported
    only that.
    """

    place: Place
    format: Format
    jobname: str = ""
    group: int | None = None
    jobs: int | None = None
    """How many jobs the numbers are of."""
    concurrency: float | None = None
    """How many of them ran at once on average: their summed run time over the longest; None if it does not say."""
    directions: tuple[Direction, ...] = ()
    """One per direction with I/O."""
    sync: Latency | None = None
    """Latency of fsync and its like."""
    measured: dict[str, Measured] = {}
    """Of a command that is not fio: what it printed and used, by the names of its metrics."""
    options: dict[str, str] = {}
    """Global, then job options, as spelt; from the banner where there is nothing else. A flag has the value ''."""
    workload: Workload = Workload()
    fio_version: str | None = None
    """Without ``fio-``: ``3.33``, ``3.19-10-g3bd2``; None where the source does not say."""
    started: float | None = None
    ended: float | None = None
    """Unix seconds; see ``local_time``."""
    local_time: bool = False
    """``started`` and ``ended`` were read from a wall clock without time zone, as if it were UTC."""
    elapsed: float | None = None
    """Seconds since the start of fio, other groups included."""
    pid: int | None = None
    """Process id that fio printed; None where the source does not say."""
    host: str = ""
    error: int = 0
    usr_cpu: Quantity = unknown("%")
    sys_cpu: Quantity = unknown("%")
    """Percent of the members' summed run time, as fio prints it."""
    context_switches: int | None = None
    depths: dict[str, Quantity] = {}
    """Share of I/Os (percent) found at each depth: ``1 2 4 8 16 32 >=64``; above 100 in sum with fsync or a ramp."""
    shares: tuple[tuple[float, float], ...] = ()
    """Share of I/Os (percent) by completion latency, all directions together: up to so many ns and above the bound
    before; inf is above the last bound. Empty where the source has none."""
    disks: tuple[Disk, ...] = ()
    """fio's disk statistics; empty where the source has none."""
    samplers: tuple[Sampler, ...] = ()
    """fio's periodic samples; empty where the source has none."""
    priorities: tuple[Priority, ...] = ()
    """Latency by I/O priority; empty unless a run had several."""
    series: dict[str, tuple[float, ...]] = {}
    """Per-second values over the run, gaps as zeros: ``read.iops``, ``write.bw`` (B/s), ``read.clat`` (ns)."""
    lines: tuple[Line, ...] = ()
    """What a log holds, over time."""
    labels: dict[str, str] = {}
    """The cells of a table's row, keyed by column title, exactly as written."""
    nameless: tuple[str, ...] = ()
    """Titles of ``labels`` with a number of the result that is not read here: they name neither cell nor variant."""
    table: str = ""
    """Title of the table the row is in."""
    also: tuple[Format, ...] = ()
    """Other formats in which the same file shows this run; they were used as a check."""
    findings: tuple[Finding, ...] = ()

    def direction(self, kind: Kind) -> Direction | None:
        """Return the direction ``kind``, or None when the run did none of it."""
        return next((d for d in self.directions if d.kind == kind), None)

    def sampler(self, kind: Kind, of: Literal["iops", "bw"]) -> Sampler | None:
        """fio's own samples of ``of`` in direction ``kind``, or None."""
        return next((s for s in self.samplers if s.kind == kind and s.of == of), None)


class DeviceStats(msgspec.Struct, frozen=True):
    """One line of a btrfs ``read_stats`` dump: what a device has served since mount or checkpoint."""

    place: Place
    device: str
    fields: dict[str, float]
    """By the kernel's names: ``cumulative_ios``, ``cumulative_wait`` (ns), ``age`` ..."""
    at: float | None = None
    """Time stamp above it, Unix seconds as if UTC."""


class Refusal(msgspec.Struct, frozen=True):
    """What could not be read, and why."""

    place: Place
    reason: str
    lost: bool = False
    """Whether it is about numbers of a result, of which other parts may have been read."""


RunOrRefusal = Run | Refusal

Item = Run | DeviceStats | Refusal
"""One thing in a file."""


class Imported(msgspec.Struct, frozen=True):
    """Everything found in the given paths, in the order of the paths and of the places inside them."""

    runs: tuple[Run, ...] = ()
    device_stats: tuple[DeviceStats, ...] = ()
    refusals: tuple[Refusal, ...] = ()


__all__ = [
    "DeviceStats",
    "Disk",
    "Finding",
    "Format",
    "Imported",
    "Line",
    "Logged",
    "Priority",
    "Refusal",
    "Run",
    "Sampler",
    "Workload",
    "unknown",
]
