"""Mounts and active swap, as the kernel lists them (proc(5): mountinfo, swaps)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

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
    """Return the mount of a resolved path: the deepest mount point above it, the latest where several stack."""
    deepest: Mount | None = None
    for mount in table:
        prefix = mount.point.rstrip("/") + "/"
        if real_path != mount.point and not real_path.startswith(prefix):
            continue
        # The later of two mounts on one point hides the earlier one.
        if deepest is None or len(mount.point) >= len(deepest.point):
            deepest = mount
    return deepest


def layers(real_path: str, table: Iterable[Mount], depth: int = 4) -> tuple[str, ...]:
    """Paths in the layers below an overlayfs where the file ``real_path`` may lie, the upper layer first.

    A write to the overlay goes to the file in the upper layer. Layers may be overlayfs themselves.
    """
    known = tuple(table)
    mount = mount_of(real_path, known)
    if mount is None or mount.fstype != "overlay" or not depth:
        return ()
    inside = mount.root.rstrip("/") + real_path[len(mount.point.rstrip("/")) :]
    directories = [layer.rstrip("/") + inside for layer in _layer_directories(mount)]
    deeper = chain.from_iterable(layers(path, known, depth - 1) for path in directories)
    return tuple(dict.fromkeys((*directories, *deeper)))


def _layer_directories(mount: Mount) -> Iterable[str]:
    """In the order in which overlayfs looks; since Linux 6.8 each lower one is an option of its own."""
    upper: list[str] = []
    lower: list[str] = []
    for option in mount.options:
        name, _, value = _unescape(option).partition("=")
        if name == "upperdir":
            upper.append(value)
        elif name.rstrip("+") in ("lowerdir", "datadir"):
            # Colons separate layers, unless a backslash escapes them; two before a data-only layer.
            parts = re.split(r"(?<!\\):+", value)
            lower += [part.replace("\\:", ":") for part in parts if part]
    return upper + lower


def swaps(machine: Machine) -> tuple[str, ...]:
    """Paths of the devices and files that are swapped on. Raises MachineError."""
    lines = machine.read("/proc/swaps").splitlines()[1:]
    # An unlinked swap file is listed with a suffix that does not belong to its name.
    return tuple(
        _unescape(line.split()[0]).removesuffix(" (deleted)")
        for line in lines
        if line.strip()
    )


def _parse(lines: Iterable[str]) -> Iterable[Mount]:
    for line in lines:
        head, separator, tail = line.partition(" - ")
        fields, after = head.split(" "), tail.split(" ")
        if not separator or len(fields) < 6 or len(after) < 2:
            continue
        options = (
            *fields[5].split(","),
            *(after[2].split(",") if len(after) > 2 else ()),
        )
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
