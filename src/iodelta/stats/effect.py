"""The size of a change from paired blocks: Hodges-Lehmann with its signed-rank interval, and cross-checks.

Input is ``d``, one log-ratio per block: a row of n numbers, or a matrix with one comparison per row where the name
ends in ``_rows``. Assumption: the order inside each block was drawn at random. Then d is symmetric about 0 under "no
change", and the signed-rank test and the sign-flip test are exact whatever the noise.
Sources: Hodges and Lehmann 1963; Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., section 3.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from iodelta.stats.special import ndtr, ndtri

Floats = NDArray[np.float64]

EXACT_RANKS = 100
"""Up to this many blocks the signed-rank distribution is counted exactly; above, normal with continuity correction."""

EXACT_FLIPS = 16
"""Up to this many blocks all sign flips are enumerated."""

FLIPS = 9999


class Estimate(msgspec.Struct, frozen=True):
    """A centre and its two-sided interval at ``level`` from ``n`` values; infinite where n is too small for it."""

    value: float
    low: float
    high: float
    level: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Return whether the whole interval lies on one side of zero."""
        return self.low > 0.0 or self.high < 0.0


def log_ratios(
    baseline: ArrayLike, variant: ArrayLike, *, higher_is_better: bool
) -> Floats:
    """log(variant / baseline) per block, signed so that positive is worse. Raises ValueError unless all are > 0."""
    a, b = np.asarray(baseline, dtype=float), np.asarray(variant, dtype=float)
    if not (np.all(np.isfinite(a) & (a > 0)) and np.all(np.isfinite(b) & (b > 0))):
        raise ValueError("log-ratios need finite values above zero")
    return np.asarray(
        np.log(a) - np.log(b) if higher_is_better else np.log(b) - np.log(a)
    )


def walsh_rows(d: Floats) -> Floats:
    """Return the Walsh averages (d_i + d_j) / 2, i <= j, of each row, unsorted: shape (rows, n (n + 1) / 2)."""
    i, j = np.triu_indices(d.shape[1])
    averages: Floats = (d[:, i] + d[:, j]) * 0.5
    return averages


@lru_cache(maxsize=256)
def _rank_cdf(n: int) -> Floats:
    """P(W <= w) for w = 0 .. n (n + 1) / 2, W the signed-rank statistic of n values."""
    pmf = np.ones(1)
    for rank in range(1, n + 1):
        grown = np.zeros(len(pmf) + rank)
        grown[: len(pmf)] += 0.5 * pmf
        grown[rank:] += 0.5 * pmf
        pmf = grown
    cdf: Floats = np.minimum(np.cumsum(pmf), 1.0)
    return cdf


def _rank_moments(n: int) -> tuple[float, float]:
    return n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)


def rank_tail(n: int, count: ArrayLike) -> Floats:
    """P(W <= count) under no effect: the one-sided p value when ``count`` Walsh averages contradict the claim."""
    counts = np.asarray(count)
    if n <= EXACT_RANKS:
        return np.asarray(_rank_cdf(n)[counts])
    mean, sd = _rank_moments(n)
    return np.asarray(ndtr((counts + 0.5 - mean) / sd))


def rank_cut(n: int, tail: float) -> int:
    """Return which Walsh average, counted from either end and from 1, bounds an interval with at most ``tail`` on that
    side; 0 when n is too small for so small a tail (2^-n is the smallest there is)."""
    if n <= EXACT_RANKS:
        return int(np.searchsorted(_rank_cdf(n), tail * (1 + 1e-9), side="right"))
    mean, sd = _rank_moments(n)
    if tail > 0.0:
        return max(0, math.floor(mean + sd * float(ndtri(tail)) - 0.5) + 1)
    return 0


def not_above_rows(d: Floats, mu: float) -> NDArray[np.int64]:
    """Per row: how many Walsh averages are <= ``mu``: they contradict that the centre is above it.

    Counted from signed ranks of d - mu, O(n log n), instead of forming the averages. An average equal to mu
    contradicts both claims, which keeps ties and zeros on the safe side.
    """
    # Descending, so that the stable sort puts the positive of two equal sizes first: then mirror pairs count.
    descending = np.sort(d - mu, axis=1)[:, ::-1]
    by_size = np.take_along_axis(
        descending, np.argsort(np.abs(descending), axis=1, kind="stable"), axis=1
    )
    return np.asarray(
        np.where(by_size <= 0, np.arange(1, d.shape[1] + 1), 0).sum(axis=1)
    )


def not_below_rows(d: Floats, mu: float) -> NDArray[np.int64]:
    """Per row: how many Walsh averages are >= ``mu``: they contradict that the centre is below it."""
    return not_above_rows(-d, -mu)


def tails_rows(d: Floats, mu: float) -> tuple[Floats, Floats]:
    """Per row the one-sided signed-rank p values for "theta is above mu" and "theta is below mu"."""
    n = d.shape[1]
    return rank_tail(n, not_above_rows(d, mu)), rank_tail(n, not_below_rows(d, mu))


def hodges_lehmann_rows(d: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """Per row the Hodges-Lehmann estimate and the bounds of its signed-rank interval at two-sided ``level``."""
    rows, n = d.shape
    size = n * (n + 1) // 2
    cut = rank_cut(n, (1.0 - level) / 2)
    theta, low, high = np.empty(rows), np.full(rows, -np.inf), np.full(rows, np.inf)
    step = max(1, 200_000 // size)
    # A slice of rows whose averages stay in the processor's cache.
    for start in range(0, rows, step):
        part = slice(start, start + step)
        averages = walsh_rows(d[part])
        averages.sort(axis=1)
        theta[part] = (averages[:, (size - 1) // 2] + averages[:, size // 2]) * 0.5
        if cut:
            low[part], high[part] = averages[:, cut - 1], averages[:, size - cut]
    return theta, low, high


def hodges_lehmann(d: ArrayLike, level: float = 0.95) -> Estimate:
    """Hodges-Lehmann estimate of the centre of ``d`` with its signed-rank interval. Raises ValueError when empty."""
    row = _row(d)
    theta, low, high = hodges_lehmann_rows(row[None, :], level)
    return Estimate(float(theta[0]), float(low[0]), float(high[0]), level, len(row))


@lru_cache(maxsize=8)
def sign_flips(n: int, seed: int, flips: int = FLIPS) -> Floats:
    """Rows of +-1, shape (flips, n), read-only: all sign patterns with the first sign fixed (the test is symmetric) for
    n <= 16, else ``flips`` random ones."""
    if n <= EXACT_FLIPS:
        patterns = (np.arange(1 << (n - 1))[:, None] >> np.arange(n)) & 1
    else:
        patterns = np.random.default_rng(seed).integers(0, 2, size=(flips, n))
    signs = np.asarray(1.0 - 2.0 * patterns, dtype=np.float64)
    signs.setflags(write=False)
    return signs


def disagree(first: Estimate, other: Estimate) -> bool:
    """Return whether two estimates of the same thing lie outside each other's interval: outliers or a change of shape."""
    return not (
        first.low <= other.value <= first.high
        and other.low <= first.value <= other.high
    )


def _row(d: ArrayLike) -> Floats:
    row = np.asarray(d, dtype=float)
    if row.ndim != 1 or not len(row) or not np.all(np.isfinite(row)):
        raise ValueError("an effect needs one row of finite log-ratios")
    return row
