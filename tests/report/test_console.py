"""The account on a terminal: 80 columns, readable without colour, and inert whatever the names hold."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from iodelta.experiment import Experiment, parse
from iodelta.lab.calibration import Calibration, doubt
from iodelta.lab.plan import Plan, make_plan
from iodelta.report.formats.console import show
from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.render import BUILDS, TEXTS, rendered
from iodelta.report.stories.evidence import carried
from iodelta.report.stories.explain import explain
from iodelta.report.stories.statements import open_questions
from iodelta.study.confounders import differences
from iodelta.study.experiment import Account, headline
from iodelta.study.judging import without_schedule
from iodelta.study.views import views
from iodelta.study.words import digits, duration, inert, interval, percent, quantity, size
from iodelta.trial import Direction, Finding, Latency, Quantity, Trial
from iodelta.verdict import judge_all
from iodelta.verdict.model import Carry, Change, Look, Needed, Verdict


def experiment(depths: Sequence[int] = (1, 32), variants: Sequence[str] = ("old", "new"), more: str = "") -> Experiment:
    tables = "\n".join(f"[variant.{name}]" for name in variants)
    workload = f'[workload]\nrw = "randread"\ndirect = 1\niodepth = {list(depths)}'
    return parse(f"{workload}\n{tables}\n[design]\nseed = 1\n{more}")


def trials(plan: Plan, changes: dict[tuple[str, str], float], blocks: int = 20, sd: float = 0.01) -> list[Trial]:
    """Trials of the plan's own schedule; ``changes`` by cell and variant are of the rate, latency mirrors it."""
    rng = np.random.default_rng(1)
    made: list[Trial] = []
    for round_ in plan.schedule.rounds[:blocks]:
        for slot in round_:
            for position, variant in enumerate(slot.order):
                rate = 10_000 * np.exp(np.log1p(changes.get((slot.cell, variant), 0.0)) + rng.normal(0, sd))
                made.append(trial(len(made) + 1, slot.cell, variant, slot.block, position, float(rate)))
    return made


def trial(number: int, cell: str, variant: str, block: int, position: int, rate: float) -> Trial:
    mean = Quantity.exact(1e9 / rate, "ns")
    p99 = {99.0: Quantity.exact(3e9 / rate, "ns")}
    latency = Latency(20_000, mean, mean, mean, mean, p99)
    iops = Quantity.exact(rate, "IOPS")
    read = Direction("read", 20_000, 20_000 * 4096, 2000, iops, Quantity.exact(rate * 4096, "B/s"), latency)
    return Trial(number, cell, variant, block, position, number, number * 3.0, 3.0, (read,), sys_cpu=10.0)


def account(question: Experiment, changes: dict[tuple[str, str], float], sd: float = 0.01, blocks: int = 20) -> Account:
    plan = make_plan(question)
    made = trials(plan, changes, blocks, sd)
    judgement = judge_all(made, plan.rules, baseline=question.baseline)
    return Account(
        folder="somewhere/folder",
        plan=without_schedule(plan),
        judgement=judgement,
        state="complete",
        trials=len(made),
        repeated=0,
        abandoned={},
        spent=300.0,
        findings=(),
        views=views(plan, judgement, made),
    )


def text(shown: Account, *, verbose: bool = True) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    show(console, shown, verbose=verbose)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def flat(shown: Account, *, verbose: bool = True) -> str:
    """In one line."""
    return " ".join(text(shown, verbose=verbose).split())


def judged(shown: Account, verdicts: Iterable[Verdict]) -> Account:
    return replace(shown, judgement=replace(shown.judgement, verdicts=tuple(verdicts)))


def test_a_slower_cell_is_named_with_its_change_interval_and_word() -> None:
    shown = account(experiment(), {("iodepth=32", "new"): -0.05})
    said = text(shown)
    assert "new is slower than old in 1 of 2 cells" in said
    row = next(line for line in said.partition("iodepth=32")[2].splitlines() if "IOPS" in line)
    assert row.endswith("regression")
    assert " -4." in row or " -5." in row
    assert "Order and rules were fixed before the first trial" in " ".join(said.split())
    assert said.endswith("Folder: somewhere/folder\n")
    assert row in text(shown, verbose=False)


