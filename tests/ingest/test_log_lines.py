"""What is drawn of a log is what a look at every millisecond of it says."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.ingest import Refusal, log_lines, log_rows, logs, read
from iodelta.ingest.model import Line
from iodelta.stats.pyramid import WIDTHS, Floats

DATA = Path(__file__).parent.parent / "data" / "fio-3.33"


def lines_of(name: str, text: str, version: tuple[int, int] = (3, 33)) -> dict[str, Line]:
    found = logs.summarise(name, text.encode(), io.BytesIO())
    assert not isinstance(found, Refusal), found
    return {line.kind: line for line in found.run(version, None).lines}


def columns(line: Line) -> tuple[Floats, ...]:
    return tuple(np.frombuffer(line.data).reshape(4, -1))


Windows = list[tuple[int, int, int]]


@st.composite
def windowed(draw: st.DrawFn) -> tuple[str, dict[str, Windows]]:
    """A log of 500 ms windows, some of them without I/O, of one or two directions; rows as versions write them."""
    tail = draw(st.sampled_from((", 0", ", 0, 0", ", 0, 4096, 0", ", 0, 0x4004")))
    kinds = draw(st.sampled_from((("read",), ("read", "write"))))
    spoken: dict[str, Windows] = {kind: [] for kind in kinds}
    text = ""
    for number in range(draw(st.integers(30, 90))):
        for place, kind in enumerate(kinds):
            idle = number > 5 and draw(st.integers(0, 9)) == 0
            if idle:
                continue
            value = draw(st.integers(0, 4_000_000))
            end = 500 * (number + 1)
            text += f"{end}, {value}, {place}{tail}\n"
            spoken[kind].append((end - 500, end, value))
    return text, spoken


def by_millisecond(windows: Windows, *, idle: float) -> Floats:
    """The value at every millisecond up to the last row; ``idle`` where there was no I/O."""
    found = np.full(windows[-1][1], idle)
    for start, end, value in windows:
        found[start:end] = value
    return found


@given(windowed(), st.sampled_from(("x_iops.1.log", "x_bw.1.log", "x_clat.1.log")), st.integers(5, 200))
def test_windows_are_drawn_as_every_millisecond_says(
    log: tuple[str, dict[str, Windows]], name: str, points: int
) -> None:
    text, spoken = log
    rate = "clat" not in name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_lines, "POINTS", points)
        patch.setattr(log_rows, "CHUNK", 300)
        found = lines_of(name, text)
    size = 1024 if "_bw" in name else 1
    for kind, windows in spoken.items():
        values = by_millisecond(windows, idle=0.0 if rate else math.nan) * size
        line = found[kind]
        mean, low, high, weight = columns(line)
        assert line.width in WIDTHS
        assert len(mean) <= points
        assert weight.sum() == np.isfinite(values).sum()
        for place in range(len(mean)):
            own = values[place * line.width : (place + 1) * line.width]
            own = own[np.isfinite(own)]
            if not len(own):
                assert math.isnan(mean[place])
                continue
            assert mean[place] == pytest.approx(own.mean(), rel=1e-9)
            assert (low[place], high[place]) == (own.min(), own.max())


@given(st.lists(st.tuples(st.integers(0, 90_000), st.integers(1, 10**9)), min_size=60, max_size=400))
def test_single_ios_are_drawn_as_counted(rows: list[tuple[int, int]]) -> None:
    rows.sort()
    text = "".join(f"{at}, {value}, 0, 4096, 8192, 0\n" for at, value in rows)
    times, values = (np.array(column) for column in zip(*rows, strict=True))
    latency = lines_of("x_lat.1.log", text)["read"]
    mean, low, high, weight = columns(latency)
    for place in np.unique(times // latency.width):
        own = values[times // latency.width == place]
        assert weight[place] == len(own)
        assert (low[place], high[place]) == (own.min(), own.max())
        assert mean[place] == pytest.approx(own.mean())
    for name, each in (("x_iops.1.log", 1.0), ("x_bw.1.log", 4096.0)):
        rate = lines_of(name, text)["read"]
        mean, low, high, weight = columns(rate)
        assert (mean * weight).sum() / 1000 == pytest.approx(each * len(times)), "no I/O is lost or counted twice"
        counts = np.bincount(times // rate.over)
        whole = counts[:-1] * each * 1000 / rate.over
        if len(whole):
            assert np.nanmax(high) >= whole.max() * (1 - 1e-12)
            assert np.nanmin(low) <= whole.min() * (1 + 1e-12)


def test_the_stalls_of_a_real_run_are_zeros() -> None:
    """fio logged 10000, 4044 and 5965 I/Os per second in three of fifteen half seconds."""
    (run,) = read([DATA / "stall_iops.1.log"]).runs
    (line,) = run.lines
    mean, low, _, weight = columns(line)
    assert (mean * weight).sum() / 1000 == pytest.approx(20_000, rel=0.001)
    assert (mean[(weight > 0) & (low == 0)] == 0).sum() * line.width >= 3500


def test_a_clock_that_counts_from_1970_draws_the_same_line_and_says_when() -> None:
    rows = [(at, at % 7000, kind) for at in range(500, 60_001, 500) for kind in (0, 1)]
    text = "".join(f"{at}, {value}, {kind}, 0, 0\n" for at, value, kind in rows)
    later = "".join(f"{at + 1_700_000_000_000}, {value}, {kind}, 0, 0\n" for at, value, kind in rows)
    one, other = lines_of("x_iops.1.log", text), lines_of("x_iops.1.log", later)
    assert [line.data for line in one.values()] == [line.data for line in other.values()]
    assert [line.started for line in other.values()] == [1_700_000_000.0] * 2
    assert {line.started for line in one.values()} == {None}


@pytest.mark.parametrize(
    ("rows", "drawn"),
    [
        ("500, 7, 0, 0, 0\n", 1),
        ("500, 7, 0, 0, 0\n1000, 8, 0, 0, 0\n15", 2),
        ("500, 7, 0, 0, 0\n1000, nan, 0, 0, 0\n1500, 9, 0, 0, 0\n", 2),
        ("500, 0, 0, 0, 0\n1000, 0, 0, 0, 0\n", 2),
        ("500, 1, 0, 0, 0\n1000, 1000000000, 0, 0, 0\n", 2),
        ("0, 1, 0, 0, 0\n0, 2, 0, 0, 0\n", 2),
    ],
    ids=["one row", "cut last row", "nan", "zeros", "nine decades", "no time passes"],
)
def test_poor_logs_are_drawn_as_far_as_they_go(rows: str, drawn: int) -> None:
    line = lines_of("x_iops.1.log", rows)["read"]
    mean, low, high, _ = columns(line)
    assert line.rows == drawn
    known = np.isfinite(mean)
    assert (low[known] <= mean[known]).all()
    assert (mean[known] <= high[known]).all()
    assert len(mean) <= log_lines.POINTS


def test_jobs_that_share_a_log_lie_over_each_other() -> None:
    """Two jobs of ten seconds, one after the other in the file: both began at 0."""
    job = "".join(f"{at}, {{value}}, 0, 0, 0\n" for at in range(500, 10_001, 500))
    line = lines_of("x_bw.log", job.format(value=100) + job.format(value=300))["read"]
    mean, low, high, weight = columns(line)
    assert len(mean) * line.width == 10_000
    assert weight.sum() == 20_000
    assert set(mean) == {200 * 1024.0}
    assert (low.min(), high.max()) == (100 * 1024, 300 * 1024)


def test_a_clock_that_goes_back_all_the_time_is_not_drawn() -> None:
    """No job restarts as often: its windows mean nothing. It costs no more than a sound one."""
    rows = "".join(f"{9_000_000 if at % 2 else 500}, 7, 0, 0, 0\n" for at in range(4000))
    assert lines_of("x_iops.1.log", rows) == {}
