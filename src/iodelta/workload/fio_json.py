"""One JSON or JSON+ document of a fio >= 3.0 that iodelta ran: its jobs, each and together.

What a run's own text around the documents means is judged in ``result.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec

from iodelta.trial import Direction, Histogram, Kind, Latency, Quantity
from iodelta.workload.fio_schema import (
    RawDirection,
    RawJob,
    decoded,
    direction,
    latency,
    rate,
)

_KINDS: tuple[Kind, ...] = ("read", "write", "trim", "mixed")


class FioJob(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of ``jobs``: a group of jobs, or one clone when they were not grouped."""

    name: str
    group: int
    error: int
    """errno of the job; 0 also when it was cut short by a signal."""
    directions: tuple[Direction, ...]
    """Only those with I/O."""
    sync: Latency | None = None
    """Of fsync and its like."""
    usr_cpu: float
    sys_cpu: float
    """Percent of one CPU, over all members of the entry."""
    context_switches: int
    options: dict[str, str] = {}
    """As the user spelt them; flags given without a value are missing (fio never prints them)."""


class FioDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One document: fio's version text, the Unix seconds at which it was printed, and its jobs."""

    version: str
    printed: float | None
    jobs: tuple[FioJob, ...]
    counters: dict[str, float] = {}
    """``mirror.loop1.reads``: what each member did where the user-space mirror stood in for fio."""


def documents(output: bytes) -> tuple[list[bytes], str]:
    """Return the JSON documents in a fio output (it appends one per status interval), and the text around them.

    fio prints a document's braces alone in the first column; notes and error lines share the file with it.
    """
    # By hand: the regular expression for it takes half the time that reading a trial takes.
    parts, around, position = [], [], 0
    while True:
        begin = _brace_line(output, b"{", position)
        last = _brace_line(output, b"}", begin)
        if last < 0:
            break
        end = output.find(b"\n", last) + 1 or len(output)
        parts.append(output[begin:end])
        around.append(output[position:begin])
        position = end
    return parts, b"".join((*around, output[position:])).decode(
        errors="replace"
    ).strip()


def _brace_line(output: bytes, brace: bytes, start: int) -> int:
    """Where the next line begins that holds only ``brace``; -1 when there is none. ``start`` is the beginning of a
    line, or -1."""
    while start >= 0:
        if output.startswith(brace, start):
            end = output.find(b"\n", start)
            if not output[start + 1 : end if end >= 0 else None].strip():
                return start
        start = output.find(b"\n" + brace, start)
        start = start + 1 if start >= 0 else -1
    return -1


def read_document(document: bytes) -> FioDocument:
    """Read one document. Raises ValueError when it is not fio JSON, has bins that fio cannot have written, or is of fio
    < 3.0, whose units differ."""
    try:
        raw = decoded(document)
    except msgspec.DecodeError as error:
        try:
            # The document without nan and inf, which are not JSON: fio prints them with "%f".
            text = re.sub(rb'"\s*:\s*-?(?:nan|inf)\b', b'": null', document)
            raw = decoded(msgspec.json.encode(_known(msgspec.json.decode(text))))
        except msgspec.DecodeError:
            raise ValueError(f"not the JSON of fio: {error}") from error
    match = re.match(r"fio-(\d+)", raw.version)
    if match is None or int(match[1]) < 3:
        raise ValueError(
            f"JSON of {raw.version or 'an unnamed program'}, not of fio 3.0 or later"
        )
    members = raw.mirror.members if raw.mirror else []
    counters = {}
    for member in members:
        prefix = f"mirror.{member.path.rpartition('/')[2]}"
        counters[f"{prefix}.reads"] = float(member.reads)
        counters[f"{prefix}.writes"] = float(member.writes)
        counters[f"{prefix}.mean_ns"] = float(member.mean_ns)
    return FioDocument(
        version=raw.version,
        printed=raw.printed if raw.timestamp_ms is not None else None,
        jobs=tuple(_job(job) for job in raw.jobs),
        counters=counters,
    )


def _known(value: Any) -> Any:
    """``value`` without the members that are null."""
    if isinstance(value, list):
        return [_known(part) for part in value]
    if isinstance(value, dict):
        return {name: _known(part) for name, part in value.items() if part is not None}
    return value


