"""Has a disk reached its steady state? Asked of rounds, one value each, in the order in which they were made.

Source: SNIA Solid State Storage Performance Test Specification 2.0.2 (2020), definition of steady state: over a window
of five rounds the values range over no more than 20 % of their average, and the line of least squares through them
rises or falls by no more than 10 % of it from the first round of the window to the last.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from iodelta.stats.special import fdtrc

WINDOW = 5
"""Rounds that are looked at together."""

RANGE = 0.20
"""Largest value less smallest, of the average."""

SLOPE = 0.10
"""Change along the line of least squares, of the average."""

EXACT = 1e-9
"""Tolerance for rounding where a limit is met exactly."""

EACH = 2
"""Fewest values in each of five groups to distinguish a departure from noise."""

CHANCE = 0.001
"""Share of steady arms that noise alone may show as not steady."""


class Window(msgspec.Struct, frozen=True):
    """Five rounds that follow each other, and what the specification asks of them."""

    first: int
    """Place of its first round, from 0."""
    average: float
    """Mean of its values."""
    range: float
    """Largest value less smallest, as a share of the average."""
    slope: float
    """Change along the line of least squares from its first round to its last, as a share of the average."""
    steady: bool
    """Whether both are within their limits."""

    @property
    def last(self) -> int:
        """Place of its last round, from 0."""
        return self.first + WINDOW - 1


def window_at(values: ArrayLike, first: int) -> Window:
    """Return the window that begins at ``first``. One with an average of 0, or a value that is not finite, is not
    steady.

    Raises ValueError where there are not five values from there.
    """
    data = np.asarray(values, dtype=float)[first : first + WINDOW]
    if len(data) < WINDOW or first < 0:
        raise ValueError(
            f"a window is {WINDOW} rounds, and {len(data)} are left from round {first + 1}"
        )
    average = float(data.mean())
    if not np.isfinite(data).all() or average <= 0:
        return Window(first, average, float("inf"), float("inf"), False)
    share = data / average
    t = np.arange(WINDOW) - (WINDOW - 1) / 2
    spread = float(share.max() - share.min())
    slope = float(t @ share / (t @ t)) * (WINDOW - 1)
    steady = spread <= RANGE + EXACT and abs(slope) <= SLOPE + EXACT
    return Window(first, average, spread, slope, steady)


def last_window(values: Sequence[float]) -> Window | None:
    """Return the last five rounds; None before there are five."""
    if len(values) >= WINDOW:
        return window_at(values, len(values) - WINDOW)
    return None


def departure(values: ArrayLike) -> Window | None:
    """Return how the values of one arm, in the order of its trials, left the steady state; None without evidence for
    that.

    Five groups of neighbouring trials stand for the rounds: their means break a limit, and differ by more than the
    noise inside the groups explains (F test of one-way analysis of variance). Fewer than ten values say nothing.
    """
    data = np.asarray(values, dtype=float)
    data = data[np.isfinite(data)]
    if len(data) < WINDOW * EACH:
        return None
    groups = np.array_split(data, WINDOW)
    window = window_at([group.mean() for group in groups], 0)
    return window if not window.steady and _differ(groups) else None


def _differ(groups: Sequence[np.ndarray]) -> bool:
    """Return whether the means of groups differ by more than chance."""
    total = np.concatenate(groups)
    between = sum(
        len(group) * float(group.mean() - total.mean()) ** 2 for group in groups
    )
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    free, left = len(groups) - 1, len(total) - len(groups)
    if within <= 0:
        return between > 0
    return float(fdtrc(free, left, (between / free) / (within / left))) < CHANCE
