"""How long an answer will take, by replaying the looks to come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import own_change
from iodelta.stats.effect import not_above_rows, not_below_rows, rank_cut
from iodelta.stats.special import stdtrit

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

DRAWS = 1000
"""Futures replayed for a projection."""

RANKED = 32
"""Blocks up to which futures are tested by ranks."""

LARGEST = 2.0
"""Standard deviations of the largest of some thirty normal values: so far from the others a stall is in a t test, which
stands for the ranks of more blocks."""

CENTRAL = 0.6
"""Share of futures that a projected range should hold."""


class Projection(msgspec.Struct, frozen=True):
    """After how many blocks an answer comes: the median over replayed futures, and a range that holds ``share`` of
    them; infinite for "at no planned look", where ``open`` of them end.

    ``share`` is what the range holds on average over the changes that the looks so far leave possible. At any one true
    change it holds more or less, since all blocks so far err together: no range made of nine blocks can do better.
    """

    median: float
    low: float
    high: float
    share: float
    open: float


class Doubt(msgspec.Struct, frozen=True):
    """What may have made an estimated change (a carry-over): ``value`` of it, known to ``error``. From ``noticed`` such
    errors on it is shown, and neither an improvement that it favours nor equivalence is said. An improvement must be
    ``asked`` standard errors of what is left without it, a regression a change of its own. What is held against an
    improvement is known to ``wider`` such errors."""

    value: float
    error: float
    asked: float
    noticed: float
    wider: float = 1.0


class Hurdles(msgspec.Struct, frozen=True):
    """What decides at the looks to come: the one-sided levels of a single test for a change and for equivalence, look
    by look, the ``margin`` as a log-ratio, and the blocks below which equivalence is not said. ``spare`` has the
    degrees of freedom of a t test at each look; empty: blocks are tested by ranks. ``taken`` is how much of the margin
    stalls so far take from equivalence at each look; empty: nothing."""

    change: tuple[float, ...]
    equal: tuple[float, ...]
    margin: float
    least: int
    spare: tuple[int, ...] = ()
    taken: tuple[float, ...] = ()
    asked: tuple[float, ...] = ()
    """Log-ratio by which a change must be better at each look for stalls so far not to take it back; empty: any."""


def projection(
    value: float,
    d: Floats,
    later: Sequence[int],
    hurdles: Hurdles,
    *,
    seed: int,
    doubt: Doubt | None = None,
    calm: Bools | None = None,
) -> Projection | None:
    """At how many blocks an open comparison will probably be decided; None where that cannot be told.

    ``d`` are the log-ratios so far and ``value`` the change they show; ``later`` are the looks to come. The true effect
    and spread are drawn from what was seen alone; the future is normal. ``doubt`` is taken off the change in every future, and
    comes to be known better there, too. ``calm`` are the blocks in which no trial stalled: the noise to
    come is theirs. Default: all of them.
    """
    n, calm_d = len(d), d if calm is None else d[calm]
    known = len(calm_d)
    sd = float(np.std(calm_d, ddof=1)) if known >= 3 else 0.0
    if not sd > 0.0 or not later:
        return None
    rng = np.random.default_rng(seed)
    spread = sd * np.sqrt((known - 1) / rng.chisquare(known - 1, DRAWS))
    effect = value + spread / np.sqrt(known) * rng.standard_normal(DRAWS)
    off = _Off(doubt or Doubt(0.0, 0.0, 0.0, 1.0), n, rng)
    values = np.repeat(d[None, :], DRAWS, axis=0)
    near = (
        d
        if calm is None
        else np.where(calm, d, np.clip(d, value - LARGEST * sd, value + LARGEST * sd))
    )
    total, squares = np.full(DRAWS, near.sum()), np.full(DRAWS, np.sum(near**2))
    stopped, done = np.full(DRAWS, np.inf), n
    for at, blocks in enumerate(later):
        fresh = blocks - done
        if blocks <= RANKED:
            new = effect[:, None] + spread[:, None] * rng.standard_normal(
                (DRAWS, fresh)
            )
            values = np.hstack([values, new])
            added, around = (
                new.sum(axis=1),
                np.sum((new - new.mean(axis=1, keepdims=True)) ** 2, axis=1),
            )
        else:
            added = effect * fresh + spread * np.sqrt(fresh) * rng.standard_normal(
                DRAWS
            )
            around = spread**2 * rng.chisquare(max(fresh - 1, 1), DRAWS) * (fresh > 1)
        total, squares, done = (
            total + added,
            squares + around + added * added / fresh,
            blocks,
        )
        look = _Look(
            values,
            blocks,
            (total, squares),
            hurdles.spare[at] if hurdles.spare else None,
        )
        room = hurdles.margin - (hurdles.taken[at] if hurdles.taken else 0.0)
        worse, better, inside = off.survivors(look, fresh, hurdles.margin)
        tail, asked = hurdles.change[at], hurdles.asked[at] if hurdles.asked else 0.0
        decided = (look.above(0.0, tail) & worse) | (look.below(-asked, tail) & better)
        if blocks >= hurdles.least and room > 0.0:
            decided |= inside & look.inside(room, hurdles.equal[at])
        stopped[decided & np.isinf(stopped)] = blocks
    return _range([*later], stopped)


class _Look:
    """Futures at one look."""

    def __init__(
        self,
        values: Floats,
        blocks: int,
        sums: tuple[Floats, Floats],
        spare: int | None,
    ) -> None:
        self._values, self.blocks = values, blocks
        self._ranked = spare is None and values.shape[1] == blocks
        self._spare = max(1, blocks - 1 if spare is None else spare)
        total, squares = sums
        self.centre = total / blocks
        self.error = np.sqrt(
            np.maximum(squares / blocks - self.centre**2, 1e-300) / max(blocks - 1, 1)
        )

    def above(self, mu: float, tail: float) -> Bools:
        """Where a change above ``mu`` is shown: by ranks, which few blocks hold back, and where there are more by a t
        test, which comes to the same."""
        if self._ranked:
            return np.asarray(
                not_above_rows(self._values, mu) < rank_cut(self.blocks, tail)
            )
        return np.asarray(self.centre - mu >= self._reach(tail))

    def below(self, mu: float, tail: float) -> Bools:
        """Where a change below ``mu`` is shown."""
        if self._ranked:
            return np.asarray(
                not_below_rows(self._values, mu) < rank_cut(self.blocks, tail)
            )
        return np.asarray(mu - self.centre >= self._reach(tail))

    def inside(self, margin: float, tail: float) -> Bools:
        """Where both sides of the margin are excluded."""
        return self.above(-margin, tail) & self.below(margin, tail)

    def _reach(self, tail: float) -> Floats:
        return -float(stdtrit(self._spare, max(tail, 1e-12))) * self.error


class _Off:
    """A doubt over the futures."""

    def __init__(self, doubt: Doubt, n: int, rng: np.random.Generator) -> None:
        self._rng, self._n, self._doubt = rng, n, doubt
        # Assumption: most machines carry nothing over, so the estimate is shrunk half way to 0.
        self._true = doubt.value / 2 + doubt.error / math.sqrt(2) * rng.standard_normal(
            DRAWS
        )
        self._total = np.full(DRAWS, doubt.value * n)

    def survivors(
        self, look: _Look, fresh: int, margin: float
    ) -> tuple[Bools, Bools, Bools]:
        """Where it leaves a regression, an improvement and equivalence; ``fresh`` blocks are new at the look."""
        doubt = self._doubt
        noise = (
            doubt.error * math.sqrt(self._n * fresh) * self._rng.standard_normal(DRAWS)
        )
        self._total += self._true * fresh + noise
        off, unsure = (
            self._total / look.blocks,
            doubt.error * math.sqrt(self._n / look.blocks),
        )
        left = look.centre - off
        asked = doubt.asked * np.hypot(look.error, doubt.wider * unsure)
        shown = np.abs(off) > doubt.noticed * unsure
        worse = own_change(
            look.centre, look.error, off, np.full(DRAWS, unsure), look.blocks
        )
        better = (left < -asked) & ~(shown & (off < 0.0))
        return worse, better, (np.abs(left) <= margin) & ~shown


def _range(looks: list[int], stopped: Floats) -> Projection:
    """Return the shortest run of looks around the median whose share of futures is nearest to the central share;
    "never" comes after the last look."""
    ends: list[float] = [*looks, math.inf]
    mass = [float((stopped == end).mean()) for end in ends]
    median = ends.index(float(np.quantile(stopped, 0.5, method="lower")))
    runs = [
        (first, last)
        for first, last in product(range(median + 1), range(median, len(ends)))
    ]
    chosen = min(
        runs,
        key=lambda run: (
            round(abs(sum(mass[run[0] : run[1] + 1]) - CENTRAL), 9),
            run[1] - run[0],
        ),
    )
    low, high = (ends[place] for place in chosen)
    return Projection(
        ends[median], low, high, sum(mass[chosen[0] : chosen[1] + 1]), mass[-1]
    )
