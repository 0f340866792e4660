"""What the order of blocks can do to a verdict: correlation, period and carry-over, drift, and one-sidedness."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm

from benchmarks.noise import orientations
from iodelta.stats.guards import (
    MIN_BATCHES,
    balance,
    lag1_rows,
    merge_until_clean,
    order_effect,
    order_trend,
)

RNG = np.random.default_rng(99)


@pytest.mark.parametrize("n", [9, 20, 80])
def test_the_lag_1_guard_fires_as_often_as_it_should(n: int) -> None:
    _, p = lag1_rows(RNG.standard_normal((20_000, n)))
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.012)
    assert np.mean(p < 0.01) <= 0.015


def test_correlated_blocks_are_merged_until_they_no_longer_are() -> None:
    slow = np.repeat(RNG.standard_normal(20), 4) + 0.1 * RNG.standard_normal(80)
    merged = merge_until_clean(slow)
    assert merged.clean
    assert merged.size >= 4
    assert len(merged.batches) >= MIN_BATCHES
    assert np.mean(merged.batches) == pytest.approx(slow.mean())


def test_clean_blocks_are_left_alone() -> None:
    d = np.array([0.3, -0.2, 0.5, -0.4, 0.1, -0.6, 0.2, -0.1, 0.4])
    merged = merge_until_clean(d)
    assert (merged.size, merged.clean, merged.batches) == (1, True, tuple(d))


def test_too_few_blocks_to_merge_stay_unclean() -> None:
    assert not merge_until_clean(np.linspace(-1, 1, 12)).clean


def test_period_and_carry_over_have_newey_west_errors() -> None:
    first = orientations(40, 1, RNG)[0]
    d = 0.1 + RNG.standard_normal(40)
    before = np.concatenate(([0.5], first[:-1].astype(float)))
    carry = np.where(first, -before, before - 1)
    x = sm.add_constant(np.column_stack([np.where(first, 1.0, -1.0), carry]))
    theirs = sm.OLS(d, x).fit(cov_type="HAC", cov_kwds={"maxlags": 1, "use_correction": True}, use_t=True)
    found = order_effect(d, first)
    assert found.theta == pytest.approx(theirs.params[0])
    assert found.period == pytest.approx(2 * theirs.params[1])
    assert found.period_p == pytest.approx(theirs.pvalues[1])
    assert found.carry == pytest.approx(theirs.params[2])
    assert found.carry_p == pytest.approx(theirs.pvalues[2])


def test_an_order_that_never_changes_tells_nothing_about_period_or_carry_over() -> None:
    found = order_effect(RNG.standard_normal(20), np.ones(20, dtype=bool))
    assert found.period is None
    with pytest.raises(ValueError, match="orientation"):
        order_effect([0.1, 0.2], [True])


def test_a_difference_far_beyond_the_drift_is_not_explained_by_it() -> None:
    places = np.arange(20.0)
    values = np.exp(0.3 * (places >= 10) + 0.002 * RNG.standard_normal(20))
    trend = order_trend(values, places, places >= 10)
    assert trend is not None
    assert not trend.could_explain(0.3)
    assert order_trend([1.0, 2.0, 3.0], [1, 2, 3], [True, True, False]) is None
    with pytest.raises(ValueError, match="above zero"):
        order_trend([0.0, *([1.0] * 9)], range(10), [True, False] * 5)


@pytest.mark.parametrize(("worse", "better"), [(0, 0), (1, 0), (5, 5), (16, 0), (12, 3)])
def test_one_sidedness_is_a_binomial_test(worse: int, better: int) -> None:
    """16 regressions and not one improvement, as a benchmark bot once reported, is p = 0.00003."""
    theirs = scipy.stats.binomtest(worse, worse + better).pvalue if worse + better else 1.0
    assert balance(worse, better) == pytest.approx(theirs)
