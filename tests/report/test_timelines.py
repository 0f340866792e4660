"""fio's logs as charts: which lines stand together, and that poor logs make poor charts and no errors."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.cli import numbers as show_command
from iodelta.ingest import read
from iodelta.report.formats.charts import Source, times
from iodelta.report.formats.charts.model import Figure
from iodelta.study.timelines import Timeline, timelines

CORPUS = Path(__file__).parent.parent / "data" / "fio-3.33"


def write(folder: Path, name: str, values: list[float], *, kind: int = 0, start: int = 0, step: int = 500) -> None:
    rows = (f"{start + step * (at + 1)}, {value}, {kind}, 0, 0\n" for at, value in enumerate(values))
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(rows))


def drawn(**sides: Path) -> list[Timeline]:
    return list(timelines({name: read([path]).runs for name, path in sides.items()}))


def figures(found: list[Timeline]) -> list[Figure]:
    source = Source(baseline="", variants=(), cells=(), margin=0.01, timelines=tuple(found))
    return list(times.logs(source))


def test_logs_of_the_same_job_on_two_kernels_lie_over_each_other(tmp_path: Path) -> None:
    for kernel, level in (("6.12", 1000), ("6.18", 900)):
        for job in ("randread", "seqread"):
            write(tmp_path / kernel, f"{job}_iops.1.log", [level] * 20)
    found = drawn(**{kernel: tmp_path / kernel for kernel in ("6.12", "6.18")})
    assert [(one.part, [track.side for track in one.tracks]) for one in found] == [
        ("randread", ["6.12", "6.18"]),
        ("seqread", ["6.12", "6.18"]),
    ]
    assert [track.whole().mean for track in found[0].tracks] == [1000, 900]


def test_reads_and_writes_of_one_log_are_also_drawn_together(tmp_path: Path) -> None:
    both = [(500 * at, rate, kind) for at in range(1, 21) for kind, rate in ((0, 700 + at), (1, 300 - at))]
    (tmp_path / "mixed_iops.1.log").write_text("".join(f"{t}, {rate}, {kind}, 0, 0\n" for t, rate, kind in both))
    found = {one.kind: one.tracks[0].whole() for one in drawn(x=tmp_path)}
    assert list(found) == ["read", "write", "total"]
    assert found["total"].mean == pytest.approx(1000)
    assert found["total"].mean == pytest.approx(found["read"].mean + found["write"].mean)
    assert (found["total"].low, found["total"].high) == pytest.approx((1000, 1000), abs=20)
    write(tmp_path / "other", "only_iops.1.log", [500] * 20)
    assert [one.kind for one in drawn(x=tmp_path / "other")] == ["read"]


def test_latencies_of_reads_and_writes_are_not_added_up(tmp_path: Path) -> None:
    rows = (f"{500 * at}, 1000, {kind}, 0, 0\n" for at in range(1, 21) for kind in (0, 1))
    (tmp_path / "mixed_lat.1.log").write_text("".join(rows))
    assert [one.kind for one in drawn(x=tmp_path)] == ["read", "write"]


def test_more_lines_than_colours_make_more_charts_and_none_is_lost(tmp_path: Path) -> None:
    for number in range(1, 18):
        write(tmp_path, f"job_iops.{number}.log", [100 * number] * 20)
    found = drawn(x=tmp_path)
    assert [len(one.tracks) for one in found] == [7, 7, 3]
    assert [one.part for one in found] == ["job: 1 to 7 of 17", "job: 8 to 14 of 17", "job: 15 to 17 of 17"]


def test_bandwidth_over_what_had_been_written_ends_at_all_of_it(tmp_path: Path) -> None:
    """20 s at 1 MiB/s, then 20 s at a tenth: half the time is a tenth of the bytes."""
    write(tmp_path, "fill_bw.1.log", [1024.0] * 40 + [102.4] * 40, kind=1)
    text = (tmp_path / "fill_bw.1.log").read_text().replace("102.4", "102").replace("1024.0", "1024")
    (tmp_path / "fill_bw.1.log").write_text(text)
    time, written = drawn(x=tmp_path)
    assert (time.axis, written.axis) == ("time", "written")
    points = written.tracks[0].points(1000, "written")
    slow = next(point for point in points if point.mean < 2**19)
    whole = 20 * (1024 + 102) * 1024
    assert slow.x == pytest.approx(20 * 2**20, rel=0.01)
    assert points[-1].x == pytest.approx(whole, rel=0.01)


def test_logs_with_a_wall_clock_stand_where_it_says_if_they_overlap(tmp_path: Path) -> None:
    begin = 1_700_000_000_000
    write(tmp_path, "a_iops.1.log", [10] * 40, start=begin)
    write(tmp_path, "b_iops.1.log", [10] * 40, start=begin + 5000)
    (found,) = drawn(x=tmp_path)
    assert [track.offset for track in found.tracks] == [0, 5]
    assert "the first log began" in figures([found])[0].texts["x"]
    write(tmp_path, "b_iops.1.log", [10] * 40, start=begin + 3_600_000)
    (apart,) = drawn(x=tmp_path)
    assert [track.offset for track in apart.tracks] == [0, 0], "an hour apart they are aligned at their starts"


@pytest.mark.parametrize(
    "rows",
    [
        "500, 7, 0, 0, 0\n",
        "500, 0, 1, 0, 0\n1000, 0, 1, 0, 0\n",
        "500, 1, 0, 0, 0\n1000, 1000000000, 0, 0, 0\n1500, 1, 0, 0, 0\n",
        "500, 7, 0, 0, 0\n400, 7, 0, 0, 0\n9000, 7, 1, 0, 0\n12",
        "0, 5, 0, 0, 0\n",
        "500, 9007199254740000, 1, 0, 0\n691199999, 1, 2, 0, 0\n",
    ],
    ids=["one row", "zeros", "nine decades", "clock back, two directions, cut", "no time", "days and huge values"],
)
@pytest.mark.parametrize("of", ["bw", "lat", "iops"])
def test_poor_logs_make_charts_of_finite_numbers(tmp_path: Path, rows: str, of: str) -> None:
    (tmp_path / f"x_{of}.1.log").write_text(rows)
    for figure in figures(drawn(x=tmp_path)):
        assert figure.rows
        assert figure.table
        for row in figure.rows:
            numbers = [row[name] for name in ("t", "value", "low", "high") if row[name] is not None]
            assert all(map(math.isfinite, numbers))
            assert figure.spec == "timeline" or all(value > 0 for value in numbers)


@pytest.mark.parametrize(("size", "expected"), [(0, "mean over time 1 ms"), (4096, "mean 1 ms")])
def test_a_caption_says_over_what_a_mean_latency_is(tmp_path: Path, size: int, expected: str) -> None:
    """Windows do not say how many I/Os they hold, so each weighs as long as it is; single I/Os weigh alike."""
    rows = [f"{at}, 1000000, 0, {size}" for at in range(100, 6001, 100)]
    (tmp_path / "a_lat.1.log").write_text("\n".join(rows) + "\n")
    (figure,) = figures(drawn(a=tmp_path))
    assert f", {expected}, " in figure.alt


def test_show_draws_logs_that_lie_next_to_their_report(tmp_path: Path) -> None:
    """The table is of the report; the picture is of the log."""
    (tmp_path / "stall.json").write_text((CORPUS / "jp1.json").read_text())
    (tmp_path / "stall_iops.1.log").write_text((CORPUS / "stall_iops.1.log").read_text())
    page = tmp_path / "page.html"
    found = CliRunner().invoke(show_command.show, [str(tmp_path), "-o", str(page)])
    assert found.exit_code == 0, found.output
    text = page.read_text()
    assert "Read IOPS over time" in text
    assert "s without I/O" in text
