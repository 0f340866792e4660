"""What a terminal's tables show, read back by a second parser, is what the JSON of the same report says."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fio_files import write
from msgspec.structs import replace
from rich.cells import cell_len
from test_charts import source
from test_console import account, experiment, trial, trials

from iodelta.experiment import parse
from iodelta.experiment.order import in_order
from iodelta.lab.plan import make_plan
from iodelta.report.formats.charts import trials as by_trial
from iodelta.report.formats.charts.sources import verdicts_of
from iodelta.report.formats.console import lines
from iodelta.report.formats.render import rendered
from iodelta.report.formats.terminal import columns
from iodelta.report.formats.terminal import lines as on_terminal
from iodelta.report.stories.comparison import bounds_of, of_comparison
from iodelta.report.stories.statements import beyond
from iodelta.study.comparison import compare
from iodelta.study.experiment import Account
from iodelta.study.judging import in_cell_order
from iodelta.study.paths import read_one
from iodelta.study.views import views
from iodelta.verdict import metric

WIDTHS = (60, 80, 120)
SCALES = {"": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
SCALES |= {"B/s": 1.0, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30}
VALUE = r"(-|[\d,]+(?:\.\d+)?(?:e[+-]\d+)?(?: (?:ns|us|ms|s|[KMG]?i?B/s))?)"
ROW = re.compile(
    rf"\s+(?P<name>\S.*?) +{VALUE} +{VALUE}\s+(?P<change>-|[+-]?[\d.]+ %)\**\s+(?P<bounds>-|too few blocks|"
    r"(?P<low>[+-]?[\d.]+) \.\. (?P<high>[+-]?[\d.]+) %) +(?P<word>regression|improvement|equivalent|inconclusive)"
)


def value(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number.replace(",", "")) * SCALES[unit]


def wide(scale: float, name: str) -> Account:
    """An account whose values are ``scale`` times as large, of a metric of bytes, and whose sides have a long name."""
    told = account(experiment((1, 32), ("old", name)), {("iodepth=32", name): -0.3}, sd=0.02)
    bandwidth = metric("read.bandwidth")

    def scaled(verdict: Any) -> Any:
        return replace(
            verdict,
            metric=bandwidth if verdict.metric.name == "read.iops" else verdict.metric,
            baseline_value=verdict.baseline_value * scale,
            variant_value=verdict.variant_value * scale,
        )

    judged = replace(told.judgement, verdicts=tuple(map(scaled, told.judgement.verdicts)))
    return replace(told, judgement=judged)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 333.85e3, 1e8])
@pytest.mark.parametrize("name", ["new", "a-variant-with-a-very-long-name-indeed"])
def test_every_cell_of_an_account_can_be_read_back(width: int, scale: float, name: str) -> None:
    """Two values of eleven characters stood without a blank: 318.4 MiB/s370.7 MiB/s."""
    told = wide(scale, name)
    verdicts = json.loads(rendered(told, "json"))["account"]["judgement"]["verdicts"]
    text = "\n".join(line.plain for line in lines(told, width))
    rows = list(ROW.finditer(text))
    assert len(rows) == len(verdicts)
    for row, verdict in zip(rows, verdicts, strict=True):
        assert value(row[2]) == pytest.approx(verdict["baseline_value"], rel=6e-4)
        assert value(row[3]) == pytest.approx(verdict["variant_value"], rel=6e-4)
        change = verdict["change"]
        assert float(row["change"].removesuffix(" %")) == pytest.approx(100 * change["value"], abs=0.51)
        assert float(row["low"]) == pytest.approx(100 * change["low"], abs=0.51)
        assert float(row["high"]) == pytest.approx(100 * change["high"], abs=0.51)
        assert row["word"] == verdict["word"]
    if width == 60 and name == "new":
        assert max(len(line) for line in text.splitlines()) <= 60


def test_changes_that_differ_from_their_values_for_different_reasons_have_different_marks() -> None:
    """Two lines below the table began with the same star, so neither row said which was meant."""
    told = wide(1.0, "new")
    *others, last = told.judgement.verdicts
    judged = msgspec.structs.replace(
        told.judgement, verdicts=(*others, msgspec.structs.replace(last, apart="another reason"))
    )
    text = "\n".join(line.plain for line in lines(msgspec.structs.replace(told, judgement=judged), 80))
    assert text.count(" %* ") == 2
    assert text.count(" %** ") == 1
    assert "\n* median of ratios\n** another reason\n" in text


@pytest.mark.parametrize("names", [("results.of.the.ext4.disk" * 3, "results.of.the.xfs.disk" * 3), ("a" * 90, "b")])
def test_a_table_under_names_of_long_files_fits_the_terminal(names: tuple[str, str]) -> None:
    """Two names of 70 characters made lines of 190, which a terminal wraps in the middle of numbers."""
    rows = [("cell", "n", *names, "change", "interval", "verdict")]
    rows += [("randread 4k", "1", "75,837", "96,631", "+27.4 %", "-", "no verdict [1]")]
    head, body = columns(rows, "<>>>>>>", 80, indent=2)
    assert max(cell_len(line) for line in f"{head}\n{body}".split("\n")) <= 80
    assert body.split() == " ".join(rows[1]).split()
    first, second = head.split()[2:4]
    assert first != second
    assert names[0].startswith(first[:-1]) or (first[1:5], second[1:4]) == ("ext4", "xfs")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("runs", [1, 3])
def test_every_cell_of_a_comparison_can_be_read_back(runs: int, width: int, tmp_path: Path) -> None:
    for number in range(runs):
        write(tmp_path / f"A/{number}.json", 3_210_000 + 900 * number)
        write(tmp_path / f"B/{number}.json", 1_234_567 + 900 * number)
    paths = [str(tmp_path / side) for side in "AB"]
    found = compare([read_one(path) for path in paths], paths)
    document = json.loads(rendered(found, "json"))["compared"]
    text = "\n".join(line.plain for line in on_terminal(of_comparison(found), width))
    change = r"([+-]?[\d.]+ %|x[\d.,e+]+|-)"
    if runs == 1:  # a line for each number
        row = re.compile(rf"^  \S.*?  +{VALUE} +{VALUE} +{change}(?: not (?:credible|resolved))?$", re.MULTILINE)
    else:
        spread = r" +[\d.]+ %"
        row = re.compile(rf"^  .*?\b{runs} +{VALUE}{spread} +{VALUE}{spread} +{change}", re.MULTILINE)
    rows = list(row.finditer(text))
    assert len(rows) == len(document)
    for one, compared in zip(rows, document, strict=True):
        assert [value(one[1]), value(one[2])] == pytest.approx(compared["values"], rel=6e-4)
        assert float(one[3].removesuffix(" %")) == pytest.approx(100 * compared["change"]["value"], abs=0.51)


def test_a_single_run_has_no_interval_and_says_how_finely_it_is_known(tmp_path: Path) -> None:
    """The range that digits leave stood in the column of intervals, as if it were the scatter."""
    for side, rate in (("A", "10.1k"), ("B", "9.3k")):
        (tmp_path / f"{side}.txt").write_text(f"  read: IOPS={rate}, BW=38.9MiB/s (40.8MB/s)(389MiB/10001msec)\n")
    paths = [str(tmp_path / f"{side}.txt") for side in "AB"]
    found = compare([read_one(path) for path in paths], paths)
    (one,) = [one for one in found.compared if one.metric == "read.iops"]
    assert one.change is not None
    assert one.change.low < one.change.high
    text = "\n".join(line.plain for line in on_terminal(of_comparison(found), whole=True))
    assert "The digits given leave IOPS -18 .. 0 %." in " ".join(text.split())
    for told in (text, *(rendered(found, format_).decode() for format_ in ("mail", "markdown"))):
        (line,) = [line for line in told.splitlines() if "10,100" in line]
        assert " .. " not in line
    assert bounds_of(one) == ""
    drawn = [effect for effect in verdicts_of(found).effects if effect.metric.name == "read.iops"]
    assert [(effect.low, effect.high) for effect in drawn] == [(None, None)]


# ---------------------------------------------------------------------------------------------------------- one order


def test_cells_stand_in_numeric_order_wherever_they_are_listed() -> None:
    depths = (32, 4, 128, 1, 16)
    told = account(experiment(depths), {}, sd=0.05, blocks=10)
    first_seen = list(dict.fromkeys(verdict.cell for verdict in told.judgement.verdicts))
    judgement, made = in_cell_order(told.plan, told.judgement, trials(make_plan(experiment(depths)), {}, 10, 0.05))
    told = replace(told, judgement=judgement, views=views(make_plan(experiment(depths)), judgement, made))
    wanted = [f"iodepth={depth}" for depth in sorted(depths)]
    assert first_seen != wanted, "they were measured in another order"
    assert [cell.name for cell in told.plan.experiment.cells] == wanted
    text = "\n".join(line.plain for line in lines(told, verbose=True))
    for part in (text.partition("Open: ")[0], text.partition("Open: ")[2], rendered(told, "mail").decode()):
        listed = re.findall(r"iodepth=\d+(?=[ :;,(])", part)
        firsts = list(dict.fromkeys(listed))
        assert firsts == [name for name in wanted if name in firsts]


def test_only_numbers_are_sorted_the_rest_stays_as_it_was_written() -> None:
    names = ["write 64k QD16", "write 4k QD16", "write 4k QD2", "read 1m QD1", "read 128k QD1", "sdb10", "sdb9"]
    assert in_order(names) == [
        "write 4k QD16",
        "write 64k QD16",
        "write 4k QD2",
        "read 128k QD1",
        "read 1m QD1",
        "sdb10",
        "sdb9",
    ]
    made = parse('[workload]\nrw = "randread"\nbs = ["1m", "4k"]\niodepth = [32, 2]\n[variant.a]\n[variant.b]')
    assert [cell.name for cell in made.cells] == [
        "bs=4k iodepth=2",
        "bs=4k iodepth=32",
        "bs=1m iodepth=2",
        "bs=1m iodepth=32",
    ]


# -------------------------------------------------------------------------------------------------- no such numbers


@pytest.mark.parametrize("fall", [0.5, 0.9, 0.999])
def test_a_level_never_moves_down_by_more_than_all_of_it(fall: float) -> None:
    """It was the difference of two shares: -129.3 %."""
    drifting = [
        trial(number, "iodepth=32", "old", number, 0, 10_000 * (1 - fall) ** (number / 30)) for number in range(1, 31)
    ]
    found = replace(source(), trials=tuple(drifting), cells=("iodepth=32",))
    (figure,) = by_trial.in_order(found)
    moved = float(re.findall(r"moved by ([+-]?[\d.]+) %", figure.alt)[0])
    assert -100 <= moved < 0
    assert moved == pytest.approx(100 * ((1 - fall) ** (20 / 30) - 1), abs=1.5)


def test_a_kernel_time_of_no_tick_is_not_told_as_0_ns() -> None:
    """ "kernel time 0 ns (0 ns to 25.8 us)": the kernel counts CPU time in ticks, and short trials have none."""
    question = experiment((1,))
    told = account(question, {})
    plan = make_plan(question)
    sparse = [
        replace(trial(n, "randread 4k", "old" if n % 2 else "new", n // 2, n % 2, 100.0), sys_cpu=share)
        for n, share in enumerate([0.0, 0.0, 0.0, 0.5] * 4)
    ]
    found = views(plan, told.judgement, sparse)
    assert [cost.system_ns for cost in found.costs] == [None, None]
    assert not [text for text in beyond(replace(told, views=found)) if "ernel time" in text]
    whole = [replace(one, sys_cpu=10.0) for one in sparse]
    assert all(math.isfinite(cost.system_ns or math.nan) for cost in views(plan, told.judgement, whole).costs)