@pytest.mark.parametrize("given_up", [False, True])
@pytest.mark.parametrize("change", [0.0, -0.05])
def test_a_cell_without_a_block_is_named_and_no_success(change: float, given_up: bool) -> None:
    """``equivalent in both cells`` and exit code 0 left the third cell out, whose turn never came."""
    question = experiment((1, 2, 32))
    whole = account(question, {(f"iodepth={depth}", "new"): change for depth in (1, 2)}, sd=0.002)
    rates = [v for v in whole.judgement.verdicts if v.metric.unit == "IOPS"]
    assert {v.word for v in rates if v.cell == "iodepth=32"} == {"equivalent"}
    why = {"iodepth=32": "fio ended with 1"} if given_up else {}
    shown = replace(judged(whole, (v for v in rates if v.cell != "iodepth=32")), abandoned=why)
    word = "is slower than old" if change else "equals old within 1 %"
    assert headline(shown) == f"new {word} in 2 of 3 cells; not measured in 1 of 3 cells."
    assert shown.exit_code == (1 if change else 3)
    assert judged(whole, rates).exit_code == (1 if change else 0)
    said = (
        "Cell iodepth=32 could not be measured: fio ended"
        if given_up
        else "No block was finished of 1 cell: iodepth=32."
    )
    for verbose in (False, True):
        assert said in flat(shown, verbose=verbose)


FORBIDDEN = (
    r"(?i)\b(?:looks?|level|reach|hard|family|exploratory|points|honest size|carry-over|superblock|not excluded)\b"
)
"""Words that belong to --verbose: a first screen says what they mean, or nothing."""


@pytest.mark.parametrize("cells", [1, 2, 6])
@pytest.mark.parametrize("arms", [("old", "new"), ("old", "new", "newer")])
@pytest.mark.parametrize(("change", "sd"), [(0.0, 0.004), (-0.05, 0.01), (0.0, 0.3)])
def test_up_to_six_cells_of_a_comparison_fit_one_screen(
    cells: int, arms: tuple[str, ...], change: float, sd: float
) -> None:
    """One cell: 12 lines, six: 24; and every verdict is in a row or counted in one, in the words of a first screen."""
    question = experiment([2**n for n in range(cells)], arms)
    changes = (
        {(f"iodepth={2**n}", "new"): change for n in range(cells)} if cells > 1 else {("randread 4k", "new"): change}
    )
    odd = [
        Finding(f"rule.{n}", "warning", "trial 1", "a long explanation of what is odd " * 3, "mend it")
        for n in range(9)
    ]
    shown = account(question, changes, sd=sd)
    shown = replace(shown, state="budget", findings=tuple(odd))
    screen = text(shown, verbose=False)
    if len(arms) == 2:
        assert len(screen.splitlines()) <= (12 if cells == 1 else 24)
    assert max(map(len, screen.splitlines())) <= 80
    table = screen.partition("\n\n")[2].splitlines()
    (shared,) = re.findall(r"\(\+(\d+)\)", table[0]) or ["0"]
    words = re.findall(r"(?:\(\+(\d+)\).* )?(regression|improvement|equivalent|inconclusive)$", screen, re.MULTILINE)
    assert sum(1 + int(more or shared) for more, _ in words) == len(shown.judgement.verdicts)
    assert re.findall(FORBIDDEN, screen.partition("rule.")[0]) == []


def test_a_row_that_stands_for_several_metrics_hides_no_worse_tail() -> None:
    changes = {(f"iodepth={2**n}", "new"): -0.2 for n in range(6)}
    shown = account(experiment([2**n for n in range(6)]), changes, sd=0.002)
    folded = [line for line in text(shown, verbose=False).splitlines() if line.startswith("iodepth")]
    assert len(folded) == 6
    assert "IOPS (+2)" in text(shown, verbose=False)
    verdicts = []
    for verdict in shown.judgement.verdicts:
        tail = verdict.metric.name.endswith("p99") and verdict.cell == "iodepth=4"
        assert verdict.change is not None
        change = replace(verdict.change, value=3.0) if tail else verdict.change
        verdicts.append(replace(verdict, change=change))
    worse = text(judged(shown, verdicts), verbose=False)
    assert re.search(r"iodepth=4\s+p99 latency \(\+2\).*\+300\.0 %", worse)


def test_what_speaks_against_a_result_is_never_left_to_the_details() -> None:
    """A hard finding comes before all else that one screen says, however much there is."""
    hard = Finding("seal.broken", "hard", "trial 3", "was changed afterwards", "measure again")
    odd = [Finding(f"rule.{n}", "warning", "trial 1", "odd", "") for n in range(9)]
    shown = account(experiment((1,)), {}, sd=0.3)
    screen = text(replace(shown, findings=(*odd, hard), state="budget"), verbose=False)
    assert screen.rpartition("\n\n")[2].startswith("hard: trial 3: was changed afterwards")
    assert "iodelta report somewhere/folder --verbose" in " ".join(screen.split())


