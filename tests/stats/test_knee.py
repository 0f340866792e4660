"""The saturation knee of a depth sweep."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from iodelta.stats.knee import Knee, KneeShift, find_knee, knee_shift
from iodelta.trial import Finding

Floats = NDArray[np.float64]
DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def queue(knee: float, peak: float = 500e3) -> Floats:
    """A single server behind a fixed delay with random arrivals: IOPS at each depth."""
    depth = np.array(DEPTHS, dtype=float)
    return peak * depth / (depth + knee)


def corner(knee: float, peak: float = 500e3) -> Floats:
    """A device that serves ``knee`` I/Os at once, each in the same time."""
    return peak * np.minimum(np.array(DEPTHS) / knee, 1.0)


def measured(curve: Floats, blocks: int, seed: int, cv: float = 0.02) -> Floats:
    return np.asarray(curve * np.exp(np.random.default_rng(seed).normal(0, cv, (blocks, len(curve)))))


@pytest.mark.parametrize("curve", [queue, corner])
@pytest.mark.parametrize("knee", [6.0, 20.0, 50.0])
def test_the_knee_of_a_known_device_is_found(curve: object, knee: float) -> None:
    assert callable(curve)
    found = find_knee(DEPTHS, measured(curve(knee), 12, 1), seed=1)
    assert isinstance(found, Knee)
    assert found.depth == pytest.approx(knee, rel=0.06)
    assert found.low <= found.depth <= found.high
    assert found.plateau == pytest.approx(500e3, rel=0.02)
    assert found.slope == pytest.approx(1.0, abs=0.05)


def test_the_interval_holds_the_knee_in_nineteen_sweeps_of_twenty() -> None:
    found = [find_knee(DEPTHS, measured(queue(20), 10, seed), seed=seed) for seed in range(60)]
    hits = sum(isinstance(one, Knee) and one.low <= 20 <= one.high for one in found)
    assert hits >= 53


def test_a_knee_that_moved_by_a_fifth_is_told_from_one_that_stayed() -> None:
    base = measured(queue(20), 12, 2)
    moved = knee_shift(DEPTHS, base, measured(queue(24), 12, 3), seed=1)
    stayed = knee_shift(DEPTHS, base, measured(queue(20), 12, 4), seed=1)
    slower = knee_shift(DEPTHS, base, measured(queue(20, 400e3), 12, 5), seed=1)
    assert isinstance(moved, KneeShift)
    assert isinstance(stayed, KneeShift)
    assert isinstance(slower, KneeShift)
    assert moved.moved
    assert moved.ratio == pytest.approx(1.2, rel=0.05)
    assert not stayed.moved
    assert not slower.moved, "a lower plateau with the same knee is no moved knee"


@pytest.mark.parametrize(
    ("depths", "iops", "rule"),
    [
        (DEPTHS, np.tile(1000.0 * np.array(DEPTHS), (8, 1)), "knee.outside"),
        (DEPTHS, np.full((8, 9), 5e5), "knee.outside"),
        (DEPTHS, np.tile(queue(20), (8, 1))[:, ::-1], "knee.outside"),
        (DEPTHS, measured(queue(20), 4, 7), "tails.too-few-blocks"),
        ([1, 2, 4], np.ones((8, 3)), "knee.too-few-depths"),
        (DEPTHS, np.zeros((8, 9)), "knee.not-positive"),
        (DEPTHS, np.full((8, 9), math.nan), "knee.not-positive"),
        (DEPTHS, np.ones((8, 3)), "knee.unequal"),
    ],
)
def test_a_sweep_without_a_knee_says_why(depths: list[float], iops: Floats, rule: str) -> None:
    found = find_knee(depths, iops, seed=1)
    assert isinstance(found, Finding)
    assert found.rule == rule
    assert isinstance(knee_shift(depths, iops, iops, seed=1), Finding)


def test_sweeps_of_different_blocks_are_not_compared() -> None:
    found = knee_shift(DEPTHS, measured(queue(20), 8, 8), measured(queue(20), 7, 9), seed=1)
    assert isinstance(found, Finding)
    assert found.rule == "knee.unequal"
