"""Which CPUs handle a disk's interrupts. Source: Documentation/core-api/irq/irq-affinity.rst."""

from __future__ import annotations

from collections.abc import Mapping

from iodelta.errors import KnobError
from iodelta.knob.affinity import Cpus
from iodelta.knob.base import EMPTY
from iodelta.knob.files import FileKnob
from iodelta.knob.shell import NoScript
from iodelta.machine import Machine
from iodelta.probe.devices import interrupts
from iodelta.probe.queues import numbers, spelled
from iodelta.probe.topology import Target


class IrqAffinity(FileKnob):
    """``irq.affinity``: the CPUs that may handle the interrupts of the target's controllers, written like ``cpus``.

    Nobody can move managed interrupts, which the kernel itself spreads over the CPUs (most NVMe and virtio queues).
    """

    names = ("irq.affinity",)
    harmless = True

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._cpus = Cpus(machine, target, "cpus")

    def paths(self) -> tuple[str, ...]:
        shared: dict[str, None] = {}
        # Disks on one controller share its interrupts.
        for disk in self.target.disks:
            shared.update(dict.fromkeys(interrupts(self.machine, disk)))
        return tuple(f"/proc/irq/{number}/smp_affinity_list" for number in shared)

    @classmethod
    def script_files(cls, name: str) -> NoScript:
        return NoScript("which interrupts are the target's depends on its driver")

    def absent(self) -> str:
        disks = ", ".join(self.target.disks)
        if disks:
            return f"{disks} has no interrupts of its own"
        return f"needs a disk: {self.target.reason}"

    def allowed(self) -> str:
        return self._cpus.allowed()

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        self._cpus.check(value)

    def apply(self, value: str) -> None:
        try:
            super().apply(spelled(self._cpus.named(value)))
        except KnobError as error:
            raise KnobError(
                error.what,
                place=error.place,
                remedy="the kernel spreads these interrupts itself (managed); bind the load instead: cpus",
            ) from error

    def verify(self, value: str) -> None:
        super().verify(spelled(self._cpus.named(value)))

    def same(self, path: str, wanted: str, present: str) -> bool:
        return numbers(wanted) == numbers(present)
