"""The CPUs that submit to a disk's hardware queues and serve them, and findings about tasks bound to some CPUs.

Sources: block/blk-mq-sysfs.c (``mq/N/cpu_list``: the CPUs whose I/O goes to queue N, each CPU in one list),
Documentation/core-api/irq/irq-affinity.rst (``effective_affinity``), tools/testing/selftests/ublk/kublk.c (the server's
thread of a queue is bound to the first CPU of the queue's list).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

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
    """For each queue the CPUs whose I/O goes there; empty where the kernel does not list them (no blk-mq)."""
    interrupted: Cpus = frozenset()
    """CPUs that take the interrupts of its queues; empty for a disk without interrupts of its own."""
    threads: bool = False
    """Whether each queue is served by a thread bound to the first CPU that feeds it."""


def numbers(text: str) -> Cpus:
    """``0-3,8`` -> {0, 1, 2, 3, 8}; empty for any other text."""
    if not _LIST.fullmatch(text):
        return frozenset()
    cpus: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        cpus.update(range(int(low), int(high or low) + 1))
    return frozenset(cpus)


def spelled(cpus: Iterable[int]) -> str:
    """{0, 1, 2, 8} -> ``0-2,8``."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    texts: list[str] = []
    for run in runs:
        first, last = run[0], run[-1]
        texts.append(f"{first}-{last}" if last > first else str(first))
    return ",".join(texts)


def queues(machine: Machine, disk: str) -> Queues:
    """Return the queues of a whole disk, by kernel name."""
    paths = sorted(
        machine.glob(f"/sys/block/{sysfs_name(disk)}/mq/*/cpu_list"),
        key=lambda path: int(path.split("/")[-2]),
    )
    texts = [attribute(machine, path) or "" for path in paths]
    feeding = tuple(numbers(text.replace(" ", "")) for text in texts)
    if disk.startswith("ublkb"):
        return Queues(disk, feeding, threads=True)
    interrupted: set[int] = set()
    for number in interrupts(machine, disk):
        action = attribute(machine, f"/sys/kernel/irq/{number}/actions") or ""
        # Interrupts for changes of configuration, and of NVMe's admin queue, complete no I/O.
        if not re.search(r"config$|nvme\d+q0$", action):
            affinity = f"/proc/irq/{number}/effective_affinity_list"
            interrupted |= numbers(attribute(machine, affinity) or "")
    return Queues(disk, feeding, frozenset(interrupted))


def first_cpus(feeding: Iterable[Cpus]) -> Cpus:
    """Return one CPU for each queue, the first that feeds it."""
    return frozenset(min(cpus) for cpus in feeding if cpus)


def nodes(machine: Machine) -> dict[int, Cpus]:
    """Return the CPUs of each NUMA node; empty without NUMA."""
    by_node: dict[int, Cpus] = {}
    for path in machine.glob(f"{NODES}/node[0-9]*/cpulist"):
        node = int(path.split("/")[-2].removeprefix("node"))
        by_node[node] = numbers(attribute(machine, path) or "")
    return dict(sorted(by_node.items()))


def placement_findings(
    queues_of_disk: Queues, cpus: Cpus, by_node: dict[int, Cpus], place: str = ""
) -> Iterator[Finding]:
    """Findings about tasks bound to ``cpus`` and the queues of a disk."""
    disk, feeding = queues_of_disk.disk, queues_of_disk.feeding
    reached = [queue_cpus for queue_cpus in feeding if queue_cpus & cpus]
    where = f"{place or 'tasks'} on CPUs {spelled(cpus)}"
    if reached and len(reached) < min(len(feeding), len(cpus)):
        yield Finding(
            "placement.few-queues",
            "warning",
            place,
            f"{where} reach only {len(reached)} of the {len(feeding)} queues of {disk}",
            'cpus = "device-queues" takes a CPU of each queue',
        )
    serving = queues_of_disk.interrupted
    if queues_of_disk.threads:
        serving = first_cpus(reached)
    if serving:
        # Findings where the CPUs that serve a disk differ from those of the tasks, or are on another node
        if not serving & cpus:
            yield Finding(
                "placement.disjoint",
                "warning",
                place,
                f"{where}, {disk} is served on CPUs {spelled(serving)}: every I/O ends on another CPU than it began",
                f'cpus = "{spelled(serving)}" puts them together',
            )
        mine = _nodes_of(cpus, by_node)
        theirs = _nodes_of(serving, by_node)
        if theirs - mine:
            yield Finding(
                "placement.crosses-nodes",
                "warning",
                place,
                f"{where} are on node {spelled(mine)}, {disk} is served on node {spelled(theirs)}",
                f'cpus = "node:{min(theirs)}" keeps them on one',
            )


def _nodes_of(cpus: Cpus, by_node: dict[int, Cpus]) -> set[int]:
    """Return the NUMA nodes that have any of these CPUs."""
    return {node for node, node_cpus in by_node.items() if node_cpus & cpus}
