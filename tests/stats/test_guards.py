"""What the order of blocks can do to a verdict: correlation, period and carry-over, drift, and one-sidedness."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from iodelta.stats.guards import (
    MIN_BATCHES,
    balance,
    lag1,
    merge_until_clean,
    order_trend,
    second_place,
)

RNG = np.random.default_rng(99)


@pytest.mark.parametrize("n", [9, 20, 80])
def test_neighbours_are_called_alike_as_often_as_they_should_be(n: int) -> None:
    p = np.array([lag1(row)[1] for row in RNG.standard_normal((5_000, n))])
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.012)
    assert np.mean(p < 0.01) <= 0.015


def test_correlated_blocks_are_merged_until_they_no_longer_are() -> None:
    slow = np.repeat(RNG.standard_normal(20), 4) + 0.1 * RNG.standard_normal(80)
    batches = merge_until_clean(slow)
    assert MIN_BATCHES <= len(batches) <= 20
    assert np.mean(batches) == pytest.approx(slow.mean())
    clean = np.array([0.3, -0.2, 0.5, -0.4, 0.1, -0.6, 0.2, -0.1, 0.4])
    assert list(merge_until_clean(clean)) == list(clean)


def test_a_slower_second_place_is_known_by_the_orders_and_never_taken_for_a_change() -> None:
    first = RNG.random(40) < 0.5
    noise = 0.01 * RNG.standard_normal(40)
    size, p = second_place(0.3 + np.where(first, 0.02, -0.02) + noise, first)
    assert size == pytest.approx(0.02, abs=0.006)
    assert p < 0.001
    assert second_place(0.3 + noise, first)[1] > 0.01


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
