"""Where a noisy level steps up: the posterior, what a run is expected to tell, and what cannot be told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iodelta.stats.bisection import Evidence, capacity, even_odds, pooled, step_between


def brute_force(runs: list[tuple[int, float]], positions: int) -> np.ndarray:
    """The posterior without drift by its textbook formula: two unknown means, an unknown common variance."""
    found = []
    for c in range(1, positions):
        low = np.array([y for p, y in runs if p < c])
        high = np.array([y for p, y in runs if p >= c])
        if not len(low) or not len(high):
            found.append(-math.inf)
            continue
        rss = float(((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum())
        found.append(-0.5 * math.log(len(low) * len(high)) - (len(runs) - 2) / 2 * math.log(rss))
    weight = np.exp(np.array(found) - max(found))
    return np.asarray(weight / weight.sum())


def spread_out(evidence: Evidence) -> np.ndarray:
    """Probability of every single candidate."""
    below = evidence.posterior().at_or_below(np.arange(evidence.positions), evidence.prior)
    return np.diff(below)


def history(seed: int, positions: int = 30, culprit: int = 12, runs: int = 40) -> list[tuple[int, float]]:
    rng = np.random.default_rng(seed)
    places = [0, positions - 1, *rng.integers(0, positions, runs).tolist()]
    return [(place, float(1.5 * (place >= culprit) + rng.standard_normal())) for place in places]


def told(runs: list[tuple[int, float]], positions: int = 30, **options: float) -> Evidence:
    evidence = Evidence(np.ones(positions - 1), **options)
    for time, (place, value) in enumerate(runs):
        evidence.add(place, value, time)
    return evidence


def test_without_drift_the_posterior_is_that_of_the_textbook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iodelta.stats.bisection.WALKS", (0.0,))
    for seed in range(5):
        runs = history(seed)
        assert spread_out(told(runs, least=-math.inf)) == pytest.approx(brute_force(runs, 30), abs=1e-9)


def test_the_posterior_does_not_depend_on_level_or_unit() -> None:
    runs = history(1)
    moved = [(place, 7.0 + 0.01 * value) for place, value in runs]
    assert spread_out(told(moved)) == pytest.approx(spread_out(told(runs)), abs=1e-6)


def test_items_measured_no_further_apart_share_their_probability_by_the_prior() -> None:
    prior = even_odds(30, favoured=[3])
    evidence = Evidence(prior)
    for time, (place, value) in enumerate([(0, 0.0), (29, 1.0), (10, 0.1), (0, 0.1), (29, 1.1), (10, 0.0)]):
        evidence.add(place, value, time)
    share = spread_out(evidence)
    assert share[2] == pytest.approx(3 * share[3])  # candidates 3 and 4 lie between the same two measured items
    assert share[10:].sum() > 0.99


def test_drift_hides_a_step_from_raw_values_but_not_from_neighbouring_runs() -> None:
    """A level that falls by 3 while the search runs from bad to good would look like no step at all."""
    rng = np.random.default_rng(4)
    runs = [
        (0 if n % 2 else 9, (0.0 if n % 2 else 1.0) - 3.0 * n / 60 + 0.2 * rng.standard_normal()) for n in range(60)
    ]
    low = [(float(n), y) for n, (p, y) in enumerate(runs) if p == 0]
    high = [(float(n), y) for n, (p, y) in enumerate(runs) if p == 9]
    step = step_between(low, high)
    assert step is not None
    assert abs(step.size - 1.0) < 4 * step.error
    assert step.error < 0.15
    assert told(runs, 10).posterior().drifts


def test_a_steady_machine_is_not_said_to_drift() -> None:
    """At most 5 % of 120 steady series; more than 12 have a probability below 0.01. The likeliest walks in 30 %."""
    assert sum(told(history(seed, runs=60)).posterior().drifts for seed in range(120)) <= 12


def test_a_level_that_walks_is_said_to_drift() -> None:
    drifting = 0
    for seed in range(20):
        walk = np.cumsum(0.5 * np.random.default_rng(1000 + seed).standard_normal(62))
        steady = history(seed, runs=60)
        runs = [(place, value + float(level)) for (place, value), level in zip(steady, walk, strict=True)]
        drifting += told(runs).posterior().drifts
    assert drifting >= 18


def test_the_interval_of_a_step_covers_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(300):
        noise = rng.standard_normal(24)
        runs = [(float(t), (t % 2) * 1.0 + noise[t]) for t in range(24)]
        step = step_between([r for r in runs if r[0] % 2 == 0], [r for r in runs if r[0] % 2 == 1])
        assert step is not None
        hits += abs(step.size - 1.0) <= 2.07 * step.error
    assert 0.91 <= hits / 300 <= 0.99


def test_a_run_is_worth_most_where_the_change_may_lie_and_nothing_where_it_cannot() -> None:
    runs = [(0, 0.0), (29, 3.0)] * 6 + [(12, 0.1), (20, 3.1)] * 3
    rng = np.random.default_rng(2)
    evidence = told([(place, value + 0.3 * float(rng.standard_normal())) for place, value in runs])
    gain = evidence.information(evidence.posterior(), np.arange(30), 18.0)
    assert 14 <= int(np.argmax(gain)) <= 17
    assert gain[5] < 0.05 * gain.max()
    assert gain[25] < 0.05 * gain.max()
    assert gain.max() <= 1.0


def test_with_the_levels_unknown_an_end_is_worth_a_run() -> None:
    """Median sampling alone gets stuck here; information counts that the level of good rests on one run."""
    evidence = told([(0, 0.0), (29, 1.0), *[(15, 0.5)] * 8, (15, 0.6), (15, 0.4)])
    gain = evidence.information(evidence.posterior(), np.array([0, 15, 29]), 12.0)
    assert max(gain[0], gain[2]) > gain[1]


def test_items_that_cannot_be_tested_are_reported_as_a_range() -> None:
    rng = np.random.default_rng(3)
    runs = [(p, 2.0 * (p >= 12) + 0.1 * float(rng.standard_normal())) for p in [0, 29, 0, 29, 10, 15, 10, 15, 10, 15]]
    evidence = told(runs)
    testable = np.ones(30, dtype=bool)
    testable[11:15] = False
    groups = pooled(evidence.posterior(), evidence.prior, testable)
    assert sum(share for _, _, share in groups) == pytest.approx(1.0)
    first, last, share = max(groups, key=lambda group: group[2])
    assert (first, last) == (11, 15)
    assert share > 0.99


def test_two_equal_runs_do_not_prove_that_there_is_no_noise() -> None:
    runs = [(0, 1.0), (29, 1.01), (0, 1.0), (29, 1.01), (10, 1.004)]
    exact, doubtful = told(runs, floor=1e-5), told(runs, floor=0.01)
    assert max(pooled(exact.posterior(), exact.prior, np.ones(30, dtype=bool)))[2] < 0.9
    assert spread_out(doubtful).max() < 0.1


@pytest.mark.parametrize(("ratio", "runs"), [(0.5, 228), (1.0, 62), (2.0, 20.5), (3.0, 13)])
def test_the_information_floor_of_a_thousand_commits(ratio: float, runs: float) -> None:
    """log2(999) bits over what one run tells when both levels are known and equally likely."""
    assert math.log2(999) / capacity(ratio) == pytest.approx(runs, rel=0.02)
