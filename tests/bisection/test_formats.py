"""A search or attribution in every format: each states the culprit, its proof, the system, and how to do it again."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from iodelta.cli.commands import FORMS
from iodelta.cli.report import command as report_command
from iodelta.report.stories.search import probability

from .toy import READ, Toy, attribute, bisect, run

SPEED = ("--measure", "sh bench.sh", "--better", "higher", "--seed", "1", "--blocks", "6")


def searched(repo: Toy, folder: Path) -> str:
    made = repo.commits(1000, 1000, 1000)
    made.append(repo.commit(900, "block: |cell| <b>bold</b> `code` \x1b[31mred"))
    made += repo.commits(900, 900)
    assert bisect("--repo", repo.path, "--good", made[0], "--bad", made[-1], "--folder", folder, *READ).code == 1
    return made[3][:12]


def attributed(repo: Toy, folder: Path) -> str:
    base = repo.commit(1000, "base")
    patch = repo.commit(800, "block: |cell| <b>bold</b> `code` \x1b[31mred")
    done = attribute(base, "--repo", repo.path, "--patch", patch, *SPEED, "--folder", folder)
    assert done.code == 1, done.error
    return patch[:12]


@pytest.fixture(params=[searched, attributed])
def asked(request: pytest.FixtureRequest, repo: Toy, tmp_path: Path) -> tuple[Path, str]:
    """The folder of a search or an attribution, and the guilty commit."""
    return tmp_path / "out", request.param(repo, tmp_path / "out")


def test_every_format_names_the_commit_the_system_and_the_commands(asked: tuple[Path, str]) -> None:
    folder, guilty = asked
    for format_ in FORMS["REPORT"].split("|"):
        done = run(report_command, folder, "--format", format_)
        assert done.code == 0, done.error
        assert guilty in done.out, format_
        assert "\x1b" not in done.out, format_
        assert "-10.0" in done.out or "-20.0" in done.out or format_ in ("csv", "json")
        if format_ not in ("csv", "json"):
            assert "sh bench.sh" in done.out, format_
            assert ("System: kernel " if format_ == "console" else "kernel: ") in done.out, format_
        assert " FOLDER" not in done.out, f"{format_}: a command that names no folder cannot be pasted"


def test_what_is_not_certain_is_not_called_100_percent() -> None:
    """A posterior of 0.99985 was "100.0 %"."""
    assert [probability(value) for value in (0.973, 0.9994, 0.99985)] == ["97.3 %", "99.9 %", "over 99.9 %"]


def test_a_build_fails_for_a_culprit(asked: tuple[Path, str]) -> None:
    folder, _ = asked
    (failure,) = ElementTree.fromstring(run(report_command, folder, "--format", "junit").out).iter("failure")
    assert "-10.0" in str(failure.get("message")) or "-20.0" in str(failure.get("message"))
    assert "\nnot ok 1 " in run(report_command, folder, "--format", "ktap").out
    assert run(report_command, folder, "--format", "github").out.startswith("::error title=")
    for words, code in (("regression", 1), ("improvement", 0), ("change", 1), ("inconclusive", 0)):
        assert run(report_command, folder, "--fail-on", words).code == code, words


def test_a_title_becomes_no_markup(asked: tuple[Path, str]) -> None:
    folder, _ = asked
    page = run(report_command, folder, "--format", "html").out
    assert "<b>bold</b>" not in page
    assert "&lt;b&gt;bold" in page
    text = run(report_command, folder, "--format", "markdown").out
    assert r"\<b>bold\</b> \`code\`" in text
    rows = [line for line in text.splitlines() if line.startswith("|") and "cell" in line]
    assert all(r"\|cell\|" in line for line in rows)


def test_no_line_of_a_terminal_is_wider_than_80_but_commands(asked: tuple[Path, str]) -> None:
    folder, _ = asked
    for options in ((), ("--verbose",)):
        shown = run(report_command, folder, *options).out.partition("\nTo do it again\n")[0].splitlines()
        prose = [line for line in shown if not line.startswith("All details: ")]
        assert len(prose) > 8
        assert max(map(len, prose)) <= 80


def test_one_screen_leaves_the_method_to_verbose(asked: tuple[Path, str]) -> None:
    folder, _ = asked
    screen, whole = run(report_command, folder).out, run(report_command, folder, "--verbose").out
    assert f"All details: `iodelta report {folder} --verbose`" in " ".join(screen.split())
    assert "\nMethod\n" not in screen
    assert "\nMethod\n" in whole
    assert "All details" not in whole


def test_the_csv_of_a_search_has_a_row_for_every_item_and_marks_the_culprit(repo: Toy, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    guilty = searched(repo, folder)
    rows = list(csv.DictReader(io.StringIO(run(report_command, folder, "--format", "csv").out)))
    measured = run(report_command, folder, "--format", "json").json["levels"]
    levels = [row for row in rows if row["list"] == "levels"]
    told = [(row["item"], float(row["value"])) for row in levels]
    assert told == [(level["item"], level["value"]) for level in measured]
    assert [row["item"][:12] for row in rows if row["list"] == "culprits"] == [guilty]
    assert all(math.expm1(float(row["margin"])) == pytest.approx(0.01) for row in rows)
