"""The length of the window of each row of a bw or iops log, which is the weight of the row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_USUAL = 1 << 14
"""Milliseconds of a window up to which sums are kept in an array; longer windows are rare."""
TICK = 1
"""Milliseconds by which rows of one tick may differ: fio reads the clock again for each direction."""
_SPAN = 1 << 40
"""More milliseconds than a log covers: the offset between the rows of one job and those of the next."""
_DENSE = 2000
"""Rows, one every other millisecond or more often, that cannot be windows."""


class Gaps(NamedTuple):
    """Rows of one direction, by the time since the row before them, which their window may cover."""

    gaps: Ints
    """Milliseconds, ascending."""
    rows: Ints
    sums: Floats
    """Number of rows with each gap, and the sum of their values."""

    def area(self) -> float:
        """Value times milliseconds."""
        return float(self.sums @ self.gaps)


def usual(gaps: Ints, rows: Ints) -> float:
    """Return the usual length of a window in ms; 0 where no time passes. ``gaps``: ascending times between rows in ms;
    ``rows``: how many rows have each gap. Both of shape (gaps,).

    The median of gaps near the 5th percentile: longer ones are windows without I/O, for which fio writes no row.
    """
    passing = (gaps > 0) & (rows > 0)
    gaps, reached = gaps[passing], np.cumsum(rows[passing])
    if not len(gaps):
        return 0.0
    narrow = int(gaps[np.searchsorted(reached, 0.05 * reached[-1])])
    near = gaps <= 1.5 * narrow
    middle = int(np.searchsorted(reached[near], reached[near][-1] / 2))
    return float(gaps[near][middle])


def held(gaps: Ints, width: float) -> Floats:
    """For how many ms each row's value holds, shape of ``gaps`` (ms): ``width`` after a gap of several windows,
    because fio writes no row for a window without I/O; else the gap itself."""
    if not width:
        return gaps.astype(np.float64)
    times = np.maximum(np.round(gaps / width), 1)
    # Each window may be a millisecond longer than the one asked for.
    spare = np.maximum(2.0, 0.02 * width) * times
    several = (times > 1) & (np.abs(gaps - times * width) <= spare)
    return np.where(several, width, gaps)


def too_dense(times: Ints, blocks: Ints) -> bool:
    """Return whether rows come too often to be averages over windows. ``times``: ms since the start; ``blocks``: block
    sizes in bytes. Shape (rows,) each."""
    return (
        len(times) >= _DENSE
        and bool(blocks[0])
        and int(times.max() - times.min()) < 2 * len(times)
    )


class Windows(NamedTuple):
    """The rows of one direction as averages."""

    own: Gaps
    """By the time since the previous row of the same direction."""
    any: Gaps
    """By the time since the previous row of any direction."""

    last: Gaps
    """The gaps in ``own`` of the last rows of jobs, whose windows may be incomplete."""

    def width(self) -> float:
        """Return the usual window in ms; 0 where no time passes. Windows without I/O leave no row and do not lengthen
        it.
        """
        rows = self.own.rows.copy()
        rows[np.searchsorted(self.own.gaps, self.last.gaps)] -= self.last.rows
        return usual(self.own.gaps, rows if rows.any() else self.own.rows)

    def close(self) -> float:
        """Share of the rows that follow another within 10 ms, which no window does."""
        return float(self.own.rows[self.own.gaps < 10].sum() / self.own.rows.sum())

    def narrowest(self) -> int:
        """Return the 5th percentile of the gaps, in ms."""
        reached = np.cumsum(self.own.rows)
        return int(self.own.gaps[np.searchsorted(reached, 0.05 * reached[-1])])

    def area_by_io(self) -> float:
        """Value times milliseconds up to fio 2.9: the first I/O after a window's time ends it, in all directions."""
        return self.any.area()

    def area_by_clock(self) -> float:
        """Return the same since fio 2.10, which samples by the clock: a gap of several windows had I/O in the last
        alone.
        """
        return float(self.own.sums @ held(self.own.gaps, self.width()))

    def milliseconds(self) -> int:
        """Return the sum of all gaps."""
        return int(self.own.rows @ self.own.gaps)


