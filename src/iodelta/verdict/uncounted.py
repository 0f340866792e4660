"""Uncounted: what the uncounted trials of superblocks show about the counted ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import MEMORIES, approach
from iodelta.stats.effect import log_ratios
from iodelta.verdict.series import Pair, Series

Floats = NDArray[np.float64]

MISSING = (np.nan, np.nan)


def direct_of(series: Series, count: int) -> Floats:
    """Return the log-ratios of neighbours that followed the same arm; nan where there are none, empty outside
    superblocks.
    """
    return _ratios(series.direct[:count], series)


def ahead_in(series: Series, count: int) -> Floats:
    """Per memory and block how far the variant's state is from being reached after its counted trial, less the same for
    the baseline; nan where a trial is missing. No blocks outside superblocks."""
    if not series.uncounted:
        return np.empty((len(MEMORIES), 0))
    weights = approach(series.conditioning)
    before = weights.shape[1] - 1
    counted = zip(
        series.baseline_values[:count], series.variant_values[:count], strict=True
    )
    padded = [(MISSING,) * before + pairs for pairs in series.uncounted[:count]]
    trials = []
    for back in range(before, 0, -1):
        trials.append(_ratios([pairs[-back] for pairs in padded], series))
    return np.asarray(weights @ np.array([*trials, _ratios(list(counted), series)]))


def _ratios(pairs: Sequence[Pair], series: Series) -> Floats:
    """Log-ratios of the variant to the baseline, positive = worse; nan where one has no logarithm."""
    old, new = np.array(pairs, dtype=float).reshape(-1, 2).T
    ratios = np.full(len(old), np.nan)
    known = (old > 0) & (new > 0) & np.isfinite(old) & np.isfinite(new)
    ratios[known] = log_ratios(
        old[known], new[known], higher_is_better=series.metric.better == "higher"
    )
    return ratios
