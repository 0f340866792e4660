"""Guards: effects of the order of blocks that could make a verdict wrong, and the evidence for them.

Input is ``d``, one log-ratio per block in run order (positive = worse), and what is known about the order.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from iodelta.stats.carry import contrast_of
from iodelta.stats.special import bdtr, ndtr, stdtr, stdtrit

Floats = NDArray[np.float64]

MIN_BATCHES = 8
"""Fewest batches that blocks are merged into: fewer give no useful interval."""


class Merged(msgspec.Struct, frozen=True):
    """Blocks merged into batches of ``size`` until neighbours are no longer correlated; ``clean`` says whether that was
    reached. ``lag1`` and ``p`` describe the unmerged blocks."""

    batches: tuple[float, ...]
    size: int
    clean: bool
    lag1: float
    p: float


class Order(msgspec.Struct, frozen=True):
    """OLS of d on which variant ran first, with p values from HAC(1) errors.

    ``period`` is the log-ratio by which the second place in a block differs from the first (half of it, times the
    orientation, enters d); ``carry`` what a trial owes to the variant having run just before it. None: the order did
    not vary enough to tell. ``theta`` is the effect with both taken out.
    """

    theta: float
    period: float | None
    period_p: float | None
    carry: float | None
    carry_p: float | None


class Trend(msgspec.Struct, frozen=True):
    """How much of a difference a trend over run order could explain: ``slope`` of the log value per trial with its
    interval, and ``explained`` +- ``spread``: slope times the distance of the two variants' mean places."""

    slope: float
    low: float
    high: float
    explained: float
    spread: float
    p: float

    def could_explain(self, theta: float) -> bool:
        """Return whether a drift as steep as the interval allows makes up at least half of ``theta``."""
        return abs(theta) > 0.0 and abs(self.explained) + self.spread >= 0.5 * abs(
            theta
        )


def lag1_rows(d: Floats) -> tuple[Floats, Floats]:
    """Per row the lag-1 autocorrelation and the one-sided p value that it is not positive (only positive correlation
    makes an interval too short). A row without spread has (0, 1)."""
    n = d.shape[1]
    centred = d - d.mean(axis=1, keepdims=True)
    power = np.sum(centred**2, axis=1)
    flat = (power <= 1e-24 * np.sum(d**2, axis=1)) | (n < 4)
    products = np.sum(centred[:, 1:] * centred[:, :-1], axis=1)
    r = np.divide(products, power, out=np.zeros(len(d)), where=~flat)
    # Mean -1/n and variance (n-2)^2 / (n^2 (n-1)) of r under independence: Moran 1948.
    z = (r + 1.0 / n) * n * math.sqrt(max(n - 1, 1)) / max(n - 2, 1)
    return r, np.where(flat, 1.0, ndtr(-z))


def merge_until_clean(d: ArrayLike, *, level: float = 0.01) -> Merged:
    """Batch means of neighbouring blocks, doubling the batch until lag-1 correlation is no longer significant at
    ``level``, with at least 8 batches. Blocks that do not fill a batch are left out at the start (the oldest).

    A guard only: with the order drawn at random the sign-flip test of no change is valid regardless.
    """
    row = np.asarray(d, dtype=float)
    r, p = lag1_rows(row[None, :])
    size, batches, now = 1, row, float(p[0])
    while now < level and len(row) // (2 * size) >= MIN_BATCHES:
        size *= 2
        batches = row[len(row) % size :].reshape(-1, size).mean(axis=1)
        now = float(lag1_rows(batches[None, :])[1][0])
    return Merged(tuple(batches.tolist()), size, now >= level, float(r[0]), float(p[0]))


def order_effect(d: ArrayLike, baseline_first: ArrayLike) -> Order:
    """Period and carry-over effects of a two-variant run in adjacent blocks, from ``d`` in run order.

    A trial's predecessor is the other trial of its block, or the last one of the block before. Newey-West errors
    with one lag; the t distribution with n - parameters degrees of freedom. Raises ValueError when lengths differ.
    """
    y = np.asarray(d, dtype=float)
    first = np.asarray(baseline_first, dtype=bool)
    if y.shape != first.shape or y.ndim != 1 or not len(y):
        raise ValueError("order_effect needs one orientation per block")
    orientation, carry = _orders(first)
    columns = [np.ones(len(y))]
    has_period = _informative(columns, orientation)
    if has_period:
        columns.append(orientation)
    has_carry = _informative(columns, carry)
    if has_carry:
        columns.append(carry)
    x = np.column_stack(columns)
    beta, error = _ols_hac1(x, y)
    spare = len(y) - x.shape[1]
    p = [_two_sided_t(b, e, spare) for b, e in zip(beta, error, strict=True)]
    at = 2 if has_period else 1
    return Order(
        theta=float(beta[0]),
        period=2.0 * float(beta[1]) if has_period else None,
        period_p=p[1] if has_period else None,
        carry=float(beta[at]) if has_carry else None,
        carry_p=p[at] if has_carry else None,
    )


