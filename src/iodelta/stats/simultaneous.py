"""Simultaneous intervals: several effects seen in the same blocks, all covered at once at the stated level.

Each effect is the Hodges-Lehmann estimate of its block differences, its interval the inverted signed-rank test. The
critical value is that of the largest statistic over all effects when whole blocks change sign at random (max-T,
Westfall and Young 1993): a block is shared by all effects and carries their correlation, so effects that move together
cost less than Bonferroni's share each. With one effect it is the exact signed-rank interval.

Few blocks have too few sign patterns for ranks to bound many effects. Then t intervals stand in, around the same
estimate, with the critical value of the largest t over sign changes, or Bonferroni's where even that is too coarse.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.effect import Estimate, hodges_lehmann_rows, sign_flips, walsh_rows
from iodelta.stats.special import stdtrit

Floats = NDArray[np.float64]

COARSE = 8
"""Fewest sign patterns beyond a critical value that is taken from them."""


def simultaneous(d: Floats, *, level: float = 0.95, seed: int) -> tuple[Estimate, ...]:
    """Return one estimate per row of ``d``, shape (effects, blocks); ``level`` holds for all of them together.

    A bound is infinite where nothing holds it: one block, or too few for the ranks of a single effect. Raises
    ValueError for an empty or not finite array.
    """
    effects, blocks = d.shape
    if not effects or not blocks or not np.isfinite(d).all():
        raise ValueError(
            "simultaneous intervals need at least one effect, one block and finite differences"
        )
    centre = hodges_lehmann_rows(d, level)[0]
    low, high = _rank_intervals(d, centre, level, seed)
    if effects > 1 and blocks > 1 and not np.isfinite(low).all():
        half = _critical_t(d, level, seed) * d.std(axis=1, ddof=1) / math.sqrt(blocks)
        low, high = centre - half, centre + half
    rows = zip(centre.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(
        Estimate(value, lower, upper, level, blocks) for value, lower, upper in rows
    )


def _rank_intervals(
    d: Floats, centre: Floats, level: float, seed: int
) -> tuple[Floats, Floats]:
    """Bounds from the signed-rank statistics of all rows inverted together; infinite where there are too few blocks."""
    effects, blocks = d.shape
    away = d - centre[:, None]
    ranks = _midranks(np.abs(away))
    scale = np.sqrt((ranks**2).sum(axis=1))
    signed = np.where(away < 0, -ranks, ranks)
    # A sum of signed ranks is 2 W - size, W the Walsh averages above the centre; its sd under sign flips is scale.
    largest = (np.abs(sign_flips(blocks, seed) @ signed.T) / scale).max(axis=1)
    critical = float(np.quantile(largest, level, method="higher"))
    averages = np.sort(walsh_rows(d), axis=1)
    size = averages.shape[1]
    cut = size - np.floor((size + critical * scale) / 2 + 1e-9).astype(int)
    rows, bounded = np.arange(effects), cut > 0
    low = np.where(bounded, averages[rows, np.maximum(cut - 1, 0)], -np.inf)
    high = np.where(bounded, averages[rows, np.minimum(size - cut, size - 1)], np.inf)
    return low, high


def _midranks(rows: Floats) -> Floats:
    """Ranks within each row from 1, those of equal values averaged (``scipy.stats.rankdata``, slow to import)."""
    left, other = rows[:, :, None], rows[:, None, :]
    ranks: Floats = ((left > other).sum(axis=2) + (left >= other).sum(axis=2) + 1) / 2
    return ranks


def _critical_t(d: Floats, level: float, seed: int) -> float:
    """Critical value of the largest |t| of all rows: from sign flips of the centred rows, or Bonferroni's."""
    effects, blocks = d.shape
    signs = sign_flips(blocks, seed)
    if len(signs) * (1.0 - level) < COARSE:
        return float(stdtrit(blocks - 1, 1.0 - (1.0 - level) / (2 * effects)))
    centred = d - d.mean(axis=1, keepdims=True)
    powers = np.maximum((centred**2).sum(axis=1), 1e-300)
    sums = signs @ centred.T
    spare = np.maximum(powers - sums**2 / blocks, 1e-12 * powers)
    largest = np.abs(sums) * np.sqrt((blocks - 1) / blocks / spare)
    return float(np.quantile(largest.max(axis=1), level, method="higher"))
