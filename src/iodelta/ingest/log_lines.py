"""A fio log over time in few buckets: single I/Os as points in time, averages as windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from iodelta.ingest.log_windows import TICK, Floats, Ints, held, too_dense, usual
from iodelta.ingest.model import Logged
from iodelta.stats.pyramid import WIDTHS, Level, Pyramid, rates

POINTS = 600
"""Buckets that are kept of a log, about the width of a chart in pixels."""

_RESTARTS = 1000
"""If the clock goes back more often than this, too many jobs share the log to derive windows."""

_COUNTED = 20
"""I/Os that a bucket should contain for a useful rate."""


class Drawn(NamedTuple):
    """One direction of a log: as points if rows have block sizes, as windows if rows may be averages; else None."""

    points: Level | None
    spans: Level | None
    end: int
    """Milliseconds from the start of the job to its last row."""


def line(drawn: Drawn, of: Logged, *, single: bool) -> tuple[Level | None, int]:
    """Return the buckets to draw, and the ms over which single I/Os were counted for minimum and maximum, or 0.

    Values are those of the log, except that single I/Os become rates in I/Os or bytes per second.
    """
    if not single or drawn.points is None:
        return drawn.spans.within(POINTS) if drawn.spans else None, 0
    if of.endswith("lat"):
        return drawn.points.within(POINTS), 0
    wanted = _COUNTED * drawn.end / max(float(drawn.points.weight.sum()), 1.0)
    fitting = [width for width in WIDTHS if width >= max(drawn.points.width, wanted)]
    fine = drawn.points.coarser(fitting[0] if fitting else WIDTHS[-1])
    level = rates(fine, fine.weight if of == "iops" else fine.amount, drawn.end)
    return level.within(POINTS), fine.width


class LineSums:
    """Sums of the rows of a log, which is read in chunks, in constant memory."""

    def __init__(self, kinds: int, *, latencies: bool) -> None:
        self._directions = [_Direction(rates=not latencies) for _ in range(kinds)]
        self._latencies = latencies
        self._last = self._job = 0
        self._windows = True

    def add(self, times: Ints, values: Floats, kinds: Ints, blocks: Ints) -> None:
        """More rows, in the order of the log."""
        sized = bool(blocks[0])
        before = np.concatenate([[self._last], times])
        # Jobs may share a log, one after the other.
        jobs = self._job + np.cumsum(np.diff(before) < -TICK)
        self._last, self._job = int(times[-1]), int(jobs[-1])
        single = sized and (self._latencies or too_dense(times, blocks))
        self._windows = self._windows and not single and self._job < _RESTARTS
        for kind in np.unique(kinds).tolist():
            rows = kinds == kind
            own = self._directions[kind]
            if sized:
                own.add_points(times[rows], values[rows], blocks[rows])
            if self._windows:
                own.add_windows(times[rows], jobs[rows], values[rows], whole=sized)

    def of(self, kind: int) -> Drawn:
        """Return one direction."""
        own = self._directions[kind]
        points, spans = own.points, own.spans if self._windows else None
        end = max(
            pyramid.end for pyramid in (own.points, own.spans, Pyramid(1)) if pyramid
        )
        return Drawn(
            points.level() if points else None, spans.level() if spans else None, end
        )


class _Direction:
    """The rows of one direction."""

    def __init__(self, *, rates: bool) -> None:
        self.points: Pyramid | None = None
        self.spans: Pyramid | None = None
        self._rates = rates
        self._last = 0
        self._job = -1
        self._width = 0.0

    def add_points(self, times: Ints, values: Floats, sizes: Ints) -> None:
        """Single I/Os."""
        self.points = self.points or Pyramid()
        self.points.add_points(times, values, sizes)

    def add_windows(
        self, times: Ints, jobs: Ints, values: Floats, *, whole: bool
    ) -> None:
        """Add averages. If ``whole``, each covers the time since the row before it; else it covers one window, and the
        windows before it had no I/O."""
        first = jobs != np.concatenate([[self._job], jobs[:-1]])
        before = np.where(first, 0, np.concatenate([[self._last], times[:-1]]))
        gaps = np.maximum(times - before, 0)
        self._last, self._job = int(times[-1]), int(jobs[-1])
        self._width = self._width or usual(*np.unique(gaps, return_counts=True))
        long = gaps.astype(np.float64) if whole else held(gaps, self._width)
        # The time before a job's first row, such as a ramp, is not in the log.
        long[first & (gaps > 1.5 * self._width)] = self._width
        starts = times - np.round(long).astype(np.int64)
        self.spans = self.spans or Pyramid()
        self.spans.add_spans(starts, times, values)
        idle = ~first & (starts > before)
        if self._rates and idle.any():
            self.spans.add_spans(before[idle], starts[idle], np.zeros(int(idle.sum())))
