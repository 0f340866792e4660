"""Whether qemu emulates this machine's CPU, and with it time, or its CPU frequencies."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute
from iodelta.trial import Finding
from iodelta.vm.boot import EMULATED


def emulation_findings(machine: Machine) -> Iterator[Finding]:
    """Yield what qemu only emulates: the CPU (our model and ``max`` say so in ``/proc/cpuinfo``), and the cpufreq
    clocks.
    """
    if EMULATED in (attribute(machine, "/proc/cpuinfo") or ""):
        yield Finding(
            "vm.emulated",
            "warning",
            machine.name,
            "time is emulated here: qemu runs this machine's CPU as a program (TCG), so results show "
            "whether something works and how a throttled disk behaves, but nothing about "
            "the speed of a kernel or of hardware",
            'measure where KVM works, or count instructions: clock = "instructions"',
        )
    vendor = attribute(machine, "/sys/class/dmi/id/sys_vendor") or ""
    if vendor.strip() == "QEMU" and machine.glob(
        "/sys/devices/system/cpu/cpufreq/policy*"
    ):
        yield Finding(
            "vm.clocks",
            "warning",
            machine.name,
            "the clocks here are only entries of a table given to qemu: a governor is set, read back "
            "and restored as on hardware, but does not change the speed of a CPU, "
            "so a difference between governors is due to chance",
            "compare governors on hardware",
        )
