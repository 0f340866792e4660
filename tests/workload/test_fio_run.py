"""Real fio runs: what is measured, what is kept, and how a run ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import until
from workshop import Workshop

from iodelta.errors import RequestError
from iodelta.machine import Machine
from iodelta.trial import Direction
from iodelta.workload.engines import engine_refusal
from iodelta.workload.fio import command, run
from iodelta.workload.layout import prepare
from iodelta.workload.leftovers import MARKER, carrying, marked
from iodelta.workload.model import FioRequest
from iodelta.workload.result import read_run

from .conftest import MIB

pytestmark = pytest.mark.fio
Make = Callable[..., FioRequest]


def offsets(machine: Machine, request: FioRequest) -> list[str]:
    """The offsets a run visits, from fio's own log of every I/O (the run is made as iodelta makes it)."""
    words = [w for w in command(request) if not re.match("--(log_avg_msec|write_iops_log|per_job_logs|ramp)", w)]
    log = f"{request.workdir}/every"
    words += [f"--write_lat_log={log}", "--log_offset=1", "--number_ios=200", "--time_based=0"]
    done = machine.run(words, cwd=request.workdir)
    assert done.returncode == 0, done.text
    return [line.split(",")[4] for file in machine.glob(f"{log}_lat.*.log") for line in machine.read(file).splitlines()]


def only(directions: tuple[Direction, ...]) -> Direction:
    (direction,) = directions
    return direction


def test_a_seed_decides_which_offsets_are_visited(machine: Machine, data: str, request_for: Make) -> None:
    visited = [offsets(machine, request_for(data, "rw=randread", "bs=4k", seed=seed)) for seed in (7, 7, 8)]
    assert len(visited[0]) >= 200
    assert visited[0] == visited[1]
    assert visited[0] != visited[2]


def test_jobs_of_one_trial_do_not_visit_the_same_offsets(machine: Machine, data: str, request_for: Make) -> None:
    visited = offsets(machine, request_for(data, "rw=randread", "bs=4k", "numjobs=2", "iodepth=1"))
    half = len(visited) // 2
    assert visited[:half] != visited[half:]


@pytest.mark.parametrize(
    "options",
    [
        ("rw=randread", "bs=4k", "ioengine=psync"),
        ("rw=randread", "bs=4k", "ioengine=libaio", "iodepth=8", "direct=1"),
        ("rw=randread", "bs=4k", "iodepth=8", "direct=1", "fixedbufs", "ioengine=io_uring"),
        ("readwrite=read", "bsrange=4k-64k", "norandommap", "numjobs=4", "thread"),
    ],
)
def test_a_run_keeps_exact_counts_and_both_histograms(
    machine: Machine, data: str, request_for: Make, options: tuple[str, ...]
) -> None:
    engine = next((o.partition("=")[2] for o in options if o.startswith("ioengine=")), "psync")
    request = request_for(data, *options)
    refused = engine_refusal(machine, engine, request.workdir)
    if refused:
        pytest.skip(refused)
    result = read_run(run(machine, request))
    assert result.usable
    assert [direction.kind for direction in result.directions] == ["read"]
    for direction in result.directions:
        assert direction.iops.value == pytest.approx(direction.ios * 1000 / direction.runtime_ms)
        assert direction.bandwidth.low <= direction.bytes * 1000 / direction.runtime_ms <= direction.bandwidth.high
        assert direction.runtime_ms >= 980
        for latency in (direction.lat, direction.clat):
            assert latency is not None
            assert latency.histogram is not None
            assert latency.histogram.total == latency.count
            assert latency.count == pytest.approx(direction.ios, rel=0.01)
            # A bin is 1/64 wide: one long I/O, of a disk that stalls, can be all of the mean.
            assert latency.histogram.mean() == pytest.approx(latency.mean.value, rel=1 / 128)


def test_a_mix_of_reads_and_writes_has_both_directions(machine: Machine, tmp_path: Path, request_for: Make) -> None:
    target = prepare(machine, f"{tmp_path}/mixed", 32 * MIB, workdir=str(tmp_path)).path
    result = read_run(run(machine, request_for(target, "rw=randrw", "rwmixread=70", "bs=4k", "direct=1")))
    assert result.usable
    reads, writes = (direction.ios for direction in result.directions)
    total = reads + writes
    assert reads / total == pytest.approx(0.7, abs=0.05 + 4 * (0.7 * 0.3 / total) ** 0.5)


@pytest.mark.parametrize("name", ["with space,comma", "pci-0000:00:1f.2", "$jobname %d ${HOME}", "-n", "ünï*[x]"])
def test_a_target_of_any_name_is_the_one_that_is_measured(
    machine: Machine, tmp_path: Path, request_for: Make, name: str
) -> None:
    target = prepare(machine, f"{tmp_path}/{name}", MIB, workdir=str(tmp_path)).path
    result = read_run(run(machine, request_for(target, "rw=randread", "bs=4k", runtime=0.3, ramp=0.0, size=MIB)))
    assert result.usable
    assert sorted(os.listdir(tmp_path)) == sorted({name, f".{name}.iodelta", "work", "layout.json", "layout.err"})


def test_the_per_second_log_adds_up_to_what_was_done(machine: Machine, data: str, request_for: Make) -> None:
    request = request_for(data, "rw=randread", "numjobs=2", "rate_iops=500", runtime=3, ramp=0.5)

    def adds_up() -> bool:
        result = read_run(run(machine, request))
        series = result.series["read.iops"]
        mean = pytest.approx(only(result.directions).iops.value, rel=0.1)
        return len(series) in (2, 3) and sum(series) / len(series) == mean

    until(adds_up)  # not in a run that a stall of the machine makes longer


