"""Run-to-run spread: whether results became more erratic, whatever happened to their level.

Level and slow drift are removed first: from each arm its own centre, from each block the running mean of its
neighbours. The rest is compared by Brown-Forsythe, checked by swapping labels inside blocks, and sized by the ratio of
standard deviations. Never by the F test, which calls 33-43 % of heavy-tailed A/A series a change.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.effect import sign_flip_p
from iodelta.stats.special import betainc, ndtri
from iodelta.stats.tails import expanded_interval, resampling_weights

Floats = NDArray[np.float64]

WINDOW = 9
"""Blocks of the running mean: a shorter one would remove spread itself, a longer one would leave drift."""

POWER = 0.8


class Residuals(NamedTuple):
    """What is left of each arm's log values, one per block, when level and drift are taken away."""

    baseline: Floats
    variant: Floats


class Spread(msgspec.Struct, frozen=True):
    """A change of spread. ``log_ratio`` is log(sd of variant / sd of baseline), positive is wider, with the interval
    from resampled blocks at ``level``; ``p`` Brown-Forsythe's, ``p_swap`` the label-swap permutation's, two-sided."""

    log_ratio: float
    low: float
    high: float
    level: float
    p: float
    p_swap: float
    baseline_sd: float
    variant_sd: float
    blocks: int


def residuals(baseline: Floats, variant: Floats) -> Residuals:
    """Log values of two arms, one per block in run order, without their level and without slow drift."""
    a, b = baseline - np.median(baseline), variant - np.median(variant)
    drift = _running_mean((a + b) / 2)
    return Residuals(a - drift, b - drift)


def spread_change(
    baseline: Floats, variant: Floats, *, level: float = 0.95, seed: int
) -> Spread:
    """Return the change of spread between two arms measured in the same blocks: log values, one per block, in run
    order.

    Raises ValueError unless there are three blocks or more of finite values that vary in both arms.
    """
    if (
        baseline.shape != variant.shape
        or len(baseline) < 3
        or not np.isfinite([baseline, variant]).all()
    ):
        raise ValueError(
            "spread needs three blocks or more of finite values in both arms"
        )
    rest = residuals(baseline, variant)
    sd = [float(np.std(arm, ddof=1)) for arm in rest]
    if min(sd) <= 1e-12:
        raise ValueError("spread needs values that vary in both arms")
    blocks = len(baseline)
    weights = resampling_weights(blocks, seed)
    first, second = (_weighted_sd(weights, arm) for arm in rest)
    usable = (first > 0) & (second > 0)
    low, high = expanded_interval(np.log(second[usable] / first[usable]), blocks, level)
    away = [np.abs(arm - np.median(arm)) for arm in rest]
    return Spread(
        math.log(sd[1] / sd[0]),
        float(low),
        float(high),
        level,
        _equal_means_p(*away),
        sign_flip_p(away[1] - away[0], seed),
        sd[0],
        sd[1],
        blocks,
    )


def blocks_needed(spread: Spread, ratio: float = 1.5) -> int:
    """Blocks at which a spread ``ratio`` times as wide would be seen with 80 % probability, at this noise."""
    error = (spread.high - spread.low) / 2 / float(ndtri(0.5 + spread.level / 2))
    reach = float(ndtri(0.5 + spread.level / 2)) + float(ndtri(POWER))
    return max(math.ceil(spread.blocks * (reach * error / math.log(ratio)) ** 2), 1)


def _running_mean(values: Floats) -> Floats:
    """Centred mean over ``WINDOW`` blocks, over fewer at the ends."""
    reach = min(WINDOW, len(values)) // 2
    summed = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    start, stop = np.maximum(at - reach, 0), np.minimum(at + reach + 1, len(values))
    return np.asarray((summed[stop] - summed[start]) / (stop - start))


def _weighted_sd(weights: Floats, values: Floats) -> Floats:
    total = weights.sum(axis=1)
    mean = weights @ values / total
    return np.asarray(np.sqrt(np.maximum(weights @ values**2 / total - mean**2, 0.0)))


def _equal_means_p(first: Floats, other: Floats) -> float:
    """Return one-way analysis of variance of two groups, F(1, n - 2)."""
    n, m = len(first), len(other)
    within = ((first - first.mean()) ** 2).sum() + ((other - other.mean()) ** 2).sum()
    between = (first.mean() - other.mean()) ** 2 * n * m / (n + m)
    if within <= 0.0:
        return 1.0 if between <= 0.0 else 0.0
    rest = n + m - 2
    return float(betainc(rest / 2, 0.5, rest / (rest + between * rest / within)))


def fisher_exact(first: int, first_of: int, second: int, second_of: int) -> float:
    """Two-sided p value of Fisher's exact test that two shares are alike: ``first`` of ``first_of`` against
    ``second`` of ``second_of``. Tables no more likely than the one seen are added up (Fisher 1934). Raises
    ValueError for counts that cannot be."""
    if not 0 <= first <= first_of or not 0 <= second <= second_of:
        raise ValueError("a count is between 0 and its total")
    drawn, whole = first + second, first_of + second_of
    ways = [
        math.comb(first_of, k) * math.comb(second_of, drawn - k)
        for k in range(max(0, drawn - second_of), min(drawn, first_of) + 1)
    ]
    seen = math.comb(first_of, first) * math.comb(second_of, second)
    return sum(way for way in ways if way <= seen) / math.comb(whole, drawn)
