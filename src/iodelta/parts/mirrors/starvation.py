"""Whether the mirror got enough CPU time: otherwise a rate is that of the machine and not of the members."""

from __future__ import annotations

import os
import time

import msgspec

from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute
from iodelta.trial import Finding

WAITED = 0.05
"""Largest share of the time that the mirror may wait for a CPU: its rate may be too low by as much."""

STOLEN = 0.05
"""Largest share of the machine's busy CPU time that a hypervisor may take."""

USED = 0.9
"""A mirror that uses this share of a CPU does not wait for its members."""

TICKS = os.sysconf("SC_CLK_TCK")
BUSY = (0, 1, 2, 5, 6, 7)
"""user, nice, system, irq, softirq and steal among the columns of /proc/stat."""

STEAL = 7


class CpuTimes(msgspec.Struct, frozen=True):
    """Seconds so far, of this thread and of the machine."""

    at: float
    used: float
    """CPU time of this thread."""
    waited: float
    """Time in which this thread could have run and had no CPU; 0 where the kernel does not count it."""
    stolen: float
    """CPU time that a hypervisor gave to others while this machine had work to do."""
    busy: float
    """CPU time of the whole machine, stolen time included."""


def cpu_times(machine: Machine) -> CpuTimes:
    """Times of the calling thread: the native core reads from members in it."""
    schedstat = (attribute(machine, "/proc/thread-self/schedstat") or "").split()
    waited = int(schedstat[1]) / 1e9 if len(schedstat) == 3 else 0.0
    columns = (attribute(machine, "/proc/stat") or "").partition("\n")[0].split()[1:]
    ticks = (
        [int(column) for column in columns]
        if len(columns) > STEAL
        else [0] * (STEAL + 1)
    )
    busy = sum(ticks[column] for column in BUSY)
    return CpuTimes(
        time.monotonic(), time.thread_time(), waited, ticks[STEAL] / TICKS, busy / TICKS
    )


def starvation(before: CpuTimes, after: CpuTimes) -> tuple[Finding, ...]:
    """Return why the rates between two readings may not be those of the members, in findings."""
    seconds = after.at - before.at
    if seconds <= 0:
        return ()
    waited = (after.waited - before.waited) / seconds
    used = (after.used - before.used) / seconds
    stolen, busy = after.stolen - before.stolen, after.busy - before.busy
    findings = []
    if waited > WAITED:
        text = f"the mirror waited for a CPU during {100 * waited:.0f} % of the run: "
        text += "its rate and latencies are this machine's and not its members'"
        findings.append(
            _finding("mirror.starved", text, "repeat it while a CPU is idle")
        )
    if busy > 0 and stolen > max(STOLEN * busy, 0.02 * seconds):
        text = f"{100 * stolen / busy:.0f} % of the CPU time was stolen by other guests of this host"
        findings.append(
            _finding(
                "mirror.stolen",
                text,
                "repeat on a host, or in a guest with CPUs of its own",
            )
        )
    if used > USED:
        text = f"the mirror used {100 * used:.0f} % of a CPU: its rate is what one CPU can do, the members may do more"
        findings.append(
            _finding("mirror.cpu-bound", text, "larger blocks, or slower members")
        )
    return tuple(findings)


def _finding(rule: str, text: str, remedy: str) -> Finding:
    return Finding(rule, "warning", "this machine", text, remedy)
