"""Reasons against writing to a device or file, from sysfs and procfs, without opening or reading it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from iodelta.machine import Machine
from iodelta.probe.devices import (
    Device,
    btrfs_of,
    device,
    loop_backing,
    loop_files,
    name_of,
)
from iodelta.probe.mounts import Mount, layers, mounts, swaps
from iodelta.probe.sysfs import Stat, attribute, kernel_name, statuses, sysfs_name


class Reason(msgspec.Struct, frozen=True):
    """One reason against writing."""

    place: str
    """``/dev/NAME`` or the path of a file."""
    what: str
    remedy: str
    absolute: bool
    """Whether no consent lifts it: it is in use now, or cannot hold test data."""


class Uses(msgspec.Struct, frozen=True):
    """Everything that claims block devices or files now, read once."""

    mounts: tuple[Mount, ...]
    mounted: dict[str, tuple[str, ...]]
    """``major:minor`` -> mount points."""
    swapped: dict[str, str]
    """Path -> ``major:minor`` of a swap device, or ``major:minor inode`` of a swap file."""
    loops: dict[str, tuple[str, ...]]
    """Name of an attached loop device -> the same of its backing device or file, and of that in layers below it."""


def current_uses(machine: Machine) -> Uses:
    """Read what is mounted, swapped on and attached to loop devices. Raises MachineError."""
    table, swap_paths = mounts(machine), swaps(machine)
    # A loop device's file, and what lies below it where overlayfs shows it.
    backing: dict[str, tuple[str, ...]] = {}
    for attribute_path in machine.glob("/sys/block/loop*/loop/backing_file"):
        path = attribute(machine, attribute_path)
        if path:
            backing[attribute_path.split("/")[3]] = (path, *layers(path, table))
    paths = {*swap_paths, *chain.from_iterable(backing.values())}
    for mount in table:
        paths.update(_sources(mount))
    known = statuses(machine, sorted(paths))
    # The mount points of each device, by `major:minor`
    mounted: dict[str, tuple[str, ...]] = {}
    for mount in table:
        devices = [known[path].rdev for path in _sources(mount) if path in known]
        for number in {mount.devno, *devices}:
            mounted[number] = (*mounted.get(number, ()), mount.point)
    return Uses(
        mounts=table,
        mounted=mounted,
        swapped={path: key(known[path]) for path in swap_paths if path in known},
        loops=_loops(machine, backing, known),
    )


def _sources(mount: Mount) -> list[str]:
    """Return the devices that a mount without a device number of its own names: btrfs shows one member, bcachefs all."""
    if not mount.devno.startswith("0:"):
        return []
    return [part for part in mount.source.split(":") if part.startswith("/dev/")]


def _loops(
    machine: Machine, paths: Mapping[str, tuple[str, ...]], known: Mapping[str, Stat]
) -> dict[str, tuple[str, ...]]:
    """Return what each loop device writes to: by the driver, since a file may have lost its path, and by its paths."""
    by_driver = loop_files(machine) if paths else {}
    names: dict[str, tuple[str, ...]] = {}
    for name, (path, *below) in paths.items():
        stat = known.get(path)
        keys: dict[str, None] = {}
        # Of a block device the driver gives the node's inode, not the device.
        is_block = stat is not None and stat.is_block
        if name in by_driver and not is_block:
            keys[by_driver[name]] = None
        if stat:
            keys.update(dict.fromkeys(_keys(stat, below, known)))
        names[name] = tuple(keys)
    return names


_LOW = (1 << 32) - 1
"""The bits of an inode number that overlayfs does not change."""


def _keys(stat: Stat, below: Sequence[str], known: Mapping[str, Stat]) -> list[str]:
    """Of a file, and of those in layers ``below`` overlayfs that it may be.

    Where these lie in another mount namespace only the inode's number is known: ``* inode``.
    """
    keys = [key(stat)]
    if not below:
        return keys
    lower = [key(known[path]) for path in below if path in known]
    return keys + (lower or [f"* {stat.inode & _LOW}"])


def _one(first: Iterable[str], second: Iterable[str]) -> bool:
    """Return whether both may have something in common."""
    here, there = {*first}, {*second}

    def numbers(keys: set[str]) -> set[str]:
        return {
            f"* {int(number) & _LOW}"
            for one in keys
            if (number := one.partition(" ")[2])
        }

    return bool(here & there or here & numbers(there) or there & numbers(here))


def key(stat: Stat) -> str:
    """Return what identifies a device or file within a boot: ``major:minor`` or ``major:minor inode``."""
    return stat.rdev if stat.is_block else f"{stat.devno} {stat.inode}"


def device_reasons(machine: Machine, name: str, uses: Uses) -> tuple[Reason, ...]:
    """Reasons against writing to the block device ``name``: its own users and those of all devices that share its
    bytes.

    That is its disk, partitions that overlap it, what is behind a loop device, and other paths to the same disk.
    """
    this = device(machine, name)
    reasons = list(
        chain.from_iterable(
            _claims(machine, one, uses) for one in _sharing(machine, this)
        )
    )
    if this.partitions:
        listed = ", ".join(this.partitions)
        reasons.append(
            Reason(
                f"/dev/{name}",
                f"has partitions ({listed})",
                "name a partition, or another disk",
                False,
            )
        )
    reasons += _loop_claims(machine, this, uses)
    return tuple(dict.fromkeys(reasons))


def _sharing(machine: Machine, this: Device) -> Iterator[Device]:
    """``this`` and every other block device that has some of the same sectors of the same disk."""
    yield this
    for disk_name in (this.disk, *_other_paths(machine, this.disk)):
        disk = device(machine, disk_name)
        for other in (disk, *(device(machine, part) for part in disk.partitions)):
            ends = (
                this.start + this.size_bytes // 512,
                other.start + other.size_bytes // 512,
            )
            if other.name != this.name and max(this.start, other.start) < min(ends):
                yield other


def _other_paths(machine: Machine, disk: str) -> Iterator[str]:
    """Other disks with the same world-wide name: one disk reached twice, without multipath above it."""
    known = {
        path.split("/")[3]: attribute(machine, path)
        for path in (
            *machine.glob("/sys/block/*/wwid"),
            *machine.glob("/sys/block/*/device/wwid"),
        )
    }
    own = known.get(sysfs_name(disk))
    for entry, wwid in known.items():
        # The paths below a native NVMe multipath disk are listed, but are not separate devices.
        if (
            own
            and wwid == own
            and kernel_name(entry) != disk
            and attribute(machine, f"/sys/block/{entry}/dev")
        ):
            yield kernel_name(entry)


def file_reasons(
    machine: Machine, path: str, stat: Stat, uses: Uses
) -> tuple[Reason, ...]:
    """Return what uses the regular file ``path`` now, under this name or as a file in a layer of an overlayfs."""
    reasons = []
    below = layers(path, uses.mounts)
    own = _keys(stat, below, statuses(machine, below))
    if _one(own, uses.swapped.values()):
        reasons.append(Reason(path, "is swapped on", f"`swapoff {path}` first", True))
    for loop, backing in uses.loops.items():
        if _one(own, backing):
            remedy = f"`losetup -d /dev/{loop}` first, or measure /dev/{loop}"
            reasons.append(Reason(path, f"is attached as /dev/{loop}", remedy, True))
    return tuple(reasons)


def _claims(machine: Machine, this: Device, uses: Uses) -> Iterator[Reason]:
    node = f"/dev/{this.name}"
    points = uses.mounted.get(this.devno, ())
    if points:
        yield Reason(
            node,
            f"is mounted on {', '.join(points)}",
            f"`umount {points[0]}` first",
            True,
        )
    fsid = btrfs_of(machine, this.name)
    if fsid and not points:
        yield Reason(
            node,
            f"is a member of the mounted btrfs {fsid}",
            "unmount that filesystem first",
            True,
        )
    if not points and not fsid:
        # Ext4, xfs, f2fs and others list what they have mounted by device, in any mount namespace
        for entry in machine.glob(f"/sys/fs/*/{sysfs_name(this.name)}"):
            fstype = entry.split("/")[3]
            yield Reason(
                f"/dev/{this.name}",
                f"is mounted ({fstype}) in another mount namespace",
                "unmount it first",
                True,
            )
    for path, number in uses.swapped.items():
        if number == this.devno:
            yield Reason(node, "is swapped on", f"`swapoff {path}` first", True)
    for holder in this.holders:
        base = f"/sys/class/block/{sysfs_name(holder)}"
        uuid = attribute(machine, f"{base}/dm/uuid")
        if uuid is not None:
            what = {"LVM": "LVM", "CRYPT": "LUKS", "mpath": "multipath"}.get(
                uuid.split("-")[0], "device mapper"
            )
        elif attribute(machine, f"{base}/md/level") is not None:
            what = "md"
        else:
            what = "bcache" if holder.startswith("bcache") else "the device"
        yield Reason(
            node,
            f"is held by {what} /dev/{holder}",
            f"stop {holder} first, or measure /dev/{holder}",
            True,
        )
    for loop, backing in uses.loops.items():
        if this.devno in backing:
            yield Reason(
                node,
                f"is attached as /dev/{loop}",
                f"`losetup -d /dev/{loop}` first",
                True,
            )


def _loop_claims(machine: Machine, this: Device, uses: Uses) -> Iterator[Reason]:
    """Yield a loop device writes to its backing file, so other users of that are users of this device."""
    backing = uses.loops.get(this.disk)
    if not backing or loop_backing(machine, this.disk) is None:
        return
    for other, theirs in uses.loops.items():
        if other != this.disk and _one(theirs, backing):
            yield Reason(
                f"/dev/{this.disk}",
                f"has the same backing file as /dev/{other}",
                f"`losetup -d /dev/{other}` first",
                True,
            )
    if _one(backing, uses.swapped.values()):
        yield Reason(
            f"/dev/{this.disk}",
            "is backed by an active swap file",
            "`swapoff` it first",
            True,
        )
    # A key with a blank is a file's; one without is the number of a block device.
    numbers = [entry for entry in backing if " " not in entry]
    lower = name_of(machine, numbers[0]) if numbers else None
    if lower:
        other_loops = dict(uses.loops)
        del other_loops[this.disk]
        below = msgspec.structs.replace(uses, loops=other_loops)
        yield from device_reasons(machine, lower, below)
