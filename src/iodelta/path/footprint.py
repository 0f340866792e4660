"""The footprint of an I/O: what its path executes and touches, as medians over I/Os (footprint.c).

Each I/O gives whole numbers, from one call of submit_bio to the next. Their medians do not include what a few I/Os do
in addition (timer ticks, refills), and one more locked instruction per I/O is one more.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal

import msgspec

from iodelta.path.functions import CLASSES

MEASURES = (
    "instructions",
    "loads",
    "stores",
    "data_lines",
    "written_lines",
    "data_pages",
    "code_lines",
    "code_pages",
    *CLASSES,
)
"""In the order of footprint.c: what is executed; accesses; distinct lines of 64 bytes and pages of 4 KiB."""

Scope = Literal["kernel", "all"]

SCOPES: tuple[Scope, ...] = ("kernel", "all")
"""In the order of footprint.c: what the kernel's code does, and what all code does."""

Word = Literal["more", "fewer", "same", ""]

ALMOST = 0.02
"""Share by which the calls of submit_bio may differ from the I/Os for each to be one I/O's."""


class Epochs(msgspec.Struct, frozen=True):
    """The I/Os of a cell in one boot."""

    medians: dict[str, dict[str, float]]
    """Scope -> measure -> median over the epochs of the second run."""
    each: float
    """Calls of submit_bio for each I/O; an epoch is from one to the next."""

    @property
    def by_ios(self) -> bool:
        """Return whether an epoch is an I/O."""
        return abs(self.each - 1) <= ALMOST


class Measured(msgspec.Struct, frozen=True):
    """One measure of a cell's I/Os under baseline and variant: medians."""

    name: str
    scope: Scope
    """Whether the kernel's code does it, or all code, fio's included."""
    baseline: float
    value: float
    bar: float | None
    """What other address layouts alone change on either side; None when no other layouts were booted."""

    @property
    def change(self) -> float:
        """Return how many more."""
        return self.value - self.baseline

    @property
    def word(self) -> Word:
        """Empty where no layouts tell."""
        if self.bar is None:
            return ""
        if abs(self.change) <= self.bar:
            return "same"
        return "more" if self.change > 0 else "fewer"


class Footprint(msgspec.Struct, frozen=True):
    """A cell under baseline and variant."""

    cell: str
    variant: str
    measures: tuple[Measured, ...]
    """Those of the kernel first."""
    each: tuple[float, float]
    """Calls of submit_bio for each I/O; an epoch is from one to the next."""

    def of(self, name: str, scope: Scope = "kernel") -> Measured:
        """Return the measure of a name. Raises KeyError."""
        by_name = {(each.name, each.scope): each for each in self.measures}
        return by_name[name, scope]

    @property
    def by_ios(self) -> bool:
        """Return whether an epoch is an I/O."""
        return all(abs(each - 1) <= ALMOST for each in self.each)


def read(epochs: bytes, ios: Mapping[int, int]) -> dict[int, Epochs]:
    """Return the epochs of each cell that has any, from what the plugin wrote; ``ios`` is N of each cell, which its
    second run does twice. Raises ValueError."""
    rows: defaultdict[int, list[list[int]]] = defaultdict(list)
    for line in epochs.decode("ascii", "replace").splitlines():
        phase, *values = map(int, line.split())
        if len(values) != len(SCOPES) * len(MEASURES):
            raise ValueError(f"{len(values)} measures in an epoch")
        # A cell has two phases, an odd one and an even one, which is its second run.
        if phase % 2 == 0:
            rows[phase // 2 - 1].append(values)
    found = {}
    for cell in rows.keys() & ios.keys():
        columns = zip(*rows[cell], strict=True)
        by_scope: dict[str, dict[str, float]] = {scope: {} for scope in SCOPES}
        for (scope, name), column in zip(
            product(SCOPES, MEASURES), columns, strict=True
        ):
            by_scope[scope][name] = float(statistics.median(column))
        found[cell] = Epochs(by_scope, (len(rows[cell]) + 1) / (2 * ios[cell]))
    return found


def footprint(
    cell: str,
    variant: str,
    sides: Sequence[Epochs],
    layouts: Sequence[Sequence[Epochs]],
) -> Footprint:
    """Return a cell's footprint under baseline and variant; ``layouts`` are those of their boots with other address
    layouts."""
    measures = []
    for scope, name in product(SCOPES, MEASURES):
        before, after = (side.medians[scope][name] for side in sides)
        ranges = []
        for value, others in zip((before, after), layouts, strict=True):
            medians = [value, *(epochs.medians[scope][name] for epochs in others)]
            ranges.append(max(medians) - min(medians))
        measures.append(
            Measured(name, scope, before, after, max(ranges) if all(layouts) else None)
        )
    return Footprint(cell, variant, tuple(measures), (sides[0].each, sides[1].each))
