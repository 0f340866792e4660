"""The mirror in fio's place: a trial of it is a trial like any other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from processes import descriptors
from waiting import LIMIT, until
from workshop import Workshop

from iodelta import knob
from iodelta.cli.main import cli
from iodelta.errors import RequestError
from iodelta.knob.mirror import PERMITTED
from iodelta.machine import LocalMachine
from iodelta.probe.made import record
from iodelta.probe.topology import resolve
from iodelta.workload.fio import run
from iodelta.workload.model import FioRequest, FioRun
from iodelta.workload.result import read_run

from .members import files

IODELTA = str(Path(sys.executable).with_name("iodelta"))


def trial(
    place: Path,
    members: tuple[str, ...],
    *options: tuple[str, str],
    policy: str = "queue",
    runtime: float = 0.5,
) -> FioRun:
    """One run as the bench makes it, with the mirror's words in front of fio's."""
    request = FioRequest(
        options=(("bs", "4k"), ("direct", "1"), ("ioengine", "io_uring"), *options),
        target=members[0],
        target_kind="file",
        runtime=runtime,
        ramp=0.1,
        seed=5,
        workdir=str(place),
        launcher=(sys.executable, "-m", "iodelta.parts.mirrors.stand_in", policy, *members, "--"),
    )
    return run(LocalMachine(), request)


def test_what_it_leaves_is_read_as_a_fio_run_with_histogram_and_members(tmp_path: Path) -> None:
    members = files(tmp_path, 2)
    done = trial(tmp_path, members, ("rw", "randread"), ("iodepth", "8"), policy="round-robin:4k", runtime=2.0)
    found = read_run(done)
    assert found.usable, found.findings
    (read,) = found.directions
    assert read.kind == "read"
    assert read.lat is not None
    assert read.lat.histogram is not None
    assert read.lat.histogram.total == read.ios
    ends = 2 * read.lat.max.value / 1e6 / read.runtime_ms  # of what was in flight at the begin and at the end
    assert abs(read.iops.value * read.lat.mean.value / 1e9 / 8 - 1) < 0.25 + ends, "Little's law"
    assert abs(read.lat.histogram.mean() / read.lat.mean.value - 1) < 0.02
    assert sum(found.counters[f"mirror.member{number}.reads"] for number in (0, 1)) == read.ios
    assert len(found.series["read.iops"]) == 2
    assert abs(sum(found.series["read.iops"]) - read.ios) <= 0.05 * read.ios + 8
    assert found.window is not None
    assert found.usr_cpu + found.sys_cpu > 0
    in_flight = json.loads(done.output)["mirror"]["trace"]
    assert len(in_flight) > 10
    assert all(sum(sample) == 8 for sample in in_flight)


def test_the_seed_decides_the_offsets_and_the_pids(tmp_path: Path) -> None:
    members = files(tmp_path, 2)
    pids = [
        json.loads(trial(tmp_path, members, ("rw", "randread"), ("numjobs", "3")).output)["mirror"]["pids"]
        for _ in range(2)
    ]
    assert pids[0] == pids[1]
    assert len(pids[0]) == 3


def test_a_mix_of_reads_and_writes_is_done_only_on_members_that_iodelta_made_or_that_the_session_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mix = (("rw", "randrw"), ("rwmixread", "70"), ("iodepth", "4"))
    theirs = files(tmp_path, 2, mib=2)
    refused = trial(tmp_path, theirs, *mix)
    assert refused.exit_code == 1
    assert b"member1" in refused.stderr
    (tmp_path / "ours").mkdir()
    ours = files(tmp_path / "ours", 2, mib=2)
    for member in ours:
        record(LocalMachine(), member)
    found = read_run(trial(tmp_path, ours, *mix))
    monkeypatch.setenv(PERMITTED, json.dumps([os.path.realpath(theirs[1])]))
    assert read_run(trial(tmp_path, theirs, *mix)).usable
    assert found.usable, found.findings
    read, write = found.directions
    total = read.ios + write.ios
    assert abs(read.ios / total - 0.7) < 0.05 + 4 * (0.7 * 0.3 / total) ** 0.5


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("rate_iops", "100", b"does not support rate_iops"), ("iodepth", "many", b"cannot read")],
)
def test_what_the_mirror_cannot_do_fails_the_trial_with_the_reason(
    tmp_path: Path, option: str, value: str, words: bytes
) -> None:
    done = trial(tmp_path, files(tmp_path, 2, mib=1), ("rw", "randread"), (option, value))
    assert done.exit_code == 1
    assert words in done.stderr
    assert not read_run(done).usable


def test_a_vanished_member_makes_the_trial_unusable_and_says_which(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=1)
    os.truncate(members[1], 4096)
    # The smallest member decides the size that is read; here the size is asked for, so reads run past its end.
    found = read_run(trial(tmp_path, members, ("rw", "randread"), ("size", "1m"), policy="round-robin:4k"))
    assert not found.usable
    assert any("member1" in finding.explanation for finding in found.findings)


def test_it_ends_soon_when_it_is_told_to(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=1)
    words = [sys.executable, "-m", "iodelta.parts.mirrors.stand_in", "queue", *members, "--", "fio"]
    options = [f"--output={tmp_path}/out", f"--filename={members[0]}", "--rw=randread", "--runtime=60000ms"]
    process = subprocess.Popen([*words, *options], stderr=subprocess.PIPE)
    until(lambda: members[1] in descriptors(process.pid))
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode != 0
    assert b"terminating on signal" in said


def test_what_is_measured_is_a_member_or_lies_on_the_disks_of_the_members(tmp_path: Path) -> None:
    here = LocalMachine()
    members = files(tmp_path, 3, mib=1)
    one = knob.knob("mirror.read_policy", here, resolve(here, members[0]))
    one.check(f"queue {members[0]} {members[1]}")
    with pytest.raises(RequestError, match="must be among the members, or lie on their disks"):
        one.check(f"queue {members[1]} {members[2]}")


@pytest.mark.root
def test_members_beside_the_target_on_its_own_disks_are_members_too(workshop: Workshop) -> None:
    here = LocalMachine()
    first, second = (workshop.partition(workshop.loop(48), parts=2) for _ in range(2))
    one = knob.knob("mirror.read_policy", here, resolve(here, first[0]))
    one.check(f"queue {first[1]} {second[1]}")
    with pytest.raises(RequestError, match="lie on their disks"):
        one.check(f"queue {second[0]} {second[1]}")


def experiment(first: str, second: str, *named: str, rw: str) -> subprocess.CompletedProcess[str]:
    """An experiment of two policies on these members, in their directory."""
    place = Path(first).parent
    words = [f"--variant={name}:mirror.read_policy={name} {first} {second}" for name in ("queue", "random")]
    words += "--trial 200ms --ramp 0 --blocks 3 --seed 3 --folder folder".split()
    options = f"-- --rw={rw} --bs=4k --direct=1 --ioengine=io_uring --iodepth=4".split()
    return subprocess.run(
        [IODELTA, "run", "--target", first, *words, *named, *options],
        cwd=place,
        env={**os.environ, "IODELTA_STATE": str(place / "state")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.fio
@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_an_experiment_writes_to_members_of_a_mirror_only_by_their_names(tmp_path: Path) -> None:
    first, second = files(tmp_path, 2)
    refused = experiment(first, second, "--destroy", first, rw="randrw")
    assert refused.returncode == 2
    assert f"{second}: was not made by iodelta" in refused.stderr
    told = experiment(first, second, "--destroy", first, "--destroy", second, rw="randrw")
    assert told.returncode in (0, 1, 3), told.stderr


@pytest.mark.fio
@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_policies_are_variants_of_an_experiment_with_blocks_and_verdicts(tmp_path: Path) -> None:
    first, second = files(tmp_path, 2)
    with open(second, "r+b") as file:
        file.write(b"other")
    done = experiment(first, second, rw="randread")
    assert done.returncode in (0, 1, 3), done.stderr
    verdict = json.loads((tmp_path / "folder" / "verdict.json").read_text())
    words = {one["variant"] for one in verdict["account"]["judgement"]["verdicts"]}
    assert words == {"random"}
    assert done.stderr.count("warning: ") == 1
    assert f"{second} differs from {first} at byte 0" in done.stderr
    findings = {finding["rule"] for finding in verdict["account"]["findings"]}
    assert "mirror.content" in findings
    assert "cache.not-from-device" not in findings, "its reads went to other members, not to a cache"


@pytest.mark.fio
@pytest.mark.parametrize("option", ["--rate_iops=100", "--thinktime=5", "--bssplit=4k/50:8k/50", "--rw=randtrim"])
def test_what_the_mirror_cannot_do_is_refused_in_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """Not by every trial, one after the other, when the plan has long been accepted."""
    monkeypatch.chdir(tmp_path)
    one, other = files(tmp_path, 2, mib=1)
    variants = [f"--variant={name}:mirror.read_policy={name} {one} {other}" for name in ("queue", "round-robin")]
    words = ["run", "--dry-run", "--target", str(one), *variants, "--", "--rw=randread", "--direct=1"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    done = CliRunner().invoke(cli, [*words, option])
    assert isinstance(done.exception, RequestError)
    assert option[2:].partition("=")[0] in str(done.exception)
