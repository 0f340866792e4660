"""Units above the block (boots, hosts), and families of comparisons."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from tiers import scaled

from iodelta.stats.boots import boot_means, runs_per_boot
from iodelta.stats.families import benjamini_hochberg

PS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


@settings(max_examples=scaled(25))
@given(PS)
def test_benjamini_hochberg_q_values_are_those_of_statsmodels(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])


def test_boots_not_runs_are_the_units() -> None:
    """Five boots per kernel of four runs each, whose boots differ by 1 %: tabled false alarms are 4-5 % (67 % with one
    boot of 20 runs as units)."""
    rng = np.random.default_rng(8)
    missed = 0
    for _ in range(400):
        many = rng.normal(0, 0.01, 10).repeat(4) + rng.normal(0, 0.01, 40)
        _, means = boot_means(many, [f"boot {i}" for i in range(10) for _ in range(4)])
        d = means[:5] - means[5:]
        missed += abs(d.mean()) > 2.776 * d.std(ddof=1) / math.sqrt(5)
    assert missed / 400 == pytest.approx(0.05, abs=0.035)
    with pytest.raises(ValueError, match="one boot per value"):
        boot_means([1.0, 2.0], ["a"])


@pytest.mark.parametrize(
    ("boot_cost", "run_cost", "run_sd", "boot_sd", "runs"),
    [(120, 30, 0.01, 0.01, 2), (120, 30, 0.01, 0.02, 1), (600, 10, 0.02, 0.005, 4), (60, 30, 0.01, 0.0, 4)],
)
def test_runs_per_boot_follow_cost_and_spread(
    boot_cost: float, run_cost: float, run_sd: float, boot_sd: float, runs: int
) -> None:
    assert runs_per_boot(boot_cost, run_cost, run_sd, boot_sd) == runs
