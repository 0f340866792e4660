"""What the variant leaves, where the baseline's trials alone find it: seen at its size, told, and never a word."""

from __future__ import annotations

import numpy as np
import pytest
from simulate import series

from benchmarks.verdicts.disturbances import normal
from benchmarks.verdicts.experiments import Setup, simulate
from iodelta.verdict import Rules, Series, judge_series, metric
from iodelta.verdict.judge import judge
from iodelta.verdict.machine import machine_of
from iodelta.verdict.series_units import units_of

BLOCKS = 80
RULES = Rules(metrics=(metric("read.iops"),), margin=0.02, looks=(BLOCKS,), comparisons=1)


def left(change: float, seed: int) -> Series:
    """Equal arms; a trial of the baseline right after one of the variant differs by ``change``."""
    rng = np.random.default_rng(seed)
    first = rng.random(BLOCKS) < 0.5
    arm = np.column_stack([~first, first]).ravel()
    rates = 1e5 * np.exp(0.01 * rng.standard_normal(2 * BLOCKS))
    rates[1:][~arm[1:] & arm[:-1]] *= 1.0 + change
    return series(rates[~arm], rates[arm], first)


@pytest.mark.parametrize(("change", "word"), [(-0.05, "improvement"), (0.05, "regression")])
def test_it_is_seen_at_its_size_and_takes_the_word_back(change: float, word: str) -> None:
    seen = []
    for seed in range(10):
        one = left(change, seed)
        alone = machine_of(units_of(one, RULES), BLOCKS).onto(0)
        assert alone is not None
        assert alone.shown.tolist() == [True]
        assert alone.share[0] == pytest.approx(-0.75, abs=0.15), "three of four of its trials follow the variant's"
        seen.append(alone.value[0])
        found = judge(one, RULES)
        assert found.is_withheld
        assert found.phrase.startswith(f"{word} is withheld")
        (told,) = [finding for finding in found.findings if finding.rule == "verdict.carry-over"]
        assert "right after new" in told.explanation
    assert np.mean(seen) == pytest.approx(-np.log1p(change), abs=0.005)


def test_where_nothing_is_left_it_is_seldom_seen() -> None:
    seen = [machine_of(units_of(left(0.0, seed), RULES), BLOCKS).onto(0) for seed in range(200)]
    assert sum(bool(one is not None and one.shown[0]) for one in seen) <= 21  # binomial of 5 %, 99.9 %


def test_a_drift_that_makes_the_second_trial_slower_is_none() -> None:
    """A trial of the baseline that is second follows the variant's: what being second does is not what is left."""
    rng = np.random.default_rng(4)
    for _ in range(5):
        first = rng.random(BLOCKS) < 0.5
        arm = np.column_stack([~first, first]).ravel()
        rates = 1e5 * np.exp(0.002 * rng.standard_normal(2 * BLOCKS) - 0.006 * np.arange(2 * BLOCKS))
        assert judge(series(rates[~arm], rates[arm], first), RULES).word == "equivalent"


@pytest.mark.parametrize(("switched", "word"), [(0.1, "improvement"), (-0.1, "regression")])
def test_a_change_right_after_each_change_of_variant_is_not_the_variants_own(switched: float, word: str) -> None:
    """Three of four of its trials follow one of the baseline; those after its own are equal."""
    setup = Setup(normal(0.005), switched=switched, blocks=40)
    series, _ = simulate(setup, np.random.default_rng(8))
    (verdict,) = judge_series(series, setup.rules()).verdicts
    assert verdict.word == "inconclusive"
    assert verdict.phrase.startswith(f"{word} is withheld")


def test_in_superblocks_a_step_in_the_uncounted_trial_alone_is_no_trend() -> None:
    setup = Setup(normal(0.002), switched=0.03, superblocks=True)
    series, _ = simulate(setup, np.random.default_rng(4))
    (verdict,) = judge_series(series, setup.rules()).verdicts
    assert verdict.word == "equivalent"


def test_a_lasting_debt_is_in_the_row_as_deployed() -> None:
    setup = Setup(normal(0.005), debt=0.03, memory=0.5, superblocks=True)
    series, _ = simulate(setup, np.random.default_rng(4))
    (verdict,) = judge_series(series, setup.rules()).verdicts
    assert (verdict.word, verdict.estimand) == ("regression", "deployed")
    assert verdict.change is not None
    assert verdict.change.value == pytest.approx(setup.total, rel=0.3)
    assert verdict.direct is not None
