"""A device that md, LVM, LUKS, multipath, bcache or bcachefs holds is in use, and so is the disk around it."""

from __future__ import annotations

import pytest
from fakes import PaperMachine, block_device, partition

from iodelta.probe.topology import below, members
from iodelta.probe.usage import current_uses, device_reasons

NOTHING = {"/proc/self/mountinfo": "", "/proc/swaps": "Filename Type Size Used Priority\n"}


def reasons(machine: PaperMachine, name: str) -> list[tuple[str, str, bool]]:
    return [(one.place, one.what, one.absolute) for one in device_reasons(machine, name, current_uses(machine))]


def md_over_two_partitions() -> PaperMachine:
    """md0 over sda1 and sdb1."""
    files = dict(NOTHING)
    for disk, number in (("sda", 0), ("sdb", 16)):
        files |= block_device(disk, f"8:{number}")
        files |= partition(disk, 1, f"8:{number + 1}", holders__md0="")
    files |= block_device("md0", "9:0", md__level="raid1\n", slaves__sda1="", slaves__sdb1="")
    return PaperMachine(files)


def test_a_member_of_an_array_is_held_and_so_is_the_disk_around_it() -> None:
    machine = md_over_two_partitions()
    assert ("/dev/sda1", "is held by md /dev/md0", True) in reasons(machine, "sda1")
    assert ("/dev/sda1", "is held by md /dev/md0", True) in reasons(machine, "sda")
    assert reasons(machine, "md0") == []


def test_an_array_leads_to_its_members_and_their_disks() -> None:
    machine = md_over_two_partitions()
    assert below(machine, "md0") == ("sda1", "sdb1", "sda", "sdb")
    assert members(machine, "md0") == ("sda", "sdb")
    assert members(machine, "sda") == ("sda",)


@pytest.mark.parametrize(
    ("uuid", "kind"),
    [("LVM-abc", "LVM"), ("CRYPT-LUKS2-abc", "LUKS"), ("mpath-3600", "multipath"), ("other", "device mapper")],
)
def test_what_holds_a_device_through_the_device_mapper_is_named(uuid: str, kind: str) -> None:
    held = block_device("sda", "8:0", holders__dm__0="")
    held = {path.replace("dm/0", "dm-0"): text for path, text in held.items()}
    machine = PaperMachine({**NOTHING, **held, **block_device("dm-0", "253:0", dm__uuid=f"{uuid}\n")})
    assert reasons(machine, "sda") == [("/dev/sda", f"is held by {kind} /dev/dm-0", True)]


def test_bcache_holds_its_backing_device_and_its_cache() -> None:
    machine = PaperMachine(
        {
            **NOTHING,
            **block_device("sda", "8:0", holders__bcache0=""),
            **block_device("nvme0n1", "259:0", holders__bcache0=""),
            **block_device("bcache0", "252:0", slaves__sda="", slaves__nvme0n1=""),
        }
    )
    for name in ("sda", "nvme0n1"):
        assert reasons(machine, name) == [(f"/dev/{name}", "is held by bcache /dev/bcache0", True)]
    assert below(machine, "bcache0") == ("nvme0n1", "sda")


def test_a_free_partition_of_a_disk_that_is_used_as_a_whole_is_in_use() -> None:
    machine = PaperMachine(
        {
            **NOTHING,
            **block_device("sda", "8:0", holders__md0=""),
            **partition("sda", 1, "8:1"),
            **block_device("md0", "9:0"),
        }
    )
    assert ("/dev/sda", "is held by the device /dev/md0", True) in reasons(machine, "sda1")


def test_partitions_that_nothing_uses_are_data_but_not_in_use() -> None:
    machine = PaperMachine({**NOTHING, **block_device("sda", "8:0"), **partition("sda", 1, "8:1")})
    assert reasons(machine, "sda") == [("/dev/sda", "has partitions (sda1)", False)]


def test_every_device_of_a_mounted_bcachefs_is_in_use() -> None:
    line = "36 1 0:44 / /mnt rw,relatime shared:1 - bcachefs /dev/sda:/dev/sdb rw\n"
    machine = PaperMachine(
        {**NOTHING, "/proc/self/mountinfo": line, **block_device("sda", "8:0"), **block_device("sdb", "8:16")},
        {
            "stat -L -c %f %d %t %T %s %b %i %h %n -- /dev/sda /dev/sdb": "61b0 5 8 0 0 0 1 1 /dev/sda\n"
            "61b0 5 8 10 0 0 2 1 /dev/sdb\n"
        },
    )
    for name in ("sda", "sdb"):
        assert reasons(machine, name) == [(f"/dev/{name}", "is mounted on /mnt", True)]


def test_a_name_with_a_slash_is_found_under_its_sysfs_name() -> None:
    files = {
        path.replace("cciss!c0d0\n", "cciss/c0d0\n"): text for path, text in block_device("cciss!c0d0", "104:0").items()
    }
    machine = PaperMachine({**NOTHING, **files, "/sys/class/block/cciss!c0d0/holders/md0": ""})
    assert reasons(machine, "cciss/c0d0") == [("/dev/cciss/c0d0", "is held by the device /dev/md0", True)]


def test_a_partition_that_overlaps_a_mounted_one_is_in_use() -> None:
    line = "36 1 8:2 / /mnt rw - ext4 /dev/sda2 rw\n"
    machine = PaperMachine(
        {
            **NOTHING,
            "/proc/self/mountinfo": line,
            **block_device("sda", "8:0"),
            **partition("sda", 1, "8:1", start="0\n", size=1 << 30),  # all of the disk, as in a Sun label
            **partition("sda", 2, "8:2", start="2048\n", size=1 << 20),
            **partition("sda", 3, "8:3", start="4096\n", size=1 << 20),
        }
    )
    assert reasons(machine, "sda1") == [("/dev/sda2", "is mounted on /mnt", True)]
    assert reasons(machine, "sda3") == []


@pytest.mark.parametrize(("wwid", "shared"), [("naa.5000c500a1b2c3d4", True), ("naa.5000c500ffffffff", False)])
def test_a_disk_that_is_mounted_through_another_path_is_in_use(wwid: str, shared: bool) -> None:
    line = "36 1 8:17 / /mnt rw - xfs /dev/sdb1 rw\n"
    machine = PaperMachine(
        {
            **NOTHING,
            "/proc/self/mountinfo": line,
            **block_device("sda", "8:0"),
            **block_device("sdb", "8:16"),
            **partition("sdb", 1, "8:17", start="2048\n"),
            "/sys/block/sdb/dev": "8:16\n",
            "/sys/block/sda/device/wwid": "naa.5000c500a1b2c3d4\n",
            "/sys/block/sdb/device/wwid": f"{wwid}\n",
        }
    )
    assert (("/dev/sdb1", "is mounted on /mnt", True) in reasons(machine, "sda")) == shared


def test_the_hidden_paths_of_native_nvme_multipath_are_no_other_disks() -> None:
    wwid = "eui.0025385b11b2c3d4\n"
    paths = {"/sys/block/nvme0n1/wwid": wwid, "/sys/block/nvme0c0n1/wwid": wwid, "/sys/block/nvme0c1n1/wwid": wwid}
    assert reasons(PaperMachine({**NOTHING, **paths, **block_device("nvme0n1", "259:0")}), "nvme0n1") == []
