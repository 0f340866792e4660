"""Mail, Markdown and CSV: what every report states, digits and marks that go no further than the evidence."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from fio_files import write
from msgspec.structs import replace
from test_console import account, experiment, text

from iodelta.cli.main import cli
from iodelta.ingest.reading import read_bytes
from iodelta.lab.calibration import Calibration
from iodelta.report.formats.mail import mail
from iodelta.report.formats.render import TEXTS, rendered
from iodelta.report.stories.story import Cell, Row, Story, Table
from iodelta.study.again import again, run_line
from iodelta.study.best import Best
from iodelta.study.confounders import differences
from iodelta.study.experiment import Account
from iodelta.trial import Finding

SLOWER = {("iodepth=32", "new"): -0.05}


def complete(changes: dict[tuple[str, str], float] = SLOWER, sd: float = 0.004, blocks: int = 20) -> Account:
    """An account as a folder gives it, with question, calibration, a finding and marks."""
    made = account(experiment(), changes, sd=sd, blocks=blocks)
    question = replace(made.plan.experiment, question="Is new slower?")
    plan = replace(made.plan, experiment=question)
    marks = []
    for verdict in made.judgement.verdicts:
        names = {"regression": ("old",), "improvement": ("new",), "equivalent": ("old", "new")}.get(verdict.word, ())
        marks.append(Best(verdict.cell, verdict.metric.name, names))
    return replace(
        made,
        plan=plan,
        calibrations=(Calibration("k", "randread", "vda", 0.0, 60, 1, ()),),
        findings=(Finding("noise.steal", "warning", "trial 3", "2 % of CPU time was stolen", "ask for a quiet host"),),
        system=(("kernel", "6.18.0"),),
        best=tuple(marks),
        again=again(plan, None, (3, 33)),
        measured_by="0.1.0",
    )


@pytest.mark.parametrize("format_", ["mail", "markdown"])
def test_a_report_states_what_a_reader_needs_to_believe_or_refute_it(format_: str) -> None:
    said = " ".join(rendered(complete(), format_).decode().replace("\\", "").split())
    for part in (
        "Is new slower?",
        "new is slower than old in 1 of 2 cells",
        "margin 1 %, level 95 %, order randomised in blocks (seed 1), looks at 9, 12, 16",
        "Order and rules were fixed before the first trial.",
        "Smallest change this could have seen:",
        "1 false alarm in 60 A/A comparisons",
        "warning: trial 3: 2 % of CPU time was stolen; ask for a quiet host [noise.steal]",
        "kernel: 6.18.0",
        "iodelta run --question 'Is new slower?'",
        "--reproducer",
        "fio --readonly",
    ):
        assert part in said


def test_a_csv_row_can_be_read_alone_and_has_every_digit() -> None:
    shown = complete()
    rows = list(csv.DictReader(io.StringIO(rendered(shown, "csv").decode())))
    assert len(rows) == len(shown.judgement.verdicts)
    for row, verdict in zip(rows, shown.judgement.verdicts, strict=True):
        assert verdict.change is not None
        assert (row["cell"], row["metric.name"], row["word"]) == (verdict.cell, verdict.metric.name, verdict.word)
        assert (float(row["change.value"]), float(row["change.low"])) == (verdict.change.value, verdict.change.low)
        assert float(row["variant_value"]) == verdict.variant_value
        assert (row["margin"], row["seed"], row["question"]) == ("0.01", "1", "Is new slower?")
        assert row["looks"].startswith("9 12 16")
        assert "noise.steal" in row["findings"]


def test_values_are_marked_only_where_the_trials_tell_them_apart_or_equal() -> None:
    sure = rendered(complete(), "markdown").decode()
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in sure.splitlines() if "| iodepth=" in line}
    assert rows["iodepth=32"][2].startswith("**")  # old is better
    assert not rows["iodepth=32"][3].startswith("**")
    unsure = rendered(complete({}, sd=0.3), "markdown").decode()
    assert "**1" not in unsure
    assert "Bold:" not in unsure


def test_the_command_line_repeats_exactly_this_experiment() -> None:
    question = experiment((1, 32), more="budget = '10m'\nblocks = 30")
    line = run_line(question, 7)
    assert line.startswith("iodelta run --margin 1% --trial 2s --ramp 0.5s --budget 600s --seed 7 --blocks 30")
    assert line.endswith("-- --rw=randread --direct=1 --iodepth=1 --iodepth=32")
    assert run_line(experiment((1,), more="level = '99%'"), 7) == "iodelta run FOLDER/experiment.toml --seed 7"


def test_the_same_results_give_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    write(tmp_path / "A" / "x.json", 1000)
    write(tmp_path / "B" / "x.json", 900, depth=16, engine="io_uring", options={"hipri": "1", "thread": "1"})
    code = (
        "import contextlib\n"
        "from iodelta.cli.main import cli\n"
        "for name in ('mail', 'markdown', 'csv', 'json', 'html'):\n"
        " with contextlib.suppress(SystemExit): cli(['compare', 'A', 'B', '--format', name], 'iodelta')"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "COLUMNS": columns},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone, columns in (("1", "UTC", "80"), ("2", "Asia/Tokyo", "200"))
    }
    assert len(said) == 1
    assert b"io_uring" in said.pop()


def test_the_cells_of_a_comparison_have_one_order_in_every_process(tmp_path: Path) -> None:
    for depth in (1, 2, 4, 8, 16, 32):
        write(tmp_path / "A" / f"{depth}.json", 1000 + depth, depth=depth)
        write(tmp_path / "B" / f"{depth}.json", 900 + depth, depth=depth)
    said = {
        subprocess.run(
            [sys.executable, "-c", "from iodelta.cli.main import main; main()", "compare", "A", "B"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
    assert said.pop().count(b"iodepth 16") > 1


OWN_FORMATS = ("console", "csv", "markdown", "mail", "json", "html")


@pytest.mark.parametrize("format_", OWN_FORMATS)
@pytest.mark.parametrize("sides", [["A"], ["A", "B"], ["A", "B", "C"]], ids=["show", "compare", "several"])
def test_a_report_given_as_a_result_is_refused_by_name(sides: list[str], format_: str, tmp_path: Path) -> None:
    """A column of blocks was read as 9 IOPS, and rows of a mail were lost."""
    for number, side in enumerate(sides):
        for run in "xyz":
            write(tmp_path / side / f"{run}.json", 1000 + 7 * number + ord(run))
    words = ["show" if len(sides) == 1 else "compare", *(str(tmp_path / side) for side in sides)]
    _refused(CliRunner().invoke(cli, [*words, "--format", format_]).stdout, format_)


@pytest.mark.parametrize("format_", OWN_FORMATS)
@pytest.mark.parametrize("command", ["compare", "audit"])
def test_a_report_of_single_runs_given_as_a_result_is_refused_by_name(
    command: str, format_: str, tmp_path: Path
) -> None:
    """Their screens have no title of a table and no heading that other reports have."""
    paths = [str(write(tmp_path / side / "x.json", 1000)) for side in "AB"]
    report = CliRunner().invoke(cli, [command, *paths, "--format", format_]).stdout
    _refused(report, format_)
    assert "\n### \n" not in report
    assert "<h3></h3>" not in report


@pytest.mark.parametrize("format_", ["console", *TEXTS])
def test_a_report_of_an_experiment_given_as_a_result_is_refused_by_name(format_: str) -> None:
    own = account(experiment((1, 32)), {}, blocks=4)
    _refused(text(own) if format_ == "console" else rendered(own, format_).decode(), format_)


def _refused(report: str, format_: str) -> None:
    found = read_bytes(report.encode(), f"report.{format_}")
    assert report
    assert not found.runs
    assert len(found.refusals) == 1
    assert "a report of iodelta: give the folder" in found.refusals[0].reason


def test_results_in_a_mail_with_a_report_are_read_all_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", 1000)
    report = rendered(account(experiment((1,)), {}, blocks=4), "mail").decode()
    found = read_bytes(f"{report}\n{path.read_text()}".encode(), "mail.txt")
    assert [run.directions[0].iops.value for run in found.runs if run.directions[0].iops] == [1000]
    assert len(found.refusals) == 1


def test_likely_confounders_come_first_and_each_says_why_it_matters() -> None:
    device = {"name": "sda", "queue.scheduler": "[none] bfq", "queue.nr_requests": "64", "model": "A"}
    one = {
        "fio": {"version": "fio-3.33"},
        "kernel": {"release": "6.12", "clocksource": "tsc", "config.HZ": "250"},
        "sysctl": {"vm.swappiness": "60"},
        "devices": [device],
        "now": {"load": "1"},
    }
    other = {
        "fio": {"version": "fio-3.38"},
        "kernel": {"release": "6.12", "clocksource": "hpet", "config.HZ": "1000"},
        "sysctl": {"vm.swappiness": "10"},
        "devices": [{**device, "queue.scheduler": "none [bfq]"}, {"name": "sdb", "model": "B", "size_bytes": "1"}],
        "now": {"load": "9"},
    }
    found = differences(one, other)
    assert [item.what for item in found] == [
        "fio.version",
        "kernel.clocksource",
        "devices.0.queue.scheduler",
        "devices.1",
        "kernel.config.HZ",
        "sysctl.vm.swappiness",
    ]
    assert all(item.why for item in found)
    assert [item.likely for item in found] == [True] * 5 + [False]
    assert differences(one, one) == ()


def test_a_column_without_heading_and_cells_is_no_obstacle_to_a_mail() -> None:
    """Rows of a table that somebody posted have no direction: `show --format mail` ended in an exception."""
    rows = (Row("pid", (Cell(""), Cell("65"))), Row("queue", (Cell(""), Cell("1,181"))))
    text = mail(Story("", "2 runs.", (Table("posted", "run", ("", "IOPS"), rows, words=False),), ()))
    assert [line.split() for line in text.splitlines()[2:]] == [
        ["posted"],
        ["run", "IOPS"],
        ["pid", "65"],
        ["queue", "1,181"],
    ]
