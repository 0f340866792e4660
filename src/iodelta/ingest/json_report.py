"""fio's JSON and JSON+ of every version since 2.0.10, as runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, starmap

import msgspec

from iodelta.ingest.json_parts import (
    did_io,
    disks_of,
    printed,
    priorities_of,
    samplers_of,
    shares_of,
)
from iodelta.ingest.json_text import Extent, closed, extent, holders, lenient, tolerant
from iodelta.ingest.model import Disk, Refusal, Run
from iodelta.ingest.numbers import Version, version_of
from iodelta.ingest.options import workload
from iodelta.ingest.unified import without_sum
from iodelta.ingest.wording import clean, clean_all
from iodelta.plural import plural
from iodelta.trial import Direction, Finding, Kind, Latency, Place, Quantity
from iodelta.workload.fio_schema import (
    RawDirection,
    RawDocument,
    RawJob,
    decoded,
    direction,
    latency,
)

KINDS: tuple[Kind, ...] = ("read", "write", "trim", "mixed")

_SIX_DECIMALS = (2, 17)
_HALF = 0.005
"""Half a unit of the two decimals that JSON had at first; 2.17 is the first seen with six."""

_UNDECODED = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_UNEQUAL = 0.02
"""Relative difference between the run times of jobs that run at the same time."""
_WRITING = ("write", "randwrite", "trimwrite", "randtrimwrite")
"""Workloads that read only to verify, after they wrote."""
MOST_DOCUMENTS = 30_000
"""Most documents of a file that are read; the smallest document of fio has three kilobytes."""
_USUAL = re.compile(rb'\{\s{0,20}"fio version"\s{0,20}:')
"""The beginning of a document of fio; other programs sort its keys or add some."""
_DOCUMENT = (b'"fio version"', b'"jobs"', b'"client_stats"')
_JOB = (b'"jobname"',)


def whole_document(data: bytes, file: str) -> list[Run | Refusal] | None:
    """``data`` as one undamaged document: the fast way. None if it is anything else."""
    try:
        document = decoded(data)
        if not (document.version or document.jobs or document.clients):
            return None
        return _read(document, data, Place(file, 1), [])
    except _UNDECODED:
        return None


def documents(data: bytes) -> list[tuple[int, Extent]]:
    """Offset and extent of every fio document in ``data``, in order; text may be around and between them.

    Without documents, those of every job outside a document. At most ``MOST_DOCUMENTS``.
    """
    # The offsets of the opening brackets of documents, or of jobs if there is no document.
    heads = [match.start() for match in islice(_USUAL.finditer(data), MOST_DOCUMENTS)]
    keys = data.count(b'"jobs"') + data.count(b'"client_stats"')
    if len(heads) < min(keys, MOST_DOCUMENTS):
        heads = holders(data, _DOCUMENT) or heads
    if not heads and any(b'"%s"' % kind.encode() in data for kind in KINDS):
        heads = holders(data, _JOB)
    starts = sorted(set(heads))[:MOST_DOCUMENTS]
    limits = [*starts[1:], len(data)]
    documents: list[tuple[int, Extent]] = []
    for start, limit in zip(starts, limits, strict=False):
        span = extent(data, start, limit)
        if span is not None:
            documents.append((start, span))
    return documents


def read_document(
    data: bytes, start: int, span: Extent, place: Place
) -> list[Run | Refusal]:
    """The runs of one document found by ``documents``; ``place`` is that of its opening bracket."""
    text = closed(data, start, span)
    findings: list[Finding] = []
    alone = (
        b'"jobs"' not in text and b'"client_stats"' not in text and b'"jobname"' in text
    )
    if alone:
        text = b'{"jobs":[%b]}' % text
        explanation = "the document contains only a job: its version, time, disks and global options are missing"
        findings.append(Finding("read.cut", "warning", str(place), explanation))
    try:
        document, runs = _decoded(text, place, findings)
    except ValueError as error:
        return [Refusal(place, f"its JSON cannot be read: {clean(str(error))}")]
    if alone and not any(map(_has_direction, document.jobs)):
        return []  # another program's
    if not span.open:
        return runs or [Refusal(place, "fio's JSON without any job")]
    if not runs:
        return [Refusal(place, "it ends before its first job")]
    return [*runs[:-1], _cut(runs[-1], text, span)]


def _decoded(
    text: bytes, place: Place, findings: list[Finding]
) -> tuple[RawDocument, list[Run | Refusal]]:
    """Return a document and its runs, without values that fio cannot have written. Raises ValueError if it is not JSON."""
    try:
        document = decoded(text)
        return document, _read(document, text, place, findings)
    except _UNDECODED:
        document, lost = lenient(RawDocument, tolerant(text))
    if lost:
        are, were = ("is", "was") if lost == 1 else ("are", "were")
        explanation = (
            f"{plural(lost, 'value')} of this JSON {are} not of the type that fio "
            f"writes there, and {were} omitted"
        )
        findings = [
            *findings,
            Finding("read.damaged", "warning", str(place), explanation),
        ]
    return document, _read(document, text, place, findings)


def _has_direction(job: RawJob) -> bool:
    return any(getattr(job, kind) is not None for kind in KINDS)


def _read(
    document: RawDocument, data: bytes, place: Place, findings: list[Finding]
) -> list[Run | Refusal]:
    """The runs of its jobs. Raises DecodeError for bins that are not integers."""
    jobs = document.jobs or _members(document.clients)
    places = _places(data, place, len(document.jobs or document.clients))
    shared = _Document(document, jobs, tuple(findings))
    return [shared.run(job, where) for job, where in zip(jobs, places, strict=False)]


def _members(clients: list[RawJob]) -> list[RawJob]:
    """Return the jobs without fio's sum over all hosts, which would count everything twice."""
    return [job for job in clients if job.jobname != "All clients"] or clients


