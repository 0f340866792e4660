"""The target and every device below it: hardware, queue settings, filesystem, RAID layout."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.errors import MachineError
from iodelta.probe.devices import btrfs_of, device, interrupts, with_below
from iodelta.probe.mounts import mounts
from iodelta.probe.reader import Reader, Section, summary
from iodelta.probe.sysfs import sysfs_name
from iodelta.probe.topology import Target

PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

MD = (
    *(
        "level",
        "layout",
        "chunk_size",
        "raid_disks",
        "degraded",
        "array_state",
        "sync_action",
        "sync_completed",
    ),
    *(
        "bitmap/location",
        "bitmap/chunksize",
        "bitmap_type",
        "metadata_version",
        "consistency_policy",
    ),
    *(
        "stripe_cache_size",
        "group_thread_cnt",
        "preread_bypass_threshold",
        "skip_copy",
        "sync_speed_max",
    ),
)
BTRFS = (
    "label",
    "read_policy",
    "nodesize",
    "sectorsize",
    "checksum",
    "exclusive_operation",
    "quota_override",
)
BTRFS_DEVICE = ("missing", "replace_target", "writeable")
BCACHE = (
    "state",
    "cache_mode",
    "sequential_cutoff",
    "readahead_cache_policy",
    "writeback_percent",
    "dirty_data",
)


def target_section(target: Target) -> Section:
    """Return the target itself."""
    identity = target.identity
    section = {
        "path": target.path,
        "kind": target.kind,
        "real_path": target.real_path,
        "device": target.device or "",
        "mount": target.mount,
        "fstype": target.fstype,
        "size_bytes": str(target.size_bytes or ""),
        "serial": identity.serial,
        "wwid": identity.wwid,
        "uuid": identity.uuid,
        "partition_uuid": identity.partition_uuid,
    }
    return {key: value for key, value in section.items() if value}


def filesystem(reader: Reader, target: Target) -> Section:
    """Where it is mounted and with which options; the layout of a btrfs."""
    try:
        table = mounts(reader.machine)
    except MachineError as error:
        reader.absent["filesystem"] = error.what
        return {}
    on_target = [mount for mount in table if mount.point == target.mount]
    if not target.mount or not on_target:
        reader.absent["filesystem"] = "the target is on no mounted filesystem"
        return {}
    mount = on_target[0]
    section = {
        "type": mount.fstype,
        "source": mount.source,
        "options": ",".join(mount.options),
    }
    if mount.fstype == "btrfs" and target.devices:
        fsid = btrfs_of(reader.machine, target.devices[0])
        if fsid:
            section |= _btrfs(reader, fsid)
    return section


def _btrfs(reader: Reader, fsid: str) -> Section:
    """Return the layout of a btrfs, and the state of its devices."""
    base = f"/sys/fs/btrfs/{fsid}"
    section = {"btrfs.fsid": fsid}
    files = {f"btrfs.{file}": f"{base}/{file}" for file in BTRFS}
    section |= reader.section("filesystem", files)
    for kind in ("data", "metadata", "system"):
        allocation = f"{base}/allocation/{kind}"
        # A directory for each RAID profile in use.
        profiles = reader.machine.glob(f"{allocation}/*/total_bytes")
        names = [path.split("/")[-2] for path in profiles]
        section[f"btrfs.{kind}"] = ", ".join(names)
        totals = {
            f"btrfs.{kind}.total_bytes": f"{allocation}/total_bytes",
            f"btrfs.{kind}.bytes_used": f"{allocation}/bytes_used",
        }
        section |= reader.section("filesystem", totals)
    for key in ("devices", "features"):
        section[f"btrfs.{key}"] = " ".join(_names(reader, f"{base}/{key}/*"))
    for missing in reader.machine.glob(f"{base}/devinfo/*/missing"):
        directory = missing.rpartition("/")[0]
        devid = directory.rpartition("/")[2]
        states = reader.directory(*(f"{directory}/{file}" for file in BTRFS_DEVICE))
        for key, value in states.items():
            section[f"btrfs.devid{devid}.{key}"] = value
    return section


def _names(reader: Reader, pattern: str) -> list[str]:
    """Return the last parts of the paths that match."""
    return [path.rsplit("/", 1)[1] for path in reader.machine.glob(pattern)]


def devices(reader: Reader, target: Target) -> tuple[Section, ...]:
    """Return the target's block devices, then every one below them, nearest first."""
    try:
        names = with_below(reader.machine, (*target.devices, *target.disks))
        return tuple(_device(reader, name) for name in names)
    except MachineError as error:
        reader.absent["devices"] = error.sentence
        return ()


def _attributes(reader: Reader, directory: str, files: Sequence[str]) -> Section:
    """Return the text of each of these files that exists; a file in a subdirectory by its path with ``_`` for ``/``."""
    section = {}
    for file in files:
        for text in reader.directory(f"{directory}/{file}").values():
            section[file.replace("/", "_")] = text
    return section


