"""Runs of the same load, one after the other in one boot, as one result: the boot is the unit, not the run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from iodelta.trial import Direction, Quantity
from iodelta.workload.fio_json import merged_direction, merged_latency
from iodelta.workload.model import FioResult

KINDS = ("read", "write", "trim", "mixed")


def pooled(results: Sequence[FioResult]) -> FioResult:
    """Return all I/Os over all the time; ``counters`` has the rate of each run (``run.1.iops``), which show how runs
    scatter.

    Latencies merge as those of jobs do: exact but for percentiles, which the histograms have. One result is itself.
    """
    if len(results) == 1:
        return results[0]
    windows = [result.window for result in results if result.window]
    return FioResult(
        directions=_directions(results),
        sync=merged_latency([result.sync for result in results]),
        usr_cpu=sum(result.usr_cpu for result in results) / len(results),
        sys_cpu=sum(result.sys_cpu for result in results) / len(results),
        context_switches=sum(result.context_switches for result in results),
        series=_joined_series(results),
        window=(windows[0][0], windows[-1][1])
        if len(windows) == len(results)
        else None,
        fio_version=results[0].fio_version,
        counters={**_summed_counters(results), **_rates(results)},
        findings=tuple(
            dict.fromkeys(chain.from_iterable(result.findings for result in results))
        ),
    )


def _directions(results: Sequence[FioResult]) -> tuple[Direction, ...]:
    by_kind: dict[str, list[Direction]] = {kind: [] for kind in KINDS}
    for result in results:
        for direction in result.directions:
            by_kind[direction.kind].append(direction)
    return tuple(_after_another(parts) for parts in by_kind.values() if parts)


def _rates(results: Sequence[FioResult]) -> dict[str, float]:
    rates = {}
    for number, result in enumerate(results, 1):
        rates[f"run.{number}.iops"] = sum(
            direction.iops.value for direction in result.directions
        )
    return rates


def _summed_counters(results: Sequence[FioResult]) -> dict[str, float]:
    summed: dict[str, float] = {}
    for result in results:
        for name, value in result.counters.items():
            summed[name] = summed.get(name, 0.0) + value
    return summed


def _joined_series(results: Sequence[FioResult]) -> dict[str, tuple[float, ...]]:
    joined: dict[str, tuple[float, ...]] = {}
    for result in results:
        for name, values in result.series.items():
            joined[name] = joined.get(name, ()) + tuple(values)
    return joined


def _after_another(parts: Sequence[Direction]) -> Direction:
    length = sum(part.runtime_ms for part in parts)

    def mean(rates: Sequence[Quantity]) -> Quantity:
        weighted = [
            (part.runtime_ms / length, rate)
            for part, rate in zip(parts, rates, strict=True)
        ]
        return Quantity(
            value=sum(share * rate.value for share, rate in weighted),
            low=sum(share * rate.low for share, rate in weighted),
            high=sum(share * rate.high for share, rate in weighted),
            unit=rates[0].unit,
        )

    return msgspec.structs.replace(
        merged_direction(parts),
        runtime_ms=length,
        iops=mean([part.iops for part in parts]),
        bandwidth=mean([part.bandwidth for part in parts]),
    )
