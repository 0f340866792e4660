"""Read fio's terse records, versions 2 to 5, anywhere in a line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product
from typing import Literal

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Disk, Format, Refusal, Run, Sampler, unknown
from iodelta.ingest.numbers import decimals, percentile, version_of, whole
from iodelta.ingest.unified import without_sum
from iodelta.ingest.wording import clean
from iodelta.trial import Direction, Kind, Latency, Place, Quantity
from iodelta.workload.fio_schema import rate

_MODERN = re.compile(r"([345]);(fio-\d[^;\s]{0,60});")
_OLD = re.compile(
    r"2;[^;]{0,200};\d{1,9};\d{1,9};\d{1,19};\d{1,19};\d{1,19};\d{1,19};\d{1,19};"
)
LEAST = 40
"""Fewest semicolons in a record of version 2, those of fio 1.x; with percentiles there are more than 100."""
_BUCKETS = 22
"""Latency buckets: ten in us, twelve in ms."""
_TAIL = 5 + 7 + _BUCKETS
"""CPU, depths, buckets."""
_DISK = 9
_NAME = 8
"""Most semicolons in the name of a job."""
_AS_LONG = 20
"""Most milliseconds between the run times of clones in one report."""
_LONGEST = 1000
"""Most fields of a record that are read; fio 3.33 writes 189 with one disk in version 5."""


def records(
    lines: Sequence[Line], used: bytearray, file: str
) -> list[list[Run | Refusal]]:
    """Return every terse record (versions 2 to 5) among ``lines``, neighbours grouped as one report; damaged ones as
    Refusals. Marks their indexes in ``used``. Never raises.

    Format: ``show_thread_status_terse_v2`` and ``_all`` in fio's stat.c; bandwidth is in KiB/s, latencies in us. A
    record of all clients is omitted, because it would count every client twice.
    """
    reports: list[list[Run | Refusal]] = []
    before = -2
    for index, line in enumerate(lines):
        fields = [] if used[index] else _fields(line.text)
        if not fields:
            continue
        used[index] = 1
        end = index + 1
        while end < len(lines) and _goes_on(lines[end].text, lines[end - 1].text):
            fields = _fields(";".join(fields) + lines[end].text.strip())
            used[end] = 1
            end += 1
        run = _record(fields, Place(file, line.number))
        is_sum = isinstance(run, Run) and run.jobname == "All clients"
        if is_sum and reports:
            continue  # fio's own sum over its clients would count everything twice
        if index > before + 1 or _again(run, reports[-1]):
            reports.append([])
        reports[-1].append(run)
        before = end - 1
    return reports


_WRAP = 55
"""Characters of the shortest line that mail wraps."""
_WRAPS = 200
"""Characters of the longest line that mail wraps; a whole record has more."""
_WRAPPED = re.compile(r"[^;\s]{0,60}(?:;[^;\s]{0,60}){2,400}")
_LAST = re.compile(r"[\d.;%]{1,60}|[a-z][\w-]{0,30}(?:;[\d.%]{1,20})+")


def _goes_on(text: str, before: str) -> bool:
    """Return whether a line can only be the rest of a record, which mail has wrapped; the last one may be short."""
    text = text.strip()
    if _MODERN.search(text) or _OLD.match(text):
        return False
    is_last = (
        _WRAP <= len(before.strip()) <= _WRAPS and _LAST.fullmatch(text) is not None
    )
    return is_last or _WRAPPED.fullmatch(text) is not None


def _fields(text: str) -> list[str]:
    """Return the fields of the record in a line, however early it was cut; none without one. Version 2 does not name
    fio, so only its length tells it from other lines with semicolons."""
    start = _MODERN.search(text)
    if start is None and text.count(";") >= LEAST:
        start = _OLD.search(text)
    return text[start.start() :].split(";", _LONGEST) if start else []


def _again(run: Run | Refusal, report: Sequence[Run | Refusal]) -> bool:
    """Return whether another report begins: this one contains the job already, and not as a clone, which ran equally
    long.
    """
    if not isinstance(run, Run):
        return False
    others = (other for other in report if isinstance(other, Run))
    key = (run.jobname, run.group)
    alike = [other for other in others if (other.jobname, other.group) == key]
    return bool(alike) and abs(_runtime(run) - _runtime(alike[-1])) > _AS_LONG


def _runtime(run: Run) -> int:
    return max((direction.runtime_ms for direction in run.directions), default=0)


def _record(fields: Sequence[str], place: Place) -> Run | Refusal:
    terse = int(fields[0])
    named = terse > 2  # version 2 of the format does not name its fio
    version = version_of(fields[1]) if named else None
    size = 47 if terse == 5 else 41
    begin = 2 if named else 1
    head, blocks = _shape(fields, terse, begin + 3, size)
    name, group, error = ";".join(fields[begin : head - 2]), None, None
    if head <= len(fields):
        group, error = whole(fields[head - 2]), _signed(fields[head - 1])
    if not blocks or group is None or error is None:
        return Refusal(
            place,
            f"a terse record of version {terse} with {len(fields)} fields: it is cut or damaged",
        )
    tail = head + blocks * size
    nanoseconds = None if version is None else version >= (2, 99)
    directions: list[Direction] = []
    samplers: list[Sampler] = []
    # One block is unified_rw_reporting=1; one more than usual is `both`, with the sum last.
    every: tuple[Kind, ...] = (
        ("read", "write", "mixed") if terse == 3 else ("read", "write", "trim", "mixed")
    )
    for number, kind in enumerate(("mixed",) if blocks == 1 else every[:blocks]):
        block = fields[head + number * size : head + (number + 1) * size]
        direction = _direction(kind, block, nanoseconds)
        if direction is None:
            return Refusal(
                place,
                f"a terse record of version {terse} with damaged numbers for {kind}",
            )
        if direction.bytes or direction.iops.value:
            directions.append(direction)
            samplers_ = [_sampler(kind, "bw", (*block[36:38], *block[39:42]))]
            if len(block) == 47:
                samplers_.append(_sampler(kind, "iops", block[42:47]))
            samplers += [
                s for s in samplers_ if math.isfinite(s.mean.value) and s.mean.value > 0
            ]
    return Run(
        place=place,
        format=_FORMATS[terse],
        jobname=clean(name),
        group=group,
        directions=without_sum(directions, None),
        fio_version=clean(fields[1]).removeprefix("fio-") if terse > 2 else None,
        error=error,
        usr_cpu=_exact(fields[tail].removesuffix("%"), "%"),
        sys_cpu=_exact(fields[tail + 1].removesuffix("%"), "%"),
        context_switches=whole(fields[tail + 2]),
        depths=_depths(fields[tail + 5 : tail + 12]),
        disks=tuple(_disks(fields[tail + _TAIL :])),
        samplers=tuple(samplers),
    )


_FORMATS: dict[int, Format] = {2: "terse2", 3: "terse3", 4: "terse4", 5: "terse5"}


def _shape(fields: Sequence[str], terse: int, head: int, size: int) -> tuple[int, int]:
    """Where the first direction begins (at ``head``, or later if the name contains semicolons), and the number of
    directions; 0 for a damaged record."""
    shapes = (2, 3, 1) if terse == 3 else (3, 4, 1)
    for at, blocks in product(range(head, head + _NAME), shapes):
        if _tail_at(fields, at + blocks * size):
            return at, blocks
    return head, 0


def _depths(fields: Sequence[str]) -> dict[str, Quantity]:
    shares = [decimals(text.removesuffix("%")) for text in fields]
    named = zip(("1", "2", "4", "8", "16", "32", ">=64"), shares, strict=True)
    return {depth: share.quantity("%") for depth, share in named if share is not None}


def _tail_at(fields: Sequence[str], at: int) -> bool:
    """Return whether the CPU, depth and bucket fields begin at ``at``."""
    if len(fields) < at + _TAIL:
        return False
    percents = [fields[at], fields[at + 1], *fields[at + 5 : at + _TAIL]]
    return (
        all(text.strip().endswith("%") for text in percents)
        and whole(fields[at + 2]) is not None
    )


def _direction(
    kind: Kind, block: Sequence[str], nanoseconds: bool | None
) -> Direction | None:
    kib, _, iops, runtime = (whole(text) for text in block[:4])
    if kib is None or iops is None or runtime is None:
        return None
    # The record has no count: rate times run time is the nearest.
    count = iops * runtime // 1000
    spread = dict(
        quantity
        for text in block[12:32]
        if (quantity := _percentile(text, nanoseconds)) is not None
    )
    return Direction(
        kind=kind,
        ios=0,
        bytes=kib * 1024,
        runtime_ms=runtime,
        iops=Quantity(iops, iops, iops + 1, "1/s"),
        bandwidth=rate(kib * 1024, runtime, "B/s", spare=1023),
        lat=_latency(count, block[32:36], {}),
        clat=_latency(count, block[8:12], spread),
        slat=_latency(count, block[4:8], {}),
    )


def _percentile(text: str, nanoseconds: bool | None) -> tuple[float, Quantity] | None:
    percent, _, value = text.partition("%=")
    point, microseconds = decimals(percent), whole(value)
    if point is None or microseconds is None or not 0 < point.value <= 100:
        return None
    return point.value, percentile(microseconds, 1000, nanoseconds, up=False)


def _latency(
    count: int, fields: Sequence[str], spread: dict[float, Quantity]
) -> Latency | None:
    """Return a latency from min, max (truncated to us), mean and deviation; None for zeros, which fio writes without
    data.
    """
    low, high = whole(fields[0]), whole(fields[1])
    mean, stddev = _exact(fields[2], "ns", 1000), _exact(fields[3], "ns", 1000)
    if low is None or high is None or not (high or mean.value):
        return None
    smallest, largest = (
        Quantity(n * 1000.0, n * 1000.0, n * 1000.0 + 1000, "ns") for n in (low, high)
    )
    return Latency(count, mean, stddev, smallest, largest, spread)


def _exact(text: str, unit: str, scale: float = 1) -> Quantity:
    printed = decimals(text)
    return unknown(unit) if printed is None else printed.quantity(unit, scale)


def _sampler(kind: Kind, of: Literal["bw", "iops"], fields: Sequence[str]) -> Sampler:
    """min, max, mean, deviation, and in version 5 the count."""
    scale, unit = (1024.0, "B/s") if of == "bw" else (1.0, "1/s")
    smallest, largest = (
        Quantity(n * scale, n * scale, (n + 1) * scale, unit)
        for n in map(_zero, fields[:2])
    )
    samples = whole(fields[4]) if len(fields) > 4 else None
    return Sampler(
        kind,
        of,
        _exact(fields[2], unit, scale),
        smallest,
        largest,
        _exact(fields[3], unit, scale),
        samples,
    )


def _zero(text: str) -> int:
    return whole(text) or 0


def _disks(fields: Sequence[str]) -> list[Disk]:
    """Disks of nine fields each, members after the word ``slaves``; errors and a description may follow."""
    disks: list[Disk] = []
    member = False
    for at in range(0, len(fields) - _DISK + 1, _DISK):
        name, *numbers, util = fields[at : at + _DISK]
        counts = [whole(text) for text in numbers]
        busy = decimals(util.strip().removesuffix("%"))
        if None in counts or busy is None:
            break
        if name == "slaves":
            member = True
            continue
        reads, writes, read_merges, write_merges, read_ticks, write_ticks, in_queue = (
            count or 0 for count in counts
        )
        disks.append(
            Disk(
                clean(name),
                reads,
                writes,
                read_merges=read_merges,
                write_merges=write_merges,
                read_ticks=read_ticks,
                write_ticks=write_ticks,
                in_queue=in_queue,
                util=busy.value,
                member=member,
            )
        )
    return disks


def _signed(text: str) -> int | None:
    value = whole(text.removeprefix("-"))
    if value is None:
        return None
    return -value if text.startswith("-") else value
