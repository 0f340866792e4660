"""fio's logs: single I/Os and averages told apart, gaps counted as zeros, units from the reports beside them."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_core import needs_native_core

from iodelta.ingest import Refusal, Run, log_names, log_rows, logs, read
from iodelta.ingest.hist_logs import is_hist_log
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


def test_windows_without_io_count_as_zeros() -> None:
    """Real stalls of 2 s: rows only for the windows between them. The run's JSON says 20000 I/Os in 9449 ms."""
    (run,) = read([DATA / "stall_iops.1.log"]).runs
    (direction,) = run.directions
    assert direction.runtime_ms == 7503
    done = direction.iops.value * 7.503
    assert done == pytest.approx(20000, rel=0.001), "the rest of the time nothing was done"
    assert 0.0 in run.series["read.iops"]
    assert sum(run.series["read.iops"]) == pytest.approx(20000, rel=0.001)


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
    assert direction.ios == len(rows) == 1500
    assert direction.bytes == int(rows[:, 3].sum())
    assert direction.clat is not None
    assert direction.clat.mean.value == pytest.approx(rows[:, 1].mean())
    assert direction.clat.stddev.value == pytest.approx(rows[:, 1].std(ddof=1))
    assert (direction.clat.min.value, direction.clat.max.value) == (rows[:, 1].min(), rows[:, 1].max())
    counts: dict[int, int] = {}
    for value in rows[:, 1].tolist():
        counts[bin_index(value)] = counts.get(bin_index(value), 0) + 1
    assert direction.clat.histogram == Histogram.from_counts(counts)


def test_averages_have_no_percentiles() -> None:
    run = next(r for r in read([DATA]).runs if r.place.file.endswith("logs-a_clat.1.log"))
    for direction in run.directions:
        assert direction.clat is not None
        assert not direction.clat.percentiles
        assert direction.clat.histogram is None
        assert direction.clat.mean.low < direction.clat.mean.value < direction.clat.mean.high, "rows weigh nothing"
    assert "read.log-averaged" in {f.rule for f in run.findings}


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


def test_priorities_in_hexadecimal_and_offsets_do_not_matter(tmp_path: Path) -> None:
    rows = "".join(f"{at}, {at + 5}, 0, 4096, {at * 4096}, 0x2001\n" for at in range(50))
    (direction,) = log(tmp_path, "m_clat.1.log", rows).directions
    assert direction.ios == 50


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


def test_rows_across_the_edges_of_what_is_read_at_once_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{at}, {at * 31 % 1009}, {at % 2}, 4096, 0\n" for at in range(3000)).encode()
    whole = logs.summarise("x_lat.log", rows[:100], io.BytesIO(rows[100:]))
    for chunk in (64, 97, 1000, 65536):
        monkeypatch.setattr(log_rows, "CHUNK", chunk)
        parts = logs.summarise("x_lat.log", rows[:100], io.BytesIO(rows[100:]))
        assert isinstance(parts, logs.Summary)
        assert isinstance(whole, logs.Summary)
        assert parts.run((3, 33), "3.33") == whole.run((3, 33), "3.33")


def test_histogram_logs_add_up_to_what_fio_logged() -> None:
    """9324 of the 13708 reads of this run: what came after the last full second is not in the log."""
    run = next(r for r in read([DATA]).runs if r.place.file.endswith("logs-a_clat_hist.1.log"))
    assert {d.kind: d.ios for d in run.directions}["read"] == 9324
    for direction in run.directions:
        assert direction.clat is not None
        assert direction.clat.histogram is not None
        assert direction.clat.histogram.total == direction.ios
        assert direction.clat.mean.low <= direction.clat.histogram.mean() <= direction.clat.mean.high


def hist_row(time: int, bins: int, counts: dict[int, int]) -> str:
    return ", ".join(map(str, [time, 0, 4096, *(counts.get(index, 0) for index in range(bins))])) + "\n"


