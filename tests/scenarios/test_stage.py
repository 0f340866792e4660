"""Whatever a scenario makes is gone afterwards: after success, failure, a stop, and a kill in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import pytest
from workshop import backing_files

from iodelta.cli.watching import RunWatcher
from iodelta.errors import MeasureError
from iodelta.lab.undo import restore_pending
from iodelta.machine import LocalMachine
from iodelta.parts.scenarios.stage import Stage, staged

MIB = 1 << 20

HELD = """
import sys
from iodelta.cli.watching import RunWatcher
from iodelta.machine import LocalMachine
from iodelta.parts.scenarios.stage import staged
home = sys.argv[1]
with staged(LocalMachine(), RunWatcher(print), full=False, target=None, home=home, stop=lambda: False) as stage:
    disk = stage.disk("one", 32 << 20, parts=2)
    stage.mount(disk + "p2", "two")
    print(disk, flush=True)
    sys.stdin.read()
"""


def enter(home: Path, told: list[str] | None = None, stop: bool = False) -> AbstractContextManager[Stage]:
    watcher = RunWatcher((told if told is not None else []).append)
    return staged(LocalMachine(), watcher, full=False, target=None, home=str(home), stop=lambda: stop)


def left(home: Path) -> list[str]:
    """Loop devices and mounts over what lies below ``home``, and what is still there."""
    backing = [file for _, file in backing_files()]
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    stages = [str(path) for path in home.glob("iodelta-scenario-*")]
    return [name for name in (*backing, *mounts, *stages) if name.startswith(f"{home}/iodelta-scenario-")]


@contextmanager
def killed(program: str, *words: str) -> Iterator[IO[str]]:
    """What a program of Python says, which is killed in the end."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program, *words], stdin=pipe, stdout=pipe, text=True) as held:
        assert held.stdout is not None
        try:
            yield held.stdout
        finally:
            held.send_signal(signal.SIGKILL)


def build(stage: Stage) -> str:
    disk = stage.disk("one", 32 * MIB, parts=2)
    assert Path(stage.mount(f"{disk}p1", "first")).is_dir()
    Path(stage.place("mounts/first"), "data").write_bytes(b"x" * MIB)
    assert len(left(Path(stage.directory).parent)) == 3
    return disk


@pytest.mark.root
def test_disks_partitions_and_mounts_are_gone_after_success(tmp_path: Path) -> None:
    with enter(tmp_path) as stage:
        disk = build(stage)
        sizes = [Path(f"/sys/class/block/{disk[5:]}p{part}/size").read_text() for part in (1, 2)]
        assert sizes == ["32768\n", "32768\n"]
    assert left(tmp_path) == []
    assert not Path(f"/sys/class/block/{disk[5:]}p1").exists()


@pytest.mark.root
def test_they_are_gone_after_a_failure_too(tmp_path: Path, state: Path) -> None:
    with pytest.raises(MeasureError, match="false ended with 1"), enter(tmp_path) as stage:
        stage.run(["false", build(stage)])
    assert left(tmp_path) == []
    assert list((state / "pending").iterdir()) == []


@pytest.mark.root
def test_after_a_kill_the_next_start_removes_them(tmp_path: Path) -> None:
    with killed(HELD, str(tmp_path)) as said:
        assert said.readline().startswith("/dev/loop")
        assert len(left(tmp_path)) == 3
        assert restore_pending(LocalMachine()) == [], "what a live scenario uses is left alone"
        assert len(left(tmp_path)) == 3
    assert [outcome.done for outcome in restore_pending(LocalMachine())] == [True]
    assert left(tmp_path) == []


@pytest.mark.root
def test_sh_alone_removes_them_by_the_script_beside_the_log(tmp_path: Path, state: Path) -> None:
    with enter(tmp_path) as stage:
        build(stage)
        (script,) = (state / "pending").glob("*.sh")
        done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert left(tmp_path) == []


@pytest.mark.root
def test_what_is_in_use_stays_pending_and_says_so(tmp_path: Path, state: Path) -> None:
    told: list[str] = []
    with enter(tmp_path, told) as stage:
        build(stage)
        user = subprocess.Popen(["sleep", "600"], cwd=f"{stage.directory}/mounts/first")
    try:
        assert any("mounts/first is in use" in note and "iodelta restore" in note for note in told)
        assert list((state / "pending").glob("*.jsonl"))
    finally:
        user.kill()
        user.wait()
    assert [outcome.done for outcome in restore_pending(LocalMachine())] == [True]
    assert left(tmp_path) == []


def test_what_undoes_a_step_is_on_disk_before_the_step_and_is_run_also_when_the_step_failed(
    tmp_path: Path, state: Path
) -> None:
    mark = tmp_path / "undone"
    seen = f"grep -q {mark} {state}/pending/scenario-*.jsonl && exit 7"
    with pytest.raises(MeasureError, match="sh ended with 7"), enter(tmp_path) as stage:
        stage.make(["sh", "-c", seen], ["touch", str(mark)])
    assert mark.exists()


def test_a_stop_ends_the_preparation_before_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="stopped"), enter(tmp_path, stop=True) as stage:
        stage.place()
    assert os.listdir(tmp_path) == ["state"]


def test_a_disk_that_is_too_small_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with enter(tmp_path) as stage:
        stage.room(1)
        with pytest.raises(MeasureError, match=r"GiB are needed.*free") as error:
            stage.room(1 << 60)
    assert "--target DIRECTORY" in str(error.value)
    assert os.listdir(tmp_path) == ["state"]
