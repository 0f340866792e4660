"""The honest size of a change, and how long an answer will take.

A change is called when its estimate has crossed a bound, so an estimate read there is too large: 1.06 to 2.6 times the
truth at a change of one margin and a noise of 2 to 10 %. Shrinkage corrects it: what is known of changes before any is
measured is weighed against the estimate's error (empirical Bayes; Efron 2011, "Tweedie's formula and selection bias").
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALL, SMALL_SHARE = 0.75, 0.9
"""Most changes that are asked about are of the size of the margin: normal, with this sd in margins, in this share."""

LARGE = 10.0
"""The others may be of any size: Cauchy, with this scale in margins. So a large change is left as it was measured."""

DRAWS = 2000
"""Futures replayed for a projection."""

CENTRAL = 0.6
"""What a projected range is to hold."""


class Projection(msgspec.Struct, frozen=True):
    """After how many blocks an answer comes: the median over replayed futures, and a range that holds ``share`` of
    them; infinite for "at no planned look"."""

    median: float
    low: float
    high: float
    share: float


_GRID = np.linspace(-8.0, 8.0, 801)


def honest(value: float, error: float, margin: float) -> float:
    """The median of the posterior of a change estimated as ``value`` with standard error ``error``, all log-ratios.

    Between 0 and ``value``."""
    if not error > 0.0 or not math.isfinite(value):
        return value
    at = value + error * _GRID
    small = SMALL_SHARE * np.exp(-0.5 * (at / (SMALL * margin)) ** 2) / (SMALL * math.sqrt(2 * math.pi))
    large = (1.0 - SMALL_SHARE) / (math.pi * LARGE * (1.0 + (at / (LARGE * margin)) ** 2))
    reached = np.cumsum(np.exp(-0.5 * _GRID**2) * (small + large))
    found = float(np.interp(reached[-1] / 2, reached, at))
    return min(max(found, 0.0), value) if value > 0.0 else max(min(found, 0.0), value)


def projection(
    mean: float,
    sd: float,
    n: int,
    later: Sequence[int],
    *,
    change: Sequence[float],
    equal: Sequence[float],
    margin: float,
    least: int,
    seed: int,
) -> Projection | None:
    """At how many blocks an open comparison will probably be decided; None where that cannot be told.

    ``mean`` and ``sd`` are of ``n`` log-ratios so far; ``later`` are the looks to come, ``change`` and ``equal`` their
    bounds in standard errors for a change and for equivalence, ``margin`` a log-ratio, ``least`` the blocks below which
    equivalence is not said. The true effect and spread are drawn from what was seen alone; the future is normal. (With
    the sizes that are likely beforehand, as ``honest`` has them, a range holds less often where the effect is large.)
    """
    if n < 3 or not sd > 0.0 or not later:
        return None
    rng = np.random.default_rng(seed)
    spread = sd * np.sqrt((n - 1) / rng.chisquare(n - 1, DRAWS))
    effect = mean + spread / np.sqrt(n) * rng.standard_normal(DRAWS)
    stopped = np.full(DRAWS, np.inf)
    total, done, squares = np.full(DRAWS, mean * n), n, np.full(DRAWS, (n - 1) * sd * sd + n * mean * mean)
    for at, blocks in enumerate(later):
        fresh = blocks - done
        added = effect * fresh + spread * np.sqrt(fresh) * rng.standard_normal(DRAWS)
        around = spread**2 * rng.chisquare(max(fresh - 1, 1), DRAWS) * (fresh > 1)
        squares = squares + around + added * added / fresh
        total, done = total + added, blocks
        centre = total / done
        error = np.sqrt(np.maximum(squares / done - centre**2, 1e-300) / max(done - 1, 1))
        decided = np.abs(centre) >= change[at] * error
        decided |= (np.abs(centre) + equal[at] * error <= margin) & (done >= least)
        stopped[decided & np.isinf(stopped)] = blocks
    return _range([*later], stopped)


def _range(looks: list[int], stopped: Floats) -> Projection:
    """The run of looks around the median whose share of futures is nearest to the central share; "never" comes after
    the last look."""
    ends: list[float] = [*looks, math.inf]
    mass = [float((stopped == end).mean()) for end in ends]
    median = ends.index(float(np.quantile(stopped, 0.5, method="lower")))
    best, chosen = np.inf, (median, median)
    for first in range(median + 1):
        for last in range(median, len(ends)):
            away = abs(sum(mass[first : last + 1]) - CENTRAL)
            if away < best - 1e-12:
                best, chosen = away, (first, last)
    low, high = (ends[place] for place in chosen)
    return Projection(ends[median], low, high, sum(mass[chosen[0] : chosen[1] + 1]))
