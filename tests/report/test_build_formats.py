"""What a build reads: JUnit XML, KTAP, GitHub's commands, Bencher's metrics; and the words that make a command fail."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fio_files import write
from junitparser import Error, Failure, JUnitXml, Skipped, TestSuite
from msgspec.structs import replace
from test_command_options import call
from test_console import account, experiment, judged
from test_inert import ATTACKS, hostile_account, hostile_runs

from iodelta.lab.account import LEFT_OUT
from iodelta.path.judge import Count, PathAccount, Shift
from iodelta.report.formats.render import rendered
from iodelta.report.stories.checks import Check, checks_of, code_of
from iodelta.study.cell import Compared
from iodelta.study.comparison import Comparison
from iodelta.study.experiment import Account
from iodelta.study.rows import Number
from iodelta.trial import Finding

WORSE = frozenset({"regression", "inconclusive"})


@pytest.fixture(scope="module")
def mixed() -> Account:
    """One cell worse, one the same, one better, one too noisy to say."""
    shown = account(experiment([1, 8, 16, 32]), {("iodepth=1", "new"): -0.05, ("iodepth=8", "new"): 0.05}, sd=0.004)
    noisy = account(experiment([32, 64]), {}, sd=0.3)
    verdicts = [one for one in shown.judgement.verdicts if one.cell != "iodepth=32"]
    verdicts += [one for one in noisy.judgement.verdicts if one.cell == "iodepth=32"]
    return judged(shown, verdicts)


# ------------------------------------------------------------------------------------------------------------- JUnit


def suites_of(data: bytes) -> list[TestSuite]:
    """As an independent parser reads it; the counts must be those of its cases."""
    parsed = JUnitXml.fromstring(data)
    suites = list(parsed)
    for suite in suites:
        results = [type(result) for case in suite for result in case.result]
        assert suite.tests == len(list(suite))
        assert (suite.failures, suite.errors, suite.skipped) == tuple(map(results.count, (Failure, Error, Skipped)))
    assert parsed.tests == sum(suite.tests for suite in suites)
    assert parsed.failures == sum(suite.failures for suite in suites)
    assert parsed.errors == sum(suite.errors for suite in suites)
    assert parsed.skipped == sum(suite.skipped for suite in suites)
    return suites


def test_junit_fails_for_a_regression_and_skips_what_is_not_decided(mixed: Account) -> None:
    by_cell = {suite.name: suite for suite in suites_of(rendered(mixed, "junit"))}
    assert set(by_cell) == {"iodepth=1", "iodepth=8", "iodepth=16", "iodepth=32"}
    for case in by_cell["iodepth=1"]:
        (failure,) = case.result
        assert isinstance(failure, Failure)
        assert failure.type == "regression"
        assert re.search(r"regression: [\d.,]+ .*-> .*[-+]\d\.\d", failure.message), failure.message
    assert not [result for case in by_cell["iodepth=8"] for result in case.result]
    skipped = [result for case in by_cell["iodepth=32"] for result in case.result]
    assert skipped
    assert all(isinstance(one, Skipped) and one.message.startswith("inconclusive: ") for one in skipped)


def test_junit_has_an_error_for_a_cell_that_was_given_up_and_for_a_variant_left_out(mixed: Account) -> None:
    finding = Finding(LEFT_OUT, "hard", "variant newest", "the host did not come back", "")
    shown = replace(mixed, abandoned={"iodepth=16": "fio: no space"}, findings=(finding,))
    errors = {
        case.classname: result.message
        for suite in suites_of(rendered(shown, "junit"))
        for case in suite
        for result in case.result
        if isinstance(result, Error)
    }
    assert errors == {"iodepth=16": "fio: no space", "experiment": "the host did not come back"}


def test_nothing_measured_is_an_error_and_not_an_empty_success() -> None:
    shown = judged(account(experiment(), {}, blocks=0), ())
    suites = suites_of(rendered(shown, "junit"))
    assert [(suite.name, suite.tests, suite.errors) for suite in suites] == [("iodepth=1", 1, 1), ("iodepth=32", 1, 1)]
    assert shown.exit_code == 4


def test_a_cell_without_a_block_is_an_error_and_a_percentile_without_one_is_skipped() -> None:
    """Trials of few I/Os have no p99, which made every build red."""
    shown = account(experiment((1, 2)), {}, sd=0.002)
    verdicts = []
    for verdict in shown.judgement.verdicts:
        if verdict.cell == "iodepth=1":
            lacks = "p99" in verdict.metric.name
            why = {"blocks": 0, "word": "inconclusive", "phrase": "20 I/Os leave 0 beyond p99", "change": None}
            verdicts.append(replace(verdict, **why) if lacks else verdict)
    checks = checks_of(replace(judged(shown, verdicts), state="interrupted"))
    said = {(check.group, check.name): (check.word, check.says) for check in checks}
    assert said["iodepth=1", "new: read p99 latency"] == ("inconclusive", "20 I/Os leave 0 beyond p99")
    assert said["iodepth=2", "not measured"] == ("unmeasured", "nothing was measured (interrupted)")


# -------------------------------------------------------------------------------------------------------------- KTAP

RESULT = re.compile(r"(?P<result>ok|not ok) (?P<number>\d+) (?P<name>[^#\n]*?)(?: # (?P<directive>[A-Z]+)(?: .*)?)?")
"""A result line by docs.kernel.org/dev-tools/ktap.html: the description holds any characters except #."""


