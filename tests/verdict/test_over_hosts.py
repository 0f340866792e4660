"""One experiment over several hosts: what differs between them, and what a trial leaves to the next one on its host."""

from __future__ import annotations

import numpy as np
import pytest
from simulate import trial

from iodelta.trial import Trial
from iodelta.verdict import Rules, Verdict, judge_all, metrics_for
from iodelta.verdict.series import surroundings_of

RULES = Rules.for_blocks(80, metrics_for(["read"])[:1], comparisons=1, margin=0.02)


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


def test_before_a_trial_ran_the_one_before_it_on_its_host_whether_that_counts_or_not() -> None:
    trials, where = over_hosts(2, np.random.default_rng(5), blocks=12)
    by_number = {one.number: one for one in trials}
    previous = surroundings_of(trials, where)["randread"].previous
    assert previous[9] == by_number[4].variant, "block 4 follows block 1 on the first host, trials 5 to 8 ran elsewhere"
    assert previous[11] == by_number[10].variant
    assert (previous[1], previous[5]) == ("", ""), "nothing ran before the first trial of a host"
    without = surroundings_of([one for one in trials if one.number != 4], where)["randread"].previous
    assert without[9] == "", "trial 4 failed: what it left is not known"


def test_hosts_of_different_speed_are_no_machine_with_two_speeds_and_no_stalls() -> None:
    found = judged(*over_hosts(3, np.random.default_rng(6), speeds=(1.0, 1.0, 0.1)))
    assert not found.two_speeds
    assert found.stalls is not None
    assert (found.stalls.variant, found.stalls.baseline) == ((), ())
