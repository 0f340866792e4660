"""The level of a series of experiments whose points have known errors.

A point is the result of one experiment: a value (a mean of block log-ratios or log values) and its standard error.
Nights differ by more than those errors: ``tau`` is the sd between nights, so that a point has the variance
error^2 + tau^2. Neighbouring nights are also correlated: ``inflation`` is the long-run variance over the variance.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from iodelta.stats.special import ndtri, stdtr

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

RESOLUTION = 1e-6
"""The smallest sd of a point: equal counts of instructions have no error, and a millionth is no change of speed."""

CLIP = 3.0
"""A lone point counts as at most so many sd from the level of its neighbours."""

_MEDIAN_OF_CHI2 = 0.454936423119572
_STEPS = 60
_TINY = 1e-300


class Level(msgspec.Struct, frozen=True):
    """Weighted mean of some points and its standard error."""

    value: float
    error: float
    points: int


class Clipped(msgspec.Struct, frozen=True):
    """Values with lone outliers drawn in to ``CLIP`` sd, and the indices of those."""

    values: tuple[float, ...]
    lone: tuple[int, ...]


def checked(values: ArrayLike, errors: ArrayLike) -> tuple[Floats, Floats]:
    """Both as arrays of one length. Raises ValueError for values that are not finite and errors below zero."""
    y, se = np.asarray(values, dtype=float), np.asarray(errors, dtype=float)
    if y.ndim != 1 or y.shape != se.shape:
        raise ValueError("a series needs one error per value")
    if not np.all(np.isfinite(y)) or not np.all(np.isfinite(se)) or np.any(se < 0.0):
        raise ValueError("a series needs finite values and errors of zero or more")
    return y, se


def weights(errors: Floats, tau: float, inflation: float = 1.0) -> Floats:
    """1 / variance of each point."""
    return 1.0 / (np.maximum(errors**2 + tau**2, RESOLUTION**2) * inflation)


def steadied(errors: ArrayLike, blocks: ArrayLike) -> Floats:
    """Standard errors from few ``blocks``, protected against being small by luck: a night whose few blocks happen to
    agree would outweigh all others. The variance of a night counts ``blocks - 1`` times and the median variance of the
    series once; larger errors stay."""
    se = np.asarray(errors, dtype=float)
    if not len(se):
        return se
    n = np.maximum(np.asarray(blocks, dtype=float), 1.0)
    return np.asarray(
        np.maximum(se, np.sqrt((float(np.median(se)) ** 2 + (n - 1.0) * se**2) / n))
    )


def level(
    values: ArrayLike, errors: ArrayLike, tau: float, inflation: float = 1.0
) -> Level:
    """Return the level of points that belong to one segment. Raises ValueError without points."""
    y, se = checked(values, errors)
    if not len(y):
        raise ValueError("a level needs a point")
    w = weights(se, tau, inflation)
    return Level(float(w @ y / w.sum()), float(w.sum() ** -0.5), len(y))


def between(values: ArrayLike, errors: ArrayLike, segments: ArrayLike) -> float:
    """``tau`` by Paule and Mandel 1982 inside segments: the sd at which the weighted squares about the level of each
    segment add up to their degrees of freedom. ``segments`` numbers the segment of each point from 0; a segment of one
    point says nothing. 0 where the errors alone explain the scatter."""
    y, se = checked(values, errors)
    which = np.asarray(segments, dtype=np.intp)
    spare = len(y) - int(np.count_nonzero(np.bincount(which)))
    if spare < 1:
        return 0.0
    variances = np.maximum(se**2, RESOLUTION**2)
    tau2 = 0.0
    # The sum of squares is convex and falls with tau^2: Newton's steps from 0 never pass the root.
    for _ in range(_STEPS):
        w = 1.0 / (variances + tau2)
        mean = np.bincount(which, w * y) / np.maximum(np.bincount(which, w), _TINY)
        squares = w * (y - mean[which]) ** 2
        excess = float(squares.sum()) - spare
        if excess <= 1e-9 * spare:
            break
        tau2 += excess / float(w @ squares)
    return math.sqrt(tau2)


def robust_between(values: ArrayLike, errors: ArrayLike) -> float:
    """``tau`` about the median of all points, at which the median of the standardised squares is that of a chi-square:
    up to half of the points may be outliers, and a step makes it larger, never smaller."""
    y, se = checked(values, errors)
    squares = (y - np.median(y)) ** 2 if len(y) else y
    if len(y) < 2 or np.median(squares * weights(se, 0.0)) <= _MEDIAN_OF_CHI2:
        return 0.0
    low, high = 0.0, 2.0 * float(np.ptp(y))
    variances, ends = se**2, [(len(y) - 1) // 2, len(y) // 2]
    for _ in range(_STEPS // 2):
        middle = 0.5 * (low + high)
        # What np.median does, without its checks: they take most of a scan.
        scaled = squares / np.maximum(variances + middle**2, RESOLUTION**2)
        scaled.partition(ends)
        above = scaled[ends].mean() > _MEDIAN_OF_CHI2
        low, high = (middle, high) if above else (low, middle)
    return 0.5 * (low + high)


def clipped(
    values: ArrayLike, errors: ArrayLike, tau: float, segments: ArrayLike
) -> Clipped:
    """Draw lone outliers in to ``CLIP`` sd from the median of their segment. Two neighbours in a row that are both far
    out on one side stay as they are: they may be a step. The last point has no neighbour yet, so it is drawn in."""
    y, se = checked(values, errors)
    which = np.asarray(segments, dtype=np.intp)
    centre = np.empty_like(y)
    for segment in np.unique(which):
        centre[which == segment] = np.median(y[which == segment])
    reach = CLIP * weights(se, tau) ** -0.5
    side = np.where(np.abs(y - centre) > reach, np.sign(y - centre), 0.0)
    framed = np.concatenate([[0.0], side, [0.0]])
    supported = (framed[:-2] == side) | (framed[2:] == side)
    lone = (side != 0.0) & ~supported
    drawn = np.where(lone, centre + side * reach, y)
    return Clipped(tuple(drawn.tolist()), tuple(np.flatnonzero(lone).tolist()))


def inflation(
    values: ArrayLike, errors: ArrayLike, tau: float, segments: ArrayLike
) -> float:
    """Long-run variance over variance of standardised residuals, at least 1: by how much neighbouring nights that
    resemble each other widen the error of a level. Initial positive sequence of Geyer 1992."""
    y, se = checked(values, errors)
    which = np.asarray(segments, dtype=np.intp)
    w = weights(se, tau)
    mean = np.bincount(which, w * y) / np.maximum(np.bincount(which, w), _TINY)
    z = (y - mean[which]) * np.sqrt(w)
    n = len(z)
    power = float(z @ z)
    if n < 4 or power == 0.0:
        return 1.0
    r = np.array(
        [float(z[lag:] @ z[: n - lag]) / power for lag in range(min(n, n // 2 + 2))]
    )
    pairs = r[: 2 * (len(r) // 2)].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    kept = pairs[: ends[0]] if len(ends) else pairs
    return max(1.0, 2.0 * float(np.sum(np.minimum.accumulate(kept))) - 1.0)


def as_normal(z: float, spare: float) -> float:
    """Return the normal deviate as rare as ``z`` is among Student's t with ``spare`` degrees of freedom: for a scale
    that was estimated from few points."""
    if spare < 1.0:
        return 0.0
    # So close to the normal that both differ by less than 1e-5 of z; the sums of Student's t would get long.
    if spare > 2.5e4 * (z * z + 1.0):
        return min(abs(z), 37.0)
    return float(-ndtri(max(float(stdtr(spare, -abs(z))), _TINY)))
