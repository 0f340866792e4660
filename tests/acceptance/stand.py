"""A stand for one experiment at a time: a loop device, a state directory, a working directory, and iodelta as a
stranger runs it: as a process with arguments, exit code and output. Everything is taken back, also after a failure."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pytest
from processes import alive
from waiting import LIMIT as PATIENCE
from waiting import until
from workshop import Attached

from iodelta.lab.account import Account
from iodelta.lab.folder import Folder
from iodelta.lab.judged import load_trials

IODELTA = str(Path(sys.executable).with_name("iodelta"))
T = TypeVar("T")
MARK = "IODELTA_TEST_STAND"
FIO = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=4", "--rate_iops=500")
"""Slow on purpose: several stands share the CPUs."""

JOIN = ("sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"')
"""A program in a control group: both come as arguments."""

LIMIT = """\
# Usage: limit.sh READS_PER_SECOND GROUP MAJ:MIN
if [ -e "$2/io.max" ]; then echo "$3 riops=$1" >"$2/io.max"
else echo "$3 $1" >"$2/blkio.throttle.read_iops_device"; fi
"""

GATE = """\
#!/bin/sh
# fio as it is, but for trial number TRIAL.
here=$(dirname "$0")
held() { touch "$here/waits"; while [ ! -e "$here/go" ]; do sleep 0.02; done; }
killed() { FIO "$@" & sleep 0.1; kill -KILL $!; kill -KILL $$; }
case "$*" in */fio.json*)
    echo begun >>"$here/begun"
    [ "$(wc -l <"$here/begun")" -ne TRIAL ] || THEN "$@" ;;
