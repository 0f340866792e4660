"""Distributions of the normal, Student's t, F, the binomial and the beta, named as in scipy.special, which the tests
compare them with: numbers in, a float out; arrays in, an array out. numpy and the standard library are enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np

_TINY = 1e-307
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _each(scalar: Callable[..., float]) -> Callable[..., Any]:
    """Return ``scalar`` for numbers and, element by element, for arrays; the last 4,096 answers are remembered."""
    known = lru_cache(maxsize=4096)(scalar)

    @wraps(scalar)
    def function(*values: Any) -> Any:
        if all(np.ndim(value) == 0 for value in values):
            return known(*map(float, values))
        same = np.broadcast_arrays(*(np.asarray(value, float) for value in values))
        each = map(scalar, *(value.ravel().tolist() for value in same))
        return np.fromiter(each, float, same[0].size).reshape(same[0].shape)

    return function


_erfc = _each(math.erfc)


def ndtr(z: Any) -> Any:
    """Return the probability of the standard normal below z. Looks and levels ask for hundreds of thousands."""
    return 0.5 * _erfc(-np.asarray(z, float) * math.sqrt(0.5))


def _ndtr(z: float) -> float:
    return 0.5 * math.erfc(-z * math.sqrt(0.5))


def _log_ndtr(z: float) -> float:
    if z > -10.0:
        return math.log(_ndtr(z)) if z < 0.0 else math.log1p(-_ndtr(-z))
    fraction = 1.0
    for k in range(40, 0, -1):  # Laplace's continued fraction of Mills' ratio
        fraction = 1.0 + k / (z * z * fraction)
    return -0.5 * z * z - math.log(-z * fraction) - _HALF_LOG_TAU


def _ndtri(p: float) -> float:
    if not 0.0 < p < 1.0:
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)
    if p > 0.5:
        return -_ndtri(1.0 - p)
    # The logarithm is concave in z: Newton's steps from 0 overshoot once and then fall on the answer.
    z = 0.0
    for _ in range(60):
        log = _log_ndtr(z)
        step = (log - math.log(p)) * math.exp(log + 0.5 * z * z + _HALF_LOG_TAU)
        z -= step
        if abs(step) <= 1e-15 * abs(z):
            break
    return z


def betaln(a: Any, b: Any) -> Any:
    """Return log B(a, b)."""
    return _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)


def _beta_share(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Return I_x(a, b) for x + y = 1 and x <= (a + 1) / (a + b + 2), by its continued fraction from the far end.

    The fraction (Abramowitz and Stegun 26.5.8) then needs a number of terms in proportion to the root of the larger
    of a and b.
    """
    f: Any = 1.0
    for m in range(24 + int(4 * math.sqrt(float(np.max(np.maximum(a, b))))), -1, -1):
        f = 1.0 - (a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1) * f)
        if m:
            f = 1.0 + m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m) * f)
    log = a * np.log(np.maximum(x, _TINY)) + b * np.log(np.maximum(y, _TINY))
    return np.exp(log - betaln(a, b)) / (a * f)


def _betainc(a: float, b: float, x: float, y: float | None = None) -> float:
    y = 1.0 - x if y is None else y
    if x <= 0.0 or y <= 0.0 or math.isnan(x):
        return math.nan if math.isnan(x) else float(x > 0.0)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - float(_beta_share(b, a, y, x))
    return float(_beta_share(a, b, x, y))


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses 0, by halving until the bounds are neighbours."""
    while low < (middle := 0.5 * (low + high)) < high:
        if function(middle) < 0.0:
            low = middle
        else:
            high = middle
    return high


def _betaincinv(a: float, b: float, p: float) -> float:
    return root(lambda x: _betainc(a, b, x) - p, 0.0, 1.0)


def stdtr(freedom: Any, t: Any) -> Any:
    """Return P(T <= t) of Student's t."""
    if np.ndim(freedom) == 0 and np.ndim(t) == 0:
        return _stdtr(float(freedom), float(t))
    # Arrays at once: a search asks for thousands after every run.
    freedom, t = np.broadcast_arrays(
        np.asarray(freedom, float), np.clip(t, -1e150, 1e150)
    )
    x, y = freedom / (freedom + t * t), t * t / (freedom + t * t)
    a, b = freedom / 2, np.full(t.shape, 0.5)
    swap = x > (a + 1) / (a + 2.5)
    share = _beta_share(
        *(np.where(swap, v, w) for v, w in ((b, a), (a, b), (y, x), (x, y)))
    )
    tail = 0.5 * np.where(swap, 1.0 - share, share)
    return np.where(t > 0, 1.0 - tail, tail)


@lru_cache(maxsize=4096)
def _stdtr(freedom: float, t: float) -> float:
    if not freedom > 0.0 or math.isnan(t):
        return math.nan
    if math.isinf(freedom):
        return _ndtr(t)
    square = min(max(t, -1e150), 1e150) ** 2
    tail = 0.5 * _betainc(
        freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square)
    )
    return 1.0 - tail if t > 0 else tail


def _stdtrit(freedom: float, p: float) -> float:
    if not (0.0 < p < 1.0 and freedom > 0.0):
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)
    if p > 0.5:
        return -_stdtrit(freedom, 1.0 - p)
    if math.isinf(freedom):
        return _ndtri(p)
    # As for the normal; in s = asinh(t / sqrt(freedom)) the logarithm is concave, and straight in the tail.
    s = 0.0
    log_density = -betaln(freedom / 2, 0.5)
    for _ in range(60):
        below = _stdtr(freedom, math.sqrt(freedom) * math.sinh(s))
        step = (
            below
            * math.log(below / p)
            * math.exp(freedom * math.log(math.cosh(s)) - log_density)
        )
        s -= step
        if abs(step) <= 1e-15 * abs(s):
            break
    return math.sqrt(freedom) * math.sinh(s)


@lru_cache(maxsize=1)
def _nodes() -> Any:
    return np.polynomial.legendre.leggauss(200)


def _nctdtr(freedom: float, shift: float, t: float) -> float:
    """Return P(T <= t) of the noncentral t: the normal's probability at t, over how large the deviation may be."""
    # The deviation in units of sigma is chi / sqrt(freedom), which is 1 within 8 of its standard deviations.
    x, w = _nodes()
    reach = min(9.0 / math.sqrt(2 * freedom), 12.0)
    low = max(1.0 - reach, 0.0)
    s = low + (1.0 + reach - low) * (x + 1) / 2
    log = (freedom - 1) * np.log(s) - freedom * (s * s - 1) / 2
    weight = w * np.exp(log - log.max())
    return float(weight @ ndtr(t * s - shift) / weight.sum())


_log_gamma = _each(math.lgamma)
log_ndtr = _each(_log_ndtr)
ndtri = _each(_ndtri)
betainc = _each(_betainc)
betaincinv = _each(_betaincinv)
stdtrit = _each(_stdtrit)
nctdtr = _each(_nctdtr)


def fdtrc(first: float, second: float, ratio: float) -> float:
    """Return P(F >= ratio) with ``first`` and ``second`` degrees of freedom."""
    whole = second + first * ratio
    return _betainc(second / 2, first / 2, second / whole, first * ratio / whole)


def bdtrc(k: float, n: float, p: float) -> float:
    """Return P(more than k of n)."""
    return 1.0 if k < 0 else 0.0 if k >= n else _betainc(k + 1, n - k, p)


def bdtr(k: float, n: float, p: float) -> float:
    """Return P(at most k of n)."""
    return 0.0 if k < 0 else 1.0 if k >= n else _betainc(n - k, k + 1, 1.0 - p, p)
