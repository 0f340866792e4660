"""A mirror that does not get the CPU it needs says so: its rate is not its members'."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.machine import LocalMachine
from iodelta.parts.mirrors.command import command
from iodelta.parts.mirrors.mirror import Request, run
from iodelta.parts.mirrors.starvation import CpuTimes, cpu_times, starvation

from .members import files

QUIET = CpuTimes(at=100.0, used=5.0, waited=1.0, stolen=2.0, busy=50.0)


def after(
    seconds: float = 10.0, used: float = 0.0, waited: float = 0.0, stolen: float = 0.0, busy: float = 1.0
) -> CpuTimes:
    return CpuTimes(
        QUIET.at + seconds, QUIET.used + used, QUIET.waited + waited, QUIET.stolen + stolen, QUIET.busy + busy
    )


@pytest.mark.parametrize(
    ("later", "rules", "words"),
    [
        (after(), [], ""),
        (after(used=4.0, waited=0.4), [], ""),
        (after(waited=0.6), ["mirror.starved"], "6 % of the run"),
        (after(stolen=1.0, busy=4.0), ["mirror.stolen"], "25 % of the CPU time"),
        (after(stolen=0.1, busy=0.4), [], ""),
        (after(used=9.7), ["mirror.cpu-bound"], "97 % of a CPU"),
        (after(used=6.0, waited=4.0, stolen=8.0, busy=20.0), ["mirror.starved", "mirror.stolen"], "40 % of the run"),
        (after(seconds=0.0), [], ""),
    ],
)
def test_what_the_mirror_waited_for_decides_what_is_said(later: CpuTimes, rules: list[str], words: str) -> None:
    found = starvation(QUIET, later)
    assert [finding.rule for finding in found] == rules
    assert {finding.severity for finding in found} <= {"warning"}
    assert words in " ".join(finding.explanation for finding in found)


def test_a_kernel_that_does_not_count_waiting_gives_no_finding(tmp_path: Path) -> None:
    class Silent(LocalMachine):
        def read(self, path: str) -> str:
            return super().read(str(tmp_path / "absent"))

    # How busy this process was in between is another matter: a loaded machine may say that it is bound by its CPU.
    said = {finding.rule for finding in starvation(cpu_times(Silent()), cpu_times(Silent()))}
    assert "mirror.starved" not in said


@pytest.fixture
def crowded() -> Iterator[None]:
    """One CPU for this process, and another process that always wants it."""
    if len(Path("/proc/thread-self/schedstat").read_text().split()) != 3:
        pytest.skip("this kernel does not count how long a thread waits for a CPU")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])  # inherits the CPU
    try:
        yield
    finally:
        rival.kill()
        rival.wait()
        os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("crowded")
def test_a_mirror_that_shares_its_cpu_with_a_busy_process_is_a_finding(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=2)
    done = run(Request(members=members, policy="queue", iodepth=32, ramp=0.1, seconds=0.9, direct=False))
    assert "mirror.starved" in [finding.rule for finding in done.findings]
    assert done.usable, "a warning: the numbers are there, and are not the members' alone"
    words = ["mirror", *members, "--policy", "queue", "--iodepth", "32", "--seconds", "0.9", "--buffered"]
    said = CliRunner().invoke(command, words, catch_exceptions=False)
    assert "mirror.starved" in said.output
