"""The counts of each variant per I/O by every metric besides instructions: medians of an anatomy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal

import msgspec

from iodelta.path.footprint import Epochs
from iodelta.path.metrics import METRICS
from iodelta.path.plan import PathPlan
from iodelta.path.sharing import BY_CHANCE, Sharing

WHOLE = 0.5
"""Least change of a median: it is a whole number, or halfway between two."""

Change = Literal["more", "fewer", "same"]


class Tally(msgspec.Struct, frozen=True):
    """A cell under a variant by one metric, per I/O."""

    cell: str
    variant: str
    metric: str
    """As in ``bisect --metric``."""
    value: float
    """In the boot without random numbers."""
    layouts: tuple[float, ...] = ()
    """In the boots of the layout sweep."""

    @property
    def spread(self) -> float:
        """From its least value to its largest."""
        values = (self.value, *self.layouts)
        return max(values) - min(values)


def change(before: Tally, after: Tally) -> Change:
    """Return whether an I/O takes more: by at least half a unit, and by more than other address layouts alone change."""
    difference = after.value - before.value
    if abs(difference) < WHOLE or abs(difference) <= max(before.spread, after.spread):
        return "same"
    return "more" if difference > 0 else "fewer"


def of_epochs(
    plan: PathPlan, epochs: Mapping[tuple[str, int], Mapping[int, Epochs]]
) -> Iterator[Tally]:
    """Counts of the kernel's part, from epochs by variant and seed; none for a cell whose epochs are not I/Os."""
    for (number, cell), arm in product(enumerate(plan.experiment.cells), plan.arms):
        measured = epochs.get((arm.variant, 0), {}).get(number)
        if measured is not None and measured.by_ios:
            layouts = layouts_of(epochs, arm.variant, number)
            for metric in METRICS.values():
                if metric.source in ("bill", "footprint"):
                    value, *others = (
                        each.medians["kernel"][metric.column]
                        for each in (measured, *layouts)
                    )
                    yield Tally(
                        cell.name, arm.variant, metric.name, value, tuple(others)
                    )


def layouts_of(
    epochs: Mapping[tuple[str, int], Mapping[int, Epochs]], variant: str, number: int
) -> list[Epochs]:
    """Return the epochs of a cell in the boots with other address layouts: those with a seed."""
    boots = [
        by_cell for (name, seed), by_cell in epochs.items() if name == variant and seed
    ]
    return [by_cell[number] for by_cell in boots if number in by_cell]


def of_sharing(sharing: Sharing) -> Iterator[Tally]:
    """Moved lines, without cells in which chance decides how many move."""
    for cell in sharing.cells:
        if cell.tags not in BY_CHANCE:
            yield Tally(
                cell.cell, cell.variant, "moved_lines", cell.median, cell.layouts
            )
