"""How long requests stay in each stage of the block layer, from the kernel's own trace points.

Sources: include/trace/events/block.h, Documentation/trace/ftrace.rst. Nothing but a mounted tracefs is needed; events
go to an instance of their own, so other users of tracing are not disturbed.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

import msgspec

from iodelta.machine import Machine
from iodelta.probe.devices import device
from iodelta.probe.sysfs import attribute, is_root

TRACEFS = "/sys/kernel/tracing"
EVENTS = {
    "block_bio_queue": "queue",
    "block_rq_insert": "insert",
    "block_rq_issue": "issue",
    "block_rq_complete": "complete",
}
_LINE = re.compile(
    r"\s(\d+\.\d+): ("
    + "|".join(EVENTS)
    + r"): (\d+,\d+) ([A-Z]+) .*?(\d+) \+ (\d+) (?:[a-z-]+,\d+,\d+ )?\["
)

BUFFER_KIB = 16384
"""For each CPU; when the buffer is full the oldest events are dropped."""


class Stage(msgspec.Struct, frozen=True):
    """Requests in one stage. Times in ns."""

    name: str
    """``queue to issue``: until it is given to the driver; ``insert to issue``: of that, in the scheduler; ``issue to
    complete``: in driver and device."""
    count: int
    """Requests."""
    mean: float
    """Mean time."""
    p50: float
    """Median time."""
    p99: float
    """99th percentile of the times."""


def missing(machine: Machine) -> str:
    """Return why stages cannot be traced here, or an empty text. tracefs may still have to be mounted."""
    if not is_root(machine):
        return "needs root: trace points belong to root"
    if "tracefs" not in (attribute(machine, "/proc/filesystems") or "").split():
        return "the kernel has no tracefs (CONFIG_FTRACE)"
    if mounted(machine) and not machine.glob(
        f"{TRACEFS}/events/block/block_rq_issue/enable"
    ):
        return "the kernel has no trace points of the block layer (CONFIG_BLK_DEV_IO_TRACE)"
    return ""


def mounted(machine: Machine) -> bool:
    """Return whether tracefs is mounted in its usual place."""
    return bool(machine.glob(f"{TRACEFS}/instances"))


def begin(machine: Machine, instance: str, disks: Sequence[str]) -> None:
    """Trace the requests of these disks in an instance that was just made. Raises MachineError."""
    machine.write(f"{instance}/trace_clock", "mono")
    machine.write(f"{instance}/buffer_size_kb", str(BUFFER_KIB))
    numbers = [device(machine, disk).devno.partition(":") for disk in disks]
    wanted = " || ".join(
        f"dev == {int(major) << 20 | int(minor)}" for major, _, minor in numbers
    )
    for event in EVENTS:
        machine.write(f"{instance}/events/block/{event}/filter", wanted)
        machine.write(f"{instance}/events/block/{event}/enable", "1")


def end(machine: Machine, instance: str) -> tuple[Stage, ...]:
    """Stop tracing and return the stages. Raises MachineError."""
    machine.write(f"{instance}/tracing_on", "0")
    return parsed(machine.read_bytes(f"{instance}/trace").decode(errors="replace"))


def parsed(text: str) -> tuple[Stage, ...]:
    """Stages from a trace. A request is identified by its device and first sector; of merged ones the first bio counts."""
    open_: dict[tuple[str, str], dict[str, float]] = {}
    spans: dict[str, list[float]] = {
        "queue to issue": [],
        "insert to issue": [],
        "issue to complete": [],
    }
    for at, event, dev, _, sector, _ in _LINE.findall(text):
        key, when = (dev, sector), float(at)
        if EVENTS[event] != "complete":
            open_.setdefault(key, {})[EVENTS[event]] = when
            continue
        seen = {**open_.pop(key, {}), "complete": when}
        for name, times in spans.items():
            first, _, last = name.partition(" to ")
            if first in seen and last in seen and seen[last] >= seen[first]:
                times.append(1e9 * (seen[last] - seen[first]))
    return tuple(_stage(name, times) for name, times in spans.items() if len(times) > 1)


def _stage(name: str, times: list[float]) -> Stage:
    cuts = statistics.quantiles(times, n=100)
    return Stage(name, len(times), statistics.fmean(times), cuts[49], cuts[98])
