"""Results of other programs as nights: points that are flagged, in series of their own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from iodelta.audit import audit
from iodelta.audit.numbers import known
from iodelta.audit.tables import with_tables_named
from iodelta.errors import RequestError
from iodelta.experiment import Subject
from iodelta.history.log import Given
from iodelta.history.points import Key, Night, Point, apart, epoch_of, mean_and_error
from iodelta.ingest import Run
from iodelta.ingest.layouts import Entry, read_layout
from iodelta.ingest.layouts.content import is_number
from iodelta.ingest.layouts.effective import settings
from iodelta.trial import Direction, Latency
from iodelta.verdict import metric
from iodelta.verdict.metrics import BEYOND

FOREIGN = "foreign"
NO_ERROR = "no-error"


def night_of(path: Path, given: Given) -> Night:
    """Everything at ``path`` as one night. Raises RequestError where nobody says when or where it was measured."""
    layout = with_tables_named(read_layout(path))
    if not layout.entries:
        reason = (
            layout.refusals[0].reason if layout.refusals else "there is no result in it"
        )
        raise RequestError(f"nothing here can be read: {reason}", place=str(path))
    hosts = sorted({entry.run.host for entry in layout.entries if entry.run.host})
    if not given.machine and len(hosts) != 1:
        raise RequestError(
            "these results do not name their machine",
            place=str(path),
            remedy="give it with --machine NAME",
        )
    machine, at = (
        (given.machine or hosts[0]),
        _time(path, layout.entries, given),
    )
    broken = audit(entry.run for entry in layout.entries).failed()
    sound = [
        entry for number, entry in enumerate(layout.entries) if number not in broken
    ]
    left_out = {
        f"{entry.cell}, {entry.variant}": "its numbers are impossible: `iodelta audit` says why"
        for number, entry in enumerate(layout.entries)
        if number in broken
    }
    digest = _digest(path)
    versions = sorted({entry.run.fio_version or "" for entry in layout.entries})
    facts = {"fio.version": ", ".join(versions)}
    content = hashlib.sha256(msgspec.json.encode((digest, machine, at))).hexdigest()
    return Night(
        identifier=f"foreign-{content[:24]}",
        sha=hashlib.sha256(msgspec.json.encode((digest, given))).hexdigest(),
        t=at,
        machine=machine,
        epoch=epoch_of(facts),
        facts=facts,
        subject=Subject(repo=given.repo, commit=given.commit, describe=given.describe),
        folder=str(path.resolve()),
        state="foreign",
        points=apart(list(_points(sound, machine))),
        left_out=left_out,
    )


def _time(path: Path, entries: Sequence[Entry], given: Given) -> float:
    if given.at is not None:
        return given.at
    times = [entry.run.started for entry in entries]
    times += [entry.run.ended for entry in entries]
    known_times = [time for time in times if time]
    if not known_times:
        raise RequestError(
            "these results do not say when they were measured",
            place=str(path),
            remedy="give it with --at, such as --at 2026-11-22T02:00Z",
        )
    return min(known_times)


def _digest(path: Path) -> str:
    """Of one file, or of all files below a directory with their names."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    whole = hashlib.sha256()
    files = [file for file in path.rglob("*") if file.is_file()]
    for file in sorted(files):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        whole.update(f"{file.relative_to(path)}\0{digest}\n".encode())
    return whole.hexdigest()


def _points(entries: Sequence[Entry], machine: str) -> Iterator[Point]:
    """Yield a point for every cell, variant and metric: the mean over replicates."""
    groups: dict[tuple[str, str], list[Run]] = {}
    alone = len({entry.variant for entry in entries}) == 1
    for entry in entries:
        # The only name, and one that counts replicates, say nothing of what was compared: tomorrow's is another.
        variant = "" if alone or is_number(entry.variant) else entry.variant
        groups.setdefault((entry.cell, variant), []).append(entry.run)
    for (cell, variant), runs in groups.items():
        by_metric: dict[str, list[float]] = {}
        for run in runs:
            for name, value in _values(run):
                by_metric.setdefault(name, []).append(value)
        for name, values in by_metric.items():
            key = _key(runs[0], cell, variant, machine, name)
            of = metric(name)
            logs = np.log(np.asarray(values))
            flags: tuple[str, ...] = (FOREIGN, NO_ERROR)
            error = lag1 = 0.0
            if len(logs) > 1:
                flags, (_, error, lag1) = (FOREIGN,), mean_and_error(logs)
            yield Point(
                key,
                cell,
                variant,
                of.better,
                of.unit,
                float(np.mean(logs)),
                error,
                len(logs),
                lag1,
                flags=flags,
            )


def _key(run: Run, cell: str, variant: str, machine: str, name: str) -> Key:
    work = run.workload
    named = {
        "rw": work.rw,
        "bs": work.bs,
        "iodepth": work.iodepth,
        "numjobs": work.numjobs,
    }
    asked = {name: str(value) for name, value in named.items() if value is not None}
    asked |= settings(run) if run.options else {"cell": cell}
    return Key(
        machine=machine,
        options=(("tool", run.format), *sorted(asked.items())),
        condition=(),
        knobs=(("variant", variant),) if variant else (),
        role=FOREIGN,
        metric=name,
        target="",
    )


def _values(run: Run) -> Iterator[tuple[str, float]]:
    """Yield the metrics of a run that have a logarithm."""
    for direction in run.directions:
        if direction.kind not in ("read", "write", "trim"):
            continue
        for what, value in _numbers(direction):
            if math.isfinite(value) and value > 0.0:
                yield f"{direction.kind}.{what}", value


def _numbers(direction: Direction) -> Iterator[tuple[str, float]]:
    yield "iops", direction.iops.value
    if not math.isfinite(direction.iops.value):
        yield "bandwidth", direction.bandwidth.value
    means: list[tuple[str, float]] = []
    tails: list[tuple[str, float]] = []
    for name, latency in (("lat", direction.lat), ("clat", direction.clat)):
        if latency is None:
            continue
        if known(latency.mean):
            means.append((f"{name}.mean", latency.mean.value))
        p99 = _p99(latency)
        if p99 is not None:
            tails.append((f"{name}.p99", p99))
    # Total latency, which the user waits for; else completion latency.
    yield from means[:1]
    yield from tails[:1]


def _p99(latency: Latency) -> float | None:
    """None where the source has none, or where too few I/Os lie beyond it."""
    if latency.count < 100 * BEYOND:
        return None
    if latency.histogram is not None and latency.histogram.total:
        return latency.histogram.quantile(0.99)
    printed = latency.percentiles.get(99.0)
    if printed is None or not known(printed):
        return None
    return printed.value
