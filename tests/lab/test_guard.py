"""No write reaches what is in use, nor data that its owner did not name: on real devices, every byte compared."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from waiting import until
from workshop import Workshop, attach, no_other_takes_loops, unmount

from iodelta.errors import IodeltaError, MachineError, RefusedError, RequestError
from iodelta.lab.guard import check_write, is_scratch, refuse_reasons, scratch_directory
from iodelta.machine import Completed, LocalMachine, Machine
from iodelta.probe.made import record
from iodelta.probe.topology import resolve

MIB = 1 << 20
HERE = LocalMachine()


def on_devices(test: Callable[..., None]) -> Callable[..., None]:
    marked: Callable[..., None] = pytest.mark.root(pytest.mark.beside(test))
    return marked


class Elsewhere:
    """A machine on which nothing can be held open, as over SSH; it keeps what it was asked to run."""

    def __init__(self) -> None:
        self.name = "elsewhere"
        self.asked: list[str] = []
        self.start, self.read, self.write = HERE.start, HERE.read, HERE.write
        self.glob, self.put, self.get = HERE.glob, HERE.put, HERE.get
        self.read_bytes, self.append, self.lock = HERE.read_bytes, HERE.append, HERE.lock
        self.time, self.together = HERE.time, HERE.together
        self.directory, self.state, self.patience = HERE.directory, HERE.state, HERE.patience

    def run(self, args: Sequence[str], **how: Any) -> Completed:
        self.asked.append(args[0])
        return HERE.run(args, **how)


class Failing(Elsewhere):
    """A machine whose disks cannot be read."""

    def run(self, args: Sequence[str], **how: Any) -> Completed:
        if args[0] == "dd":
            return Completed(tuple(args), 1, b"", b"dd: error reading: Input/output error", 0.1)
        return super().run(args, **how)


def refusal(path: str | Path, *destroy: str | Path, machine: Machine = HERE, size: int | None = None) -> str:
    """Why ``path`` may not be written; the test fails when it may."""
    with pytest.raises(RefusedError) as caught:
        check_write(machine, resolve(machine, str(path)), [str(one) for one in destroy], size).close()
    assert caught.value.exit_code == 2
    assert caught.value.remedy
    return str(caught.value)


def allowed(path: str | Path, *destroy: str | Path, machine: Machine = HERE) -> tuple[str, ...]:
    """What the owner gave up by naming ``path``; the test fails when it is refused."""
    with check_write(machine, resolve(machine, str(path)), [str(one) for one in destroy]) as permit:
        permit.recheck()
        return tuple(reason.what for reason in permit.lifted)


def link(workshop: Workshop, node: str | Path) -> Path:
    path = workshop.place / f"by-id-{os.path.basename(node)}"
    path.symlink_to(node)
    return path


# What is in use is refused, even with --destroy.

InUse = Callable[[Workshop], tuple[str, str]]


def mounted_ext4(workshop: Workshop) -> tuple[str, str]:
    node = ext4(workshop)
    workshop.mount(node)
    return node, "is mounted on"


def mounted_xfs(workshop: Workshop) -> tuple[str, str]:
    node = xfs(workshop)
    workshop.mount(node)
    return node, "is mounted on"


def disk_with_mounted_partition(workshop: Workshop) -> tuple[str, str]:
    disk = workshop.loop(48)
    _, second = workshop.partition(disk, parts=2)
    make_ext4(workshop, second)
    workshop.mount(second)
    return disk, f"{second}: is mounted on"


def mounted_partition(workshop: Workshop) -> tuple[str, str]:
    disk = workshop.loop(48)
    [part] = workshop.partition(disk, table="dos")
    make_ext4(workshop, part)
    workshop.mount(part, "-o", "ro")
    return part, "is mounted on"


def second_member_of_mounted_btrfs(workshop: Workshop) -> tuple[str, str]:
    first, second = btrfs_pair(workshop)
    workshop.mount(first)
    return second, "member of the mounted btrfs"


def disk_with_member_of_mounted_btrfs(workshop: Workshop) -> tuple[str, str]:
    disk = workshop.loop(320)
    first = workshop.loop(128)
    [part] = workshop.partition(disk, size="256MiB")
    workshop.run("mkfs.btrfs", "--quiet", "-d", "single", "-m", "raid1", first, part)
    workshop.mount(first)
    return disk, f"{part}: is a member of the mounted btrfs"


def swap_in_use(workshop: Workshop) -> tuple[str, str]:
    node = workshop.loop(16)
    workshop.run("mkswap", node)
    workshop.swap_on(node)
    return node, "is swapped on"


def disk_with_swap_partition_in_use(workshop: Workshop) -> tuple[str, str]:
    disk = workshop.loop(48)
    [part] = workshop.partition(disk)
    workshop.run("mkswap", part)
    workshop.swap_on(part)
    return disk, f"{part}: is swapped on"


def same_file_attached_twice(workshop: Workshop) -> tuple[str, str]:
    image = workshop.file(32)
    first, second = workshop.loop(image), workshop.loop(image)
    make_ext4(workshop, first)
    workshop.mount(first)
    return second, f"has the same backing file as {first}"


def loop_over_a_mounted_device(workshop: Workshop) -> tuple[str, str]:
    lower = ext4(workshop)
    upper = workshop.loop(lower)
    workshop.mount(upper)
    return lower, f"is attached as {upper}"


def mounted_in_another_namespace(workshop: Workshop) -> tuple[str, str]:
    node, point = ext4(workshop), workshop.place / "elsewhere"
    point.mkdir()
    holder = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", 'mount "$0" "$1" && echo ready && read line', node, point],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def leave() -> None:
        holder.communicate(b"\n")
        until(lambda: not Path(f"/sys/fs/ext4/{os.path.basename(node)}").exists())

    workshop.undo(leave)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"ready\n"
    return node, "is mounted (ext4) in another mount namespace"


IN_USE: tuple[InUse, ...] = (
    mounted_ext4,
    mounted_xfs,
    disk_with_mounted_partition,
    mounted_partition,
    second_member_of_mounted_btrfs,
    disk_with_member_of_mounted_btrfs,
    swap_in_use,
    disk_with_swap_partition_in_use,
    same_file_attached_twice,
    loop_over_a_mounted_device,
    mounted_in_another_namespace,
)


@on_devices
@pytest.mark.parametrize("make", IN_USE, ids=lambda make: make.__name__)
@pytest.mark.parametrize("machine", [HERE, Elsewhere()], ids=["held", "not held"])
def test_a_device_in_use_is_refused_whatever_the_user_says(workshop: Workshop, make: InUse, machine: Machine) -> None:
    node, what = make(workshop)
    other = link(workshop, node)

    def untouched() -> bool:
        os.sync()
        before = Workshop.checksum(node)
        for path in (node, other):
            assert what in refusal(path, machine=machine)
            assert what in refusal(path, node, path, machine=machine)
        return Workshop.checksum(node) == before

    # A mounted filesystem may write to it by itself, once in a while; a refusal would write every time.
    assert untouched() or untouched() or untouched()


# What holds data is refused, unless the user names that very device.

Holding = Callable[[Workshop], str]


def make_ext4(workshop: Workshop, node: str) -> None:
    # Without lazy initialisation: nothing writes to the device after the mount.
    workshop.run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", node)


def ext4(workshop: Workshop) -> str:
    node = workshop.loop(32)
    make_ext4(workshop, node)
    return node


def xfs(workshop: Workshop) -> str:
    node = workshop.loop(320)
    workshop.run("mkfs.xfs", "-q", node)
    return node


def btrfs_pair(workshop: Workshop) -> tuple[str, str]:
    pair = workshop.loop(128), workshop.loop(128)
    workshop.run("mkfs.btrfs", "--quiet", "-d", "raid1", "-m", "raid1", *pair)
    return pair


def second_btrfs_member(workshop: Workshop) -> str:
    return btrfs_pair(workshop)[1]


def disk_with_empty_partition(workshop: Workshop) -> str:
    node = workshop.loop(32)
    workshop.partition(node)
    return node


def swap_partition_off(workshop: Workshop) -> str:
    [part] = workshop.partition(workshop.loop(48))
    workshop.run("mkswap", part)
    return part


HOLDING: dict[Holding, str] = {
    ext4: "ext2/3/4",
    second_btrfs_member: "btrfs",
    disk_with_empty_partition: "has partitions",
    swap_partition_off: "swap",
}
"""What no image of ``images`` is: of the tool on a device, on more than one, or on a part of one."""


@on_devices
@pytest.mark.parametrize(("make", "what"), HOLDING.items())
def test_a_device_that_holds_data_is_written_only_when_it_is_named(
    workshop: Workshop, make: Holding, what: str
) -> None:
    node, other = make(workshop), workshop.loop(1)
    by_id = link(workshop, node)
    before = Workshop.checksum(node)
    for path in (node, by_id):
        assert what in refusal(path)
        assert "which is not the target" in refusal(path, other)
    assert any(what in lifted for lifted in allowed(node, by_id))
    assert any(what in lifted for lifted in allowed(by_id, other, node, machine=Elsewhere()))
    assert Workshop.checksum(node) == before


@on_devices
def test_naming_the_disk_does_not_give_up_its_partition_nor_the_other_way_round(workshop: Workshop) -> None:
    disk = workshop.loop(48)
    [part] = workshop.partition(disk)
    make_ext4(workshop, part)
    assert "ext2/3/4" in refusal(part, disk)
    assert "has partitions" in refusal(disk, part)


@on_devices
def test_an_empty_device_or_partition_is_written_only_when_it_is_named(workshop: Workshop) -> None:
    disk = workshop.loop(48)
    [part] = workshop.partition(disk)
    for node in (workshop.loop(8), part):
        assert "all zero in 64 sampled places" in refusal(node)
        assert "all zero in 64 sampled places" in refusal(node, disk)
        assert allowed(node, node) == ("was not made by iodelta (all zero in 64 sampled places)",)


@on_devices
def test_a_loop_device_over_a_file_that_iodelta_made_needs_no_name(workshop: Workshop) -> None:
    image = workshop.file(48)
    record(HERE, str(image))
    node = workshop.loop(image)
    [part] = workshop.partition(node)
    assert allowed(part) == ()
    image.rename(image.with_name("moved"))
    workshop.file(48, image.name)  # a file of that name, which is not behind the device
    assert "was not made by iodelta" in refusal(part)


@on_devices
def test_own_detection_does_not_need_blkid(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    node = xfs(workshop)
    tools = workshop.place / "tools"
    tools.mkdir()
    for tool in ("dd", "stat", "readlink", "sh", "test"):
        (tools / tool).symlink_to(f"/usr/bin/{tool}")
    monkeypatch.setenv("PATH", str(tools))
    assert "signature: XFS" in refusal(node)


@on_devices
def test_a_device_that_cannot_be_read_is_refused(workshop: Workshop) -> None:
    assert "Input/output error" in refusal(workshop.loop(8), machine=Failing())


@on_devices
def test_while_a_permit_is_held_the_kernel_keeps_others_off_but_fio_may_write(workshop: Workshop) -> None:
    node = ext4(workshop)
    point = workshop.place / "point"
    point.mkdir()
    with check_write(HERE, resolve(HERE, node), [node]) as permit:
        mounting = subprocess.run(["mount", node, point], capture_output=True, check=False)
        assert mounting.returncode != 0
        assert b"busy" in mounting.stderr
        workshop.run("fio", "--name=write", f"--filename={node}", "--rw=randwrite", "--size=1m", "--output=/dev/null")
        permit.recheck()
    workshop.run("wipefs", "--all", node)  # opens the device exclusively


@on_devices
def test_a_device_that_only_the_kernel_knows_to_be_in_use_is_refused(workshop: Workshop) -> None:
    node = workshop.loop(8)
    descriptor = os.open(node, os.O_RDONLY | os.O_EXCL)  # as an imported ZFS pool does, which sysfs does not show
    try:
        assert "another program has opened it for itself" in refusal(node, node)
    finally:
        os.close(descriptor)


@on_devices
def test_a_device_mounted_after_the_permit_is_noticed_before_the_next_trial(workshop: Workshop) -> None:
    node = ext4(workshop)
    with check_write(Elsewhere(), resolve(HERE, node), [node]) as permit:
        permit.recheck()
        workshop.mount(node)
        with pytest.raises(RefusedError, match="is mounted on"):
            permit.recheck()


@pytest.mark.root
def test_a_device_number_given_to_another_disk_does_not_redirect_writes(workshop: Workshop) -> None:
    mine, other = workshop.file(8), workshop.file(8)
    attached = workshop.attach(mine)
    node = attached.node
    with check_write(Elsewhere(), resolve(HERE, node), [node]) as permit:
        with no_other_takes_loops():
            attached.detach()
            attach(node, other)
        workshop.undo(lambda: workshop.run("losetup", "--detach", node))
        with pytest.raises(RefusedError, match="another device"):
            permit.recheck()


@on_devices
def test_a_link_that_is_turned_to_another_disk_does_not_redirect_writes(workshop: Workshop) -> None:
    first, second = workshop.loop(8), workshop.loop(8)
    path = link(workshop, first)
    with check_write(HERE, resolve(HERE, str(path)), [str(path)]) as permit:
        path.unlink()
        path.symlink_to(second)
        with pytest.raises(RefusedError, match="another device"):
            permit.recheck()
        path.unlink()
        with pytest.raises(RefusedError, match="vanished"):
            permit.recheck()


@on_devices
def test_a_device_exchanged_between_the_look_and_the_permit_is_refused(workshop: Workshop) -> None:
    first, second = workshop.loop(8), workshop.loop(8)
    path = link(workshop, first)
    target = resolve(HERE, str(path))
    path.unlink()
    path.symlink_to(second)
    with pytest.raises(RefusedError, match="another device"):
        check_write(HERE, target)


@on_devices
def test_what_stands_against_a_write_is_known_without_asking_the_device(workshop: Workshop) -> None:
    node = ext4(workshop)
    name = os.path.basename(node)
    machine = Elsewhere()
    target = resolve(machine, node)
    before = Path(f"/sys/block/{name}/stat").read_text()
    refuse_reasons(machine, target)
    assert Path(f"/sys/block/{name}/stat").read_text() == before
    assert set(machine.asked) <= {"stat", "readlink", "test", "losetup"}


# Files.


def test_a_file_with_contents_is_written_only_when_it_is_named(tmp_path: Path) -> None:
    path, other = tmp_path / "vm.img", tmp_path / "other.img"
    path.write_bytes(b"precious")
    other.write_bytes(b"x")
    assert "was not made by iodelta (not empty: text)" in refusal(path)
    assert "which is not the target" in refusal(path, other)
    assert allowed(path, path) == ("was not made by iodelta (not empty: text)",)


def test_a_scratch_file_may_be_written_and_found_again_by_the_next_run(tmp_path: Path) -> None:
    directory = make_scratch(str(tmp_path))
    assert allowed(made_in(directory)) == ()
    assert make_scratch(str(tmp_path)) == directory


def make_scratch(parent: str) -> str:
    """A scratch directory, which stays because there is a file in it."""
    with scratch_directory(HERE, parent, "", {}) as inside:
        Path(inside, "kept").touch()
    return inside


def test_an_empty_scratch_directory_is_removed_and_one_in_use_stays(tmp_path: Path) -> None:
    with scratch_directory(HERE, str(tmp_path), "", {}) as inside:
        assert is_scratch(HERE, inside)
    assert list(tmp_path.iterdir()) == []
    assert Path(make_scratch(str(tmp_path))).is_dir()


def made_in(directory: str | Path) -> Path:
    """A file that iodelta made there."""
    path = Path(directory) / "data"
    path.write_bytes(b"old scratch data")
    record(HERE, str(path))
    return path


def copied_over(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)


def renamed(path: Path) -> None:
    path.with_name("other").write_bytes(b"precious")
    path.with_name("other").rename(path)


def given_another_name(path: Path) -> None:
    path.with_name("other").hardlink_to(path)


def turned_into_a_link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to(path.with_name("other"))


def record_of_an_earlier_version(path: Path) -> None:
    note = path.with_name(f".{path.name}.iodelta")
    note.write_text(f'{{"made by": "iodelta", "inode": {path.stat().st_ino}}}')


def record_turned_into_a_link(path: Path) -> None:
    note = path.with_name(f".{path.name}.iodelta")
    note.rename(path.with_name("note"))
    note.symlink_to(path.with_name("note"))


@pytest.mark.parametrize(
    "change",
    [
        copied_over,
        renamed,
        given_another_name,
        turned_into_a_link,
        record_of_an_earlier_version,
        record_turned_into_a_link,
    ],
)
def test_what_iodelta_made_is_known_by_its_inode_and_not_by_its_name(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = made_in(make_scratch(str(tmp_path)))
    change(path)
    assert "was not made by iodelta" in refusal(path) or "hard links" in refusal(path)


def test_a_file_that_took_the_inode_of_one_that_was_deleted_is_another_file(tmp_path: Path) -> None:
    path = made_in(tmp_path)
    note = path.with_name(".data.iodelta")
    known = json.loads(note.read_text())
    assert known["inode"] == str(path.stat().st_ino)
    note.write_text(json.dumps({**known, "born": "2001-01-01 00:00:00.000000000 +0000"}))
    assert "was not made by iodelta" in refusal(path)


def test_a_directory_of_the_users_does_not_become_scratch_by_its_name(tmp_path: Path) -> None:
    theirs = tmp_path / "iodelta-scratch"
    theirs.mkdir()
    (theirs / ".hidden").write_bytes(b"precious")
    with pytest.raises(RefusedError, match="iodelta did not make it"):
        make_scratch(str(tmp_path))
    assert not is_scratch(HERE, str(theirs))


@on_devices
@pytest.mark.parametrize("whose", ["", "IODELTA-SCRATCH.txt"], ids=["directory", "mark"])
def test_a_mark_that_another_user_wrote_makes_no_scratch_directory(tmp_path: Path, whose: str) -> None:
    theirs = Path(make_scratch(str(tmp_path)))
    os.chown(theirs / whose, 65534, 65534)
    assert not is_scratch(HERE, str(theirs))
    with pytest.raises(RefusedError, match="belongs to user 65534 and you are user 0"):
        make_scratch(str(tmp_path))


@on_devices
@pytest.mark.parametrize("whose", ["data", ".data.iodelta"])
def test_a_file_or_record_of_another_user_makes_no_scratch_file(tmp_path: Path, whose: str) -> None:
    path = made_in(tmp_path)
    os.chown(tmp_path / whose, 65534, 65534)
    assert "was not made by iodelta" in refusal(path)


@on_devices
def test_nothing_is_written_into_an_empty_directory_of_another_user(tmp_path: Path) -> None:
    theirs = tmp_path / "iodelta-scratch"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    with pytest.raises(RefusedError, match="belongs to user 65534"):
        make_scratch(str(tmp_path))
    assert list(theirs.iterdir()) == []


def test_a_link_makes_no_scratch_directory_and_is_not_followed(tmp_path: Path) -> None:
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "iodelta-scratch"
    elsewhere.mkdir()
    here.symlink_to(elsewhere)
    with pytest.raises(RefusedError, match="is a symbolic link, where iodelta makes a directory"):
        make_scratch(str(tmp_path))
    assert list(elsewhere.iterdir()) == []
    here.unlink()
    mark, text = Path(make_scratch(str(tmp_path)), "IODELTA-SCRATCH.txt"), elsewhere / "text"
    mark.rename(text)
    mark.symlink_to(text)
    assert not is_scratch(HERE, str(here))
    with pytest.raises(RefusedError, match="is a symbolic link, where iodelta makes a regular file"):
        make_scratch(str(tmp_path))


def test_others_cannot_put_anything_into_a_scratch_directory(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert Path(make_scratch(str(tmp_path))).stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_a_scratch_directory_that_was_begun_before_a_crash_is_finished(tmp_path: Path) -> None:
    (tmp_path / "iodelta-scratch").mkdir()
    assert is_scratch(HERE, make_scratch(str(tmp_path)))


def test_where_no_scratch_directory_can_be_made_the_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="part of it is missing"):
        make_scratch(str(tmp_path / "missing"))


def test_a_directory_itself_is_never_written(tmp_path: Path) -> None:
    assert "is a directory" in refusal(tmp_path)


def test_another_name_for_scratch_data_is_still_the_users_file(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_bytes(b"precious")
    scratch = Path(make_scratch(str(tmp_path))) / "data"
    scratch.hardlink_to(path)
    assert "hard links" in refusal(scratch)
    linked = scratch.with_name("linked")
    path2 = tmp_path / "mine2"
    path2.write_bytes(b"precious")
    linked.symlink_to(path2)
    assert "was not made by iodelta" in refusal(linked)


LAYERS = (("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "work"))


def lower_and_upper(workshop: Workshop, layer: str, *, relative: bool = False) -> tuple[Path, Path]:
    """A file in a layer of an overlayfs, and the same as overlayfs shows it."""
    place = workshop.place
    for name in ("lower", "upper", "work", "merged"):
        (place / name).mkdir()
    image = place / layer / "disk.img"
    with open(image, "wb") as file:
        file.truncate(32 * MIB)
    how = ",".join(f"{name}={'' if relative else f'{place}/'}{what}" for name, what in LAYERS)
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", how, "merged"], check=True, cwd=place)
    workshop.undo(lambda: unmount(place / "merged"))
    return image, place / "merged" / "disk.img"


def alias_by_overlay_of_upper(workshop: Workshop) -> tuple[Path, Path]:
    return lower_and_upper(workshop, "upper")


def alias_by_overlay_of_lower(workshop: Workshop) -> tuple[Path, Path]:
    return lower_and_upper(workshop, "lower")


def layer_below_the_attached_file(workshop: Workshop) -> tuple[Path, Path]:
    image, shown = lower_and_upper(workshop, "upper")
    return shown, image


def alias_by_overlay_of_relative_layers(workshop: Workshop) -> tuple[Path, Path]:
    return lower_and_upper(workshop, "upper", relative=True)


def alias_by_overlay_bound_elsewhere(workshop: Workshop) -> tuple[Path, Path]:
    image, shown = lower_and_upper(workshop, "upper")
    point = workshop.place / "bound.img"
    point.touch()
    workshop.run("mount", "--bind", shown, point)
    workshop.undo(lambda: unmount(point))
    return image, point


def alias_by_bind_mount(workshop: Workshop) -> tuple[Path, Path]:
    image, point = workshop.file(32), workshop.place / "bound.img"
    point.touch()
    workshop.run("mount", "--bind", image, point)
    workshop.undo(lambda: unmount(point))
    return image, point


def alias_by_hard_link(workshop: Workshop) -> tuple[Path, Path]:
    image = workshop.file(32)
    other = workshop.place / "other.img"
    other.hardlink_to(image)
    return image, other


def alias_by_link(workshop: Workshop) -> tuple[Path, Path]:
    image = workshop.file(32)
    return image, link(workshop, image)


ALIASES = (
    alias_by_overlay_of_upper,
    alias_by_overlay_of_lower,
    layer_below_the_attached_file,
    alias_by_overlay_bound_elsewhere,
    alias_by_overlay_of_relative_layers,
    alias_by_bind_mount,
    alias_by_hard_link,
    alias_by_link,
)


@on_devices
@pytest.mark.parametrize("make", ALIASES, ids=lambda make: make.__name__)
def test_no_other_name_of_a_file_behind_a_loop_device_can_be_written(
    workshop: Workshop, make: Callable[[Workshop], tuple[Path, Path]]
) -> None:
    image, alias = make(workshop)
    node = workshop.loop(image)
    make_ext4(workshop, node)
    workshop.mount(node)
    assert f"is attached as {node}" in refusal(alias, alias)
    second = workshop.loop(alias)
    assert "has the same backing file as" in refusal(second, second)


@on_devices
def test_a_second_name_of_a_deleted_file_behind_a_loop_device_is_refused(workshop: Workshop) -> None:
    image, other = alias_by_hard_link(workshop)
    node = workshop.loop(image)
    image.unlink()
    assert f"is attached as {node}" in refusal(other, other)


@on_devices
def test_an_open_file_behind_a_loop_device_is_refused_by_its_descriptor(workshop: Workshop) -> None:
    image = workshop.file(8)
    node = workshop.loop(image)
    with open(image, "rb") as file:
        path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        assert f"is attached as {node}" in refusal(path, path)


@on_devices
def test_a_loop_device_over_a_loop_device_in_use_is_refused(workshop: Workshop) -> None:
    lower = ext4(workshop)
    upper = workshop.loop(lower)
    workshop.mount(lower)
    assert "is mounted on" in refusal(upper, upper)


# What cannot be written is refused before anything starts.


def set_read_only(workshop: Workshop, node: str) -> None:
    workshop.run("blockdev", "--setro", node)
    workshop.undo(lambda: subprocess.run(["blockdev", "--setrw", node], check=True))  # a loop device keeps it


def read_only_device(workshop: Workshop) -> tuple[str | Path, str]:
    node = workshop.loop(8)
    set_read_only(workshop, node)
    return node, f"{node}: is read-only"


def partition_of_a_read_only_disk(workshop: Workshop) -> tuple[str | Path, str]:
    disk = workshop.loop(48)
    [part] = workshop.partition(disk)
    set_read_only(workshop, disk)
    return part, "is read-only"


def device_over_a_read_only_one(workshop: Workshop) -> tuple[str | Path, str]:
    lower = workshop.loop(8)
    upper = workshop.loop(lower)
    set_read_only(workshop, lower)
    return upper, f"{lower}: is read-only"


def immutable_file(workshop: Workshop) -> tuple[str | Path, str]:
    return attributed(workshop, "+i"), "may not be written"


def append_only_file(workshop: Workshop) -> tuple[str | Path, str]:
    return attributed(workshop, "+a"), "cannot be opened for writing"


def attributed(workshop: Workshop, what: str) -> Path:
    point = workshop.mount(ext4(workshop))
    path = point / "data"
    path.write_bytes(b"precious")
    workshop.run("chattr", what, path)
    workshop.undo(lambda: subprocess.run(["chattr", f"-{what[1]}", path], check=True))
    return path


def file_on_a_read_only_mount(workshop: Workshop) -> tuple[str | Path, str]:
    node = ext4(workshop)
    point = workshop.place / "first"
    point.mkdir()
    workshop.run("mount", node, point)
    (point / "data").write_bytes(b"precious")
    unmount(point)
    return workshop.mount(node, "-o", "ro") / "data", "mounted read-only"


READ_ONLY = (
    read_only_device,
    partition_of_a_read_only_disk,
    device_over_a_read_only_one,
    immutable_file,
    append_only_file,
    file_on_a_read_only_mount,
)


@on_devices
@pytest.mark.parametrize("make", READ_ONLY, ids=lambda make: make.__name__)
def test_what_cannot_be_written_is_refused_whatever_the_user_says(
    workshop: Workshop, make: Callable[[Workshop], tuple[str | Path, str]]
) -> None:
    path, what = make(workshop)
    before = Workshop.checksum(path)
    assert what in refusal(path, path)
    assert what in refusal(path, path, machine=Elsewhere())
    assert Workshop.checksum(path) == before


@on_devices
def test_a_directory_in_which_nothing_can_be_made_is_refused_in_the_plan(workshop: Workshop) -> None:
    point = workshop.mount(ext4(workshop))
    closed = point / "closed"
    closed.mkdir()
    workshop.run("chattr", "+i", closed)
    workshop.undo(lambda: subprocess.run(["chattr", "-i", closed], check=True))
    assert "may not be written" in str(refuse_reasons(HERE, resolve(HERE, str(closed)), MIB))


@on_devices
def test_looking_at_a_file_changes_nothing_of_it(workshop: Workshop) -> None:
    path = workshop.place / "data"
    path.write_bytes(b"precious" * 1000)
    os.utime(path, ns=(1, 1))
    allowed(path, path)
    seen = path.stat()
    assert (seen.st_size, seen.st_mtime_ns, path.read_bytes()) == (8000, 1, b"precious" * 1000)


@on_devices
def test_an_active_swap_file_is_refused(workshop: Workshop) -> None:
    path = workshop.place / "swapfile"
    path.write_bytes(bytes(16 * MIB))
    path.chmod(0o600)
    workshop.run("mkswap", path)
    workshop.swap_on(path)
    assert "is swapped on" in refusal(path, path)


@on_devices
def test_a_file_that_does_not_fit_is_refused_before_anything_starts(workshop: Workshop) -> None:
    point = workshop.mount(ext4(workshop))
    (point / "data").touch()
    assert "MiB are needed" in refusal(point / "data", size=100 * MIB)
    reasons = refuse_reasons(HERE, resolve(HERE, str(point)), 100 * MIB)
    assert [reason.absolute for reason in reasons] == [True]
    assert refuse_reasons(HERE, resolve(HERE, str(point)), 10 * MIB) == ()


@pytest.mark.parametrize("path", ["/proc/sys/vm/swappiness", "/sys/kernel/uevent_seqnum"])
def test_files_of_the_kernel_are_never_written(path: str) -> None:
    target = resolve(HERE, path)
    with pytest.raises(RefusedError, match="interface of the kernel"):
        check_write(HERE, target, [path])


@on_devices
def test_a_device_name_spelt_wrong_that_became_a_file_is_refused() -> None:
    path = Path("/dev/iodelta-test-sdx")
    path.touch()
    try:
        with pytest.raises(RefusedError, match="interface of the kernel"):
            check_write(HERE, resolve(HERE, str(path)), [str(path)])
    finally:
        path.unlink()


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/dev/full"])
def test_a_character_device_is_no_target(path: str) -> None:
    with pytest.raises(RequestError, match="neither a block device nor"):
        resolve(HERE, path)


def test_naming_something_that_does_not_exist_is_an_error_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"precious")
    with pytest.raises(IodeltaError, match="--destroy: there is nothing"):
        check_write(HERE, resolve(HERE, str(path)), [str(tmp_path / "dta")])


def test_free_space_that_is_not_understood_is_quoted(tmp_path: Path) -> None:
    class Odd(LocalMachine):
        def run(self, args: Sequence[str], **how: Any) -> Completed:
            odd = tuple(args[:2]) == ("stat", "-f")
            return Completed(tuple(args), 0, b"? 4096\n", b"", 0.0) if odd else super().run(args, **how)

    with pytest.raises(MachineError, match=r"stat says '\? 4096'"):
        refuse_reasons(Odd(), resolve(HERE, str(tmp_path)), MIB)
