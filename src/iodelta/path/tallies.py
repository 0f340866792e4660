"""What an I/O of every variant takes by each metric besides its instructions: medians of an anatomy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from iodelta.path.footprint import Epochs
from iodelta.path.metrics import METRICS, PathMetric
from iodelta.path.plan import PathPlan
from iodelta.path.sharing import BY_CHANCE, Sharing

WHOLE = 0.5
"""By how much a median must change: it is a whole number, or between two."""

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
    """Whether an I/O takes more: at least half a unit, and more than other address layouts alone make of either."""
    difference = after.value - before.value
    if abs(difference) < WHOLE or abs(difference) <= max(before.spread, after.spread):
        return "same"
    return "more" if difference > 0 else "fewer"


def of_epochs(
    plan: PathPlan, epochs: Mapping[tuple[str, int], Mapping[int, Epochs]]
) -> Iterator[Tally]:
    """Those of the kernel's part, by variant and seed of the boot; none where an epoch is not an I/O."""
    for number, cell in enumerate(plan.experiment.cells):
        for variant in (arm.variant for arm in plan.arms):
            own = epochs.get((variant, 0), {}).get(number)
            if own is None or not own.by_ios:
                continue
            swept = [
                by_cell[number]
                for (name, seed), by_cell in epochs.items()
                if name == variant and seed and number in by_cell
            ]
            for metric in METRICS.values():
                if metric.source in ("bill", "footprint"):
                    yield _tally(metric, cell.name, variant, own, swept)


def _tally(
    metric: PathMetric, cell: str, variant: str, own: Epochs, swept: Sequence[Epochs]
) -> Tally:
    values = [one.medians["kernel"][metric.column] for one in (own, *swept)]
    return Tally(cell, variant, metric.name, values[0], tuple(values[1:]))


def of_sharing(sharing: Sharing) -> Iterator[Tally]:
    """Lines that move, but where chance moves some of them."""
    for cell in sharing.cells:
        if cell.tags in BY_CHANCE:
            continue
        yield Tally(cell.cell, cell.variant, "moved_lines", cell.median, cell.layouts)