esac
exec FIO "$@"
"""
"""A test that acts between two trials is too late on a machine that gives it no CPU in time: the trial waits for it."""

GOOD = (0, 1, 3)
"""Exit codes of an experiment that was measured."""


class Done:
    """A finished iodelta: what it said and how it ended. A traceback is never an answer."""

    def __init__(self, args: Sequence[str], code: int, out: str, err: str) -> None:
        self.args, self.code, self.out, self.err = tuple(args), code, out, err
        assert "Traceback" not in out + err, f"{self.args}\n{err}"

    def __repr__(self) -> str:
        return f"{' '.join(self.args)} -> {self.code}\n{self.out}\n{self.err}"


class Stand:
    """Use it in ``with``. ``place`` is an empty directory of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.state = place / "state"
        self.mark = uuid.uuid4().hex
        self.env = {**os.environ, "IODELTA_STATE": str(self.state), MARK: self.mark, "COLUMNS": "80"}
        self._undo = contextlib.ExitStack()
        self._begun: list[Running] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for running in self._begun:
            running.close()
        subprocess.run([IODELTA, "restore"], env=self.env, capture_output=True, check=False)
        self._undo.close()

    def undo(self, action: Callable[[], object]) -> None:
        """Do this in the end."""
        self._undo.callback(action)

    # ------------------------------------------------------------------------------------------------ devices

    def loop(self, mib: int = 64, place: Path | None = None) -> str:
        """A loop device over a sparse file."""
        path = (place or self.place) / f"{uuid.uuid4().hex[:6]}.img"
        with open(path, "xb") as file:
            file.truncate(mib << 20)
        attached = Attached.to(path)
        self.undo(attached.release)
        return attached.node

    def filesystem(self, mib: int) -> Path:
        """A small ext4 of its own, mounted."""
        node, point = self.loop(mib), self.place / f"mount-{uuid.uuid4().hex[:6]}"
        point.mkdir()
        shell("mkfs.ext4", "-q", "-m", "0", node)
        shell("mount", node, str(point))
        self.undo(lambda: subprocess.run(["umount", "--lazy", str(point)], check=True))
        return point

    def group(self, device: str) -> tuple[Path, str]:
        """A control group that can throttle, for iodelta and all it starts; and the device's number."""
        number = os.stat(device).st_rdev
        group = _throttling() / f"stand-{uuid.uuid4().hex[:12]}"
        group.mkdir()
        self.undo(group.rmdir)
        return group, f"{os.major(number)}:{os.minor(number)}"

    # ------------------------------------------------------------------------------------------------- iodelta

    def gate(self, trial: int, then: str = "held") -> Gate:
        """A fio that does something else in trial number ``trial``."""
        return Gate(self.place / "gate", trial, then)

    def quick(self, node: str, *options: str, folder: str = "folder", blocks: int = 3) -> tuple[str, ...]:
        """The arguments of a short experiment on ``node`` that changes its scheduler; further options of iodelta."""
        words = ("--folder", folder, "--trial", "200ms", "--ramp", "0", "--blocks", str(blocks), "--seed", "1")
        variants = ("--variant", "old:block.scheduler=none", "--variant", "new:block.scheduler=mq-deadline")
        own = () if "--variant" in options else variants
        return ("run", "--target", node, *words, *own, *options, "--", *FIO)

    def start(self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Running:
        """iodelta in a process group of its own."""
        running = Running(args, {**self.env, **(env or {})}, cwd or self.place)
        self._begun.append(running)
        return running

    def run(self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
        """iodelta to its end."""
        return self.start(*args, cwd=cwd, env=env).wait()

    def run_in(self, group: Path, *args: str, timeout: float = PATIENCE) -> Done:
        """iodelta to its end, in a control group."""
        return Running(args, self.env, self.place, program=(*JOIN, str(group), IODELTA)).wait(timeout)

    def processes(self) -> list[int]:
        """Everything that was started here, however indirectly, and is still alive."""
        mark = f"{MARK}={self.mark}".encode()
        return [pid for pid, environment in alive("environ") if mark in environment]

    def pending(self) -> list[Path]:
        """Undo logs of runs that have not put everything back."""
        return sorted((self.state / "pending").glob("*.jsonl"))


class Gate:
    """A fio whose trial number ``trial`` is ``held`` until the gate opens, or ``killed`` in its course; ``env`` puts
    it before the real one."""

    def __init__(self, place: Path, trial: int, then: str = "held") -> None:
        place.mkdir(exist_ok=True)
        self._place, self.program = place, place / "fio"
        real = shutil.which("fio")
        assert real is not None
        self.program.unlink(missing_ok=True)
        text = GATE.replace("TRIAL", str(trial)).replace("THEN", then)
        self.program.write_text(text.replace("FIO", os.path.realpath(real)))
        self.program.chmod(0o755)
        self.env = {"PATH": f"{place}:{os.environ['PATH']}"}

    def wait(self) -> None:
        """Until the trial waits."""
        until((self._place / "waits").exists)

    def open(self) -> None:
        (self._place / "go").touch()


class Running:
    """An iodelta that may still run."""

    def __init__(
        self, args: Sequence[str], env: Mapping[str, str], cwd: Path, program: Sequence[str] = (IODELTA,)
    ) -> None:
        self.args = args
        self._process = subprocess.Popen(
            [*program, *args],
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """To the process alone, or to its group as a terminal does."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.pid, number)

    def alive(self) -> bool:
        return self._process.poll() is None

    def says(self, text: str) -> None:
        """Wait for a line on standard error; what stood before it is gone."""
        assert self._process.stderr is not None
        assert any(text in line for line in self._process.stderr), f"it ended without saying {text}"

    def wait(self, timeout: float = PATIENCE) -> Done:
        try:
            out, err = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGABRT)
            raise
        return Done(self.args, self._process.returncode, out, err)

    def close(self) -> None:
        """What a killed process has said and nobody has read goes to the output of the test: where one waited in vain,
        it says why."""
        if self._process.stdout is not None and not self._process.stdout.closed:
            out, err = self._process.communicate(timeout=PATIENCE)
            sys.stdout.write(f"iodelta {' '.join(self.args)}\n{out}\n{err}\n")


def _throttling() -> Path:
    """A control group whose children can limit I/O; the test is skipped where there is none."""
    for parent in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        controllers = parent / "cgroup.controllers"
        if controllers.exists() and "io" in controllers.read_text().split():
            control = parent / "cgroup.subtree_control"
            if "io" not in control.read_text().split():
                control.write_text("+io")
            return parent
    parent = Path("/sys/fs/cgroup/blkio")
    if not (parent / "blkio.throttle.read_iops_device").exists():
        pytest.skip("no control group here can limit I/O")
    return parent


def side_by_side(place: Path, work: Callable[[Stand, T], object], cases: Sequence[T]) -> None:
    """Each case on a stand of its own, all at once: fio mostly waits. Raises what the first that failed has raised."""

    def one(number: int, case: T) -> None:
        own = place / f"stand{number}"
        own.mkdir()
        with Stand(own) as stand:
            work(stand, case)

    with ThreadPoolExecutor(len(cases)) as pool:
        for done in [pool.submit(one, number, case) for number, case in enumerate(cases)]:
            done.result()


def shell(*words: str) -> str:
    """Output of a command that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def journal(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of a folder's journal."""
    data = (folder / "journal.jsonl").read_bytes() if (folder / "journal.jsonl").exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def kinds(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The journal's events of one kind."""
    return [event for event in journal(folder) if event["type"] == kind]


def finished(folder: Path) -> dict[int, float]:
    """Number and IOPS of each finished usable trial, read back from its raw files."""
    opened = Folder.open(folder)
    trials = load_trials(opened, Account(opened.events()).usable())
    return {number: sum(d.iops.value for d in trial.directions) for number, trial in trials.items()}


def verdict(folder: Path) -> dict[str, Any]:
    """verdict.json."""
    found: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
    return found


def words(folder: Path) -> dict[tuple[str, str, str], str]:
    """(cell, variant, metric) -> the word of the verdict."""
    verdicts = verdict(folder)["account"]["judgement"]["verdicts"]
    return {(v["cell"], v["variant"], v["metric"]["name"]): v["word"] for v in verdicts}


def queue(node: str, name: str) -> str:
    """A queue attribute of a device, the active one where the kernel shows a list."""
    text = Path(f"/sys/block/{node.removeprefix('/dev/')}/queue/{name}").read_text().strip()
    chosen = re.search(r"\[(.+?)\]", text)
    return chosen[1] if chosen else text


def set_queue(node: str, name: str, value: str) -> None:
    Path(f"/sys/block/{node.removeprefix('/dev/')}/queue/{name}").write_text(value)
