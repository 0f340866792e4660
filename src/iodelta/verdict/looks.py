"""The tests of one look: p values of the typical and the total change of metrics that share their blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.effect import rank_tail, tails_rows
from iodelta.stats.replay import (
    EXACT_COINS,
    critical,
    joint,
    patterns,
    share_of,
    shares,
)
from iodelta.stats.special import stdtr
from iodelta.stats.total import Arms, Replay, log_total

Floats = NDArray[np.float64]

WORTH_REPLAYING = 0.1
"""A p value above this settles nothing, so the quick approximation replaces the replay."""


@dataclass(frozen=True)
class Tested:
    """What a look tests: ``d``, log-ratios of shape (metrics, blocks), positive = worse; the arms of the totals; the
    draw that ordered each block, and whether every block had its own; ``width``, the source's resolution per metric."""

    d: Floats
    totals: Arms
    coins: tuple[int, ...]
    independent: bool
    seed: int
    width: Floats
    replays: dict[int, Replay] = field(default_factory=dict)
    """By metric the replays of its total, made on first use."""

    @cached_property
    def exact(self) -> bool:
        """Return whether every pattern of the draws is replayed."""
        return len(set(self.coins)) <= EXACT_COINS

    @cached_property
    def signs(self) -> Floats:
        """Return the patterns replayed."""
        return patterns(self.coins, self.seed)

    def replay(self, row: int) -> Replay:
        """Return the total of one metric under every pattern."""
        if row not in self.replays:
            self.replays[row] = Replay(self.totals, row, self.signs)
        return self.replays[row]

    def typical(self, shift: Floats, side: float) -> Floats:
        """Return the p values of a typical change "above ``shift``" (``side`` 1) or "below" (-1): from ranks where
        blocks were drawn one by one, else from replays."""
        d = side * (self.d - shift[:, None])
        if self.independent:
            return tails_rows(d, 0.0)[0]
        ranked = signed_ranks(d)
        return share_of(self.signs @ ranked.T, ranked.sum(axis=1), exact=self.exact)

    def total(self, shift: Floats, side: float, worth: float) -> Floats:
        """Return the same of the total; the quick p values where they are above ``worth``, and settle nothing."""
        value, error = log_total(self.totals.shifted(shift))
        p = stdtr(max(self.d.shape[1] - 1, 1), -side * value / error)
        for row in np.flatnonzero(p <= worth).tolist():
            tail = self.replay(row).tail
            p[row] = tail(float(shift[row]), side, exact=self.exact)
        return np.asarray(p)


@dataclass
class Seen:
    """One-sided p values of a look, shape (estimands, metrics): for "worse" and "better" corrected for all of them
    together, and for "inside the margin" (the larger of both sides) each by itself."""

    above: Floats
    below: Floats
    within: Floats
    statistics: float
    """Bonferroni's factor for the metrics and estimands that are replayed together."""
    parts: int = 1
    """Bonferroni's factor for sets of metrics that cannot be replayed together."""
    smallest: Floats | None = None
    """The smallest p value of all statistics in every replay; None where nothing was worth replaying."""
    exact: bool = True
    """Whether the replays are all there are."""

    def critical_at(self, level: float) -> float:
        """Return the one-sided level of a single test that the corrected ``level`` comes to."""
        if self.smallest is None:
            return level / (self.statistics * self.parts)
        return critical(
            self.smallest,
            level / self.parts,
            statistics=self.statistics,
            exact=self.exact,
        )


def seen_at(
    tested: Tested, *, margin: float, level: float, parts: int, latest: bool
) -> Seen:
    """Return the p values of one look. ``level`` is the largest that a p value will be held against, ``parts`` a
    factor for statistics of the same cell and variant that cannot be replayed with these. The ``latest`` look is always replayed:
    its intervals and what is projected from it need the level of a single test."""
    half, width, room = WORTH_REPLAYING / 2, tested.width, margin - tested.width
    # Beyond what the source's resolution may have added.
    above, below = (
        np.array([tested.typical(shift, side), tested.total(shift, side, half)])
        for shift, side in ((width, 1.0), (-width, -1.0))
    )
    statistics = float(above.size)
    smallest = None
    if latest or min(above.min(), below.min()) <= half:
        smallest = _smallest(tested)
        above, below = (
            joint(smallest, p, statistics=statistics, exact=tested.exact)
            for p in (above, below)
        )
    else:
        above, below = statistics * above, statistics * below
    above, below = np.minimum(1.0, parts * above), np.minimum(1.0, parts * below)
    # The larger p value of "above -margin" and "below margin"; replayed only where it can settle something.
    worth = min(WORTH_REPLAYING, 20 * level)
    inside = np.maximum(tested.typical(-room, 1.0), tested.typical(room, -1.0))
    low = tested.total(-room, 1.0, worth)
    worst = np.maximum(low, tested.total(room, -1.0, worth * (low.min() <= worth)))
    within = np.where(room > 0, np.array([inside, worst]), 1.0)
    return Seen(above, below, within, statistics, parts, smallest, tested.exact)


def signed_ranks(d: Floats) -> Floats:
    """Ranks of the sizes of ``d``, per row, with the signs of ``d``; 0 for 0."""
    order = np.argsort(np.abs(d), axis=1, kind="stable")
    ranks = np.empty_like(d)
    np.put_along_axis(
        ranks,
        order,
        np.arange(1.0, d.shape[1] + 1)[None, :].repeat(len(d), axis=0),
        axis=1,
    )
    return np.asarray(np.sign(d) * ranks)


def _smallest(tested: Tested) -> Floats:
    """In every replay the smallest p value of "worse", over metrics and estimands; that of "better" is its mirror."""
    n = tested.d.shape[1]
    sums = tested.signs @ signed_ranks(tested.d).T
    if tested.independent:
        contradicting = np.floor((n * (n + 1) / 2 - sums) / 2 + 1e-9).astype(int)
        p = rank_tail(n, np.clip(contradicting, 0, n * (n + 1) // 2))
    else:
        p = shares(sums)
    totals = [tested.replay(row).centre for row in range(len(tested.d))]
    smallest = np.minimum(p.min(axis=1), shares(np.column_stack(totals)).min(axis=1))
    return np.asarray(np.maximum(smallest, math.ulp(0.0)))
