"""What each of several patches costs, alone and together. Truths are functions of the patches that are on, written
here; what is asked for is worked out from them by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from iodelta.stats.attribution import Attribution, Subset, attribute, combinations, instead

ALONE, TOGETHER = 0.2, 0.25
"""The planted case: the first patch costs by itself, the second and third only together."""

Truth = Callable[[Subset], float]


def planted(run: Subset) -> float:
    return ALONE * (0 in run) + TOGETHER * (1 in run and 2 in run)


def two_and_four(run: Subset) -> float:
    """Patches 2 and 4 cost nothing alone and 8 % together."""
    return 0.08 * (1 in run and 3 in run)


def pairs_of(seed: int, patches: int) -> Truth:
    """Random single effects and pairs."""
    rng = np.random.default_rng(seed)
    single = 0.05 * rng.standard_normal(patches)
    pair = 0.05 * rng.standard_normal((patches, patches))
    return lambda run: float(sum(single[i] for i in run) + sum(pair[p] for p in itertools.combinations(run, 2)))


def measured(
    patches: int,
    runs: tuple[Subset, ...],
    sd: float = 0.0,
    blocks: int = 8,
    seed: int = 1,
    truth: Truth = planted,
    margin: float = 0.01,
) -> Attribution:
    """Values of the truth in blocks that drift far apart."""
    rng = np.random.default_rng(seed)
    levels = np.array([truth(run) for run in runs])
    drift = 5.0 * rng.standard_normal((blocks, 1))
    values = drift + levels + sd * rng.standard_normal((blocks, len(runs)))
    return attribute(patches, runs, values, margin=margin)


def effects(found: Attribution) -> dict[Subset, float]:
    return {term.patches: term.effect.value for term in found.terms}


def named(found: Attribution) -> set[Subset]:
    return {term.patches for term in found.terms if term.named}


def test_one_patch_alone_and_two_together_are_told_apart() -> None:
    found = measured(3, combinations(3))
    assert effects(found) == pytest.approx(
        {(0,): ALONE, (1, 2): TOGETHER, (1,): 0, (2,): 0, (0, 1): 0, (0, 2): 0, (0, 1, 2): 0}, abs=1e-9
    )
    assert [share.value for share in found.shares if share] == pytest.approx([ALONE, TOGETHER / 2, TOGETHER / 2])


@pytest.mark.parametrize("patches", [1, 2, 3, 4, 5, 8])
def test_shares_add_up_to_the_whole_change(patches: int) -> None:
    truth = pairs_of(patches, patches)
    found = measured(patches, combinations(patches), sd=0.01, truth=truth)
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
    ("patches", "runs"), [(1, 2), (2, 4), (3, 8), (4, 16), (5, 22), (6, 29), (7, 37), (8, 46), (9, 20)]
)
def test_how_many_combinations_are_run(patches: int, runs: int) -> None:
    found = combinations(patches)
    assert len(found) == len(set(found)) == runs


@pytest.mark.parametrize("patches", [4, 5, 6, 7, 8])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_alone_and_on_top_of_the_others_are_what_the_words_say(patches: int, seed: int) -> None:
    """Not averages over the other patches: the levels that the truth has with and without."""
    truth = pairs_of(seed, patches)
    found = measured(patches, combinations(patches), truth=truth)
    everything = tuple(range(patches))
    for i in range(patches):
        alone, last = found.alone[i], found.last[i]
        assert alone is not None
        assert last is not None
        others = tuple(j for j in everything if j != i)
        assert (alone.patches, alone.over, last.over) == ((i,), (), others)
        assert alone.effect.value == pytest.approx(truth((i,)) - truth(()))
        assert last.effect.value == pytest.approx(truth(everything) - truth(others))
    assert found.whole is not None
    assert found.whole.value == pytest.approx(truth(everything))


@pytest.mark.parametrize("patches", [4, 5, 6, 8])
def test_two_patches_that_cost_only_together_are_named_together_and_neither_alone(patches: int) -> None:
    found = measured(patches, combinations(patches), sd=0.01, blocks=12, truth=two_and_four)
    assert named(found) == {(1, 3)}
    for i in (1, 3):
        alone = found.alone[i]
        assert alone is not None
        assert not alone.named
        assert alone.effect.low <= 0 <= alone.effect.high


def test_pairs_of_many_patches_are_each_known_by_itself() -> None:
    truth = pairs_of(7, 7)
    found = effects(measured(7, combinations(7), truth=truth))
    for one, other in itertools.combinations(range(7), 2):
        beyond = truth((one, other)) - truth((one,)) - truth((other,))
        assert found[one, other] == pytest.approx(beyond)


def test_a_patch_that_does_not_apply_without_another_is_told_with_it() -> None:
    """Patch 3 needs patch 2: what it does on top of that is known, what it does alone is not."""
    runs = tuple(run for run in combinations(3) if 2 not in run or 1 in run)
    found = measured(3, runs, truth=lambda run: 0.08 * (1 in run and 2 in run))
    [guilty] = [term for term in found.terms if term.named]
    assert (guilty.patches, guilty.fresh, guilty.over) == ((1, 2), (2,), (1,))
    assert guilty.effect.value == pytest.approx(0.08)
    assert found.shares == (None, None, None)
    alone = found.alone[2]
    assert alone is not None
    assert (alone.patches, alone.over) == ((2,), (1,))
    assert found.whole is not None
    assert found.rest is not None
    assert found.rest.value == pytest.approx(0)


def test_patches_that_are_only_ever_on_together_are_not_told_apart() -> None:
    runs = tuple(run for run in combinations(3) if (1 in run) == (2 in run))
    found = measured(3, runs, truth=lambda run: 0.08 * (1 in run))
    [guilty] = [term for term in found.terms if term.named]
    assert (guilty.patches, guilty.fresh, guilty.over) == ((1, 2), (1, 2), ())


def test_without_the_base_what_patches_do_on_top_of_each_other_is_known() -> None:
    """Of a series that cannot be reverted whole, the runs that there are still tell what each does last."""
    runs = tuple(run for run in combinations(3) if len(run) >= 2)
    found = measured(3, runs)
    assert not found.terms
    assert found.whole is None
    last = [step.effect.value for step in found.last if step]
    assert last == pytest.approx([ALONE, TOGETHER, TOGETHER])


@pytest.mark.parametrize("patches", [5, 6, 8])
@pytest.mark.parametrize("lost", [0, 1, 2, 5, 9])
def test_whatever_fails_every_figure_is_that_of_combinations_that_ran(patches: int, lost: int) -> None:
    """Fuzzed: combinations that fail at random leave less to tell, and nothing wrong."""
    rng = np.random.default_rng([patches, lost])
    truth = pairs_of(lost, patches)
    whole = combinations(patches)
    kept = sorted(rng.permutation(len(whole))[lost:].tolist())
    runs = tuple(whole[n] for n in kept)
    found = measured(patches, runs, truth=truth)
    for step in (*found.alone, *found.last):
        if step is not None:
            after = tuple(sorted((*step.patches, *step.over)))
            assert after in runs
            assert step.over in runs
            assert step.effect.value == pytest.approx(truth(after) - truth(step.over), abs=1e-8)
    for term in found.terms:
        assert term.together.value == pytest.approx(truth(term.patches) - truth(found.least), abs=1e-8)
        if term.over is not None:
            assert term.effect.value == pytest.approx(truth(term.patches) - truth(term.over), abs=1e-8)


@pytest.mark.parametrize("patches", [5, 7, 8])
def test_of_a_series_in_which_each_patch_needs_the_one_before_all_that_can_be_run_is_found(patches: int) -> None:
    """By trying: the design is completed by what its failures look like, until nothing new comes of it."""
    series = {tuple(range(n)) for n in range(patches + 1)}
    runs = list(combinations(patches))
    while more := instead(runs, [run for run in runs if run not in series], patches):
        runs += more
    assert series <= set(runs)
    sound = tuple(run for run in runs if run in series)
    found = measured(patches, sound, truth=lambda run: 0.08 * (3 in run))
    assert named(found) == {(0, 1, 2, 3)}
    steps = [step for step in found.alone if step is not None]
    assert [step.patches for step in steps] == [(i,) for i in range(patches)]
    assert [step.effect.value for step in steps] == pytest.approx([0.08 * (i == 3) for i in range(patches)])


def test_nothing_takes_the_place_of_a_combination_that_failed_for_no_reason_to_be_seen() -> None:
    runs = combinations(5)
    assert instead(runs, [], 5) == ()
    assert instead(runs, [(0, 3)], 5) == ()


@pytest.mark.parametrize("patches", [5, 6, 8])
def test_three_patches_that_act_together_are_noticed_and_no_single_one_is_blamed(patches: int) -> None:
    found = measured(
        patches, combinations(patches), sd=0.01, blocks=12, truth=lambda run: 0.08 * ({1, 2, 4} <= set(run))
    )
    assert found.misfit is not None
    assert found.misfit < 0.01
    assert not found.smoothed
    assert all(len(patch) > 2 for patch in named(found))
    for i in (1, 2, 4):
        alone, last = found.alone[i], found.last[i]
        assert alone is not None
        assert last is not None
        assert alone.effect.low <= 0 <= alone.effect.high
        assert last.effect.low <= 0.08 <= last.effect.high


def test_the_model_of_pairs_is_refused_wrongly_at_the_level_that_is_stated() -> None:
    refused = sum(not measured(5, combinations(5), 0.02, 6, seed, two_and_four).smoothed for seed in range(300))
    assert 4 <= refused <= 28


@pytest.mark.parametrize("patches", [3, 6])
def test_named_effects_are_real_at_the_level_that_is_stated(patches: int) -> None:
    """Of experiments in which no patch does anything, about 5 % name one at all."""
    runs = combinations(patches)
    count = 250
    alarms = sum(bool(named(measured(patches, runs, 1.0, 8, seed, lambda _: 0.0))) for seed in range(count))
    assert alarms / count <= 0.08


@pytest.mark.parametrize("patches", [3, 6])
def test_intervals_cover_the_truth_under_drift_between_blocks(patches: int) -> None:
    hits = total = 0
    for seed in range(100):
        found = measured(patches, combinations(patches), sd=0.05, seed=seed)
        share, alone, last = found.shares[1], found.alone[1], found.last[1]
        assert alone is not None
        assert last is not None
        figures = [(alone.effect, 0.0), (last.effect, TOGETHER)]
        if share is not None:  # none when the spare runs happen to contradict the model
            figures.append((share, TOGETHER / 2))
        for estimate, true in figures:
            hits += estimate.low <= true <= estimate.high
            total += 1
    assert 0.90 <= hits / total <= 0.99


def test_one_block_is_no_experiment() -> None:
    with pytest.raises(ValueError, match="two blocks"):
        attribute(1, combinations(1), np.zeros((1, 2)))
    with pytest.raises(ValueError, match="nothing"):
        combinations(0)
