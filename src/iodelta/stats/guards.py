"""Guards: effects of the order of blocks that could make a verdict wrong, and counts that chance does not explain.

Input is ``d``, one log-ratio per block in run order (positive = worse), and what is known about the order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iodelta.stats.effect import hodges_lehmann, tails_rows
from iodelta.stats.special import bdtr, ndtr, stdtrit

Floats = NDArray[np.float64]

MIN_BATCHES = 8
"""Fewest batches that blocks are merged into: fewer give no useful interval."""


class Trend(NamedTuple):
    """How much of a difference a trend over run order could explain: ``explained`` +- ``spread`` is the slope of the
    log value per trial times the distance of the two variants' mean places."""

    explained: float
    spread: float

    def could_explain(self, theta: float) -> bool:
        """Return whether a drift as steep as the interval allows makes up at least half of ``theta``."""
        most = abs(self.explained) + self.spread
        return abs(theta) > 0.0 and most >= 0.5 * abs(theta)


def lag1(d: Floats) -> tuple[float, float]:
    """Return the lag-1 autocorrelation and the one-sided p value that it is not positive: only positive correlation
    makes an interval too short. Values without spread have (0, 1)."""
    n, centred = len(d), d - d.mean()
    power = float(centred @ centred)
    if n < 4 or power <= 1e-24 * float(d @ d):
        return 0.0, 1.0
    r = float(centred[1:] @ centred[:-1]) / power
    # Mean -1/n and variance (n-2)^2 / (n^2 (n-1)) of r under independence: Moran 1948.
    return r, float(ndtr(-(r + 1.0 / n) * n * math.sqrt(n - 1) / (n - 2)))


def merge_until_clean(d: ArrayLike, *, level: float = 0.01) -> Floats:
    """Return batch means of neighbouring blocks, doubling the batch until lag-1 correlation is no longer significant at
    ``level``, with at least 8 batches. Blocks that do not fill a batch are left out at the start (the oldest)."""
    row = np.asarray(d, dtype=float)
    size, batches = 1, row
    while lag1(batches)[1] < level and len(row) // (2 * size) >= MIN_BATCHES:
        size *= 2
        batches = row[len(row) % size :].reshape(-1, size).mean(axis=1)
    return batches


def second_place(d: Floats, baseline_first: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the log-ratio by which the second place in a block is worse than the first, and its two-sided signed-rank
    p value. Assumption: every order was drawn by itself, so what is left of d has either sign."""
    left = d - hodges_lehmann(d, 0.5).value
    placed = np.where(baseline_first, left, -left)
    p = 2.0 * float(np.minimum(*tails_rows(placed[None, :], 0.0))[0])
    return hodges_lehmann(placed, 0.5).value, min(1.0, p)


def order_trend(
    values: ArrayLike, places: ArrayLike, groups: ArrayLike, *, level: float = 0.95
) -> Trend | None:
    """Return whether a drift over run order could pass for a difference between the two groups (False, True).

    ``values`` (> 0) at run-order ``places``; the slope of their logarithms is fitted inside the groups, so a true
    difference does not count as drift. In a randomised interleaved run the groups' mean places nearly coincide and
    nothing is explained; in "all of A, then all of B" everything may be. Newey-West errors with one lag. None when it
    cannot be told: fewer than three values in a group, or no spread of places. Raises ValueError for a value that is
    not positive.
    """
    y, t = np.asarray(values, dtype=float), np.asarray(places, dtype=float)
    g = np.asarray(groups, dtype=bool)
    if not np.all(np.isfinite(y) & (y > 0)):
        raise ValueError("a trend of logarithms needs finite values above zero")
    if min(np.count_nonzero(g), np.count_nonzero(~g)) < 3:
        return None
    gap = float(t[g].mean() - t[~g].mean())
    order, logs = np.argsort(t, kind="stable"), np.log(y)
    for group in (g, ~g):
        logs[group] -= logs[group].mean()
        t = np.where(group, t - t[group].mean(), t)
    t, logs = t[order], logs[order]
    power = float(t @ t)
    if power == 0.0:
        return None
    slope, n = float(t @ logs) / power, len(y)
    scores = t * (logs - t * slope)
    meat = float(scores @ scores) + float(scores[1:] @ scores[:-1])
    error = math.sqrt(max(meat, 0.0) * n / max(n - 1, 1)) / power
    half = error * float(stdtrit(n - 3, 0.5 + level / 2))
    return Trend(slope * gap, half * abs(gap))


def balance(worse: int, better: int) -> float:
    """Two-sided binomial p value that regressions and improvements among null-like comparisons are equally likely:
    a tool that only ever finds regressions is measuring its own order. 1 when there are none."""
    total = worse + better
    if not total:
        return 1.0
    return min(1.0, 2.0 * float(bdtr(float(min(worse, better)), total, 0.5)))


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
