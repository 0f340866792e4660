"""Mount options changed by remounting, on real filesystems, and back to where they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .devices import Loop, mounted, run
from .rooted import target

pytestmark = pytest.mark.root

MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "btrfs": ("mkfs.btrfs", "--quiet", "--force", "--mixed"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
}


@pytest.fixture
def big(loop: Loop, tmp_path: Path) -> Loop:
    """Large enough for XFS."""
    loop.detach()
    loop.attach(tmp_path / "big.img", 400 << 20)
    return loop


def shown(point: Path) -> set[str]:
    line = next(line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {point} " in line)
    head, _, tail = line.partition(" - ")
    return set(head.split()[5].split(",")) | set(tail.split()[2].split(","))


def options_of(machine: LocalMachine, point: Path) -> knob.Knob:
    return knob.knob("mount.options", machine, resolve(machine, str(point)))


@pytest.mark.parametrize(
    ("fstype", "found", "value", "added", "removed"),
    [
        ("ext4", "defaults", "noatime", {"noatime"}, {"relatime"}),
        ("ext4", "noatime,nodiratime", "strictatime,diratime", set(), {"noatime", "nodiratime"}),
        ("ext4", "nosuid,nodev,noexec,sync", "noatime", {"noatime", "nosuid", "nodev", "noexec", "sync"}, {"relatime"}),
        ("ext4", "defaults", "commit=30,nobarrier", {"commit=30", "nobarrier"}, set()),
        ("ext4", "commit=60,nobarrier,lazytime", "commit=5,barrier", {"lazytime"}, {"commit=60", "nobarrier"}),
        ("ext4", "defaults", "inode_readahead_blks=64,max_batch_time=0,min_batch_time=9", {"max_batch_time=0"}, set()),
        ("btrfs", "defaults", "compress=zstd,commit=120", {"compress=zstd:3", "commit=120"}, set()),
        ("btrfs", "compress=zstd:5", "compress=no", set(), {"compress=zstd:5"}),
        ("btrfs", "compress=lzo", "compress-force=zlib:9", {"compress-force=zlib:9"}, {"compress=lzo"}),
        ("btrfs", "flushoncommit,ssd", "noflushoncommit,nossd,metadata_ratio=4", {"metadata_ratio=4"}, {"ssd"}),
        ("btrfs", "discard=async", "discard", {"discard"}, {"discard=async"}),
        ("xfs", "defaults", "noatime,lazytime", {"noatime", "lazytime"}, {"relatime"}),
    ],
)
def test_options_hold_and_the_originals_come_back(
    big: Loop,
    machine: LocalMachine,
    tmp_path: Path,
    fstype: str,
    found: str,
    value: str,
    added: set[str],
    removed: set[str],
) -> None:
    run(*MAKE[fstype], big.path)
    with mounted(big.path, tmp_path / "mnt", found) as point:
        before = shown(point)
        options = options_of(machine, point)
        assert options.available() is None
        saved = options.save()
        options.check(value)
        options.apply(value)
        options.verify(value)
        assert added <= shown(point)
        assert not removed & shown(point)
        assert "again" in knob.restore(machine, saved)
        assert shown(point) == before
        assert knob.restore(machine, saved) == "has its original options"


def test_each_variant_starts_from_the_options_found(big: Loop, machine: LocalMachine, tmp_path: Path) -> None:
    run(*MAKE["ext4"], big.path)
    with mounted(big.path, tmp_path / "mnt", "commit=60") as point:
        before = shown(point)
        knobs = {"mount.options": options_of(machine, point)}
        saved = {"mount.options": knobs["mount.options"].save()}
        for _ in range(2):
            knob.turn(knobs, saved, {"mount.options": "noatime"})
            assert shown(point) == before - {"relatime"} | {"noatime"}
            knob.turn(knobs, saved, {"mount.options": "commit=9"})
            assert shown(point) == before - {"commit=60"} | {"commit=9"}
            knob.turn(knobs, saved, {})
            assert shown(point) == before


@pytest.mark.parametrize(
    "value",
    [
        "ro",
        "rw",
        "data=journal",
        "nodelalloc",
        "bind",
        "commit=x",
        "commit=5,exec",
        "noatime,relatime",
        "",
        "compress=zstd",
    ],
)
def test_what_a_remount_cannot_set_and_undo_is_refused(
    big: Loop, machine: LocalMachine, tmp_path: Path, value: str
) -> None:
    run(*MAKE["ext4"], big.path)
    with mounted(big.path, tmp_path / "mnt") as point, pytest.raises(RequestError, match=r"undone[^$]*commit=N|twice"):
        options_of(machine, point).check(value)


def test_an_option_that_the_filesystem_ignores_is_caught(big: Loop, machine: LocalMachine, tmp_path: Path) -> None:
    run(*MAKE["ext4"], big.path)
    with (
        mounted(big.path, tmp_path / "mnt") as point,
        pytest.raises(KnobError, match=r"requested 'noatime'.* shows rw"),
    ):
        options_of(machine, point).verify("noatime")


def test_what_was_unmounted_needs_no_restoring(big: Loop, machine: LocalMachine, tmp_path: Path) -> None:
    run(*MAKE["ext4"], big.path)
    with mounted(big.path, tmp_path / "mnt") as point:
        options = options_of(machine, point)
        saved = options.save()
        options.apply("noatime")
    assert "was unmounted" in knob.restore(machine, saved)
    with pytest.raises(KnobError, match="no longer mounted"):
        options.apply("noatime")


def test_a_read_only_view_is_not_remounted(big: Loop, machine: LocalMachine, tmp_path: Path) -> None:
    run(*MAKE["ext4"], big.path)
    with mounted(big.path, tmp_path / "mnt") as point, mounted(str(point), tmp_path / "view", "bind") as view:
        run("mount", "-o", "remount,bind,ro", str(view))
        assert "read-only view" in str(options_of(machine, view).available())


@pytest.mark.parametrize(
    ("disks", "mount", "reason"),
    [(("sda",), "", "needs a mounted filesystem"), ((), "/dev/shm", "needs a filesystem on a block device")],
)
def test_without_a_mounted_disk_there_is_nothing_to_remount(
    machine: LocalMachine, disks: tuple[str, ...], mount: str, reason: str
) -> None:
    assert reason in str(knob.knob("mount.options", machine, target(*disks, mount=mount)).available())
