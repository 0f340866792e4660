"""The metrics that the runs of one cell have in common, and the value of each run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from iodelta.ingest import Run
from iodelta.study.rows import Number, number, point_of
from iodelta.trial import Finding, Kind, Latency
from iodelta.verdict import Metric, metric
from iodelta.verdict.metrics import COMMAND, LARGE_BLOCK, latency_of

KINDS: tuple[Kind, ...] = ("read", "write", "trim", "mixed")
POINTS = ("mean", "p99")


def common_metrics(runs: Sequence[Run]) -> tuple[Metric, ...]:
    """IOPS (bandwidth for blocks of 64 KiB or more), mean and p99 latency of each direction that all runs have; the
    latencies of syncs; and the numbers of commands."""
    names: list[str] = []
    for kind in KINDS:
        names += _names_of(kind, runs)
    syncs = (f"sync.lat.{point}" for point in POINTS)
    names += [name for name in syncs if _all_have(runs, name)]
    # The numbers of a command that all runs have, in the same unit and with the same direction of better.
    first, *others = map(_metrics_of_command, runs)
    return (
        *map(_metric, names),
        *[metric for metric in first if all(metric in other for other in others)],
    )


def _metrics_of_command(run: Run) -> list[Metric]:
    return [
        Metric(f"{COMMAND}.{name}", number.better, number.quantity.unit)
        for name, number in run.measured.items()
    ]


def _names_of(kind: Kind, runs: Sequence[Run]) -> list[str]:
    """Return the metrics of one direction; none if a run lacks it, or has both directions as well as their sum."""
    directions = list(filter(None, (run.direction(kind) for run in runs)))
    most = max((len(run.directions) for run in runs), default=0)
    also_parts = kind == "mixed" and most > 1
    if also_parts or len(directions) < len(runs):
        return []
    latencies = [_common_latency(kind, point, runs) for point in POINTS]
    names = list(filter(None, latencies))
    large = (runs[0].workload.bs or 0) >= LARGE_BLOCK
    rate = "bandwidth" if large else "iops"
    rates = [number(getattr(direction, rate)) for direction in directions]
    if None not in rates:
        names.insert(0, f"{kind}.{rate}")
    return names


def _common_latency(kind: str, point: str, runs: Sequence[Run]) -> str:
    """Total latency if all runs have it, else completion latency; empty if some have neither."""
    names = (f"{kind}.lat.{point}", f"{kind}.clat.{point}")
    return next((name for name in names if _all_have(runs, name)), "")


def _metric(name: str) -> Metric:
    kind, _, what = name.partition(".")
    if kind == "mixed":
        return msgspec.structs.replace(metric(f"read.{what}"), name=name)
    return metric(name)


def _all_have(runs: Sequence[Run], name: str) -> bool:
    return all(_has(run, name) for run in runs)


def _has(run: Run, name: str) -> bool:
    """Return whether a run has this mean, or this percentile with enough I/Os beyond it."""
    kind, family, point = name.split(".", 2)
    latency = latency_of(run, kind, family)
    if latency is None:
        return False
    if point == "mean":
        return number(latency.mean) is not None
    percentile = point_of(latency, float(point[1:]))
    return percentile is not None and not percentile.thin


def _latency_value(latency: Latency, point: str) -> Number | None:
    if point == "mean":
        return number(latency.mean)
    percentile = point_of(latency, float(point[1:]))
    if percentile is None:
        return None
    if latency.histogram is None:
        return Number(percentile.value, percentile.low, percentile.high)
    # A quantile from histogram bins with its resolution; None if too few I/Os lie beyond it.
    share = percentile.percent / 100
    from iodelta.stats import tails

    known = tails.percentile(latency.histogram, share)
    if isinstance(known, Finding):
        return None
    half = 2 * known.resolution * known.value
    return Number(known.value, known.value - half, known.value + half)


def value_of(run: Run, name: str) -> Number | None:
    """Return the run's value of a metric; None if it has none above zero."""
    kind, what, *point = name.split(".", 2)
    if kind == COMMAND:
        measured = run.measured.get(what)
        value = None if measured is None else number(measured.quantity)
    elif point:
        value = _latency_at(run, kind, what, point[0])
    else:
        value = _rate(run, kind, what)
    if value is None:
        return None
    # A command may print a number so coarsely that its lower end is below zero.
    sound = kind == COMMAND or value.low >= 0
    return value if sound and value.value > 0 else None


def _latency_at(run: Run, kind: str, family: str, point: str) -> Number | None:
    latency = latency_of(run, kind, family)
    return None if latency is None else _latency_value(latency, point)


def _rate(run: Run, kind: str, what: str) -> Number | None:
    for direction in run.directions:
        if direction.kind == kind:
            return number(direction.iops if what == "iops" else direction.bandwidth)
    return None
