"""Contradictions inside one report: shares over 100 %, samples in another unit, counts that disagree."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import all_known, count, known, parts, span
from iodelta.audit.rules.depth import held_back
from iodelta.audit.rules.sampling import version
from iodelta.ingest import Run
from iodelta.trial import Direction

ROUNDED = 0.5
"""Percent by which rounded shares may sum to more than 100."""
MANY = 150.0
"""Percent above which neither a ramp nor syncs explain the shares of depths."""
BUSY = 105.0
"""Percent of its time that a job may seem to use a CPU, with rounding and interrupts."""
UNIT = 0.25
"""How near to a thousandfold, as a share, two rates must be to differ by their unit."""
LOST = 0.02
"""Share of the I/Os that may lack a latency; more cannot be in flight at the end of a ramp."""


@rule(
    "shares.over",
    "hard",
    says="shares of I/Os, or of CPU time, sum to more than 100 %",
    needs="fio's latency buckets, depths or CPU use",
    remedy="was the report edited? Read fio's own output",
)
def over(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        shares = sum(share for _, share in run.shares)
        # An older fio counted the I/Os of the ramp there.
        if shares > (100 + ROUNDED if version(run) >= (3, 0) else MANY):
            yield Mark((index,), f"the latency buckets sum to {shares:.4g} %")
        depths = sum(share.low for share in run.depths.values() if known(share))
        has_more = (
            held_back(run)
            or run.options.get("ramp_time", "0").strip("0 smu")
            or len(run.directions) != 1
        )
        if depths > MANY and not has_more:
            yield Mark((index,), f"the shares of depths sum to {depths:.4g} %")
        if (
            all_known(run.usr_cpu, run.sys_cpu)
            and run.usr_cpu.low + run.sys_cpu.low > BUSY
        ):
            yield Mark(
                (index,),
                f"user and system time make {run.usr_cpu.value + run.sys_cpu.value:.4g} % of a CPU",
            )
        for disk in run.disks:
            if disk.util > 100 + ROUNDED:
                yield Mark(
                    (index,), f"{disk.name} was busy {disk.util:.4g} % of the time"
                )


@rule(
    "sampler.unit",
    "hard",
    says="fio's samples and its totals are a unit apart, or out of order",
    needs="samples of IOPS or bandwidth, and totals",
    remedy="was the report edited? Read fio's own output",
)
def sampled(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        for direction in parts(run):
            for of, whole in (("iops", direction.iops), ("bw", direction.bandwidth)):
                sampler = run.sampler(direction.kind, of)  # type: ignore[arg-type]
                if sampler is None or not known(sampler.mean):
                    continue
                least, mean, most = sampler.min, sampler.mean, sampler.max
                name = f"{direction.kind} {'IOPS' if of == 'iops' else 'bandwidth'}"
                if all_known(least, most) and (
                    mean.high < least.low * 0.999 or mean.low > most.high * 1.001
                ):
                    text = f"{name}: samples of {count(least.value)} to {count(most.value)} cannot average {count(mean.value)}"
                    yield Mark((index,), text)
                elif (
                    known(whole)
                    and whole.value > 0
                    and mean.value > 0
                    and least.value < most.value
                ):
                    ratio = mean.value / whole.value
                    if (
                        1000 * (1 - UNIT)
                        < max(ratio, 1 / ratio if ratio else 0)
                        < 1000 * (1 + UNIT)
                    ):
                        text = f"{name}: samples average {ratio:.4g} times the run's {count(whole.value)}"
                        yield Mark((index,), text)


@rule(
    "count.mismatch",
    "hard",
    says="the I/Os counted are not those whose latency was measured, or not those of the run time",
    needs="counts of a run of fio",
    remedy="was the report edited? Read fio's own output",
)
def counted(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        for direction in parts(run):
            if direction.kind == "mixed":
                continue
            slack = LOST * direction.ios + 2 * (run.workload.iodepth or 1) * max(
                run.jobs or 1, run.workload.numjobs or 1
            )
            for name, latency in direction.latencies().items():
                if (
                    direction.ios
                    and abs(latency.count - direction.ios) > slack
                    and name != "slat"
                    and latency.count
                ):
                    text = f"{direction.kind}: {count(latency.count)} {name} of {count(direction.ios)} I/Os"
                    yield Mark((index,), text)
                elif (
                    latency.histogram is not None
                    and abs(latency.histogram.total - latency.count)
                    > LOST * latency.count
                ):
                    text = f"{direction.kind}: the bins of {name} hold {count(latency.histogram.total)} of {count(latency.count)} I/Os"
                    yield Mark((index,), text)
            text = _time(run, direction)
            if text:
                yield Mark((index,), text)


def _time(run: Run, direction: Direction) -> str:
    """Return why the run time cannot be right; empty if it can."""
    took = direction.runtime_ms / 1000
    if run.elapsed is not None and took > run.elapsed + 2 and version(run) >= (3, 0):
        return f"{direction.kind}: measured for {took:g} s, {run.elapsed:g} s after fio began"
    for name, latency in direction.latencies().items():
        if known(latency.stddev) and all_known(latency.min, latency.max):
            most = latency.max.high - latency.min.low
            if latency.stddev.low > most * 1.01 + 1000:
                return f"{direction.kind} {name}: a deviation of {span(latency.stddev.value)} within a range of {span(most)}"
    return ""


RULES = (over, sampled, counted)
