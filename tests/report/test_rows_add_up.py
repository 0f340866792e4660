"""What is printed adds up: in no row of any format do baseline, variant and change contradict each other."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_console import account, experiment, text, trial
from tiers import scaled

from iodelta.lab.plan import make_plan
from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.mail import mail
from iodelta.report.formats.markdown import markdown
from iodelta.report.formats.spreadsheet import csv_of
from iodelta.report.stories import experiment as telling
from iodelta.report.stories.checks import checks_of
from iodelta.study.experiment import Account
from iodelta.study.words import interval, measured
from iodelta.trial import Trial
from iodelta.verdict import judge_all

SCALES = {"": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30}
UNIT = " (?:[num]?s|[KMG]iB/s)"
NUMBER = r"(-?\d[\d,.]*(?:e[+-]?\d+)?)"
CHANGE = r"([+-][\d.]+|0(?:\.0+)?) %"
"""Nothing has no sign."""
WHY = ("median of ratios", "total over blocks", "mean over hosts", "deployed, not counted")

PLACES = 5e-4
"""Half of the last of four digits, as a share, in the worst case."""

accounts = st.builds(
    lambda change, sd, blocks, names: account(
        experiment(variants=names),
        {("iodepth=1", names[-1]): change, ("iodepth=32", names[-1]): -change / 7},
        sd=sd,
        blocks=blocks,
    ),
    st.sampled_from([-0.4, -0.02, -0.003, 0.0, 0.004, 0.3]),
    st.sampled_from([0.001, 0.02, 0.3]),
    st.sampled_from([2, 9, 14, 20]),
    st.sampled_from([("old", "new"), ("old", "new", "newer")]),
)


def value(shown: str) -> float | None:
    found = re.fullmatch(rf"{NUMBER}(?: (\S+))?", shown.strip())
    return float(found[1].replace(",", "")) * SCALES[found[2] or ""] if found else None


def contradiction(baseline: str, variant: str, change: str) -> float:
    """By how much more than rounding the change differs from the ratio of the values; 0 where it does not."""
    old, new, share = value(baseline), value(variant), re.fullmatch(CHANGE, change.strip())
    if old is None or new is None or share is None:
        return 0.0
    half = 0.5 * 10.0 ** -len(share[1].partition(".")[2]) / 100
    allowed = half + 2.1 * PLACES * new / old
    return max(0.0, abs(new / old - 1 - float(share[1]) / 100) - allowed)


def test_the_check_itself_finds_a_row_that_does_not_add_up() -> None:
    assert contradiction("100 us", "101 us", "+1.0 %") == 0
    assert contradiction("10,000", "10,100", "-1.0 %") > 0.01
    assert contradiction("900 us", "1.2 ms", "+33 %") == 0
    assert contradiction("900 us", "1.2 ms", "+30 %") > 0


@settings(max_examples=scaled(15), deadline=None)
@given(accounts)
def test_rows_of_every_format_add_up_or_say_why_not(shown: Account) -> None:
    """Values are measured, so a change that is a median of ratios may differ from theirs: then the row says so."""
    printed = text(shown)
    console = re.findall(rf"^.*? +({NUMBER}(?:{UNIT})?) +({NUMBER}(?:{UNIT})?) +({CHANGE})(\*?)", printed, re.MULTILINE)
    assert console
    rows = [(old, new, change, mark) for old, _, new, _, change, _, mark in console]
    if any(mark for *_, mark in rows):
        assert any(f"* {why}" in printed for why in WHY)
    story = telling.of_account(shown)
    for table in story.tables:
        if "change" in table.heads and table.heads[0] == "n":
            rows += [(*(cell.text for cell in row.cells[1:4]), row.note) for row in table.rows]  # type: ignore[misc]
    for check in checks_of(shown):
        found = re.search(rf": ({NUMBER}(?:{UNIT})?) -> ({NUMBER}(?:{UNIT})?), ({CHANGE})", check.says)
        if found:
            rows.append((found[1], found[3], found[5], check.says if any(why in check.says for why in WHY) else ""))
    assert [row for row in rows if contradiction(*row[:3]) and not row[3]] == []
    for line in csv.DictReader(io.StringIO(csv_of(shown))):
        if line.get("change.value") and line["baseline_value"]:
            ratio = float(line["variant_value"]) / float(line["baseline_value"]) - 1
            assert line["apart"] in WHY or ratio == pytest.approx(float(line["change.value"]), abs=1e-8)


def test_the_values_of_a_row_are_those_measured_over_all_blocks() -> None:
    """Medians in all rows of a metric, or means in all where one of them rests on the total."""
    shown = noisy(13)
    kinds: dict[str, set[str]] = {}
    for verdict in shown.judgement.verdicts:
        kinds.setdefault(verdict.metric.name, set()).add(verdict.central)
    assert all(len(found) == 1 for found in kinds.values())
    baselines: dict[tuple[str, str], set[float | None]] = {}
    for verdict in shown.judgement.verdicts:
        baselines.setdefault((verdict.cell, verdict.metric.name), set()).add(verdict.baseline_value)
    assert all(len(found) == 1 for found in baselines.values())


def test_a_variant_that_stalls_shows_the_work_it_did() -> None:
    """Every tenth trial loses 90 %: no row may say about -1 %."""
    plan = make_plan(experiment(variants=("old", "new")))
    rng = np.random.default_rng(3)
    made: list[Trial] = []
    for slot in (slot for round_ in plan.schedule.rounds[:60] for slot in round_ if slot.cell == "iodepth=1"):
        for place, name in enumerate(slot.order):
            stalls = name == "new" and slot.block % 4 == 2
            rate = 10_000 * np.exp(0.005 * rng.normal()) * (0.1 if stalls else 1.0)
            made.append(trial(len(made) + 1, slot.cell, name, slot.block, place, float(rate)))
    (iops,) = (one for one in judge_all(made, plan.rules, baseline="old").verdicts if one.metric.name == "read.iops")
    assert iops.word == "regression"
    assert (iops.estimand, iops.central) == ("total", "mean")
    assert iops.change is not None
    of_new = [one.directions[0].iops.value for one in made if one.variant == "new"]
    assert iops.variant_value == pytest.approx(np.mean(of_new))
    assert iops.change.value == pytest.approx(np.mean(of_new) / iops.baseline_value - 1)  # type: ignore[operator]
    assert iops.change.value < -0.1


# ---------------------------------------------------------------------------------- the word, the change, the interval


def noisy(seed: int) -> Account:
    """A sweep whose arms differ by anything, under noise of any kind and size."""
    rng = np.random.default_rng(seed)
    shown = account(
        experiment((1, 4, 32)[: rng.integers(1, 4)], ("old", "new", "newer")[: rng.integers(2, 4)]), {}, blocks=2
    )
    plan, blocks = make_plan(shown.plan.experiment), int(rng.choice([5, 9, 12, 20, 20]))
    sd, kind = float(rng.choice([0.0005, 0.005, 0.02, 0.3])), str(rng.choice(["normal", "t", "stall", "zero", "debt"]))
    own = {name: float(rng.choice([0, 0, 0.002, -0.006, -0.03, 0.05, -0.3])) for name in ("new", "newer")}
    made: list[Trial] = []
    debt = 0.0
    for slot in (slot for round_ in plan.schedule.rounds[:blocks] for slot in round_):
        for place, name in enumerate(slot.order):
            log = np.log1p(own.get(name, 0.0)) + debt + sd * (rng.standard_t(2) if kind == "t" else rng.normal())
            rare = name == "new" and rng.random() < 0.12
            log += {"stall": np.log(0.1), "zero": -30.0}.get(kind, 0.0) if rare else 0.0
            debt = -0.03 if kind == "debt" and name == "new" else 0.0
            made.append(trial(len(made) + 1, slot.cell, name, slot.block, place, float(10_000 * np.exp(log))))
    judgement = judge_all(made, plan.rules, baseline="old")
    return msgspec.structs.replace(shown, judgement=judgement, trials=len(made))


PERCENT = re.compile(r"([+-]?[\d.]+) %")
PERCENTS = re.compile(r"([+-]?[\d.]+) \.\. ([+-]?[\d.]+) %")
TIMES = re.compile(r"x([\d.,]+) \.\. x([\d.,]+)")


def against(change: str, bounds: str, word: str, better: str, margin: float) -> str:
    """In what the columns of a row contradict each other; nothing where they do not. All in percent, as printed."""
    one, two = PERCENT.fullmatch(change), PERCENTS.fullmatch(bounds)
    if one is None or two is None:
        no_word = word == "inconclusive" or TIMES.fullmatch(bounds)
        return "" if no_word else "a word without numbers"
    value, low, high = float(one[1]), float(two[1]), float(two[2])
    digit = max(0.5 * 10.0 ** -len(number.partition(".")[2]) for number in (one[1], two[1], two[2]))
    if not low - digit <= value <= high + digit:
        return "the change lies outside of its interval"
    if word in ("regression", "improvement"):
        up = (word == "improvement") == (better == "higher")
        return "" if (min(low, value) > 0 if up else max(high, value) < 0) else "a change whose interval holds 0"
    if word == "equivalent":
        return "" if max(-low, high) <= margin + digit else "equivalent beyond the margin"
    return "the interval excludes 0" if low > 0 or high < 0 else "inside" if max(-low, high) < margin - digit else ""


def table_rows(shown: Account) -> Iterator[tuple[str, str, str, str, str]]:
    """Change, interval, word, which way is better, and the note of every row of the laid-out tables."""
    for table in telling.of_account(shown).tables:
        if table.heads[-3:] == ("change", "95 %, all looks", "verdict"):
            for row in table.rows:
                change, bounds, word = (cell.text for cell in row.cells[-3:])
                yield change, bounds, word, "higher" if "IOPS" in table.title else "lower", row.note


def test_the_second_check_finds_rows_whose_word_and_interval_differ() -> None:
    assert against("-1.9 %", "-3.8 .. 0.0 %", "regression", "higher", 1.0) == "a change whose interval holds 0"
    assert against("0 %", "-88 .. -0.5 %", "regression", "higher", 1.0) == "a change whose interval holds 0"
    assert against("+1.9 %", "+0.2 .. +3.8 %", "regression", "higher", 1.0)
    assert against("+1.9 %", "+0.2 .. +3.8 %", "regression", "lower", 1.0) == ""
    assert (
        against("-5.0 %", "-3.8 .. 0.1 %", "inconclusive", "higher", 1.0) == "the change lies outside of its interval"
    )
    assert against("0.0 %", "-0.3 .. +0.4 %", "inconclusive", "higher", 1.0) == "inside"


@pytest.mark.parametrize("seed", [*range(8), 13, 53])
def test_no_word_contradicts_its_change_or_interval_in_any_format(seed: int) -> None:
    """A row without a word, whose interval alone would give one, says why."""
    shown = noisy(seed)
    margin = 100 * shown.plan.rules.margin
    story = telling.of_account(shown)
    pages = (
        mail(story),
        markdown(story),
        html.unescape(re.sub("<[^>]*>", " ", html_of(shown, ()).decode())),
        text(shown),
    )
    plain = [" ".join(page.replace("\\", "").split()) for page in pages]
    wrong: list[tuple[str, ...]] = []
    for change, bounds, word, better, note in table_rows(shown):
        said = against(change, bounds, word, better, margin)
        if said and not (word == "inconclusive" and note and all(note in page for page in plain)):
            wrong.append((change, bounds, word, said, note))
        if bounds != "too few blocks":
            wrong += [("not in a format", bounds)] * sum(bounds not in page for page in plain)
    assert wrong == []
    lines: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(csv_of(shown))))
    for line in lines:
        if not line.get("change.low") or not line.get("change.high"):
            continue
        value, low, high = (100 * float(line[f"change.{key}"]) for key in ("value", "low", "high"))
        assert low - 1e-9 <= value <= high + 1e-9
        if line["word"] in ("regression", "improvement"):
            assert low > 0 or high < 0
            assert (value > 0) == ((line["word"] == "improvement") == (line["metric.better"] == "higher"))


def test_an_interval_that_excludes_0_is_never_rounded_to_one_that_ends_there() -> None:
    assert interval(-0.0377, -0.00016) == "-3.8 .. -0.02 %"
    assert interval(-0.24, -0.0000004) == "-24 .. -0.00004 %"
    assert interval(-0.0377, 0.00016) == "-3.8 .. 0.0 %", "this one does hold 0"
    assert measured(-0.0049, -0.88, -0.0049) == "-0.5 %"
    assert measured(0.0, 0.0, 0.0) == "0.0 %"