def test_a_change_on_one_screen_has_both_ends_of_its_interval_and_no_bound_that_changes_nothing() -> None:
    shown = account(experiment((1,)), {("randread 4k", "new"): -0.05})
    said = flat(shown, verbose=False)
    assert "95 % interval" in said
    assert "is at least" not in said
    assert "carry-over of up to" not in said


@pytest.mark.parametrize(
    ("enough", "change", "said"), [("10%", 0.05, True), ("10%", -0.05, False), ("30%", 0.05, False)]
)
def test_an_improvement_after_few_trials_says_in_every_format_which_stalls_it_does_not_exclude(
    enough: str, change: float, said: bool
) -> None:
    """After 20 trials without a stall: 1 - 0.05^(1/20) = 13.9 %, unless [design] stalls asks no more."""
    asked = experiment((1,), more=f'stalls = "{enough}"')
    shown = account(asked, {(asked.cells[0].name, "new"): change})
    pages = {name: rendered(shown, name).decode() for name in (*TEXTS, *BUILDS) if name != "bmf"}
    pages |= {"long": text(shown)}
    pages["html"] = re.sub("<[^>]*>", " ", html_of(shown, ()).decode())
    for name, page in pages.items():
        words = " ".join(page.replace("\\", "").replace("%25", "%").split())
        stated = set(
            re.findall(r"stalls in up to (\d+) % of trials (?:\(runs of n: n times that\) )?are not excluded", words)
        )
        assert stated == ({"14"} if said else set()), name


@pytest.mark.parametrize(("sd", "part"), [(0.018, "more blocks"), (0.05, "A margin of")])
def test_a_first_screen_says_what_an_answer_takes(sd: float, part: str) -> None:
    shown = replace(account(experiment((1,)), {}, sd=sd), state="budget")
    said = text(shown, verbose=False)
    assert part in " ".join(said.split()).partition("Budget spent")[2]
    assert ("iodelta run somewhere/folder --budget" in said.splitlines()[-1]) == (part == "more blocks")


@pytest.mark.parametrize("state", ["interrupted", "running"])
def test_a_run_that_was_stopped_ends_with_what_is_known_and_how_it_goes_on(state: str) -> None:
    shown = replace(account(experiment((1,)), {}, blocks=3), state=state)
    said = text(shown, verbose=False)
    assert "randread 4k" in said
    assert said.endswith("  iodelta run somewhere/folder\n")


def test_a_margin_of_the_whole_is_not_advised() -> None:
    """Nobody can accept a change of 100 % or more: what is left is to reduce the noise."""
    shown = account(experiment((1,)), {}, sd=0.05)
    shown = judged(shown, (replace(v, needed=None, reachable_margin=2.74) for v in shown.judgement.verdicts))
    for verbose in (False, True):
        said = flat(shown, verbose=verbose)
        assert "educe the noise" in said or "Less noise" in said
        assert "274 %" not in said


@pytest.mark.parametrize(("alarms", "comparisons", "suspected"), [(0, 3, False), (1, 3, False), (5, 20, True)])
def test_a_change_is_only_suspected_where_too_many_placebos_were_called_one(
    alarms: int, comparisons: int, suspected: bool
) -> None:
    known = Calibration("key", "randread 4k", "vda", 1.7e9, comparisons, alarms, ())
    shown = account(experiment(), {("iodepth=32", "new"): -0.05, ("iodepth=1", "new"): 0.05})
    said = headline(replace(shown, calibrations=(known,)))
    word = "perhaps " if suspected else ""
    assert said == f"new is {word}slower than old in 1 of 2 cells, is {word}faster than old in 1 of 2 cells."
    found = doubt([known], 0.05)
    assert (found is not None) == suspected
    assert found is None or found.rule == "calibration.false-alarms"


def test_an_equal_variant_is_called_equivalent_and_exits_0() -> None:
    """fio's bins are 1.6 % wide, so a margin of 1 % asks more of p99 than it can tell; and 29 trials exclude stalls."""
    shown = account(replace(experiment(), margin=0.03), {}, sd=0.004, blocks=40)
    said = flat(shown)
    assert "new equals old within 3 % in both cells" in said
    bounds = [v.stalls.not_excluded for v in shown.judgement.verdicts if v.stalls]
    assert f"Where it says equivalent, single stalls in up to {100 * max(bounds):.0f} % of trials" in said
    assert all("stalls in up to" in v.phrase for v in shown.judgement.verdicts)
    assert shown.exit_code == 0


