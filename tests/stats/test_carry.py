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
    approach,
    carry_over,
    direct_bias,
    exposures,
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
