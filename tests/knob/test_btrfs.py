"""Read policies of btrfs: the one of this kernel, and those of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .devices import Loop, mounted, run
from .rooted import Rooted, target

FILE = "/sys/fs/btrfs/11-22/read_policy"


class Experimental(Rooted):
    """btrfs with CONFIG_BTRFS_EXPERIMENTAL: parameters are shown and kept for policies that are not active, too."""

    def __init__(self, root: Path, **more: str) -> None:
        files = {FILE: "", "/sys/fs/btrfs/11-22/devices/sda/dev": "8:0", "/proc/sys/kernel/osrelease": "6.14.0"}
        super().__init__(root, files, lambda path, text: self.select(text))
        self.parameters = {"pid": "", "round-robin": "262144", "devid": "1", **more}
        self.show(FILE, self.select("pid"))

    def select(self, text: str) -> str:
        policy, _, parameter = text.partition(":")
        if policy not in self.parameters:
            self.refuse(FILE, text, "Invalid argument (EINVAL)")
        self.parameters[policy] = parameter or self.parameters[policy]
        words = {name: f"{name}:{value}" if value else name for name, value in self.parameters.items()}
        return " ".join(f"[{word}]" if name == policy else word for name, word in words.items())


def test_a_policy_comes_back_with_the_parameters_of_all(tmp_path: Path) -> None:
    machine = Experimental(tmp_path)
    policy = knob.knob("btrfs.read_policy", machine, target("sda", fstype="btrfs"))
    assert policy.allowed() == ("pid", "round-robin", "devid")
    before = machine.read(FILE)
    saved = policy.save()
    for value in ("round-robin:4096", "devid:2", "round-robin"):
        policy.check(value)
        policy.apply(value)
        policy.verify(value)
    assert policy.read() == "round-robin:4096"
    knob.restore(machine, saved)
    assert machine.read(FILE) == before
    writes = len(machine.writes)
    assert knob.restore(machine, saved) == "is at its original value"
    assert len(machine.writes) == writes


@pytest.mark.parametrize("added", [("latency", "latency-rr", "queue"), ("queue", "queue-adaptive")])
def test_policies_of_a_patched_kernel_are_those_in_its_list(tmp_path: Path, added: tuple[str, ...]) -> None:
    """The series of 6.12 has the latency policies, that of 6.18 has queue-adaptive instead."""
    machine = Experimental(tmp_path, **dict.fromkeys(added, ""))
    policy = knob.knob("btrfs.read_policy", machine, target("sda", fstype="btrfs"))
    for value in added:
        policy.check(value)
        policy.apply(value)
        policy.verify(value)
        assert f"[{value}]" in machine.read(FILE)
    for absent in {"latency", "latency-rr", "queue", "queue-adaptive"} - set(added):
        with pytest.raises(RequestError, match="here offers pid, round-robin, devid, "):
            policy.check(absent)


def test_a_parameter_that_did_not_stay_is_caught(tmp_path: Path) -> None:
    policy = knob.knob("btrfs.read_policy", Experimental(tmp_path), target("sda", fstype="btrfs"))
    policy.apply("round-robin:4096")
    with pytest.raises(KnobError, match=r"requested 'round-robin:8192'; .* shows 'round-robin:4096'"):
        policy.verify("round-robin:8192")


@pytest.mark.parametrize("value", ["queue", "latency-rr", "round-robin:", "round"])
def test_an_absent_policy_is_refused_with_the_reason(tmp_path: Path, value: str) -> None:
    policy = knob.knob("btrfs.read_policy", Experimental(tmp_path), target("sda", fstype="btrfs"))
    with pytest.raises(RequestError, match=r"6\.14\.0 here offers pid, round-robin, devid[^$]*EXPERIMENTAL"):
        policy.check(value)


@pytest.mark.root
def test_the_policies_of_this_kernel_are_those_in_the_file(loop: Loop, machine: LocalMachine, tmp_path: Path) -> None:
    run("mkfs.btrfs", "--quiet", "--force", "--mixed", loop.path)
    with mounted(loop.path, tmp_path / "mnt") as point:
        for path in (str(point), loop.path):
            policy = knob.knob("btrfs.read_policy", machine, resolve(machine, path))
            assert policy.available() is None
            assert "pid" in policy.allowed()
            with pytest.raises(RequestError, match="here offers"):
                policy.check("no-such-policy")
        saved = policy.save()
        policy.apply("pid")
        policy.verify("pid")
    assert "no longer exists" in knob.restore(machine, saved)


@pytest.mark.root
def test_a_disk_without_a_mounted_btrfs_says_so(loop: Loop, machine: LocalMachine) -> None:
    reason = knob.knob("btrfs.read_policy", machine, resolve(machine, loop.path)).available()
    assert reason == f"needs a mounted btrfs: {loop.path} is on no filesystem"
