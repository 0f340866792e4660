"""The source of charts, of whatever kind of result, and a chart: its data, its words, and its specification."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from iodelta.stats.shift import ShiftFunction
from iodelta.study.preparation import DiskAccount
from iodelta.study.timelines import Timeline
from iodelta.study.values import Values
from iodelta.study.words import inert, measured, percent
from iodelta.trial import Trial
from iodelta.verdict import Change, Metric
from iodelta.verdict.derived import KneeMove

Scale = Literal["auto", "log", "linear"]
"""The axis of values: ``auto`` is logarithmic only if a linear one would hide values."""

ALIKE = 1.5
"""Values within this factor get an axis from zero: a logarithmic one would exaggerate their differences."""

SHOWN = 6
"""Cells that get a chart of their own; those with the largest changes, where there are more."""


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison: a metric of a cell under a variant against the baseline. Changes are relative (-0.02: 2 % less);
    None is unknown. ``counted`` says of how much: ``12 blocks``, ``one run each``."""

    cell: str
    variant: str
    metric: Metric
    name: str = ""
    """The metric in words."""
    values: tuple[float | None, float | None] = (None, None)
    change: float | None
    low: float | None
    high: float | None
    word: str = "no verdict"
    says: str = ""
    counted: str = ""
    apart: str = ""
    """Why the change is not the ratio of the two values, in three words; empty where it is."""
    resolution: float | None = None
    """Half of what the digits of single runs leave open; None where there is an interval."""

    @property
    def text(self) -> str:
        """Return the change in words, with the digits that its interval, or those of single runs, make meaningful."""
        if self.half is None:
            return percent(self.change, self.resolution)
        return measured(self.change, self.low, self.high)

    @property
    def half(self) -> float | None:
        """Half the interval; None where there is none."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment or a comparison as charts see it: ``trials`` are those that count, in run order. ``variants`` begin
    with the baseline."""

    baseline: str
    variants: tuple[str, ...]
    cells: tuple[str, ...]
    margin: float
    metrics: tuple[Metric, ...] = ()
    effects: tuple[Effect, ...] = ()
    trials: tuple[Trial, ...] = ()
    ordered: bool = True
    """Whether the order of ``trials`` is the order in which they were made."""
    knees: tuple[KneeMove, ...] = ()
    shifts: tuple[tuple[str, str, ShiftFunction], ...] = ()
    sweeps: tuple[Mapping[str, int], ...] = ()
    """Depth sweeps: cell -> I/Os in flight."""
    backgrounds: Mapping[str, str] = {}
    """Cell -> the background load that ran while it was measured; without the cells that had none."""
    values: Values | None = None
    """What was measured, cell by cell."""
    timelines: tuple[Timeline, ...] = ()
    """fio's logs, chart by chart."""
    sessions: tuple[float, ...] = ()
    """Unix seconds at which the sessions of an experiment began."""
    prepared: tuple[DiskAccount, ...] = ()
    """The disks that were prepared before the first trial."""
    scale: Scale = "auto"
    """The axis of values that the user asks for."""

    @property
    def others(self) -> tuple[str, ...]:
        """Return the variants that are compared with the baseline."""
        return tuple(name for name in self.variants if name != self.baseline)

    def logarithmic(self, chosen: bool, values: Iterable[float]) -> bool:
        """Return whether the axis of a chart's values is logarithmic: as the user asks, else as the chart has
        ``chosen``. Never of a single value, or of none above zero: such an axis has no round number to show."""
        positive = [value for value in values if value > 0]
        if not positive or self.scale == "linear":
            return False
        apart = max(positive) / min(positive)
        return apart > 1 if self.scale == "log" else chosen and apart > ALIKE

    def by_cell(self) -> dict[str, list[Trial]]:
        """Return the trials of each cell that has some, in the order of ``cells``."""
        by_cell: dict[str, list[Trial]] = {cell: [] for cell in self.cells}
        for trial in self.trials:
            by_cell.setdefault(trial.cell, []).append(trial)
        return {cell: trials for cell, trials in by_cell.items() if trials}

    def telling(
        self, limit: int = SHOWN, among: Sequence[str] | None = None
    ) -> list[str]:
        """At most ``limit`` cells, in their order: all of them, or those with the clearest changes; where nothing is
        compared, the first, the last and those evenly between."""
        cells = [cell for cell in self.cells if among is None or cell in among]
        if len(cells) <= limit:
            return cells
        if not self.effects:
            step = (len(cells) - 1) / (limit - 1)
            return [cells[round(place * step)] for place in range(limit)]
        clearness = self.clearness()
        kept = set(sorted(cells, key=lambda cell: -clearness.get(cell, -1.0))[:limit])
        return [cell for cell in cells if cell in kept]

    def place(self, cell: str) -> str:
        """Return a cell's number, for the names of files: its own name may be anything."""
        at = self.cells.index(cell) + 1 if cell in self.cells else 0
        return f"{at:03d}"

    def clearness(self) -> dict[str, float]:
        """Return how far the farthest change of each cell is from none, in half intervals."""
        clearest: dict[str, float] = {}
        for effect in self.effects:
            if effect.change is not None:
                clarity = abs(effect.change) / (effect.half or 1.0)
                clearest[effect.cell] = max(clearest.get(effect.cell, -1.0), clarity)
        return clearest


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A chart: its family's specification filled with ``rows`` and ``texts``, and the same in words.

    ``alt`` says what can be seen in it, ``about`` how charts of its family are read; ``head`` and ``table`` are the
    numbers as text. ``extra`` are further named data. ``wide`` charts take the whole measure.
    """

    name: str
    spec: str
    title: str
    alt: str
    about: str = ""
    rows: Sequence[Mapping[str, Any]]
    texts: Mapping[str, Any]
    head: tuple[str, ...] = ()
    table: Sequence[Sequence[str]] = ()
    extra: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    note: str = ""
    wide: bool = False


def tabled(rows: Sequence[Mapping[str, Any]], **columns: str) -> dict[str, Any]:
    """Return the table of a figure: the texts of these fields of its rows, each below its heading."""
    table = [tuple(row[field] for field in columns) for row in rows]
    return {"head": tuple(columns.values()), "table": table}


Charts = tuple[tuple[str, tuple[Figure, ...]], ...]
"""Families with their figures."""


def ends_of(
    change: Change | None,
) -> tuple[float | None, float | None, float | None]:
    """Return the value of a change and the ends of its interval; None for what is unknown."""
    if change is None:
        return None, None, None
    return change.value, change.low, change.high


def number(value: float | None, digits: int = 6) -> float | None:
    """Return a number as it is written to a chart: six digits, None for what is unknown."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def percent_of(value: float | None) -> float | None:
    """Return a share as percent for an axis."""
    if value is None:
        return None
    return number(100 * value)


