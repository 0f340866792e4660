"""Two groups of runs that were not made in pairs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from iodelta.stats.unpaired import _rank_sum_cdf, shift


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (4, 4), (3, 6)])
def test_the_rank_sum_distribution_is_that_of_all_arrangements(n: int, m: int) -> None:
    counts = np.zeros(n * m + 1)
    for chosen in itertools.combinations(range(n + m), n):
        counts[sum(chosen) - n * (n - 1) // 2] += 1
    assert _rank_sum_cdf(n, m) == pytest.approx(np.cumsum(counts) / counts.sum())


def test_the_interval_holds_exactly_the_shifts_that_the_rank_sum_test_accepts() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=8), rng.normal(0.5, size=9)
    found = shift(a, b)
    for inside in np.linspace(found.low + 1e-9, found.high - 1e-9, 20):
        assert mannwhitneyu(b - inside, a, method="exact").pvalue > 0.05
    for outside in (found.low - 1e-9, found.high + 1e-9):
        assert mannwhitneyu(b - outside, a, method="exact").pvalue <= 0.05


def test_few_runs_have_no_interval() -> None:
    for n, m in ((1, 1), (3, 3), (1, 30)):
        assert math.isinf(shift(np.arange(n), np.arange(m)).low)
    assert math.isfinite(shift(np.arange(4), np.arange(4)).low)


def test_swapping_the_groups_turns_the_sign() -> None:
    a, b = [1.0, 2.0, 4.0, 8.0, 9.0], [3.0, 5.0, 6.0, 7.0]
    one, other = shift(a, b), shift(b, a)
    assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 to 100 runs"):
        shift([], [1.0])
    with pytest.raises(ValueError, match="finite"):
        shift([math.nan], [1.0])
