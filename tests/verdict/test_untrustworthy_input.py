"""Whatever comes in: a finding with its reason, never an exception, never a verdict it does not support."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulate import run, series, trial
from tiers import scaled

from iodelta.verdict import Rules, Series, Verdict, judge_all, judge_series, metrics_for
from iodelta.verdict.judge import judge

RULES = Rules.for_blocks(20, metrics_for(["read"]), comparisons=3)
RNG = np.random.default_rng(6)


def reasons(verdict: Verdict) -> list[str]:
    return [finding.rule for finding in verdict.findings]


def noisy(n: int = 20) -> np.ndarray:
    return np.asarray(1e5 * np.exp(0.01 * RNG.standard_normal(n)))


def test_a_constant_ratio_is_a_result() -> None:
    """Printed percentiles of a quiet device repeat themselves: 10 % less in every block is a regression."""
    verdict = judge(series(np.full(20, 1e5), np.full(20, 0.9e5)), RULES)
    assert verdict.word == "regression"
    same = judge(series(np.full(80, 1e5), np.full(80, 1e5)), Rules(metrics=RULES.metrics))
    assert same.word == "equivalent"


@pytest.mark.parametrize("blocks", [8, 20])
def test_a_device_that_does_nothing_in_half_of_its_trials_gets_a_word_and_no_warning(blocks: int) -> None:
    """Half of the blocks then favour one arm endlessly, half the other: numpy has no number between the two."""
    one_arm = np.where(np.arange(blocks) % 2, 1e5, 0.0)
    verdict = judge(series(one_arm, one_arm[::-1].copy()), Rules.for_blocks(blocks, metrics_for(["read"])))
    assert verdict.word == "inconclusive"


def test_a_trial_that_did_nothing_is_the_worst_rank() -> None:
    """One trial of 0 IOPS in a loss of 30 %: still a regression. The same of an endless latency."""
    lost = noisy(80) * 0.7
    lost[7] = 0.0
    assert judge(series(noisy(80), lost), RULES).word == "regression"
    slow = noisy(80) * 1.4
    slow[7] = math.inf
    assert judge(series(noisy(80), slow, name="read.lat.mean"), RULES).word == "regression"


@pytest.mark.parametrize("bad", [-5.0, math.nan, math.inf])
def test_one_impossible_value_spoils_the_series_rather_than_being_dropped(bad: float) -> None:
    values = noisy()
    values[7] = bad
    for one in (series(values, noisy()), series(noisy(), values)):
        verdict = judge(one, RULES)
        assert (verdict.word, verdict.step) == ("inconclusive", "exhausted")
        assert reasons(verdict) == ["verdict.not-positive"]
        assert "block 7" in verdict.phrase


def test_unequal_arms_are_not_paired_by_guess() -> None:
    one = msgspec.structs.replace(series(noisy(), noisy()), variant_values=tuple(noisy(17).tolist()))
    verdict = judge(one, RULES)
    assert (verdict.word, reasons(verdict)) == ("inconclusive", ["verdict.unequal"])


def test_a_missing_variant_is_a_finding() -> None:
    judged = judge_all(run(blocks=12), RULES, baseline="old", variants=("new", "newer"))
    missing = [verdict for verdict in judged.verdicts if verdict.variant == "newer"]
    assert len(missing) == 3
    for verdict in missing:
        assert verdict.word == "inconclusive"
        assert "verdict.no-blocks" in reasons(verdict)


def test_a_missing_baseline_leaves_everything_undecided() -> None:
    judged = judge_all(run(blocks=12), RULES, baseline="6.12")
    assert judged.verdicts
    assert {verdict.word for verdict in judged.verdicts} == {"inconclusive"}
    assert judge_all([], RULES, baseline="old").verdicts == ()


def test_refused_percentiles_do_not_hold_a_cell_up_for_ever() -> None:
    trials = [trial(2 * b + i, v, b, 1e5, position=i, ios=500) for b in range(10) for i, v in enumerate(("old", "new"))]
    p99 = judge_all(trials, RULES, baseline="old").verdicts[2]
    assert (p99.word, p99.step) == ("inconclusive", "exhausted")
    assert p99.phrase.startswith("no verdict: 500 I/Os leave 5 beyond p99")
    assert "verdict.tail-too-thin" in reasons(p99)


def test_a_wild_block_is_pointed_at() -> None:
    values = noisy()
    values[4] *= 30
    verdict = judge(series(noisy(), values), Rules(metrics=RULES.metrics, looks=(20,)))
    assert "verdict.estimands-disagree" in reasons(verdict)


def excludes_0(verdict: Verdict) -> bool:
    change = verdict.change
    return bool(change and change.low is not None and change.high is not None and change.low * change.high > 0)


anything = st.floats(allow_nan=True, allow_infinity=True)
plausible = st.floats(0.5, 2.0)


@st.composite
def series_of_anything(draw: st.DrawFn) -> Series:
    sizes = st.integers(0, 26)
    n = draw(sizes)
    values = st.lists(
        draw(st.sampled_from([anything, plausible, st.sampled_from([1.0, 1.0, 2.0])])), min_size=n, max_size=n
    )
    column = st.lists(st.integers(-3, 100), min_size=n, max_size=n)
    boots = draw(st.sampled_from([(), tuple((f"a{i % 7}", f"b{i % 6}") for i in range(n)), (("x", "x"),) * n]))
    hosts = draw(st.sampled_from([(), tuple(f"h{i % 2}" for i in range(n)), ("h",) * max(0, n - 1)]))
    other = draw(st.sampled_from([n, max(0, n - 3)]))
    return Series(
        cell=draw(st.sampled_from(["a", "b"])),
        metric=draw(st.sampled_from(RULES.metrics)),
        baseline="old",
        variant="new",
        blocks=tuple(draw(column)),
        baseline_values=tuple(draw(values)),
        variant_values=tuple(draw(values))[:other],
        baseline_first=tuple(draw(st.lists(st.booleans(), min_size=n, max_size=n))),
        baseline_at=tuple(draw(column)),
        variant_at=tuple(draw(column)),
        boots=boots,
        hosts=hosts,
        incomplete=draw(st.integers(0, 30)),
    )


@settings(max_examples=scaled(60))
@given(
    st.lists(series_of_anything(), max_size=4),
    st.sampled_from(["each", "holm", "screen"]),
    st.lists(st.integers(-1, 60), max_size=2),
)
def test_nothing_raises_and_no_verdict_is_without_its_numbers(
    found: list[Series], family: str, ended: list[int]
) -> None:
    rules = msgspec.structs.replace(RULES, family=family)
    judged = judge_series(found, rules, ended=ended)
    assert len(judged.verdicts) == len(found)
    assert b"NaN" not in msgspec.json.encode(judged)
    for verdict in judged.verdicts:
        assert verdict.phrase
        if verdict.word != "inconclusive":
            assert verdict.blocks >= 6
            assert verdict.change is not None
            assert verdict.step == "decided"
            assert not [f for f in verdict.findings if f.severity == "hard"]
            within = [bound is not None and abs(bound) <= 0.0101 for bound in (verdict.change.low, verdict.change.high)]
            assert all(within) == (verdict.word == "equivalent")
            assert verdict.word == "equivalent" or excludes_0(verdict)
        elif verdict.change is None:
            assert verdict.findings or not verdict.blocks
