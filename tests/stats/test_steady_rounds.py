"""The steady state of SNIA's specification, against closed forms, properties and a disk that is simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iodelta.stats.rounds import WINDOW, Window, departure, last_window, window_at

RNG = np.random.default_rng(20)

rates = st.floats(1.0, 1e7)
five = st.lists(rates, min_size=5, max_size=5)


@pytest.mark.parametrize(
    ("values", "spread", "slope", "steady"),
    [
        ([100.0] * 5, 0.0, 0.0, True),
        ([95.0, 97.5, 100.0, 102.5, 105.0], 0.10, 0.10, True),  # exactly at the limit of the slope
        ([105.0, 102.5, 100.0, 97.5, 95.0], 0.10, -0.10, True),
        ([94.0, 97.0, 100.0, 103.0, 106.0], 0.12, 0.12, False),
        ([100.0, 100.0, 110.0, 90.0, 100.0], 0.20, -0.04, True),  # exactly at the limit of the range
        ([100.0, 100.0, 111.0, 89.0, 100.0], 0.22, -0.044, False),
        ([90.0, 110.0, 100.0, 110.0, 90.0], 0.20, 0.0, True),
        ([0.0] * 5, float("inf"), float("inf"), False),
    ],
)
def test_the_limits_of_range_and_slope_as_worked_by_hand(
    values: list[float], spread: float, slope: float, steady: bool
) -> None:
    found = window_at(values, 0)
    assert found.range == pytest.approx(spread)
    assert found.slope == pytest.approx(slope)
    assert found.steady is steady


@given(five)
def test_the_line_is_the_one_that_scipy_draws(values: list[float]) -> None:
    line = stats.linregress(range(WINDOW), values)
    average = sum(values) / WINDOW
    found = window_at(values, 0)
    assert found.slope == pytest.approx(4 * line.slope / average, abs=1e-7)
    assert found.range == pytest.approx((max(values) - min(values)) / average, abs=1e-9)


@given(st.lists(rates, min_size=0, max_size=12))
def test_there_is_a_last_window_as_soon_as_there_are_five_rounds(values: list[float]) -> None:
    assert (last_window(values) is None) == (len(values) < WINDOW)


def first_steady(values: Sequence[float]) -> Window | None:
    """Where a preparation ends: its last window after each round, until one is steady."""
    windows = (last_window(values[:count]) for count in range(len(values) + 1))
    return next((one for one in windows if one is not None and one.steady), None)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_round_without_a_number_is_not_steady(bad: float) -> None:
    assert not window_at([100.0, 100.0, bad, 100.0, 100.0], 0).steady


def disk(fresh: float, used: float, after: int, settle: float, noise: float) -> Iterator[float]:
    """Rates of a disk that is as fast as new for ``after`` rounds, then falls to what it sustains."""
    at = 0
    while True:
        level = fresh if at < after else used + (fresh - used) * np.exp(-(at - after + 1) / settle)
        yield level * (1 + noise * RNG.standard_normal())
        at += 1


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("settle", [0.5, 2.0])
def test_a_disk_is_steady_only_after_its_transition(after: int, settle: float) -> None:
    for _ in range(200):
        source = disk(fresh=90_000, used=20_000, after=after, settle=settle, noise=0.01)
        values: list[float] = []
        while (found := first_steady(values)) is None:
            values.append(next(source))
            assert len(values) < 60, "a disk with 1 % of noise settles"
        assert found.first >= after, "no window with a round from before the transition is steady"
        assert 18_000 < found.average < 24_500


def test_a_disk_that_is_as_fast_as_new_for_five_rounds_looks_steady() -> None:
    """So limits of range and slope are not enough: the rounds must also have used up the spare area of the disk."""
    source = disk(fresh=90_000, used=20_000, after=5, settle=2.0, noise=0.01)
    found = first_steady([next(source) for _ in range(12)])
    assert found is not None
    assert found.last == 4


def test_a_disk_that_falls_without_end_is_never_steady() -> None:
    assert first_steady([1e5 * 0.9**at for at in range(40)]) is None


def test_noise_alone_hardly_ever_passes_for_a_departure() -> None:
    alarms = 0
    for number in range(3000):
        draw = RNG.standard_normal if number % 2 else lambda size: RNG.standard_t(3, size)
        alarms += departure(100 * np.exp(0.10 * draw(40))) is not None
    assert alarms <= 10


@pytest.mark.parametrize("trials", [20, 40, 80])
def test_an_arm_that_drifts_or_falls_is_seen(trials: int) -> None:
    noise = 1 + 0.02 * RNG.standard_normal(trials)
    drift = departure(np.linspace(115, 85, trials) * noise)
    assert drift is not None
    assert drift.slope < -0.10
    step = np.where(np.arange(trials) < trials // 2, 100.0, 60.0)
    assert departure(step * noise) is not None
    assert departure(step) is not None, "also without any noise"
    assert departure(100 * noise) is None


def test_fewer_than_ten_trials_say_nothing_of_a_departure() -> None:
    assert departure([100.0, 100.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0]) is None
