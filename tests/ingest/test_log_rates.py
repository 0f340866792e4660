"""What bw and iops logs add up to, against the totals that fio reported of the same runs.

``data/logs`` holds logs of six versions of fio, built from its tags, that ran slow jobs: a few I/Os per second, evenly
or in bursts, so that windows are of uneven length and single I/Os lie far apart. ``truth.csv`` has the totals of their
JSON. Up to 2.9 rows are averages whatever options say, with the block size of an I/O in them; since 2.10 they are
single I/Os unless log_avg_msec is given.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import LIMIT

from iodelta.ingest import Imported, read
from iodelta.ingest.reading import read_bytes
from iodelta.trial import Kind, Quantity

LOGS = Path(__file__).parent.parent / "data" / "logs"

Truth = tuple[str, str, Kind, int, int, int]

BURSTS = ("stall", "stall2")
"""What they did after the last row is a burst of five."""


KINDS: dict[str, Kind] = {"read": "read", "write": "write"}


def truths() -> list[Truth]:
    with (LOGS / "truth.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    return [(v, case, KINDS[kind], int(ios), int(size), int(runtime)) for v, case, kind, ios, size, runtime in rows]


def name_of(truth: Truth) -> str:
    return "-".join(truth[:3])


def rates(found: Imported, kind: Kind) -> tuple[Quantity, Quantity]:
    """IOPS of the iops log and bandwidth of the bw log, each read by itself."""
    of = {run.labels["log"]: direction for run in found.runs if (direction := run.direction(kind))}
    return of["iops"].iops, of["bw"].bandwidth


@pytest.mark.parametrize("reported", [True, False], ids=["beside a report", "alone"])
@pytest.mark.parametrize("truth", truths(), ids=name_of)
def test_a_log_makes_the_rate_that_fio_reported(truth: Truth, reported: bool, tmp_path: Path) -> None:
    version, case, kind, ios, size, runtime = truth
    for log in (LOGS / version / case).glob("*.log"):
        shutil.copy(log, tmp_path)
    if reported:  # it tells which fio wrote the logs
        report = {"fio version": f"fio-{version}", "jobs": [{"jobname": "other", "groupid": 0, "read": {}}]}
        (tmp_path / "report.json").write_text(json.dumps(report))
    found = read([tmp_path])
    spare = 0.25 if case in BURSTS else 0.15
    for rate, amount in zip(rates(found, kind), (ios, size), strict=True):
        expected = amount * 1000 / runtime
        assert rate.low <= rate.value <= rate.high
        if rate.value == pytest.approx(expected, rel=spare):
            continue
        assert not reported, (rate, expected)  # without one, the interval says how little is known
        assert rate.low <= expected * (1 + spare), (rate, expected)
        assert rate.high >= expected * (1 - spare), (rate, expected)


PER_IO = [truth for truth in truths() if truth[0] not in ("2.0.15", "2.2.10")]


@pytest.mark.parametrize("truth", PER_IO, ids=name_of)
def test_single_ios_are_counted_however_far_apart_they_lie(truth: Truth) -> None:
    """A rate limit or thinktime spaces them as evenly as windows; that every iops row is 1 tells them from these."""
    version, case, kind, ios, size, _ = truth
    rows = [line.split(",") for log in (LOGS / version / case).glob("*iops*") for line in log.read_text().splitlines()]
    if {row[1].strip() for row in rows} != {"1"}:
        return
    for run in read([LOGS / version / case]).runs:
        direction = run.direction(kind)
        assert direction is not None
        assert (direction.ios, direction.bytes) == (ios, size)
        said = {finding.rule for finding in run.findings}
        assert said == ({"read.log-again"} if case == "jobs" else set())


def test_a_bw_log_alone_of_an_old_fio_is_not_multiplied_by_its_block_size() -> None:
    log = LOGS / "2.2.10" / "fast" / "x_bw.1.log"
    (run,) = read([log]).runs
    (direction,) = run.directions
    assert direction.bandwidth.value == pytest.approx(61_444_096 / 5.001, rel=0.02)
    assert "read.log-unclear" in {finding.rule for finding in run.findings}


def test_where_neither_name_nor_value_tells_what_rows_are_there_is_no_rate() -> None:
    """One I/O in 143 ms at the speed of the page cache, or a busy job in windows of 143 ms: 10,000 times apart."""
    rows = "".join(f"{at}, 800000, 0, 4096\n" for at in range(143, 8000, 143)).encode()
    (run,) = read_bytes(rows, "x_bw.1.log").runs
    (direction,) = run.directions
    assert math.isnan(direction.bandwidth.value)
    assert direction.ios == 0
    assert [finding.rule for finding in run.findings] == ["read.log-unclear"]


def test_logs_that_were_averaged_and_compressed_say_nothing_of_the_rate(tmp_path: Path) -> None:
    """fio 3.33 --log_avg_msec=500 --log_compression=1M at 300 IOPS of 4 KiB (1200 KiB/s): these are its rows."""
    (tmp_path / "x_iops.1.log").write_text("".join(f"{at}, 1, 0, 0, 0\n" for at in range(500, 4001, 500)))
    rates_of_ios = (24951, 33124, 34047, 47570, 60142, 57803, 61998, 61250)
    rows = (f"{500 * number}, {rate}, 0, 0, 0\n" for number, rate in enumerate(rates_of_ios, 1))
    (tmp_path / "x_bw.1.log").write_text("".join(rows))
    found = read([tmp_path])
    assert all(rate.high == float("inf") for rate in rates(found, "read"))
    assert {finding.rule for run in found.runs for finding in run.findings} == {"read.log-ones"}


ARRIVALS = st.lists(st.integers(1, 900), min_size=30, max_size=400)
"""Milliseconds from one I/O to the next."""


@given(ARRIVALS, st.sampled_from([512, 4096, 65536]), st.sampled_from([100, 500]))
def test_windows_that_an_io_ends_weigh_what_they_last(gaps: list[int], block: int, least: int) -> None:
    """As fio 2.2 samples: when an I/O ends ``least`` or more after the last sample, of all since then."""
    now = since = ios = 0
    rows: list[tuple[int, int, int]] = []
    logged = 0
    for gap in gaps:
        now, ios = now + gap, ios + 1
        if now - since >= least:
            spent = now - since
            rows.append((now, ios * 1000 // spent, ios * block * 1000 // spent // 1024))
            logged, since, ios = logged + ios, now, 0
    iops = "".join(f"{at}, {value}, 0, {block}\n" for at, value, _ in rows)
    if all(value <= 1 for _, value, _ in rows):
        return  # no more than one a second: rows may be single I/Os as well
    (run,) = read_bytes(iops.encode(), "x_iops.1.log").runs
    rate = run.directions[0].iops
    truth = logged * 1000 / rows[-1][0]
    assert rate.low <= truth <= rate.high
    assert rate.value > truth - 1, "every row is cut to an integer, and nothing else is lost"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3000)), min_size=4, max_size=60))
def test_windows_of_the_clock_without_io_count_as_zeros(windows: list[tuple[int, int]]) -> None:
    """As fio 3.18 and later sample: every 500 ms, no row for windows without I/O."""
    at = total = 0
    rows = []
    for idle, ios in windows:
        at += 500 * (idle + 1)
        total += ios
        rows.append(f"{at}, {ios * 2}, 0, 0, 0\n")
    (run,) = read_bytes("".join(rows).encode(), "x_iops.1.log").runs
    rate = run.directions[0].iops
    if min(idle for idle, _ in windows[1:-1]) == 0:  # else nothing shows how short a window is
        assert rate.value * at / 1000 == pytest.approx(total)


@pytest.mark.fio
def test_the_logs_of_a_run_here_make_what_its_json_says(tmp_path: Path) -> None:
    command = (
        "fio --name=j --size=1m --bs=4k --rw=randrw --ioengine=psync --time_based --runtime=3 --rate_iops=12,9".split()
    )
    logs = ["--write_bw_log=x", "--write_iops_log=x", "--output-format=json", "--output=report.json"]
    subprocess.run([*command, *logs], cwd=tmp_path, check=True, capture_output=True, timeout=LIMIT)
    document = json.loads(re.sub(r"^[^{]*", "", (tmp_path / "report.json").read_text()))
    found = read(sorted(tmp_path.glob("*.log")))
    for kind in ("read", "write"):
        done = document["jobs"][0][kind]
        for run in found.runs:
            direction = run.direction(KINDS[kind])
            assert direction is not None
            assert (direction.ios, direction.bytes) == (done["total_ios"], done["io_bytes"])


@pytest.mark.parametrize("directions", [1, 2])
def test_averages_with_block_sizes_and_a_fifth_column_are_not_single_ios(directions: int) -> None:
    """A fio before 2.10 with log_offset: 100 ms windows of 5000 KiB/s are not one block of 8 KiB each."""
    rows = [f"{105 * number}, 5000, {kind}, 8192, 0\n" for number in range(1, 80) for kind in range(directions)]
    (run,) = read_bytes("".join(rows).encode(), "x_bw.1.log").runs
    assert all(math.isnan(direction.bandwidth.value) for direction in run.directions)
    assert all(math.isnan(direction.iops.value) for direction in run.directions)
    assert [finding.rule for finding in run.findings] == ["read.log-unclear"]


def test_offsets_tell_that_a_row_is_a_single_io() -> None:
    """thinktime: 8 KiB in half a millisecond, ten times a second."""
    rows = [f"{100 * number}, 16384, 0, 8192, {8192 * number}\n" for number in range(1, 80)]
    (run,) = read_bytes("".join(rows).encode(), "x_bw.1.log").runs
    assert run.directions[0].iops.value == pytest.approx(10)