def suspicion(d: ArrayLike, baseline_first: ArrayLike) -> float:
    """Return a quick test before ``order_effect``: the larger correlation of d with orientation or carry-over, in
    units of its standard error under independence."""
    y = np.asarray(d, dtype=float)
    y = y - y.mean()
    largest = 0.0
    for column in _orders(np.asarray(baseline_first, dtype=bool)):
        x = column - column.mean()
        size = math.sqrt(float(x @ x) * float(y @ y))
        largest = max(largest, abs(float(x @ y)) / size if size > 0.0 else 0.0)
    return largest * math.sqrt(len(y))


def _orders(first: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Regressors per block: orientation (+1 baseline first), and whether the variant's trial came straight after one of
    the variant less whether the baseline's did."""
    return np.where(first, 1.0, -1.0), contrast_of(first)


def order_trend(
    values: ArrayLike, places: ArrayLike, groups: ArrayLike, *, level: float = 0.95
) -> Trend | None:
    """Return whether a drift over run order could pass for a difference between the two groups (False, True).

    ``values`` (> 0) at run-order ``places``; the slope of their logarithms is fitted inside the groups, so a true
    difference does not count as drift. In a randomised interleaved run the groups' mean places nearly coincide and
    nothing is explained; in "all of A, then all of B" everything may be. None when it cannot be told: fewer than
    three values in a group, or no spread of places. Raises ValueError for a value that is not positive.
    """
    y, t, g = (
        np.asarray(values, dtype=float),
        np.asarray(places, dtype=float),
        np.asarray(groups, dtype=bool),
    )
    if not np.all(np.isfinite(y) & (y > 0)):
        raise ValueError("a trend of logarithms needs finite values above zero")
    if min(np.count_nonzero(g), np.count_nonzero(~g)) < 3:
        return None
    logs = np.log(y)
    gap = float(t[g].mean() - t[~g].mean())
    for group in (g, ~g):
        logs[group] -= logs[group].mean()
        t = np.where(group, t - t[group].mean(), t)
    power = float(t @ t)
    if power == 0.0:
        return None
    order = np.argsort(np.asarray(places, dtype=float), kind="stable")
    beta, error = _ols_hac1(t[order, None], logs[order])
    spare = len(y) - 3
    half = float(error[0]) * float(stdtrit(spare, 0.5 + level / 2))
    slope = float(beta[0])
    p = _two_sided_t(slope, float(error[0]), spare)
    return Trend(slope, slope - half, slope + half, slope * gap, half * abs(gap), p)


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


def _informative(columns: list[Floats], column: Floats) -> bool:
    """Return whether ``column`` adds something that ``columns`` do not already say, and leaves 3 blocks to judge it by."""
    x = np.column_stack([*columns, column])
    return bool(
        len(column) >= x.shape[1] + 3 and np.linalg.matrix_rank(x) == x.shape[1]
    )


def _ols_hac1(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """OLS coefficients and Newey-West (one lag) standard errors, with the n / (n - k) small-sample factor."""
    inverse = np.linalg.inv(x.T @ x)
    beta: Floats = inverse @ x.T @ y
    scores = x * (y - x @ beta)[:, None]
    lagged = scores[1:].T @ scores[:-1]
    meat = scores.T @ scores + 0.5 * (lagged + lagged.T)
    n, k = x.shape
    covariance = inverse @ meat @ inverse * (n / max(n - k, 1))
    error: Floats = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return beta, error


def _two_sided_t(value: float, error: float, spare: int) -> float:
    if error == 0.0 or spare < 1:
        return 1.0
    return min(1.0, 2.0 * float(stdtr(spare, -abs(value / error))))
