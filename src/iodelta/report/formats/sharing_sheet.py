"""CSV of moved cache lines: a row for each cell under a variant, and one for each line that moved there."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.path.judge import PathAccount
from iodelta.path.sharing import SharedCell, SharingShift

HEADS = tuple(
    """
    cell variant line offset born moved invalidated false_share share_of_ios readers
    writers median mean baseline change low high word reason not_seen
    """.split()
)
"""``moved`` and ``invalidated`` are per I/O. A row without a line is of all lines: ``median`` and what follows it."""


def rows(account: PathAccount) -> Iterator[tuple[object, ...]]:
    """Cell after cell, the lines after the row of all."""
    # Of a row's last kernel the step comes first, and then how far it is from the first kernel.
    shifts = {
        (shift.cell, shift.variant): shift for shift in account.sharing.shifts[::-1]
    }
    for cell in account.sharing.cells:
        yield _of_cell(cell, shifts.pop((cell.cell, cell.variant), None), account)
        yield from _of_lines(cell)
    for shift in shifts.values():
        blank = ("",) * 9
        numbers = (shift.value, None, *_of_shift(shift), account.blind)
        yield (shift.cell, shift.variant, *blank, *numbers)


def _of_cell(
    cell: SharedCell, shift: SharingShift | None, account: PathAccount
) -> tuple[object, ...]:
    moved = ("", "", "", None, None, None, None, "", "")
    compared = _of_shift(shift) if shift else ("", None, None, None, "", "")
    numbers = (cell.median, cell.mean)
    return (cell.cell, cell.variant, *moved, *numbers, *compared, account.blind)


def _of_shift(shift: SharingShift) -> tuple[object, ...]:
    ends = (shift.low, shift.high)
    return (shift.against, shift.change, *ends, shift.word, shift.reason)


def _of_lines(cell: SharedCell) -> Iterator[tuple[object, ...]]:
    for line in cell.lines:
        counts = (line.moved, line.invalidated, line.false_share, line.ios)
        functions = (" ".join(line.readers), " ".join(line.writers))
        name = (line.name, line.offset, line.born)
        blank = (None,) * 2 + ("",) + (None,) * 3 + ("",) * 3
        yield (cell.cell, cell.variant, *name, *counts, *functions, *blank)