def test_the_measured_window_lies_after_the_ramp_and_inside_the_run(
    machine: Machine, data: str, request_for: Make
) -> None:
    done = run(machine, request_for(data, "rw=randread", ramp=0.5))
    window = read_run(done).window
    assert window is not None
    assert window[0] >= done.started + 0.5
    assert window[1] <= done.started + done.seconds + 0.01
    direction = only(read_run(done).directions)
    assert window[1] - window[0] == pytest.approx(direction.runtime_ms / 1000, abs=0.01)
    assert direction.runtime_ms >= 980


def test_a_second_run_in_the_same_directory_does_not_inherit_the_first_ones_log(
    machine: Machine, data: str, request_for: Make
) -> None:
    request = request_for(data, "rw=randread", runtime=2, ramp=0.0)
    logs = [run(machine, request).log for _ in range(2)]
    assert [len(log.splitlines()) <= 2 for log in logs] == [True, True]


def test_a_stop_request_ends_fio_at_once_and_politely(machine: Machine, data: str, request_for: Make) -> None:
    def stop() -> bool:
        """When its three jobs are there, beside it."""
        return len(carrying(machine, MARKER, "stop-test")) > 3

    done = run(machine, request_for(data, "rw=randread", "numjobs=3", runtime=60), stop=stop, env=marked("stop-test"))
    assert done.ended == "stopped"
    assert b"terminating on signal 15" in done.output
    assert [f.rule for f in read_run(done).findings] == ["fio.stopped"]
    assert not read_run(done).usable


def test_a_run_over_its_time_is_ended_and_says_so(machine: Machine, data: str, request_for: Make) -> None:
    done = run(machine, request_for(data, "rw=randread", runtime=30), allowance=-29.0)
    assert done.ended == "timed out"
    assert [f.rule for f in read_run(done).findings] == ["fio.timeout"]


def test_an_exception_of_the_watcher_leaves_no_fio_behind(machine: Machine, data: str, request_for: Make) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(machine, request_for(data, "rw=randread", runtime=60), on_tick=interrupted, env=marked("watcher-test"))
    assert carrying(machine, MARKER, "watcher-test") == ()


@pytest.mark.parametrize("victim", ["main", "job"])
def test_a_fio_killed_by_a_signal_is_a_failed_run(machine: Machine, data: str, request_for: Make, victim: str) -> None:
    def kill(seconds: float) -> None:
        pids = carrying(machine, MARKER, f"kill-{victim}")
        chosen = pids[:1] if victim == "main" else pids[1:][-1:]
        for pid in chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    request = request_for(data, "rw=randread", "numjobs=2", runtime=8)
    done = run(machine, request, on_tick=kill, env=marked(f"kill-{victim}"))
    rules = [f.rule for f in read_run(done).findings if f.severity == "hard"]
    assert rules == ["fio.failed"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("rw=sideways",), "failed parsing rw=sideways"),
        (("iodpeth=4",), "unrecognized option"),
        (("ioengine=sg", "rw=read"), "wrong file type"),
        (("rw=randread", "bs=100", "direct=1", "ioengine=libaio"), "Invalid argument"),
    ],
)
def test_fios_own_words_explain_a_failed_run(
    machine: Machine, data: str, request_for: Make, options: tuple[str, ...], words: str
) -> None:
    result = read_run(run(machine, request_for(data, *options)))
    assert [f.rule for f in result.findings] == ["fio.failed"]
    assert words in result.findings[0].explanation


@pytest.mark.parametrize("engine", ["psync", "libaio"])
def test_reads_past_the_end_of_a_file_are_no_measurement(
    machine: Machine, data: str, request_for: Make, engine: str
) -> None:
    """libaio counts them as I/Os of no bytes, at great speed."""
    result = read_run(run(machine, request_for(data, "rw=randread", f"ioengine={engine}", size=64 * MIB)))
    assert result.findings[0].rule in ("fio.past-end", "fio.failed")
    assert not result.usable
    assert os.path.getsize(data) == 32 * MIB


@pytest.mark.parametrize(
    "options",
    [
        ("rw=randwrite", "size=64m"),
        ("rw=write", "size=16m", "offset=20m"),
        ("rw=randrw", "size=8m", "numjobs=4", "offset_increment=9m"),
        ("rw=write", "size=0x10"),
        ("rw=write", "fill_device=1"),
        ("rw=write", "size=16m", "offset=60%"),
    ],
)
def test_writes_past_the_end_are_refused_because_fio_would_delete_the_file(
    machine: Machine, data: str, request_for: Make, options: tuple[str, ...]
) -> None:
    before = os.stat(data).st_ino
    with pytest.raises(RequestError, match="past its 33554432 bytes"):
        run(machine, request_for(data, *options))
    assert os.stat(data).st_ino == before


@pytest.mark.root
def test_a_device_that_vanishes_during_the_run_is_a_failed_run(
    machine: Machine, workshop: Workshop, request_for: Make
) -> None:
    image = workshop.file(32)
    device = workshop.loop(image)

    def vanish(seconds: float) -> None:
        os.truncate(image, 0)  # losetup -d would wait for fio: the data goes, every read fails from here on
        subprocess.run(["losetup", "-c", device], check=True)

    request = request_for(device, "rw=randread", "bs=4k", "direct=1", target_kind="device", size=None, runtime=30)
    result = read_run(run(machine, request, on_tick=vanish))
    assert [f.rule for f in result.findings if f.severity == "hard"] == ["fio.failed"]
