"""Series of a machine in which nothing changes: what they say of its nights, and of how often a rule is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from iodelta.experiment.model import PLACEBO
from iodelta.history.answers import HistoryPoint
from iodelta.history.store import Line
from iodelta.stats import changepoints, levels

NIGHTS = 60
"""Below so many points, how much nights resemble each other is hardly known."""

COUNTED = 3
"""Of so many series of a machine the candidates are counted: night by night is the slow part of a scan."""


class Quiet(msgspec.Struct, frozen=True):
    """One such series: by ``ratio`` a placebo against its baseline, by ``level`` the reference build."""

    series: int
    machine: str
    cell: str
    metric: str
    by: str
    nights: int
    inflation: float
    candidates: int | None = None
    """As they were found night by night; None where they were not counted."""


class Placebos:
    """All such series of a history."""

    def __init__(self, quiet: Iterable[Quiet]) -> None:
        self._of: dict[tuple[str, str], list[Quiet]] = {}
        self._by_number = {one.series: one for one in quiet}
        for one in self._by_number.values():
            self._of.setdefault((one.machine, one.by), []).append(one)
        for alike in self._of.values():
            alike.sort(key=lambda one: one.series)

    def inflation(
        self, machine: str, cell: str, metric: str, by: str
    ) -> tuple[float, int] | None:
        """Long-run inflation of this machine's nights and from how many it is known: of the same cell and metric, else
        the largest of the machine; None where it has no series without a change."""
        of_machine = self._of.get((machine, by), [])
        of_cell = [
            one for one in of_machine if (one.cell, one.metric) == (cell, metric)
        ]
        largest = max(
            of_cell or of_machine, key=lambda one: one.inflation, default=None
        )
        return None if largest is None else (largest.inflation, largest.nights)

    def of(self, series: int) -> Quiet | None:
        """Return what is known of one of them; None for any other series."""
        return self._by_number.get(series)

    def is_counted(self, quiet: Quiet) -> bool:
        """Return whether the candidates of this series are counted."""
        return quiet.series in [
            one.series for one in self._of[quiet.machine, quiet.by][:COUNTED]
        ]

    def count(self, machines: Iterable[str], by: str) -> tuple[int, int]:
        """Points of these machines without a change, and candidates among them."""
        every = [
            one for machine in set(machines) for one in self._of.get((machine, by), [])
        ]
        counted = [one for one in every if one.candidates is not None]
        return sum(one.nights for one in counted), sum(
            one.candidates or 0 for one in counted
        )


def against(variant: str) -> str:
    """Return what the ratio of a variant's series is to: a placebo has that of its own build."""
    if variant == PLACEBO:
        return "against the baseline"
    return "against the reference"


def is_quiet(line: Line) -> bool:
    """Return whether nothing changes in a series but the machine."""
    return line.variant == PLACEBO or line.key.role == "reference"


def quiet_of(line: Line) -> Quiet:
    """Return how much the nights of a series without a change scatter beyond their errors."""
    by = "ratio" if line.variant == PLACEBO else "level"
    y, se, epochs = followed_quietly(line.points, by)
    inflation = (
        levels.inflation(y, se, levels.between(y, se, epochs), epochs)
        if len(y)
        else 1.0
    )
    return Quiet(
        line.key.number,
        line.key.machine,
        line.cell,
        line.key.metric,
        by,
        len(y),
        inflation,
    )


def counted(quiet: Quiet, line: Line) -> Quiet:
    """Return the same with its candidates, epoch by epoch."""
    y, se, epochs = followed_quietly(line.points, quiet.by)
    candidates = 0
    for epoch in np.unique(epochs):
        part = epochs == epoch
        seen = y[part], se[part]
        candidates += len(
            changepoints.online(
                *seen, threshold=changepoints.CANDIDATE, inflation=quiet.inflation
            )
        )
    return msgspec.structs.replace(quiet, candidates=candidates)


def followed_quietly(
    points: Sequence[HistoryPoint], by: str
) -> tuple[levels.Floats, levels.Floats, levels.Indices]:
    """Values, errors and the number of the epoch of each point."""
    rows = [
        (point.y, point.se, point.n, point.epoch)
        if by == "level"
        else (point.r, point.r_se, point.n, point.epoch)
        for point in points
        if by == "level" or point.r is not None
    ]
    values, errors, blocks, epochs = (
        zip(*rows, strict=True) if rows else ((), (), (), ())
    )
    changes = [
        number > 0 and epoch != epochs[number - 1]
        for number, epoch in enumerate(epochs)
    ]
    steadied = levels.steadied(np.asarray(errors, dtype=float), blocks)
    return (
        np.asarray(values, dtype=float),
        steadied,
        np.asarray(np.cumsum(changes), dtype=np.intp),
    )
