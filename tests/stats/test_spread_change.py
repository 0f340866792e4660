"""Run-to-run spread as a result in its own right, apart from level and drift (table 3.7 of the specification)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import levene
from tiers import most, scaled

from iodelta.stats.spread import blocks_needed, residuals, spread_change

Floats = NDArray[np.float64]
Shape = Callable[[np.random.Generator, int], Floats]

SHAPES: dict[str, Shape] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t3": lambda rng, n: rng.standard_t(3, n),
    "skewed": lambda rng, n: rng.lognormal(0, 0.8, n),
}


def blocks(shape: Shape, n: int, ratio: float, seed: int, *, drift: float = 0.0) -> tuple[Floats, Floats]:
    """Log values of two arms: noise of 2 %, ``ratio`` times as much in the second, which also runs 15 % slower."""
    rng = np.random.default_rng(seed)
    common = drift * np.cumsum(rng.normal(size=n)) / math.sqrt(n)
    return 0.02 * (shape(rng, n) + common), 0.02 * (ratio * shape(rng, n) + common) - 0.16


def found_share(shape: Shape, n: int, ratio: float, reps: int, *, drift: float = 0.0, seed: int = 0) -> float:
    """Share of experiments in which the permutation and the interval both show a change."""
    hits = 0
    for rep in range(reps):
        found = spread_change(*blocks(shape, n, ratio, 1000 * seed + rep, drift=drift), seed=rep)
        hits += found.p_swap <= 0.05 and (found.low > 0 or found.high < 0)
    return hits / reps


@pytest.mark.parametrize("n", [5, 20])
def test_p_is_scipys_levene_around_medians(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=n), 1.4 * rng.normal(size=n)
    assert spread_change(a, b, seed=1).p == pytest.approx(levene(*residuals(a, b), center="median").pvalue)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("drift", [0.0, 2.0])
def test_equal_spread_is_rarely_called_a_change_whatever_the_noise_and_the_drift(name: str, drift: float) -> None:
    """The F test calls 33 % (t3) and 43 % (skewed)."""
    experiments = scaled(100, 20)
    assert found_share(SHAPES[name], 20, 1.0, experiments, drift=drift) * experiments <= most(0.05, experiments)


@pytest.mark.night
def test_twice_the_spread_is_found_in_forty_blocks_and_half_as_much_again_about_every_other_time() -> None:
    normal = SHAPES["normal"]
    assert found_share(normal, 40, 2.0, 40, seed=1) >= 0.8
    assert 0.35 <= found_share(normal, 40, 1.5, 60, seed=2) <= 0.75
    assert 0.4 <= found_share(normal, 20, 2.0, 40, seed=3) <= 0.85


def test_half_as_much_again_needs_more_than_forty_blocks() -> None:
    needed = [blocks_needed(spread_change(*blocks(SHAPES["normal"], 40, 1.0, seed), seed=seed)) for seed in range(12)]
    assert 40 <= float(np.median(needed)) <= 70


def test_the_ratio_is_the_true_one_and_level_does_not_enter_it() -> None:
    a, b = blocks(SHAPES["normal"], 400, 1.5, 1)
    found = spread_change(a, b, seed=1)
    assert math.exp(found.log_ratio) == pytest.approx(1.5, rel=0.12)
    assert found.low < found.log_ratio < found.high
    moved = spread_change(a - 3.0, b + 7.0, seed=1)
    assert moved.log_ratio == pytest.approx(found.log_ratio)


def test_swapping_the_arms_turns_the_sign_and_keeps_the_p_values() -> None:
    a, b = blocks(SHAPES["t3"], 30, 1.5, 2)
    found, back = spread_change(a, b, seed=1), spread_change(b, a, seed=1)
    assert back.log_ratio == pytest.approx(-found.log_ratio)
    assert (back.p, back.p_swap) == pytest.approx((found.p, found.p_swap))


def test_slow_drift_is_taken_out_of_both_arms_and_the_noise_is_left() -> None:
    drift = np.linspace(0.0, 0.5, 60)
    noise = 0.01 * np.random.default_rng(3).normal(size=(2, 60))
    rest = residuals(noise[0] + drift, noise[1] + drift - 0.2)
    assert float(np.std(rest.baseline[5:-5])) == pytest.approx(0.01, rel=0.3)
    assert float(np.corrcoef(rest.baseline, drift)[0, 1]) < 0.5


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(2), np.zeros(2)),
        (np.zeros(9), np.zeros(8)),
        (np.full(9, math.nan), np.zeros(9)),
        (np.zeros(9), np.zeros(9)),
    ],
)
def test_too_few_unequal_missing_or_constant_blocks_have_no_spread(a: Floats, b: Floats) -> None:
    with pytest.raises(ValueError, match="spread needs"):
        spread_change(a, b, seed=1)
