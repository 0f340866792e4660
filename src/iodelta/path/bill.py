"""The bill of an I/O: how many instructions its path holds of the classes that cost more than others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from iodelta.path.footprint import Footprint, Measured
from iodelta.path.functions import CLASSES, USER, Cost
from iodelta.path.tables import Costs, Function

CERTAIN = 0.5
"""Instructions of a class per I/O: half of all I/Os must have one more before a path has."""

PAGES, PAGE = 20, 513
"""Pages that one of the two runs may clear more than the other, and the string iterations of each: a placebo cleared 3
(measured on 6.12)."""

STRAY = 50
"""Instructions of any other class that one of the two runs may execute more than the other, not for its I/Os."""

EXPLAINED, TOLD = 3, 0.05
"""Functions that explain a change, and what each must have changed by."""

SAME = 0.1
"""Instructions of a class per I/O below which two paths hold as many: ticks of the timer make some hundredths."""

Word = Literal["more", "fewer", "same", ""]


class Charge(msgspec.Struct, frozen=True):
    """One class of instructions: the kernel's, per I/O."""

    kind: str
    baseline: float
    value: float
    functions: tuple[Function, ...]
    """Those that changed most."""
    bar: float
    """A change from this on is of the I/O's path."""
    exact: bool = False
    """Whether both counts are medians over I/Os, of an anatomy; else they are means."""

    @property
    def change(self) -> float:
        """Instructions more."""
        return self.value - self.baseline

    @property
    def word(self) -> Word:
        """Whether an I/O's path holds more; empty where the counts do not tell."""
        if abs(self.change) < self.bar:
            return "same" if abs(self.change) < SAME else ""
        return "more" if self.change > 0 else "fewer"


class Bill(msgspec.Struct, frozen=True):
    """A cell under baseline and variant, class by class."""

    cell: str
    variant: str
    charges: tuple[Charge, ...]
    """Every class of instructions."""


def bill(
    cell: str,
    variant: str,
    costs: tuple[Cost, Cost],
    footprint: Footprint | None = None,
) -> Bill:
    """The bill of a cell, from what its I/Os cost under baseline and variant: with a ``footprint`` its medians."""
    ios = min(cost.ios for cost in costs)
    charges = [
        _charge(kind, ios, *(cost.classes.get(kind, {}) for cost in costs))
        for kind in CLASSES
    ]
    if footprint:
        charges = [_exact(one, footprint.of(one.kind)) for one in charges]
    return Bill(cell, variant, tuple(charges))


def _exact(charge: Charge, measured: Measured) -> Charge:
    """The same with medians, and the sweep over layouts as its bar, where there was one."""
    bar = charge.bar if measured.bar is None else measured.bar + CERTAIN
    return msgspec.structs.replace(
        charge, baseline=measured.baseline, value=measured.value, bar=bar, exact=True
    )


def bar(kind: str, ios: int) -> float:
    """From which change on, per I/O, a path holds more of a class: more than two runs that differ by ``ios`` I/Os
    may differ by for other reasons."""
    if kind == "string":
        return max(10.0, PAGES * PAGE / ios)
    return max(CERTAIN, STRAY / ios)


def _charge(kind: str, ios: int, before: Costs, after: Costs) -> Charge:
    rows = list(_kernel(before, after))
    rows.sort(key=lambda row: (-abs(row.change), row.name))
    explained = [row for row in rows[:EXPLAINED] if abs(row.change) >= TOLD]
    totals = (sum(row.baseline for row in rows), sum(row.value for row in rows))
    return Charge(kind, *totals, tuple(explained), bar(kind, ios))


def _kernel(before: Costs, after: Costs) -> Iterator[Function]:
    for name in before.keys() | after.keys():
        if name != USER:
            yield Function(name, before.get(name, 0.0), after.get(name, 0.0))
