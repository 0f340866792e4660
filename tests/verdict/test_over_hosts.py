"""One experiment over several hosts: what differs between them, and what a trial leaves to the next one on its host."""

from __future__ import annotations

import numpy as np
import pytest
from simulate import trial
from tiers import most, scaled

from iodelta.trial import Trial
from iodelta.verdict import Rules, Verdict, judge_all, metrics_for

RULES = Rules.for_blocks(80, metrics_for(["read"])[:1], comparisons=1, margin=0.02)

RULES_40 = Rules.for_blocks(40, RULES.metrics, comparisons=1, margin=0.02)


def over_hosts(
    hosts: int,
    rng: np.random.Generator,
    *,
    blocks: int = 80,
    sd: float = 0.01,
    debt: float = 0.0,
    speeds: tuple[float, ...] = (),
    stalls: float = 0.0,
    depth: float = 0.9,
    apart: float = 0.0,
) -> tuple[list[Trial], dict[int, str]]:
    """Trials in blocks that go to the hosts in turn by twos, and the host of each by number.

    ``debt`` is what a trial of the variant takes from the next one on its host, ``apart`` the spread of the hosts' own
    changes, ``stalls`` the share of the variant's trials that lose ``depth``.
    """
    own = apart * rng.standard_normal(hosts)
    before = dict.fromkeys(range(hosts), "old")
    trials, where = [], {}
    for block in range(blocks):
        host = block // 2 % hosts
        for position, which in enumerate(rng.permutation(2)):
            variant = ("old", "new")[which]
            iops = 1e5 * (speeds[host] if speeds else 1.0) * np.exp(rng.normal(0, sd) + which * own[host])
            iops *= 1.0 - debt * (before[host] == "new")
            iops *= 1.0 - depth * (which == 1 and rng.random() < stalls)
            before[host] = variant
            number = 1 + 2 * block + position
            trials.append(trial(number, variant, block, float(iops), position=position))
            where[number] = f"host {host}"
    return trials, where


def judged(trials: list[Trial], where: dict[int, str], rules: Rules = RULES) -> Verdict:
    (verdict,) = judge_all(trials, rules, baseline="old", hosts=where).verdicts
    return verdict


@pytest.mark.parametrize("hosts", [3, 6])
def test_what_a_trial_leaves_to_the_next_one_on_its_host_is_seen(hosts: int) -> None:
    """A debt of 10 %: the baseline pays half of it, and the variant that makes it would pass for an improvement."""
    rng = np.random.default_rng(4)
    found = [judged(*over_hosts(hosts, rng, debt=0.1)) for _ in range(5)]
    assert {one.word for one in found} == {"inconclusive"}
    for one in found:
        assert one.carry is not None
        assert one.carry.change.value == pytest.approx(-0.1, abs=0.02)
        assert one.carry.adjusted == pytest.approx(0.0, abs=0.02)


def test_hosts_of_different_speed_are_no_machine_with_two_speeds_and_no_stalls() -> None:
    found = judged(*over_hosts(3, np.random.default_rng(6), speeds=(1.0, 1.0, 0.1)))
    assert not found.two_speeds
    assert found.stalls is not None
    assert (found.stalls.variant, found.stalls.baseline) == ((), ())


def test_hosts_that_change_by_different_amounts_ask_for_more_hosts_and_alike_ones_for_more_blocks() -> None:
    rng = np.random.default_rng(7)
    apart = judged(*over_hosts(3, rng, apart=0.1))
    assert "more hosts would settle it, not more blocks" in apart.phrase
    assert (apart.needed, apart.reachable_margin) == (None, None)
    few = judged(*over_hosts(5, rng, blocks=9))
    assert few.phrase.startswith("no mean over 5 hosts yet")
    assert few.change is not None
    assert (few.change.low, few.change.high) == (None, None)
    assert few.p == 1.0


@pytest.mark.parametrize("hosts", [2, 3, 8])
def test_a_variant_compared_with_itself_over_hosts_is_seldom_called_a_change(hosts: int) -> None:
    """Hosts whose own changes scatter by 1 % around none: at most 5 % of experiments."""
    rng, count = np.random.default_rng(hosts), scaled(60, 20)
    words = [judged(*over_hosts(hosts, rng, blocks=40, apart=0.01), RULES_40).word for _ in range(count)]
    assert sum(word in ("regression", "improvement") for word in words) <= most(0.05, count)


def test_a_loss_by_stalls_on_every_host_is_called_one_by_its_total() -> None:
    """A sixth of the variant's trials lose half: a typical trial is equal, the total is 8 % less."""
    rules = Rules.for_blocks(160, RULES.metrics, comparisons=1, margin=0.02)
    run = over_hosts(10, np.random.default_rng(8), blocks=160, sd=0.002, stalls=1 / 6, depth=0.5)
    found = judged(*run, rules)
    assert (found.word, found.basis) == ("regression", "total")
    assert found.total is not None
    assert found.total.low is not None
    assert found.total.high is not None
    assert found.total.low < -1 / 12 < found.total.high
    assert found.typical is not None
    assert found.typical.low is not None
    assert found.typical.high is not None
    assert found.typical.low < 0 < found.typical.high
