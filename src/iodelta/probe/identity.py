"""The identity of a device, so that a renumbered disk cannot be taken for the one that was meant."""

from __future__ import annotations

import msgspec

from iodelta.machine import Machine
from iodelta.probe.devices import Device, loop_backing
from iodelta.probe.sysfs import attribute, boot_id, event, status, sysfs_name


class Identity(msgspec.Struct, frozen=True):
    """The identity of a device. Empty or 0 where the kernel does not know.

    Within one boot the kernel's disk sequence number is unique per attachment. Across boots only hardware and metadata
    (serial, wwid, uuid, backing file) identify a device, never a name or a number.
    """

    boot: str
    devno: str
    """``major:minor``."""
    size_bytes: int
    """Size in bytes."""
    diskseq: str = ""
    """The kernel's disk sequence number."""
    serial: str = ""
    """Serial number of the disk."""
    wwid: str = ""
    """World-wide id of the disk."""
    uuid: str = ""
    """Of the md array or dm device."""
    by_id: tuple[str, ...] = ()
    """Its links below /dev/disk/by-id."""
    partition: int = 0
    """Number of the partition, 0 for a whole disk."""
    partition_start: int = 0
    """First 512-byte sector of the partition."""
    partition_uuid: str = ""
    """UUID of the partition; empty for a whole disk."""
    backing: str = ""
    """Of a loop device: ``major:minor inode offset`` of its backing file; of a regular file: ``major:minor inode``."""

    @property
    def lasting(self) -> tuple[object, ...]:
        """Return the part that survives a reboot."""
        return (self.serial, self.wwid, self.uuid, self.backing, self.partition_uuid)


def same_device(first: Identity, second: Identity) -> bool:
    """Return whether both are certainly one device: by disk sequence number within a boot, else by what survives a
    reboot.

    Doubt gives False: a device without serial, uuid or backing file counts as another one after a reboot.
    """
    if ((first.size_bytes, first.partition, first.partition_start, first.lasting)) != (
        second.size_bytes,
        second.partition,
        second.partition_start,
        second.lasting,
    ):
        return False
    if first.boot == second.boot and first.diskseq and first.diskseq == second.diskseq:
        return first.devno == second.devno
    return any(first.lasting)


def identify(machine: Machine, this: Device) -> Identity:
    """Return what is known of a block device now. Raises MachineError."""
    base, disk = (
        f"/sys/class/block/{sysfs_name(this.name)}",
        f"/sys/class/block/{sysfs_name(this.disk)}",
    )
    # Links (below /dev) and properties that udev recorded for a block device
    linked: list[str] = []
    recorded: dict[str, str] = {}
    for line in (
        attribute(machine, f"/run/udev/data/b{this.devno}") or ""
    ).splitlines():
        kind, record = line[:2], line[2:]
        if kind == "S:":
            linked.append(record)
        elif kind == "E:":
            key, _, value = record.partition("=")
            recorded[key] = value
    links, properties = tuple(linked), recorded
    return Identity(
        boot=boot_id(machine),
        devno=this.devno,
        size_bytes=this.size_bytes,
        diskseq=attribute(machine, f"{disk}/diskseq") or "",
        serial=_first(
            machine,
            f"{disk}/serial",
            f"{disk}/device/serial",
            f"{disk}/device/vpd_pg80",
        )
        or properties.get("ID_SERIAL", ""),
        wwid=_first(machine, f"{disk}/wwid", f"{disk}/device/wwid")
        or properties.get("ID_WWN", ""),
        uuid=_first(machine, f"{disk}/dm/uuid", f"{disk}/md/uuid"),
        by_id=tuple(
            sorted(f"/dev/{link}" for link in links if link.startswith("disk/by-id/"))
        ),
        partition=this.partition,
        partition_start=this.start,
        partition_uuid=event(machine, base).get("PARTUUID")
        or properties.get("ID_PART_ENTRY_UUID", ""),
        backing=_loop_identity(machine, this.disk),
    )


def _loop_identity(machine: Machine, name: str) -> str:
    backing = loop_backing(machine, name)
    stat = status(machine, backing) if backing else None
    if stat is None:
        return ""
    offset = (
        attribute(machine, f"/sys/class/block/{sysfs_name(name)}/loop/offset") or "0"
    )
    return f"{stat.devno} {stat.inode} {offset}"


def _first(machine: Machine, *paths: str) -> str:
    """Return the text of the first of these files that has any, printable characters only (vpd_pg80 has a binary head)."""
    for path in paths:
        ascii_text = (attribute(machine, path) or "").encode("ascii", "ignore").decode()
        clean = "".join(filter(str.isprintable, ascii_text)).strip()
        if clean:
            return clean
    return ""