def ktap_of(text: str) -> list[tuple[str, str, str]]:
    """Result, name and directive of every test, by the kernel's specification."""
    version, *lines = text.splitlines()
    assert version == "KTAP version 1"
    plan = [line for line in lines if re.fullmatch(r"1\.\.\d+", line)]
    assert len(plan) == 1
    results = []
    for line in lines:
        if line in plan or line.startswith("# "):
            continue
        found = RESULT.fullmatch(line)
        assert found, line
        results.append((found["result"], found["name"], found["directive"] or ""))
        assert int(found["number"]) == len(results)
    assert plan == [f"1..{len(results)}"]
    return results


def test_ktap_numbers_every_statement_and_skips_what_is_not_decided(mixed: Account) -> None:
    results = ktap_of(rendered(mixed, "ktap").decode())
    assert len(results) == len(mixed.judgement.verdicts)
    assert {one[::2] for one in results if one[1].startswith("iodepth=1:")} == {("not ok", "")}
    assert {one[::2] for one in results if one[1].startswith("iodepth=8:")} == {("ok", "")}
    assert ("ok", "SKIP") in {one[::2] for one in results if one[1].startswith("iodepth=32:")}


# ------------------------------------------------------------------------------------------------------------ GitHub


def read_commands(text: str) -> list[tuple[str, str, str]]:
    """Level, title and message as GitHub's runner reads them (actions/runner, ActionCommand.cs)."""
    found = []
    for line in text.splitlines():
        level, _, rest = line.removeprefix("::").partition(" ")
        properties, _, data = rest.partition("::")
        assert line.startswith("::")
        assert properties.startswith("title=")
        assert "," not in properties
        for code, char in (("%3A", ":"), ("%2C", ",")):
            properties = properties.replace(code, char)
        title, data = (
            one.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
            for one in (properties.removeprefix("title="), data)
        )
        found.append((level, title, data))
    return found


def test_github_is_red_for_a_regression_and_neutral_for_what_is_not_decided(mixed: Account) -> None:
    found = read_commands(rendered(mixed, "github").decode())
    assert {level for level, title, _ in found if title.startswith("regression: iodepth=1,")} == {"error"}
    assert {level for level, title, _ in found if title.startswith("inconclusive: ")} == {"notice"}
    assert not [level for level, title, _ in found if level == "error" and not title.startswith("regression")]
    assert [level for level, _, _ in found] == sorted((level for level, _, _ in found), key=("error", "notice").index)
    assert any("%" in message for _, _, message in found)


def test_github_shows_ten_of_a_level_and_says_how_many_more() -> None:
    shown = account(experiment([2**n for n in range(12)]), {(f"iodepth={2**n}", "new"): -0.1 for n in range(12)})
    found = read_commands(rendered(shown, "github").decode())
    assert len(found) == 10
    total = sum(verdict.word == "regression" for verdict in shown.judgement.verdicts)
    assert found[-1][1:] == ("and more", f"{total - 9} more are in the report")


def test_github_adds_markdown_to_the_summary_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "A/x.json", 1000)
    write(tmp_path / "B/x.json", 900)
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    done = call("compare", "A", "B", "--format", "github", "--fail-on", "regression", cwd=tmp_path)
    assert done.code == 0, done.error
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    page = call("compare", "A", "B", "--format", "markdown", cwd=tmp_path)
    assert summary.read_bytes() == b"before\n" + page.out
    assert "error" not in {level for level, _, _ in read_commands(done.out.decode())}


