"""Kernels on a host: what they are called, which way leads to them, and how a boot loader names its entries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from fakes import PaperMachine

from iodelta.errors import KnobError, MeasureError
from iodelta.knob import knob, restore
from iodelta.knob.kernel import Grub, Image, Kernel, Kexec, SystemdBoot, grub_entries, installed, ways
from iodelta.knob.registry import restore_script

from .rooted import target

OLD, NEW = "6.1.0-9-amd64", "6.12.5-1-amd64"
BOOT = {f"/boot/{name}": "" for name in (f"vmlinuz-{OLD}", f"initrd.img-{OLD}", f"vmlinuz-{NEW}", f"initrd.img-{NEW}")}
RUNS = {"uname -r": OLD, "uname -v": "#1 SMP Debian", "id -u": "0\n", "stat -f -c %T -- /var/lib/iodelta": "ext2/ext3"}
KEXEC = {"/sys/kernel/kexec_loaded": "0\n", "/proc/sys/kernel/kexec_load_disabled": "0\n"}
CMDLINE = "BOOT_IMAGE=/vmlinuz root=/dev/sda2 quiet"

GRUB = r"""
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
fi
function recordfail {
  linux /not/an/entry
}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-99' {
        linux   /boot/vmlinuz-6.12.5-1-amd64 root=UUID=99 ro quiet
        initrd  /boot/initrd.img-6.12.5-1-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-99' {
        menuentry 'Debian GNU/Linux, with Linux 6.1.0-9-amd64' $menuentry_id_option 'gnulinux-6.1.0-9-advanced-99' {
                linux   /boot/vmlinuz-6.1.0-9-amd64 root=UUID=99 ro quiet
        }
        menuentry "Recovery mode" {
                linux   /boot/vmlinuz-6.1.0-9-amd64 root=UUID=99 ro single
        }
}
"""


def machine(
    files: Mapping[str, str] = MappingProxyType({}),
    commands: Mapping[str, str] = MappingProxyType({}),
    programs: str = "kexec",
) -> PaperMachine:
    """A host that runs the old kernel, and has these programs."""
    has = {f'sh -c command -v "$0" {name}': name for name in programs.split()}
    return PaperMachine({**BOOT, **KEXEC, "/proc/cmdline": CMDLINE, **files}, {**RUNS, **has, **commands})


def kernel(where: PaperMachine) -> Kernel:
    made = knob("kernel", where, target())
    assert isinstance(made, Kernel)
    return made


def test_a_kernel_is_called_by_the_beginning_of_its_release() -> None:
    one = kernel(machine({f"/lib/modules/{NEW}/vmlinuz": "", "/boot/vmlinuz-6.12.30-1-amd64": ""}))
    assert list(installed(one.machine)) == [OLD, NEW, "6.12.30-1-amd64"]
    assert one.image("6.1").image == f"/boot/vmlinuz-{OLD}"
    assert one.image(NEW).initrd == f"/boot/initrd.img-{NEW}"
    assert one.image("").build == "#1 SMP Debian"
    with pytest.raises(MeasureError, match=r"no kernel '6\.13'.*there are: 6\.1\.0"):
        one.image("6.13")
    with pytest.raises(MeasureError, match="has no initrd"):
        one.image("6.12.30")
    with pytest.raises(MeasureError, match="there is no '/boot/none'"):
        one.image("/boot/none:/boot/none.img")


def test_without_the_image_of_the_running_kernel_there_is_no_way_back() -> None:
    where = machine({"/boot/vmlinuz-linux": "", "/boot/initramfs-linux.img": ""})
    del where.files[f"/boot/initrd.img-{OLD}"]
    with pytest.raises(MeasureError, match=r"no initrd of the running kernel.*not be booted again"):
        kernel(where).image("")
    where.files["/sys/kernel/boot_params/data"] = "\0" * 4096  # it began without one
    assert kernel(where).image("").initrd == ""
    del where.files[f"/boot/vmlinuz-{OLD}"]
    with pytest.raises(MeasureError, match=r"no image of the running kernel.*not be booted again"):
        kernel(where).image("")


def test_grub_calls_an_entry_by_its_menus_and_functions_are_none() -> None:
    first, second, third = grub_entries(GRUB)
    assert first == ("gnulinux-simple-99", f"/boot/vmlinuz-{NEW}")
    assert second == ("gnulinux-advanced-99>gnulinux-6.1.0-9-advanced-99", f"/boot/vmlinuz-{OLD}")
    assert third[0] == "gnulinux-advanced-99>Recovery mode"


def test_the_ways_are_tried_in_their_order_and_each_says_what_it_lacks() -> None:
    found, reasons = ways(machine())
    assert [way.name for way in found] == ["kexec"]
    assert reasons == ["grub-reboot: no GRUB there", "bootctl set-oneshot: no systemd-boot there"]
    files = {"/boot/grub/grub.cfg": GRUB, "/proc/sys/kernel/kexec_load_disabled": "1\n"}
    probed = {"grub-probe --target=abstraction /boot/grub": "\n", "grub-probe --target=fs /boot/grub": "ext2\n"}
    programs = "kexec grub-reboot grub-probe grub-editenv"
    found, reasons = ways(machine(files, commands=probed, programs=programs))
    assert [way.name for way in found] == ["grub-reboot"]
    assert "switched off there" in reasons[0]
    image = Image(OLD, f"/boot/vmlinuz-{OLD}")
    assert found[0].choose(image, "") == ("grub-reboot", "gnulinux-advanced-99>gnulinux-6.1.0-9-advanced-99")
    with pytest.raises(KnobError, match="no entry that boots /boot/vmlinuz-5"):
        found[0].choose(Image("5", "/boot/vmlinuz-5"), "")
    probed["grub-probe --target=fs /boot/grub"] = "btrfs\n"
    assert "cannot write on btrfs" in Grub(machine(files, commands=probed, programs=programs)).missing()
    assert "needs kexec (package kexec-tools)" in Kexec(machine(programs="")).missing()


def test_systemd_boot_and_boot_loader_entries_are_found_by_release_or_image() -> None:
    entries = f'[{{"id":"auto","linux":null}},{{"id":"m-{NEW}.conf","version":"{NEW}","linux":"/m/{NEW}/linux"}}]'
    commands = {"bootctl is-installed": "yes", "bootctl list --json=short": entries}
    boot = SystemdBoot(machine(commands=commands, programs="bootctl"))
    assert boot.missing() == ""
    assert boot.choose(Image(NEW, f"/boot/vmlinuz-{NEW}"), "") == ("bootctl", "set-oneshot", f"m-{NEW}.conf")
    with pytest.raises(KnobError, match=f"no entry that boots {OLD}"):
        boot.choose(Image(OLD, f"/boot/vmlinuz-{OLD}"), "")
    snippet = {f"/boot/loader/entries/m-{NEW}.conf": f"linux /vmlinuz-{NEW}\n"}
    files = {"/boot/grub2/grub.cfg": "blscfg next_entry", **snippet}
    fedora = Grub(machine(files, programs="grub2-reboot"))
    assert fedora.choose(Image(NEW, f"/boot/vmlinuz-{NEW}"), "") == ("grub2-reboot", f"m-{NEW}")


def test_the_record_is_the_way_back_also_without_iodelta() -> None:
    where = machine()
    one = kernel(where)
    one.available = lambda: None  # type: ignore[method-assign]  # else of a host over SSH alone
    saved = one.save()
    script = restore_script([saved])
    assert f"kexec -a -l /boot/vmlinuz-{OLD} --initrd=/boot/initrd.img-{OLD}" in script
    assert CMDLINE in script
    assert restore(where, saved) == f"nothing to do: {OLD} runs"
    where.commands["uname -r"] = NEW
    with pytest.raises(KnobError, match=f"{NEW} runs, and {OLD} did before.*\n.*reboot"):
        restore(where, saved)
    where.files["/etc/machine-id"] = "another"
    assert "another machine" in restore(where, saved)


def test_a_way_back_that_a_reboot_would_lose_is_refused() -> None:
    where = machine()
    where.commands["stat -f -c %T -- /var/lib/iodelta"] = "tmpfs"
    one = kernel(where)
    one.available = lambda: None  # type: ignore[method-assign]
    with pytest.raises(KnobError, match="would lose the record of the first kernel"):
        one.save()


def test_this_machine_is_not_started_anew() -> None:
    assert "over SSH" in (kernel(machine()).available() or "")
