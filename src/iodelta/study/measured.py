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

BEYOND = 100
"""I/Os beyond a percentile that make it usable."""


def common_metrics(runs: Sequence[Run]) -> tuple[Metric, ...]:
    """IOPS (bandwidth from 64 KiB on), mean and p99 latency of each direction that all runs have, and of syncs."""
    names: list[str] = []
    for kind in KINDS:
        names += _names_of(kind, runs)
    syncs = (f"sync.lat.{point}" for point in POINTS)
    names += [name for name in syncs if _all_have(runs, name)]
    return (*map(_metric, names), *_of_commands(runs))


def _of_commands(runs: Sequence[Run]) -> list[Metric]:
    """What all runs measured of a command, in the same unit and with the same way that is better."""
    first = runs[0].measured if runs else {}
    metrics = []
    for name, quantity in first.items():
        meaning = (quantity.better, quantity.quantity.unit)
        others = [run.measured[name] for run in runs if name in run.measured]
        same = all((other.better, other.quantity.unit) == meaning for other in others)
        if same and len(others) == len(runs):
            metrics.append(
                Metric(f"{COMMAND}.{name}", quantity.better, quantity.quantity.unit)
            )
    return metrics


def _names_of(kind: Kind, runs: Sequence[Run]) -> list[str]:
    """The metrics of one direction; none where a run lacks it, or has both directions as well as their sum."""
    directions = [
        direction for run in runs if (direction := run.direction(kind)) is not None
    ]
    summed = kind == "mixed" and any(len(run.directions) > 1 for run in runs)
    if len(directions) < len(runs) or summed:
        return []
    rate = "bandwidth" if (runs[0].workload.bs or 0) >= LARGE_BLOCK else "iops"
    rates = [number(getattr(direction, rate)) for direction in directions]
    latencies = list(
        filter(None, (_common_latency(kind, point, runs) for point in POINTS))
    )
    if None in rates:
        return latencies
    return [f"{kind}.{rate}", *latencies]


def _common_latency(kind: str, point: str, runs: Sequence[Run]) -> str:
    """Total latency where all runs have it, else completion latency; empty where some have neither."""
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
    """Whether a latency has its mean, or a percentile that enough I/Os bear."""
    kind, family, point = name.split(".", 2)
    latency = latency_of(run, kind, family)
    if latency is None:
        return False
    if point == "mean":
        return number(latency.mean) is not None
    percentile = point_of(latency, float(point[1:]))
    return percentile is not None and (
        percentile.beyond is None or percentile.beyond >= BEYOND
    )


def _latency_value(latency: Latency, point: str) -> Number | None:
    if point == "mean":
        return number(latency.mean)
    percentile = point_of(latency, float(point[1:]))
    if percentile is None:
        return None
    if latency.histogram is None:
        return Number(percentile.value, percentile.low, percentile.high)
    from iodelta.stats import tails

    known = tails.percentile(latency.histogram, percentile.percent / 100)
    if isinstance(known, Finding):
        return None
    half = 2 * known.resolution * known.value
    return Number(known.value, known.value - half, known.value + half)


def value_of(run: Run, name: str) -> Number | None:
    """The run's value of a metric; None where it has none above zero."""
    kind, what, *point = name.split(".", 2)
    if kind == COMMAND:
        measured = run.measured.get(what)
        known = number(measured.quantity) if measured is not None else None
        return known if known is not None and known.value > 0 else None
    direction = next((d for d in run.directions if d.kind == kind), None)
    number_read = None
    if point:
        latency = latency_of(run, kind, what)
        number_read = _latency_value(latency, point[0]) if latency is not None else None
    elif direction is not None:
        number_read = number(direction.iops if what == "iops" else direction.bandwidth)
    if number_read is not None and number_read.value > 0 and number_read.low >= 0:
        return number_read
    return None