def _places(data: bytes, place: Place, jobs: int) -> Iterator[Place]:
    """Where each job begins: the line of its name; for a single job the line of the first name."""
    keys = (b'"jobname"', b'"groupid"')  # a job without a name lacks the first
    if jobs == 1:
        at = [next((first for key in keys if (first := data.find(key)) >= 0), 0)]
    else:
        at = next(
            (
                places
                for key in keys
                if len(places := _all(key, data, jobs + 1)) == jobs
            ),
            [0] * jobs,
        )
    line, before = place.line, 0
    for offset in at:
        line += data.count(b"\n", before, offset)
        before = offset
        yield Place(place.file, line)


def _all(key: bytes, data: bytes, most: int) -> list[int]:
    """Offsets of the first ``most`` occurrences."""
    at: list[int] = []
    while len(at) < most and (place := data.find(key, at[-1] + 1 if at else 0)) >= 0:
        at.append(place)
    return at


class _Document:
    """The facts that all jobs of a document share."""

    def __init__(
        self,
        document: RawDocument,
        jobs: Sequence[RawJob],
        findings: tuple[Finding, ...],
    ) -> None:
        self._document = document
        self._findings = findings
        self._version = version_of(document.version)
        has_two_decimals = self._version is not None and self._version < _SIX_DECIMALS
        self._half = _HALF if has_two_decimals else 0.0
        self._disks = disks_of(document.disks)
        names = {(job.hostname, job.jobname, job.groupid) for job in jobs}
        self._grouped = len(names) == len(jobs)
        """Whether every entry is of another group, and so the sum of its group."""

    def run(self, job: RawJob, place: Place) -> Run | Refusal:
        """Return the run of one job. Raises DecodeError for bins that are not integers."""
        raw = _directions_of(job)
        try:
            directions = [
                _direction(kind, part, self._version)
                for kind, part in raw
                if did_io(part)
            ]
            sync: Latency | None
            if not job.sync:
                sync = None
            else:
                sync = latency(job.sync.lat_ns, job.sync.total_ios)
            priorities = tuple(chain.from_iterable(starmap(priorities_of, raw)))
        except msgspec.DecodeError:
            raise
        except ValueError as error:
            return Refusal(
                place,
                f"job {clean(job.jobname)!r} has an impossible histogram: {error}",
            )
        options = {**self._document.options, **job.options}
        asked = workload(options)
        numjobs = asked.numjobs or 1
        concurrency, jobs = None, 1
        if self._grouped:
            # Jobs that ran at once on average: since 3.8 fio sums the run times of a group. Verify reads follow the
            # writes.
            verified = "verify" in options
            times = {d.kind: d.runtime_ms for d in directions}
            after = times.pop("read", 0) if verified and asked.rw in _WRITING else 0
            longest = max(times.values(), default=0) + after
            if job.job_runtime and longest:
                concurrency = job.job_runtime / longest
            else:
                concurrency = None
            # How many jobs an entry contains: `numjobs`, unless run times show one job, or more at the same time.
            if concurrency is None:
                jobs = numjobs
            else:
                nearest = round(concurrency)
                if (
                    nearest > numjobs
                    and abs(concurrency - nearest) < _UNEQUAL * nearest
                ):
                    jobs = nearest
                else:
                    jobs = 1 if concurrency < 1.5 else numjobs
        return Run(
            place=place,
            format=("json+" if any(_has_bins(part_) for _, part_ in raw) else "json"),
            jobname=clean(job.jobname),
            group=job.groupid,
            jobs=jobs,
            concurrency=concurrency,
            directions=without_sum(directions, asked.rw),
            sync=sync,
            options=clean_all(options),
            workload=asked,
            fio_version=clean(self._document.version).removeprefix("fio-") or None,
            started=_started(self._document, job),
            ended=self._document.printed,
            elapsed=None if job.elapsed is None else float(job.elapsed),
            host=clean(job.hostname),
            error=job.error,
            usr_cpu=printed(job.usr_cpu, "%", self._half),
            sys_cpu=printed(job.sys_cpu, "%", self._half),
            context_switches=job.ctx,
            depths=self._depths(job),
            shares=tuple(shares_of(job)),
            disks=self._disks_of(job),
            samplers=samplers_of(raw, self._half),
            priorities=priorities,
            findings=(
                *self._findings,
                *_remarks(job, raw, self._version, place),
                *_group_of(jobs, numjobs, place),
            ),
        )

    def _disks_of(self, job: RawJob) -> tuple[Disk, ...]:
        """Return the disks of the job's host; all disks if the job names no host."""
        return tuple(
            disk
            for host, disk in self._disks
            if host == job.hostname or not job.hostname
        )

    def _depths(self, job: RawJob) -> dict[str, Quantity]:
        return {
            clean(depth): printed(share, "%", self._half)
            for depth, share in job.iodepth_level.items()
        }


