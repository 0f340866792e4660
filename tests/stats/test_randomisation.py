"""The null made by the randomiser, the total change, stalls and corrected sizes, each against an oracle."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from iodelta.stats.guards import fisher_exact
from iodelta.stats.replay import patterns, share_of
from iodelta.stats.sequential import median_unbiased, nominal_tails, schedule
from iodelta.stats.speeds import within_speed
from iodelta.stats.stalls import excluded, stalled_trials, trials_needed
from iodelta.stats.total import Arms, Replay, bounds, log_total
from iodelta.verdict import LOOKS

RNG = np.random.default_rng(11)


def by_hand(old: np.ndarray, new: np.ndarray, old_ios: np.ndarray, new_ios: np.ndarray) -> tuple[float, float]:
    """The log-ratio of two means over I/Os and its linearised error, written out."""
    n = len(old)
    value = math.log((new * new_ios).sum() / new_ios.sum()) - math.log((old * old_ios).sum() / old_ios.sum())
    parts = [(x * w) / (x * w).mean() - w / w.mean() for x, w in ((new, new_ios), (old, old_ios))]
    influence = parts[0] - parts[1]
    return value, math.sqrt((influence**2).sum() / (n * (n - 1)))


def test_every_replay_of_a_total_is_the_total_of_swapped_arms() -> None:
    """All 2^6 ways to swap the arms of six blocks, latencies weighted by their I/Os."""
    old, new = RNG.lognormal(0, 0.1, 6), RNG.lognormal(0.1, 0.3, 6)
    old_ios, new_ios = RNG.uniform(50, 100, 6), RNG.uniform(10, 100, 6)
    arms = Arms(*(column[None, :] for column in (old * old_ios, new * new_ios, old_ios, new_ios)))
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=6)))
    t = Replay(arms, 0, signs).centre
    for row, sign in enumerate(signs):
        kept = sign > 0
        value, error = by_hand(
            np.where(kept, old, new),
            np.where(kept, new, old),
            np.where(kept, old_ios, new_ios),
            np.where(kept, new_ios, old_ios),
        )
        assert t[row] == pytest.approx(value / error, rel=1e-9)
    assert log_total(arms)[0][0] == pytest.approx(by_hand(old, new, old_ios, new_ios)[0])


def test_the_interval_of_a_total_covers_the_ratio_of_means() -> None:
    """Arms that stall in a fifth of their trials: the truth is the ratio of expectations."""
    signs, covered, repetitions, blocks = patterns(tuple(range(30)), 3), 0, 150, 30
    truth = math.log(1.0 - 0.2 * 0.5)
    for _ in range(repetitions):
        old = 100 * RNG.lognormal(0, 0.02, (1, blocks))
        new = 100 * RNG.lognormal(0, 0.02, (1, blocks)) * np.where(RNG.random((1, blocks)) < 0.2, 0.5, 1.0)
        ones = np.ones((1, blocks))
        low, high = bounds(Arms(old, new, ones, ones), signs, 0.025, exact=False)
        covered += low <= truth <= high
    assert covered / repetitions >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / repetitions)


def test_blocks_that_share_a_draw_change_sign_together() -> None:
    signs = patterns((0, 0, 1, 1, 2), 1)
    assert len(signs) == 8
    assert (signs[:, 0] == signs[:, 1]).all()
    assert (signs[:, 2] == signs[:, 3]).all()
    assert (signs == -signs[::-1]).all()
    many = patterns(tuple(range(40)), 1)
    assert (many == -many[::-1]).all()
    assert np.abs(many.mean(axis=0)).max() == 0.0


def test_a_replayed_p_value_is_that_of_scipy() -> None:
    d = RNG.normal(0.3, 1.0, 10)
    signs = patterns(tuple(range(10)), 0)
    p = share_of((signs @ d)[:, None], np.array([d.sum()]), exact=True)[0]
    oracle = stats.permutation_test((d,), np.sum, permutation_type="samples", alternative="greater", n_resamples=np.inf)
    assert p == pytest.approx(oracle.pvalue)


def test_two_speeds_are_taken_out_and_a_change_is_not() -> None:
    speed = np.where(RNG.random(160) < 0.5, 0.0, -0.35).reshape(2, 80)
    old, new = (speed[arm] + 0.02 * RNG.standard_normal(80) for arm in (0, 1))
    added, two = within_speed(old[None, :], (new - 0.1)[None, :])
    assert bool(two[0])
    assert np.median(new - 0.1 - old - added[0]) == pytest.approx(-0.1, abs=0.01)
    alone = within_speed((0.02 * RNG.standard_normal(80))[None, :], (0.02 * RNG.standard_normal(80) - 0.35)[None, :])
    assert not alone[1][0]
    drift = np.linspace(0, -0.9, 160) + 0.02 * RNG.standard_normal(160)
    assert not within_speed(drift[None, 0::2], drift[None, 1::2])[1][0]


def test_the_rule_of_three() -> None:
    assert trials_needed(0.1) == 29
    assert trials_needed(0.2) == 14
    for trials in (20, 29, 80, 500):
        assert excluded(0, trials) == pytest.approx(1 - 0.05 ** (1 / trials))
        assert excluded(0, trials) == pytest.approx(3 / trials, rel=0.08)
    assert excluded(2, 40) == pytest.approx(stats.beta.ppf(0.995, 3, 38))
    assert excluded(2, 40, 0.95) == pytest.approx(stats.beta.ppf(0.95, 3, 38))


@pytest.mark.parametrize(("stalled", "share"), [(1, 0.1), (2, 0.1), (5, 0.1), (1, 0.2), (3, 0.01)])
def test_every_stall_seen_asks_for_more_trials(stalled: int, share: float) -> None:
    """So many stalls or fewer happen in at most 1 % of runs of a variant that stalls in ``share`` of its trials, two in
    half of that, and so on."""
    needed, most = trials_needed(share, stalled=stalled), 0.01 / stalled
    assert stats.binom.cdf(stalled, needed, share) <= most < stats.binom.cdf(stalled, needed - 1, share)
    assert trials_needed(0.1, stalled=1) == 64


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.5])
@pytest.mark.parametrize("looks", [LOOKS, range(1, 301)])
def test_all_looks_together_seldom_exclude_a_share_of_stalls_by_mistake(share: float, looks: Sequence[int]) -> None:
    """The chance that a variant that stalls in this share of its trials, one by one, has few enough stalls at any
    look: counted exactly, run by run."""
    least = [trials_needed(share, stalled=stalled) for stalled in range(150)]
    chances, excluded_by_mistake = {0: 1.0}, 0.0
    for trial in range(1, looks[-1] + 1):
        after: dict[int, float] = {}
        for stalled, chance in chances.items():
            after[stalled] = after.get(stalled, 0.0) + (1 - share) * chance
            after[stalled + 1] = after.get(stalled + 1, 0.0) + share * chance
        chances = after
        if trial in looks:
            enough = [stalled for stalled in chances if stalled < len(least) and trial >= least[stalled]]
            excluded_by_mistake += sum(chances.pop(stalled) for stalled in enough)
    assert 0.005 < excluded_by_mistake < 0.06


def test_a_stall_is_named_and_a_drift_is_not() -> None:
    worse = np.linspace(0, 0.4, 60) + 0.01 * RNG.standard_normal(60)
    assert stalled_trials(worse) == ()
    worse[[7, 31]] += 0.5
    assert stalled_trials(worse) == (7, 31)


def test_fishers_test_is_that_of_scipy() -> None:
    for first, second in ((14, 2), (0, 0), (5, 5), (1, 8), (40, 39)):
        table = [[first, 40 - first], [second, 40 - second]]
        assert fisher_exact(first, 40, second, 40) == pytest.approx(stats.fisher_exact(table).pvalue)
    with pytest.raises(ValueError, match="between 0"):
        fisher_exact(5, 4, 0, 4)


@pytest.mark.parametrize("cv", [0.01, 0.02, 0.05, 0.10])
def test_a_corrected_change_is_too_large_as_often_as_too_small(cv: float) -> None:
    """Normal noise, ten looks, a change of one margin: by stagewise ordering half of the runs say less than the truth,
    whatever look they stopped at."""
    plan = schedule((9, 12, 16, 22, 26, 32, 40, 50, 64, 80), reserve=0.1)
    tails, blocks = nominal_tails(plan, 0.025), np.array(plan.blocks)
    bounds_of = -ndtri(np.array(tails))
    drift, rng = math.log1p(0.02) / (cv * math.sqrt(2)), np.random.default_rng(5)
    z = np.cumsum(drift + rng.standard_normal((80, 80)), axis=1)[:, blocks - 1] / np.sqrt(blocks)
    sizes = []
    for row in z:
        stops = np.flatnonzero(np.abs(row) >= bounds_of)
        at = int(stops[0]) if len(stops) else len(blocks) - 1
        found = median_unbiased(float(row[at]), plan.blocks[: at + 1], tails[: at + 1])
        sizes.append(found / math.sqrt(blocks[at]) / drift)
    assert 0.25 <= np.mean(np.array(sizes) > 1.0) <= 0.75


def test_no_bound_is_given_at_a_level_that_the_patterns_cannot_reach() -> None:
    """Six blocks have 64 patterns: a side of 1 % has no bound, however far out rounding makes a test fail; 2 % has."""
    old, new = RNG.lognormal(0, 0.02, (1, 6)), RNG.lognormal(0, 0.02, (1, 6))
    arms, signs = Arms(old, new, np.ones((1, 6)), np.ones((1, 6))), patterns(tuple(range(6)), 1)
    assert bounds(arms, signs, 0.01, exact=True) == (-math.inf, math.inf)
    low, high = bounds(arms, signs, 0.02, exact=True)
    assert -1.0 < low < float(log_total(arms)[0][0]) < high < 1.0