@pytest.mark.parametrize("coarseness", [0, 1, 3, 6])
def test_coarser_histograms_have_wider_percentiles_that_hold_the_fine_ones(tmp_path: Path, coarseness: int) -> None:
    index = bin_index(123_456)
    (tmp_path / "x_clat_hist.1.log").write_text(hist_row(1000, 1856 >> coarseness, {index >> coarseness: 500}))
    (run,) = read([tmp_path]).runs
    clat = run.directions[0].clat
    assert clat is not None
    p50 = clat.percentiles[50.0]
    assert p50.low <= 123_456 < p50.high
    assert (clat.histogram is not None) == (coarseness == 0)


def test_histograms_of_fio_2_are_of_microseconds(tmp_path: Path) -> None:
    (tmp_path / "x_clat_hist.1.log").write_text(hist_row(1000, 1216, {bin_index(123): 500}))
    (run,) = read([tmp_path]).runs
    clat = run.directions[0].clat
    assert clat is not None
    assert clat.percentiles[50.0].low == 123_000


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


def test_a_cut_histogram_row_is_left_out(tmp_path: Path) -> None:
    rows = hist_row(1000, 1856, {500: 7}) + hist_row(2000, 1856, {500: 7})[:900]
    (tmp_path / "x_clat_hist.1.log").write_text(rows)
    (run,) = read([tmp_path]).runs
    assert run.directions[0].ios == 7
    assert "read.damaged" in {f.rule for f in run.findings}


def test_a_histogram_log_is_told_from_other_tables_of_numbers() -> None:
    assert is_hist_log(hist_row(1, 1856, {}).encode())
    assert not is_hist_log(hist_row(1, 1857, {}).encode())
    assert not is_hist_log(b"1, 2, 3\n")


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
    assert "read.log-averaged" in {finding.rule for finding in run.findings}


def test_jobs_that_share_a_log_add_up(tmp_path: Path) -> None:
    """per_job_logs=0: the rows of the second job follow those of the first."""
    one, two = (202, 405, 617, 838, 1043, 1243), (201, 404, 615, 837, 1041, 1242)
    text = "".join(f"{at}, 4000, 0, 0, 0\n{at}, 1000, 1, 0, 0\n" for at in (*one, *two))
    read_, write = log(tmp_path, "pj_iops.log", text).directions
    assert read_.iops.value == pytest.approx(8000, rel=0.05)
    assert write.iops.value == pytest.approx(2000, rel=0.05)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (b"1, 2, 3\n4,5,6\n", [[1, 2, 3], [4, 5, 6]]),
        (b"1, 2, 3\r\n4, 5, 6\r\n", [[1, 2, 3], [4, 5, 6]]),
        (b"1, 2, 18446744073709551616", [[1, 2, 2**63 - 1]]),
        (b"1, 2\n3, 4, 5, 6\n", None),
        (b"1, 2, 3\n\n4, 5, 6\n", None),
        (b"1, , 3\n", None),
        (b"1 2, 3, 4\n", None),
        (b"1, -2, 3\n", None),
        (b"1, 2.5, 3\n", None),
        (b"1, 2, 0x3\n", None),
        (b"", None),
    ],
)
def test_rows_of_whole_numbers_become_a_matrix_and_others_nothing(rows: bytes, found: list[list[int]] | None) -> None:
    got = log_rows.matrix(rows, 3)
    assert (None if got is None else got.tolist()) == found


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


