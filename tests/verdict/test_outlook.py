"""The blocks that are said to be needed, where a trial stalled before the first look: what is said is what happens."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from simulate import series
from tiers import scaled

from benchmarks.verdicts.disturbances import normal
from benchmarks.verdicts.experiments import Setup, cut, simulate
from benchmarks.verdicts.measures import _projected
from iodelta.stats.sequential import nominal_tails
from iodelta.verdict import Rules, judge_series, metric
from iodelta.verdict.family import plan_of
from iodelta.verdict.judge import judge
from iodelta.verdict.rare import taken_by_stalls
from iodelta.verdict.series_units import units_of

FIRST = 9
NEAR = 0.2
"""Share of the margin around it in which a formula without noise need not know which side an experiment falls on."""


@pytest.mark.parametrize("left", [0.93, 0.7, 0.1])
@pytest.mark.parametrize("arm", ["baseline", "variant"])
def test_what_stalls_take_from_the_margin_is_what_keeps_experiments_from_equivalence(left: float, arm: str) -> None:
    """One trial of the first nine blocks stalls and no other does; next to no noise. At nine, and as it comes."""
    rng = np.random.default_rng(5)
    values = {name: 1e5 * np.exp(0.0003 * rng.standard_normal(400)) for name in ("baseline", "variant")}
    values[arm][4] *= left
    first, sides = rng.integers(0, 2, 400).astype(bool), set[bool]()
    for blocks in (12, 20, 40, 80, 160, 400):
        rules = Rules(metrics=(metric("read.iops"),), margin=0.02, looks=(blocks,), comparisons=1, stalls=0.9)
        tail = nominal_tails(plan_of(rules, ()), rules.alpha / 2)[0]
        seen = series(values["baseline"][:FIRST], values["variant"][:FIRST], first)
        taken = taken_by_stalls(units_of(seen, rules), FIRST, blocks, tail) / math.log1p(rules.margin)
        if abs(taken - 1.0) > NEAR:
            word = judge(series(values["baseline"][:blocks], values["variant"][:blocks], first), rules).word
            assert (word == "equivalent") == (taken < 1.0), (blocks, taken)
            sides.add(taken < 1.0)
    assert sides == {True, False} or left == 0.93


def test_without_a_stall_nothing_is_taken() -> None:
    rng = np.random.default_rng(6)
    old, new = 1e5 * np.exp(0.02 * rng.standard_normal((2, FIRST)))
    rules = Rules(metrics=(metric("read.iops"),), looks=(FIRST, 20), comparisons=1)
    assert taken_by_stalls(units_of(series(old, new), rules), FIRST, 20, 0.01) == 0.0


def test_a_range_holds_as_often_as_it_says_where_one_of_the_first_trials_stalled() -> None:
    """Any change, any noise. The variant loses 90 % in one of its first nine trials and never again. Where
    the stall was noise, drawn in to a value of either sign, a range held in 42 % of cases for 71 % said."""
    setup = Setup(normal(0.02), drawn=True)
    held, said, count = [], [], scaled(130, 50)
    for rep in range(count):
        rng = np.random.default_rng([17, rep])
        drawn = setup.settled(rng)
        (one, *_), _ = simulate(drawn, rng)
        values = np.array(one.variant_values)
        values[4] *= 0.1
        one = msgspec.structs.replace(one, variant_values=tuple(values.tolist()))
        early = judge_series([cut(one, FIRST)], drawn.rules()).verdicts[0]
        if early.word == "inconclusive":
            found = _projected(early, judge_series([one], drawn.rules()).verdicts[0])
            assert found is not None
            held.append(found[0])
            said.append(found[1])
    assert len(held) > count // 3
    error = math.sqrt(np.mean(said) * (1.0 - np.mean(said)) / len(held))
    assert abs(np.mean(held) - np.mean(said)) < 0.05 + 2.0 * error