# ----------------------------------------------------------------------------------------------------------- Bencher


def test_bencher_gets_medians_and_the_interval_of_the_change(mixed: Account) -> None:
    found = json.loads(rendered(mixed, "bmf"))
    (verdict, *_) = (
        one for one in mixed.judgement.verdicts if one.metric.name == "read.iops" and one.cell == "iodepth=1"
    )
    assert verdict.change is not None
    assert found["iodepth=1 / old"]["read.iops"] == {"value": verdict.baseline_value}
    assert found["iodepth=1 / new"]["read.iops"] == {"value": verdict.variant_value}
    change = found["iodepth=1 / new"]["read.iops change (%)"]
    assert change["value"] == pytest.approx(-5, abs=0.5)
    assert change["lower_value"] < change["value"] < change["upper_value"] < 0
    for measures in found.values():  # its published schema: every metric has a number, and bounds at most
        for metric in measures.values():
            assert set(metric) - {"lower_value", "upper_value"} == {"value"}
            assert all(isinstance(number, float) for number in metric.values())


# ------------------------------------------------------------------------------------------------------ hostile names


OWN = {"command": "x\n::error::owned\n##[error]owned", "end of CDATA": "]]>&amp;<x/>", "directive": "a # SKIP \\# x"}


@pytest.fixture(params=[*ATTACKS, *OWN])
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> list[Account | Comparison]:
    evil = {**ATTACKS, **OWN}[request.param]
    compared, _ = hostile_runs(tmp_path, evil)
    return [hostile_account(evil), compared]


def test_hostile_names_stay_names(hostile: list[Account | Comparison]) -> None:
    for one in hostile:
        checks = checks_of(one)
        page = rendered(one, "junit")
        cases = list(ElementTree.fromstring(page).iter("testcase"))
        assert [case.get("name") for case in cases] == [" ".join(check.name.split("\t")) for check in checks]
        assert {element.tag for element in ElementTree.fromstring(page).iter()} <= {
            *("testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out")
        }
        suites_of(page)
        assert len(ktap_of(rendered(one, "ktap").decode())) == len(checks)
        for _, title, message in read_commands(rendered(one, "github").decode()):
            assert "\n" not in title + message
        for line in rendered(one, "github").decode().split("\n"):
            assert not line or line.startswith(("::error title=", "::warning title=", "::notice title="))
        json.loads(rendered(one, "bmf"))


# -------------------------------------------------------------------------------------------------- words of --fail-on


def comparisons() -> Iterator[Comparison]:
    """Comparisons of up to two numbers with every word, resolved or not."""
    words = ("regression", "improvement", "equivalent", "inconclusive", "no verdict")
    every = [(word, resolved) for word in words for resolved in (True, False)]
    for size in range(3):
        for chosen in itertools.combinations(every, size):
            compared = tuple(
                Compared(
                    cell=f"cell {number}",
                    metric="read.iops",
                    unit="IOPS",
                    better="higher",
                    variant="new",
                    runs=(1, 1),
                    values=(1.0, 2.0),
                    spread=(None, None),
                    change=Number(1.0, float("-inf"), float("inf")),
                    basis="single runs",
                    word=word,  # type: ignore[arg-type]
                    says="",
                    resolved=resolved,
                )
                for number, (word, resolved) in enumerate(chosen)
            )
            found = Comparison("iodelta.compare/1", "old", ("new",), 0.01, compared, {}, (), (), ())
            yield found
            yield replace(found, lacking={"new": ("cell 9",)})


def counted() -> Iterator[PathAccount]:
    """Counted paths with every word, whether the boot repeats or not."""
    count = Count("cell", "new", "read", 9.0, 9.0, ((9, 1.0),), ())
    for size, check in itertools.product(range(3), ("identical", "different")):
        for words in itertools.combinations(("longer", "shorter", "same", "no verdict"), size):
            shifts = [Shift("cell", "old", "new", "read", 8.0, 9.0, 1.0, 1.0, 1.0, 10.0, word) for word in words]  # type: ignore[arg-type]
            yield PathAccount(
                schema="",
                folder="",
                question="",
                target="null_blk",
                baseline="old",
                sides=(),
                counts=(count,),
                shifts=tuple(shifts),
                functions=(),
                no_functions="",
                self_check=check,  # type: ignore[arg-type]
                problems=(),
                blind="",
                qemu="",
                boots=2,
                planned=2,
                seconds=1.0,
                state="complete",
            )


