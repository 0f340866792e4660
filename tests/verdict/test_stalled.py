"""Stalls that were seen: in which cell, and how many trials it takes after them."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from simulate import series

from iodelta.stats.effect import Estimate
from iodelta.stats.stalls import excluded
from iodelta.verdict import Change, Rules, Series, Word, judge_series, metric
from iodelta.verdict.explain import by_total
from iodelta.verdict.judge import judge
from iodelta.verdict.reproduction import Measured, reproduced

RULES = Rules(metrics=(metric("read.iops"),), margin=0.05, looks=(20,), comparisons=3, family="each")


def cell(number: int, *, stalled: tuple[int, ...] = (), blocks: int = 20, cells: int = 3) -> Series:
    """One of several cells whose blocks take turns; the variant loses 20 % in the blocks ``stalled``."""
    rng = np.random.default_rng(number)
    old, new = 1e5 * np.exp(0.002 * rng.standard_normal((2, blocks)))
    new[list(stalled)] *= 0.8
    places = [cells * block + number for block in range(blocks)]
    return series(old, new, rng.integers(0, 2, blocks).astype(bool), cell=f"cell {number}", at=places)


def test_sixty_trials_in_three_cells_without_a_stall_are_enough_for_each() -> None:
    judged = judge_series([cell(n) for n in range(3)], RULES)
    assert {one.word for one in judged.verdicts} == {"equivalent"}
    last = judged.verdicts[-1].stalls
    assert last is not None
    assert (last.trials, last.stalled) == (60, 0)


def test_a_cell_that_stalled_is_held_against_its_own_trials() -> None:
    """Two stalls in 20 trials of one cell: as two in 60 they would leave 11 % open, as two in 20 they leave a third."""
    judged = judge_series([cell(n, stalled=(4, 15) if n == 1 else ()) for n in range(3)], RULES)
    words = [one.word for one in judged.verdicts]
    assert words[1] == "inconclusive"
    own = judged.verdicts[1].stalls
    assert own is not None
    assert (len(own.variant), own.trials, own.stalled) == (2, 20, 2)
    assert own.not_excluded == pytest.approx(excluded(2, 20))


def test_stalls_of_another_cell_count_against_the_trials_of_all() -> None:
    judged = judge_series([cell(n, stalled=(2, 9, 15) if n == 1 else ()) for n in range(3)], RULES)
    other = judged.verdicts[2].stalls
    assert other is not None
    assert (other.variant, other.stalled, other.trials) == ((), 3, 60)
    assert judged.verdicts[2].word == "inconclusive"
    assert "3 episodes of stalls in 60 trials" in judged.verdicts[2].phrase


def test_a_stall_that_came_later_changes_no_word_that_was_said() -> None:
    early = judge_series([cell(n) for n in range(3)], RULES)
    longer = [cell(0), cell(1, blocks=40, stalled=(25, 30, 35)), cell(2)]
    assert judge_series(longer, RULES).verdicts[0].stalls == early.verdicts[0].stalls


def test_boot_pairs_count_the_trials_and_stalls_inside_their_boots() -> None:
    """Four trials in each of ten boots a variant: forty trials, not ten."""
    boots = tuple((f"old {n // 4}", f"new {n // 4}") for n in range(40))
    ten = msgspec.structs.replace(RULES, looks=(10,))
    quiet = judge(msgspec.structs.replace(cell(0, blocks=40, cells=1), boots=boots), ten)
    assert quiet.stalls is not None
    assert (quiet.stalls.trials, quiet.stalls.stalled, quiet.word) == (40, 0, "equivalent")
    stalling = judge(msgspec.structs.replace(cell(0, blocks=40, cells=1, stalled=(8, 21, 33)), boots=boots), ten)
    assert stalling.stalls is not None
    assert (stalling.stalls.trials, stalling.stalls.stalled) == (40, 3)
    assert stalling.word != "equivalent"


@pytest.mark.parametrize(
    ("trials", "stalled", "held"), [(29, 0, True), (28, 0, None), (29, 1, None), (63, 1, None), (64, 1, True)]
)
def test_no_change_is_reproduced_by_trials_that_exclude_stalls_after_those_seen(
    trials: int, stalled: int, held: bool | None
) -> None:
    none = Estimate(0.0, -0.002, 0.002, 0.95, 80)
    there, here = Measured(none, none, 200), Measured(none, none, trials, stalled)
    for found in (reproduced(there, here, 0.01), reproduced(here, there, 0.01)):
        assert found.held is held
        assert ("of which stalled" in found.says) == (held is None and stalled > 0)
    changed = Estimate(math.log(0.9), math.log(0.89), math.log(0.91), 0.95, 80)
    assert reproduced(Measured(changed, changed, 9, 3), Measured(changed, changed, 9, 3), 0.01).held


@pytest.mark.parametrize("seed", [3, 25, 30])
def test_stalls_of_the_variants_own_are_a_regression_whatever_noise_says_of_a_carry_over(seed: int) -> None:
    """Ten stalls of 80 trials; in these experiments white noise looks like a benefit that could have made the total."""
    assert judge(eighty(seed, own=True), STALLING).word == "regression"


@pytest.mark.parametrize("seed", [23, 36, 37, 39])
def test_stalls_that_follow_the_baseline_are_not_a_regression_of_the_variant(seed: int) -> None:
    """Three of four trials of the variant follow the baseline, after which any trial may stall."""
    assert judge(eighty(seed, own=False), STALLING).word in ("inconclusive", "equivalent")


STALLING = Rules(metrics=RULES.metrics, margin=0.02, comparisons=1)


def eighty(seed: int, *, own: bool) -> Series:
    """80 blocks at CV 2 %. Ten trials lose 20 %: the variant's, or of either arm after one of the baseline."""
    rng = np.random.default_rng(seed)
    first = rng.random(80) < 0.5
    values = 1e5 * np.exp(0.02 * rng.standard_normal((2, 80)))
    if own:
        values[1, rng.choice(80, 10, replace=False)] *= 0.8
    else:
        last = np.concatenate([[False], ~first[:-1]])  # the block before ended with the baseline
        after = [(0, block) for block in np.flatnonzero(first & last)]
        after += [(1, block) for block in np.flatnonzero(first | last)]
        for arm, block in rng.permutation(np.array(after))[:10]:
            values[arm, block] *= 0.8
    return series(values[0], values[1], first)


