"""Uncounted: what the trials of superblocks that do not count tell of those that do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.effect import log_ratios
from iodelta.verdict.series import Series

Floats = NDArray[np.float64]
Pairs = Sequence[tuple[float, float]]


def direct_of(series: Series, count: int) -> Floats:
    """The log-ratios of neighbours that followed the same arm; nan where there are none, empty outside superblocks."""
    return _ratios(series.direct[:count], series)


def steps_of(series: Series, count: int) -> Floats:
    """By how much the variant's counted trial still differs from the one of its own before it, less what the baseline's
    does; nan where one is missing, empty outside superblocks."""
    if not series.uncounted:
        return np.empty(0)
    counted = zip(series.baseline_values[:count], series.variant_values[:count], strict=True)
    return _ratios(list(counted), series) - _ratios(series.uncounted[:count], series)


def _ratios(pairs: Pairs, series: Series) -> Floats:
    """Log-ratios of the variant to the baseline, positive = worse; nan where one has no logarithm."""
    old, new = np.array(pairs, dtype=float).reshape(-1, 2).T
    found = np.full(len(old), np.nan)
    known = (old > 0) & (new > 0) & np.isfinite(old) & np.isfinite(new)
    found[known] = log_ratios(old[known], new[known], higher_is_better=series.metric.better == "higher")
    return found