class _GapSums:
    """Gaps of one direction as they are counted, in constant memory."""

    def __init__(self) -> None:
        self._rows = np.zeros(_USUAL, dtype=np.int64)
        self._sums = np.zeros(_USUAL)
        self._long: dict[int, list[float]] = {}

    def add(self, gaps: Ints, values: Floats) -> None:
        usual = gaps < _USUAL
        self._rows += np.bincount(gaps[usual], minlength=_USUAL)
        self._sums += np.bincount(gaps[usual], weights=values[usual], minlength=_USUAL)
        for gap, value in zip(
            gaps[~usual].tolist(), values[~usual].tolist(), strict=True
        ):
            # A damaged log may have any gaps, so similar ones are counted together.
            step = gap.bit_length() - _USUAL.bit_length() + 1
            counted = self._long.setdefault(gap >> step << step, [0, 0.0])
            counted[0] += 1
            counted[1] += value

    def gaps(self) -> Gaps:
        usual = np.flatnonzero(self._rows)
        longer = sorted(self._long.items())
        return Gaps(
            np.concatenate(
                [usual, np.array([gap for gap, _ in longer], dtype=np.int64)]
            ),
            np.concatenate(
                [
                    self._rows[usual],
                    np.array([int(rows) for _, (rows, _) in longer], dtype=np.int64),
                ]
            ),
            np.concatenate(
                [self._sums[usual], np.array([total for _, (_, total) in longer])]
            ),
        )


class _Direction:
    """The rows of one direction as they are counted."""

    def __init__(self) -> None:
        self._own, self._any, self._ends = _GapSums(), _GapSums(), _GapSums()
        self._gap = np.zeros(0, dtype=np.int64)
        """The gap of the last row; empty before the first row."""
        self.last = 0
        """Time of that row, in the job that is being read."""

    def add(self, times: Ints, starts: Ints, ticks: Ints, values: Floats) -> None:
        """More rows: when, when their jobs started, the last tick before each, and their values."""
        previous = np.maximum(np.concatenate([[self.last], times[:-1]]), starts)
        gaps = times - previous
        self._own.add(gaps, values)
        self._any.add(times - np.maximum(previous, ticks), values)
        known = np.concatenate([self._gap, gaps])
        of_next_job = np.flatnonzero(np.diff(starts, prepend=0)) + len(self._gap)
        ends = known[of_next_job[of_next_job > 0] - 1]
        self._ends.add(ends, np.zeros(len(ends)))
        self._gap, self.last = gaps[-1:], int(times[-1])

    def windows(self) -> Windows | None:
        """Return the windows of all rows; None without rows. Call it once, at the end."""
        self._ends.add(self._gap, np.zeros(len(self._gap)))
        if not len(self._gap):
            return None
        return Windows(self._own.gaps(), self._any.gaps(), self._ends.gaps())


class WindowSums:
    """What has been read of the rows of all directions so far, chunk by chunk, in constant memory."""

    def __init__(self, kinds: int) -> None:
        self._directions = [_Direction() for _ in range(kinds)]
        self._ticks = [0, 0]
        """Times of the last two ticks of the job that is being read."""
        self._single = False

    def add(self, times: Ints, values: Floats, kinds: Ints, blocks: Ints) -> None:
        """More rows, in the order of the log."""
        if self._single or too_dense(times, blocks):
            self._single = True
            return
        before = np.concatenate([self._ticks, times])
        # Jobs may share a log, one after the other.
        job = np.cumsum(np.diff(before, prepend=before[:1]) < -TICK)
        placed = np.maximum.accumulate(before + job * _SPAN)
        starts, own = job[2:] * _SPAN, placed[2:]
        earlier = np.searchsorted(placed, own - TICK) - 1
        ticks = np.where(earlier >= 0, placed[earlier], 0)
        for kind in np.unique(kinds).tolist():
            rows = kinds == kind
            self._directions[kind].add(
                own[rows], starts[rows], ticks[rows], values[rows]
            )
        start = int(starts[-1])
        last = int(placed[-1])
        earlier_ = int(np.searchsorted(placed, last - TICK)) - 1
        self._ticks = [max(int(placed[max(earlier_, 0)]) - start, 0), last - start]
        for direction in self._directions:
            direction.last = max(direction.last - start, 0)

    def of(self, kind: int) -> Windows | None:
        """Return those of one direction; None where its rows are too dense for windows, or were not given."""
        if self._single:
            return None
        return self._directions[kind].windows()
