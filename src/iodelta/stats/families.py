"""Families: many comparisons at once, and what may still be said about each. Simultaneous intervals: see there."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def holm(p: ArrayLike, size: int | None = None) -> Floats:
    """Holm's step-down adjusted p values (Holm 1979); nan stays nan. ``size`` is the family's planned size when more
    comparisons were planned than have a p value."""
    values, order = _ranked(p)
    count = max(size or 0, len(order))
    adjusted = np.full(values.shape, np.nan)
    steps = values[order] * (count - np.arange(len(order)))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Benjamini-Hochberg q values (1995): the false share of a list cut at q is at most q. nan stays nan."""
    values, order = _ranked(p)
    q = np.full(values.shape, np.nan)
    raw = values[order] * len(order) / np.arange(1, len(order) + 1)
    q[order] = np.minimum(1.0, np.minimum.accumulate(raw[::-1])[::-1])
    return q


def _ranked(p: ArrayLike) -> tuple[Floats, NDArray[np.intp]]:
    """Return the p values, and the places of those that are numbers from the smallest up."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    return values, order[~np.isnan(values[order])]
