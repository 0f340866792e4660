"""The shift between two groups of runs that were not made in pairs.

Assumption: all runs are independent draws. Drift, warm-up and changes between sessions break it, so the interval is
never the basis of a verdict. Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed.,
section 4.3 (Moses' interval).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iodelta.stats.effect import Estimate

MOST = 100
"""Runs of a group beyond this are not needed, and make the exact distribution long to count."""


def shift(baseline: ArrayLike, variant: ArrayLike, level: float = 0.95) -> Estimate:
    """Return the Hodges-Lehmann shift (median of all differences variant - baseline) with its rank-sum interval.

    The bounds are infinite where the groups are too small for ``level``: 95 % needs 4 runs against 4, or 3 against 5.
    ``n`` is the number of runs in both groups. Raises ValueError for empty groups, more than 100 runs in one, or
    values that are not finite.
    """
    a, b = np.asarray(baseline, dtype=float), np.asarray(variant, dtype=float)
    if not len(a) or not len(b) or max(len(a), len(b)) > MOST:
        raise ValueError(f"a shift needs 1 to {MOST} runs on each side")
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        raise ValueError("a shift needs finite values")
    differences = np.sort((b[:, None] - a[None, :]).ravel())
    cut = int(
        np.searchsorted(
            _rank_sum_cdf(len(a), len(b)), (1.0 - level) / 2 * (1 + 1e-9), side="right"
        )
    )
    low, high = (differences[cut - 1], differences[-cut]) if cut else (-np.inf, np.inf)
    return Estimate(
        float(np.median(differences)), float(low), float(high), level, len(a) + len(b)
    )


@lru_cache(maxsize=64)
def _rank_sum_cdf(n: int, m: int) -> NDArray[np.float64]:
    """P(U <= u) for u = 0 .. n m, U the Mann-Whitney statistic: the coefficients of a Gaussian binomial."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1.0
    for k in range(1, m + 1):
        # times (1 - q^(n + k)) / (1 - q^k), in that order so that all stays within degree n m
        if n + k <= n * m:
            counts[n + k :] -= counts[: -(n + k)].copy()
        for start in range(k):
            counts[start::k] = np.cumsum(counts[start::k])
    cdf: NDArray[np.float64] = np.cumsum(counts) / math.comb(n + m, n)
    return cdf