def test_the_words_of_checks_give_the_exit_code_of_the_result(mixed: Account) -> None:
    quiet = account(experiment([1]), {("randread 4k", "new"): 0.1}, sd=0.001)
    assert quiet.exit_code == 0
    none = account(experiment(), {}, blocks=0)
    left = Finding(LEFT_OUT, "hard", "variant x", "gone", "")
    results: list[Account | Comparison | PathAccount] = [
        mixed,
        quiet,
        none,
        replace(quiet, findings=(left,)),
    ]
    results += [*comparisons(), *counted()]
    for one in results:
        checks = checks_of(one)
        if one.exit_code == 4:
            assert {check.word for check in checks} <= {"unmeasured", "finding"}
        else:
            assert code_of(checks, WORSE) == one.exit_code, one
    assert {one.exit_code for one in results} == {0, 1, 3, 4}


@pytest.mark.parametrize(
    ("words", "fail_on", "code"),
    [
        (("passed", "improvement"), {"regression"}, 0),
        (("passed", "improvement"), {"improvement"}, 1),
        (("regression",), {"improvement"}, 0),
        (("inconclusive", "passed"), {"regression"}, 0),
        (("inconclusive", "regression"), {"inconclusive"}, 3),
        (("unmeasured", "passed"), {"inconclusive"}, 3),
        (("unmeasured", "passed"), {"regression"}, 0),
        (("passed", "finding"), {"finding"}, 1),
        (("unresolved", "passed"), {"inconclusive"}, 0),
    ],
)
def test_each_word_fails_for_itself(words: tuple[str, ...], fail_on: set[str], code: int) -> None:
    checks = [Check("cell", "name", word, "") for word in words]  # type: ignore[arg-type]
    assert code_of(checks, frozenset(fail_on)) == code


@pytest.fixture
def sides(tmp_path: Path) -> Path:
    """Single runs: no verdict, so inconclusive for a gate."""
    write(tmp_path / "A/x.json", 1000)
    write(tmp_path / "B/x.json", 900)
    return tmp_path


def test_fail_on_chooses_the_words(sides: Path) -> None:
    assert call("compare", "A", "B", cwd=sides).code == 3
    for words, code in (("regression", 0), ("regression,inconclusive", 3), ("nothing", 0), ("change,inconclusive", 3)):
        assert call("compare", "A", "B", "--fail-on", words, cwd=sides).code == code, words
    assert call("report", ".", cwd=sides).code == 0
    assert call("report", ".", "--exit-code", cwd=sides).code == 3
    assert call("report", ".", "--fail-on", "inconclusive", cwd=sides).code == 3
    assert call("report", ".", "--fail-on", "regression", cwd=sides).code == 0


def test_words_that_are_none_and_words_given_twice_are_refused(sides: Path) -> None:
    done = call("compare", "A", "B", "--fail-on", "regresion", cwd=sides)
    assert done.code == 2
    assert "--fail-on: not a word of a verdict: 'regresion'" in done.error
    done = call("report", ".", "--exit-code", "--fail-on", "change", cwd=sides)
    assert done.code == 2
    assert "give one of both options" in done.error
    done = call("report", "A", "--fail-on", "change", cwd=sides)
    assert done.code == 2
    assert "these results hold only one variant" in done.error


def test_a_plan_has_no_format_for_a_build(sides: Path) -> None:
    words = ("run", "--dry-run", "--variant", "a", "--variant", "b:fio.nice=1", "--format", "junit", "--size", "1m")
    done = call(*words, "--", "--rw=randread", cwd=sides)
    assert done.code == 2, done.out
    assert "this result has no verdicts" in done.error


def test_a_file_of_xml_is_refused_by_commands_without_verdicts(sides: Path) -> None:
    assert call("show", "A", "-o", "x.xml", cwd=sides).code == 2
    assert call("compare", "A", "B", "-o", "x.xml", "--fail-on", "nothing", cwd=sides).code == 0
    suites_of((sides / "x.xml").read_bytes())
    assert os.listdir(sides).count("x.xml") == 1
