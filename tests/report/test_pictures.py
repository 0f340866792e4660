"""Pictures on a terminal: they say what the numbers say, fit its width, and stay out of pipes and files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fio_files import write
from terminals import on_terminal
from test_console import account, experiment

from iodelta.report.formats.console import lines
from iodelta.report.formats.pictures import BARS, MOST, Change, bars

CHANGES = (
    Change("worse", -0.05, -0.06, -0.04, "regression"),
    Change("alike", 0.0, -0.005, 0.005, "equivalent"),
    Change("open", 0.01, -0.9, 9.0, "inconclusive"),
    Change("single", 0.03, None, None, "no verdict"),
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_bars_stand_where_the_changes_are_and_fit(width: int) -> None:
    scale, *drawn = [line.plain for line in bars(CHANGES, 0.01, width)]
    assert max(map(len, (scale, *drawn))) <= width
    zero = scale.index(" 0 ") + 1
    worse, alike, open_, single = drawn
    assert worse.index("▼") < zero
    assert abs(alike.index("■") - zero) <= 1
    assert open_.index("◄") < zero < open_.index("►")
    assert single.index("◆") > zero
    assert "─" not in single


def test_an_interval_covers_as_many_columns_as_it_is_wide() -> None:
    _, line, _ = [line.plain for line in bars((CHANGES[0], CHANGES[1]), 0.01, 120)]
    drawn = line[line.index("─") :].split("┊")[0].rstrip()
    scale = next(iter(bars((CHANGES[0], CHANGES[1]), 0.01, 120))).plain
    ends = (scale.index("-"), len(scale))
    per_percent = (ends[1] - ends[0]) / (2 * float(scale.split()[-2].strip("+")))
    assert len(drawn) == pytest.approx(2 * per_percent, abs=2)


@pytest.mark.parametrize("change", [0.9, 0.95, 1.76, 50.0])
def test_no_number_of_the_scale_is_below_a_loss_of_all(change: float) -> None:
    changes = [Change("more", change, None, None, "no verdict"), Change("all", -1.0, None, None, "no verdict")]
    scale, _, lost = [line.plain for line in bars(changes, 0.5, 80)]
    lowest = scale[: scale.index(" 0 ")]
    if change < 10:  # beyond, it would touch the 0
        assert lowest.strip()
    if lowest.strip():
        assert lowest.strip() == "-100 %"
        assert abs(lowest.index("-") - lost.index("◆")) <= 1
    assert len(scale) <= 80


@pytest.mark.parametrize("count", [0, 1, MOST + 1])
def test_one_change_or_very_many_have_no_picture(count: int) -> None:
    assert list(bars(CHANGES[:1] * count, 0.01, 80)) == []


def test_a_report_has_them_on_a_terminal_only() -> None:
    found = account(experiment(), {("iodepth=32", "new"): -0.05})
    plain = "\n".join(line.plain for line in lines(found, 80, verbose=True))
    drawn = "\n".join(line.plain for line in lines(found, 80, verbose=True, drawn=True))
    assert "▼" not in plain
    assert "▼" in drawn
    assert max(map(len, drawn.splitlines())) <= 80


def test_a_sweep_over_decades_is_logarithmic_and_says_so(tmp_path: Path) -> None:
    for at in range(8):
        write(tmp_path / "r" / f"{at}.json", 10.0**at, depth=2**at)
    shown = on_terminal("show", "r", cwd=tmp_path)
    assert "1 to 10,000,000 IOPS, logarithmic" in shown
    bars = [BARS.index(letter) for letter in shown if letter in BARS]
    assert len(bars) == 8
    assert bars == sorted(bars)
    assert len(set(bars)) >= 6, "from 0 all but the last would be alike"


def test_a_sweep_is_a_row_of_bars_on_a_terminal_and_none_in_a_pipe_or_on_a_dumb_one(tmp_path: Path) -> None:
    for depth, rate in zip((1, 2, 4, 8), (1000, 2000, 4000, 8000), strict=True):
        write(tmp_path / "r" / f"{depth}.json", rate, depth=depth)
    shown = on_terminal("show", "r", cwd=tmp_path)
    assert f"{BARS[1]}{BARS[2]}{BARS[4]}{BARS[7]}" in shown
    assert "1,000 to 8,000 IOPS" in shown
    assert on_terminal("show", "r", cwd=tmp_path, term="dumb").isascii()
    piped = subprocess.run(
        [sys.executable, "-c", "from iodelta.cli.main import main; main()", "show", "r"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert not set(BARS) & set(piped)
