"""A guest's disks as words for qemu: files and devices of this machine, which are never changed, and emulated ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from iodelta.vm.spec import Disk

_THROTTLES = {
    "iops": "iops-total",
    "read-iops": "iops-read",
    "write-iops": "iops-write",
    "bps": "bps-total",
    "read-bps": "bps-read",
    "write-bps": "bps-write",
}
_MODULES = {
    "virtio": ("virtio_blk",),
    "nvme": ("nvme",),
    "scsi": ("virtio_scsi", "sd_mod"),
}


def modules(disks: Sequence[Disk]) -> tuple[str, ...]:
    """Modules that a guest needs for its disks."""
    return tuple(
        dict.fromkeys(chain.from_iterable(_MODULES[disk.bus] for disk in disks))
    )


def nodes(disks: Sequence[Disk]) -> tuple[str, ...]:
    """Return the path of each disk in the guest, in order."""
    per_bus = dict.fromkeys(_MODULES, 0)
    paths = []
    for disk in disks:
        number, per_bus[disk.bus] = per_bus[disk.bus], per_bus[disk.bus] + 1
        prefix = {"virtio": "vd", "scsi": "sd"}.get(disk.bus)
        paths.append(
            f"/dev/{prefix}{chr(ord('a') + number)}"
            if prefix
            else f"/dev/nvme{number}n1"
        )
    return tuple(paths)


def words(disks: Sequence[Disk], directory: Path) -> tuple[str, ...]:
    """qemu's words; disks that keep what is written have a file in ``directory``, and are deleted with it.

    A file or device of this machine is never written to: writes to a file go to a temporary copy (``snapshot=on``),
    and a device is read-only.
    """
    arguments: list[str] = []
    scsi = False
    for number, disk in enumerate(disks):
        drive = {
            "if": "none",
            "id": f"disk{number}",
            **_backend(disk, directory / f"disk{number}"),
        }
        for name, value in disk.options:
            if name in _THROTTLES:
                drive[f"throttling.{_THROTTLES[name]}"] = value
        arguments += [
            "-drive",
            ",".join(f"{key}={value}" for key, value in drive.items()),
        ]
        serial = f"serial=iodelta{number}"
        if disk.bus == "virtio":
            arguments += ["-device", f"virtio-blk-pci,drive=disk{number},{serial}"]
        elif disk.bus == "nvme":
            arguments += ["-device", f"nvme,drive=disk{number},{serial}"]
        else:
            arguments += [] if scsi else ["-device", "virtio-scsi-pci,id=scsi"]
            scsi = True
            arguments += ["-device", f"scsi-hd,bus=scsi.0,drive=disk{number},{serial}"]
    return tuple(arguments)


def _backend(disk: Disk, own: Path) -> dict[str, str]:
    given = dict(disk.options)
    if disk.path:
        device = stat.S_ISBLK(os.stat(disk.path).st_mode)
        base = {"driver": "host_device" if device else "file", "filename": disk.path}
        how = {"readonly": "on"} if device else {"snapshot": "on"}
    elif disk.kept:
        with own.open("wb") as file:
            file.truncate(disk.size)
        base, how = {"driver": "file", "filename": str(own)}, {}
    else:
        base, how = (
            {"driver": "null-co", "size": str(disk.size), "read-zeroes": "on"},
            {},
        )
        if "latency" in given:
            number, unit = given["latency"][:-2], given["latency"][-2:]
            base["latency-ns"] = str(int(number) * {"us": 1000, "ms": 1_000_000}[unit])
    if "error" in given:  # reading or writing this sector fails
        image = {f"image.{key}": value for key, value in base.items()}
        rule = {
            "event": "none",
            "iotype": "read",
            "errno": "5",
            "sector": given["error"],
            "immediately": "on",
        }
        base = {
            "driver": "blkdebug",
            **{f"inject-error.0.{key}": value for key, value in rule.items()},
            **image,
        }
    return {
        "format": "raw",
        **how,
        **{f"file.{key}": value for key, value in base.items()},
    }
