"""Block devices by kernel name: the devices above and below each, read from sysfs without opening a device.

Sources: Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-fs-btrfs.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from iodelta.errors import MachineError
from iodelta.machine import Machine
from iodelta.probe.mounts import Mount, mount_of, mounts
from iodelta.probe.sysfs import (
    attribute,
    entries,
    event,
    kernel_name,
    status,
    sysfs_name,
)


class Device(msgspec.Struct, frozen=True):
    """One block device and its direct neighbours, by kernel name."""

    name: str
    devno: str
    disk: str
    partition: int
    start: int
    """First 512-byte sector on its disk; 0 for a whole disk."""
    size_bytes: int
    partitions: tuple[str, ...]
    holders: tuple[str, ...]
    slaves: tuple[str, ...]


def device(machine: Machine, name: str) -> Device:
    """Return the block device of that kernel name. Raises MachineError when there is none."""
    base = f"/sys/class/block/{sysfs_name(name)}"
    number = attribute(machine, f"{base}/partition")
    disk = event(machine, f"{base}/..").get("DEVNAME", name) if number else name
    return Device(
        name=name,
        devno=machine.read(f"{base}/dev").strip(),
        disk=disk,
        partition=int(number or 0),
        start=int(attribute(machine, f"{base}/start") or 0),
        size_bytes=512 * int(machine.read(f"{base}/size")),
        partitions=tuple(
            kernel_name(path.split("/")[-2])
            for path in machine.glob(f"{base}/*/partition")
        ),
        holders=entries(machine, f"{base}/holders/*"),
        slaves=entries(machine, f"{base}/slaves/*"),
    )


def name_of(machine: Machine, devno: str) -> str | None:
    """Kernel name of the block device ``major:minor``; None for an anonymous number."""
    return event(machine, f"/sys/dev/block/{devno}").get("DEVNAME")


def below(machine: Machine, name: str) -> tuple[str, ...]:
    """Return every block device that I/O to ``name`` reaches, nearest first, without itself.

    Followed: md, dm and bcache (``slaves``), a partition's disk, the device under a loop device's backing file, all
    members of a btrfs that holds such a file.
    """
    names: dict[str, None] = {}
    waiting = [name]
    while waiting:
        for lower in directly_below(machine, waiting.pop(0)):
            if lower not in names and lower != name:
                names[lower] = None
                waiting.append(lower)
    return tuple(names)


def with_below(machine: Machine, names: Iterable[str]) -> tuple[str, ...]:
    """``names``, each followed by every block device below it, without repetition."""
    devices: dict[str, None] = {}
    for name in names:
        devices.update(dict.fromkeys((name, *below(machine, name))))
    return tuple(devices)


def members(machine: Machine, name: str) -> tuple[str, ...]:
    """Return every physical device below ``name``: whole disks with nothing below them; ``name`` itself when it is one."""
    return tuple(
        device_name
        for device_name in (name, *below(machine, name))
        if not directly_below(machine, device_name)
    )


def btrfs_of(machine: Machine, name: str) -> str | None:
    """Id of the mounted btrfs that ``name`` is a member of, as in ``/sys/fs/btrfs/ID``; None when of none."""
    paths = machine.glob(f"/sys/fs/btrfs/*/devices/{sysfs_name(name)}")
    if not paths:
        return None
    return paths[0].split("/")[4]


def under(
    machine: Machine, devno: str, mount: Mount | None
) -> tuple[tuple[str, ...], str]:
    """Block devices under the filesystem with st_dev ``devno``, and why there is not exactly one."""
    name = name_of(machine, devno)
    if name:
        return (name,), ""
    fstype = mount.fstype if mount else "an unknown filesystem"
    fsid = btrfs_id(machine, mount) if mount else None
    if fsid:
        names = entries(machine, f"/sys/fs/btrfs/{fsid}/devices/*")
        return names, "" if len(
            names
        ) == 1 else f"btrfs over {len(names)} devices: {', '.join(names)}"
    return (), f"{fstype} has no block device of its own (device number {devno})"


def btrfs_id(machine: Machine, mount: Mount) -> str | None:
    """Id of a mounted btrfs; None for another filesystem. Of its members the kernel shows one as the source."""
    if mount.fstype != "btrfs":
        return None
    source = status(machine, mount.source)
    name = name_of(machine, source.rdev) if source and source.is_block else None
    if not name:
        return None
    return btrfs_of(machine, name)


def directly_below(machine: Machine, name: str) -> tuple[str, ...]:
    """Return the next block devices that I/O to ``name`` reaches; empty for a physical device."""
    this = device(machine, name)
    if this.partition:
        return (this.disk,)
    if this.slaves:
        return this.slaves
    backing = loop_backing(machine, name)
    stat = status(machine, backing) if backing else None
    if backing is None or stat is None:
        return ()
    if stat.is_block:
        lower = name_of(machine, stat.rdev)
        if not lower:
            return ()
        return (lower,)
    return under(machine, stat.devno, mount_of(backing, mounts(machine)))[0]


def loop_backing(machine: Machine, name: str) -> str | None:
    """Path of the backing file of a loop device; None for any other device."""
    return attribute(machine, f"/sys/class/block/{sysfs_name(name)}/loop/backing_file")


def loop_files(machine: Machine) -> dict[str, str]:
    """Name of each loop device over a file -> ``major:minor inode`` of that file, as the driver keeps it.

    The path in sysfs may name another file, once the file was deleted or where it lies in another mount namespace.
    Empty where losetup(8) is not util-linux's, or may not open the devices.
    """
    words = [
        "losetup",
        "--list",
        "--raw",
        "--noheadings",
        "--output",
        "NAME,BACK-MAJ:MIN,BACK-INO",
    ]
    try:
        lines = machine.run(words, timeout=60).text.splitlines()
    except MachineError:
        return {}
    # losetup pads numbers with blanks, and --raw escapes the blanks.
    rows = [line.replace(r"\x20", " ").split() for line in lines]
    return {
        row[0].removeprefix("/dev/"): f"{row[1]} {row[2]}"
        for row in rows
        if len(row) == 3
    }


def interrupts(machine: Machine, name: str) -> tuple[str, ...]:
    """Numbers of the interrupts of the controller that serves a disk: the nearest device above it that has any."""
    above = f"/sys/class/block/{sysfs_name(name)}/device"
    for _ in range(8):
        numbers = tuple(sorted(entries(machine, f"{above}/msi_irqs/*"), key=int))
        if numbers:
            return numbers
        single = next(
            (attribute(machine, path) for path in machine.glob(f"{above}/irq")), None
        )
        if single and single != "0":
            return (single,)
        above += "/.."
    return ()
