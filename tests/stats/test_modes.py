"""Bimodality: a machine that runs at two speeds and keeps returning to each."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from iodelta.stats.modes import Modes, find_modes, shares

Floats = NDArray[np.float64]
Seconds = Callable[[np.random.Generator, int], Floats]


def sticky(gap: float, stay: float = 0.9) -> Seconds:
    """Two speeds ``gap`` noise sds apart, changed with probability 1 - ``stay`` each second."""

    def made(rng: np.random.Generator, seconds: int) -> Floats:
        return np.asarray((np.cumsum(rng.random(seconds) > stay) % 2) * gap + rng.normal(size=seconds))

    return made


ONE_SPEED: dict[str, Seconds] = {
    "white": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(3, n),
    "skewed": lambda rng, n: rng.lognormal(0, 0.8, n),
    "uniform": lambda rng, n: rng.random(n),
    "outliers": lambda rng, n: rng.normal(size=n) + 6 * (rng.random(n) < 0.02),
    "a step": lambda rng, n: 0.3 * rng.normal(size=n) + 2 * (np.arange(n) > n / 2),
}


def runs(made: Seconds, seed: int, blocks: int = 20, seconds: int = 30) -> list[Floats]:
    return list(made(np.random.default_rng(seed), blocks * seconds).reshape(blocks, seconds))


@pytest.mark.parametrize("name", ONE_SPEED)
def test_noise_around_one_speed_has_one_mode(name: str) -> None:
    assert sum(find_modes(runs(ONE_SPEED[name], seed)).bimodal for seed in range(40)) <= 1


@pytest.mark.parametrize(("gap", "stay"), [(4.0, 0.9), (5.0, 0.9), (6.0, 0.98)])
def test_two_speeds_four_sds_apart_are_two_modes(gap: float, stay: float) -> None:
    found = [find_modes(runs(sticky(gap, stay), seed)) for seed in range(20)]
    assert sum(len(one.modes) == 2 for one in found) >= 18


def test_the_modes_say_where_they_are_and_how_time_is_shared() -> None:
    rng = np.random.default_rng(1)
    slow = rng.random((40, 30)) < 0.25
    found = find_modes(list(np.where(slow, 11.0, 12.0) + 0.1 * rng.normal(size=(40, 30))))
    assert [mode.centre for mode in found.modes] == pytest.approx([11.0, 12.0], abs=0.03)
    assert found.modes[0].share == pytest.approx(0.25, abs=0.04)
    assert sum(mode.share for mode in found.modes) == pytest.approx(1.0)
    assert 11.0 < found.cuts[0] < 12.0


def test_a_short_constant_or_missing_log_has_no_second_mode() -> None:
    assert find_modes([]) == Modes((), ())
    assert find_modes([np.array([math.nan, -math.inf])]) == Modes((), ())
    assert not find_modes([np.full(200, 5.0)]).bimodal
    assert not find_modes([np.array([1.0, 1.0, 9.0, 9.0] * 10)]).bimodal


def test_a_run_is_split_at_the_cut() -> None:
    assert shares(np.array([1.0, 1.2, 3.0, math.nan]), 2.0) == pytest.approx((1 / 3, 1.1, 3.0))
    share, below, above = shares(np.array([1.0, 1.2]), 2.0)
    assert (share, below) == pytest.approx((0.0, 1.1))
    assert math.isnan(above)
    assert all(math.isnan(part) for part in shares(np.array([math.nan]), 2.0))
