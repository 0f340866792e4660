"""Where the load may run, on this machine's CPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import LocalMachine

from .rooted import Rooted, on_sda, target


def test_the_load_runs_on_the_named_cpus_and_nothing_else_is_bound(machine: LocalMachine) -> None:
    mine = os.sched_getaffinity(0)
    one = str(min(mine))
    cpus = on_sda("cpus", machine)
    assert cpus.available() is None
    cpus.check(one)
    cpus.apply(one)
    cpus.verify(one)
    done = machine.run([*cpus.launcher(one), "nproc"])
    assert done.text.strip() == "1"
    assert os.sched_getaffinity(0) == mine
    assert "nothing to restore" in knob.restore(machine, cpus.save())


@pytest.mark.parametrize("value", ["", "0-", "a", "0,,1", "0-99999", "100000", "999999999999", "0-3:2", " 0", "٣"])
def test_a_list_of_cpus_that_are_not_here_is_refused(machine: LocalMachine, value: str) -> None:
    with pytest.raises(RequestError, match="numbers within"):
        on_sda("cpus", machine).check(value)


def test_a_binding_that_did_not_take_is_caught(tmp_path: Path) -> None:
    # The process that is asked sees the drawn /proc: a binding to CPU 0 shows as one to 0-3.
    machine = Rooted(tmp_path, {"/proc/self/status": "Cpus_allowed_list:\t0-3"})
    with pytest.raises(KnobError, match="requested 0, but a process bound this way may use 0-3"):
        on_sda("cpus", machine).verify("0")


def test_nodes_are_bound_by_numactl_or_the_missing_program_is_named(machine: LocalMachine) -> None:
    numa = on_sda("numa", machine)
    reason = numa.available()
    if reason is None:
        numa.check("0")
        numa.verify("0")
    else:
        assert reason == "needs numactl (package numactl)"
    assert numa.launcher("0") == ("numactl", "--cpunodebind=0", "--membind=0", "--")


def test_a_node_stands_for_its_cpus(machine: LocalMachine) -> None:
    cpus = knob.knob("cpus", machine, target("loop0"))
    if Path("/sys/devices/system/node/node0").exists():
        assert "node:0" in str(cpus.allowed())
        cpus.check("node:0")
        cpus.verify("node:0")
    with pytest.raises(RequestError, match="numbers within"):
        cpus.check("node:999")
    with pytest.raises(RequestError, match="numbers within"):
        cpus.check("node:x")


def test_device_queues_are_a_cpu_of_each_queue_and_refused_for_a_target_without(tmp_path: Path) -> None:
    lists = {f"/sys/block/sda/mq/{queue}/cpu_list": f"{4 * queue}, {4 * queue + 1}" for queue in range(2)}
    machine = Rooted(tmp_path, {"/proc/self/status": "Cpus_allowed_list:\t0-7", **lists})
    cpus = on_sda("cpus", machine)
    cpus.check("device-queues")
    assert cpus.launcher("device-queues") == ("taskset", "-c", "0,4")
    assert "device-queues" in str(cpus.allowed())
    with pytest.raises(RequestError, match=r"numbers within 0-7, as in 0-3,8$"):
        knob.knob("cpus", machine, target()).check("device-queues")


IRQS = {
    "/sys/class/block/sda/device/msi_irqs/40": "",
    "/sys/class/block/sda/device/msi_irqs/41": "",
    "/proc/irq/40/smp_affinity_list": "0-3",
    "/proc/irq/41/smp_affinity_list": "0-3",
    "/proc/self/status": "Cpus_allowed_list:\t0-3",
}


def test_interrupts_are_moved_and_put_back(tmp_path: Path) -> None:
    machine = Rooted(tmp_path, IRQS)
    irq = on_sda("irq.affinity", machine)
    saved = irq.save(["1,2"])
    irq.check("1,2")
    irq.apply("1,2")
    irq.verify("1-2")
    assert machine.read("/proc/irq/41/smp_affinity_list").strip() == "1-2"
    knob.restore(machine, saved)
    assert machine.read("/proc/irq/40/smp_affinity_list").strip() == "0-3"


def test_interrupts_that_the_kernel_spreads_itself_are_said_to_be_managed(tmp_path: Path) -> None:
    def managed(path: str, text: str) -> str | None:
        machine.refuse(path, text, "Input/output error (EIO)")

    machine = Rooted(tmp_path, IRQS, managed)
    irq = on_sda("irq.affinity", machine)
    with pytest.raises(KnobError, match="managed") as error:
        irq.apply("1")
    assert "EIO" in str(error.value)


def test_a_disk_without_interrupts_says_so(machine: LocalMachine) -> None:
    reason = knob.knob("irq.affinity", machine, target("loop0")).available()
    assert reason == "loop0 has no interrupts of its own"