def _directions_of(job: RawJob) -> list[tuple[Kind, RawDirection]]:
    parts = ((kind, getattr(job, kind)) for kind in KINDS)
    return [(kind, part) for kind, part in parts if part is not None]


def _remarks(
    job: RawJob,
    raw: Sequence[tuple[Kind, RawDirection]],
    version: Version | None,
    place: Place,
) -> Iterator[Finding]:
    # Fio's own statements about a job, other than its results.
    # fio writes the largest int for an unknown time.
    if job.eta > 0 and job.eta != 2**31 - 1:
        explanation = (
            f"fio printed this {job.eta} s before its end: it is not the final result"
        )
        yield Finding("read.interim", "warning", str(place), explanation)
    if job.steadystate is not None and not job.steadystate.attained:
        text = f"steady state ({clean(job.steadystate.ss)}) was requested, but not attained"
        yield Finding("fio.steady-state", "warning", str(place), text)
    for kind, part in raw:
        yield from _disagreement(kind, part, version, place)


def _group_of(jobs: int, numjobs: int, place: Place) -> Iterator[Finding]:
    if jobs > numjobs:
        text = (
            f"a group of {plural(jobs, 'job')} of several sections, with the name of the first "
            "and the options of the last"
        )
        yield Finding("read.group", "note", str(place), text)


def _started(document: RawDocument, job: RawJob) -> float | None:
    if job.job_start is not None:
        return job.job_start / 1000
    if document.printed is None or job.elapsed is None:
        return None
    return document.printed - job.elapsed


