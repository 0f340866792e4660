"""What scenarios need of a machine: each asked once, each with the reason and the remedy when it is missing."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.errors import MachineError
from iodelta.machine import Machine
from iodelta.parts.scenarios.model import Need
from iodelta.parts.scenarios.stage import guest_disks
from iodelta.probe.sysfs import attribute, is_root

GUEST = "a machine whose kernel has it"


def root(machine: Machine) -> Iterator[Need]:
    """Yield the right to make devices."""
    if not is_root(machine):
        yield Need(
            "root",
            "loop devices, mounts and schedulers belong to root",
            "run it as root",
        )


def programs(machine: Machine, *wanted: tuple[str, str]) -> Iterator[Need]:
    """Programs, each with the package that has it."""
    for program, package in wanted:
        try:
            machine.run([program, "--version"], timeout=30)
        except MachineError:
            yield Need(
                program,
                f"{program} is not on PATH",
                f"install the package {package}",
            )


def loops(machine: Machine) -> Iterator[Need]:
    """Loop devices, and what makes them."""
    yield from root(machine)
    yield from programs(machine, ("losetup", "mount"))
    if not machine.glob("/dev/loop-control"):
        yield Need(
            "loop",
            "the kernel has no loop devices (CONFIG_BLK_DEV_LOOP)",
            "modprobe loop, or " + GUEST,
        )


def partitions(machine: Machine) -> Iterator[Need]:
    """Partitions on loop devices, or on a guest's disks, with a filesystem."""
    yield from (root if guest_disks(machine) else loops)(machine)
    yield from programs(machine, ("addpart", "util-linux"), ("mkfs.ext4", "e2fsprogs"))
    if "ext4" not in (attribute(machine, "/proc/filesystems") or "").split():
        yield Need(
            "ext4",
            "the kernel does not offer ext4 (/proc/filesystems)",
            "modprobe ext4, or " + GUEST,
        )


def md(machine: Machine) -> Iterator[Need]:
    """Arrays of the md driver at RAID level 10."""
    yield from programs(machine, ("mdadm", "mdadm"))
    personalities = attribute(machine, "/proc/mdstat")
    if personalities is None:
        yield Need(
            "md",
            "the kernel has no md (CONFIG_MD): there is no /proc/mdstat",
            "modprobe raid10, or " + GUEST,
        )
    elif "[raid10]" not in personalities:
        yield Need(
            "md raid10",
            "/proc/mdstat does not list raid10 (CONFIG_MD_RAID10)",
            "modprobe raid10, or " + GUEST,
        )


def governors(machine: Machine) -> Iterator[Need]:
    """Two CPU governors at least, one of them ``performance``."""
    files = machine.glob(
        "/sys/devices/system/cpu/cpufreq/policy*/scaling_available_governors"
    )
    offered = (attribute(machine, files[0]) or "").split() if files else []
    if not files:
        yield Need(
            "cpufreq",
            "no CPU's clock can be set here: there is no /sys/devices/system/cpu/cpufreq/policy0",
            "real hardware, or a guest with an ACPI performance table",
        )
    elif len(offered) < 2 or "performance" not in offered:
        yield Need(
            "governors",
            f"the CPUs offer only {' '.join(offered)}",
            "a kernel with more governors",
        )
