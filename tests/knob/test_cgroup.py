"""I/O limits for the load alone: on the cgroup v1 throttle of this machine, and as v2 shows them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import Completed, LocalMachine
from iodelta.probe.topology import resolve

from .devices import Loop
from .rooted import Rooted, on_sda, target

READ = ("dd", "of=/dev/null", "bs=4k", "count=7", "iflag=direct", "status=none")
LIMIT = "riops=100000 wbps=1000000000"


@pytest.fixture
def limit(loop: Loop, machine: LocalMachine) -> Iterator[knob.Knob]:
    """On this machine; nothing of it is left behind when a test fails."""
    one = knob.knob("cgroup.io_max", machine, resolve(machine, loop.path))
    saved = one.save()
    yield one
    knob.restore(machine, saved)


def group_of(one: knob.Knob) -> Path:
    return Path(one.launcher(LIMIT)[-1]).parent


def served(group: Path, devno: str) -> int:
    """Reads of the disk that were made from within the group."""
    v1 = group / "blkio.throttle.io_serviced"
    if v1.exists():
        pattern, text = rf"^{devno} Read (\d+)$", v1.read_text()
    else:
        pattern, text = rf"^{devno} .*\brios=(\d+)", (group / "io.stat").read_text()
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1]) if found else 0


@pytest.mark.root
def test_the_load_and_only_the_load_is_in_the_group(loop: Loop, machine: LocalMachine, limit: knob.Knob) -> None:
    assert limit.available() is None
    limit.check(LIMIT)
    limit.apply(LIMIT)
    limit.verify(LIMIT)
    group, devno = group_of(limit), Path(f"/sys/block/{loop.name}/dev").read_text().strip()
    machine.run([*READ, f"if={loop.path}"])
    assert served(group, devno) == 0
    done = machine.run([*limit.launcher(LIMIT), *READ, f"if={loop.path}"])
    assert done.returncode == 0
    assert served(group, devno) == 7


@pytest.mark.root
def test_a_limit_that_a_variant_leaves_out_is_lifted(limit: knob.Knob) -> None:
    limit.apply("riops=5000 wiops=6000")
    limit.apply("rbps=7000000")
    limit.verify("rbps=7000000")
    with pytest.raises(KnobError, match=r"requested .*riops=5000.* shows .*riops=max"):
        limit.verify("riops=5000")


@pytest.mark.root
def test_the_words_of_the_load_are_data(limit: knob.Knob, machine: LocalMachine, tmp_path: Path) -> None:
    limit.apply(LIMIT)
    nasty = "$(touch x); `touch x` \"'\n*"
    done = machine.run([*limit.launcher(LIMIT), "printf", "%s|", nasty, "-c", "$0"], cwd=str(tmp_path))
    assert done.text == f"{nasty}|-c|$0|"
    assert list(tmp_path.glob("x")) == []


@pytest.mark.root
def test_the_group_is_removed_once_the_last_process_is_gone(
    limit: knob.Knob, machine: LocalMachine, tmp_path: Path
) -> None:
    saved = limit.save()
    limit.apply(LIMIT)
    held = tmp_path / "held"
    held.touch()
    ending = ["sh", "-c", 'while test -e "$0"; do sleep 0.05; done', str(held)]
    load = machine.start([*limit.launcher(LIMIT), *ending])
    until(lambda: (group_of(limit) / "cgroup.procs").read_text())
    held.unlink()
    assert "removed" in knob.restore(machine, saved)
    assert not group_of(limit).exists()
    assert load.wait() == 0, "a load that ends by itself is waited for"
    assert knob.restore(machine, saved) == "the group is already gone"


@pytest.mark.root
def test_a_load_that_outlived_its_trial_is_ended(limit: knob.Knob, machine: LocalMachine, tmp_path: Path) -> None:
    saved = limit.save()
    limit.apply(LIMIT)
    stubborn = ["sh", "-c", 'trap "" TERM; touch "$0"; while :; do sleep 5; done', str(tmp_path / "begun")]
    load = machine.start([*limit.launcher(LIMIT), *stubborn])
    until((tmp_path / "begun").exists)
    knob.restore(machine, saved)
    assert not group_of(limit).exists()
    assert load.wait() == -9


@pytest.mark.parametrize(
    "value",
    [
        "",
        "riops",
        "riops=0",
        "riops=-1",
        "riops=1k",
        "iops=5",
        "riops=5,wiops=6",
        "riops=5; reboot",
        "riops=٣",
        "riops=4294967296",
    ],
)
def test_limits_are_whole_numbers_or_max(tmp_path: Path, value: str) -> None:
    with pytest.raises(RequestError, match="riops= wiops="):
        on_sda("cgroup.io_max", Unified(tmp_path, "io", "io")).check(value)


def test_a_record_that_names_no_group_of_ours_removes_nothing(machine: LocalMachine, tmp_path: Path) -> None:
    (tmp_path / "iodelta").mkdir()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for group in (str(tmp_path / "iodelta"), "/sys/fs/cgroup/system.slice", "iodelta-0123456789ab"):
        with pytest.raises(KnobError, match="not a group that iodelta made"):
            knob.restore(machine, knob.Saved("cgroup.io_max", "/dev/sda", (("group", group),), boot))
    assert (tmp_path / "iodelta").exists()


class Unified(Rooted):
    """cgroup v2 as the kernel shows it: files come with a directory, io.max keeps one line for each disk."""

    def __init__(self, root: Path, controllers: str, enabled: str) -> None:
        files = {
            "/proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            "/sys/fs/cgroup/cgroup.controllers": controllers,
            "/sys/fs/cgroup/cgroup.subtree_control": enabled,
            "/sys/fs/cgroup/cgroup.procs": "1",
            "/sys/class/block/sda/dev": "8:0",
            "/sys/class/block/sda/size": "8",
        }
        super().__init__(root, files, self.respond)

    def run(self, args: Sequence[str], **how: Any) -> Completed:
        done = super().run(args, **how)
        if args[0] == "mkdir":
            self.show(f"{args[-1]}/io.max", "")
            self.show(f"{args[-1]}/cgroup.procs", "")
        if args[0] == "rmdir":
            shutil.rmtree(f"{self.root}{args[-1]}")
        return done

    def respond(self, path: str, text: str) -> str | None:
        present = self.read(path).strip()
        if path.endswith("subtree_control"):
            return text[1:] if text.startswith("+") else present.replace(text[1:], "").strip()
        if path.endswith("io.max") and text.endswith("rbps=max wbps=max riops=max wiops=max"):
            return ""
        return None


@pytest.mark.parametrize(("enabled", "kept"), [("cpu io memory", "cpu io memory"), ("", "")])
def test_the_unified_hierarchy_is_used_and_left_as_found(tmp_path: Path, enabled: str, kept: str) -> None:
    machine = Unified(tmp_path, "cpuset cpu io memory", enabled)
    one = on_sda("cgroup.io_max", machine)
    assert one.available() is None
    saved = one.save()
    one.apply("riops=5000 wbps=1048576")
    one.verify("riops=5000 wbps=1048576")
    (group,) = machine.glob("/sys/fs/cgroup/iodelta-*")
    assert machine.read(f"{group}/io.max") == "8:0 rbps=max wbps=1048576 riops=5000 wiops=max\n"
    assert one.launcher("riops=5000")[-1] == f"{group}/cgroup.procs"
    one.apply("riops=max")
    one.verify("riops=max")
    knob.restore(machine, saved)
    assert machine.glob("/sys/fs/cgroup/iodelta-*") == []
    assert machine.read("/sys/fs/cgroup/cgroup.subtree_control").strip() == kept


def test_a_machine_whose_groups_cannot_limit_io_says_why(tmp_path: Path) -> None:
    machine = Unified(tmp_path, "cpu memory", "cpu memory")
    reason = on_sda("cgroup.io_max", machine).available()
    assert reason is not None
    assert "/sys/fs/cgroup has no io controller, and no blkio of cgroup v1 is mounted" in reason
    assert "tmpfs has no block device" in str(knob.knob("cgroup.io_max", machine, target()).available())
