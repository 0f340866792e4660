"""Whether the machine itself limited the load: CPU, steal, quotas, clocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import all_known

BUSY = 95.0
"""Percent of its CPU time from which a load generator counts as saturated."""

STOLEN = 0.01
"""Share of CPU time that a hypervisor may take."""

CLOCK = 0.1
"""Mean clocks of runs of one arm may differ by this."""

POLLING = frozenset(("hipri", "sqthread_poll", "iodepth_batch_complete_min=0"))

_CPU_TIME = re.compile(r"cpu\..*_ms", re.S)
_THROTTLES = {
    "cgroup.throttles": "by a CPU quota",
    "thermal.core_throttles": "by temperature",
}


@rule(
    "cpu.bound",
    "warning",
    says="the load generator used up its CPU",
    needs="usr_cpu and sys_cpu",
    remedy="give it more CPUs or jobs; this measures CPU cost rather than the device",
)
def bound(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        polls = not POLLING.isdisjoint(run.options)
        if polls or not all_known(run.usr_cpu, run.sys_cpu):
            continue
        used = run.usr_cpu.value + run.sys_cpu.value
        if used >= BUSY:
            text = f"fio was busy {used:.0f} % of the time ({run.sys_cpu.value:.0f} % in the kernel)"
            yield Mark((index,), text)


@rule(
    "cpu.stolen",
    "warning",
    says="the hypervisor took CPU time",
    needs="the machine's counters",
    remedy="measure on a dedicated machine, or compare interleaved and with more blocks",
)
def stolen(evidence: Evidence) -> Iterator[Mark]:
    for index, counters in enumerate(evidence.counters):
        times = [value for name, value in counters.items() if _CPU_TIME.fullmatch(name)]
        total = sum(times)
        share = counters.get("cpu.steal_ms", 0.0) / total if total > 0 else 0.0
        if share > STOLEN:
            yield Mark((index,), f"{share:.1%} of all CPU time was stolen")


@rule(
    "cpu.throttled",
    "warning",
    says="a quota or heat throttled the CPUs",
    needs="the machine's counters",
    remedy="lift the CPU quota of the control group; check the cooling",
)
def throttled(evidence: Evidence) -> Iterator[Mark]:
    for index, counters in enumerate(evidence.counters):
        for name, what in _THROTTLES.items():
            if counters.get(name, 0.0) > 0:
                yield Mark((index,), f"throttled {counters[name]:.0f} times {what}")


@rule(
    "cpu.clock",
    "note",
    says="the CPUs ran at different clocks in runs that should be equal",
    needs="the machine's counters over several runs of one variant",
    remedy="set the governor to performance, or make it the variant that is compared",
)
def clock(evidence: Evidence) -> Iterator[Mark]:
    if not evidence.counters:
        return
    for (cell, variant), indexes in evidence.of_arm().items():
        timed = tuple(index for index in indexes if _clock(evidence.counters[index]))
        clocks = sorted(_clock(evidence.counters[index]) for index in timed)
        if clocks and clocks[-1] > clocks[0] * (1 + CLOCK):
            text = f"{clocks[0]:.0f} to {clocks[-1]:.0f} MHz on average in runs of {variant} ({cell})"
            yield Mark(timed, text)


def _clock(counters: Mapping[str, float]) -> float:
    return counters.get("cpu.mhz_mean", 0.0)


RULES = (bound, stolen, throttled, clock)
