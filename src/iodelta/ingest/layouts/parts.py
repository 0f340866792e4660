"""Merge runs that ran at the same time (clones of a job, volumes, clients), and the logs of one job."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, starmap
from typing import TypeVar

import msgspec

from iodelta.ingest.log_names import without_kind
from iodelta.ingest.model import Run, unknown
from iodelta.trial import Direction, Finding, Kind, Quantity, total
from iodelta.workload.fio_json import FioJob, merged

MOST = 10_000
"""Most clones of one job if numjobs is unknown."""

_TELLING = ("iops", "bw", "lat", "clat", "slat", "clat_hist")
"""Kinds of logs in order of preference; the rates of the first are those of the job."""


def logs_joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs with the logs of one job, which have one measure each, merged into one run."""
    groups: dict[Hashable, list[Run]] = {}
    for number, run in enumerate(runs):
        name = without_kind(run.place.file)
        is_log = run.labels.get("log") in _TELLING
        key = name if name and is_log else number
        groups.setdefault(key, []).append(run)
    return tuple(map(_logged, groups.values()))


def _logged(logs: Sequence[Run]) -> Run:
    """Return the logs of one job as one run; for a fact in several logs the preferred one counts."""
    if len(logs) == 1:
        return logs[0]
    logs = sorted(logs, key=lambda run: _TELLING.index(run.labels["log"]))
    directions = chain.from_iterable(run.directions for run in logs)
    kinds = dict.fromkeys(direction.kind for direction in directions)
    findings: dict[str, Finding] = {}
    for finding in chain.from_iterable(run.findings for run in logs):
        findings.setdefault(finding.rule, finding)
    series: dict[str, tuple[float, ...]] = {}
    for run in reversed(logs):
        series.update(run.series)
    labels = dict(logs[0].labels)
    del labels["log"]
    return msgspec.structs.replace(
        logs[0],
        format="log",
        directions=tuple(_said(_of_kind(logs, kind)) for kind in kinds),
        series=series,
        labels=labels,
        findings=tuple(findings.values()),
    )


def _of_kind(runs: Sequence[Run], kind: Kind) -> list[Direction]:
    directions = (run.direction(kind) for run in runs)
    return list(filter(None, directions))


def _said(parts: Sequence[Direction]) -> Direction:
    """Return one direction from several logs; for each fact the first log with it counts."""
    first = parts[0]
    clats = _given(part.clat for part in parts)
    most_ranks = max(clats, key=lambda lat: len(lat.percentiles), default=None)
    return msgspec.structs.replace(
        first,
        runtime_ms=max(part.runtime_ms for part in parts),
        iops=_first_known([part.iops for part in parts]),
        bandwidth=_first_known([part.bandwidth for part in parts]),
        lat=next(iter(_given(part.lat for part in parts)), None),
        clat=most_ranks,
        slat=next(iter(_given(part.slat for part in parts)), None),
    )


def _first_known(quantities: Sequence[Quantity]) -> Quantity:
    """Return the first known quantity; the first of all if none is known."""
    known = (quantity for quantity in quantities if not math.isnan(quantity.value))
    return next(known, quantities[0])


_T = TypeVar("_T")


def _given(values: Iterable[_T | None]) -> list[_T]:
    """Return the ``values`` that are not None."""
    return [value for value in values if value is not None]


def clones(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs with clones that fio did not report as a group (same file, name and group) merged into one, and so the
    parts of one job on the hosts of a client."""
    groups: list[list[Run]] = []
    hosts: dict[Hashable, list[Run]] = {}
    before: Hashable = None
    for run in runs:
        # A key that clones share; None for a run that is not a clone. Repeated reports of one job differ in their time;
        # without times (before fio 2.0.9), only numjobs distinguishes clones from them.
        key: Hashable
        has_time = run.ended is not None
        if run.host:
            may_be_clone = has_time
        else:
            has_clones = (run.workload.numjobs or 1) > 1
            may_be_clone = run.jobs == 1 and (has_time or has_clones)
        if run.group is None or not may_be_clone:
            key = None
        else:
            key = (run.place.file, run.jobname, run.group, run.ended, run.workload)
        goes_on = key is not None and key == before
        # A client lists the jobs of its hosts in order of arrival.
        if key is not None and run.host:
            if key not in hosts:
                groups.append(hosts.setdefault(key, []))
            hosts[key].append(run)
        elif goes_on and len(groups[-1]) < (run.workload.numjobs or MOST):
            groups[-1].append(run)
        else:
            groups.append([run])
        before = key
    return tuple(map(together, groups))


def together(runs: Sequence[Run]) -> Run:
    """Runs that ran at the same time as one: counts and bins add up, mean and spread are pooled, rates are summed.

    Percentiles need bins. If a source has no counts, only the sum of the rates remains. Disk statistics are kept if all
    parts have the same: a part on another host or volume has its own.
    """
    if len(runs) == 1:
        return runs[0]
    first = runs[0]
    hosts = {run.host for run in runs}
    same_disks = all(run.disks == first.disks for run in runs)
    findings = chain.from_iterable(run.findings for run in runs)
    errors = filter(None, (run.error for run in runs))
    return msgspec.structs.replace(
        first,
        jobs=sum(run.jobs or 1 for run in runs),
        concurrency=None,
        directions=_directions_together(runs),
        started=min(_given(run.started for run in runs), default=None),
        ended=max(_given(run.ended for run in runs), default=None),
        host=first.host if len(hosts) == 1 else "",
        error=next(errors, 0),
        usr_cpu=unknown("%"),
        sys_cpu=unknown("%"),
        disks=first.disks if same_disks else (),
        samplers=(),
        series={},
        findings=tuple(dict.fromkeys(findings)),
    )


def _directions_together(runs: Sequence[Run]) -> tuple[Direction, ...]:
    """The directions of runs at the same time, by fio's own sums where it counted their I/Os."""
    parts = list(chain.from_iterable(run.directions for run in runs))
    if all(part.ios and part.runtime_ms for part in parts):
        return merged(list(map(_job, runs))).directions
    of_kind: dict[Kind, list[Direction]] = {}
    for part_ in parts:
        of_kind.setdefault(part_.kind, []).append(part_)
    return tuple(starmap(_sum_of_kind, of_kind.items()))


def _job(run: Run) -> FioJob:
    """Return a run as input of fio's own sums; only its directions are used."""
    return FioJob(
        name="",
        group=0,
        error=0,
        directions=run.directions,
        usr_cpu=0.0,
        sys_cpu=0.0,
        context_switches=0,
    )


def _sum_of_kind(kind: Kind, parts: Sequence[Direction]) -> Direction:
    ios = sum(part.ios for part in parts)
    size = sum(part.bytes for part in parts)
    iops = total([part.iops for part in parts])
    bandwidth = total([part.bandwidth for part in parts])
    return Direction(kind, ios, size, 0, iops, bandwidth)
