"""Superblocks through the judge: words where a debt lasts longer than the trials that do not count."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from simulate import trial

from iodelta.report.stories.evidence import evidence
from iodelta.trial import Trial
from iodelta.verdict import Rules, Verdict, judge_all, metrics_for

RULES = Rules.for_blocks(80, metrics_for(["read"])[:1], comparisons=1, margin=0.02, carry="superblocks")


def superblocks(seed: int, debt: float, memory: float, uncounted: int = 1, cv: float = 0.01) -> list[Trial]:
    """80 blocks; a trial of "new" leaves ``debt`` to the next one, ``memory`` of it to each after that."""
    rng = np.random.default_rng(seed)
    trials: list[Trial] = []
    owed = 0.0
    for block in range(80):
        order = ("old", "new") if rng.random() < 0.5 else ("new", "old")
        for position in range(2 * (uncounted + 1)):
            variant = order[position // (uncounted + 1)]
            one = trial(len(trials), variant, block, 1e5 * float(np.exp(rng.normal(0, cv) - owed)), position=position)
            counts = position % (uncounted + 1) == uncounted
            trials.append(msgspec.structs.replace(one, conditioning=not counts))
            owed = memory * owed + debt * (variant == "new")
    return trials


def judged(trials: list[Trial]) -> Verdict:
    (verdict,) = judge_all(trials, RULES, baseline="old").verdicts
    return verdict


@pytest.mark.parametrize("seed", range(4))
def test_a_debt_that_lasts_is_never_equivalent_and_the_way_out_is_said(seed: int) -> None:
    """3 % a trial of which 80 % lasts is 14 % for whoever deploys it; one uncounted trial shows about 1 %."""
    found = judged(superblocks(seed, 0.03, 0.8))
    assert found.word in ("inconclusive", "regression")
    if found.word == "inconclusive":
        assert "is withheld: the state of new is not reached" in found.phrase
        assert "[design] conditioning = 3" in found.phrase
    assert "verdict.state-not-reached" in {finding.rule for finding in found.findings}
    assert found.deployed is not None
    assert found.deployed.low is not None
    assert found.deployed.high is not None
    assert found.deployed.low <= np.expm1(-0.15) <= found.deployed.high
    assert found.direct is not None
    assert found.direct.low is not None
    assert found.direct.high is not None
    assert found.direct.low - 0.003 <= 0 <= found.direct.high + 0.003, "the variant itself is equal"


@pytest.mark.parametrize("uncounted", [1, 3])
def test_without_a_debt_superblocks_still_say_equivalent(uncounted: int) -> None:
    found = [judged(superblocks(seed, 0.0, 0.0, uncounted)) for seed in range(4)]
    assert {one.word for one in found} == {"equivalent"}


def test_a_state_that_enough_uncounted_trials_reach_needs_no_warning() -> None:
    """A debt of one trial: 3 % for whoever deploys it, all of it in the first counted trial."""
    found = judged(superblocks(1, 0.03, 0.0, 3))
    assert found.word == "regression"
    assert "verdict.state-not-reached" not in {finding.rule for finding in found.findings}
    assert found.typical is not None
    assert found.typical.low is not None
    assert found.typical.high is not None
    assert found.typical.low <= np.expm1(-0.03) <= found.typical.high


@pytest.mark.parametrize("seed", range(6))
def test_a_state_still_to_come_is_in_what_is_said_of_the_deployed_change(seed: int) -> None:
    """Noise of 3 % hides that 8 of 15 % are still to come after three uncounted trials; the interval must not."""
    found = judged(superblocks(seed, 0.03, 0.8, 3, cv=0.03))
    said = found.deployed or found.typical
    assert said is not None
    assert said.low is not None
    assert said.high is not None
    assert said.low <= np.expm1(-0.15) <= said.high
    if found.deployed is not None and not found.findings:
        assert "is not excluded: deployed, it may be" in " ".join(evidence(found))
