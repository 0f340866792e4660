"""The mean of hosts' own changes: against scipy, against all orders gone through by hand, and against simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from iodelta.stats.hosts import (
    Replays,
    places_of,
    smallest_t,
    total_mean,
    total_tails,
    typical_mean,
    typical_tails,
)
from iodelta.stats.replay import patterns
from iodelta.stats.total import Arms

Floats = np.ndarray


def by_turns(hosts: int, blocks: int) -> list[str]:
    return [f"host {block // 2 % hosts}" for block in range(blocks)]


def arms(d: Floats) -> Arms:
    """Rates of 1 and exp(-d): the new arm is worse by d."""
    ones = np.ones((1, len(d)))
    return Arms(np.exp(-d)[None, :], ones, ones, ones)


def test_hosts_that_differ_much_are_judged_by_a_t_test_of_their_own_changes() -> None:
    rng = np.random.default_rng(1)
    names = by_turns(5, 60)
    own = {f"host {n}": change for n, change in enumerate([0.01, 0.09, 0.04, 0.02, 0.07])}
    d = np.array([own[name] for name in names]) + 0.002 * rng.standard_normal(60)
    found = typical_mean(d[None, :], places_of(names))
    changes = [scipy.stats.trim_mean(d[[one == name for one in names]], 0.25) for name in own]
    theirs = scipy.stats.ttest_1samp(changes, 0.0)
    assert found.value[0] == pytest.approx(np.mean(changes))
    assert found.t[0] == pytest.approx(theirs.statistic)
    interval = theirs.confidence_interval(0.9)
    estimate = found.estimate(0.9, 60)
    assert (estimate.low, estimate.high) == pytest.approx((interval.low, interval.high))


def test_hosts_that_happen_to_agree_say_no_more_than_their_blocks() -> None:
    """Two hosts with the same mean: the error is that of the blocks, on one degree of freedom."""
    d = np.array([0.01, 0.01, 0.01, 0.01, 0.03, 0.03, 0.03, 0.03, 0.01, 0.01, 0.01, 0.01, 0.03, 0.03, 0.03, 0.03])
    found = typical_mean(d[None, :], places_of(["a", "a", "b", "b"] * 4))
    own = math.sqrt(8 / 7) * 0.01 / ((1 - 2 * 0.25) * math.sqrt(8))  # winsorised sd over the share kept
    assert found.error[0] == pytest.approx(own / math.sqrt(2), rel=1e-6)
    assert smallest_t(2, 0.025) == pytest.approx(12.706, rel=1e-4)


def test_a_host_counts_from_its_fourth_block_and_one_host_is_no_mean() -> None:
    assert [len(rows) for rows in places_of(by_turns(3, 16))] == [6, 6, 4]
    assert [len(rows) for rows in places_of(by_turns(3, 12))] == [4, 4, 4]
    assert [len(rows) for rows in places_of(by_turns(3, 10))] == [4, 4]
    assert places_of(by_turns(3, 8)) == []
    assert places_of(["a"] * 20) == []


@pytest.mark.parametrize("total", [False, True])
def test_no_p_value_is_below_the_share_of_orders_that_say_as_much(total: bool) -> None:
    """All 2^8 orders of eight blocks, one after the other."""
    d = np.array([0.011, 0.012, 0.010, 0.013, 0.0101, 0.0125, 0.0118, 0.0107])
    places = places_of(by_turns(2, 8))
    replays = Replays(patterns(tuple(range(8)), 1), exact=True)

    def t_of(values: Floats) -> float:
        mean = total_mean(arms(values), places) if total else typical_mean(values[None, :], places)
        return float(mean.t[0])

    seen = t_of(d)
    all_t = [t_of(d * np.array(order)) for order in itertools.product([1.0, -1.0], repeat=8)]
    share = sum(t >= seen * (1 - 1e-9) for t in all_t) / 256
    above = (total_tails(arms(d), places, replays) if total else typical_tails(d, places, replays))[0]
    assert above == pytest.approx(max(share, scipy.stats.t.sf(seen, 1)))
    assert share >= 1 / 256