def test_zeros_around_the_counts_of_histogram_rows_may_differ_from_row_to_row(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows, total = [], [0] * 1856
    for time in range(1, 60):
        counts = [0] * 1856
        for _ in range(rng.randrange(4)):
            counts[rng.choice((0, 1, 700, 701, 710, 1854, 1855))] = rng.choice((1, 10, 100))
        total = [a + b for a, b in zip(total, counts, strict=True)]
        rows.append(f"{time}000, 0, 4096, {', '.join(map(str, counts))}\n")
    (tmp_path / "x_clat_hist.1.log").write_text("".join(rows))
    (run,) = read([tmp_path]).runs
    assert run.directions[0].clat is not None
    assert run.directions[0].clat.histogram == Histogram.from_counts(dict(enumerate(total)))


def test_histogram_rows_of_two_directions_and_damaged_ones_between(tmp_path: Path) -> None:
    def row(time: int, kind: int, count: int) -> str:
        return f"{time}, {kind}, 4096, {', '.join([str(count), *['0'] * 1855])}\n"

    text = row(1000, 0, 5) + row(1000, 1, 7) + "1500, 0, cut\n" + row(1500, 9, 3) + row(2000, 0, 2) + row(2000, 1, 1)
    (tmp_path / "x_clat_hist.1.log").write_text(text)
    (run,) = read([tmp_path]).runs
    assert {d.kind: d.ios for d in run.directions} == {"read": 7, "write": 8}
    assert [f.explanation for f in run.findings if f.rule == "read.damaged"] == ["2 rows left out: cut or damaged"]


@pytest.mark.parametrize("lost", [1, 2, 5, 9, 13, 17])
def test_a_log_that_is_cut_within_its_last_row_is_read_without_it(tmp_path: Path, lost: int) -> None:
    rows = "".join(f"{at}, 100, 0, 4096\n" for at in range(100, 140))
    run = log(tmp_path, "d_lat.1.log", rows[:-lost])
    assert run.directions[0].ios == 39
    assert run.directions[0].bytes == 39 * 4096
    assert ["1 row" in f.explanation for f in run.findings if f.rule == "read.damaged"] == [True]


def _windows(columns: str = "0, 0, 0") -> str:
    return "".join(f"{at}, {17_000 + at}, {columns}\n" for at in range(500, 5001, 500))


@pytest.mark.parametrize("name", ["x_bw.1.log", "x_iops.1.log", "x_lat.1.log"])
def test_a_log_whose_time_goes_back_says_that_its_rows_are_added_up(tmp_path: Path, name: str) -> None:
    """fio appends to a log that is there (per_job_logs=0), and a log pasted twice is the sum of two jobs."""
    assert "read.log-again" not in rules_of(log(tmp_path, name, _windows()))
    assert "read.log-again" in rules_of(log(tmp_path, name, _windows() * 2))


def test_a_log_of_two_directions_and_of_a_clock_that_runs_on_is_one(tmp_path: Path) -> None:
    """fio reads the clock for each direction, so rows of one tick may differ by a millisecond."""
    rows = "".join(f"{at + 1}, 17000, 0, 0, 0\n{at}, 18000, 1, 0, 0\n" for at in range(500, 5001, 500))
    assert "read.log-again" not in rules_of(log(tmp_path, "x_bw.1.log", rows))


@pytest.mark.parametrize("columns", [1, 2])
def test_a_log_without_the_beginning_of_its_rows_is_not_silent(tmp_path: Path, columns: int) -> None:
    """``1034, 17500, 0, 0, 0`` without its first letters is a row of another time."""
    rows = [f"{at}, {17_000 + at}, 0, 0, 0" for at in range(517, 10_000, 517)]
    cut = "".join(f"{row[columns:]}\n" for row in rows)
    assert "read.log-again" in rules_of(log(tmp_path, "x_bw.1.log", cut))


def test_a_histogram_log_twice_says_so(tmp_path: Path) -> None:
    """Its counts were doubled in silence."""
    counts = ", ".join(["0"] * 100 + ["3"] + ["0"] * 1755)
    rows = "".join(f"{at}, 0, 4096, {counts}\n" for at in range(1000, 5001, 1000))
    once, twice = (log(tmp_path, "x_clat_hist.1.log", rows * times, None) for times in (1, 2))
    assert "read.log-again" not in rules_of(once)
    assert "read.log-again" in rules_of(twice)


def test_a_log_of_bare_carriage_returns_is_refused(tmp_path: Path) -> None:
    """Its first row was the whole log."""
    (tmp_path / "x_bw.1.log").write_bytes(_windows().replace("\n", "\r").encode())
    found = read([tmp_path / "x_bw.1.log"])
    assert not found.runs
    assert found.refusals


def rules_of(run: Run) -> set[str]:
    return {finding.rule for finding in run.findings}
