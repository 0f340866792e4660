"""Compare fio's own samples with its totals, and report known defects of fio versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import all_known, count, parts
from iodelta.ingest import Run, Sampler
from iodelta.trial import Direction

APART = 0.1
"""Relative difference allowed between the mean of fio's samples and the mean of the run."""

SHORT = 4000
"""ms of a run up to which it has too few samples, one per half second, for a useful mean."""

SAMPLER_FIXED = (3, 18)


def version(run: Run) -> tuple[int, ...]:
    """fio's version: (3, 33) for ``3.33``, (3, 19, 10) for ``3.19-10-g3bd2``; empty if unknown."""
    return _version(run.fio_version or "")


@lru_cache(maxsize=64)
def _version(text: str) -> tuple[int, ...]:
    match = re.match(r"(?:fio-)?(\d+)\.(\d+)(?:[.-](\d+))?", text)
    if not match:
        return ()
    return tuple(map(int, filter(None, match.groups())))


@rule(
    "sampler.stalls",
    "warning",
    says="fio's own mean of samples is not the run's mean",
    needs="iops_mean of fio 3.18 or later, and totals",
    remedy="use iops and bw_bytes; a higher sampled mean says that some windows had no I/O at all",
)
def stalls(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        if version(run) < SAMPLER_FIXED:
            continue
        for direction in parts(run):
            sampler = run.sampler(direction.kind, "iops")
            if sampler is not None and all_known(sampler.mean, direction.iops):
                yield from _stalls(index, direction, sampler)


def _stalls(index: int, direction: Direction, sampler: Sampler) -> Iterator[Mark]:
    iops = direction.iops
    if not iops.value:
        return
    if sampler.min.value == sampler.max.value == 1:
        text = "every I/O was its own sample (an IOPS log without log_avg_msec): the samples mean nothing"
        yield Mark((index,), text, severity="note")
        return
    is_apart = sampler.mean.low > iops.high * (1 + APART)
    if is_apart and not (0 < direction.runtime_ms < SHORT):
        ratio = sampler.mean.value / iops.value
        text = f"{direction.kind}: samples average {ratio:.3g} times the run's {count(iops.value)} IOPS"
        yield Mark((index,), f"{text}: stalls, or jobs that ended early")


class Known(NamedTuple):
    """A defect of fio from one version to another (inclusive), and the runs that it affects."""

    first: tuple[int, int]
    last: tuple[int, int]
    touches: Callable[[Run], bool]
    text: str


def _sampled(run: Run) -> bool:
    return bool(run.samplers)


def _grouped(run: Run) -> bool:
    jobs = run.jobs or run.workload.numjobs or 1
    return _sampled(run) and jobs > 1


def _logged(run: Run) -> bool:
    return run.format == "log"


KNOWN = (
    Known(
        (2, 0),
        (3, 12),
        _grouped,
        "iops_mean and bw_mean are per job, not of the group (fio#519)",
    ),
    Known((3, 0), (3, 17), _sampled, "iops_mean and bw_mean are about 13 % too low"),
    Known(
        (2, 20),
        (3, 25),
        lambda run: run.format == "text",
        "some rates are printed up to 9 % too low",
    ),
    Known((3, 0), (3, 0), _logged, "values of long windows are far too low (fio#426)"),
    Known((3, 18), (3, 19), _logged, "rows are doubled (fio#947)"),
    Known((3, 18), (3, 24), _logged, "windows grow by a millisecond each"),
    Known(
        (3, 6),
        (3, 16),
        lambda run: run.format == "hist-log",
        "the upper half of the bins is garbage",
    ),
)
"""Measured against fio's source history; the numbers are issues of axboe/fio."""


@rule(
    "fio.version",
    "note",
    says="this version of fio is known to get some of these numbers wrong",
    needs="the version of fio",
    remedy="use totals and run time, which are right, or a newer fio on both sides",
)
def old_fio(evidence: Evidence) -> Iterator[Mark]:
    for defect in KNOWN:
        runs = tuple(index for index, run in evidence.measured() if _has(defect, run))
        if runs:
            yield Mark(runs, f"fio {evidence.runs[runs[0]].fio_version}: {defect.text}")


def _has(defect: Known, run: Run) -> bool:
    is_affected = defect.first <= version(run)[:2] <= defect.last
    return is_affected and defect.touches(run)


RULES = (stalls, old_fio)
