"""The total change: work done in the same time, as a ratio of sums over blocks.

A typical trial does not show that every tenth trial stalls. The total does: rates are summed over trials, latencies
over I/Os, and the ratio of the sums is tested. Its null comes from swapping the arms of blocks at random; the statistic
is studentised (its linearised error is estimated anew in every replay), which keeps the test honest when a few blocks
carry most of the spread (Janssen 1997). Intervals come from inverting the test over a multiplicative shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-12
"""Lower limit of a sum, as a share of the usual one, so that it has a logarithm."""


@dataclass(frozen=True)
class Arms:
    """Numerators and weights of both arms, each of shape (comparisons, blocks): a latency times its I/Os over the
    I/Os, a rate over 1. ``new`` over ``old`` above 1 is worse."""

    old: Floats
    new: Floats
    old_weight: Floats
    new_weight: Floats

    @property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the four arrays."""
        return self.old, self.new, self.old_weight, self.new_weight

    def shifted(self, shift: Floats | float) -> Arms:
        """With the new arm divided by exp(``shift``), one for all comparisons or one each."""
        factor = np.exp(-np.asarray(shift, dtype=float))
        scale = factor[:, None] if factor.ndim else factor
        return Arms(self.old, self.new * scale, self.old_weight, self.new_weight)


def log_total(arms: Arms) -> tuple[Floats, Floats]:
    """Per comparison the log-ratio of the totals, positive = worse, and its linearised standard error."""
    n = arms.old.shape[1]
    middle = ((arms.new + arms.old) / 2).sum(axis=1, keepdims=True)
    middle = np.where(middle > 0, middle, 1.0)
    new, old = (
        np.maximum(rates.sum(axis=1, keepdims=True), TINY * middle)
        for rates in (arms.new, arms.old)
    )
    new_weight, old_weight = (
        weights.sum(axis=1, keepdims=True)
        for weights in (arms.new_weight, arms.old_weight)
    )
    value = np.log(new / new_weight) - np.log(old / old_weight)
    influence = (
        arms.new / new
        - arms.new_weight / new_weight
        - (arms.old / old - arms.old_weight / old_weight)
    )
    error = _error(np.sum(influence**2, axis=1), n)
    return np.asarray(value[:, 0]), error


def mean_with(
    values: Floats, weights: Floats, stalled: NDArray[np.bool_], share: float
) -> float:
    """Return the mean of one arm, its values over its weights, if ``share`` of its trials were like the ``stalled``
    ones.
    """
    if not stalled.any() or stalled.all():
        return float(values.sum() / weights.sum())

    def mixed(column: Floats) -> float:
        return float(
            (1.0 - share) * column[~stalled].mean() + share * column[stalled].mean()
        )

    return max(mixed(values), TINY) / mixed(weights)


def _error(squares: Floats, n: int) -> Floats:
    """From the sum of squares of influences, which are relative to sums, the error of the mean of n of them."""
    return np.asarray(np.sqrt(np.maximum(squares, 1e-24) * n / max(n - 1, 1)))


