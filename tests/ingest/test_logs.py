"""fio's logs: single I/Os and averages told apart, gaps counted as zeros, units from the reports beside them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_core import needs_native_core

from iodelta.ingest import Refusal, Run, log_names, log_rows, logs, read
from iodelta.probe.native import native
from iodelta.trial import Histogram, bin_index

DATA = Path(__file__).parent.parent / "data" / "fio-3.33"


@pytest.fixture(autouse=True, scope="module", params=["native core", "Python"])
def parser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every log is read by both."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "Python":
            patch.setattr(log_rows, "native_function", lambda name: None)
        yield


def log(tmp_path: Path, name: str, rows: str, beside: str | None = "jp1.json") -> Run:
    (tmp_path / name).write_text(rows)
    if beside is not None:
        (tmp_path / "report.json").write_text((DATA / beside).read_text())
    found = read([tmp_path])
    assert not found.refusals, found.refusals
    (run,) = [run for run in found.runs if run.format in ("log", "hist-log")]
    return run


def test_bandwidth_of_windows_is_in_kibibytes(tmp_path: Path) -> None:
    rows = "".join(f"{at}, 1024, 0, 0, 0\n" for at in range(500, 10_001, 500))
    (direction,) = log(tmp_path, "x_bw.1.log", rows).directions
    assert direction.bandwidth.low <= 1024 * 1024 <= direction.bandwidth.high
    assert direction.bandwidth.value == pytest.approx(2**20)
    assert math.isnan(direction.iops.value), "a bandwidth log says nothing about I/Os"


def test_single_ios_are_counted_and_summed() -> None:
    run = next(r for r in read([DATA]).runs if r.place.file.endswith("logs-b_clat.1.log"))
    rows = np.loadtxt(DATA / "logs-b_clat.1.log", delimiter=",", dtype=np.int64)
    (direction,) = run.directions
    assert (direction.ios, direction.bytes) == (len(rows), rows[:, 3].sum())
    assert direction.ios == 1500
    assert direction.clat is not None
    assert direction.clat.stddev.value == pytest.approx(rows[:, 1].std(ddof=1))
    assert direction.clat.histogram == Histogram.from_counts(Counter(map(bin_index, rows[:, 1].tolist())))


@pytest.mark.parametrize(
    ("beside", "low", "high", "rule"),
    [
        ("jp1.json", 100_000, 100_000, None),
        (None, 100_000, 100_001_000, "read.unit-unknown"),
    ],
)
def test_the_unit_of_latencies_comes_from_the_report_beside_the_log(
    tmp_path: Path, beside: str | None, low: float, high: float, rule: str | None
) -> None:
    rows = "".join(f"{at}, 100000, 0, 4096\n" for at in (0, 0, 1, 3, 3, 4, 9))
    run = log(tmp_path, "a_lat.log", rows, beside)
    lat = run.directions[0].lat
    assert lat is not None
    assert (lat.mean.low, lat.mean.high) == (low, high)
    assert {f.rule for f in run.findings} == ({rule} if rule else set())


def test_a_log_of_fio_2_is_in_microseconds(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text((DATA.parent / "same-run" / "fio-2.17.out").read_text())
    run = log(tmp_path, "a_clat.1.log", "0, 50, 0, 4096\n0, 70, 0, 4096\n5, 60, 0, 4096\n", beside=None)
    clat = run.directions[0].clat
    assert clat is not None
    assert clat.mean.low <= 60_000 <= clat.mean.high
    assert clat.min.value == 50_000


def test_the_directions_of_a_log_are_told_apart(tmp_path: Path) -> None:
    run = log(tmp_path, "j_lat.2.log", "0, 10, 0, 4096, 0\n0, 20, 1, 8192, 0\n0, 30, 1, 8192, 0\n7, 40, 2, 512, 0\n")
    assert {d.kind: d.ios for d in run.directions} == {"read": 1, "write": 2, "trim": 1}
    assert run.labels == {"log": "lat", "job": "2"}
    assert run.jobname == "j"


def test_a_clock_that_counts_from_1970_is_the_same_log(tmp_path: Path) -> None:
    rows = [(at, 4096 * at % 977 + 5) for at in range(0, 4000, 7)]
    plain = log(tmp_path, "a_lat.log", "".join(f"{at}, {v}, 0, 4096, 0\n" for at, v in rows))
    epoch = 1_700_000_000_000
    late = log(tmp_path, "a_lat.log", "".join(f"{at + epoch}, {v}, 0, 4096, 0\n" for at, v in rows))
    (direction,), (of_epoch,) = plain.directions, late.directions
    assert (of_epoch.ios, of_epoch.bytes, of_epoch.lat) == (direction.ios, direction.bytes, direction.lat)
    assert of_epoch.iops.value == pytest.approx(direction.iops.value, rel=0.002), "nothing says when the job began"


def test_a_clock_that_counts_from_1970_costs_averages_no_window(tmp_path: Path) -> None:
    rows = "".join(f"{1_700_000_000_937 + at}, 300, 0, 0, 0\n" for at in range(500, 4001, 500))
    (direction,) = log(tmp_path, "x_iops.1.log", rows).directions
    assert direction.iops.value == pytest.approx(300)


def test_maximum_beside_the_value_does_not_shift_the_direction(tmp_path: Path) -> None:
    rows = "".join(f"{at}, 100, 900, 1, 0, 0\n" for at in range(500, 5001, 500))
    (direction,) = log(tmp_path, "m_clat.1.log", rows).directions
    assert direction.kind == "write"
    assert direction.clat is not None
    assert direction.clat.mean.value == 100


def test_damaged_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    good = "".join(f"{at}, 100, 0, 4096, 0\n" for at in range(40))
    run = log(
        tmp_path, "d_lat.1.log", good + "41, 100, 7, 4096, 0\n42, x, 0, 4096, 0\n43, 99999999999999999999, 0, 1\n44,"
    )
    assert run.directions[0].ios == 40
    (finding,) = [f for f in run.findings if f.rule == "read.damaged"]
    assert "4 rows" in finding.explanation


def test_a_log_whose_name_does_not_say_what_it_holds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fio.log").write_text("0, 1, 0, 4096\n1, 1, 0, 4096\n")
    (refusal,) = read([tmp_path]).refusals
    assert "name" in refusal.reason


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("fio_bw.1.log", "bw"),
        ("a/b_iops.12.log", "iops"),
        ("x_clat.log", "clat"),
        ("agg-read_bw.log", "bw"),
        ("iops/lat.1.log", "lat"),
        ("run_slat_lat.1.log", "lat"),
        ("latest.log", None),
        ("z_clat_hist.1.log", None),
    ],
)
def test_what_a_log_holds_is_in_its_name(name: str, of: str | None) -> None:
    assert log_names.what(name) == of


def test_a_log_is_recognised_by_its_rows_and_nothing_else() -> None:
    assert logs.is_log(b"0, 1, 0, 4096\n10, 1, 1, 4096\n")
    assert not logs.is_log(b"0, 1, 0\n")
    assert not logs.is_log(b"time, value, dir, bs\n0, 1, 0, 4096\n")
    assert not logs.is_log(b"a" * 10_000)


def hist_row(time: int, bins: int, counts: dict[int, int]) -> str:
    return ", ".join(map(str, [time, 0, 4096, *(counts.get(index, 0) for index in range(bins))])) + "\n"


def test_a_histogram_log_may_count_from_1970(tmp_path: Path) -> None:
    rows = "".join(hist_row(1_700_000_000_517 + 500 * number, 1856, {500: 150}) for number in range(8))
    (tmp_path / "x_clat_hist.1.log").write_text(rows)
    (run,) = read([tmp_path]).runs
    assert run.directions[0].iops.value == pytest.approx(300)
    assert run.directions[0].runtime_ms == 4000


def test_garbage_in_the_upper_bins_is_refused(tmp_path: Path) -> None:
    rows = hist_row(1000, 1856, {500: 100, 1500: 2**62}) + hist_row(2000, 1856, {500: 100})
    (tmp_path / "x_clat_hist.1.log").write_text(rows)
    found = read([tmp_path])
    assert not found.runs
    assert "3.6 to 3.16" in found.refusals[0].reason


def test_an_empty_log_is_refused_as_empty() -> None:
    (refusal,) = read([DATA / "logs-a_slat.1.log"]).refusals
    assert isinstance(refusal, Refusal)
    assert "empty" in refusal.reason


def test_the_last_window_of_a_log_is_a_part_of_one(tmp_path: Path) -> None:
    """fio flushes what it holds at the end: twice a row at the same time."""
    times = [565, 1000, 1504, 2000, 2500, 3000, 3000]
    run = log(tmp_path, "x_clat.1.log", "".join(f"{at}, {1000 + at}, 0, 0, 0\n" for at in times))
    (direction,) = run.directions
    assert math.isnan(direction.iops.value)
    assert direction.clat is not None
    assert not direction.clat.percentiles
    assert direction.clat.histogram is None
    assert direction.clat.mean.low < direction.clat.mean.value < direction.clat.mean.high, "rows weigh nothing"
    assert "read.log-averaged" in {finding.rule for finding in run.findings}


def test_both_parsers_of_python_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rows, "native_function", lambda name: None)
    quick = read([DATA / "logs-b_clat.1.log"]).runs
    monkeypatch.setattr(log_rows, "matrix", lambda rows, columns: None)
    assert read([DATA / "logs-b_clat.1.log"]).runs == quick


NUMBER = st.integers(0, 10**6) | st.integers(-3, 2**70)
COLUMN = st.one_of(NUMBER.map(str), st.sampled_from(["", "x", "0x4001", "1.5", "007", "-"]))
SOUND = st.tuples(
    *[st.integers(0, 10**9).map(str)] * 5, st.sampled_from(["", ", 0", ", 0x4001", ", x y", ", \xe9"])
).map(lambda row: ", ".join(row[:5]) + row[5])
ROW = SOUND | st.tuples(st.lists(COLUMN, min_size=1, max_size=7), st.sampled_from([", ", ",", " ,", ",  "])).map(
    lambda row: row[1].join(row[0])
)


def alike(text: bytes, shift: int) -> None:
    """Both find the same rows in ``text``."""
    found = log_rows._parsed(text, shift)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_rows, "native_function", lambda name: None)
        expected = log_rows._parsed(text, shift)
    assert found.damaged == expected.damaged
    for own, other in zip(found[:4], expected[:4], strict=True):
        assert own.tolist() == other.tolist()


@needs_native_core
@given(st.lists(SOUND, min_size=1), st.sampled_from(["\n", "\r\n"]), st.sampled_from([b"", b"\n", b"\r", b"\r\n"]))
def test_the_native_core_takes_sound_rows(rows: list[str], end: str, last: bytes) -> None:
    text = end.join(rows).encode("latin-1") + last
    assert native().take_rows(text, 0) is not None
    alike(text, 0)


@needs_native_core
@given(st.lists(ROW, min_size=1), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from([0, 1]))
def test_the_native_core_finds_the_rows_that_python_does(rows: list[str], end: str, ended: bool, shift: int) -> None:
    alike((end.join(rows) + end * ended).encode(), shift)


def test_histogram_rows_of_two_directions_and_damaged_ones_between(tmp_path: Path) -> None:
    def row(time: int, kind: int, count: int) -> str:
        return f"{time}, {kind}, 4096, {', '.join([str(count), *['0'] * 1855])}\n"

    text = row(1000, 0, 5) + row(1000, 1, 7) + "1500, 0, cut\n" + row(1500, 9, 3) + row(2000, 0, 2) + row(2000, 1, 1)
    text += row(2500, 0, 7)[:900]
    (tmp_path / "x_clat_hist.1.log").write_text(text)
    (run,) = read([tmp_path]).runs
    assert {d.kind: d.ios for d in run.directions} == {"read": 7, "write": 8}
    assert [f.explanation for f in run.findings if f.rule == "read.damaged"] == ["3 rows left out: cut or damaged"]


@pytest.mark.parametrize("lost", [1, 2, 5, 9, 13, 17])
def test_a_log_that_is_cut_within_its_last_row_is_read_without_it(tmp_path: Path, lost: int) -> None:
    rows = "".join(f"{at}, 100, 0, 4096\n" for at in range(100, 140))
    run = log(tmp_path, "d_lat.1.log", rows[:-lost])
    assert run.directions[0].ios == 39
    assert run.directions[0].bytes == 39 * 4096
    assert ["1 row" in f.explanation for f in run.findings if f.rule == "read.damaged"] == [True]


WINDOWS = [f"{at}, {17_000 + at}, 0, 0, 0\n" for at in range(517, 5171, 517)]
BINS = [f"{at}, 0, 4096, {'0, ' * 100}3{', 0' * 1755}\n" for at in range(1000, 5001, 1000)]


@pytest.mark.parametrize(
    ("name", "rows", "again"),
    [
        ("x_bw.1.log", WINDOWS, False),
        ("x_bw.1.log", WINDOWS * 2, True),
        ("x_iops.1.log", WINDOWS, False),
        ("x_iops.1.log", WINDOWS * 2, True),
        ("x_lat.1.log", WINDOWS, False),
        ("x_lat.1.log", WINDOWS * 2, True),
        ("x_clat_hist.1.log", BINS, False),
        ("x_clat_hist.1.log", BINS * 2, True),
        # fio reads the clock for each direction, so rows of one tick may differ by a millisecond
        ("x_bw.1.log", [f"{at + 1}, 17, 0, 0, 0\n{at}, 18, 1, 0, 0\n" for at in range(500, 5001, 500)], False),
        # ``1034, 17500, 0, 0, 0`` without its first letters is a row of another time
        ("x_bw.1.log", [row[1:] for row in WINDOWS], True),
        ("x_bw.1.log", [row[2:] for row in WINDOWS], True),
    ],
)
def test_a_log_whose_time_goes_back_says_that_its_rows_are_added_up(
    name: str, rows: list[str], again: bool, tmp_path: Path
) -> None:
    """fio appends to a log that is there (per_job_logs=0), and a log pasted twice is the sum of two jobs."""
    run = log(tmp_path, name, "".join(rows))
    assert ("read.log-again" in {finding.rule for finding in run.findings}) == again


def test_a_log_of_bare_carriage_returns_is_refused(tmp_path: Path) -> None:
    """Its first row was the whole log."""
    (tmp_path / "x_bw.1.log").write_bytes("".join(WINDOWS).replace("\n", "\r").encode())
    found = read([tmp_path / "x_bw.1.log"])
    assert not found.runs
    assert found.refusals
