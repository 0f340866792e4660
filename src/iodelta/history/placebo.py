"""Series of a machine in which nothing changes: what they say of its nights, and of how often a rule is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
        self.found = [quiet for line in lines if (quiet := _quiet(line)) is not None]
        self._candidates: dict[tuple[int, str], int] = {}

    def inflation(self, line: Line, by: str) -> tuple[float, int] | None:
        """Long-run inflation of this machine's nights and from how many it is known: of the same cell and metric, else
        the largest of the machine; None where it has no series without a change."""
        own = [
            quiet
            for quiet in self.found
            if (quiet.machine, quiet.by) == (line.key.machine, by)
        ]
        same = [
            quiet
            for quiet in own
            if (quiet.cell, quiet.metric) == (line.cell, line.key.metric)
        ]
        best = max(same or own, key=lambda quiet: quiet.inflation, default=None)
        return None if best is None else (best.inflation, best.nights)

    def count(self, machines: Iterable[str], by: str) -> tuple[int, int]:
        """Points of these machines without a change, and candidates among them."""
        wanted = set(machines)
        own = [
            quiet for quiet in self.found if quiet.machine in wanted and quiet.by == by
        ]
        return sum(quiet.nights for quiet in own), sum(map(self._counted, own))

    def _counted(self, quiet: Quiet) -> int:
        """Its candidates, counted where they are asked for: night by night is the slow part of a scan."""
        key = (quiet.line.key.number, quiet.by)
        if key not in self._candidates:
            self._candidates[key] = _candidates(quiet)
        return self._candidates[key]


def against(variant: str) -> str:
    """What the ratio of a variant's series is to: a placebo has that of its own build."""
    return "against the baseline" if variant == PLACEBO else "against the reference"


def is_quiet(line: Line) -> bool:
    """Whether nothing changes in a series but the machine."""
    return line.variant == PLACEBO or line.key.role == "reference"


def _quiet(line: Line) -> Quiet | None:
    by = "ratio" if line.variant == PLACEBO else "level"
    if not is_quiet(line):
        return None
    y, se, epochs = _followed(line, by)
    inflation = (
        levels.inflation(y, se, levels.between(y, se, epochs), epochs)
        if len(y)
        else 1.0
    )
    return Quiet(
        line.key.machine, line.cell, line.key.metric, by, len(y), inflation, line
    )


def _candidates(quiet: Quiet) -> int:
    """Those of every epoch, as they were found night by night."""
    y, se, epochs = _followed(quiet.line, quiet.by)
    parts = [epochs == epoch for epoch in np.unique(epochs)]
    candidates = [
        changepoints.online(
            y[own], se[own], threshold=changepoints.CANDIDATE, inflation=quiet.inflation
        )
        for own in parts
    ]
    return sum(map(len, candidates))


def _followed(
    line: Line, by: str
) -> tuple[levels.Floats, levels.Floats, levels.Indices]:
    """Values, errors and the number of the epoch of each."""
    points = [point for point in line.points if by == "level" or point.r is not None]
    values = [point.y if by == "level" else point.r for point in points]
    errors = [point.se if by == "level" else point.r_se for point in points]
    steadied = levels.steadied(
        np.asarray(errors, dtype=float), [point.n for point in points]
    )
    return (
        np.asarray(values, dtype=float),
        steadied,
        _numbered([one.epoch for one in points]),
    )


def _numbered(epochs: Sequence[str]) -> levels.Indices:
    """A number for each point that changes where the epoch does."""
    changes = [
        number > 0 and epoch != epochs[number - 1]
        for number, epoch in enumerate(epochs)
    ]
    return np.asarray(np.cumsum(changes), dtype=np.intp)
