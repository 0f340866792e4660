"""Any kernel setting by its path, and no file that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .devices import Loop
from .rooted import Rooted, on_sda


@pytest.mark.root
def test_a_queue_attribute_by_its_path_is_set_and_put_back(loop: Loop, machine: LocalMachine) -> None:
    one = knob.knob(f"sysfs:/sys/class/block/{loop.name}/queue/iostats", machine, resolve(machine, loop.path))
    assert one.available() is None
    saved = one.save()
    assert saved.disks[0][0] == loop.name
    before = loop["iostats"]
    one.apply("0" if before == "1" else "1")
    assert loop["iostats"] != before
    knob.restore(machine, saved)
    assert loop["iostats"] == before


@pytest.mark.root
def test_a_path_on_a_disk_that_was_replaced_is_left_alone(loop: Loop, machine: LocalMachine, tmp_path: Path) -> None:
    one = knob.knob(f"sysfs:/sys/block/{loop.name}/queue/iostats", machine, resolve(machine, loop.path))
    saved = one.save()
    one.apply("0")
    loop.detach()
    loop.attach(tmp_path / "other.img")
    assert "is another disk now" in knob.restore(machine, saved)
    assert loop["iostats"] == "0"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/sys/../etc/passwd",
        "/proc/self/oom_score_adj",
        "sys/kernel/x",
        "/sys/*",
        "/proc/sys/../uptime",
        "/sys",
    ],
)
def test_a_path_outside_the_kernels_settings_is_refused(machine: LocalMachine, path: str) -> None:
    with pytest.raises(RequestError, match="not a path below /sys or /proc/sys"):
        on_sda(f"sysfs:{path}", machine)


def test_a_link_out_of_sysfs_is_refused(tmp_path: Path) -> None:
    machine = Rooted(tmp_path, {"/sys/kernel/plain": "1"})
    (tmp_path / "sys/kernel/link").symlink_to("/etc/passwd")
    with pytest.raises(RequestError, match="not a path below"):
        on_sda("sysfs:/sys/kernel/link", machine)
    on_sda("sysfs:/sys/kernel/plain", machine).apply("2")
    assert machine.writes == [("/sys/kernel/plain", "2")]


def test_a_record_never_makes_a_write_outside_the_kernels_settings(machine: LocalMachine, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    one = on_sda("sysfs:/sys/kernel/mm/transparent_hugepage/enabled", machine)
    boot = one.save().boot
    for path in (str(victim), f"/sys/../{victim}"):
        record = knob.Saved(one.name, "/dev/sda", ((path, "theirs"),), boot)
        with pytest.raises(KnobError, match="not a kernel setting"):
            knob.restore(machine, record)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    ("path", "better"),
    [
        ("/sys/block/sda/queue/scheduler", "block.scheduler"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "cpu.governor"),
        ("/proc/sys/vm/dirty_bytes", "sysctl.vm.dirty_bytes"),
    ],
)
def test_a_setting_that_resets_others_has_a_knob_that_knows(tmp_path: Path, path: str, better: str) -> None:
    with pytest.raises(RequestError, match=f"use {better}"):
        on_sda(f"sysfs:{path}", Rooted(tmp_path, {path: "0"}))


def test_a_bracket_list_names_the_allowed_values(tmp_path: Path) -> None:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    machine = Rooted(tmp_path, {path: "always [madvise] never"})
    one = on_sda(f"sysfs:{path}", machine)
    assert (one.read(), one.allowed()) == ("madvise", ("always", "madvise", "never"))
    with pytest.raises(RequestError, match="allowed: always, madvise, never"):
        one.check("sometimes")


@pytest.mark.parametrize(("text", "reason"), [("a\nb", "several lines"), (None, "there is no")])
def test_only_one_line_that_is_there_is_a_setting(tmp_path: Path, text: str | None, reason: str) -> None:
    machine = Rooted(tmp_path, {"/sys/kernel/x": text} if text else {"/sys/kernel/y": ""})
    assert reason in str(on_sda("sysfs:/sys/kernel/x", machine).available())


@pytest.mark.root
def test_a_file_the_kernel_offers_for_reading_only_says_so(loop: Loop, machine: LocalMachine) -> None:
    one = knob.knob(f"sysfs:/sys/block/{loop.name}/queue/logical_block_size", machine, resolve(machine, loop.path))
    assert "for reading only" in str(one.available())
