"""The benchmark of decision rules: peers' rules do what was published of them, and the comparison comes out as claimed.

Shares at fixed runs are those of the peers' document, section 5; iodelta's demand is a third of the best peer's runs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, ttest_ind, ttest_ind_from_stats

from benchmarks.verdicts import noise, peers, race

RULES = {rule.name: rule for rule in peers.RULES}


def test_the_tests_among_the_rules_are_scipys() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(1, 0.02, (50, 12)), rng.normal(1.01, 0.03, (50, 12))
    t, u = (rule(a, b, rng) for rule in (peers.welch, peers.benchstat))
    expected = ttest_ind(b, a, axis=1, equal_var=False).pvalue
    assert 2 * (1 - np.vectorize(_phi)(np.abs(t))) == pytest.approx(expected, abs=1e-9)
    ranks = mannwhitneyu(b, a, axis=1, method="asymptotic", use_continuity=True).pvalue
    assert 2 * (1 - np.vectorize(_phi)(np.abs(u))) == pytest.approx(ranks, abs=1e-9)


def test_otavas_split_is_the_one_of_largest_energy_and_its_test_uses_population_deviations() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(1, 0.02, (1, 10)), rng.normal(1.05, 0.02, (1, 10))
    history = np.concatenate([a[0], b[0]])

    def energy(at: int) -> float:
        x, y = history[:at], history[at:]
        apart = [np.abs(np.subtract.outer(p, q)).mean() for p, q in ((x, y), (x, x), (y, y))]
        return float(at * (20 - at) / 20 * (2 * apart[0] - apart[1] - apart[2]))

    split = max(range(2, 19), key=energy)
    x, y = history[:split], history[split:]
    p = ttest_ind_from_stats(y.mean(), y.std(), len(y), x.mean(), x.std(), len(x)).pvalue
    assert 2 * (1 - _phi(float(np.abs(peers.otava(a, b, rng)[0])))) == pytest.approx(float(p), rel=1e-3)


def _phi(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2))


@pytest.mark.night
@pytest.mark.parametrize("name", ["white", "autocorrelated", "linear drift", "sticky bimodal"])
def test_iodelta_needs_a_third_of_the_best_peers_runs_and_no_more_on_white_noise(name: str) -> None:
    heat = race.race(name, noise.models()[name], seed=11, reps=30, cv=0.02)
    assert heat.own.alarms <= 0.07
    assert heat.own.found[1] >= 0.95
    assert heat.own.typical / heat.best("sure").sure <= (1.0 if name == "white" else 1 / 3)
