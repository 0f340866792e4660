"""One run, printed by fio in all its formats at once, is the same run whichever format is read.

The files hold what ten versions of fio printed of two jobs (a group of two, then a mixed one with fsync) with every
output format asked for at once; 2.0.15 to 2.2.10, which print only one, had their three printing functions called in
turn. So every number in one format must be able to be the number in another.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from told import runs_of

from iodelta.ingest import Disk, read
from iodelta.ingest.layouts import read_layout
from iodelta.ingest.merge import shared

HERE = Path(__file__).parent.parent / "data" / "same-run"
FILES = sorted(HERE.glob("fio-*.out"))


def apart(text: str) -> dict[str, str]:
    """The terse records, the JSON document and the normal report of a file that holds all three."""
    document = re.search(r"^\{$.*?^\}$", text, re.M | re.S)
    assert document is not None
    rest = text[: document.start()] + text[document.end() :]
    records = [line for line in rest.splitlines() if re.match(r"3;fio-", line)]
    normal = [line for line in rest.splitlines() if line not in records]
    return {"json": document[0], "terse": "\n".join(records), "text": "\n".join(normal)}


def counters(disk: Disk) -> tuple[str, int, int, int, int, int]:
    return (disk.name, disk.read_ios, disk.write_ios, disk.read_ticks, disk.write_ticks, disk.in_queue)


def test_two_short_runs_within_one_second_are_two() -> None:
    """``fio ... >> out.json`` twice, each done in 50 ms: the second was a little longer, its slowest I/O faster."""
    numbers = '"min": {}, "max": {}, "mean": 100000.0, "stddev": 5.0, "N": 512'
    job = (
        '{{"fio version": "fio-3.33", "timestamp": 1700000000, "timestamp_ms": 17000000000{},'
        ' "jobs": [{{"jobname": "a",'
        ' "groupid": 0, "error": 0, "elapsed": 1, "read": {{"io_bytes": 2097152, "bw_bytes": 40000000, "iops": 9000.0,'
        ' "runtime": {}, "total_ios": 512, "lat_ns": {{{}}}}}}}]}}\n'
    )
    first = job.format("00", 53, numbers.format(30_000, 4_000_000))
    second = job.format("90", 55, numbers.format(31_000, 900_000))
    assert [run.directions[0].runtime_ms for run in runs_of(first + second)] == [53, 55]


def test_there_is_a_run_of_each_generation() -> None:
    assert len(FILES) == 10


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_every_quantity_that_two_formats_share_can_be_the_same_number(file: Path) -> None:
    formats = {name: runs_of(text) for name, text in apart(file.read_text()).items()}
    compared = 0
    for (one, runs), (other, others) in combinations(formats.items(), 2):
        assert [(r.jobname, r.group) for r in runs] == [(r.jobname, r.group) for r in others]
        for run, twin in zip(runs, others, strict=True):
            assert [d.kind for d in run.directions] == [d.kind for d in twin.directions]
            for a, b in zip(run.directions, twin.directions, strict=True):
                assert a.runtime_ms == b.runtime_ms
                assert not (a.ios and b.ios) or a.ios == b.ios
                for name, x, y in shared(a, b):
                    compared += 1
                    assert x.overlaps(y), f"{one} and {other}: {run.jobname} {a.kind} {name}: {x} {y}"
            for name, x, y in (("usr", run.usr_cpu, twin.usr_cpu), ("sys", run.sys_cpu, twin.sys_cpu)):
                assert x.overlaps(y), f"{one} and {other}: {name} {x} {y}"
            assert run.context_switches == twin.context_switches
            for depth in run.depths.keys() & twin.depths.keys():
                assert run.depths[depth].overlaps(twin.depths[depth])
            for disk, same in zip(run.disks, twin.disks, strict="terse" not in (one, other)):  # it may have none
                assert counters(disk) == counters(same)
                assert disk.util == pytest.approx(same.util, abs=0.006), "JSON has finer shares"
                assert disk.read_sectors == same.read_sectors or None in (disk.read_sectors, same.read_sectors)
    assert compared > 250, "17 percentiles, 12 latency numbers and 2 rates of 3 directions, thrice"


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_run_shown_in_several_formats_is_one_run_without_contradiction(file: Path) -> None:
    found = read([file])
    assert [run.jobname for run in found.runs] == ["rr", "mixed"]
    assert not found.refusals
    for run in found.runs:
        assert run.format.startswith("json")
        assert set(run.also) == {"terse3", "text"}
        assert run.pid is not None, "only the normal report has the pid"
        assert "read.disagree" not in {finding.rule for finding in run.findings}
    assert [run.jobs for run in found.runs] == [2, 1]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_an_interval_is_no_wider_than_its_format_makes_it(file: Path) -> None:
    formats = {name: runs_of(text) for name, text in apart(file.read_text()).items()}
    for name, runs in formats.items():
        for run in runs:
            for direction in run.directions:
                assert direction.clat is not None
                rates = [direction.iops, direction.bandwidth]
                assert all((rate.high - rate.low) / rate.value < 0.002 for rate in rates), (name, rates)
                mean = direction.clat.mean
                assert (mean.high - mean.low) / mean.value < 0.001, (name, mean)
                for percent, value in direction.clat.percentiles.items():
                    assert (value.high - value.low) / value.value < 0.04, (name, percent, value)


def with_ramp(text: str, in_flight: int) -> str:
    """As if a ramp had ended with so many I/Os in flight: their bytes are in the report, their count is not.

    fio 3.33 did so with 32,023 I/Os and the bytes of 32,030.
    """

    def longer(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) + in_flight * 4096}" if int(found[2]) else found[0]

    return re.sub(r'("io_bytes" : )(\d+)', longer, text)


NEWER = [file for file in FILES if tuple(map(int, file.stem[4:].split("."))) >= (2, 21)]


@pytest.mark.parametrize("file", NEWER, ids=lambda path: path.stem)
def test_a_run_with_a_ramp_in_json_and_text_is_one(file: Path, tmp_path: Path) -> None:
    own = apart(file.read_text())
    ramped = with_ramp(own["json"], 8)
    assert ramped != own["json"]
    (tmp_path / "both.txt").write_text(f"{ramped}\n{own['text']}")
    found = read([tmp_path / "both.txt"])
    assert [(run.jobname, run.also) for run in found.runs] == [("rr", ("text",)), ("mixed", ("text",))]


@pytest.mark.parametrize("ramp", [0, 8])
@pytest.mark.parametrize("file", NEWER, ids=lambda path: path.stem)
def test_a_run_in_two_files_is_counted_once_and_that_is_said(file: Path, ramp: int, tmp_path: Path) -> None:
    own = apart(file.read_text())
    (tmp_path / "result.json").write_text(with_ramp(own["json"], ramp))
    (tmp_path / "result.txt").write_text(own["text"])
    entries = read_layout(tmp_path).entries
    assert [entry.run.jobname for entry in entries] == ["rr", "mixed"]
    for entry in entries:
        said = [finding.explanation for finding in entry.run.findings if finding.rule == "read.twice"]
        assert said == [f"the same run is in {tmp_path}/result.txt as text: it counts once"]


def test_another_run_of_the_same_job_is_not_taken_for_the_same(tmp_path: Path) -> None:
    """A rate limit makes counts and run times the same; latencies and context switches are not."""
    own = apart((HERE / "fio-3.33.out").read_text())
    document = json.loads(own["json"])
    for job in document["jobs"]:
        job["ctx"] += 1
    (tmp_path / "result.json").write_text(json.dumps(document, indent=2))
    (tmp_path / "result.txt").write_text(own["text"])
    assert len(read_layout(tmp_path).entries) == 4
