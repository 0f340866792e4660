"""Verdicts on single comparisons: the four words, when they are reached, and what makes them impossible."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from simulate import run, series

from iodelta.verdict import Judgement, Rules, Series, Verdict, judge_all, judge_series, metrics_for, next_step
from iodelta.verdict.judge import judge

RULES = Rules.for_blocks(80, metrics_for(["read"]), comparisons=3)
RNG = np.random.default_rng(77)


STALLS = "; single stalls in up to 4 % of trials (runs of n: n times that) are not excluded"
"""Eighty trials without a stall: 1 - 0.05^(1/80)."""


def exact(theta: float, half: float, n: int = 80) -> Series:
    """A series whose signed-rank interval at any level is close to theta +- half: evenly spread log-ratios."""
    spread = np.linspace(-1, 1, n)
    spread = spread[np.random.default_rng(5).permutation(n)] * half * math.sqrt(n) / 1.5
    return series(np.full(n, 1e5), 1e5 * np.exp(-theta + spread))


def rules(*looks: int, **more: object) -> Rules:
    return Rules(metrics=RULES.metrics, looks=looks, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("theta", "half", "word", "phrase"),
    [
        (0.0, 0.004, "equivalent", f"equivalent within 1 %{STALLS}"),
        (0.006, 0.002, "equivalent", f"equivalent within 1 % (worse, but by less than that){STALLS}"),
        (-0.006, 0.002, "equivalent", f"equivalent within 1 % (better, but by less than that){STALLS}"),
        (0.012, 0.006, "regression", "regressed"),
        (0.030, 0.006, "regression", "regressed by at least the margin"),
        (-0.012, 0.006, "improvement", "improved"),
        (-0.030, 0.006, "improvement", "improved by at least the margin"),
        (0.005, 0.020, "inconclusive", "neither a change nor equivalence is shown"),
        (-0.005, 0.012, "inconclusive", "not regressed; an improvement is not excluded"),
        (0.005, 0.012, "inconclusive", "not improved; a regression is not excluded"),
    ],
)
def test_the_word_follows_from_the_interval(theta: float, half: float, word: str, phrase: str) -> None:
    verdict = judge(exact(theta, half), rules(80))
    assert (verdict.word, verdict.phrase) == (word, phrase)
    assert verdict.look is not None
    assert verdict.look.last


@pytest.mark.parametrize(("blocks", "bound"), [(9, 28), (20, 14), (28, 10), (29, None), (80, None)])
@pytest.mark.parametrize("theta", [-0.05, 0.05])
def test_an_improvement_after_few_trials_says_which_stalls_it_does_not_exclude(
    theta: float, blocks: int, bound: int | None
) -> None:
    """1 - 0.05^(1/n): 28.3, 13.9 and 10.15 % of trials after 9, 20 and 28; from 29 on no more than ``[design] stalls``.
    A regression stands whatever stalls."""
    verdict = judge(exact(theta, 0.006, blocks), rules(blocks))
    assert verdict.word == ("improvement" if theta < 0 else "regression")
    said = ""
    if bound and theta < 0:
        said = f"; single stalls in up to {bound} % of trials (runs of n: n times that) are not excluded"
    assert verdict.phrase.partition(";")[2] == said.removeprefix(";")


def test_a_change_is_told_in_the_metrics_own_sign() -> None:
    """2 % fewer IOPS and 2 % longer latency are both regressions."""
    d = 0.02 + 0.01 * RNG.standard_normal(40)
    fewer = judge(series(np.full(40, 1e5), 1e5 * np.exp(-d)), RULES)
    longer = judge(series(np.full(40, 3e5), 3e5 * np.exp(d), name="read.lat.p99"), RULES)
    assert (fewer.word, longer.word) == ("regression", "regression")
    for verdict, value in ((fewer, -0.02), (longer, 0.02)):
        change = verdict.change
        assert change is not None
        assert change.low is not None
        assert change.high is not None
        assert change.value == pytest.approx(value, abs=0.008)
        assert change.low < change.value < change.high
        assert (change.low > 0) == (value > 0)
        assert verdict.baseline_value is not None
        assert verdict.variant_value is not None
        assert verdict.variant_value / verdict.baseline_value - 1 == pytest.approx(value, abs=0.01)


def test_between_looks_nothing_is_decided() -> None:
    d = 0.05 + 0.01 * RNG.standard_normal(80)
    for n in (1, 8):
        early = judge(series(np.full(n, 1e5), 1e5 * np.exp(-d[:n])), RULES)
        assert (early.word, early.step, early.next_look, early.look) == ("inconclusive", "continue", 9, None)
    quiet = judge(exact(0.005, 0.02, 14), RULES)
    assert (quiet.word, quiet.stopped, quiet.next_look) == ("inconclusive", 12, 16)


def test_judging_again_gives_the_same_words_whatever_was_run_since() -> None:
    """The live run judged after every round; a folder opened later is judged from all its trials at once."""
    trials = run(-0.012, blocks=60, seed=9)
    decided: dict[str, tuple[str, int]] = {}
    for rounds in range(1, 61):
        now = judge_all(trials[: 2 * rounds], RULES, baseline="old")
        for verdict in now.verdicts:
            if verdict.word != "inconclusive":
                before = decided.setdefault(verdict.metric.name, (verdict.word, verdict.stopped))
                assert before == (verdict.word, verdict.stopped)
    later = judge_all(trials, RULES, baseline="old").verdicts
    assert decided
    assert {v.metric.name: (v.word, v.stopped) for v in later if v.word != "inconclusive"} == decided


def test_when_the_budget_ends_a_last_look_spends_what_is_left() -> None:
    """At 18 blocks between two looks: 2.3 standard errors do not do at look 16, but at the end of the budget."""
    trials = run(-0.0105, blocks=18, seed=2)
    rules_ = Rules.for_blocks(80, RULES.metrics[:1], comparisons=1)
    running = judge_all(trials, rules_, baseline="old").verdicts[0]
    ended = judge_all(trials, rules_, baseline="old", ended=(trials[-1].number,)).verdicts[0]
    assert (running.step, running.stopped) == ("continue", 16)
    assert ended.step != "continue"
    assert ended.stopped == 18
    assert ended.look is not None
    assert running.look is not None
    assert not ended.look.planned
    assert ended.look.last
    assert ended.look.alpha > 2 * running.look.alpha
    assert ended.next_look is None


def test_after_its_end_only_an_extension_may_look_again() -> None:
    trials = run(-0.004, blocks=40, seed=6, sd=0.03)
    rules_ = Rules.for_blocks(80, RULES.metrics[:1], comparisons=1)
    end = next(t.number for t in reversed(trials) if t.block == 17)
    resumed = judge_all(trials, rules_, baseline="old", ended=(end,)).verdicts[0]
    assert (resumed.stopped, resumed.step) == (18, "exhausted")
    extended = judge_all(trials, rules_.extended(90), baseline="old", ended=(end, trials[-1].number)).verdicts[0]
    assert extended.stopped == 40
    assert extended.look is not None
    assert extended.look.alpha < 0.02


def test_an_interruption_before_anything_could_be_decided_costs_nothing() -> None:
    trials = run(-0.05, blocks=20, seed=6)
    early = next(t.number for t in reversed(trials) if t.block == 2)
    rules_ = Rules.for_blocks(20, RULES.metrics[:1], comparisons=1)
    assert (
        judge_all(trials, rules_, baseline="old", ended=(early,)).verdicts
        == judge_all(trials, rules_, baseline="old").verdicts
    )


def test_when_no_planned_look_will_answer_the_reachable_margin_is_given() -> None:
    verdict = judge(exact(0.002, 0.03, 40), rules(40, 80))
    assert verdict.needed is None
    assert verdict.reachable_margin is not None
    assert 0.02 < verdict.reachable_margin < 0.04
    assert verdict.open_share is not None
    assert 0.5 < verdict.open_share <= 1.0


def test_a_cell_goes_on_until_all_its_metrics_are_decided() -> None:
    """IOPS and mean latency are clear at 9 blocks; a p99 that is ten times noisier keeps the cell running."""
    n = 40
    d = 0.05 + 0.01 * RNG.standard_normal(n)
    clear = series(np.full(n, 1e5), 1e5 * np.exp(-d))
    noisy = series(np.full(n, 1e5), 1e5 * np.exp(0.1 * RNG.standard_normal(n)), name="read.lat.p99")
    both = judge_series([clear, noisy], RULES).verdicts
    assert [verdict.step for verdict in both] == ["decided", "continue"]
    assert next_step(both) == "continue"
    assert next_step(both[:1]) == "decided"
    ended = judge_series([clear, noisy], RULES, ended=(2 * n,)).verdicts
    assert next_step(ended) == "exhausted"
    assert next_step([]) == "exhausted"


def rules_of(verdict: Verdict) -> list[str]:
    return [finding.rule for finding in verdict.findings]


def test_all_of_a_then_all_of_b_is_refused_where_drift_could_do_it() -> None:
    """The device slows by 6 % over the session and nothing was changed."""
    n = 20
    drift = np.exp(-0.0015 * np.arange(2 * n) + 0.004 * RNG.standard_normal(2 * n))
    blocked = msgspec.structs.replace(
        series(1e5 * drift[:n], 1e5 * drift[n:], [True] * n),
        baseline_at=tuple(range(n)),
        variant_at=tuple(range(n, 2 * n)),
    )
    verdict = judge(blocked, Rules.for_blocks(n, RULES.metrics, comparisons=3))
    assert (verdict.word, verdict.step) == ("inconclusive", "exhausted")
    assert "verdict.order-trend" in rules_of(verdict)
    assert "interleaved" in verdict.phrase


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
@pytest.mark.parametrize("first", [True, False])
def test_few_blocks_in_one_order_ran_interleaved_all_the_same(*, blocks: int, first: bool) -> None:
    """Each block ended before the next began. Of one block nothing can be said, and that is what is said."""
    values = 1e5 * np.exp(0.01 * RNG.standard_normal((2, blocks)))
    verdict = judge(series(values[0], values[1], [first] * blocks), rules(blocks))
    assert verdict.look is not None
    assert rules_of(verdict) == (["verdict.one-block"] if blocks == 1 else [])
    assert "interleaved" not in verdict.phrase
    assert verdict.word == "inconclusive"


def test_an_order_that_never_changes_is_a_warning_with_the_verdict() -> None:
    d = 0.03 + 0.005 * RNG.standard_normal(20)
    verdict = judge(series(np.full(20, 1e5), 1e5 * np.exp(-d), [True] * 20), RULES)
    assert verdict.word == "regression"
    assert rules_of(verdict) == ["verdict.order-fixed"]
    assert "old ran first in all 20 blocks" in verdict.findings[0].explanation
    assert "one in 524288" in verdict.findings[0].explanation


def test_a_second_place_that_suffers_is_a_warning() -> None:
    first = np.arange(40) % 4 < 2
    d = np.where(first, 0.04, -0.04) + 0.01 * RNG.standard_normal(40)
    verdict = judge(series(np.full(40, 1e5), 1e5 * np.exp(-d), first), RULES)
    assert "verdict.period" in rules_of(verdict)


def test_the_p_value_of_a_look_is_that_of_the_tests_that_decide() -> None:
    """39 blocks 2 % slower and one 28 % faster: the mean says nothing, the ranks decide."""
    d = np.full(40, 0.02) + 0.001 * RNG.standard_normal(40)
    d[19] = -0.25
    verdict = judge(series(np.full(40, 1e5), 1e5 * np.exp(-d)), rules(40))
    assert verdict.word == "regression"
    assert verdict.p is not None
    assert verdict.p < 1e-4


@pytest.mark.parametrize(("first", "last", "blocks"), [(0, 2, 30), (5, 11, 30), (70, 79, 80), (0, 39, 80)])
def test_the_stretch_in_which_a_change_holds_is_named(first: int, last: int, blocks: int) -> None:
    d = 0.01 * RNG.standard_normal(blocks)
    d[first : last + 1] += 0.2
    course = judge(series(np.full(blocks, 1e5), 1e5 * np.exp(-d)), rules(blocks)).course
    assert course is not None
    ends = {(course.first, course.last), (0, course.first - 1), (course.last + 1, blocks - 1)}
    assert any(abs(one - first) <= 1 and abs(other - last) <= 1 for one, other in ends)


def test_a_change_that_is_the_same_throughout_has_no_course() -> None:
    """At a level of 1 %: hardly one of 40."""
    found = 0
    for _ in range(40):
        d = 0.03 + 0.02 * RNG.standard_normal(20)
        found += judge(series(np.full(20, 1e5), 1e5 * np.exp(-d)), rules(20)).course is not None
    assert found <= 4


def test_four_boots_are_no_verdict_and_twenty_runs_in_one_boot_neither() -> None:
    d = 0.05 + 0.002 * RNG.standard_normal(20)
    one = series(np.full(20, 1e5), 1e5 * np.exp(-d))
    for boots in (1, 4):
        names = tuple((f"old {i * boots // 20}", f"new {i * boots // 20}") for i in range(20))
        verdict = judge(msgspec.structs.replace(one, boots=names), RULES)
        assert verdict.word == "inconclusive"
        assert f"{boots} boot{'s' * (boots > 1)} per variant" in verdict.phrase
        assert verdict.step == "continue"


def test_boot_pairs_are_the_units() -> None:
    """Ten boots of two runs each: ten units, whose spread is that of boots."""
    boot = np.repeat(0.01 * RNG.standard_normal(10), 2)
    one = series(np.full(20, 1e5), 1e5 * np.exp(-0.05 + boot + 0.001 * RNG.standard_normal(20)))
    names = tuple((f"old {i // 2}", f"new {i // 2}") for i in range(20))
    verdict = judge(msgspec.structs.replace(one, boots=names), Rules.for_blocks(10, RULES.metrics, comparisons=3))
    assert (verdict.word, verdict.stopped) == ("regression", 6)
    assert "boot pairs" in verdict.rule
    within = tuple((f"boot {i}", f"boot {i}") for i in range(20))
    assert judge(msgspec.structs.replace(one, boots=within), RULES).stopped == 9
    assert "boot pairs" not in judge(msgspec.structs.replace(one, boots=within), RULES).rule


def test_every_verdict_explains_itself_and_survives_json() -> None:
    judged = judge_all(run(-0.03, blocks=20), RULES, baseline="old")
    text = msgspec.json.encode(judged)
    assert b"NaN" not in text
    assert b"Infinity" not in text
    assert msgspec.json.decode(text, type=Judgement) == judged
    for verdict in judged.verdicts:
        assert verdict.rule
        assert verdict.would_change
        assert len(verdict.changes) == len(verdict.baseline_first) == verdict.blocks
