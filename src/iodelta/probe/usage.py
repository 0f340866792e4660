"""Reasons against writing to a device or file, from sysfs and procfs: opens and reads nothing of it."""

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
    """No consent lifts it: what is in use at this very moment, or can hold no test data."""


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
    files = {
        path.split("/")[3]: attribute(machine, path)
        for path in machine.glob("/sys/block/loop*/loop/backing_file")
    }
    backing = {name: path for name, path in files.items() if path}
    # btrfs shows one member, bcachefs all: these have anonymous device numbers, only the source names devices.
    sources = {
        mount: _devices_in(mount.source)
        for mount in table
        if mount.devno.startswith("0:")
    }
    below = {name: layers(path, table) for name, path in backing.items()}
    layered = chain.from_iterable(below.values())
    paths = {
        *swap_paths,
        *backing.values(),
        *layered,
        *chain.from_iterable(sources.values()),
    }
    known = statuses(machine, sorted(paths))
    mounted: dict[str, tuple[str, ...]] = {}
    for mount in table:
        numbers = {
            mount.devno,
            *(known[part].rdev for part in sources.get(mount, ()) if part in known),
        }
        for number in numbers:
            mounted[number] = (*mounted.get(number, ()), mount.point)
    return Uses(
        mounts=table,
        mounted=mounted,
        swapped={path: key(known[path]) for path in swap_paths if path in known},
        loops=_loops(
            machine,
            {name: (path, *below[name]) for name, path in backing.items()},
            known,
        ),
    )


def _devices_in(source: str) -> list[str]:
    return [part for part in source.split(":") if part.startswith("/dev/")]


def _loops(
    machine: Machine, paths: Mapping[str, tuple[str, ...]], known: Mapping[str, Stat]
) -> dict[str, tuple[str, ...]]:
    """What each loop device writes to: as the driver says of a file, which may have lost its path, and by its paths."""
    kept = loop_files(machine) if paths else {}
    names = {}
    for name, (path, *below) in paths.items():
        seen = known.get(path)
        driver = [kept[name]] if name in kept and not (seen and seen.is_block) else []
        shown = _keys(seen, below, known) if seen else []
        names[name] = tuple(dict.fromkeys((*driver, *shown)))
    return names


_LOW = (1 << 32) - 1
"""The bits of an inode's number that overlayfs leaves as they are."""


def _keys(stat: Stat, below: Sequence[str], known: Mapping[str, Stat]) -> list[str]:
    """Of a file, and of those in layers ``below`` overlayfs that it may be.

    Where these lie in another mount namespace only the inode's number is known: ``* inode``.
    """
    lower = [key(known[path]) for path in below if path in known]
    return [key(stat), *(lower or [f"* {stat.inode & _LOW}"] * bool(below))]


def _one(first: Iterable[str], second: Iterable[str]) -> bool:
    """Whether something may be in both."""
    here, there = {*first}, {*second}

    def numbers(keys: set[str]) -> set[str]:
        return {
            f"* {int(number) & _LOW}"
            for one in keys
            if (number := one.partition(" ")[2])
        }

    return bool(here & there or here & numbers(there) or there & numbers(here))


def key(stat: Stat) -> str:
    """What tells one device or file from another within a boot: ``major:minor`` or ``major:minor inode``."""
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
    for name in (this.disk, *_other_paths(machine, this.disk)):
        disk = device(machine, name)
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
    """What uses the regular file ``path`` now, under this name or as a file in a layer of an overlayfs."""
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
        # ext4, xfs, f2fs and others list what they have mounted by device, in any mount namespace.
        for entry in machine.glob(f"/sys/fs/*/{sysfs_name(this.name)}"):
            yield Reason(
                node,
                f"is mounted ({entry.split('/')[3]}) in another mount namespace",
                "unmount it first",
                True,
            )
    for path, number in uses.swapped.items():
        if number == this.devno:
            yield Reason(node, "is swapped on", f"`swapoff {path}` first", True)
    for holder in this.holders:
        what = _holder_kind(machine, holder)
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
    """A loop device writes to what is behind it: other users of that are users of this one."""
    backing = uses.loops.get(this.disk)
    if not backing or loop_backing(machine, this.disk) is None:
        return
    for other, theirs in uses.loops.items():
        if other != this.disk and _one(theirs, backing):
            remedy = f"`losetup -d /dev/{other}` first"
            yield Reason(
                f"/dev/{this.disk}",
                f"has the same backing file as /dev/{other}",
                remedy,
                True,
            )
    if _one(backing, uses.swapped.values()):
        yield Reason(
            f"/dev/{this.disk}",
            "is backed by an active swap file",
            "`swapoff` it first",
            True,
        )
    lower = next((name_of(machine, file) for file in backing if " " not in file), None)
    if lower:
        below = Uses(
            uses.mounts,
            uses.mounted,
            uses.swapped,
            {k: v for k, v in uses.loops.items() if k != this.disk},
        )
        yield from device_reasons(machine, lower, below)


def _holder_kind(machine: Machine, holder: str) -> str:
    base = f"/sys/class/block/{sysfs_name(holder)}"
    uuid = attribute(machine, f"{base}/dm/uuid")
    if uuid is not None:
        return {"LVM": "LVM", "CRYPT": "LUKS", "mpath": "multipath"}.get(
            uuid.split("-")[0], "device mapper"
        )
    if attribute(machine, f"{base}/md/level") is not None:
        return "md"
    return "bcache" if holder.startswith("bcache") else "the device"
