"""What is mounted and what is swapped on, as the kernel lists it (proc(5): mountinfo, swaps)."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from iodelta.machine import Machine


class Mount(msgspec.Struct, frozen=True):
    """One line of mountinfo. ``devno`` is ``major:minor``; anonymous (``0:40``) for btrfs, overlayfs, tmpfs, NFS."""

    devno: str
    root: str
    point: str
    fstype: str
    source: str
    options: tuple[str, ...]
    """Per-mount and per-superblock options together, as the kernel prints them."""


def mounts(machine: Machine) -> tuple[Mount, ...]:
    """Everything mounted in our mount namespace, in mount order. Raises MachineError."""
    return tuple(_parse(machine.read("/proc/self/mountinfo").splitlines()))


def mount_of(real_path: str, table: Iterable[Mount]) -> Mount | None:
    """The mount that a resolved path lies on: the deepest mount point above it, the latest where several stack."""
    found: Mount | None = None
    for mount in table:
        prefix = mount.point.rstrip("/") + "/"
        inside = real_path == mount.point or real_path.startswith(prefix)
        if inside and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def swaps(machine: Machine) -> tuple[str, ...]:
    """Paths of the devices and files that are swapped on. Raises MachineError."""
    lines = machine.read("/proc/swaps").splitlines()[1:]
    # An unlinked swap file is listed with a suffix that is no part of its name.
    return tuple(_unescape(line.split()[0]).removesuffix(" (deleted)") for line in lines if line.strip())


def _parse(lines: Iterable[str]) -> Iterable[Mount]:
    for line in lines:
        head, separator, tail = line.partition(" - ")
        fields, after = head.split(" "), tail.split(" ")
        if not separator or len(fields) < 6 or len(after) < 2:
            continue
        options = (*fields[5].split(","), *(after[2].split(",") if len(after) > 2 else ()))
        yield Mount(
            devno=fields[2],
            root=_unescape(fields[3]),
            point=_unescape(fields[4]),
            fstype=after[0],
            source=_unescape(after[1]),
            options=tuple(dict.fromkeys(options)),
        )


def _unescape(text: str) -> str:
    """Space, tab, newline and backslash are printed as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
