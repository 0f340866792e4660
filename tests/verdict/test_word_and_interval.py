"""A word and the interval printed with it never contradict each other, however wild the noise and large the family."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from benchmarks.verdicts.disturbances import Disturbance, bursts, heavy_tails, loaded, normal
from benchmarks.verdicts.experiments import Setup, cut, simulate
from iodelta.verdict import Verdict, judge_series


def second_of_two(setup: Setup, number: int, blocks: int = 80) -> list[Verdict]:
    """Verdicts of an experiment of two cells; in the first the variant also loses nine tenths, so that the second is
    judged at the whole level by Holm's last step."""
    series, _ = simulate(setup, np.random.default_rng([11, number]))
    series[0] = msgspec.structs.replace(series[0], variant_values=tuple(0.1 * one for one in series[0].variant_values))
    return [*judge_series([cut(one, blocks) for one in series], setup.rules()).verdicts]


def excludes_zero(verdict: Verdict) -> bool:
    """Whether the interval of the estimand that the word rests on lies on the side of 0 that its value is on."""
    assert verdict.change is not None
    if verdict.change.value < 0:
        return verdict.change.high is not None and verdict.change.high < 0
    return verdict.change.low is not None and verdict.change.low > 0


SMALL = Setup(normal(0.05), change=-0.025, blocks=26, cells=2)


@pytest.mark.parametrize("number", [19, 36, 59])
def test_a_word_of_holms_last_step_has_the_interval_of_its_level(number: int) -> None:
    worse, small = second_of_two(SMALL, number)
    assert (worse.word, small.word) == ("regression", "regression")
    assert small.p_family is not None
    assert small.p_looks is not None
    assert small.p_family > 2 * 0.01  # the first step alone would not say it
    assert excludes_zero(small)


def test_stalls_of_the_arm_that_gains_take_a_total_back() -> None:
    """The total says worse, at a p value that suffices, but the baseline stalled more often: with as many stalls as its
    trials do not exclude, the total might as well be better."""
    _, small = second_of_two(SMALL, 1, blocks=12)
    assert small.stalls is not None
    assert len(small.stalls.baseline) > len(small.stalls.variant)
    assert small.p_family is not None
    assert small.p_family < 0.05
    assert small.word == "inconclusive"
    assert not excludes_zero(small)


HOSTILE: dict[str, Disturbance] = {
    "load": loaded(1.5, 4, 6),
    "bursts": bursts(0.9, 0.1),
    "heavy tails": heavy_tails(0.5),
    "CV 50 %": normal(0.5),
}


@pytest.mark.parametrize("noise", HOSTILE)
def test_words_and_intervals_agree_under_load(noise: str) -> None:
    words = 0
    for number in range(24):
        setup = Setup(HOSTILE[noise], change=-0.5, blocks=(12, 20, 37)[number % 3], cells=2, margin=0.3)
        for verdict in second_of_two(setup, number):
            if verdict.word in ("regression", "improvement"):
                words += 1
                assert excludes_zero(verdict)
                assert (verdict.change is not None and verdict.change.value < 0) == (verdict.word == "regression")
    assert words > 10


@pytest.mark.parametrize(("debt", "said", "sign"), [(0.1, "slower", "-"), (-0.1, "faster", r"\+")])
def test_what_a_trial_leaves_is_said_to_be_slower_or_faster_with_its_sign(debt: float, said: str, sign: str) -> None:
    series, _ = simulate(Setup(normal(0.01), debt=debt), np.random.default_rng(3))
    (verdict,) = judge_series(series, Setup(normal(0.01)).rules()).verdicts
    (found,) = [finding.explanation for finding in verdict.findings if finding.rule == "verdict.carry-over"]
    size = rf"{sign}[\d.]+ %"
    assert re.fullmatch(rf"new runs {said} right after new \({size} \.\. {size}\): runs affect each other", found)
