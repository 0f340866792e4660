"""Series of a machine in which nothing changes: what they say of its nights, and of how often a rule is wrong."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import msgspec
import numpy as np

from iodelta.experiment.model import PLACEBO
from iodelta.history.store import Line
from iodelta.stats import changepoints, levels

NIGHTS = 60
"""Below so many points, how much nights resemble each other is hardly known."""


class Quiet(msgspec.Struct, frozen=True):
    """One such series: by ``ratio`` a placebo against its baseline, by ``level`` the reference build."""

    machine: str
    cell: str
    metric: str
    by: str
    nights: int
    inflation: float
    line: Line


class Placebos:
    """All such series of a history."""

    def __init__(self, lines: Iterable[Line]) -> None:
        quiets = map(_quiet, lines)
        self.quiet = [quiet for quiet in quiets if quiet is not None]
        self._candidates: dict[tuple[int, str], int] = {}

    def inflation(self, line: Line, by: str) -> tuple[float, int] | None:
        """Long-run inflation of this machine's nights and from how many it is known: of the same cell and metric, else
        the largest of the machine; None where it has no series without a change."""
        of_machine = self._of([line.key.machine], by)
        place = (line.cell, line.key.metric)
        of_cell = [quiet for quiet in of_machine if (quiet.cell, quiet.metric) == place]
        candidates = of_cell or of_machine
        if not candidates:
            return None
        largest = max(candidates, key=lambda quiet: quiet.inflation)
        return largest.inflation, largest.nights

    def count(self, machines: Iterable[str], by: str) -> tuple[int, int]:
        """Points of these machines without a change, and candidates among them."""
        quiets = self._of(set(machines), by)
        nights = sum(quiet.nights for quiet in quiets)
        return nights, sum(map(self._counted, quiets))

    def _of(self, machines: Container[str], by: str) -> list[Quiet]:
        of_machines = [quiet for quiet in self.quiet if quiet.machine in machines]
        return [quiet for quiet in of_machines if quiet.by == by]

    def _counted(self, quiet: Quiet) -> int:
        """Its candidates, counted where they are asked for: night by night is the slow part of a scan."""
        key = (quiet.line.key.number, quiet.by)
        if key not in self._candidates:
            self._candidates[key] = _candidates(quiet)
        return self._candidates[key]


def against(variant: str) -> str:
    """What the ratio of a variant's series is to: a placebo has that of its own build."""
    if variant == PLACEBO:
        return "against the baseline"
    return "against the reference"


def is_quiet(line: Line) -> bool:
    """Whether nothing changes in a series but the machine."""
    return line.variant == PLACEBO or line.key.role == "reference"


def _quiet(line: Line) -> Quiet | None:
    """A series without a change, and how much its nights scatter beyond their errors; None for any other series."""
    if not is_quiet(line):
        return None
    by = "ratio" if line.variant == PLACEBO else "level"
    y, se, epochs = _followed(line, by)
    inflation = 1.0
    if len(y):
        between = levels.between(y, se, epochs)
        inflation = levels.inflation(y, se, between, epochs)
    return Quiet(
        line.key.machine, line.cell, line.key.metric, by, len(y), inflation, line
    )


def _candidates(quiet: Quiet) -> int:
    """Those of every epoch, as they were found night by night."""
    y, se, epochs = _followed(quiet.line, quiet.by)
    count = 0
    for epoch in np.unique(epochs):
        part = epochs == epoch
        candidates = changepoints.online(
            y[part],
            se[part],
            threshold=changepoints.CANDIDATE,
            inflation=quiet.inflation,
        )
        count += len(candidates)
    return count


def _followed(
    line: Line, by: str
) -> tuple[levels.Floats, levels.Floats, levels.Indices]:
    """Values, errors and the number of the epoch of each."""
    is_level = by == "level"
    points = [point for point in line.points if is_level or point.r is not None]
    values = [point.y if is_level else point.r for point in points]
    errors = [point.se if is_level else point.r_se for point in points]
    blocks = [point.n for point in points]
    steadied = levels.steadied(np.asarray(errors, dtype=float), blocks)
    epochs = _numbered([point.epoch for point in points])
    return np.asarray(values, dtype=float), steadied, epochs


def _numbered(epochs: Sequence[str]) -> levels.Indices:
    """A number for each point that changes where the epoch does."""
    changes = [
        number > 0 and epoch != epochs[number - 1]
        for number, epoch in enumerate(epochs)
    ]
    return np.asarray(np.cumsum(changes), dtype=np.intp)