class Replay:
    """One comparison under every pattern of ``signs``, whose row i and row -1 - i are mirror images, and any shift.

    Under a pattern every sum is that of one column where the sign is + and of another where it is -: half of both sums
    plus half of the pattern times their difference. A shift scales the new arm, so the products with the patterns are
    made once. A pattern's mirror image has the same size and the other sign, so half of the patterns suffice.
    """

    def __init__(self, arms: Arms, row: int, signs: Floats) -> None:
        old, new, old_weight, new_weight = (column[row] for column in arms.columns)
        self._n = len(old)
        self._weighted = not (new_weight == 1.0).all() or not (old_weight == 1.0).all()
        columns = [new, old, new**2, old**2]
        if self._weighted:
            columns += [new_weight, old_weight, new_weight**2, old_weight**2]
            columns += [
                new * new_weight,
                old * old_weight,
                new * old_weight,
                old * new_weight,
            ]
        self._sums = [float(column.sum()) for column in columns]
        run = np.array(self._sums)[:, None]  # the pattern that was run comes first
        self._products = np.concatenate(
            [run, np.array(columns) @ signs[: len(signs) // 2].T], axis=1
        )
        self._across, self._weights_across = (
            float(new @ old),
            float(new_weight @ old_weight),
        )

    @cached_property
    def centre(self) -> Floats:
        """Return the statistic of every pattern without a shift."""
        half = self._central[1:]
        return np.concatenate([half, -half[::-1]])

    @cached_property
    def _central(self) -> Floats:
        return self._half(0.0)

    def tail(
        self, shift: float, side: float, *, exact: bool, tolerance: float = 1e-9
    ) -> float:
        """Return the one-sided p value of "above ``shift``" (``side`` 1) or "below" (-1): the share of patterns as
        extreme, the one that was run counted among them where the patterns are drawn."""
        central = self._central if shift == 0.0 else self._half(shift)
        seen, half = side * float(central[0]), central[1:]
        least = seen - tolerance * max(abs(seen), 1e-300)
        hits = int(np.count_nonzero(half >= least) + np.count_nonzero(-half >= least))
        # The actual pattern is as extreme as itself, whatever the rounding.
        hits = max(hits, 1) if exact else hits
        count = 2 * len(half)
        return hits / count if exact else (hits + 1.0) / (count + 1.0)

    def _pair(
        self, plus: int, minus: int, scale: float, other: float
    ) -> tuple[Floats, Floats]:
        """Return the sum of the column ``plus``, scaled, where the sign is + and else of ``minus``, by its ``other``
        scale; and the sum the other way round."""
        middle = (scale * self._sums[plus] + other * self._sums[minus]) / 2
        swing = (scale / 2) * self._products[plus] - (other / 2) * self._products[minus]
        return middle + swing, middle - swing

    def _half(self, shift: float) -> Floats:
        """Return the statistic of the pattern that was run and of the first half of all, with the new arm divided by
        exp(``shift``)."""
        factor = math.exp(-shift)
        middle = (factor * self._sums[0] + self._sums[1]) / 2
        least = TINY * (middle if middle > 0 else 1.0)
        new, old = (np.maximum(rates, least) for rates in self._pair(0, 1, factor, 1.0))
        new_squares, old_squares = self._pair(2, 3, factor**2, 1.0)
        squares = (
            new_squares / new**2
            + old_squares / old**2
            - (2 * factor * self._across) / (new * old)
        )
        value = np.log(new / old)
        if self._weighted:
            value, squares = self._weigh(value, squares, (new, old), factor)
        return np.asarray(value / _error(squares, self._n))

    def _weigh(
        self, value: Floats, squares: Floats, sums: tuple[Floats, Floats], factor: float
    ) -> tuple[Floats, Floats]:
        """Value and squares with the weights: a block's influence is (v'/V' - u'/U') - (v/V - u/U), v the values and u
        the weights, dashes for the new arm."""
        new, old = sums
        new_weight, old_weight = self._pair(4, 5, 1.0, 1.0)
        new_squares, old_squares = self._pair(6, 7, 1.0, 1.0)
        new_same, old_same = self._pair(8, 9, factor, 1.0)
        new_other, old_other = self._pair(10, 11, factor, 1.0)
        squares = (
            squares
            + new_squares / new_weight**2
            + old_squares / old_weight**2
            - 2 * self._weights_across / (new_weight * old_weight)
            - 2 * new_same / (new * new_weight)
            - 2 * old_same / (old * old_weight)
            + 2 * new_other / (new * old_weight)
            + 2 * old_other / (old * new_weight)
        )
        return value - np.log(new_weight / old_weight), squares


def bounds(
    arms: Arms, signs: Floats, level: float, *, exact: bool, steps: int = 24
) -> tuple[float, float]:
    """Return the interval of one comparison's log total: the shifts that no one-sided test at ``level`` rejects;
    infinite where the patterns do not suffice for that level."""
    if 1.0 / (len(signs) + (not exact)) > level * (1 + 1e-9):
        return -math.inf, math.inf
    value, error = (float(part[0]) for part in log_total(arms))
    replay, width = Replay(arms, 0, signs), max(error, 1e-9)

    def kept(side: float, far: float) -> bool:
        return replay.tail(value + side * far, -side, exact=exact) > level * (1 + 1e-9)

    ends = []
    for side in (-1.0, 1.0):
        near, far = 0.0, 4.0 * width
        while kept(side, far):
            near, far = far, far * 2.0
            if far > 60.0 + 4.0 * width:
                break
        if far > 60.0 + 4.0 * width:
            ends.append(side * np.inf)
            continue
        for _ in range(steps):
            between = (near + far) / 2
            near, far = (between, far) if kept(side, between) else (near, between)
            if far - near < 1e-6 + 1e-3 * width:
                break
        ends.append(value + side * far)
    return float(ends[0]), float(ends[1])
