"""Families: what many comparisons at once may still claim, and where a screen spends the budget."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from simulate import many, run, series
from statsmodels.stats.multitest import multipletests

from benchmarks.noise import white
from iodelta.trial import Trial
from iodelta.verdict import (
    Rules,
    Screen,
    judge_all,
    judge_series,
    metric,
    next_step,
)

IOPS = (metric("read.iops"),)
RNG = np.random.default_rng(41)


def screening(**more: object) -> Rules:
    return Rules(metrics=IOPS, family="screen", **more)  # type: ignore[arg-type]


def matrix(changes: dict[str, float], blocks: int, *, sd: float = 0.014, seed: int = 1) -> list[Trial]:
    """Cells with their changes, one block of each cell per round."""
    cells = [
        run(change, blocks=blocks, sd=sd, seed=seed + i, cell=cell) for i, (cell, change) in enumerate(changes.items())
    ]
    rounds = [
        trial
        for round_ in zip(*[zip(c[::2], c[1::2], strict=True) for c in cells], strict=True)
        for pair in round_
        for trial in pair
    ]
    return [msgspec.structs.replace(trial, number=number) for number, trial in enumerate(rounds)]


def test_a_change_that_is_clear_alone_may_drown_in_a_family() -> None:
    """p of 1 % by itself, beside 49 cells without a change."""
    d = 0.012 + 0.013 * RNG.standard_normal(20)
    weak = series(np.full(20, 1e5), 1e5 * np.exp(-d), cell="weak")
    others = many(white, blocks=20, count=49, change=0.0, sd=0.02, seed=2)
    each, holm = (
        judge_series([weak, *others], Rules(metrics=IOPS, looks=(20,), family=family)).of("weak")[0]
        for family in ("each", "holm")
    )
    assert (each.word, each.alone) == ("regression", "regression")
    assert (holm.word, holm.alone) == ("inconclusive", "regression")
    assert "not after correction" in holm.phrase
    assert each.p_looks == holm.p_looks
    assert each.p_family == holm.p_family
    assert holm.p_family is not None
    assert holm.p_family > 0.05
    assert holm.q is not None
    assert holm.q <= holm.p_family


def test_equivalence_is_said_of_each_cell_at_the_full_level() -> None:
    quiet = many(white, blocks=40, count=50, change=0.0, sd=0.008, seed=5)
    words = [v.word for v in judge_series(quiet, Rules(metrics=IOPS, looks=(40,), family="holm")).verdicts]
    assert words.count("equivalent") >= 48


def test_the_planned_family_counts_even_before_all_cells_have_run() -> None:
    rules = Rules(metrics=IOPS, family="holm", comparisons=10)
    one = judge_series(many(white, blocks=20, count=1, change=-0.03, sd=0.02, seed=5), rules)
    assert one.family.comparisons == 10
    assert one.verdicts[0].p_family == pytest.approx(10 * one.verdicts[0].p_looks)  # type: ignore[operator]


def test_stage_1_decides_nothing_and_asks_for_its_blocks_in_every_cell() -> None:
    trials = matrix({"a": -0.2, "b": 0.0}, 12)
    judged = judge_all(trials[:-2], screening(), baseline="old")
    assert {v.word for v in judged.verdicts} == {"inconclusive"}
    assert {v.phrase for v in judged.verdicts} == {
        "stage 1 of the screen: 12 of 12 blocks",
        "stage 1 of the screen: 11 of 12 blocks",
    }
    assert next_step(judged.of("b")) == "continue"
    assert judged.of("b")[0].next_look == 12
    assert judged.family.kept is None


def test_a_screen_keeps_what_leans_either_way_and_what_it_was_told_to_keep() -> None:
    trials = matrix({"slower": -0.03, "same": 0.0, "faster": 0.05, "always": 0.0}, 12, seed=7)
    rules = screening(screen=Screen(always=("always",)))
    judged = judge_all(trials, rules, baseline="old")
    for cell in ("slower", "faster", "always"):
        assert next_step(judged.of(cell)) == "continue"
        assert judged.of(cell)[0].next_look == 12 + 9


def test_a_claim_is_made_from_fresh_blocks_in_the_direction_stage_1_leant() -> None:
    """Stage 1 leans to slower by 3 %, the fresh blocks are 3 % faster: nothing is claimed; and 12 blocks of stage 1
    with an enormous loss count for nothing when the fresh ones show none."""
    n = 40
    d = np.where(np.arange(n) < 12, 0.03, -0.03) + 0.01 * RNG.standard_normal(n)
    turned = series(np.full(n, 1e5), 1e5 * np.exp(-d), cell="turned")
    gone = series(
        np.full(n, 1e5),
        1e5 * np.exp(-np.where(np.arange(n) < 12, 0.5, 0.0) + 0.02 * RNG.standard_normal(n)),
        cell="gone",
    )
    judged = judge_series([turned, gone], screening())
    assert [v.word for v in judged.verdicts] == ["inconclusive", "inconclusive"]
    assert judged.family.kept == 2


def test_a_true_change_is_confirmed_and_the_rest_set_aside() -> None:
    changes = {f"cell {i}": -0.03 if i < 2 else 0.0 for i in range(20)}
    judged = judge_all(matrix(changes, 60, seed=100), screening(), baseline="old")
    assert [judged.of(f"cell {i}")[0].word for i in range(2)] == ["regression", "regression"]
    assert {judged.of(f"cell {i}")[0].word for i in range(2, 20)} <= {"equivalent", "inconclusive"}
    confirmed = judged.of("cell 0")[0]
    assert confirmed.block_numbers[0] == 12
    assert judged.family.regressions == 2


def test_what_leans_goes_first_and_the_rest_waits() -> None:
    """After 9 fresh blocks the cells that no longer lean wait; once nothing else is open they go on."""
    changes = {f"cell {i}": -0.02 if i == 0 else 0.0 for i in range(12)}
    trials = matrix(changes, 21, sd=0.02, seed=300)
    judged = judge_all(trials, screening(), baseline="old")
    steps = {cell: next_step(judged.of(cell)) for cell in changes}
    assert set(steps.values()) <= {"continue", "waiting", "decided"}
    assert "waiting" in steps.values()
    leaning = [cell for cell, step in steps.items() if step == "continue"]
    assert leaning
    stopped = [t for t in trials if t.cell not in leaning]
    others = judge_all(stopped, screening(), baseline="old")
    assert "continue" in {next_step(others.of(cell)) for cell in changes if cell not in leaning}


def test_a_cell_that_was_given_up_does_not_hold_up_the_screen() -> None:
    trials = [t for t in matrix({"a": -0.05, "b": 0.0, "broken": 0.0}, 30) if t.cell != "broken" or t.block < 5]
    assert judge_all([t for t in trials if t.block < 15], screening(), baseline="old").family.kept is None
    judged = judge_all(trials, screening(), baseline="old")
    assert judged.family.kept is not None
    assert judged.of("a")[0].word == "regression"
    assert judged.of("broken")[0].word == "inconclusive"


def test_a_budget_that_ends_in_stage_1_gives_one_look_with_holm() -> None:
    trials = matrix({"a": -0.2, "b": 0.0, "c": 0.0}, 10)
    judged = judge_all(trials, screening(), baseline="old", ended=(trials[-1].number,))
    assert judged.of("a")[0].word == "regression"
    assert judged.of("a")[0].blocks == 10
    assert {judged.of(cell)[0].step for cell in "bc"} <= {"exhausted", "decided"}
    longer = matrix({"a": -0.2, "b": 0.0, "c": 0.0}, 30)
    again = judge_all(longer, screening(), baseline="old", ended=(trials[-1].number,))
    assert [v.word for v in again.verdicts] == [v.word for v in judged.verdicts]


def test_regressions_everywhere_and_never_an_improvement_are_remarked_on() -> None:
    everywhere = many(white, blocks=20, count=12, change=-0.05, sd=0.02, seed=6)
    judged = judge_series(everywhere, Rules(metrics=IOPS, looks=(20,)))
    assert judged.family.balance_p == pytest.approx(2 * 0.5**12)
    assert [f.rule for f in judged.findings] == ["verdict.one-sided"]


@pytest.mark.parametrize("family", ["each", "holm", "screen"])
def test_whatever_the_family_the_word_agrees_with_the_interval_shown(family: str) -> None:
    cells = [
        msgspec.structs.replace(one, cell=f"{one.cell} {change}")
        for change in (0.0, -0.005, 0.01, -0.02, 0.05)
        for one in many(white, blocks=60, count=20, change=change, sd=0.02, seed=13)
    ]
    judged = judge_series(cells, Rules(metrics=IOPS, family=family))  # type: ignore[arg-type]
    words = set()
    for verdict in judged.verdicts:
        change, look = verdict.change, verdict.look
        if verdict.word == "inconclusive":
            continue
        words.add(verdict.word)
        assert change is not None
        assert look is not None
        # A word of change is held to the level of all its estimands and claims, never to a laxer one.
        assert change.level >= 1 - look.alpha - 1e-9
        assert (change.level == pytest.approx(1 - look.alpha)) or verdict.word != "equivalent"
        assert change.low is not None
        assert change.high is not None
        if verdict.word == "equivalent":
            assert -0.01 < change.low < change.high < 0.01
        elif verdict.word == "regression":
            assert change.high < 0
        else:
            assert change.low > 0  # later blocks may narrow it to within the margin; the word stays
    assert words == {"regression", "improvement", "equivalent"}


def test_the_words_of_a_family_are_corrected_as_statsmodels_does() -> None:
    """One metric a cell: every cell is one question."""
    cells = many(white, blocks=20, count=12, change=-0.012, sd=0.02, seed=3)
    judged = judge_series(cells, Rules(metrics=IOPS, looks=(20,), family="holm", carry="ignored")).verdicts
    p = [verdict.p_looks for verdict in judged]
    assert [verdict.p_family for verdict in judged] == pytest.approx(multipletests(p, method="holm")[1])
    assert [verdict.q for verdict in judged] == pytest.approx(multipletests(p, method="fdr_bh")[1])
