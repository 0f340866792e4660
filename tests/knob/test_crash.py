"""SIGKILL at any moment: the record alone brings the machine back to where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from iodelta import knob
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .devices import Loop, mounted, run

pytestmark = pytest.mark.root

RUN = """
import os, sys, msgspec
from iodelta import knob
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

machine = LocalMachine()
name, path, value, journal = sys.argv[1:]
one = knob.knob(name, machine, resolve(machine, path))
with open(journal, "wb") as file:
    file.write(msgspec.json.encode(one.save([value])))
    file.flush()
    os.fsync(file.fileno())
print("saved", flush=True)
sys.stdin.readline()
one.apply(value)
one.verify(value)
print("applied", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def filesystem(loop: Loop, tmp_path: Path) -> Iterator[Path]:
    run("mkfs.ext4", "-q", "-F", loop.path)
    with mounted(loop.path, tmp_path / "mnt") as point:
        yield point


def queue(loop: Loop) -> dict[str, str]:
    names = [
        "scheduler",
        "nr_requests",
        "wbt_lat_usec",
        *(f"iosched/{path.name}" for path in loop.queue.glob("iosched/*")),
    ]
    return {name: loop[name] for name in names}


def crash(name: str, path: str, value: str, journal: Path, moment: str) -> knob.Saved:
    """Run until ``moment``, die by SIGKILL, and return what had become durable."""
    child = subprocess.Popen(
        [sys.executable, "-c", RUN, name, path, value, str(journal)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        assert child.stdout.readline() == "saved\n"
        if moment == "applied":
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "applied\n"
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    return msgspec.json.decode(journal.read_bytes(), type=knob.Saved)


@pytest.mark.parametrize("moment", ["saved", "applied"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("block.scheduler", "bfq"),
        ("block.nr_requests", "64"),
        ("block.wbt_lat_usec", "0"),
        ("mount.options", "noatime,commit=30"),
        ("sysctl.vm.overcommit_kbytes", "123456"),
        ("cgroup.io_max", "riops=5000"),
        ("cpus", "0"),
    ],
)
def test_what_a_killed_run_left_is_put_back(
    loop: Loop, filesystem: Path, machine: LocalMachine, tmp_path: Path, name: str, value: str, moment: str
) -> None:
    loop["scheduler"] = "mq-deadline"
    loop["iosched/fifo_batch"] = "5"

    def present(record: str = "") -> list[object]:
        # other tests make groups of their own meanwhile: only those that the record names are ours
        groups = [path for path in machine.glob("/sys/fs/cgroup/*/iodelta-*") if Path(path).name in record]
        memory = [Path(f"/proc/sys/vm/overcommit_{unit}").read_text() for unit in ("ratio", "kbytes")]
        mount = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(filesystem) in line]
        return [queue(loop), groups, memory, mount]

    before = present()
    saved = crash(name, str(filesystem), value, tmp_path / "journal", moment)
    record = (tmp_path / "journal").read_text()
    changed = present(record) != before
    assert changed == (moment == "applied" and name != "cpus")
    for _ in range(2):
        assert [one.error for one in knob.restore_all(machine, [saved])] == [""]
        assert present(record) == before


@pytest.mark.parametrize("moment", ["saved", "applied"])
def test_the_users_own_command_is_undone_after_a_crash(machine: LocalMachine, tmp_path: Path, moment: str) -> None:
    state = tmp_path / "state"
    write = ("sh", "-c", 'printf %s "$1" > "$0"', str(state))
    value = json.dumps({"apply": [*write, "changed"], "restore": [*write, "original"]})
    saved = crash("command", str(tmp_path), value, tmp_path / "journal", moment)
    knob.restore(machine, saved)
    assert state.read_text() == "original"


def test_one_knob_that_cannot_be_restored_does_not_keep_the_others(loop: Loop, machine: LocalMachine) -> None:
    depth = knob.knob("block.nr_requests", machine, resolve(machine, loop.path))
    good = depth.save()
    depth.apply("48")
    bad = msgspec.structs.replace(good, target="/dev/other", values=((f"{loop.queue}/nr_requests", "one million"),))
    unknown = msgspec.structs.replace(good, knob="block.from_the_future")
    outcomes = list(knob.restore_all(machine, [unknown, bad, good]))
    assert sorted(bool(one.error) for one in outcomes) == [False, True, True]
    assert "does not know the knob" in next(one.error for one in outcomes if one.saved == unknown)
    assert loop["nr_requests"] == "128"


def test_the_first_record_of_a_knob_is_the_original(loop: Loop, machine: LocalMachine) -> None:
    depth = knob.knob("block.nr_requests", machine, resolve(machine, loop.path))
    first = depth.save()
    depth.apply("48")
    later = depth.save()
    assert [one.saved for one in knob.restore_all(machine, [first, later])] == [later, first]
    assert loop["nr_requests"] == "128"
