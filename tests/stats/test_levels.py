"""Levels of points with known errors: against equations, closed forms, and processes of known long-run variance."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from iodelta.stats import levels

ONE = np.zeros(40, dtype=int)


def errors(rng: np.random.Generator, points: int) -> levels.Floats:
    """As of experiments of 8 to 24 blocks with 1.4 % noise."""
    return np.asarray(0.014 / np.sqrt(rng.integers(8, 25, points)))


@pytest.mark.parametrize("seed", range(5))
def test_the_scatter_between_nights_solves_its_equation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    se = errors(rng, 40)
    y = 0.01 * rng.standard_normal(40) + se * rng.standard_normal(40)

    def excess(tau: float) -> float:
        variances = se**2 + tau**2
        mean = np.average(y, weights=1 / variances)
        return float(np.sum((y - mean) ** 2 / variances)) - 39

    assert levels.between(y, se, ONE) == pytest.approx(scipy.optimize.brentq(excess, 1e-4, 0.1), rel=1e-6)


def test_errors_that_explain_all_scatter_leave_none_between_nights() -> None:
    assert levels.between([0.0, 0.001, -0.001], [0.01] * 3, [0, 0, 0]) == 0.0
    assert levels.between([0.0, 1.0], [0.01] * 2, [0, 1]) == 0.0
    assert levels.between([2.0, 2.0, 2.0], [0.0] * 3, [0, 0, 0]) == 0.0


def test_the_robust_scatter_is_right_for_normal_nights_and_bounded_under_outliers() -> None:
    rng = np.random.default_rng(2)
    se = errors(rng, 4000)
    y = 0.01 * rng.standard_normal(4000) + se * rng.standard_normal(4000)
    assert levels.robust_between(y, se) == pytest.approx(0.01, rel=0.05)
    y[:800] += 1.0
    assert levels.robust_between(y, se) < 0.03


def test_a_lone_outlier_is_drawn_in_and_two_in_a_row_are_not() -> None:
    y = np.zeros(12)
    y[4], y[8], y[9] = 1.0, 1.0, 1.0
    found = levels.clipped(y, np.full(12, 0.1), 0.0, np.zeros(12, dtype=int))
    assert found.lone == (4,)
    assert found.values[4] == pytest.approx(0.3)
    assert found.values[8:10] == (1.0, 1.0)


@pytest.mark.parametrize(("phi", "truth"), [(0.0, 1.0), (0.3, 1.3 / 0.7), (0.6, 4.0), (0.9, 19.0)])
def test_inflation_is_that_of_an_autoregression(phi: float, truth: float) -> None:
    rng = np.random.default_rng(5)
    y = lfilter([1.0], [1.0, -phi], rng.standard_normal(20_000))[100:]
    none = np.zeros(len(y))
    assert levels.inflation(y, none, float(np.std(y)), none) == pytest.approx(truth, rel=0.15)


def test_inflation_does_not_see_steps_between_segments() -> None:
    rng = np.random.default_rng(6)
    which = np.repeat([0, 1], 500)
    y = rng.standard_normal(1000) + 10.0 * which
    assert levels.inflation(y, np.ones(1000), 0.0, which) < 1.4
    assert levels.inflation(y, np.ones(1000), 0.0, np.zeros(1000)) > 10.0


@pytest.mark.parametrize(("z", "spare"), [(1.0, 3.0), (2.5, 10.0), (4.5, 7.0), (3.0, 1000.0)])
def test_a_deviate_of_few_points_is_as_rare_as_a_normal_one(z: float, spare: float) -> None:
    theirs = scipy.stats.norm.isf(scipy.stats.t.sf(z, spare))
    assert levels.as_normal(z, spare) == pytest.approx(theirs)
    assert levels.as_normal(z, 0.5) == 0.0


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.floats(-100, 100), st.floats(1e-3, 100))
def test_scatter_moves_with_the_unit_and_not_with_the_origin(values: list[float], shift: float, scale: float) -> None:
    y, se = np.asarray(values), np.full(len(values), 0.5)
    which = np.arange(len(y)) // 10
    first = levels.between(y, se, which)
    assert levels.between(scale * y + shift, scale * se, which) == pytest.approx(
        scale * first, rel=1e-3, abs=1e-3 * scale
    )


@pytest.mark.parametrize(
    ("values", "given_errors"), [([1.0], []), ([np.nan], [1.0]), ([1.0], [np.inf]), ([1.0], [-1.0]), ([[1.0]], [[1.0]])]
)
def test_what_is_no_series_is_refused(values: object, given_errors: object) -> None:
    with pytest.raises(ValueError, match="a series needs"):
        levels.checked(np.asarray(values), np.asarray(given_errors))
    with pytest.raises(ValueError, match="a level needs"):
        levels.level([], [], 0.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20), st.integers(1, 40))
def test_steadied_errors_are_never_smaller_and_equal_ones_stay(errors: list[float], blocks: int) -> None:
    steadied = levels.steadied(errors, [blocks] * len(errors))
    assert np.all(steadied >= np.asarray(errors))
    assert np.all(steadied >= np.median(errors) / np.sqrt(blocks) * (1 - 1e-9))
    assert levels.steadied([0.25] * 5, [blocks] * 5).tolist() == pytest.approx([0.25] * 5)