def merged(jobs: Sequence[FioJob]) -> FioJob:
    """Jobs that ran together as one: exact where exact merging is possible.

    Counts, bytes and histogram bins add up; mean and variance by the parallel-variance rule (Chan, Golub & LeVeque
    1979); the rate is all I/Os over the longest runtime, as fio itself does in a group. Percentiles cannot be merged
    and are dropped: the histogram has them.
    """
    if len(jobs) == 1:
        return jobs[0]
    if not jobs:
        raise ValueError("no jobs to merge")
    parts: dict[Kind, list[Direction]] = {kind: [] for kind in _KINDS}
    for direction_ in chain.from_iterable(job.directions for job in jobs):
        parts[direction_.kind].append(direction_)
    return FioJob(
        name=jobs[0].name,
        group=jobs[0].group,
        error=next((job.error for job in jobs if job.error), 0),
        directions=tuple(merged_direction(part) for part in parts.values() if part),
        sync=merged_latency([job.sync for job in jobs]),
        usr_cpu=sum(job.usr_cpu for job in jobs),
        sys_cpu=sum(job.sys_cpu for job in jobs),
        context_switches=sum(job.context_switches for job in jobs),
        options=jobs[0].options,
    )


def _members(job: RawJob, directions: Sequence[Direction]) -> float:
    """Return the factor that makes fio's CPU, a share of the members' summed runtime, a share of one CPU."""
    longest = max((d.runtime_ms for d in directions), default=0)
    if job.job_runtime and longest:
        return job.job_runtime / longest
    return 1.0


def _job(job: RawJob) -> FioJob:
    raw: tuple[tuple[Kind, RawDirection | None], ...]
    raw = (("read", job.read), ("write", job.write), ("trim", job.trim))
    directions = tuple(
        direction(kind, d) for kind, d in raw if d is not None and d.total_ios
    )
    members = _members(job, directions)
    return FioJob(
        name=job.jobname,
        group=job.groupid,
        error=job.error,
        directions=directions,
        sync=latency(job.sync.lat_ns, job.sync.total_ios) if job.sync else None,
        usr_cpu=(job.usr_cpu or 0.0) * members,
        sys_cpu=(job.sys_cpu or 0.0) * members,
        context_switches=job.ctx or 0,
        options=job.options,
    )


def merged_direction(parts: Sequence[Direction]) -> Direction:
    """Return what jobs that ran together did in one direction."""
    ios, size = sum(d.ios for d in parts), sum(d.bytes for d in parts)
    longest = max(d.runtime_ms for d in parts)
    return Direction(
        kind=parts[0].kind,
        ios=ios,
        bytes=size,
        runtime_ms=longest,
        iops=rate(ios, longest, "1/s"),
        bandwidth=rate(size, longest, "B/s"),
        lat=merged_latency([d.lat for d in parts]),
        clat=merged_latency([d.clat for d in parts]),
        slat=merged_latency([d.slat for d in parts]),
        short=sum(d.short for d in parts),
        dropped=sum(d.dropped for d in parts),
    )


def merged_latency(parts: Iterable[Latency | None]) -> Latency | None:
    """Return the latency of jobs that ran together, or one after the other; None where none was measured."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    count = sum(part.count for part in known)
    mean = sum(part.count * part.mean.value for part in known) / count
    squares = sum(
        (part.count - 1) * part.stddev.value**2
        + part.count * (part.mean.value - mean) ** 2
        for part in known
    )
    # None where one has no bins.
    histograms = [part.histogram for part in known if part.histogram is not None]
    if len(histograms) != len(known):
        histogram = None
    else:
        histogram = Histogram.merged(histograms)
    return Latency(
        count=count,
        mean=Quantity.exact(mean, "ns"),
        stddev=Quantity.exact(
            math.sqrt(squares / (count - 1)) if count > 1 else 0.0, "ns"
        ),
        min=Quantity.exact(-_greatest(-part.min.value for part in known), "ns"),
        max=Quantity.exact(_greatest(part.max.value for part in known), "ns"),
        histogram=histogram,
    )


def _greatest(values: Iterable[float]) -> float:
    """nan when one of the values is nan, since that one may be the greatest."""
    known = list(values)
    return math.nan if any(map(math.isnan, known)) else max(known)