def test_a_carry_over_of_which_nothing_is_known_has_no_number() -> None:
    """Few and wild blocks exclude nothing: 212954 % says no more than that."""
    shown = account(replace(experiment(), margin=0.03), {}, sd=0.004, blocks=40)
    wild = Carry(Change(0.4, -0.99, 2129.54, 0.95), 0.0)
    said = flat(judged(shown, (replace(v, carry=wild) for v in shown.judgement.verdicts)))
    assert "Too few blocks to tell whether one run slows the next" in said
    assert "212954" not in said
    assert carried(wild, None).startswith("carry-over: too few blocks to tell whether one run slows the next")


@pytest.mark.parametrize(("change", "sd", "code"), [(-0.05, 0.01, 1), (0.05, 0.01, 0), (-0.01, 0.05, 3)])
def test_exit_codes_follow_the_words(change: float, sd: float, code: int) -> None:
    cells = {(f"iodepth={depth}", "new"): change for depth in (1, 32)}
    assert account(experiment(), cells, sd=sd).exit_code == code


@pytest.mark.parametrize(("change", "sd"), [(-0.05, 0.01), (0.05, 0.01), (0.0, 0.05)])
def test_nothing_exploratory_feeds_the_exit_code(change: float, sd: float) -> None:
    shown = account(experiment(), {(f"iodepth={depth}", "new"): change for depth in (1, 32)}, sd=sd)
    flipped = tuple(replace(one, word="regression") for one in shown.views.spread)
    worse = replace(shown.views, spread=flipped)
    assert flipped
    assert replace(shown, views=worse).exit_code == shown.exit_code


@pytest.mark.parametrize(("carry", "said"), [("superblocks", "followed a trial of its own"), ("ignored", "turned off")])
def test_the_method_says_how_carry_over_was_dealt_with(carry: str, said: str) -> None:
    shown = account(experiment((1,)), {}, blocks=9)
    rules = replace(shown.plan.rules, carry=carry)
    plan = replace(shown.plan, rules=rules)
    assert said in flat(replace(shown, plan=plan))
    assert said not in flat(shown)


@pytest.mark.parametrize("cells", [1, 3, 9])
@pytest.mark.parametrize("sd", [0.003, 0.3])
def test_no_line_is_wider_than_a_terminal(cells: int, sd: float) -> None:
    depths = [2**n for n in range(cells)]
    said = text(account(experiment(depths, ("a-rather-long-name", "another-rather-long-name", "c")), {}, sd=sd))
    assert max(map(len, said.splitlines())) <= 80


def test_what_an_answer_costs_in_time_is_reckoned_from_the_trials_that_were_made() -> None:
    """A boot for every trial takes many times what the plan reckons for one."""
    made = account(experiment((1,)), {}, sd=0.018)
    slow = replace(made, spent=made.trials * 60.0)
    (blocks, said) = re.findall(r"needs about (\d+) more blocks \([^)]+\), ([^;,.]+)", flat(slow))[0]
    assert said == duration(int(blocks) * 2 * 60.0)


def test_noise_beyond_the_planned_blocks_offers_the_margin_they_can_settle() -> None:
    said = flat(account(experiment((1,)), {}, sd=0.05))
    assert re.search(
        r"IOPS will probably not be settled in the planned blocks \(\d+ % of replays\); a margin of [\d.]+ % can", said
    )


def test_the_time_to_the_first_look_is_that_of_all_open_cells() -> None:
    """The report said 16 min of one cell where the line of progress said 70 min of all four."""
    shown = account(experiment((1, 4, 16, 32)), {}, blocks=4)
    first = shown.plan.rules.looks[0]
    more = 4 * (first - 4)
    seconds = duration(more * shown.block_seconds)
    said = f"first look after {first} blocks of each of 4 cells, {more} more in all, {seconds}"
    told = flat(shown)
    assert told.count(f": {said}.") == 1
    assert "needs about" not in told
    (given_up,) = {cell.name for cell in shown.plan.experiment.cells if "32" in cell.name}
    fewer = flat(replace(shown, abandoned={given_up: "fio failed"}))
    assert f"of each of 3 cells, {3 * (first - 4)} more in all" in fewer


