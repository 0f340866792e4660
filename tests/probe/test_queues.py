"""Queues, CPUs and nodes of the report of 2026-03: 192 CPUs in 8 nodes, a ublk device with 16 queues."""

from __future__ import annotations

from fakes import PaperMachine

from iodelta.probe.queues import first_cpus, nodes, numbers, placement_findings, queues, spelled

AFFINITY = (24, 36, 72, 84, 96, 108, 120, 132, 144, 156, 168, 180, 48, 60, 0, 12)
"""Of queue 0 to 15, as kublk printed it."""

MACHINE = PaperMachine(
    {f"/sys/block/ublkb0/mq/{queue}/cpu_list": f"{first}-{first + 11}\n" for queue, first in enumerate(AFFINITY)}
    | {f"/sys/devices/system/node/node{node}/cpulist": f"{24 * node}-{24 * node + 23}\n" for node in range(8)}
)

NVME = PaperMachine(
    {f"/sys/block/nvme0n1/mq/{queue}/cpu_list": f"{queue}, {queue + 2}\n" for queue in (0, 1)}
    | {f"/sys/class/block/nvme0n1/device/msi_irqs/{number}": "msix\n" for number in (40, 41, 42)}
    | {f"/sys/kernel/irq/{40 + queue}/actions": f"nvme0q{queue}\n" for queue in (0, 1, 2)}
    | {"/proc/irq/40/effective_affinity_list": "0\n", "/proc/irq/41/effective_affinity_list": "2\n"}
    | {"/proc/irq/42/effective_affinity_list": "3\n", "/sys/devices/system/node/node0/cpulist": "0-1\n"}
    | {"/sys/devices/system/node/node1/cpulist": "2-3\n"}
)


def named(machine: PaperMachine, disk: str, cpus: str) -> dict[str, str]:
    found = placement_findings(queues(machine, disk), numbers(cpus), nodes(machine), "bound")
    return {finding.rule: finding.explanation for finding in found}


def test_the_cpus_of_the_device_s_queues_are_those_that_reproduced_the_report() -> None:
    assert spelled(first_cpus(queues(MACHINE, "ublkb0").feeding)) == ",".join(map(str, range(0, 192, 12)))
    assert named(MACHINE, "ublkb0", ",".join(map(str, AFFINITY))) == {}


def test_one_node_s_cpus_reach_two_of_sixteen_queues_which_is_why_it_was_slow() -> None:
    found = named(MACHINE, "ublkb0", "24-47")
    assert found == {
        "placement.few-queues": "bound on CPUs 24-47 reach only 2 of the 16 queues of ublkb0",
    }


def test_tasks_away_from_the_threads_that_serve_their_queues_are_named() -> None:
    found = named(MACHINE, "ublkb0", "1-11")
    assert "ublkb0 is served on CPUs 0: every I/O ends on another CPU" in found["placement.disjoint"]
    assert "placement.crosses-nodes" not in found


def test_interrupts_on_another_node_are_named_and_the_admin_queue_s_is_none_of_them() -> None:
    assert queues(NVME, "nvme0n1").interrupted == {2, 3}
    found = named(NVME, "nvme0n1", "0-1")
    assert "served on CPUs 2-3" in found["placement.disjoint"]
    assert "are on node 0, nvme0n1 is served on node 1" in found["placement.crosses-nodes"]
    assert named(NVME, "nvme0n1", "2-3") == {}