def time_step(end: float) -> tuple[float, str]:
    """Return the unit in which an axis counts a time that ends at ``end`` seconds: its length in seconds, and its name."""
    for length, unit in ((3600.0, "h"), (60.0, "min")):
        if end >= 5 * length:
            return length, unit
    return 1.0, "s"


LONG = 36
"""Characters from which on names need the whole measure of the page."""


def label(name: str, limit: int = 72) -> str:
    """Return a name for an axis: inert, and cut in its middle where it is too long, because names differ at their ends."""
    text = inert(name)
    tail = 2 * limit // 3
    if len(text) <= limit:
        return text
    return f"{text[: limit - tail - 2]}..{text[-tail:]}"


def labels(names: Sequence[str]) -> list[str]:
    """Return names for the rows of one axis. They differ, because Vega draws rows with the same name as one."""
    distinct: dict[str, None] = {}
    for name in names:
        text, count = label(name), 1
        row = text
        while row in distinct:
            count += 1
            row = f"{text} ({count})"
        distinct[row] = None
    return list(distinct)


LARGEST = 10.0
"""A change of 1000 %: what an interval reaches beyond it is drawn as an arrowhead."""


def frame(
    values: Sequence[float | None],
    bounds: Sequence[float | None],
    margin: float,
    *,
    whole: bool = False,
) -> list[float]:
    """Ends of an axis of changes, in percent: all values, and as much of their intervals as leaves them legible.

    ``whole``: all of every interval, but for the absurd.
    """
    known = [value for value in values if value is not None] or [0.0]
    largest = max(map(abs, known))
    reach = max(LARGEST, largest) if whole else 3 * max(margin, largest)
    ends = [max(-reach, min(reach, bound)) for bound in bounds if bound is not None]
    low, high = min((*known, *ends, -1.3 * margin)), max((*known, *ends, 1.3 * margin))
    room = 0.04 * (high - low)
    return [number(100 * (low - room), 4) or 0.0, number(100 * (high + room), 4) or 0.0]


def some(what: str, shown: int, total: int, *, compared: bool = True) -> str:
    """Return how many of all are shown, and which; empty where all are."""
    if shown >= total:
        return ""
    which = "from the first to the last"
    if compared:
        which = "those with the clearest changes"
    return f"Shown: {shown} of {total} {what}, {which}."
