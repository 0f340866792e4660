"""Runs that ran together as one run: clones of a job, volumes, clients; and the logs of one job."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from iodelta.ingest.log_names import without_kind
from iodelta.ingest.model import Run, unknown
from iodelta.trial import Direction, Finding, Kind, Latency, Quantity
from iodelta.workload.fio_json import FioJob, merged

MOST = 10_000
"""Clones of one job, where numjobs is not known."""

_TELLING = ("iops", "bw", "lat", "clat", "slat", "clat_hist")
"""Logs, the one first whose rates are the job's."""


def logs_joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """fio's logs of one job as one run, for each says one thing about it; others as they are."""
    groups: dict[Hashable, list[Run]] = {}
    for number, run in enumerate(runs):
        name = without_kind(run.place.file)
        groups.setdefault(
            name if name and run.labels.get("log") in _TELLING else number, []
        ).append(run)
    return tuple(
        _logged(group) if len(group) > 1 else group[0] for group in groups.values()
    )


def _logged(logs: Sequence[Run]) -> Run:
    logs = sorted(logs, key=lambda run: _TELLING.index(run.labels["log"]))
    directions = chain.from_iterable(run.directions for run in logs)
    kinds = dict.fromkeys(direction.kind for direction in directions)
    findings: dict[str, Finding] = {}
    for finding in chain.from_iterable(run.findings for run in logs):
        findings.setdefault(finding.rule, finding)
    series: dict[str, tuple[float, ...]] = {}
    for run in reversed(logs):  # what comes first tells best
        series.update(run.series)
    return msgspec.structs.replace(
        logs[0],
        format="log",
        directions=tuple(_said(_of_kind(logs, kind)) for kind in kinds),
        series=series,
        labels={name: text for name, text in logs[0].labels.items() if name != "log"},
        findings=tuple(findings.values()),
    )


def _of_kind(runs: Sequence[Run], kind: Kind) -> list[Direction]:
    directions = [run.direction(kind) for run in runs]
    return [direction for direction in directions if direction]


def _said(parts: Sequence[Direction]) -> Direction:
    """What several logs say of one direction, the first that says it."""

    def rate(name: str) -> Quantity:
        own: list[Quantity] = [getattr(part, name) for part in parts]
        return next(
            (quantity for quantity in own if not math.isnan(quantity.value)), own[0]
        )

    def latencies(name: str) -> Iterator[Latency]:
        return (
            getattr(part, name) for part in parts if getattr(part, name) is not None
        )

    first = parts[0]
    return msgspec.structs.replace(
        first,
        runtime_ms=max(part.runtime_ms for part in parts),
        iops=rate("iops"),
        bandwidth=rate("bandwidth"),
        lat=next(latencies("lat"), None),
        clat=max(
            latencies("clat"),
            key=lambda latency: len(latency.percentiles),
            default=None,
        ),
        slat=next(latencies("slat"), None),
    )


def clones(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Jobs that fio did not report as a group (same file, name and group) as one run, and what the hosts of one client
    did in a job; others as they are."""
    groups: list[list[Run]] = []
    hosts: dict[Hashable, list[Run]] = {}
    before: Hashable = None
    for run in runs:
        key = _clone_of(run)
        # A client lists the jobs of its hosts as they come in.
        if key is not None and run.host:
            if key not in hosts:
                groups.append(hosts.setdefault(key, []))
            hosts[key].append(run)
        elif (
            key is not None
            and key == before
            and len(groups[-1]) < (run.workload.numjobs or MOST)
        ):
            groups[-1].append(run)
        else:
            groups.append([run])
        before = key
    return tuple(together(group) for group in groups)


def _clone_of(run: Run) -> Hashable:
    """What clones have in common; None for a run that is none. Reports of one job in a file differ in their time;
    where fio gave none (before 2.0.9), only numjobs tells clones from them."""
    if run.group is None or (run.host and run.ended is None):
        return None
    if not run.host and (
        run.jobs != 1 or (run.ended is None and (run.workload.numjobs or 1) < 2)
    ):
        return None
    return (run.place.file, run.jobname, run.group, run.ended, run.workload)


def together(runs: Sequence[Run]) -> Run:
    """Runs that ran at the same time as one: counts and bins add up, mean and spread are pooled, rates are summed.

    Percentiles can be had from bins only. Where a source gives no counts, only the sum of the rates is left. Disk
    statistics are kept where they are those of all parts: a part of another host or volume has its own.
    """
    if len(runs) == 1:
        return runs[0]
    first = runs[0]
    parts = list(chain.from_iterable(run.directions for run in runs))
    is_counted = all(part.ios and part.runtime_ms for part in parts)
    directions = (
        merged(list(map(_job, runs))).directions if is_counted else _summed(parts)
    )
    hosts = {run.host for run in runs}
    same_disks = all(run.disks == first.disks for run in runs)
    return msgspec.structs.replace(
        first,
        jobs=sum(run.jobs or 1 for run in runs),
        concurrency=None,
        directions=directions,
        started=min(_known(run.started for run in runs), default=None),
        ended=max(_known(run.ended for run in runs), default=None),
        host=first.host if len(hosts) == 1 else "",
        error=next(filter(None, (run.error for run in runs)), 0),
        usr_cpu=unknown("%"),
        sys_cpu=unknown("%"),
        disks=first.disks if same_disks else (),
        samplers=(),
        series={},
        findings=tuple(
            dict.fromkeys(chain.from_iterable(run.findings for run in runs))
        ),
    )


def _job(run: Run) -> FioJob:
    """A run as fio's own sums take it; of its times only the directions are known."""
    return FioJob(
        name="",
        group=0,
        error=0,
        directions=run.directions,
        usr_cpu=0.0,
        sys_cpu=0.0,
        context_switches=0,
    )


def _known(times: Iterable[float | None]) -> list[float]:
    return [time for time in times if time is not None]


def _summed(parts: Sequence[Direction]) -> tuple[Direction, ...]:
    kinds = dict.fromkeys(part.kind for part in parts)
    summed = []
    for kind in kinds:
        own = [part for part in parts if part.kind == kind]
        iops, bandwidth = (
            _sum([part.iops for part in own]),
            _sum([part.bandwidth for part in own]),
        )
        summed.append(
            Direction(
                kind,
                sum(p.ios for p in own),
                sum(p.bytes for p in own),
                0,
                iops,
                bandwidth,
            )
        )
    return tuple(summed)


def _sum(parts: Sequence[Quantity]) -> Quantity:
    return Quantity(
        sum(part.value for part in parts),
        sum(part.low for part in parts),
        sum(part.high for part in parts),
        parts[0].unit,
    )
