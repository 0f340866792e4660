"""Runs of the same load, one after the other in one boot, as one result: the boot is the unit, not the run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from iodelta.trial import Direction, Quantity
from iodelta.workload.fio_json import merged_direction, merged_latency
from iodelta.workload.model import FioResult

KINDS = ("read", "write", "trim", "mixed")


def pooled(results: Sequence[FioResult]) -> FioResult:
    """All I/Os over all the time; ``counters`` has the rate of each run (``run.1.iops``), by which runs scatter.

    Latencies merge as those of jobs do: exact but for percentiles, which the histograms have. One result is itself.
    """
    if len(results) == 1:
        return results[0]
    directions = []
    for kind in KINDS:
        parts = [one for result in results for one in result.directions if one.kind == kind]
        if parts:
            directions.append(_after_another(parts))
    rates = {f"run.{n}.iops": sum(d.iops.value for d in result.directions) for n, result in enumerate(results, 1)}
    names = dict.fromkeys(name for result in results for name in result.counters)
    summed = {name: sum(result.counters.get(name, 0.0) for result in results) for name in names}
    windows = [result.window for result in results if result.window]
    return FioResult(
        directions=tuple(directions),
        sync=merged_latency([result.sync for result in results]),
        usr_cpu=sum(result.usr_cpu for result in results) / len(results),
        sys_cpu=sum(result.sys_cpu for result in results) / len(results),
        context_switches=sum(result.context_switches for result in results),
        series={
            name: tuple(value for result in results for value in result.series.get(name, ()))
            for name in dict.fromkeys(name for result in results for name in result.series)
        },
        window=(windows[0][0], windows[-1][1]) if len(windows) == len(results) else None,
        fio_version=results[0].fio_version,
        counters={**summed, **rates},
        findings=tuple(dict.fromkeys(finding for result in results for finding in result.findings)),
    )


def _after_another(parts: Sequence[Direction]) -> Direction:
    length = sum(part.runtime_ms for part in parts)

    def mean(rates: Sequence[Quantity]) -> Quantity:
        weighted = [(part.runtime_ms / length, rate) for part, rate in zip(parts, rates, strict=True)]
        value, low, high = (
            sum(share * getattr(rate, name) for share, rate in weighted) for name in ("value", "low", "high")
        )
        return Quantity(value, low, high, rates[0].unit)

    return msgspec.structs.replace(
        merged_direction(parts),
        runtime_ms=length,
        iops=mean([part.iops for part in parts]),
        bandwidth=mean([part.bandwidth for part in parts]),
    )
