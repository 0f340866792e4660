"""Where a noisy level steps up: the posterior, what a run is expected to tell, and what cannot be told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iodelta.stats.bisection import Evidence, capacity, step_between


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


@pytest.mark.parametrize(("ratio", "runs"), [(0.5, 228), (1.0, 62), (2.0, 20.5), (3.0, 13)])
def test_the_information_floor_of_a_thousand_commits(ratio: float, runs: float) -> None:
    """log2(999) bits over what one run tells when both levels are known and equally likely."""
    assert math.log2(999) / capacity(ratio) == pytest.approx(runs, rel=0.02)
