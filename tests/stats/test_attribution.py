"""What each of several patches costs, alone and together. Truths are functions of the patches that are on, written
here; what is asked for is worked out from them by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from iodelta.stats.attribution import Attribution, Subset, attribute, combinations

ALONE, TOGETHER = 0.2, 0.25
"""The planted case: the first patch costs by itself, the second and third only together."""

Truth = Callable[[Subset], float]


def planted(run: Subset) -> float:
    return ALONE * (0 in run) + TOGETHER * (1 in run and 2 in run)


def pairs_of(seed: int, patches: int) -> Truth:
    """Random single effects and pairs."""
    rng = np.random.default_rng(seed)
    single = 0.05 * rng.standard_normal(patches)
    pair = 0.05 * rng.standard_normal((patches, patches))
    return lambda run: float(sum(single[i] for i in run) + sum(pair[p] for p in itertools.combinations(run, 2)))


def measured(
    patches: int,
    runs: Sequence[Subset],
    sd: float = 0.0,
    blocks: int = 8,
    seed: int = 1,
    truth: Truth = planted,
    margin: float = 0.01,
) -> Attribution:
    """Values of the truth in blocks that drift far apart; what the design has and is not run has failed."""
    rng = np.random.default_rng(seed)
    values = [
        {run: drift + truth(run) + sd * float(rng.standard_normal()) for run in runs}
        for drift in 5.0 * rng.standard_normal(blocks)
    ]
    return attribute(patches, values, set(combinations(patches)) - set(runs), margin=margin)


def effects(found: Attribution) -> dict[Subset, float]:
    return {term.patches: term.effect.value for term in found.terms}


def named(found: Attribution) -> set[Subset]:
    return {term.patches for term in found.terms if term.named}


def test_one_patch_alone_and_two_together_are_distinguished() -> None:
    found = measured(3, combinations(3))
    assert effects(found) == pytest.approx(
        {(0,): ALONE, (1, 2): TOGETHER, (1,): 0, (2,): 0, (0, 1): 0, (0, 2): 0, (0, 1, 2): 0}, abs=1e-9
    )
    assert [share.value for share in found.shares if share] == pytest.approx([ALONE, TOGETHER / 2, TOGETHER / 2])


def test_shares_are_the_mean_over_all_orders_of_applying_the_patches() -> None:
    rng = np.random.default_rng(3)
    worth = {run: float(rng.standard_normal()) for run in combinations(3)}
    added = np.zeros(3)
    for order in itertools.permutations(range(3)):
        for n, patch in enumerate(order):
            before, after = tuple(sorted(order[:n])), tuple(sorted(order[: n + 1]))
            added[patch] += worth[after] - worth[before]
    found = measured(3, list(worth), truth=worth.__getitem__)
    assert [share.value for share in found.shares if share] == pytest.approx((added / 6).tolist())


@pytest.mark.parametrize("patches", [3, 4, 8])
def test_alone_and_on_top_of_the_others_are_what_the_words_say(patches: int) -> None:
    """Not averages over the other patches: the levels that the truth has with and without."""
    truth = pairs_of(patches, patches)
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


def test_an_effect_that_no_smaller_group_explains_asks_for_the_patches_that_end_it() -> None:
    """Three of six cost together: without one of them the cost is gone, so these three are run by themselves."""
    runs = combinations(6)
    guilty = (1, 2, 4)
    found = measured(6, runs, 0.005, truth=lambda run: 0.08 * (set(guilty) <= set(run)))
    assert named(found) == set()
    assert found.open is not None
    assert set(found.open.runs) == {guilty, (1, 2), (1, 4), (2, 4)}
    found = measured(6, (*runs, *found.open.runs), 0.005, truth=lambda run: 0.08 * (set(guilty) <= set(run)))
    assert (named(found), found.open) == ({guilty}, None)


@pytest.mark.parametrize("patches", [3, 5, 8])
@pytest.mark.parametrize("lost", [0, 1, 2, 5])
def test_every_figure_is_that_of_combinations_that_ran(patches: int, lost: int) -> None:
    """Fuzzed: combinations that fail at random leave less to say, and nothing wrong."""
    rng = np.random.default_rng([patches, lost])
    truth = pairs_of(lost, patches)
    whole = combinations(patches)
    runs = tuple(whole[n] for n in sorted(rng.permutation(len(whole))[lost:].tolist()))
    found = measured(patches, runs, truth=truth)
    for step in (*found.alone, *found.last):
        if step is not None:
            after = tuple(sorted((*step.patches, *step.over)))
            assert {after, step.over} <= set(runs)
            assert step.effect.value == pytest.approx(truth(after) - truth(step.over), abs=1e-8)
    for term in found.terms:
        assert term.together.value == pytest.approx(truth(term.patches) - truth(found.least), abs=1e-8)
        if term.over is not None:
            assert term.effect.value == pytest.approx(truth(term.patches) - truth(term.over), abs=1e-8)


@pytest.mark.parametrize("patches", [3, 6])
def test_named_effects_are_real_at_the_level_that_is_stated(patches: int) -> None:
    """Of experiments in which no patch does anything, at most 5 % name one at all; p and interval always agree."""
    runs = combinations(patches)
    alarms = 0
    for seed in range(200):
        found = measured(patches, runs, 1.0, 8, seed, lambda _: 0.0)
        alarms += bool(named(found))
        figures = [(term.p, term.effect) for term in found.terms]
        figures += [(step.p, step.effect) for step in (*found.alone, *found.last) if step]
        assert all((p <= 0.05) == effect.excludes_zero for p, effect in figures)
    assert alarms / 200 <= 0.05


def test_intervals_cover_the_truth_for_all_figures_at_once_under_drift_between_blocks() -> None:
    def covers(seed: int) -> bool:
        found = measured(6, combinations(6), sd=0.05, seed=seed)
        pairs = [(step, 0.0 if step and step.patches != (0,) else ALONE) for step in found.alone]
        pairs += [(step, TOGETHER if step and step.patches[0] in (1, 2) else 0.0) for step in found.last[1:]]
        return all(step is not None and step.effect.low <= true <= step.effect.high for step, true in pairs)

    assert sum(map(covers, range(100))) >= 92


def test_one_starved_run_does_not_outweigh_the_others() -> None:
    values = [{run: planted(run) + 0.01 * np.sin(7 * n + len(run)) for run in combinations(3)} for n in range(8)]
    values[3][0,] += 2.0
    [guilty] = [term for term in attribute(3, values).terms if term.patches == (0,)]
    assert guilty.effect.value == pytest.approx(ALONE, abs=0.02)
