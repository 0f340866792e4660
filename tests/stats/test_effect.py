"""The size of a change: the signed-rank interval, its exactness, and the cross-checks beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import scaled

from iodelta.stats.effect import (
    EXACT_RANKS,
    hodges_lehmann,
    hodges_lehmann_rows,
    log_ratios,
    not_above_rows,
    not_below_rows,
    rank_tail,
    tails_rows,
)

RNG = np.random.default_rng(4321)
ROWS = st.lists(st.integers(-20, 20).map(lambda i: i / 4), min_size=1, max_size=14)


@pytest.mark.parametrize("n", [5, 8, 13, 24, 50])
def test_signed_rank_p_values_are_those_of_scipy_exact(n: int) -> None:
    d = RNG.normal(0.4, 1.0, n)
    above, below = tails_rows(d[None, :], 0.0)
    for ours, side in ((above, "greater"), (below, "less")):
        theirs = scipy.stats.wilcoxon(d, alternative=side, method="exact").pvalue
        assert ours[0] == pytest.approx(theirs, rel=1e-12)


def test_beyond_the_exact_table_the_normal_approximation_takes_over_smoothly() -> None:
    """At the edge of the table both agree within a thousandth, and the approximation errs on the careful side."""
    counts = np.arange(1500, 2500, 50)
    exact = rank_tail(EXACT_RANKS, counts)
    mean, variance = EXACT_RANKS * (EXACT_RANKS + 1) / 4, EXACT_RANKS * (EXACT_RANKS + 1) * (2 * EXACT_RANKS + 1) / 24
    normal = scipy.stats.norm.cdf((counts + 0.5 - mean) / math.sqrt(variance))
    assert np.allclose(exact, normal, atol=1e-3)
    assert np.all(normal[:8] >= exact[:8])
    d = RNG.normal(0.1, 1.0, 150)
    theirs = scipy.stats.wilcoxon(d, alternative="greater", method="asymptotic", correction=True).pvalue
    assert tails_rows(d[None, :], 0.0)[0][0] == pytest.approx(theirs, rel=1e-9)
    assert hodges_lehmann(d, 0.99).low < hodges_lehmann(d, 0.9).low


def test_too_few_blocks_for_a_level_give_an_unbounded_interval() -> None:
    d = RNG.normal(size=7)
    assert math.isfinite(hodges_lehmann(d, 1 - 2 / 2**7).low)
    too_strict = hodges_lehmann(d, 0.99)
    assert (too_strict.low, too_strict.high) == (-math.inf, math.inf)
    assert too_strict.value == hodges_lehmann(d, 0.9).value


@given(ROWS, st.sampled_from([-1.0, -0.125, 0.0, 0.125, 2.0]))
def test_counts_of_walsh_averages_hold_with_ties_and_zeros(values: list[float], mu: float) -> None:
    d = np.array(values)
    averages = [(d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i, len(d))]
    not_above, not_below = not_above_rows(d[None, :], mu), not_below_rows(d[None, :], mu)
    assert not_above[0] == sum(average <= mu for average in averages)
    assert not_below[0] == sum(average >= mu for average in averages)


@given(ROWS, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_is_the_set_of_shifts_that_the_test_does_not_reject(values: list[float], level: float) -> None:
    d = np.array(values)
    found = hodges_lehmann(d, level)
    for mu in (found.low - 1e-6, found.low + 1e-6, found.high - 1e-6, found.high + 1e-6):
        if math.isfinite(mu):
            above, below = tails_rows(d[None, :], mu)
            rejected = min(above[0], below[0]) <= (1 - level) / 2 * (1 + 1e-9)
            assert rejected == (mu < found.low or mu > found.high)


@given(ROWS, st.integers(-8, 8), st.sampled_from([0.5, 2.0, 16.0]))
def test_estimates_move_with_the_data(values: list[float], shift: int, scale: float) -> None:
    """Shifting and scaling the log-ratios shifts and scales centre and bounds; swapping labels mirrors them."""
    d = np.array(values)
    base, moved, mirrored = (np.ravel(hodges_lehmann_rows(row[None, :], 0.9)) for row in (d, scale * d + shift, -d))
    assert moved == pytest.approx(scale * base + shift, abs=1e-9)
    assert mirrored == pytest.approx(-base[[0, 2, 1]])


def test_log_ratios_are_positive_when_worse() -> None:
    assert log_ratios([100.0], [98.0], higher_is_better=True)[0] == pytest.approx(0.0202, abs=1e-4)
    assert log_ratios([100.0], [98.0], higher_is_better=False)[0] == pytest.approx(-0.0202, abs=1e-4)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_value_without_a_logarithm_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        log_ratios([1.0, bad], [1.0, 1.0], higher_is_better=True)


@settings(max_examples=scaled(20))
@given(st.integers(0, 2**32 - 1))
def test_intervals_cover_a_skewed_but_randomised_effect(seed: int) -> None:
    """Sign-symmetric differences of any shape: a 99.9 % interval misses 0 about once in a thousand, so hardly ever."""
    rng = np.random.default_rng(seed)
    d = rng.lognormal(0, 1.5, (40, 25)) * rng.choice([-1.0, 1.0], (40, 25))
    _, low, high = hodges_lehmann_rows(d, 0.999)
    assert np.count_nonzero((low > 0) | (high < 0)) <= 2