@pytest.mark.parametrize("did", [0.0, 20.0])
@pytest.mark.parametrize("seed", range(30))
def test_a_trial_that_did_next_to_nothing_does_not_make_a_loss_of_every_block_doubtful(seed: int, did: float) -> None:
    """Some carry-over is always left open by 20 blocks; one that made all of -30 % is not, stall or no stall."""
    rng = np.random.default_rng(seed)
    old, new = 1e5 * np.exp(0.02 * rng.standard_normal((2, 20)))
    new *= 0.7
    new[seed % 20] = did
    plain = Rules(metrics=(metric("read.iops"),), margin=0.01, looks=(20,), comparisons=1)
    judged = judge_series([series(old, new, rng.integers(0, 2, 20).astype(bool))], plain)
    assert [one.word for one in judged.verdicts] == ["regression"]


# -------------------------------------------------------------------------- faster in a typical trial, less work in all


def faster(*, stalled: tuple[int, ...] = (), baseline: tuple[int, ...] = (), change: float = 0.03) -> Series:
    """A variant whose trials change by ``change``; those of the blocks ``stalled``, and of the baseline in the blocks
    ``baseline``, lose 90 %."""
    rng = np.random.default_rng(3)
    old, new = 1e5 * np.exp(0.005 * rng.standard_normal((2, 20)))
    new *= 1.0 + change
    new[list(stalled)] *= 0.1
    old[list(baseline)] *= 0.1
    return series(old, new, rng.integers(0, 2, 20).astype(bool))


def test_a_typical_improvement_waits_while_stalls_of_the_variant_could_make_the_total_worse() -> None:
    rules = Rules(metrics=RULES.metrics, margin=0.01, looks=(20,), comparisons=1)
    assert judge(faster(), rules).word == "improvement"
    for stalled in ((7,), (2, 7)):
        found = judge(faster(stalled=stalled), rules)
        assert (found.word, found.basis) == ("inconclusive", "total")
        assert f"; {len(stalled)} of 20 trials of new stalled" in found.phrase
        assert found.typical is not None
        assert found.typical.excludes_zero
        assert found.total is not None
        assert found.change == found.total, "the row shows what keeps it from a word"
    both = judge(faster(stalled=(7,), baseline=(11,)), rules)
    assert both.word == "improvement", "where both stalled alike it is the machine that stalls"


def test_a_typical_regression_stands_where_the_baseline_stalled() -> None:
    rules = Rules(metrics=RULES.metrics, margin=0.01, looks=(20,), comparisons=1)
    found = judge(faster(baseline=(7,), change=-0.03), rules)
    assert (found.word, found.basis) == ("regression", "typical")


@pytest.mark.parametrize(
    ("word", "is_rate", "said"),
    [
        ("regression", True, "new did less in total"),
        ("improvement", True, "new did more in total"),
        ("regression", False, "new was worse in total"),
        ("improvement", False, "new was better in total"),
    ],
)
def test_more_is_done_of_a_rate_only(word: Word, is_rate: bool, said: str) -> None:
    """Of a p99 that had doubled it was said: b did less in total, +127.5 %."""
    change = Change(0.5, 0.4, 0.6, 0.95)
    assert by_total(word, change, change, None, "new", 9, is_rate=is_rate).startswith(f"{said}: +50")
