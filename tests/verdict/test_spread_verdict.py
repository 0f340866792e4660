"""Level and spread are two results: the report of a governor that lowered throughput and made it erratic.

Magnitudes of the report (md RAID10, 512 KiB random reads): 780 MB/s with a spread of 35 under one governor, 669 MB/s
with a spread of 50 under the other: 14 % slower, and 1.7 times as spread relative to its level.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from tiers import most, scaled

from iodelta.trial import Direction, Quantity, Trial
from iodelta.verdict import Rules, Series, judge_all, metric
from iodelta.verdict.derived import judge_spread
from iodelta.verdict.judge import judge

BANDWIDTH, JITTER = metric("read.bandwidth"), metric("read.jitter")
RULES = Rules(metrics=(BANDWIDTH, JITTER), carry="ignored")
"""Carry-over is not what these runs are about; by chance it takes a word back in one of twenty."""
PERFORMANCE, POWERSAVE = (780.0, 35.0), (669.0, 50.0)


def series(base: tuple[float, float], new: tuple[float, float], blocks: int, seed: int) -> Series:
    """Run-to-run results of two governors, (MB/s, spread) each, and a device that drifts by 3 %."""
    rng = np.random.default_rng(seed)
    drift = 0.03 * np.cumsum(rng.normal(size=blocks)) / math.sqrt(blocks)
    values = [
        tuple((1e6 * level * np.exp(drift + spread / level * rng.normal(size=blocks))).tolist())
        for level, spread in (base, new)
    ]
    first = tuple(bool(coin) for coin in rng.random(blocks) < 0.5)
    odd, even = tuple(range(0, 2 * blocks, 2)), tuple(range(1, 2 * blocks, 2))
    return Series(
        "512k", BANDWIDTH, "performance", "powersave", tuple(range(blocks)), values[0], values[1], first, odd, even
    )


def trials(new: tuple[float, float], blocks: int, seed: int) -> list[Trial]:
    """Runs of 30 s; the spread is that of the seconds, and runs differ by 1 % besides."""
    rng = np.random.default_rng(seed)
    made: list[Trial] = []
    for block in range(blocks):
        names = [("performance", PERFORMANCE), ("powersave", new)]
        for position, at in enumerate(rng.permutation(2)):
            name, (level, spread) = names[at]
            seconds = level * 1e6 / 524288 * np.exp(rng.normal(0, 0.01) + spread / level * rng.normal(size=30))
            rate = Quantity.exact(float(seconds.mean()), "IOPS")
            bandwidth = Quantity.exact(float(seconds.mean()) * 524288, "B/s")
            done = Direction("read", int(seconds.sum()), int(seconds.sum()) * 524288, 30_000, rate, bandwidth)
            logs = {"read.iops": tuple(seconds.tolist())}
            made.append(Trial(len(made), "512k", name, block, position, 1, 0.0, 31.0, (done,), series=logs))
    return made


@pytest.mark.parametrize("seed", range(5))
def test_a_governor_that_lowers_throughput_and_widens_it_gets_two_verdicts_from_sixteen_blocks(seed: int) -> None:
    found = judge_all(trials(POWERSAVE, 16, seed), RULES, baseline="performance")
    words = {verdict.metric.name: verdict.word for verdict in found.verdicts}
    assert words == {"read.bandwidth": "regression", "read.jitter": "regression"}
    slower = next(verdict for verdict in found.verdicts if verdict.metric == BANDWIDTH)
    wider = next(verdict for verdict in found.verdicts if verdict.metric == JITTER)
    assert slower.change is not None
    assert wider.change is not None
    assert slower.change.value == pytest.approx(-0.142, abs=0.03)
    assert wider.change.value == pytest.approx(0.67, abs=0.25)


def test_between_runs_both_verdicts_come_too_given_the_blocks_that_spread_needs() -> None:
    both = [series(PERFORMANCE, POWERSAVE, 60, seed) for seed in range(10)]
    assert all(judge(one, RULES).word == "regression" for one in both)
    spreads = [judge_spread(one, RULES) for one in both]
    assert sum(verdict.word == "regression" for verdict in spreads) >= 8
    changes = [verdict.change.value for verdict in spreads if verdict.change is not None]
    assert float(np.median(changes)) == pytest.approx(0.67, abs=0.25)


@pytest.mark.parametrize("shape", ["normal", "t3", "skewed"])
def test_equal_spread_is_rarely_called_a_change_whatever_the_noise(shape: str) -> None:
    """The F test calls 33 % (t3) and 43 % (skewed). The device drifts by 3 % besides."""
    draws: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
        "normal": lambda rng, n: rng.standard_normal(n),
        "t3": lambda rng, n: rng.standard_t(3, n),
        "skewed": lambda rng, n: rng.lognormal(0, 0.8, n),
    }
    experiments = scaled(100, 20)
    alarms = 0
    for seed in range(experiments):
        rng = np.random.default_rng(seed)
        drift = 0.03 * np.cumsum(rng.normal(size=20)) / math.sqrt(20)
        old, new = (1e5 * np.exp(drift + 0.02 * draws[shape](rng, 20)) for _ in range(2))
        alarms += judge_spread(pairs_of_values(old, 0.85 * new), RULES).word in ("regression", "improvement")
    assert alarms <= most(0.05, experiments)


def pairs_of_values(old: np.ndarray, new: np.ndarray) -> Series:
    places = tuple(range(len(old)))
    arms = tuple(old.tolist()), tuple(new.tolist())
    return Series("512k", BANDWIDTH, "a", "b", places, *arms, (True,) * len(old), places, places)


def test_a_governor_that_only_widens_throughput_is_no_slower() -> None:
    found = [series(PERFORMANCE, (780.0, 60.0), 60, seed) for seed in range(8)]
    assert sum(judge_spread(one, RULES).word == "regression" for one in found) >= 6
    assert sum(judge(one, RULES).word == "regression" for one in found) <= 1


def test_a_steadier_variant_is_an_improvement_and_swapping_the_variants_swaps_the_words() -> None:
    one = series((780.0, 20.0), (780.0, 60.0), 40, 1)
    other = Series(
        one.cell,
        one.metric,
        "powersave",
        "performance",
        one.blocks,
        one.variant_values,
        one.baseline_values,
        one.baseline_first,
        one.variant_at,
        one.baseline_at,
    )
    wider, steadier = judge_spread(one, RULES), judge_spread(other, RULES)
    assert (wider.word, steadier.word) == ("regression", "improvement")
    assert "more erratic" in wider.phrase
    assert "steadier" in steadier.phrase


def test_twelve_blocks_cannot_tell_and_say_how_many_could() -> None:
    found = judge_spread(series(PERFORMANCE, PERFORMANCE, 12, 1), RULES)
    assert found.word == "inconclusive"
    assert found.needed is not None
    assert found.needed >= 30
    assert str(found.needed) in found.phrase


@pytest.mark.parametrize(
    ("baseline", "variant", "rule"),
    [
        ((), (), "verdict.no-blocks"),
        ((1.0,), (2.0,), "spread.few-blocks"),
        ((1.0, 1.1) * 3, (1.2, 1.0) * 3, "spread.few-blocks"),
        ((1.0,) * 10, (2.0,) * 10, "spread.constant"),
        ((1.0,) * 10, tuple(1.0 + 0.1 * at for at in range(10)), "spread.constant"),
        ((0.0, *(1.0,) * 9), tuple(1.0 + 0.1 * at for at in range(10)), "spread.nothing-done"),
        ((math.nan, *(1.0,) * 9), tuple(1.0 + 0.1 * at for at in range(10)), "verdict.not-positive"),
        ((1.0, 1.1) * 5, (1.2, 1.0) * 4, "verdict.unequal"),
    ],
)
def test_what_cannot_be_judged_is_a_finding_and_no_verdict(
    baseline: tuple[float, ...], variant: tuple[float, ...], rule: str
) -> None:
    n = max(len(baseline), len(variant))
    places = tuple(range(n))
    found = judge_spread(
        Series("c", BANDWIDTH, "a", "b", places, baseline, variant, (True,) * n, places, places), RULES
    )
    assert found.word == "inconclusive"
    assert rule in {finding.rule for finding in found.findings}
