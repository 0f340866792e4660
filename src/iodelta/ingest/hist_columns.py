"""A histogram log over time in few columns, each the sum of equally many rows, in constant memory."""

from __future__ import annotations

import numpy as np

from iodelta.ingest.log_windows import TICK, Ints
from iodelta.ingest.model import Heat
from iodelta.trial import BINS, Kind, bin_edges

COLUMNS = 120
"""Most columns that are drawn; twice as many are kept while a log is read."""

_BANDS = 16
"""fio's bins in one band of a chart: four bands per power of two."""

POINTS = (0.5, 0.99)
"""Quantiles that are drawn over the bands."""


class Columns:
    """The rows of one direction as they are read."""

    def __init__(self, width: int) -> None:
        self._counts = np.zeros((2 * COLUMNS, width), dtype=np.int64)
        self._ends = np.zeros(2 * COLUMNS, dtype=np.int64)
        self._rows = 0
        self._each = 1
        self._end = 0
        self._whole = True

    def add(self, times: Ints, counts: Ints, before: int) -> None:
        """Add rows: the end of each interval in ms, and its counts from bin ``before`` on, shape (rows, bins)."""
        for time, row in zip(times.tolist(), counts, strict=True):
            # If the clock goes back, jobs share the log, and their rows cannot be separated.
            self._whole = self._whole and time >= self._end - TICK
            self._end = max(self._end, time)
            if self._rows == self._each * len(self._ends):
                self._join()
            place = self._rows // self._each
            self._counts[place, before : before + len(row)] += row
            self._ends[place] = self._end
            self._rows += 1

    def heat(
        self, kind: Kind, coarse: int, scale: float, started: float | None
    ) -> Heat | None:
        """Return the columns to draw. fio joined 2^``coarse`` bins, in units of ``scale`` ns. None if the clock went
        back.
        """
        if not (self._whole and self._rows):
            return None
        while self._rows > self._each * COLUMNS:
            self._join()
        used = -(-self._rows // self._each)
        fine = np.zeros((used, BINS), dtype=np.int64)
        fine[:, np.arange(self._counts.shape[1]) << coarse] = self._counts[:used]
        joined = max(_BANDS, 1 << coarse)
        bands = fine.reshape(used, -1, joined).sum(axis=2)
        edges = np.array(
            [bin_edges(index)[0] for index in range(0, BINS, joined)], dtype=np.float64
        )
        quantiles = np.array(
            [_quantiles(self._counts[place], coarse) for place in range(used)]
        ).T
        return Heat(
            kind,
            self._ends[:used].tobytes(),
            (np.append(edges, bin_edges(BINS - 1)[1]) * scale).tobytes(),
            bands.astype(np.float64).tobytes(),
            (quantiles * scale).tobytes(),
            started,
        )

    def _join(self) -> None:
        """Add each column to its neighbour."""
        half = len(self._ends) // 2
        self._counts[:half] = self._counts[::2] + self._counts[1::2]
        self._counts[half:] = 0
        self._ends[:half] = np.maximum(self._ends[::2], self._ends[1::2])
        self._ends[half:] = 0
        self._each *= 2


def _quantiles(counts: Ints, coarse: int) -> list[float]:
    """``POINTS`` of a column, each interpolated inside its bin; nan without I/O."""
    reached = np.cumsum(counts)
    if not reached[-1]:
        return [np.nan] * len(POINTS)
    edges = []
    for point in POINTS:
        rank = point * float(reached[-1])
        place = int(np.searchsorted(reached, rank))
        low, high = (
            bin_edges(place << coarse)[0],
            bin_edges(((place + 1) << coarse) - 1)[1],
        )
        edges.append(
            high - (high - low) * (float(reached[place]) - rank) / float(counts[place])
        )
    return edges
