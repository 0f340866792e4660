"""The bill of an I/O: the number of instructions on its path in each class that costs more than others."""

from __future__ import annotations

from typing import Literal

import msgspec

from iodelta.path.footprint import Footprint
from iodelta.path.functions import CLASSES, USER, Cost
from iodelta.path.tables import Function

CERTAIN = 0.5
"""Least change of a class in instructions per I/O: at least half of all I/Os have one more."""

PAGES, PAGE = 20, 513
"""Pages that one of the two runs may clear in addition, and the string iterations of each page. A placebo cleared 3
(measured on 6.12)."""

STRAY = 50
"""Instructions of any other class that one of the two runs may execute in addition, but not for its I/Os."""

EXPLAINED, LEAST_CHANGE = 3, 0.05
"""Maximum number of functions that explain a change, and the least change of each."""

SAME = 0.1
"""Instructions of a class per I/O below which two paths count as equal: timer ticks cause a few hundredths."""

Word = Literal["more", "fewer", "same", ""]


class Charge(msgspec.Struct, frozen=True):
    """One class of instructions: the kernel's, per I/O."""

    kind: str
    baseline: float
    value: float
    functions: tuple[Function, ...]
    """Those that changed most."""
    bar: float
    """Least change that belongs to the I/O's path."""
    exact: bool = False
    """Whether both counts are medians over I/Os, from an anatomy; else they are means."""

    @property
    def change(self) -> float:
        """Instructions more."""
        return self.value - self.baseline

    @property
    def word(self) -> Word:
        """Return whether an I/O's path has more; empty if the counts do not show it."""
        if abs(self.change) >= self.bar:
            return "more" if self.change > 0 else "fewer"
        return "same" if abs(self.change) < SAME else ""


class Bill(msgspec.Struct, frozen=True):
    """A cell under baseline and variant, class by class."""

    cell: str
    variant: str
    charges: tuple[Charge, ...]
    """Every class of instructions."""


def bar(kind: str, ios: int) -> float:
    """Least change per I/O that shows that a path has more of a class: two runs that differ by ``ios`` I/Os may differ
    by less for other reasons."""
    if kind == "string":
        return max(10.0, PAGES * PAGE / ios)
    return max(CERTAIN, STRAY / ios)


def bill(
    cell: str,
    variant: str,
    costs: tuple[Cost, Cost],
    footprint: Footprint | None = None,
) -> Bill:
    """Return the bill of a cell from the costs of its I/Os under baseline and variant; with a ``footprint``, its
    medians, against the bar of the layout sweep, if there was one.
    """
    ios = min(cost.ios for cost in costs)
    charges = []
    for kind in CLASSES:
        before, after = (cost.classes.get(kind, {}) for cost in costs)
        names = (before.keys() | after.keys()) - {USER}
        rows = [
            Function(name, before.get(name, 0.0), after.get(name, 0.0))
            for name in names
        ]
        rows.sort(key=lambda row: (-abs(row.change), row.name))
        values = (sum(row.baseline for row in rows), sum(row.value for row in rows))
        least = bar(kind, ios)
        if footprint:
            measured = footprint.of(kind)
            values = (measured.baseline, measured.value)
            least = least if measured.bar is None else measured.bar + CERTAIN
        explained = tuple(
            row for row in rows[:EXPLAINED] if abs(row.change) >= LEAST_CHANGE
        )
        charges.append(Charge(kind, *values, explained, least, footprint is not None))
    return Bill(cell, variant, tuple(charges))
