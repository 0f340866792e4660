"""The course of a change over a run: the stretch of blocks in which it differs from the rest, if any.

Assumption: the order of every block was drawn by itself. If the change is the same throughout, the log-ratios less
that change are as likely to have either sign, so the contrast of the most different stretch with the other blocks has
an exact null, by the draws that ordered the blocks (the change is estimated, which costs next to nothing). Signs cannot
show a stretch of few blocks; for these the blocks are assumed to be exchangeable, and must be further out than all others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import drawn_in
from iodelta.stats.effect import hodges_lehmann

Floats = NDArray[np.float64]

FEWEST = 8
"""Blocks below which no course is looked for."""

SHORTEST = 2
"""Blocks of a stretch, and of the rest: a single block is a stall, not a course."""

LEVEL = 0.01

PATTERNS = 300
"""Draws replayed."""

WORTH = 3.2
"""Standard deviations below which the largest contrast is no sign of anything, and nothing is replayed."""


ONCE = 0.88
"""The contrast of a stretch between two others counts for so much of that of a beginning or an end."""


@dataclass(frozen=True)
class Course:
    """Blocks ``first`` to ``last`` (places from 0) differ from the rest: log-ratios ``inside`` and ``outside``, and the
    p value of a change that is the same throughout."""

    first: int
    last: int
    inside: float
    outside: float
    p: float


def course_of(d: Floats, signs: Floats) -> Course | None:
    """Return the stretch that differs at ``LEVEL``; None where there is none. ``signs`` has one replay of the draws a
    row, and the mirror image of row i as row -1 - i."""
    n = len(d)
    if n < FEWEST or not np.isfinite(d).all():
        return None
    half = signs[: len(signs) // 2][:PATTERNS]
    values = drawn_in(d)
    centred = values - hodges_lehmann(values, 0.5).value
    starts, stops = np.triu_indices(n + 1, SHORTEST)
    kept = n - (stops - starts) >= SHORTEST
    # A stretch is a beginning, an end, or lies between two that are the rest.
    starts, stops = starts[kept], stops[kept]
    length = stops - starts
    scale = np.sqrt(length * (n - length) / n)

    def contrasts(rows: Floats) -> Floats:
        sums = np.concatenate(
            [np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1
        )
        inside = sums[:, stops] - sums[:, starts]
        rest = (sums[:, -1:] - inside) / (n - length)
        return np.asarray(np.abs(inside / length - rest) * scale)

    seen = contrasts(centred[None, :])[0]
    # A change that begins or ends once is simpler than one that does both, and has few places.
    once = (starts == 0) | (stops == n)
    best = int(np.argmax(np.where(once, seen, ONCE * seen)))
    if seen[best] < WORTH * centred.std():
        return None
    null = contrasts(half * centred).max(axis=1)
    p = float((np.count_nonzero(null >= seen[best] * (1 - 1e-9)) + 1) / (len(null) + 1))
    chosen = np.zeros(n, dtype=bool)
    chosen[starts[best] : stops[best]] = True
    few = min(int(length[best]), n - int(length[best]))
    if p > LEVEL and (
        d[chosen].max() < d[~chosen].min() or d[chosen].min() > d[~chosen].max()
    ):
        # Signs cannot show a stretch of few blocks. If all of them lie beyond all others, their places can: that the few
        # most extreme of n blocks are its first or last ones, or neighbours, happens in so many ways.
        ways = 4.0 if chosen[0] != chosen[-1] else 2.0 * n
        p = min(p, ways / math.comb(n, few))
    if p > LEVEL:
        return None
    inside, outside = (
        hodges_lehmann(d[chosen], 0.5).value,
        hodges_lehmann(d[~chosen], 0.5).value,
    )
    return Course(int(starts[best]), int(stops[best]) - 1, inside, outside, p)
