"""Families: many comparisons at once, as a list. Simultaneous intervals: see there."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """Benjamini-Hochberg q values (1995): the false share of a list cut at q is at most q."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    raw = values[order] * len(order) / np.arange(1, len(order) + 1)
    q = np.empty(len(values))
    q[order] = np.minimum(1.0, np.minimum.accumulate(raw[::-1])[::-1])
    return q
