"""Is a change that was seen there seen here: the words, and how often they are wrong."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from simulate import many
from tiers import scaled

from benchmarks.noise import MODELS
from iodelta.stats.difference import difference
from iodelta.stats.effect import Estimate, hodges_lehmann
from iodelta.verdict import Rules, judge_series, metric
from iodelta.verdict.reproduction import Measured, blocks_needed, reproduced, reproduction

IOPS = (metric("read.iops"),)
MARGIN = 0.01
COUNT = scaled(250, 60)


def change(value: float, half: float, n: int = 20) -> Estimate:
    """A relative change known to ``half`` on the logarithmic scale."""
    log = math.log1p(value)
    return Estimate(log, log - half, log + half, 0.95, n)


CASES = [
    # there, half width, here, half width, word
    (-0.64, 0.02, -0.26, 0.02, "same direction, not the same size"),  # the report that this is modelled on
    (-0.64, 0.02, -0.63, 0.02, "reproduced"),
    (-0.64, 0.02, -0.64, 0.70, "same direction, size inconclusive"),
    (-0.64, 0.02, -0.10, 0.50, "not seen here"),
    (-0.64, 0.90, -0.30, 0.70, "inconclusive"),
    (-0.64, 0.02, +0.30, 0.02, "other direction"),
    (-0.64, 0.02, +0.005, 0.001, "not seen here"),
    (-0.02, 0.003, -0.022, 0.003, "reproduced"),
    (-0.02, 0.003, -0.008, 0.001, "same direction, not the same size"),
    (-0.02, 0.003, -0.02, 0.012, "same direction, size inconclusive"),
    (-0.02, 0.003, +0.0, 0.002, "not seen here"),
    (-0.001, 0.002, +0.001, 0.003, "reproduced"),
    (-0.001, 0.002, -0.05, 0.01, "seen only here"),
    (-0.001, 0.002, -0.005, 0.02, "inconclusive"),
]


@pytest.mark.parametrize(("there", "half_there", "here", "half_here", "word"), CASES)
def test_the_word(there: float, half_there: float, here: float, half_here: float, word: str) -> None:
    found = reproduction(change(there, half_there), change(here, half_here), MARGIN)
    assert found.word == word, found
    # An improvement is a regression read the other way.
    mirrored = [
        Estimate(-e.value, -e.high, -e.low, e.level, e.n) for e in (change(there, half_there), change(here, half_here))
    ]
    assert reproduction(mirrored[0], mirrored[1], MARGIN).word == word


def test_where_nothing_was_shown_there_is_nothing_to_reproduce() -> None:
    assert not reproduction(change(-0.005, 0.05), change(-0.3, 0.01), MARGIN).asked
    assert reproduction(change(-0.3, 0.05), change(-0.005, 0.4), MARGIN).asked


def test_an_interval_that_few_blocks_cannot_have_leaves_it_open() -> None:
    unknown = Estimate(math.log(0.7), -math.inf, math.inf, 0.95, 3)
    assert reproduction(change(-0.3, 0.01), unknown, MARGIN).word == "inconclusive"
    assert not reproduction(unknown, change(-0.3, 0.01), MARGIN).asked


def test_the_interval_of_a_difference_of_equals_is_root_two_wider_and_keeps_its_skew() -> None:
    one = Estimate(0.1, 0.08, 0.12, 0.95, 10)
    found = difference(one, one)
    assert (found.low, found.high) == pytest.approx((-0.02 * math.sqrt(2), 0.02 * math.sqrt(2)))
    skewed = difference(Estimate(0.1, 0.09, 0.14, 0.95, 10), Estimate(0.1, 0.1, 0.1, 0.99, 8))
    assert (skewed.low, skewed.high) == pytest.approx((-0.01, 0.04))
    assert (skewed.level, skewed.n) == (0.95, 8)


def test_blocks_are_planned_for_the_size_as_far_as_the_other_side_knows_it() -> None:
    there = change(-0.2, 0.02, n=10)
    needed = blocks_needed(there, MARGIN)
    assert needed is not None
    assert reproduction(there, change(-0.2, 0.02 * math.sqrt(10 / needed)), MARGIN).word == "reproduced"
    assert blocks_needed(change(-0.2, 0.1, n=10), MARGIN) is None
    assert blocks_needed(Estimate(-0.2, -math.inf, math.inf, 0.95, 3), MARGIN) is None


def words(model: str, there: float, here: float, sd_there: float, sd_here: float, blocks: int) -> dict[str, float]:
    """Shares of the words for what an ordinary experiment there called a change, measured here in ``blocks``."""
    rules = Rules(metrics=IOPS, looks=Rules.for_blocks(80, IOPS, comparisons=1).looks, family="each")
    told = judge_series(many(MODELS[model], blocks=80, count=COUNT, change=there, sd=sd_there, seed=31), rules).verdicts
    ours = many(MODELS[model], blocks=blocks, count=COUNT, change=here, sd=sd_here, seed=32)
    found: Counter[str] = Counter()
    for verdict, series in zip(told, ours, strict=True):
        if verdict.word in ("regression", "improvement"):
            seen = hodges_lehmann([math.log1p(c) for c in verdict.changes])
            logs = [math.log(b / a) for a, b in zip(series.baseline_values, series.variant_values, strict=True)]
            found[reproduction(seen, hodges_lehmann(logs), MARGIN).word] += 1
    return {word: count / found.total() for word, count in found.items()}


def failed(shares: dict[str, float]) -> float:
    return sum(
        share
        for word, share in shares.items()
        if word not in ("reproduced", "inconclusive", "same direction, size inconclusive")
    )


@pytest.mark.parametrize("model", ["white", "sticky bimodal"])
def test_what_is_the_same_is_hardly_ever_called_not_reproduced(model: str) -> None:
    """At 5 %, also where the experiment there ended the moment it could, at its limit of detection, which flatters."""
    limit = 0.05 + 4 * math.sqrt(0.05 * 0.95 / COUNT)
    for size, sd_there, sd_here, blocks in ((-0.02, 0.02, 0.02, 24), (-0.012, 0.02, 0.02, 40), (-0.2, 0.02, 0.05, 12)):
        assert failed(words(model, size, size, sd_there, sd_here, blocks)) <= limit


def test_a_size_as_far_off_as_the_tolerance_is_hardly_ever_called_reproduced() -> None:
    off = math.expm1(math.log1p(-0.2) * 0.5)
    assert words("white", -0.2, off, 0.02, 0.02, 24).get("reproduced", 0.0) <= 0.025 + 4 * math.sqrt(
        0.025 * 0.975 / COUNT
    )


def both(typical: Estimate, total: Estimate | None, trials: int = 40) -> Measured:
    return Measured(typical, total, trials)


QUIET = change(-0.001, 0.002)
LOST = change(-0.09, 0.02)
STALLING = (
    # typical there, total there, typical here, total here, word, the change it is about
    (QUIET, LOST, QUIET, LOST, "reproduced", "total"),
    (QUIET, LOST, QUIET, QUIET, "not seen here", "total"),
    (QUIET, QUIET, QUIET, LOST, "seen only here", "total"),
    (QUIET, QUIET, QUIET, change(-0.03, 0.05), "inconclusive", "total"),
    (QUIET, QUIET, QUIET, QUIET, "reproduced", "typical"),
    (LOST, LOST, LOST, change(-0.30, 0.02), "same direction, not the same size", "total"),
    (LOST, LOST, LOST, change(-0.09, 0.20), "reproduced", "typical"),
)


@pytest.mark.parametrize(("typical_there", "there", "typical_here", "here", "word", "basis"), STALLING)
def test_a_variant_that_stalls_here_alone_is_not_reproduced(
    typical_there: Estimate, there: Estimate, typical_here: Estimate, here: Estimate, word: str, basis: str
) -> None:
    """Nine in ten trials alike and one that loses 90 %: a typical trial tells nothing of it, all work together does."""
    found = reproduced(both(typical_there, there), both(typical_here, here), MARGIN)
    assert (found.word, found.basis) == (word, basis), found
