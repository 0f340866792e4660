"""A series of any length as few buckets of time, each with mean, minimum and maximum: what a chart draws of it.

A bucket that grows takes in whole narrower ones, so every level is exact: it holds what one pass over all rows with its
width would hold. Memory depends on the number of buckets alone. Times are milliseconds from 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WIDTHS = (
    *(1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000),
    *(300_000, 600_000, 3_600_000, 21_600_000, 86_400_000),
)
"""Milliseconds that a bucket may be wide: each is a multiple of the one before, and a number that people use."""

BUCKETS = 6000
"""Buckets that are kept at most."""

_AT_ONCE = 1 << 20
"""Pieces of spans that are added at once."""


class Level(NamedTuple):
    """Buckets of one width, the first beginning at 0; each array has one number for each bucket."""

    width: int
    """Milliseconds."""
    weight: Floats
    """What the values in a bucket weigh: milliseconds of spans, the number of points."""
    area: Floats
    """Sum of value times weight."""
    low: Floats
    high: Floats
    """Least and greatest value; inf and -inf where there is none."""
    amount: Floats
    """Sum of what else was counted with points, such as bytes."""

    def mean(self) -> Floats:
        """Of each bucket; nan where nothing weighs anything."""
        nothing = np.full(len(self.area), np.nan)
        means: Floats = np.divide(
            self.area, self.weight, out=nothing, where=self.weight > 0
        )
        return means

    def scaled(self, size: float) -> Floats:
        """Mean, least and greatest value times ``size``, and weight, shape (4, buckets); nan for what is not known."""
        none = np.isinf(self.low)
        low, high = np.where(none, np.nan, self.low), np.where(none, np.nan, self.high)
        return np.stack([self.mean() * size, low * size, high * size, self.weight])

    def coarser(self, width: int) -> Level:
        """Return the same in buckets of ``width``, a multiple of this one. Raises ValueError for anything else."""
        factor, rest = divmod(width, self.width)
        if rest or factor < 1:
            raise ValueError(f"{width} ms is not a multiple of {self.width} ms")
        weight, area, amount = (
            _joined(column, factor, 0.0).sum(axis=1)
            for column in (self.weight, self.area, self.amount)
        )
        low, high = (
            _joined(self.low, factor, np.inf).min(axis=1),
            _joined(self.high, factor, -np.inf).max(axis=1),
        )
        return Level(width, weight, area, low, high, amount)

    def within(self, most: int) -> Level:
        """Return the narrowest of ``WIDTHS`` that needs no more than ``most`` buckets; the widest of all if none does."""
        wider = [width for width in WIDTHS if width >= self.width]
        fitting = [
            width
            for width in wider
            if -(-len(self.weight) * self.width // width) <= most
        ]
        return self.coarser(fitting[0] if fitting else wider[-1])


def rates(level: Level, counted: Floats, end: int) -> Level:
    """Return what was counted in each bucket of ``level`` as a rate per second over it, as far as it lies before
    ``end`` ms: a level of spans. Less than half a bucket is neither the least nor the greatest."""
    covered = np.clip(
        end - np.arange(len(counted)) * level.width, 0, level.width
    ).astype(np.float64)
    area = 1000 * counted
    rate = np.divide(area, covered, out=np.zeros(len(area)), where=covered > 0)
    whole = covered >= level.width / 2
    return Level(
        level.width,
        covered,
        area,
        np.where(whole, rate, np.inf),
        np.where(whole, rate, -np.inf),
        level.amount,
    )


class Pyramid:
    """The series as it is read: any number of rows in memory that does not grow with them."""

    def __init__(self, buckets: int = BUCKETS) -> None:
        self._buckets = buckets
        nothing = np.zeros(buckets)
        low, high = np.full(buckets, np.inf), np.full(buckets, -np.inf)
        self._level = Level(
            WIDTHS[0], nothing, nothing.copy(), low, high, nothing.copy()
        )
        self._end = 0

    @property
    def end(self) -> int:
        """Milliseconds from 0 to the last thing added."""
        return self._end

    def add_points(self, times: Ints, values: Floats, amounts: Ints) -> None:
        """Values at moments, each of which weighs 1, and what else to count with each. Times are not negative."""
        if not len(times):
            return
        self._reach(int(times.max()) + 1)
        self._add(times // self._level.width, np.ones(len(times)), values)
        self._level.amount[:] += np.bincount(
            times // self._level.width,
            weights=amounts,
            minlength=len(self._level.amount),
        )

    def add_spans(self, starts: Ints, ends: Ints, values: Floats) -> None:
        """Values that held from ``starts`` to ``ends`` (0 or more, and not before the start), weighing as long. One of
        no length weighs nothing: it can be the least or greatest all the same."""
        if not len(starts):
            return
        self._reach(max(int(ends.max()), 1))
        width = self._level.width
        first = np.minimum(starts, np.maximum(ends - 1, 0)) // width
        pieces = np.maximum(-(-ends // width) - first, 1)
        reached = np.cumsum(pieces)
        cuts = np.searchsorted(
            reached, np.arange(_AT_ONCE, int(reached[-1]) + _AT_ONCE, _AT_ONCE)
        )
        done = 0
        # A span more than fits: none is left out.
        for cut in np.minimum(cuts + 1, len(starts)).tolist():
            part = slice(done, max(cut, done))
            self._add_pieces(
                starts[part], ends[part], values[part], first[part], pieces[part]
            )
            done = part.stop

    def level(self, most: int = BUCKETS) -> Level:
        """Return all that was added, in at most ``most`` buckets."""
        beyond = -(-self._end // self._level.width)
        return Level(
            self._level.width, *(column[:beyond] for column in self._level[1:])
        ).within(most)

    def _add_pieces(
        self, starts: Ints, ends: Ints, values: Floats, first: Ints, pieces: Ints
    ) -> None:
        """Spans cut where buckets end."""
        if not len(starts):
            return
        width = self._level.width
        before = np.repeat(np.cumsum(pieces) - pieces, pieces)
        place = np.repeat(first, pieces) + np.arange(len(before)) - before
        begin = np.maximum(np.repeat(starts, pieces), place * width)
        end = np.minimum(np.repeat(ends, pieces), (place + 1) * width)
        self._add(
            place,
            np.maximum(end - begin, 0).astype(np.float64),
            np.repeat(values, pieces),
        )

    def _add(self, places: Ints, weights: Floats, values: Floats) -> None:
        level = self._level
        level.weight[:] += np.bincount(
            places, weights=weights, minlength=len(level.weight)
        )
        level.area[:] += np.bincount(
            places, weights=weights * values, minlength=len(level.area)
        )
        if (places[1:] < places[:-1]).any():
            np.minimum.at(level.low, places, values)
            np.maximum.at(level.high, places, values)
            return
        # Quicker: each bucket's rows stand together.
        begin = np.flatnonzero(np.diff(places, prepend=-1))
        own = places[begin]
        level.low[own] = np.minimum(level.low[own], np.minimum.reduceat(values, begin))
        level.high[own] = np.maximum(
            level.high[own], np.maximum.reduceat(values, begin)
        )

    def _reach(self, end: int) -> None:
        """Widen the buckets until they reach ``end``. Raises ValueError for a time beyond the widest."""
        self._end = max(self._end, end)
        if self._end <= self._level.width * self._buckets:
            return
        wide = [width for width in WIDTHS if width * self._buckets >= self._end]
        if not wide:
            raise ValueError(
                f"{self._end} ms is more than {self._buckets} buckets hold"
            )
        coarse = self._level.coarser(wide[0])
        spare = self._buckets - len(coarse.weight)
        filled = zip(coarse[1:], (0.0, 0.0, np.inf, -np.inf, 0.0), strict=True)
        self._level = Level(
            coarse.width,
            *(
                np.pad(column, (0, spare), constant_values=empty)
                for column, empty in filled
            ),
        )


def _joined(column: Floats, factor: int, empty: float) -> Floats:
    """``column`` as rows of ``factor`` buckets each, the last filled up."""
    rest = -len(column) % factor
    padded = np.pad(column, (0, rest), constant_values=empty) if rest else column
    return padded.reshape(-1, factor)
