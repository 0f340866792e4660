"""A target leads to its block devices, and every device to those below it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from fakes import PaperMachine
from workshop import Workshop, unmount

from iodelta.errors import MachineError, RequestError
from iodelta.machine import LocalMachine
from iodelta.probe.mounts import Mount, mount_of, mounts
from iodelta.probe.topology import Target, below, device, members, resolve, same_device, status

HERE = LocalMachine()


def name(node: str) -> str:
    return node.removeprefix("/dev/")


@pytest.mark.root
def test_a_disk_and_a_link_to_it_are_one_device(workshop: Workshop) -> None:
    node = workshop.loop(8)
    link = workshop.place / "by-id"
    link.symlink_to(node)
    direct, linked = resolve(HERE, node), resolve(HERE, str(link))
    assert (direct.device, direct.disk, direct.kind, direct.size_bytes) == (name(node), name(node), "block", 8 << 20)
    assert linked == msgspec.structs.replace(direct, path=str(link))
    assert direct.devno == device(HERE, name(node)).devno


@pytest.mark.root
def test_a_partition_has_the_queue_of_its_disk(workshop: Workshop) -> None:
    disk = workshop.loop(48)
    first, second = workshop.partition(disk, parts=2)
    target = resolve(HERE, second)
    assert (target.device, target.disk, target.identity.partition) == (name(second), name(disk), 2)
    assert device(HERE, name(disk)).partitions == (name(first), name(second))
    assert below(HERE, name(second))[0] == name(disk)


@pytest.mark.root
def test_a_file_leads_to_the_device_of_its_filesystem(workshop: Workshop) -> None:
    node = workshop.loop(32)
    workshop.run("mkfs.ext4", "-q", node)
    point = workshop.mount(node)
    (point / "with space").write_bytes(b"data")
    target = resolve(HERE, str(point / "with space"))
    assert (target.kind, target.device, target.size_bytes) == ("file", name(node), 4)
    assert (target.mount, target.fstype) == (str(point), "ext4")
    directory = resolve(HERE, str(point))
    assert (directory.kind, directory.device) == ("directory", name(node))
    assert resolve(HERE, node).mount == str(point)


@pytest.mark.root
def test_a_file_on_btrfs_leads_to_all_members_and_what_is_below_them(workshop: Workshop) -> None:
    pair = workshop.loop(128), workshop.loop(128)
    workshop.run("mkfs.btrfs", "--quiet", "-d", "raid1", "-m", "raid1", *pair)
    point = workshop.mount(pair[0])
    workshop.run("btrfs", "subvolume", "create", point / "subvolume")
    path = point / "subvolume" / "image"
    path.write_bytes(bytes(8 << 20))
    target = resolve(HERE, str(path))
    assert target.devices == target.disks == tuple(sorted(map(name, pair)))
    assert target.device is None
    assert "btrfs over 2 devices" in target.reason
    assert resolve(HERE, pair[1]).mount == str(point)
    upper = name(workshop.loop(path))
    assert below(HERE, upper)[:2] == target.devices
    holding = resolve(HERE, str(workshop.place)).disk
    assert members(HERE, upper) == ((holding,) if holding else ())


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="there is no /dev/shm here")
def test_a_file_in_memory_has_no_device_and_says_why(tmp_path: Path) -> None:
    target = resolve(HERE, "/dev/shm")
    assert target.device is target.disk is None
    assert target.devices == ()
    assert target.reason.startswith("tmpfs has no block device of its own")


@pytest.mark.parametrize("path", ["/does/not/exist", "", "/proc/self/fd/999"])
def test_nothing_at_the_path_is_said_so(path: str) -> None:
    with pytest.raises(RequestError, match="there is nothing"):
        resolve(HERE, path)


def test_a_lone_dash_is_a_file_of_that_name_and_never_the_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match="there is nothing at this path"):
        resolve(HERE, "-")
    Path("-").write_bytes(b"data")
    assert (resolve(HERE, "-").size_bytes, resolve(HERE, "-").real_path) == (4, str(tmp_path / "-"))


@pytest.mark.root
def test_the_same_number_after_reattaching_is_another_device(workshop: Workshop) -> None:
    images = workshop.file(8), workshop.file(8)
    found = []
    for image in images:
        attached = workshop.attach(image)
        found.append(resolve(HERE, attached.node).identity)
        attached.detach()
    assert not same_device(*found)


@pytest.mark.root
def test_the_same_backing_file_attached_again_is_the_same_device(workshop: Workshop) -> None:
    image = workshop.file(8)
    found = []
    for _ in range(2):
        attached = workshop.attach(image)
        found.append(resolve(HERE, attached.node).identity)
        attached.detach()
    assert found[0].diskseq != found[1].diskseq
    assert same_device(*found)


def identity_of(target: Target, **changes: object) -> Target:
    return msgspec.structs.replace(target, identity=msgspec.structs.replace(target.identity, **changes))


@pytest.mark.root
def test_over_a_reboot_only_what_lasts_tells_devices_apart(workshop: Workshop) -> None:
    target = resolve(HERE, workshop.loop(8))
    before = identity_of(target, boot="first", serial="S1", wwid="naa.1", backing="").identity
    again = identity_of(target, boot="second", serial="S1", wwid="naa.1", backing="", devno="8:0", diskseq="2").identity
    other = identity_of(target, boot="second", serial="S2", wwid="naa.2", backing="").identity
    assert same_device(before, again)
    assert not same_device(before, other)
    assert not same_device(before, identity_of(target, boot="second", serial="S1", wwid="naa.1", size_bytes=9).identity)
    nameless = [identity_of(target, boot=boot, backing="").identity for boot in ("first", "second")]
    assert not same_device(*nameless)
    assert same_device(nameless[0], nameless[0])


def test_the_deepest_and_latest_mount_holds_a_path() -> None:
    def at(point: str, source: str) -> Mount:
        return Mount("8:1", "/", point, "ext4", source, ())

    table = [at("/", "root"), at("/mnt/a", "first"), at("/mnt/a", "second"), at("/mnt/ab", "other")]
    assert [
        mount.source if (mount := mount_of(path, table)) else None
        for path in ("/mnt/a/file", "/mnt/a", "/mnt/abc", "/mnt/ab/file", "/etc")
    ] == ["second", "second", "root", "other", "root"]


@pytest.mark.root
def test_mount_points_with_blanks_are_read_as_they_are(workshop: Workshop) -> None:
    node = workshop.loop(32)
    workshop.run("mkfs.ext4", "-q", node)
    odd = workshop.place / "a b\tc\\d"
    odd.mkdir()
    workshop.run("mount", "-o", "noatime", node, odd)
    workshop.undo(lambda: unmount(odd))
    [found] = [mount for mount in mounts(HERE) if mount.point == str(odd)]
    assert found.source == node
    assert "noatime" in found.options


def test_a_stat_that_is_not_understood_is_quoted() -> None:
    said = {"stat -L -c %f %d %t %T %s %b %i %h %n -- /x": "81a4 %d 0 0 12 8 5 1 /x"}
    with pytest.raises(MachineError, match="/x: stat says '81a4 %d 0 0 12 8 5 1 /x'") as caught:
        status(PaperMachine({}, said), "/x")
    assert "on the PATH that of coreutils, on paper" in caught.value.remedy