def _direction(kind: Kind, raw: RawDirection, version: Version | None) -> Direction:
    return direction(kind, raw, kibibytes=_counts_kibibytes(raw, version))


def _counts_kibibytes(raw: RawDirection, version: Version | None) -> bool:
    """Return whether ``io_bytes`` is in KiB, as up to fio 2.20; without a version the names of the other keys tell."""
    if version is not None:
        return version <= (2, 20)
    later_keys = (raw.clat_ns, raw.lat_ns, raw.slat_ns, raw.io_kbytes)
    return all(value is None for value in later_keys)


def _disagreement(
    kind: Kind, raw: RawDirection, version: Version | None, place: Place
) -> Iterator[Finding]:
    """Yield a warning if a rate, or an amount, is not what the counts over the run time make; hard if it is far off.

    fio truncated ``iops`` to an integer before 2.2.6.
    """
    size = (raw.io_bytes or 0) * (1024 if _counts_kibibytes(raw, version) else 1)
    stated = (
        ("iops", raw.iops, raw.total_ios, 1.01, "I/Os"),
        ("bw", raw.bw * 1024, size, 2048.0, "bytes"),
        ("bw_bytes", raw.bw_bytes, size, 1024.0, "bytes"),
    )
    for name, rate_, amount, spare, what in stated:
        if not amount or not raw.runtime or rate_ is None or not math.isfinite(rate_):
            continue
        made = amount * 1000 / raw.runtime
        if made - spare <= rate_ * (1 + 1e-6) and rate_ <= made + spare + made / max(
            raw.runtime - 1, 1
        ):
            continue
        is_far = not 1 / _FAR < (rate_ + spare) / (made + spare) < _FAR
        text = f"{kind}: {name} is written as {rate_ / (1024 if name == 'bw' else 1):g}, but the {what} over the run time make "
        text += f"{made / (1024 if name == 'bw' else 1):.6g}"
        remedy = "the count is used; was the file edited?"
        yield Finding(
            "read.disagree", "hard" if is_far else "warning", str(place), text, remedy
        )
        return
    if raw.io_kbytes and size and abs(raw.io_kbytes * 1024 - size) > 2048 + 0.02 * size:
        text = (
            f"{kind}: io_kbytes is {raw.io_kbytes}, but io_bytes makes {size // 1024}"
        )
        yield Finding("read.disagree", "hard", str(place), text, "was the file edited?")


_FAR = 1.1
"""Factor between a rate and its counts that shows an edited file."""


def _has_bins(raw: RawDirection) -> bool:
    return any(
        part is not None and part.binned
        for part in (raw.clat_ns, raw.lat_ns, raw.slat_ns, raw.clat, raw.lat)
    )


def _cut(last: Run | Refusal, text: bytes, span: Extent) -> Run | Refusal:
    """Return the last entry of a document that ends early: within this job if document, list and job are open."""
    if isinstance(last, Refusal):
        return last
    where = str(last.place)
    if len(span.open) < 3:
        left = "what follows the jobs is missing"
        if len(span.open) == 2:
            left = "jobs after this one would be missing"
        finding = Finding("read.cut", "warning", where, f"the file ends early: {left}")
        return msgspec.structs.replace(last, findings=(*last.findings, finding))
    # The directions of the job in which the document ends, without an incomplete one.
    begun = list(re.finditer(rb'"(read|write|trim|mixed)"\s{0,20}:\s{0,20}\{', text))
    if not begun:
        whole = last.directions
    else:
        part = extent(text, begun[-1].end() - 1, len(text) - len(span.open))
        if part is None or not part.open:
            whole = last.directions
        else:
            kind = begun[-1][1].decode()
            whole = tuple(
                direction_ for direction_ in last.directions if direction_.kind != kind
            )
    if not whole:
        return Refusal(last.place, f"the file ends inside job {last.jobname!r}")
    kinds = " and ".join(direction.kind for direction in whole)
    words = f"the file ends inside this job; only {kinds} had been written whole"
    remedy = "run it again, or get the whole file"
    finding = Finding("read.cut", "hard", where, words, remedy)
    findings = (*last.findings, finding)
    return msgspec.structs.replace(last, directions=whole, findings=findings)
