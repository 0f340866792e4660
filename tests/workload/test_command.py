"""Any command as a run: what it used, how it ended, and that nothing of it is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from waiting import until

from iodelta.experiment.model import Measure
from iodelta.machine import LocalMachine
from iodelta.workload import command
from iodelta.workload.fio import run
from iodelta.workload.model import FioRequest, FioRun
from iodelta.workload.result import read_run

MACHINE = LocalMachine()
RATE = Measure("rate", "1/s", "higher", pattern=r"rate ([0-9.]+)")
Run = Callable[..., FioRun]


@pytest.fixture
def ran(tmp_path: Path) -> Run:
    def do(*words: str, timeout: float = 60.0, measures: tuple[Measure, ...] = (RATE,), stop: bool = False) -> FioRun:
        request = FioRequest(
            options=(),
            tool="command",
            fio=command.python(MACHINE),
            target="/",
            target_kind="directory",
            runtime=timeout,
            ramp=0.0,
            seed=1,
            workdir=str(tmp_path),
            words=words,
            measures=measures,
        )
        command.install(MACHINE, str(tmp_path))
        assert command.make_ready(MACHINE, request, {})[1] == ""
        return run(MACHINE, request, stop=lambda: stop)

    return do


def _rules(done: FioRun) -> list[str]:
    return [finding.rule for finding in read_run(done).findings]


def _said(done: FioRun) -> str:
    return read_run(done).findings[0].explanation


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_it_prints_and_what_it_uses(ran: Run) -> None:
    busy = "import resource; b = bytearray(64 << 20)\nwhile resource.getrusage(0).ru_utime < .2: pass"
    done = ran("python3", "-I", "-S", "-c", f"{busy}\nprint('rate 7.5')")
    result = read_run(done)
    assert result.findings == ()
    assert result.measured["rate"].value == 7.5
    assert result.measured["cpu"].value >= 0.2e9
    assert result.measured["wall"].value >= 0.99 * result.measured["cpu"].value
    assert result.measured["memory"].value >= 64 << 20
    assert result.directions == ()


def test_its_children_count(ran: Run) -> None:
    busy = "import resource\nwhile resource.getrusage(0).ru_utime < .1: pass"
    done = ran("sh", "-c", 'python3 -I -S -c "$0"; python3 -I -S -c "$0"; echo rate 1', busy)
    assert read_run(done).measured["cpu"].value >= 0.2e9


def test_a_failure_is_no_number(ran: Run) -> None:
    done = ran("sh", "-c", "echo rate 5; echo 'error: disk on fire' >&2; exit 1")
    assert _rules(done) == ["command.failed"]
    assert "exit code 1: error: disk on fire" in _said(done)
    assert read_run(done).measured == {}
    assert "killed by signal 9" in _said(ran("sh", "-c", "kill -9 $$"))
    assert "cannot start /nonexistent" in _said(ran("/nonexistent"))


def test_silence_and_a_missing_metric_are_no_number(ran: Run) -> None:
    assert "printed nothing" in _said(ran("true"))
    assert _rules(ran("echo", "done")) == ["command.metric"]


def test_one_that_hangs_is_ended_with_all_that_it_started(ran: Run, tmp_path: Path) -> None:
    daemon = 'setsid sh -c "trap : TERM; echo \\$\\$ >$0; while :; do sleep 60; done" & sleep 600'
    for timeout in (1.0, 10.0, 100.0):  # a busy machine may not have started the daemon in the first second
        done = ran("sh", "-c", daemon, str(tmp_path / "pid"), timeout=timeout)
        assert _rules(done) == ["command.timeout"]
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            break
    assert not _is_alive(int((tmp_path / "pid").read_text()))


def test_a_daemon_that_survives_it_is_found_and_ended_and_the_trial_counts(ran: Run, tmp_path: Path) -> None:
    """One that has left its session, its parent and its environment."""
    daemon = 'setsid env -i sleep 617 >/dev/null 2>&1 & echo $! >"$0"; echo rate 3'
    done = ran("sh", "-c", daemon, str(tmp_path / "pid"))
    assert _rules(done) == ["command.survivors"]
    assert "1 of its processes were still running" in _said(done)
    assert read_run(done).measured["rate"].value == 3.0
    assert not _is_alive(int((tmp_path / "pid").read_text()))


def test_stopping_ends_it(ran: Run, tmp_path: Path) -> None:
    done = ran("sh", "-c", 'trap : TERM; echo $$ >"$0"; sleep 600; sleep 600', str(tmp_path / "pid"), stop=True)
    assert done.ended == "stopped"
    if (tmp_path / "pid").exists():
        pid = int((tmp_path / "pid").read_text() or 0)
        until(lambda: not pid or not _is_alive(pid))


def test_endless_output_is_ended(ran: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MOST", 1 << 16)
    done = ran("yes")
    assert _rules(done) == ["command.output"]


def test_memory_below_what_can_be_seen_is_not_a_number(ran: Run) -> None:
    memory = Measure("memory", "B", "lower")
    done = ran("echo", "rate 1", measures=(RATE, memory))
    assert _rules(done) == ["command.metric"]
    assert "memory" not in read_run(done).measured


def test_a_reset_that_fails_spoils_the_trial_and_the_command_does_not_run(tmp_path: Path) -> None:
    problem = command.run_all(MACHINE, [("true",), ("sh", "-c", "echo no room >&2; exit 3")], str(tmp_path), 9.0, {})
    assert problem == "sh -c 'echo no room >&2; exit 3' ended with exit code 3: no room"


@pytest.mark.parametrize(
    ("written", "printed", "is_found"), [(8 << 20, 0, True), (8 << 20, 4 << 20, False), (4096, 0, False)]
)
def test_what_a_command_writes_although_it_only_reads_is_found(
    ran: Run, written: int, printed: int, is_found: bool
) -> None:
    """Its own output is no write of its, and may be written back and counted more than once."""
    done = ran("echo", "rate 1")
    report = msgspec.structs.replace(
        msgspec.json.decode(done.log, type=command.Report), written=written, printed=printed
    )
    log = msgspec.json.encode(report)
    reads = msgspec.structs.replace(done, log=log, request=msgspec.structs.replace(done.request, only_reads=True))
    assert _rules(reads) == (["command.writes"] if is_found else [])
    assert _rules(msgspec.structs.replace(done, log=log)) == [], "one that may write"


def test_the_supervisor_counts_what_reaches_a_file(ran: Run, tmp_path: Path) -> None:
    done = ran("sh", "-c", 'dd if=/dev/zero of="$0" bs=64k count=64 2>&1 && echo rate 1', str(tmp_path / "out"))
    report = msgspec.json.decode(done.log, type=command.Report)
    if report.written == 0:
        pytest.skip("the temporary directory is in memory, where nothing is written to a disk")
    assert 4 << 20 <= report.written <= 8 << 20
    assert 0 < report.printed < 1000