def _device(reader: Reader, name: str) -> Section:
    this = device(reader.machine, name)
    base = f"/sys/class/block/{sysfs_name(name)}"
    section = {"name": name, "size_bytes": str(this.size_bytes)}
    if this.partition:
        section |= {"partition_of": this.disk, "partition": str(this.partition)}
        return section | reader.section(
            name,
            {"start_sector": f"{base}/start", "alignment": f"{base}/alignment_offset"},
        )
    section |= _hardware(reader, name, base)
    section |= _prefixed("queue", reader.directory(f"{base}/queue/*"))
    section |= _prefixed("queue.iosched", reader.directory(f"{base}/queue/iosched/*"))
    section |= _queues(reader, name, base)
    section |= _prefixed("loop", reader.directory(f"{base}/loop/*"))
    section |= _prefixed("md", _attributes(reader, f"{base}/md", MD))
    section |= _prefixed("bcache", _attributes(reader, f"{base}/bcache", BCACHE))
    section |= _prefixed("dm", reader.directory(f"{base}/dm/name", f"{base}/dm/uuid"))
    for path in reader.machine.glob(f"{base}/md/dev-*"):
        member = path.rsplit("/dev-", 1)[1]
        states = reader.directory(f"{path}/slot", f"{path}/state")
        slot, state = states.get("slot", "?"), states.get("state", "?")
        section[f"md.member.{member}"] = f"slot {slot}, {state}"
    if "dm.name" in section:
        types = _dm_targets(reader, name, section["dm.name"])
        if types:
            section["dm.targets"] = summary(types)
    if this.slaves:
        section["members"] = " ".join(this.slaves)
    if this.holders:
        section["holders"] = " ".join(this.holders)
    return section


def _prefixed(prefix: str, section: Section) -> Section:
    return {f"{prefix}.{key}": text for key, text in section.items()}


def _dm_targets(reader: Reader, name: str, dm_name: str) -> list[str]:
    """Return the types of a device mapper's targets only: the rest of its table may contain encryption keys."""
    words = ["dmsetup", "table", "--", dm_name]
    table = reader.command(f"{name}.dm.targets", words)
    rows = [line.split() for line in table.splitlines()]
    return [row[2] for row in rows if len(row) > 2]


def _hardware(reader: Reader, name: str, base: str) -> Section:
    section = reader.directory(f"{base}/ro", f"{base}/removable")
    real = reader.command(f"{name}.bus", ["readlink", "-f", "--", f"{base}/device"])
    if not reader.machine.glob(f"{base}/device"):
        reader.absent[f"{name}.hardware"] = "a virtual device"
        return section
    section |= reader.section(
        name,
        {
            "model": (f"{base}/device/model", f"{base}/device/name"),
            "vendor": f"{base}/device/vendor",
            "firmware": (
                f"{base}/device/firmware_rev",
                f"{base}/device/rev",
                f"{base}/device/fwrev",
            ),
            "transport": f"{base}/device/transport",
            "cache": (
                *reader.machine.glob(f"{base}/device/scsi_disk/*/cache_type"),
                f"{base}/cache_type",
            ),
            "queue_depth": f"{base}/device/queue_depth",
            "power_control": (
                f"{base}/device/power/control",
                f"{base}/device/device/power/control",
            ),
            # The longest delay with which an NVMe drive may leave its power states (APST).
            "wake_latency_us": f"{base}/device/power/pm_qos_latency_tolerance_us",
        },
    )
    if "transport" not in section:
        kinds = (
            "usb",
            "virtio",
            "nvme",
            "ata",
            "end_device",
            "rport",
            "session",
            "mmc_host",
        )
        seen = [kind for kind in kinds if re.search(rf"/{kind}[^/]*", real)]
        if seen:
            section["transport"] = {
                "end_device": "sas",
                "rport": "fc",
                "session": "iscsi",
            }.get(seen[0], seen[0])
            reader.absent.pop(f"{name}.transport", None)
    addresses = PCI.findall(real)
    if addresses:
        pci = f"/sys/bus/pci/devices/{addresses[-1]}"
        section["pci"] = addresses[-1]
        section |= reader.section(
            name,
            {
                "numa_node": f"{pci}/numa_node",
                "link_speed": f"{pci}/current_link_speed",
                "link_width": f"{pci}/current_link_width",
                "link_speed_max": f"{pci}/max_link_speed",
                "link_width_max": f"{pci}/max_link_width",
            },
        )
    return section


def _queues(reader: Reader, name: str, base: str) -> Section:
    """Return which CPUs each hardware queue serves, and where its interrupts may go."""
    section = {}
    paths = sorted(
        reader.machine.glob(f"{base}/mq/*/cpu_list"),
        key=lambda path: int(path.split("/")[-2]),
    )
    if paths:
        section["hardware_queues"] = str(len(paths))
    for path in paths:
        section[f"mq.{path.split('/')[-2]}.cpus"] = reader.text(f"{name}.mq", path)
    for place, number in enumerate(interrupts(reader.machine, name)):
        text = reader.directory(f"/proc/irq/{number}/effective_affinity_list").get(
            "effective_affinity_list"
        )
        if text:
            section[f"interrupt.{place}.cpus"] = text
    return section
