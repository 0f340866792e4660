"""The total change: work done in the same time, as a ratio of sums over blocks.

A typical trial says nothing of a stall in every tenth. The total does: rates are added up over trials, latencies over
I/Os, and the ratio of the sums is compared. Its null comes from swapping the arms of blocks at random; the statistic
is studentised (its linearised error is estimated anew in every replay), which keeps the test honest when a few blocks
carry most of the spread (Janssen 1997). Intervals come from inverting the test over a multiplicative shift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-12
"""Share of a sum below which it counts as this share: a logarithm needs something."""


@dataclass(frozen=True)
class Arms:
    """Numerators and weights of both arms, each of shape (comparisons, blocks): a latency times its I/Os over the
    I/Os, a rate over 1. ``new`` over ``old`` above 1 is worse."""

    old: Floats
    new: Floats
    old_weight: Floats
    new_weight: Floats

    def part(self, rows: NDArray[np.intp] | slice, blocks: int) -> Arms:
        """Some comparisons, up to a number of blocks."""
        return Arms(*(column[rows, :blocks] for column in self.columns))

    @property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The four arrays."""
        return self.old, self.new, self.old_weight, self.new_weight

    def shifted(self, shift: Floats | float) -> Arms:
        """With the new arm divided by exp(``shift``), one for all comparisons or one each."""
        factor = np.exp(-np.asarray(shift, dtype=float))
        scale = factor[:, None] if factor.ndim else factor
        return Arms(self.old, self.new * scale, self.old_weight, self.new_weight)


def log_total(arms: Arms) -> tuple[Floats, Floats]:
    """Per comparison the log-ratio of the totals, positive = worse, and its linearised standard error."""
    ones = np.ones((1, arms.old.shape[1]))
    value, error = _replayed(arms, ones)
    return value[0], error[0]


def studentised(arms: Arms, signs: Floats) -> Floats:
    """The log-ratio over its error under each pattern of ``signs``, shape (patterns, comparisons)."""
    value, error = _replayed(arms, signs)
    return np.asarray(value / error)


def _replayed(arms: Arms, signs: Floats) -> tuple[Floats, Floats]:
    """Value and error, shape (patterns, comparisons), with the arms of every block as its sign says.

    A block's arms are its middle and plus or minus half its difference, so that every sum under a pattern is a
    constant plus the pattern times a vector: a few matrix products replace a loop over patterns.
    """
    n = arms.old.shape[1]
    shape = len(signs), len(arms.old)
    middle, half = (arms.new + arms.old) / 2, (arms.new - arms.old) / 2
    weight, tilt = (arms.new_weight + arms.old_weight) / 2, (arms.new_weight - arms.old_weight) / 2

    def against(vector: Floats) -> Floats | float:
        return np.asarray(signs @ vector.T) if vector.any() else 0.0  # a rate has no tilt: half of the products

    swing, lean = against(half), against(tilt)
    sums, weights = middle.sum(axis=1), weight.sum(axis=1)
    sums, weights = np.where(sums > 0, sums, 1.0), np.where(weights > 0, weights, 1.0)
    new, old = np.maximum(sums + swing, TINY * sums), np.maximum(sums - swing, TINY * sums)
    new_weight = np.maximum(weights + lean, TINY * weights)
    old_weight = np.maximum(weights - lean, TINY * weights)
    value = np.log(new / new_weight) - np.log(old / old_weight)

    # The linearised influence of a block is (v'/V' - u'/U') - (v/V - u/U); below, the sum of its squares.
    values2, values_cross = (middle**2 + half**2).sum(axis=1), against(2 * middle * half)
    weights2, weights_cross = (weight**2 + tilt**2).sum(axis=1), against(2 * weight * tilt)
    same, same_cross = (middle * weight + half * tilt).sum(axis=1), against(middle * tilt + half * weight)
    other, other_cross = (middle * weight - half * tilt).sum(axis=1), against(half * weight - middle * tilt)
    apart_values, apart_weights = (middle**2 - half**2).sum(axis=1), (weight**2 - tilt**2).sum(axis=1)
    squares = (
        (values2 + values_cross) / new**2
        + (values2 - values_cross) / old**2
        + (weights2 + weights_cross) / new_weight**2
        + (weights2 - weights_cross) / old_weight**2
        - 2 * (same + same_cross) / (new * new_weight)
        - 2 * (same - same_cross) / (old * old_weight)
        - 2 * apart_values / (new * old)
        - 2 * apart_weights / (new_weight * old_weight)
        + 2 * (other + other_cross) / (new * old_weight)
        + 2 * (other - other_cross) / (old * new_weight)
    )
    # sum of squares of influences is relative to sums; the variance of the mean of n of them, with n - 1 to spare
    error = np.sqrt(np.maximum(squares, 1e-24) * n / max(n - 1, 1))
    return np.broadcast_to(value, shape), np.broadcast_to(error, shape)


def bounds(arms: Arms, signs: Floats, level: float, *, exact: bool, steps: int = 24) -> tuple[float, float]:
    """The interval of one comparison's log total: the shifts that no one-sided test at ``level`` rejects; infinite
    where the patterns do not suffice for that level."""
    value, error = log_total(arms)
    width = max(float(error[0]), 1e-9)
    ends = []
    for side in (-1.0, 1.0):
        near, far = 0.0, 4.0 * width
        while _kept(arms, signs, float(value[0]) + side * far, side, level, exact=exact):
            near, far = far, far * 2.0
            if far > 60.0 + 4.0 * width:
                break
        if far > 60.0 + 4.0 * width:
            ends.append(side * np.inf)
            continue
        for _ in range(steps):
            between = (near + far) / 2
            if _kept(arms, signs, float(value[0]) + side * between, side, level, exact=exact):
                near = between
            else:
                far = between
            if far - near < 1e-6 + 1e-3 * width:
                break
        ends.append(float(value[0]) + side * far)
    return float(ends[0]), float(ends[1])


def _kept(arms: Arms, signs: Floats, shift: float, side: float, level: float, *, exact: bool) -> bool:
    """Whether the one-sided test of ``shift`` does not reject it."""
    moved = arms.shifted(shift)
    value, error = log_total(moved)
    seen = -side * float(value[0] / error[0])
    replayed = -side * studentised(moved, signs)[:, 0]
    hits = int(np.count_nonzero(replayed >= seen - 1e-9 * abs(seen)))
    p = hits / len(signs) if exact else (hits + 1.0) / (len(signs) + 1.0)
    return p > level * (1 + 1e-9)
