"""Carry-over of one and of several trials: found at its size, and seldom where there is only noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import t

from iodelta.stats.carry import (
    MEMORIES,
    Levels,
    ahead_of,
    approach,
    carry_over,
    direct_bias,
    exposures,
    own_change,
)

Floats = NDArray[np.float64]


def lasting(
    noise: Floats, debt: float, memory: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Levels]:
    """Blocks of two in which a trial of B leaves a debt: differences, contrasts and their means, levels, exposures."""
    first = rng.random(len(noise) // 2) < 0.5
    arm = np.column_stack([~first, first]).ravel()
    worse, owed = noise.copy(), 0.0
    for at, variant in enumerate(arm):
        worse[at] += owed
        owed = memory * owed + debt * variant
    found = exposures(arm.astype(float).tolist())
    contrast, exposed = found[:, arm] - found[:, ~arm], (found[:, arm] + found[:, ~arm]) / 2
    levels = Levels((worse[arm] + worse[~arm]) / 2, exposed, np.arange(0.5, len(noise), 2))
    return worse[arm] - worse[~arm], contrast, contrast.mean(axis=1), levels


@pytest.mark.parametrize("memory", MEMORIES)
def test_carry_over_is_found_at_its_size_under_its_memory(memory: float) -> None:
    """The trial after B is 3 % worse, those after it by what is left of that: B gains half of it."""
    at = MEMORIES.index(memory)
    rng = np.random.default_rng(at)
    d, contrast, share, levels = lasting(0.01 * rng.standard_normal(800), 0.03, memory, rng)
    carry = carry_over(d, contrast, share, levels)
    assert carry.value[at] == pytest.approx(0.03, abs=0.004)
    assert bool(carry.shown[at])
    assert carry.best == at
    assert carry.share[at] == pytest.approx(-0.5, abs=0.06)
    assert d.mean() == pytest.approx(-0.015, abs=0.004)
    assert carry.adjusted(float(d.mean()))[at] == pytest.approx(0.0, abs=0.004)
    assert carry.low <= 0.03 <= carry.high


def test_differences_alone_tell_a_carry_over_with_twice_the_error_of_the_change() -> None:
    """Jones and Kenward, chapter 2; and nearly nothing of one that lasts."""
    rng = np.random.default_rng(5)
    d, contrast, share, levels = lasting(0.01 * rng.standard_normal(800), 0.03, 0.0, rng)
    alone, both = carry_over(d, contrast, share), carry_over(d, contrast, share, levels)
    quantile = t.ppf(1 - 0.05 / 6, 398)
    assert alone.half[0] / quantile == pytest.approx(2 * 0.01 * math.sqrt(2 / 400), rel=0.15)
    assert both.half[0] < 0.7 * alone.half[0]
    assert both.half[2] < 0.2 * alone.half[2]


@pytest.mark.parametrize("kind", ["calm", "drift", "warm-up", "AR(.9)", "in step", "wild"])
@pytest.mark.parametrize("blocks", [9, 40])
def test_noise_alone_is_seldom_a_carry_over(kind: str, blocks: int) -> None:
    """Noise that follows a trend, itself or a clock knows nothing of random orders: 5 % of 250 at all memories
    together; 10 % is beyond chance."""
    rng = np.random.default_rng([blocks, *kind.encode()])
    shown = [bool(carry_over(*lasting(noise_of(kind, 2 * blocks, rng), 0.0, 0.0, rng)).shown.any()) for _ in range(250)]
    assert np.mean(shown) <= 0.1


def noise_of(kind: str, trials: int, rng: np.random.Generator) -> Floats:
    at, calm = np.arange(trials), 0.01 * rng.standard_normal(trials)
    if kind == "AR(.9)":
        return np.asarray(lfilter([1.0], [1.0, -0.9], calm))
    shapes = {
        "calm": calm,
        "drift": calm + 0.2 * at / trials,
        "warm-up": calm + 0.3 * np.exp(-at / 20),
        "in step": calm + 0.3 * ((at + rng.integers(4)) % 4 < 2),
        "wild": calm * rng.standard_t(2, trials),
    }
    return np.asarray(shapes[kind])


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("uncounted", [1, 2, 3, 7])
def test_the_last_trials_tell_what_is_still_to_come_in_a_superblock(memory: float, uncounted: int) -> None:
    """Without noise: a debt of 3 % a trial ends at 3 % / (1 - memory), and the trials of an arm in a row tell what is
    missing of that."""
    rng, runs = np.random.default_rng(uncounted), uncounted + 1
    first = rng.random(4000) < 0.5
    arm = np.repeat(np.column_stack([~first, first]), runs, axis=1)
    worse = 0.03 * exposures(arm.ravel().astype(float).tolist())[MEMORIES.index(memory)].reshape(arm.shape)
    early, late = worse[:, :runs], worse[:, runs:]
    old, new = np.where(first[:, None], early, late), np.where(first[:, None], late, early)
    weights = approach(uncounted)[MEMORIES.index(memory)]
    d = new - old
    ahead = d[:, -len(weights) :] @ weights
    assert d[:, -1] + ahead == pytest.approx(0.03 / (1 - memory))
    middle = np.where(first, late[:, 0] - early[:, -1], early[:, -1] - late[:, 0])
    bias = direct_bias(uncounted)[MEMORIES.index(memory)]
    assert middle.mean() == pytest.approx(bias * ahead.mean(), abs=0.001)


@pytest.mark.parametrize("uncounted", [2, 3, 7])
def test_what_lasts_one_trial_is_not_on_its_way(uncounted: int) -> None:
    """All of it lies in the first trial after the switch, which is left out."""
    d = np.full(uncounted + 1, 0.1)
    d[0] = 0.0
    weights = approach(uncounted)
    assert weights @ d[-weights.shape[1] :] == pytest.approx(0.0)


def test_few_blocks_do_not_tell_what_is_ahead_and_noise_seldom_shows_some() -> None:
    rng = np.random.default_rng(3)
    assert ahead_of(np.zeros((3, 5))) is None
    one = 0.03 + 0.01 * rng.standard_normal(100)
    found = ahead_of(np.array([0 * one, one, 4 * one]))
    assert found is not None
    assert found.shown
    assert found.value == pytest.approx([0, 0.03, 0.12], abs=0.016)
    assert found.half[1] == pytest.approx(1.98 * 0.001, rel=0.25), "the same trials under another memory: one interval"
    shown = []
    for _ in range(400):
        seen = ahead_of(approach(3) @ (0.02 * rng.standard_normal((3, 12))))
        shown.append(seen is not None and seen.shown)
    assert np.mean(shown) <= 0.085


def own(change: float, carried: float, blocks: int, error: float = 1.0) -> bool:
    """Whether a change is its own, in units of its standard error."""
    return bool(own_change(np.array([change]), 1.0, np.array([carried]), np.array([error]), blocks)[0])


@pytest.mark.parametrize("blocks", [9, 22, 80])
@pytest.mark.parametrize("change", [3.0, 4.0, 6.0])
def test_a_change_is_its_own_unless_a_carry_over_accounts_for_it(blocks: int, change: float) -> None:
    assert own(change, 0.0, blocks)
    assert own(change, -2.0, blocks), "a debt hides a regression: it does not make one"
    assert not own(change, change, blocks)
    assert not own(change, 2 * change, blocks)


def test_normal_likelihoods_draw_the_line_after_many_blocks() -> None:
    """Squares of standard errors: (change - carried)^2 / 2 against carried^2, equal at sqrt(2) - 1 of the change."""
    line = 6.0 * (math.sqrt(2) - 1)
    assert own(6.0, line - 0.05, 10_000)
    assert not own(6.0, line + 0.05, 10_000)


def test_few_blocks_ask_more_of_a_change() -> None:
    assert own(3.0, 0.9, 80)
    assert not own(3.0, 0.9, 9)


def test_a_carry_over_of_which_nothing_is_known_takes_nothing_back() -> None:
    assert own(3.0, 5.0, 9, error=20.0)
