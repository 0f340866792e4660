"""Which CPUs feed a disk's hardware queues and serve them, and what that means for tasks bound to some CPUs.

Sources: block/blk-mq-sysfs.c (``mq/N/cpu_list``: the CPUs whose I/O goes to queue N, each CPU in one list),
Documentation/core-api/irq/irq-affinity.rst (``effective_affinity``), tools/testing/selftests/ublk/kublk.c (the server's
thread of a queue is bound to the first CPU of the queue's list).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from iodelta.machine import Machine
from iodelta.probe.devices import interrupts
from iodelta.probe.sysfs import attribute, sysfs_name
from iodelta.trial import Finding

_LIST = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*", re.ASCII)

NODES = "/sys/devices/system/node"

Cpus = frozenset[int]


class Queues(msgspec.Struct, frozen=True):
    """The hardware queues of a disk."""

    disk: str
    feeding: tuple[Cpus, ...]
    """For each queue the CPUs whose I/O goes there; empty where the kernel does not say (no blk-mq)."""
    interrupted: Cpus = frozenset()
    """CPUs that take the interrupts of its queues; empty where it has none of its own."""
    threads: bool = False
    """Whether each queue is served by a thread bound to the first CPU that feeds it."""


def numbers(text: str) -> Cpus:
    """``0-3,8`` -> {0, 1, 2, 3, 8}; empty for any other text."""
    if not _LIST.fullmatch(text):
        return frozenset()
    ends = [part.partition("-") for part in text.split(",")]
    return frozenset(
        chain.from_iterable(
            range(int(low), int(high or low) + 1) for low, _, high in ends
        )
    )


def spelled(cpus: Iterable[int]) -> str:
    """{0, 1, 2, 8} -> ``0-2,8``."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs
    )


def queues(machine: Machine, disk: str) -> Queues:
    """The queues of a whole disk, by kernel name."""
    paths = sorted(
        machine.glob(f"/sys/block/{sysfs_name(disk)}/mq/*/cpu_list"),
        key=lambda path: int(path.split("/")[-2]),
    )
    feeding = tuple(
        numbers((attribute(machine, path) or "").replace(" ", "")) for path in paths
    )
    if disk.startswith("ublkb"):
        return Queues(disk, feeding, threads=True)
    interrupted: set[int] = set()
    for number in interrupts(machine, disk):
        action = attribute(machine, f"/sys/kernel/irq/{number}/actions") or ""
        if not re.search(r"config$|nvme\d+q0$", action):  # those complete no I/O
            interrupted |= numbers(
                attribute(machine, f"/proc/irq/{number}/effective_affinity_list") or ""
            )
    return Queues(disk, feeding, frozenset(interrupted))


def first_cpus(feeding: Iterable[Cpus]) -> Cpus:
    """One CPU for each queue, the first that feeds it."""
    return frozenset(min(cpus) for cpus in feeding if cpus)


def nodes(machine: Machine) -> dict[int, Cpus]:
    """The CPUs of each NUMA node; empty without NUMA."""
    paths = {
        int(path.split("/")[-2][4:]): path
        for path in machine.glob(f"{NODES}/node[0-9]*/cpulist")
    }
    return {
        node: numbers(attribute(machine, path) or "")
        for node, path in sorted(paths.items())
    }


def placement_findings(
    found: Queues, cpus: Cpus, by_node: dict[int, Cpus], place: str = ""
) -> Iterator[Finding]:
    """What tasks bound to ``cpus`` will meet at the queues of a disk; nothing where they may run anywhere."""
    fed = [feeding for feeding in found.feeding if feeding & cpus]
    where = f"{place or 'tasks'} on CPUs {spelled(cpus)}"
    if fed and len(fed) < min(len(found.feeding), len(cpus)):
        yield Finding(
            "placement.few-queues",
            "warning",
            place,
            f"{where} reach only {len(fed)} of the {len(found.feeding)} queues of {found.disk}",
            'cpus = "device-queues" takes a CPU of each queue',
        )
    serving = first_cpus(fed) if found.threads else found.interrupted
    if not serving:
        return
    if not serving & cpus:
        yield Finding(
            "placement.disjoint",
            "warning",
            place,
            f"{where}, {found.disk} is served on CPUs {spelled(serving)}: every I/O ends on another CPU than it began",
            f'cpus = "{spelled(serving)}" puts them together',
        )
    mine = {node for node, own in by_node.items() if own & cpus}
    theirs = {node for node, own in by_node.items() if own & serving}
    if theirs - mine:
        yield Finding(
            "placement.crosses-nodes",
            "warning",
            place,
            f"{where} are on node {spelled(mine)}, {found.disk} is served on node {spelled(theirs)}",
            f'cpus = "node:{min(theirs)}" keeps them on one',
        )
