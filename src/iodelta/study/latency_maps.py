"""fio's histogram logs over time: how many of the I/Os of each stretch of time took how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from iodelta.ingest import Run
from iodelta.ingest.model import Heat
from iodelta.study.runs import shared_folder
from iodelta.study.timelines import job_and_number
from iodelta.trial import Kind

Floats = npt.NDArray[np.float64]


class Tile(NamedTuple):
    """The I/Os of one column in one band: from when to when (seconds), how long they took (ns), and their share."""

    start: float
    end: float
    low: float
    high: float
    ios: int
    share: float
    """Of all I/Os of the column."""


class Column(NamedTuple):
    """A stretch of time: its I/Os, and the bands (ns) in which p50, p99 and the slowest lie."""

    start: float
    end: float
    ios: int
    p50: tuple[float, float]
    p99: tuple[float, float]
    slowest: tuple[float, float]


class LatencyMap(NamedTuple):
    """One direction of one histogram log."""

    name: str
    kind: Kind
    heat: Heat

    def tiles(self) -> Iterator[Tile]:
        """Those with I/Os, column by column."""
        ends, edges, counts = self._arrays()
        starts = np.concatenate([[0.0], ends[:-1]])
        totals = counts.sum(axis=1)
        for column, band in np.argwhere(counts > 0).tolist():
            count = counts[column, band]
            share = float(count / totals[column])
            times = float(starts[column]), float(ends[column])
            yield Tile(
                *times, float(edges[band]), float(edges[band + 1]), int(count), share
            )

    def quantiles(self) -> Iterator[tuple[float, float, float]]:
        """Middle of each column in seconds, p50 and p99 in ns; nan without I/O."""
        ends, _, _ = self._arrays()
        middles = (np.concatenate([[0.0], ends[:-1]]) + ends) / 2
        p50, p99 = np.frombuffer(self.heat.quantiles).reshape(2, -1)
        return zip(middles.tolist(), p50.tolist(), p99.tolist(), strict=True)

    def columns(self, most: int) -> Iterator[Column]:
        """The same in at most ``most`` stretches of time, those without I/O left out."""
        ends, edges, counts = self._arrays()
        each = -(-len(ends) // most)
        for first in range(0, len(ends), each):
            own = counts[first : first + each].sum(axis=0)
            if not own.any():
                continue
            reached = np.cumsum(own)
            bands = [
                int(np.searchsorted(reached, share * reached[-1]))
                for share in (0.5, 0.99, 1.0)
            ]
            spans = [(float(edges[band]), float(edges[band + 1])) for band in bands]
            begin = float(ends[first - 1]) if first else 0.0
            yield Column(
                begin,
                float(ends[min(first + each, len(ends)) - 1]),
                int(reached[-1]),
                *spans,
            )

    def _arrays(self) -> tuple[Floats, Floats, Floats]:
        """Ends of columns in seconds, edges of bands in ns, and counts of columns by bands."""
        ends = np.frombuffer(self.heat.ends, dtype=np.int64) / 1000
        return (
            ends,
            np.frombuffer(self.heat.edges),
            np.frombuffer(self.heat.counts).reshape(len(ends), -1),
        )


def latency_maps(sides: Mapping[str, Iterable[Run]]) -> tuple[LatencyMap, ...]:
    """One for each direction of each histogram log; those of the same name on several sides stand together."""
    maps: list[tuple[str, LatencyMap]] = []
    for side, runs in sides.items():
        logs = [run for run in runs if run.heats]
        common = shared_folder(run.place.file for run in logs)
        for run in logs:
            parts = job_and_number(run.place.file.removeprefix(common))
            name = " ".join(parts).strip()
            title = f"{side}: {name}" if side else name
            maps += [(name, LatencyMap(title, heat.kind, heat)) for heat in run.heats]
    names = list(dict.fromkeys(name for name, _ in maps))
    maps.sort(key=lambda named: (named[1].kind, names.index(named[0])))
    return tuple(latency_map for _, latency_map in maps)
