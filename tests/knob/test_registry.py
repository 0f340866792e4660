"""Names of knobs, what can be set here, and the order in which it must be done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import RequestError
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .devices import Loop
from .rooted import Rooted, on_sda


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("block.schedular", "block.scheduler"),
        ("cpu.govenor", "cpu.governor"),
        ("cgroup.iomax", "cgroup.io_max"),
        ("cpu", "cpus"),
    ],
)
def test_an_unknown_name_is_answered_with_the_near_ones(tmp_path: Path, name: str, near: str) -> None:
    with pytest.raises(RequestError, match=rf"no such knob[^$]*did you mean [^$]*{near}"):
        on_sda(name, Rooted(tmp_path, {}))


@pytest.mark.parametrize("name", ["", "sysctl.", "sysfs:", "block.iosched.", "fio.ioengine"])
def test_a_family_alone_is_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="no such knob"):
        on_sda(name, Rooted(tmp_path, {}))


def test_what_resets_others_is_applied_before_them() -> None:
    names = [
        "memory.drop_caches", "cpus", "block.wbt_lat_usec", "block.iosched.async_depth", "block.nr_requests",
        "block.scheduler", "cpu.epp", "cpu.governor", "command",
    ]  # fmt: skip
    expected = (
        "command", "cpu.governor", "cpu.epp", "block.scheduler", "block.nr_requests", "block.wbt_lat_usec",
        "block.iosched.async_depth", "cpus", "memory.drop_caches",
    )  # fmt: skip
    assert knob.order(names) == expected


@pytest.mark.root
def test_every_knob_is_listed_with_its_values_or_the_reason_why_not(loop: Loop, machine: LocalMachine) -> None:
    loop["scheduler"] = "kyber"
    infos = {info.name: info for info in knob.catalogue(machine, resolve(machine, loop.path))}
    assert {"block.scheduler", "cpu.governor", "cgroup.io_max", "sysctl.NAME", "sysfs:PATH", "command"} <= infos.keys()
    assert all(bool(info.reason) != bool(info.allowed) for info in infos.values())
    assert infos["block.scheduler"].present == "kyber"
    assert infos["block.iosched.read_lat_nsec"].present == loop["iosched/read_lat_nsec"]
    assert "is on none" in infos["mount.options"].reason


def test_a_target_without_a_block_device_is_told_why(machine: LocalMachine) -> None:
    infos = {info.name: info for info in knob.catalogue(machine, resolve(machine, "/dev/shm"))}
    for name in ("block.scheduler", "block.nr_requests", "block.iosched.*", "cgroup.io_max"):
        assert infos[name].reason.startswith("needs a block device: tmpfs has no block device")


def test_a_variant_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    machine = Rooted(
        tmp_path, {"/sys/block/sda/queue/scheduler": "[none] kyber", "/sys/block/sda/queue/nr_requests": "64"}
    )
    names = ("block.scheduler", "block.nr_requests", "cpu.governor")
    knobs = {name: on_sda(name, machine) for name in names}
    knob.check(knobs, {"block.scheduler": "kyber", "block.nr_requests": "32"})
    with pytest.raises(RequestError, match=r"cpu.governor: needs cpufreq"):
        knob.check(knobs, {"block.scheduler": "kyber", "cpu.governor": "performance"})
    with pytest.raises(RequestError, match=r"block.nr_requests: '2' cannot be set"):
        knob.check(knobs, {"block.nr_requests": "2"})
    assert machine.writes == []


@pytest.mark.root
def test_an_ordinary_user_is_told_what_needs_root(loop: Loop) -> None:
    """As nobody, in a process of its own: reasons, no crash."""
    script = (
        "import os, sys; from iodelta import knob; from iodelta.machine import LocalMachine;"
        "from iodelta.probe.topology import resolve; m = LocalMachine(); os.setuid(65534);"
        "[print(i.name, '|', i.reason) for i in knob.catalogue(m, resolve(m, sys.argv[1]))]"
    )
    done = subprocess.run([sys.executable, "-c", script, loop.path], capture_output=True, text=True, check=True)
    reasons = dict(line.split(" | ") for line in done.stdout.splitlines())
    for name in ("block.scheduler", "block.nr_requests", "cgroup.io_max", "memory.drop_caches"):
        assert reasons[name].startswith("needs root: /"), name
    assert reasons["cpus"] == ""
