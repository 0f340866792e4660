"""A guest's initramfs is the same byte for byte, and holds what it was asked to hold."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import parse
from iodelta.lab.boots import look_at_guests
from iodelta.machine.vm import VmMachine
from iodelta.path.plan import make_plan
from iodelta.vm import guest, kernels, modules, packages
from iodelta.vm.cpio import Entry, archive, link, node, program


def bzimage(release: str) -> bytes:
    """As much of a bzImage as says its release."""
    head = bytearray(0x400)
    head[0x202:0x206] = b"HdrS"
    head[0x20E:0x210] = (0x100).to_bytes(2, "little")
    text = f"{release} (somebody@somewhere) #1 SMP".encode()
    head[0x300 : 0x300 + len(text)] = text
    return bytes(head)


def ko(depends: str, *soft: str) -> bytes:
    """As much of a module as says what it needs."""
    return (
        b"\x7fELF\0depends=" + depends.encode() + b"\0" + b"".join(b"softdep=pre: " + s.encode() + b"\0" for s in soft)
    )


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IODELTA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fetched(cached: Path, release: str, version: str) -> Path:
    place = cached / "kernels" / release
    (place / "boot").mkdir(parents=True)
    (place / "boot" / f"vmlinuz-{release}").write_bytes(bzimage(release))
    (place / "package.json").write_text(f'{{"package": "linux-image-{release}", "version": "{version}"}}')
    return place


def test_an_archive_does_not_depend_on_order_or_time_and_is_what_cpio_reads(tmp_path: Path) -> None:
    files = {"b/two": Entry(b"2"), "a": program(b"#!"), "/dev/console": node(5, 1), "bin/sh": link("a")}
    made = archive(files)
    assert made == archive(dict(reversed(files.items())))
    assert len(made) % 512 == 0
    listed = subprocess.run(["busybox", "cpio", "-t"], input=made, capture_output=True, check=True).stdout.split()
    assert listed == [b"a", b"b", b"b/two", b"bin", b"bin/sh", b"dev", b"dev/console"]


def test_modules_are_loaded_after_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "fs.ko.xz").write_bytes(lzma.compress(ko("lib_crc", "crc32c", "blake2b-256")))
    (tmp_path / "lib-crc.ko").write_bytes(ko("", "sha9"))
    (tmp_path / "crc32c_generic.ko").write_bytes(ko(""))
    (tmp_path / "blake2b_generic.ko").write_bytes(ko(""))
    needed = modules.Modules(str(tmp_path), {}).needed(["fs"])
    assert [Path(one).name for one in needed.load] == [
        *("crc32c_generic.ko", "blake2b_generic.ko", "lib-crc.ko", "fs.ko.xz"),
    ]
    assert needed.missing == {}


def test_what_a_kernel_lacks_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "raid10.ko").write_bytes(ko("md_mod"))
    known = modules.Modules(str(tmp_path), {"BLK_DEV_NULL_BLK": "y", "MD_RAID10": "m"})
    needed = known.needed(["null_blk", "ublk_drv", "raid10"])
    assert needed.load == ()
    assert needed.missing == {
        "ublk_drv": "needs ublk_drv: kernel has no CONFIG_BLK_DEV_UBLK",
        "raid10": "needs raid10: kernel has no module md_mod",
    }


def test_a_module_that_is_no_archive_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.ko.xz").write_bytes(b"not xz")
    with pytest.raises(MeasureError, match=r"x\.ko\.xz"):
        modules.unpacked(tmp_path / "x.ko.xz")


def test_6_1_is_a_series_and_not_the_beginning_of_6_12(cached: Path) -> None:
    fetched(cached, "6.1.0-55-cloud-amd64", "6.1.190-1")
    fetched(cached, "6.1.0-56-cloud-amd64", "6.1.192-2")
    fetched(cached, "6.12.117+deb12-cloud-amd64", "6.12.117-1~deb12u1")
    assert kernels.find("6.1").release == "6.1.0-56-cloud-amd64"
    assert kernels.find("6.1.190").release == "6.1.0-55-cloud-amd64"
    assert kernels.find("6.12").release == "6.12.117+deb12-cloud-amd64"
    with pytest.raises(MeasureError, match=r"iodelta kernel fetch 6\.9"):
        kernels.find("6.9")


def test_a_build_tree_and_an_image_with_its_modules_are_kernels_too(tmp_path: Path, cached: Path) -> None:
    tree = tmp_path / "linux"
    (tree / "arch/x86/boot").mkdir(parents=True)
    (tree / "arch/x86/boot/bzImage").write_bytes(bzimage("6.13.0-rc1-dirty"))
    (tree / ".config").write_text("CONFIG_BLK_DEV_NULL_BLK=y\n# CONFIG_MD is not set\n")
    found = kernels.find(str(tree))
    assert (found.release, found.options()) == ("6.13.0-rc1-dirty", {"BLK_DEV_NULL_BLK": "y"})
    image = kernels.find(f"{tree}/arch/x86/boot/bzImage:{tmp_path}")
    assert (image.release, image.modules) == ("6.13.0-rc1-dirty", str(tmp_path))


def test_a_file_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vmlinux").write_bytes(b"\x7fELF" + bytes(2000))
    with pytest.raises(RequestError, match="not a bzImage"):
        kernels.find(str(tmp_path / "vmlinux"))
    with pytest.raises(RequestError, match="no kernel in this directory"):
        kernels.find(str(tmp_path))


def test_a_damaged_note_beside_a_fetched_kernel_says_what_to_remove(cached: Path) -> None:
    (fetched(cached, "6.1.0-56-cloud-amd64", "6.1.192-2") / "package.json").write_text("{")
    with pytest.raises(MeasureError, match="fetch the kernel again"):
        kernels.find("6.1")
    with pytest.raises(MeasureError, match="fetch the kernel again"):
        packages.fetch(packages.Package("linux-image-6.1.0-56-cloud-amd64", "6.1.0-56-cloud-amd64", "6.1.192-2"))


def test_a_row_of_packages_is_taken_by_version_and_its_ends_are_in_it() -> None:
    row = [packages.Package("p", v, v) for v in ("6.12.99-1", "6.12.100-1", "6.12.111-2~deb12u1", "6.12.117-1")]
    assert [one.version for one in packages.between("6.12.100", "6.12.111", row)] == [
        "6.12.100-1",
        "6.12.111-2~deb12u1",
    ]
    with pytest.raises(MeasureError, match=r"it has 6\.12\.99-1"):
        packages.between("5.10", "5.15", row)


def test_all_that_a_first_guest_lacks_is_named_at_once_with_one_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, cached: Path
) -> None:
    monkeypatch.setattr(kernels, "here", list)
    monkeypatch.setattr(shutil, "which", lambda name, path="": "/bin/sh" if name == "sh" else None)
    with pytest.raises(MeasureError) as raised:
        guest.check_present(("sh", "fio", "mdadm", "rublk"), ("", "6.12"))
    assert raised.value.exit_code == 4
    for what in ("qemu-system-x86_64", "busybox", "fio", "mdadm", "rublk", "a readable kernel", "kernel 6.12"):
        assert what in raised.value.what
    assert "apt-get install qemu-system-x86 util-linux busybox-static fio mdadm;" in raised.value.remedy
    for how in ("libaio-dev", "iodelta kernel fetch", "LIBCLANG_PATH", "libclang-common-14-dev"):
        assert how in raised.value.remedy
    with pytest.raises(MeasureError, match=r"qemu-system-x86_64.*busybox.*, kernel 6\.66") as raised:
        VmMachine("6.66").__enter__()
    assert "iodelta kernel fetch 6.66" in raised.value.remedy
    of_kernels = parse(
        'machine = "vm"\nclock = "instructions"\n[workload]\nrw = "read"\n'
        '[variant.a]\nkernel = "6.66"\n[variant.b]\nkernel = "6.67"\n'
    )
    with pytest.raises(MeasureError, match=r"busybox.*kernel 6\.66, kernel 6\.67") as raised:
        make_plan(of_kernels)
    assert "`iodelta kernel fetch 6.66 6.67` gets them" in raised.value.remedy
    assert "gcc (gcc)" not in raised.value.what, "a table that nobody asked for is left out"
    with pytest.raises(MeasureError, match=r"busybox.*gcc \(gcc\), kernel 6\.66"):
        make_plan(msgspec.structs.replace(of_kernels, anatomy="path"))


BOOTED = """
machine = "vm:target=md-raid1"
[workload]
rw = "randread"
bs = "4k"
direct = 1
hipri = 0
tool = "t/io_uring"
[variant.a]
kernel = "6.66"
[variant.b]
kernel = "6.67"
"""


def test_what_guests_of_several_kernels_lack_is_named_once_with_their_tool_and_before_any_boots(
    monkeypatch: pytest.MonkeyPatch, cached: Path
) -> None:
    known = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **more: None if name == "mdadm" else known(name, **more))
    machine = VmMachine("target=md-raid1")
    with pytest.raises(MeasureError, match=r"mdadm \(mdadm\), t/io_uring, kernel 6\.66, kernel 6\.67\n") as raised:
        look_at_guests(machine, parse(BOOTED))
    for how in ("apt-get install mdadm;", "`iodelta fio build`", "`iodelta kernel fetch 6.66 6.67`"):
        assert raised.value.remedy.count(how) == 1


def test_one_kernel_that_is_here_is_enough_to_go_on_with_reasons_for_the_others(
    monkeypatch: pytest.MonkeyPatch, cached: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **more: f"/bin/{name}")
    monkeypatch.setattr(kernels, "is_absent", lambda name: name == "6.66")
    guest.check_first(("fio",), ("6.66", "6.67"))
    with pytest.raises(MeasureError, match=r": kernel 6\.66\n"):
        guest.check_first(("fio",), ("6.66",))
