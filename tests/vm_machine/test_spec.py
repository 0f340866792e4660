"""A guest as a user writes it, and as qemu is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta.errors import MeasureError, RequestError
from iodelta.machine import reach
from iodelta.vm.disks import words
from iodelta.vm.spec import Disk, Spec, changed, parse
from iodelta.vm.targets import TARGETS, boot_parameters, script


def test_kernel_size_disks_and_target() -> None:
    assert parse("6.12,memory=512,cpus=2,disk=1g:iops=1000,target=null_blk:irqmode=2") == Spec(
        kernel="6.12",
        memory=512,
        cpus=2,
        disks=(Disk("virtio", "", 1 << 30, False, (("iops", "1000"),)),),
        target="null_blk",
        options=(("irqmode", "2"),),
    )
    assert parse("") == Spec()
    assert parse("disk=64m").kernel == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("6.12,disk=3", "too small"),
        ("6.12,disk=99999999999g:kept", "too large: 1024t is the most"),
        ("6.12,disk=/no/such/file", "no such file"),
        ("6.12,disk=1g:speed=3", "has no speed"),
        ("6.12,disk=1g:iops=fast", "whole number"),
        ("6.12,disk=1g:latency=3", "latency=3"),
        ("6.12,memory=16", "128 to 65536"),
        ("6.12,colour=red", "no 'colour'"),
        ("6.12,cpufreq=1000:3000", "the fastest first"),
        ("6.12,programs=a b", "is neither a module nor a program"),
        ("6.12,target=null_blk:size=$(reboot)", "OPTION=VALUE"),
    ],
)
def test_what_no_guest_has_is_refused(text: str, told: str) -> None:
    with pytest.raises(RequestError) as raised:
        parse(text)
    assert told in str(raised.value)


@pytest.mark.parametrize("target", ["ublk-null:queues=16", "null_blk:submit_queues=16"])
def test_more_queues_than_cpus_are_refused_and_nodes_and_queues_fit_a_variants_own_cpus(target: str) -> None:
    with pytest.raises(RequestError, match="cannot have 16 queues in a guest of 4 CPUs: give cpus=16"):
        parse(f"6.12,cpus=4,target={target}")
    assert parse(f"6.12,cpus=16,target={target}").cpus == 16
    base = parse("6.12,cpus=16")
    assert changed(base, {"vm.target": target, "vm.nodes": "2"}).nodes == 2
    with pytest.raises(RequestError, match="16 queues in a guest of 2 CPUs"):
        changed(base, {"vm.target": target, "vm.cpus": "2"})


def test_files_and_devices_of_this_machine_are_not_written_to(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    found = words(parse(f"disk={image}").disks, tmp_path)
    assert f"file.filename={image}" in found[1]
    assert "snapshot=on" in found[1]


def test_a_disk_is_throttled_late_or_failing() -> None:
    drive = words(parse("disk=1g:iops=1000:bps=50000000:latency=2ms").disks, Path("/x"))[1]
    for said in ("throttling.iops-total=1000", "throttling.bps-total=50000000", "latency-ns=2000000", "null-co"):
        assert said in drive
    assert "inject-error.0.sector=8" in words(parse("disk=1g:error=8").disks, Path("/x"))[1]


def test_a_variant_changes_kernel_and_guest() -> None:
    base = parse("6.1,memory=256,disk=1g:iops=1000")
    made = changed(base, {"kernel": "6.12", "kernel.cmdline": "nosmt", "vm.disk": "1g:iops=980"})
    assert (made.kernel, made.cmdline, made.memory) == ("6.12", "nosmt", 256)
    assert made.disks[0].options == (("iops", "980"),)
    assert changed(base, {"vm.memory": "300"}).disks == base.disks


def test_every_target_has_a_script_and_says_what_it_is() -> None:
    for kind, target in TARGETS.items():
        assert target.about
        assert target.script in script(kind, {})
    with pytest.raises(RequestError, match="md-raid10"):
        script("raid5", {})
    with pytest.raises(RequestError, match="layout"):
        script("md-raid10", {"layout": "x9"})
    with pytest.raises(RequestError, match="has no option speed"):
        script("brd", {"speed": "1"})


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("null_blk:irqmode=2", "null_blk.nr_devices=0"),
        ("md-raid1", "null_blk.nr_devices=0"),
        ("brd", "brd.rd_nr=1 brd.rd_size=65536"),
        ("scsi_debug:ndelay=5000", "scsi_debug.ndelay=5000"),
        ("scsi_debug", ""),
    ],
)
def test_a_driver_that_is_built_in_gets_its_parameters_at_boot(target: str, said: str) -> None:
    spec = parse(f"6.12,target={target}")
    assert boot_parameters(spec.target, dict(spec.options)) == said


def test_a_kernel_that_is_not_here_is_told_with_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODELTA_CACHE", str(tmp_path))
    with pytest.raises(MeasureError) as raised, reach("vm:99.1"):
        pass
    assert raised.value.exit_code == 4
    assert "iodelta kernel fetch 99.1" in raised.value.remedy
