"""The word of many hosts: what each word promises, by fleets whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from tiers import most, scaled

from iodelta.stats.agreement import settling
from iodelta.verdict.agreement import HostChange, JointWord, joint, own_change

MARGIN = 0.01


def fleet(*values: float, error: float = 0.001) -> list[HostChange]:
    return [HostChange(f"host{number}", value, error, 15) for number, value in enumerate(values)]


def simulated(rng: np.random.Generator, truths: list[float], blocks: int = 16, sd: float = 0.01) -> list[HostChange]:
    found = [own_change(f"host{n}", truth + sd * rng.standard_normal(blocks)) for n, truth in enumerate(truths)]
    assert all(one is not None for one in found)
    return [one for one in found if one is not None]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((0.05, 0.052, 0.049, 0.051, 0.05, 0.048), "regression on these hosts"),
        ((-0.05, -0.052, -0.049, -0.051, -0.05, -0.048), "improvement on these hosts"),
        ((0.001, -0.001, 0.0, 0.0005, -0.0005, 0.001), "equivalent on these hosts"),
        ((0.05, 0.052, 0.049, 0.051, 0.05, 0.048, 0.05) * 2, "regression everywhere"),
        ((0.001, -0.001, 0.0, 0.0005, -0.0005, 0.001, 0.0) * 2, "equivalent everywhere"),
        ((0.05, 0.05, 0.0, 0.0, 0.05, 0.0), "depends on the machine"),
        ((0.05, 0.051, -0.04), "depends on the machine"),
        ((*[0.2] * 8, 0.0), "depends on the machine"),
        ((*[0.2] * 8, 0.1), "depends on the machine"),
        ((0.05, 0.0), "inconclusive"),
    ],
)
def test_hosts_that_are_sure_of_their_changes_give_the_word_that_describes_them(
    values: tuple[float, ...], word: JointWord
) -> None:
    assert joint(fleet(*values), MARGIN, level=0.95).word == word


def test_a_mean_change_with_a_spread_that_no_pair_of_hosts_shows_is_one_on_average() -> None:
    found = joint(fleet(0.005, 0.02, 0.035, 0.012, 0.03, 0.015, 0.025, 0.04, error=0.006), MARGIN, level=0.95)
    assert found.word == "regression on these hosts"
    assert found.together is not None
    assert found.together.next.low < 0 < found.together.mean.low


def test_the_hosts_named_as_different_are_those_that_differ_most_surely() -> None:
    changes = [*fleet(0.0, 0.05, 0.001), HostChange("noisy", 0.20, 0.2, 15)]
    assert joint(changes, MARGIN, level=0.95).apart == ("host1", "host0")


def test_hosts_without_any_change_hardly_ever_get_a_word_of_change() -> None:
    """5 of 100 are promised."""
    rng, fleets = np.random.default_rng(5), scaled(400, 60)
    words = [joint(simulated(rng, [0.0] * 5), MARGIN, level=0.95).word for _ in range(fleets)]
    assert sum(word not in ("equivalent everywhere", "inconclusive") for word in words) <= most(0.05, fleets)


def test_hosts_that_differ_by_the_margin_are_hardly_ever_said_to_differ_by_more() -> None:
    rng, fleets = np.random.default_rng(6), scaled(400, 60)
    told = 0
    for _ in range(fleets):
        changes = simulated(rng, [0.0, 0.0, MARGIN, MARGIN, 0.005])
        told += joint(changes, MARGIN, level=0.95).apart is not None
    assert told <= most(0.05, fleets)


def test_a_change_that_every_host_has_is_found_everywhere() -> None:
    rng = np.random.default_rng(7)
    words = [joint(simulated(rng, [0.05] * 14), MARGIN, level=0.95).word for _ in range(50)]
    assert words.count("regression everywhere") >= 45


@pytest.mark.parametrize("blocks", [0, 3])
def test_a_host_with_too_few_blocks_has_no_change_of_its_own(blocks: int) -> None:
    assert own_change("a", np.linspace(0, 1, blocks)) is None


def test_more_blocks_help_only_while_the_spread_between_hosts_leaves_room() -> None:
    alike, apart = settling(0.0, 0.004, 5, 16, 0.003), settling(0.01, 0.004, 5, 16, 0.003)
    assert (alike.blocks or 0) > 16
    assert apart.blocks is None
    assert (apart.hosts or 0) > 30
    assert settling(0.0, 0.0001, 5, 16, 0.003).hosts == 5


@pytest.mark.parametrize("hosts", [5, 14])
def test_one_model_in_five_that_differs_makes_no_word_about_all_hosts(hosts: int) -> None:
    """Four models gain 3 % and the fifth loses 12 %: on average nothing changes. 5 of 100 are promised."""
    rng, claims = np.random.default_rng(hosts), 0
    for _ in range(100):
        truths = rng.choice([-0.03, 0.12], hosts, p=[0.8, 0.2])
        word = joint(simulated(rng, list(truths)), MARGIN, level=0.95).word
        claims += word.endswith(("everywhere", "on average"))
    assert claims <= 0.1 * 100


def test_a_host_that_hardly_measured_is_not_part_of_everywhere() -> None:
    wide = HostChange("noisy", 0.05, 0.2, 15)
    assert joint([*fleet(*[0.05] * 14), wide], MARGIN, level=0.95).word != "regression everywhere"
