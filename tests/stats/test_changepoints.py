"""Steps in series: exact against every partition there is, causal, and with false candidates and ranges as stated."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import scaled

from iodelta.stats import changepoints
from iodelta.stats.levels import Floats

VALUES = st.floats(-5, 5).map(lambda value: round(value, 2))
WEIGHTS = st.sampled_from([0.25, 1.0, 3.0])


def nights(seed: int, points: int, sd: float = 0.0) -> tuple[Floats, Floats]:
    """A quiet series: its values and their errors; ``sd`` between nights."""
    rng = np.random.default_rng(seed)
    se = 0.014 / np.sqrt(rng.integers(8, 25, points))
    return np.asarray(se * rng.standard_normal(points) + sd * rng.standard_normal(points)), np.asarray(se)


def cost(y: Floats, w: Floats, starts: tuple[int, ...], penalty: float) -> float:
    """Weighted squares of a partition, straight from the definition."""
    bounds = [*starts, len(y)]
    total = penalty * (len(starts) - 1)
    for first, last in pairwise(bounds):
        mean = np.average(y[first:last], weights=w[first:last])
        total += float(np.sum(w[first:last] * (y[first:last] - mean) ** 2))
    return total


@given(st.lists(st.tuples(VALUES, WEIGHTS), min_size=1, max_size=9), st.sampled_from([0.0, 0.5, 2.0, 20.0]))
@settings(max_examples=scaled(150), deadline=None)
def test_a_partition_is_the_best_of_all(points: list[tuple[float, float]], penalty: float) -> None:
    y, w = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    inner = range(1, len(y))
    choices = [(0, *cut) for count in range(len(y)) for cut in combinations(inner, count)]
    best = min(cost(y, w, choice, penalty) for choice in choices)
    assert cost(y, w, changepoints.partition(y, w, penalty), penalty) == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_pruning_leaves_out_nothing(seed: int) -> None:
    """Against optimal partitioning without pruning, with sums taken anew for every segment."""
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.random(80) < 0.1) * 1.5 + rng.standard_normal(80)
    w = rng.choice([0.5, 1.0, 2.0], 80)
    best = [-8.0]
    for end in range(1, 81):
        totals = [best[start] + 8.0 + cost(y[start:end], w[start:end], (0,), 8.0) for start in range(end)]
        best.append(min(totals))
    assert cost(y, w, changepoints.partition(y, w, 8.0), 8.0) == pytest.approx(best[-1], abs=1e-8)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_series_of_few_points_has_no_step(count: int) -> None:
    y, se = nights(1, count)
    assert changepoints.online(y, se) == ()
    assert changepoints.segments(y, se).steps == ()
    assert len(changepoints.segments(y, se).levels) == min(count, 1)


def test_equal_counts_without_errors_have_no_step_and_a_change_of_them_is_one() -> None:
    y, none = np.zeros(40), np.zeros(40)
    assert changepoints.online(y, none) == changepoints.segments(y, none).steps == ()
    y[25:] = 1e-3
    (step,) = changepoints.segments(y, none).steps
    assert (step.at, step.low, step.high) == (25, 25, 25)
    assert [found.at for found in changepoints.online(y, none)] == [25]


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.sampled_from([0.0, 0.01, 0.03]))
@settings(max_examples=scaled(15), deadline=None)
def test_a_candidate_knows_only_what_was_there_when_it_was_found(seed: int, more: int, size: float) -> None:
    y, se = nights(seed, 80, 0.003)
    y[45:] += size
    whole = changepoints.online(y, se, threshold=changepoints.CANDIDATE)
    part = changepoints.online(y[: 20 + more], se[: 20 + more], threshold=changepoints.CANDIDATE)
    assert part == tuple(step for step in whole if step.found < 20 + more)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 100.0]), st.floats(-1, 1))
@settings(max_examples=scaled(15), deadline=None)
def test_steps_turn_scale_and_move_with_the_series(seed: int, scale: float, shift: float) -> None:
    y, se = nights(seed, 60, 0.003)
    y[40:] += 0.02
    first = changepoints.segments(y, se).steps
    for factor in (scale, -scale):
        other = changepoints.segments(factor * (y + shift), scale * se).steps
        assert [step.at for step in other] == [step.at for step in first]
        assert [step.size for step in other] == pytest.approx([factor * step.size for step in first], rel=1e-5)


def test_a_lone_outlier_at_the_end_is_no_candidate_until_another_follows() -> None:
    y, se = nights(7, 42)
    y[40:] += 0.1
    assert changepoints.online(y[:41], se[:41], threshold=changepoints.CANDIDATE) == ()
    (step,) = changepoints.online(y, se)
    assert (step.at, step.found) == (40, 41)


def test_what_went_away_is_an_incident_and_its_level_is_one() -> None:
    y, se = nights(8, 60)
    y[30:33] += 0.05
    found = changepoints.segments(y, se)
    assert found.steps == ()
    assert [(one.at, one.end) for one in found.incidents] == [(30, 33)]
    assert found.incidents[0].size == pytest.approx(0.05, abs=0.01)
    assert found.levels[0].points == 57


def test_what_lasts_longer_is_two_steps() -> None:
    y, se = nights(8, 60)
    y[30:40] += 0.05
    found = changepoints.segments(y, se)
    assert [step.at for step in found.steps] == [30, 40]
    assert found.incidents == ()


@pytest.mark.parametrize("size", [0.01, 0.02])
def test_the_range_of_a_step_holds_its_place(size: float) -> None:
    held, series = [], scaled(150, 30)
    for seed in range(series):
        y, se = nights(seed, 60)
        y[40:] += size
        held += [step.low <= 40 <= step.high for step in changepoints.segments(y, se).steps if step.at > 30]
    assert len(held) >= 0.96 * series
    assert np.mean(held) >= 0.95


def test_steps_are_found_soon_and_a_small_one_with_patience() -> None:
    delays: dict[float, list[int]] = {size: [] for size in (0.01, 0.02)}
    for size, seen in delays.items():
        for seed in range(40):
            y, se = nights(seed, 80)
            y[60:] += size
            found = changepoints.online(y, se, threshold=changepoints.CANDIDATE)
            seen.append(min((step.found - 59 for step in found if step.found >= 60), default=99))
    assert np.median(delays[0.02]) <= 2
    assert np.median(delays[0.01]) <= 6
    assert max(delays[0.02]) <= 20


@pytest.mark.parametrize("sd", [0.0, 0.01])
def test_quiet_series_have_few_candidates(sd: float) -> None:
    """200 points each: at most 5 candidates and 0.5 reports in 1000 (measured over more in benchmarks/history)."""
    loose, sure, series = 0, 0, scaled(50)
    for seed in range(series):
        y, se = nights(1000 + seed, 200, sd)
        loose += len(changepoints.online(y, se, threshold=changepoints.CANDIDATE))
        sure += len(changepoints.online(y, se))
    assert loose <= series
    assert sure <= max(1, series // 10)


def test_a_night_between_two_steps_is_in_the_range() -> None:
    """It was drawn in, so it is neither surely before nor surely after."""
    noise = 0.002 * np.random.default_rng(7).standard_normal(40)
    nights = np.arange(40)
    worse = 0.03 * (nights >= 20) + 0.03 * (nights >= 21)
    steps = changepoints.segments(noise + worse, np.full(40, 0.002)).steps
    held = {place for step in steps for place in range(step.low, step.high + 1)}
    assert {20, 21} <= held


def correlated(seed: int, points: int, phi: float) -> Floats:
    """AR(1) of unit variance, from its definition."""
    noise = np.random.default_rng([seed, points]).standard_normal(points)
    y = [noise[0]]
    for shock in noise[1:]:
        y.append(phi * y[-1] + np.sqrt(1 - phi**2) * shock)
    return np.array(y)


@pytest.mark.parametrize(("z", "least"), [(0.0, 0.0), (9.0, 0.85), (11.0, 0.98)])
def test_a_clear_step_in_the_middle_is_found_however_much_nights_resemble_each_other(z: float, least: float) -> None:
    """Steps of ``z`` true standard errors among as many independent nights: the same power at every correlation. What
    a placebo says of the resemblance is exact here."""
    found, others = [], 0
    for phi in (0.0, 0.3, 0.6, 0.8, 0.9):
        inflation = (1 + phi) / (1 - phi)
        points = int(max(8.0 * inflation, 40.0))
        for seed in range(30):
            y = correlated(seed, points, phi)
            y[points // 2 :] += z * np.sqrt(4 * inflation / points)
            steps = changepoints.segments(0.01 * y, np.full(points, 1e-4), inflation=inflation).steps
            near = [step for step in steps if z and step.low - 3 <= points // 2 <= step.high + 3]
            found.append(bool(near))
            others += len(steps) - len(near)
    assert others <= 1
    assert np.mean(found) >= least


@pytest.mark.parametrize("phi", [0.6, 0.8, 0.9])
def test_a_step_that_dwarfs_all_scatter_is_found_in_sixty_nights(phi: float) -> None:
    """Steps of 12 true standard errors (6 to 14 sd of a night). Sixty nights of the strongest resemblance are as many
    as three independent ones: their means say little of the scatter, what is new in each night says much."""
    inflation = (1 + phi) / (1 - phi)
    found = []
    for seed in range(30):
        y = correlated(seed, 60, phi) + 12.0 * np.sqrt(4 * inflation / 60) * (np.arange(60) >= 30)
        steps = changepoints.segments(0.01 * y, np.full(60, 1e-4), inflation=inflation).steps
        found.append(any(step.low - 3 <= 30 <= step.high + 3 for step in steps))
    assert np.mean(found) >= 0.85


@pytest.mark.parametrize("first", [0.0, 0.05])
def test_the_newest_nights_have_the_candidates_that_all_nights_have(first: float) -> None:
    """Where the levels before them are known, also with a step there, the same new step is found in the same night."""
    same, found = 0, 0
    for seed in range(20):
        y, se = nights(seed, 110, 0.003)
        y += first * (np.arange(110) >= 50) + 0.02 * (np.arange(110) >= 100)
        starts = changepoints.segments(y[:99], se[:99]).starts
        whole = {step.found for step in changepoints.online(y, se) if step.found >= 99}
        newest = {step.found for step in changepoints.online(y, se, starts=starts, since=99)}
        found += bool(whole)
        same += whole == newest
    assert found >= 18
    assert same >= 18


@pytest.mark.parametrize("slope", [0.005, -0.01])
def test_a_drift_has_no_step_against_it_and_hides_none(slope: float) -> None:
    """What stands out of a slow drift goes its way; a step on it is in its range."""
    held = 0
    for seed in range(12):
        y, se = nights(seed, 200, 0.005)
        drifting = y + slope * np.arange(200) / 200
        for step in changepoints.segments(drifting, se).steps:
            assert np.sign(step.size) == np.sign(slope)
        steps = changepoints.segments(drifting + 0.03 * (np.arange(200) >= 100), se).steps
        held += any(step.low <= 100 <= step.high for step in steps)
    assert held == 12
