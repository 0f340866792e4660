"""Carry-over: what a trial leaves behind for the next one (dirty pages, an SSD's debt, a warm cache).

With one draw per block, half of the blocks have the same order as the block before: there the baseline follows the
variant, or the variant itself. The contrast with the other blocks estimates the carry-over c with twice the standard
error of the change. The change itself is biased by c / 2, in favour of the arm that does the damage (Jones and Kenward,
Design and Analysis of Cross-Over Trials, chapter 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Level of the interval of a carry-over, at every look."""

FAR = 4.0
"""Robust standard deviations beyond which a difference is drawn in: one stall must not pass for a carry-over."""

FEWEST = 6
"""Blocks below which no carry-over is estimated."""

NORMAL_MAD = 1.4826


@dataclass(frozen=True)
class Carry:
    """Per comparison: ``value`` is the log-ratio by which a trial after the variant is worse than one after the
    baseline, ``half`` the half width of its interval (infinite where the order does not tell), ``share`` the part of
    it that lies in the change (about -1/2)."""

    value: Floats
    half: Floats
    share: Floats

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Where the interval excludes 0."""
        return np.asarray(np.abs(self.value) > self.half)

    def adjusted(self, change: Floats) -> Floats:
        """The change without what the carry-over put into it."""
        return np.asarray(change - self.share * self.value)


def carry_rows(d: Floats, contrast: Floats, level: float = LEVEL) -> Carry:
    """The carry-over in ``d``, shape (comparisons, blocks), positive = worse.

    ``contrast`` has, per block, how much more often the variant's trial followed a trial of the variant than the
    baseline's did: 1 for a predecessor that was the variant, 0 for the baseline, 1/2 for any other; the difference.
    Least squares of the winsorised differences on it, t interval.
    """
    n = d.shape[1]
    middle = np.median(d, axis=1, keepdims=True)
    reach = FAR * NORMAL_MAD * np.median(np.abs(d - middle), axis=1, keepdims=True)
    drawn_in = np.clip(d, middle - reach, middle + reach)
    x = contrast - contrast.mean(axis=1, keepdims=True)
    power = np.sum(x * x, axis=1)
    share = np.asarray(contrast.mean(axis=1))
    known = (power > 0.5) & (n >= FEWEST)
    safe = np.where(known, power, 1.0)
    y = drawn_in - drawn_in.mean(axis=1, keepdims=True)
    value = np.where(known, np.sum(x * y, axis=1) / safe, 0.0)
    left = np.sum((y - value[:, None] * x) ** 2, axis=1)
    error = np.sqrt(left / max(n - 2, 1) / safe)
    half = np.where(known, float(stdtrit(max(n - 2, 1), 0.5 + level / 2)) * error, np.inf)
    return Carry(value, half, share)


def contrast_of(baseline_first: NDArray[np.bool_]) -> Floats:
    """The contrast of blocks that follow each other without other trials between them, from their orders alone."""
    before = np.concatenate(([0.5], baseline_first[:-1].astype(float)))
    return np.asarray(np.where(baseline_first, -before, before - 1.0))
