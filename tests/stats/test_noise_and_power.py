"""What the noise of a machine allows, and whether a run was steady; the noise models themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from iodelta.stats.calibration import (
    alarms_beyond,
    false_alarm_bound,
    noise_sources,
    power_of,
    smallest_change,
)
from iodelta.stats.steady import mser5, steadiness, window_slope


@pytest.mark.parametrize(
    ("alarms", "comparisons", "bound"),
    [(0, 59, 0.0495), (0, 40, 0.0722), (0, 100, 0.0295), (0, 200, 0.0149), (2, 100, 0.0616)],
)
def test_clean_comparisons_bound_the_false_alarm_rate(alarms: int, comparisons: int, bound: float) -> None:
    assert false_alarm_bound(alarms, comparisons) == pytest.approx(bound, abs=2e-4)
    theirs = scipy.stats.binomtest(alarms, comparisons, alternative="less").proportion_ci(0.95, "exact").high
    assert false_alarm_bound(alarms, comparisons) == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("cv", "blocks"), [(0.01, (24, 8, 4)), (0.02, (87, 24, 9)), (0.03, (192, 50, 18)), (0.005, (8, 4, 3))]
)
def test_the_tabled_blocks_show_1_2_and_3_5_percent(cv: float, blocks: tuple[int, int, int]) -> None:
    """Independent pairs, 90 % power, two-sided 5 %: a block more is enough, two fewer are not."""
    for change, tabled in zip((0.01, 0.02, 0.035), blocks, strict=True):
        assert power_of(change, cv * math.sqrt(2), tabled + 1) >= 0.9
        assert power_of(change, cv * math.sqrt(2), tabled - 2) < 0.9


def test_noise_is_told_apart_by_source() -> None:
    """1 % inside blocks, 2 % between them, a drift of 3 % over the stream."""
    rng = np.random.default_rng(12)
    level = np.linspace(0, 0.03, 2000) + 0.02 * rng.standard_normal(2000)
    first, second = (np.exp(level + 0.01 * rng.standard_normal(2000)) for _ in range(2))
    found = noise_sources(first, second)
    assert found.within == pytest.approx(0.01, rel=0.05)
    assert found.between == pytest.approx(0.02, rel=0.06)
    assert found.drift == pytest.approx(0.03, abs=0.004)
    assert found.block_sd == pytest.approx(0.01 * math.sqrt(2), rel=0.05)
    assert found.pairing == pytest.approx(1 + 4 + 0.03**2 / 12 / 1e-4, rel=0.15)
    with pytest.raises(ValueError, match="4 blocks"):
        noise_sources([1.0] * 3, [1.0] * 3)


def test_the_smallest_change_is_found_where_a_trial_in_a_hundred_stalls() -> None:
    """The verdict's test is by ranks: a stall costs it a rank, not its size. scipy's says how often it finds that."""
    rng = np.random.default_rng(6)
    trials = np.exp(0.01 * rng.standard_normal((2, 100)))
    trials[1, 40] *= 0.1
    seen = smallest_change(50, noise_sources(*trials).block_sd)
    assert seen is not None
    found = 0
    for _ in range(200):
        d = np.diff(0.01 * rng.standard_normal((2, 50)), axis=0)[0] + seen
        d[rng.random(50) < 0.02] -= 2.3
        found += scipy.stats.wilcoxon(d).pvalue < 0.05
    assert seen < 0.01
    assert 0.8 < found / 200 < 0.99


def test_mser_5_finds_where_the_run_settles() -> None:
    rng = np.random.default_rng(2)
    ramp = np.concatenate([np.linspace(50, 100, 10), np.full(50, 100.0)]) + 0.3 * rng.standard_normal(60)
    assert mser5(ramp) == 10
    assert mser5(np.repeat([500.0, 1000.0], [35, 25]) + 0.3 * rng.standard_normal(60)) is None
    assert mser5([1.0, 2.0]) == 0
    assert mser5(np.full(40, 7.0)) == 0


def test_a_run_that_slopes_is_not_steady() -> None:
    rng = np.random.default_rng(4)
    flat = 1000 + rng.standard_normal(60)
    assert steadiness(flat, ramp=5, margin=0.01).steady
    falling = flat * np.linspace(1.0, 0.97, 60)
    found = steadiness(falling, ramp=30, margin=0.01)
    assert not found.steady
    assert window_slope(falling) == pytest.approx(-0.0305, abs=0.001)
    late = np.concatenate([np.full(20, 500.0), np.full(40, 1000.0)]) + rng.standard_normal(60)
    assert "ramp of 5 s" in steadiness(late, ramp=5, margin=0.01).why
    assert window_slope([7.0]) == 0.0


def test_a_noisy_run_is_not_blamed_for_a_slope_that_is_noise() -> None:
    rng = np.random.default_rng(6)
    verdicts = [steadiness(1000 + 80 * rng.standard_normal(30), ramp=5, margin=0.01).steady for _ in range(200)]
    assert np.mean(verdicts) > 0.7


def test_few_clean_comparisons_accuse_nobody_and_many_alarms_do() -> None:
    for comparisons in (3, 20, 59, 200):
        theirs = [scipy.stats.binom.sf(k - 1, comparisons, 0.05) <= 0.05 for k in range(comparisons + 1)]
        assert [alarms_beyond(k, comparisons, 0.05) for k in range(comparisons + 1)] == theirs
    with pytest.raises(ValueError, match="alarms lie between"):
        alarms_beyond(4, 3, 0.05)
