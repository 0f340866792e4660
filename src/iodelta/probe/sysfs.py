"""Small reads that every probe is made of: kernel attributes, events, names, and stat(2) through a machine.

A sysfs name is the kernel's name with ``/`` written as ``!`` (``cciss!c0d0``).
"""

from __future__ import annotations

import stat
from collections.abc import Sequence

import msgspec

from iodelta.errors import MachineError
from iodelta.machine import Machine


class Stat(msgspec.Struct, frozen=True):
    """stat(1) of a path, links followed."""

    mode: int
    devno: str
    """Of the filesystem that holds it."""
    rdev: str
    """Of the device that it is, for a device node."""
    size: int
    allocated: int
    """Bytes that it takes on the medium: less than ``size`` where it is sparse."""
    inode: int
    links: int

    @property
    def is_block(self) -> bool:
        """Return whether it is a block device node."""
        return stat.S_ISBLK(self.mode)


def status(machine: Machine, path: str) -> Stat | None:
    """stat(2) of a path, links followed; None when there is nothing. Raises MachineError."""
    return statuses(machine, [path]).get(path)


def statuses(machine: Machine, paths: Sequence[str]) -> dict[str, Stat]:
    """stat(2) of many paths at the cost of one command; those that are not there are left out. Raises MachineError."""
    if not paths:
        return {}
    done = machine.run(
        ["stat", "-L", "-c", "%f %d %t %T %s %b %i %h %n", "--", *paths],
        env={"LC_ALL": "C"},
    )
    stats = {}
    for line in done.text.splitlines():
        words = line.split(" ", 8)
        if len(words) == 9 and words[8] in paths:
            mode, device, major, minor, size, blocks, inode, links = words[:8]
            try:
                stats[words[8]] = Stat(
                    mode=int(mode, 16),
                    devno=_devno(int(device)),
                    rdev=f"{int(major, 16)}:{int(minor, 16)}",
                    size=int(size),
                    allocated=512 * int(blocks),
                    inode=int(inode),
                    links=int(links),
                )
            except ValueError as error:
                raise no_stat(machine, line, words[8]) from error
    return stats


def no_stat(machine: Machine, printed: str, path: str) -> MachineError:
    """Return the error to raise when stat does not print numbers for ``path``."""
    remedy = f"is the first stat on the PATH that of coreutils, on {machine.name}?"
    return MachineError(
        f"stat says {printed!r}, which iodelta cannot parse", place=path, remedy=remedy
    )


def _devno(number: int) -> str:
    """Linux's dev_t as stat(1) prints it, in decimal (makedev(3) of glibc)."""
    major = (number >> 8) & 0xFFF | (number >> 32) & ~0xFFF
    minor = number & 0xFF | (number >> 12) & ~0xFF & 0xFFFFFFFF
    return f"{major}:{minor}"


def attribute(machine: Machine, path: str) -> str | None:
    """Text of a small kernel file without its newline; None where it is absent or cannot be read."""
    try:
        return machine.read(path).strip()
    except MachineError:
        return None


def attribute_text(machine: Machine, path: str) -> str:
    """Return the same, empty where it is absent or cannot be read."""
    return attribute(machine, path) or ""


def event(machine: Machine, directory: str) -> dict[str, str]:
    """Return the ``uevent`` of a sysfs directory: DEVNAME, DEVTYPE, PARTN...; empty where there is none."""
    lines = attribute_text(machine, f"{directory}/uevent").splitlines()
    return dict(line.partition("=")[::2] for line in lines)


def entries(machine: Machine, pattern: str) -> tuple[str, ...]:
    """Kernel names of the sysfs entries that match."""
    return tuple(kernel_name(path.rsplit("/", 1)[1]) for path in machine.glob(pattern))


def sysfs_name(name: str) -> str:
    """Return the sysfs entry of a kernel name."""
    return name.replace("/", "!")


def kernel_name(entry: str) -> str:
    """Return the kernel name of a sysfs entry."""
    return entry.replace("!", "/")


def boot_id(machine: Machine) -> str:
    """Random id of the present boot."""
    return attribute_text(machine, "/proc/sys/kernel/random/boot_id")


def is_root(machine: Machine) -> bool:
    """Return whether commands on the machine run as root."""
    return machine.run(["id", "-u"]).text.strip() == "0"
