"""The block devices below a target: the entry to ``devices`` and ``identity``."""

from __future__ import annotations

import stat
from itertools import chain
from typing import Literal

import msgspec
from msgspec.structs import replace

from iodelta.errors import RequestError
from iodelta.machine import Machine, literal
from iodelta.probe.devices import (
    Device,
    below,
    btrfs_id,
    btrfs_of,
    device,
    members,
    name_of,
    under,
)
from iodelta.probe.identity import Identity, identify, same_device
from iodelta.probe.mounts import mount_of, mounts
from iodelta.probe.sysfs import Stat, attribute, boot_id, status

__all__ = [
    "Device",
    "Identity",
    "Kind",
    "Stat",
    "Target",
    "attribute",
    "below",
    "btrfs_of",
    "device",
    "members",
    "name_of",
    "resolve",
    "resolve_tree",
    "same_device",
    "status",
]

Kind = Literal["block", "file", "directory"]


class Target(msgspec.Struct, frozen=True):
    """What a workload runs on, as it was when it was looked up."""

    path: str
    """As the user wrote it."""
    kind: Kind
    real_path: str
    """The path with all links resolved."""
    device: str | None
    """Kernel name of the block device, or of the one below the filesystem; None with ``reason`` otherwise."""
    devno: str
    """``major:minor`` of that device; empty without one."""
    disk: str | None
    """Kernel name of the whole disk whose ``queue/`` serves it."""
    devices: tuple[str, ...]
    """Every block device directly below: the device itself, or all members of a btrfs."""
    disks: tuple[str, ...]
    """Their whole disks, each once."""
    mount: str
    """Mount point of the filesystem that holds it, or where the device is mounted; empty when nowhere."""
    fstype: str
    """Type of the mounted filesystem; empty without one."""
    size_bytes: int
    """0 for a directory."""
    identity: Identity
    reason: str = ""
    """Why ``device`` is None."""


def resolve(machine: Machine, path: str) -> Target:
    """Look up a block device node, any link to one, a file or a directory. Raises RequestError, MachineError."""
    # stat(1) and fio take a lone "-" for their standard input, which is not what the user named.
    path = "./-" if path == "-" else path
    real, file_status = _real_path(machine, path), status(machine, path)
    if file_status is None or not real:
        raise RequestError(
            "there is nothing at this path",
            place=path,
            remedy="name a block device, an existing file, or a directory for a scratch file",
        )
    table = mounts(machine)
    if file_status.is_block:
        name = name_of(machine, file_status.rdev)
        if name is None:
            raise RequestError(
                f"block device {file_status.rdev} is not known to this kernel",
                place=path,
                remedy="is it a stale device node? `lsblk` lists what exists",
            )
        this = device(machine, name)
        mounted = next((mount for mount in table if mount.devno == this.devno), None)
        if mounted is None and (fsid := btrfs_of(machine, name)):
            mounted = next(
                (mount for mount in table if btrfs_id(machine, mount) == fsid), None
            )
        return Target(
            path=path,
            kind="block",
            real_path=real,
            device=name,
            devno=this.devno,
            disk=this.disk,
            devices=(name,),
            disks=(this.disk,),
            mount=mounted.point if mounted else "",
            fstype=mounted.fstype if mounted else "",
            size_bytes=this.size_bytes,
            identity=identify(machine, this),
        )
    if not (stat.S_ISREG(file_status.mode) or stat.S_ISDIR(file_status.mode)):
        raise RequestError(
            "is neither a block device nor a regular file nor a directory",
            place=path,
            remedy="a character device, pipe or socket cannot be measured",
        )
    mount = mount_of(real, table)
    devices, reason = under(machine, file_status.devno, mount)
    disks = tuple(dict.fromkeys(device(machine, name).disk for name in devices))
    single = devices[0] if len(devices) == 1 else None
    regular = stat.S_ISREG(file_status.mode)
    size = file_status.size if regular else 0
    return Target(
        path=path,
        kind="file" if regular else "directory",
        real_path=real,
        device=single,
        devno=device(machine, single).devno if single else "",
        disk=disks[0] if single else None,
        devices=devices,
        disks=disks,
        mount=mount.point if mount else "",
        fstype=mount.fstype if mount else "",
        size_bytes=size,
        identity=Identity(
            boot_id(machine),
            file_status.devno,
            size,
            backing=f"{file_status.devno} {file_status.inode}",
        ),
        reason=reason,
    )


def resolve_tree(machine: Machine, path: str) -> Target:
    """Return a directory whose entries may be links to others: with the devices below all of them. As ``resolve``."""
    target = resolve(machine, path)
    if target.kind != "directory":
        raise RequestError(
            "is not a directory", place=path, remedy="leave [target] files out"
        )
    output = machine.run(
        [
            "readlink",
            "-f",
            "--",
            target.real_path,
            *machine.glob(f"{literal(target.real_path)}/*"),
        ]
    ).text
    places = [
        resolve(machine, place) for place in dict.fromkeys(output.splitlines()[1:])
    ]
    places = [place for place in places if place.kind == "directory"] or [target]
    devices = tuple(
        dict.fromkeys(chain.from_iterable(place.devices for place in places))
    )
    disks = tuple(dict.fromkeys(chain.from_iterable(place.disks for place in places)))
    if len(devices) == 1:
        return replace(
            places[0], path=path, real_path=target.real_path, identity=target.identity
        )
    return replace(
        target,
        device=None,
        devno="",
        disk=None,
        devices=devices,
        disks=disks,
        reason=f"its files lie on {len(devices)} devices" if devices else target.reason,
    )


def _real_path(machine: Machine, path: str) -> str:
    # Keep every byte: a replaced byte or a stripped line break would name another file.
    return (
        machine.run(["readlink", "-f", "--", path])
        .stdout.decode(errors="surrogateescape")
        .removesuffix("\n")
    )
