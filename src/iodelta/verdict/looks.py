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
    """What a look tests: ``d``, log-ratios of shape (metrics, blocks), positive = worse; the arms of the totals (None:
    no total); the draw that ordered each block, and whether every block had its own; ``resolution`` per metric."""

    d: Floats
    totals: Arms | None
    coins: tuple[int, ...]
    independent: bool
    seed: int
    resolution: Floats | None = None
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
        assert self.totals is not None
        if row not in self.replays:
            self.replays[row] = Replay(self.totals, row, self.signs)
        return self.replays[row]

    def width(self) -> Floats:
        """Return the resolution per metric; zeros where it is exact."""
        return np.zeros(len(self.d)) if self.resolution is None else self.resolution


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
    # Signed-rank p values of "worse" and "better" than 0, beyond what the source's resolution may have added.
    width = tested.width()
    if not width.any():
        typical = _rank_tails(tested, np.zeros(len(width)))
    else:
        typical = (_rank_tails(tested, width)[0], _rank_tails(tested, -width)[1])
    total = _total(tested)
    above = np.array([typical[0], *([total[0]] if total else [])])
    below = np.array([typical[1], *([total[1]] if total else [])])
    statistics = float(above.size)
    smallest = None
    if latest or min(above.min(), below.min()) <= WORTH_REPLAYING / 2:
        smallest = _smallest(tested)
        above, below = (
            joint(smallest, p, statistics=statistics, exact=tested.exact)
            for p in (above, below)
        )
    else:
        above, below = statistics * above, statistics * below
    above, below = np.minimum(1.0, parts * above), np.minimum(1.0, parts * below)
    # The larger p value of "above -margin" and "below margin", the resolution taken off the margin.
    room = margin - tested.width()
    inside = np.maximum(_rank_tails(tested, -room)[0], _rank_tails(tested, room)[1])
    within = [np.where(room > 0, inside, 1.0)]
    if tested.totals is not None:
        within.append(_total_within(tested, margin, level))
    return Seen(
        above, below, np.array(within), statistics, parts, smallest, tested.exact
    )


def _rank_tails(tested: Tested, mu: Floats) -> tuple[Floats, Floats]:
    """Return the p values of "above mu" and "below mu", from ranks where blocks were drawn one by one, else from
    replays.
    """
    if tested.independent:
        return tails_rows(tested.d - mu[:, None], 0.0)
    ranked = signed_ranks(tested.d - mu[:, None])
    replayed = tested.signs @ ranked.T
    seen = ranked.sum(axis=1)
    return share_of(replayed, seen, exact=tested.exact), share_of(
        -replayed, -seen, exact=tested.exact
    )


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


def _student(arms: Arms) -> tuple[Floats, Floats]:
    """Quick one-sided p values of the totals."""
    value, error = log_total(arms)
    t = value / error
    spare = max(arms.old.shape[1] - 1, 1)
    return stdtr(spare, -t), stdtr(spare, t)


def _total(tested: Tested) -> tuple[Floats, Floats] | None:
    """P values of "worse" and "better" totals; the quick ones where a replay would settle nothing."""
    if tested.totals is None:
        return None
    width = tested.width()
    above, below = _student(tested.totals.shifted(width))
    if width.any():
        below = _student(tested.totals.shifted(-width))[1]
    for row in np.flatnonzero(np.minimum(above, below) <= WORTH_REPLAYING / 2):
        replay = tested.replay(int(row))
        above[row] = replay.tail(float(width[row]), 1.0, exact=tested.exact)
        below[row] = replay.tail(-float(width[row]), -1.0, exact=tested.exact)
    return above, below


def _total_within(tested: Tested, margin: float, level: float) -> Floats:
    """Return the larger p value of a total "above -margin" and "below margin"; replayed only where it can settle
    something.
    """
    assert tested.totals is not None
    room = margin - tested.width()
    quick = np.maximum(
        _student(tested.totals.shifted(-room))[0],
        _student(tested.totals.shifted(room))[1],
    )
    p = np.where(room > 0, quick, 1.0)
    for row in np.flatnonzero((p <= WORTH_REPLAYING) & (p <= 20 * level)):
        replay = tested.replay(int(row))
        low = replay.tail(-float(room[row]), 1.0, exact=tested.exact)
        high = replay.tail(float(room[row]), -1.0, exact=tested.exact)
        p[row] = max(low, high)
    return p


def _smallest(tested: Tested) -> Floats:
    """In every replay the smallest p value of "worse", over metrics and estimands; that of "better" is its mirror."""
    signs = tested.signs
    ranked = signed_ranks(tested.d)
    n = tested.d.shape[1]
    sums = signs @ ranked.T
    if tested.independent:
        contradicting = np.floor((n * (n + 1) / 2 - sums) / 2 + 1e-9).astype(int)
        p = rank_tail(n, np.clip(contradicting, 0, n * (n + 1) // 2))
    else:
        p = shares(sums)
    smallest = p.min(axis=1)
    if tested.totals is not None:
        totals = np.column_stack(
            [tested.replay(row).centre for row in range(len(tested.d))]
        )
        smallest = np.minimum(smallest, shares(totals).min(axis=1))
    return np.asarray(np.maximum(smallest, math.ulp(0.0)))
