"""Verdicts of one direction are those of the other, and a matrix without a change has none."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from simulate import many
from tiers import scaled

from benchmarks.noise import MODELS, white
from iodelta.verdict import Rules, Series, judge_series, metric

IOPS = (metric("read.iops"),)
ALONE = Rules.for_blocks(80, IOPS, comparisons=1)
"""One comparison at the full level, up to 80 blocks."""

SERIES = scaled(200, 60)

OPPOSITE = {"regression": "improvement", "improvement": "regression", "equivalent": "equivalent"}
OPPOSITE["inconclusive"] = "inconclusive"


def at_most(rate: float, repetitions: int) -> float:
    """The largest share that a true ``rate`` lets happen, but for four standard errors."""
    return rate + 4 * math.sqrt(rate * (1 - rate) / repetitions)


def words(model: str, change: float, seed: int) -> tuple[dict[str, float], float]:
    """Share of each word, and the median of blocks used, at block sd 2 %."""
    found = many(MODELS[model], blocks=80, count=SERIES, change=change, sd=0.02, seed=seed)
    # Every cell by itself: the family of one that its user asked about. Carry-over aside, which asks more of an
    # improvement than of a regression (tests/verdict/test_hostile_noise.py has it).
    judged = judge_series(found, Rules(metrics=IOPS, looks=ALONE.looks, family="each", carry="ignored")).verdicts
    every = [verdict.word for verdict in judged]
    shares = {word: every.count(word) / len(every) for word in ("regression", "improvement", "equivalent")}
    return shares, float(np.median([verdict.stopped for verdict in judged]))


def test_a_change_is_judged_as_its_mirror_image() -> None:
    """Exact, since the arms of the same trials change places."""
    found = many(white, blocks=40, count=40, change=-0.015, sd=0.02, seed=107)
    rules = Rules(metrics=IOPS, looks=(9, 12, 16, 22, 26, 32, 40), family="each", carry="ignored")
    there, back = (judge_series(series, rules).verdicts for series in (found, [mirrored(one) for one in found]))
    assert [OPPOSITE[one.word] for one in there] == [one.word for one in back]
    assert [one.stopped for one in there] == [one.stopped for one in back]
    assert {one.word for one in there} >= {"regression", "inconclusive"}


def mirrored(series: Series) -> Series:
    """The same trials with the arms' names exchanged."""
    return msgspec.structs.replace(
        series,
        baseline_values=series.variant_values,
        variant_values=series.baseline_values,
        baseline_first=tuple(not first for first in series.baseline_first),
        baseline_at=series.variant_at,
        variant_at=series.baseline_at,
    )


def test_a_large_change_is_found_at_the_first_look() -> None:
    shares, blocks = words("white", -0.035, seed=106)
    assert shares["regression"] >= 0.99
    assert blocks <= 9


@pytest.mark.parametrize("family", ["holm", "screen"])
def test_a_matrix_of_50_cells_without_a_change_raises_hardly_a_false_alarm(family: str) -> None:
    repetitions, alarms = scaled(24, 4), 0
    rules = Rules.for_blocks(20, IOPS, comparisons=50, family=family)  # type: ignore[arg-type]
    for seed in range(repetitions):
        judged = judge_series(many(white, blocks=32, count=50, change=0.0, sd=0.028, seed=seed), rules)
        wrong = [v for v in judged.verdicts if v.word in ("regression", "improvement")]
        alarms += bool(wrong)
    assert alarms <= repetitions * at_most(0.05, repetitions)