def test_a_block_that_serves_two_comparisons_is_counted_once() -> None:
    """To decide four cells of two comparisons each was said to take twice the blocks that it takes."""
    shown = account(experiment((1, 4, 16, 32), ("old", "new", "other")), {}, blocks=4)
    later = [
        replace(verdict, look=Look(0, 4, 0.01, last=False), needed=Needed(verdict.blocks + 6, 8, 12, 0.8))
        for verdict in shown.judgement.verdicts
    ]
    said = " ".join(open_questions(judged(shown, later)))
    seconds = duration(24 * shown.block_seconds)
    assert said == f"Open: 4 of 4 cells; to decide them all takes about 24 more blocks, {seconds}."


def test_several_variants_end_in_one_sentence_that_the_numbers_bear_out() -> None:
    changes = {(f"iodepth={depth}", "slow"): -0.2 for depth in (1, 32)}
    shown = account(experiment(variants=("old", "new", "slow")), changes, sd=0.005)
    assert shown.views.recommendation is not None
    assert "slow" not in shown.views.recommendation.variants
    assert shown.views.recommendation.sentence in flat(shown)


def test_every_block_behind_a_word_can_be_seen() -> None:
    shown = account(experiment((1,)), {("randread 4k", "new"): -0.05})
    said = "\n".join(explain(shown, "randread 4k"))
    verdict = shown.judgement.verdicts[0]
    rows = re.findall(r"^ +\d+  (?:old|new) +[+-]", said, re.MULTILINE)
    assert len(rows) == sum(len(v.changes) for v in shown.judgement.verdicts)
    for part in (
        "typical change as measured",
        "total change as measured",
        "carry-over",
        "smallest p that",
        "rule:",
        "what would change it:",
        f"{100 * verdict.changes[0]:+.2f} %",
    ):
        assert part in said


def test_the_headline_claims_no_more_than_the_words() -> None:
    assert headline(account(experiment(), {}, sd=0.3)) == "No answer yet for new against old in both cells."


def test_digits_stop_where_the_interval_does() -> None:
    assert percent(-0.02134, 0.004) == "-2.1 %"
    assert percent(-0.02134, 0.0004) == "-2.13 %"
    assert percent(-0.2134, 0.08) == "-21 %"
    assert percent(-0.0001, 0.01) == percent(0.0, 0.01) == "0.0 %"
    assert interval(-0.02, 0.0004) == "-2.0 .. 0.0 %"
    assert interval(-0.0253, -0.0171) == "-2.5 .. -1.7 %"
    assert interval(None, 0.1) == "below +10.0 %"
    assert interval(-0.002, None) == "above -0.2 %"
    assert interval(None, None) == "too few blocks"
    assert digits(float("inf")) == 1


def test_quantities_durations_and_sizes_read_as_people_write_them() -> None:
    assert quantity(78_123, "ns") == "78.12 us"
    assert quantity(12_345.6, "IOPS") == "12,346"
    assert quantity(float("nan"), "ns") == "-"
    assert [duration(s) for s in (45, 125, 700, 12_000)] == ["45 s", "2 min 05 s", "12 min", "3 h 20 min"]
    assert size(1 << 30) == "1 GiB"
    assert inert("a\x1bb\u202ec") == "a\\x1bb\\x202ec"


def test_a_machine_that_changed_between_sessions_is_said_to_have() -> None:
    found = differences({"kernel": {"release": "6.12"}}, {"kernel": {"release": "6.18"}})
    said = flat(replace(account(experiment(), {}), changed=found))
    assert "The machine changed between the sessions: kernel.release: 6.12 | 6.18 (a different kernel" in said


def test_a_trial_without_io_is_named_by_what_happened_and_ranks_worst() -> None:
    question = experiment((1,))
    plan = make_plan(question)
    made = trials(plan, {}, 30)
    stuck = next(one for one in made if one.variant == "new" and one.block == 4)
    nothing = Quantity.exact(0.0, "IOPS")
    (read,) = stuck.directions
    read = replace(read, ios=0, bytes=0, iops=nothing, bandwidth=Quantity.exact(0.0, "B/s"), lat=None)
    made[made.index(stuck)] = replace(stuck, directions=(read,))
    shown = account(question, {}, blocks=30)
    shown = replace(shown, judgement=judge_all(made, plan.rules, baseline="old"))
    said = list(explain(shown, plan.experiment.cells[0].name))
    named = [line for line in said if f"no I/O completed in trial {stuck.number}" in line]
    assert len(named) == len(shown.judgement.verdicts), "IOPS and latencies alike"
    assert {line.count("#") for line in named} == {10}, "it ranks worst"
    assert any("#" * 10 + "|" in line for line in named), "fewer IOPS"
