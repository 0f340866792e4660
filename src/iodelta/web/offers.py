"""What this machine offers for an experiment: places to measure, engines of its fio, and knobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

import msgspec

from iodelta.errors import IodeltaError, MachineError
from iodelta.knob import KnobInfo, catalogue
from iodelta.knob.registry import family
from iodelta.lab.guard import KERNEL_FILESYSTEMS
from iodelta.machine import Machine
from iodelta.probe.mounts import mounts
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import resolve
from iodelta.study.words import size
from iodelta.workload.engines import ENGINES, engines

SECTOR = 512
"""Bytes of the unit of sizes in sysfs, whatever the disk's own sector size is."""

NO_DISKS = ("ram", "zram", "sr", "fd", "nbd")
"""Beginnings of the names of block devices that are not offered: RAM disks, optical and floppy drives, network disks."""

IN_MEMORY = frozenset(
    "tmpfs ramfs squashfs iso9660 overlay autofs nsfs rpc_pipefs".split()
)
"""Filesystems without a disk of their own. The directory that is served is offered even on one of these."""


class Place(msgspec.Struct, frozen=True):
    """Something that can be measured."""

    path: str
    label: str
    is_disk: bool
    """A disk is only read; in a directory iodelta makes a scratch file, which may be written to."""


def places(machine: Machine, own: Path) -> tuple[Place, ...]:
    """Return the directory ``own``, filesystems, then disks and partitions. A request names one of them, and no other
    path.
    """
    return (
        Place(str(own), f"a scratch file in {own}", False),
        *_filesystems(machine, own),
        *_disks(machine),
    )


def _filesystems(machine: Machine, own: Path) -> Iterator[Place]:
    try:
        table = mounts(machine)
    except MachineError:
        return
    seen: set[str] = set()
    for mount in table:
        # Whether a scratch file there lies on a disk. The mount point may be a single file, too.
        without_disk = KERNEL_FILESYSTEMS | IN_MEMORY
        writable = "ro" not in mount.options
        if (
            (
                writable
                and mount.fstype not in without_disk
                and Path(mount.point).is_dir()
            )
            and mount.devno not in seen
            and mount.point != str(own)
        ):
            seen.add(mount.devno)
            said = f"a scratch file in {mount.point} ({mount.fstype} on {mount.source})"
            yield Place(mount.point, said, False)


def _disks(machine: Machine) -> Iterator[Place]:
    for path in sorted(machine.glob("/sys/class/block/*")):
        name = PurePath(path).name
        sectors = attribute(machine, f"{path}/size") or "0"
        if name.startswith(NO_DISKS) or not sectors.isdecimal() or sectors == "0":
            continue
        about = [size(int(sectors) * SECTOR), _about(machine, path)]
        said = ", ".join(filter(None, about))
        yield Place(f"/dev/{name.replace('!', '/')}", f"/dev/{name}, {said}", True)


def _about(machine: Machine, path: str) -> str:
    """Return the model of a disk, or what a loop, device-mapper or md device is made of; empty where neither is known."""
    files = ("device/model", "loop/backing_file", "dm/name", "md/level")
    texts = (attribute(machine, f"{path}/{file}") for file in files)
    return next(filter(None, texts), "")


def knobs(machine: Machine, place: Place) -> tuple[KnobInfo, ...]:
    """Settings that a page may turn for a place: those that only change how I/O is done, and can be set here."""
    try:
        known = catalogue(machine, resolve(machine, place.path))
    except IodeltaError:
        return ()
    here = [info for info in known if not info.reason]
    return tuple(info for info in here if not family(info.name).danger(info.name))


def engines_here(machine: Machine) -> tuple[str, ...]:
    """Engines of fio that read and write the target and do nothing else."""
    try:
        return tuple(name for name in engines(machine) if name in ENGINES)
    except MachineError:
        return ()
