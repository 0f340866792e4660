"""What each of several patches costs, alone and together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from iodelta.stats.attribution import Attribution, Subset, attribute, combinations

ALONE, TOGETHER = 0.2, 0.25
"""The planted case: the first patch costs by itself, the second and third only together."""


def planted(run: Subset) -> float:
    return ALONE * (0 in run) + TOGETHER * (1 in run and 2 in run)


def measured(patches: int, runs: tuple[Subset, ...], sd: float = 0.0, blocks: int = 8, seed: int = 1) -> Attribution:
    """Values of ``planted`` in blocks that drift far apart."""
    rng = np.random.default_rng(seed)
    levels = np.array([planted(run) for run in runs])
    drift = 5.0 * rng.standard_normal((blocks, 1))
    return attribute(patches, runs, drift + levels + sd * rng.standard_normal((blocks, len(runs))))


def effects(found: Attribution) -> dict[Subset, float]:
    return {term.patches: term.effect.value for term in found.terms if term.effect}


def test_one_patch_alone_and_two_together_are_told_apart() -> None:
    found = measured(3, combinations(3))
    assert effects(found) == pytest.approx(
        {(0,): ALONE, (1, 2): TOGETHER, (1,): 0, (2,): 0, (0, 1): 0, (0, 2): 0, (0, 1, 2): 0}, abs=1e-9
    )
    assert [share.value for share in found.shares if share] == pytest.approx([ALONE, TOGETHER / 2, TOGETHER / 2])


@pytest.mark.parametrize("patches", [1, 2, 3, 4])
def test_shares_add_up_to_the_whole_change(patches: int) -> None:
    rng = np.random.default_rng(patches)
    runs = combinations(patches)
    found = attribute(patches, runs, rng.standard_normal((6, len(runs))))
    assert found.whole is not None
    assert sum(share.value for share in found.shares if share) == pytest.approx(found.whole.value)


def test_shares_are_the_mean_over_all_orders_of_applying_the_patches() -> None:
    rng = np.random.default_rng(3)
    runs = combinations(4)
    values = rng.standard_normal((1, 16)).repeat(3, axis=0)
    worth = dict(zip(runs, values[0], strict=True))
    added = np.zeros(4)
    for order in itertools.permutations(range(4)):
        for n, patch in enumerate(order):
            before, after = tuple(sorted(order[:n])), tuple(sorted(order[: n + 1]))
            added[patch] += worth[after] - worth[before]
    found = attribute(4, runs, values)
    assert [share.value for share in found.shares if share] == pytest.approx((added / 24).tolist())


@pytest.mark.parametrize(
    ("patches", "runs"), [(1, 2), (2, 4), (3, 8), (4, 16), (5, 16), (6, 16), (8, 16), (9, 32), (16, 32)]
)
def test_up_to_four_all_combinations_are_run_and_above_a_fraction(patches: int, runs: int) -> None:
    found = combinations(patches)
    assert len(found) == len(set(found)) == runs


@pytest.mark.parametrize("patches", [5, 6, 7, 8, 11, 16])
def test_in_the_fraction_no_single_effect_is_mixed_with_a_pair(patches: int) -> None:
    """Resolution IV, as columns of +-1: singles are orthogonal to each other and to all pairs."""
    signs = np.array([[1 if n in run else -1 for n in range(patches)] for run in combinations(patches)])
    assert (np.abs(signs.sum(axis=0)) == 0).all()
    for a, b in itertools.combinations(range(patches), 2):
        assert signs[:, a] @ signs[:, b] == 0
        assert not (signs.T @ (signs[:, a] * signs[:, b])).any()


def test_a_pair_that_the_fraction_cannot_tell_from_another_is_named_with_it() -> None:
    found = measured(6, combinations(6))
    [pair] = [term for term in found.terms if (1, 2) in (term.patches, *term.aliases)]
    assert pair.effect is not None
    assert pair.effect.value == pytest.approx(TOGETHER)
    assert pair.aliases
    shares = [share.value for share in found.shares if share]
    assert shares == pytest.approx([ALONE, TOGETHER / 2, TOGETHER / 2, 0, 0, 0], abs=1e-9)


def test_of_five_patches_every_pair_is_known_by_itself() -> None:
    assert not any(term.aliases for term in measured(5, combinations(5)).terms)


def test_a_combination_that_cannot_be_built_leaves_exactly_what_needs_it_inestimable() -> None:
    """Without patches 2 and 3 together, whatever both are in is unknown; the first patch is not."""
    runs = tuple(run for run in combinations(3) if not {1, 2} <= set(run))
    found = measured(3, runs)
    unknown = {term.patches for term in found.terms if term.effect is None}
    assert unknown == {(1, 2), (0, 1, 2)}
    assert effects(found)[(0,)] == pytest.approx(ALONE)
    assert found.shares == (None, None, None)
    assert found.whole is None


def test_named_effects_are_real_at_the_level_that_is_stated() -> None:
    """Of experiments in which no patch does anything, about 5 % name one at all."""
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(250):
        found = attribute(3, combinations(3), rng.standard_normal((8, 8)))
        alarms += any(term.p is not None and term.p <= 0.05 for term in found.terms)
    assert alarms / 250 <= 0.08


def test_intervals_of_shares_cover_them_under_drift_between_blocks() -> None:
    hits = 0
    for seed in range(200):
        found = measured(3, combinations(3), sd=0.05, seed=seed)
        share = found.shares[1]
        assert share is not None
        hits += share.low <= TOGETHER / 2 <= share.high
    assert 0.90 <= hits / 200 <= 0.99


def test_one_block_is_no_experiment() -> None:
    with pytest.raises(ValueError, match="two blocks"):
        attribute(1, combinations(1), np.zeros((1, 2)))
    with pytest.raises(ValueError, match="nothing"):
        combinations(0)
