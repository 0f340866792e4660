"""Is the time of this machine a machine's own?"""

from __future__ import annotations

from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute
from iodelta.trial import Finding


def emulation_findings(machine: Machine) -> tuple[Finding, ...]:
    """A finding when qemu emulates the CPU (its TCG calls itself so in ``/proc/cpuinfo``)."""
    if "QEMU TCG CPU" not in (attribute(machine, "/proc/cpuinfo") or ""):
        return ()
    return (
        Finding(
            "vm.emulated",
            "warning",
            machine.name,
            "time is emulated here: qemu runs this machine's CPU as a program (TCG), so what is measured says whether "
            "something works and how a throttled disk behaves, and nothing about the speed of a kernel or of hardware",
            'measure where KVM works, or count instructions: clock = "instructions"',
        ),
    )
