"""Two groups of runs that were not made in pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from iodelta.stats.unpaired import shift


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


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 to 100 runs"):
        shift([], [1.0])
    with pytest.raises(ValueError, match="finite"):
        shift([math.nan], [1.0])
