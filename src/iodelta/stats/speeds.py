"""Machines with two speeds: whether whole trials run at one of two levels, and blocks compared within a level.

A machine that switches between two levels every few trials puts the distance of the levels into half of the blocks.
Where both arms visit both levels, that distance is estimated and taken out, so that the change is seen at its size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FEWEST = 12
"""Blocks below which two groups of trials are not two speeds."""

LEAST_SHARE = 0.15
"""Share of its trials that each arm must have at either speed."""

APART = 4.0
"""Distance of the levels in standard deviations inside an arm (Ashman, Bird and Zepf 1994); a uniform drift has 3.5."""

VISITS = 8
"""Changes of speed, both arms together: fewer are a step or a drift."""


def within_speed(old: Floats, new: Floats) -> tuple[Floats, Bools]:
    """Return what the two speeds add to each block's log-ratio new - old, and which comparisons have two speeds.

    ``old`` and ``new`` are logarithms, shape (comparisons, blocks), in run order. Trials are sorted into the two groups
    without regard to their arm, so the test of no change keeps its level.
    """
    rows, n = old.shape
    if n < FEWEST:
        return np.zeros_like(old), np.zeros(rows, dtype=bool)
    cut = _cuts(np.concatenate([old, new], axis=1))
    fast_old, fast_new = old > cut[:, None], new > cut[:, None]
    gap_old, apart_old = _apart(old, fast_old)
    gap_new, apart_new = _apart(new, fast_new)
    shares = np.stack([fast_old.mean(axis=1), fast_new.mean(axis=1)])
    visited = (shares >= LEAST_SHARE).all(axis=0) & (shares <= 1.0 - LEAST_SHARE).all(
        axis=0
    )
    changes = sum(
        np.count_nonzero(np.diff(fast, axis=1), axis=1) for fast in (fast_old, fast_new)
    )
    two = (
        visited
        & (apart_old >= APART)
        & (apart_new >= APART)
        & (np.asarray(changes) >= VISITS)
    )
    gap = np.where(two, (gap_old + gap_new) / 2, 0.0)
    return np.asarray((fast_new.astype(float) - fast_old) * gap[:, None]), two


def _cuts(values: Floats) -> Floats:
    """Per row the cut into two groups with the least spread inside them (Fisher 1958, two groups)."""
    ordered = np.sort(values, axis=1)
    n = ordered.shape[1]
    counts = np.arange(1, n)
    low = np.cumsum(ordered, axis=1)[:, :-1]
    total = ordered.sum(axis=1, keepdims=True)
    between = low**2 / counts + (total - low) ** 2 / (n - counts)
    best = np.argmax(between, axis=1)
    rows = np.arange(len(ordered))
    return np.asarray((ordered[rows, best] + ordered[rows, best + 1]) / 2)


def _apart(values: Floats, fast: Bools) -> tuple[Floats, Floats]:
    """Per row the distance of the two groups' means, and the same in standard deviations inside the groups."""
    upper, lower = np.maximum(fast.sum(axis=1), 1), np.maximum((~fast).sum(axis=1), 1)
    high = np.where(fast, values, 0.0).sum(axis=1) / upper
    low = np.where(fast, 0.0, values).sum(axis=1) / lower
    centred = np.where(fast, values - high[:, None], values - low[:, None])
    spread = np.sqrt(np.where(fast, centred**2, 0.0).sum(axis=1) / upper)
    other = np.sqrt(np.where(fast, 0.0, centred**2).sum(axis=1) / lower)
    gap = high - low
    return np.asarray(gap), np.asarray(
        np.sqrt(2.0) * gap / np.maximum(np.hypot(spread, other), 1e-12)
    )
