"""CSV of counted instructions: paths, bills, footprints, and the branches of the tree of calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from iodelta.path.bill import Bill
from iodelta.path.branches import Branch, CallTree
from iodelta.path.footprint import Footprint
from iodelta.path.functions import CLASSES
from iodelta.path.judge import PathAccount
from iodelta.path.tallies import change
from iodelta.report.formats import sharing_sheet
from iodelta.report.formats.spreadsheet import csv_text

COUNTED = tuple(
    """
    cell direction unit baseline variant path baseline_count variant_count change
    low high bar reason not_seen where
    """.split()
)
"""Of counted instructions. Where: the calls of a branch, separated by spaces, or the functions of a charge."""


def of_path(account: PathAccount) -> str:
    """Return one row per cell, direction and pair of kernels; of moved lines one per cell and line."""
    if account.anatomy == "sharing":
        return csv_text(sharing_sheet.HEADS, sharing_sheet.rows(account))
    return csv_text(COUNTED, _counted(account))


def _counted(account: PathAccount) -> Iterator[tuple[object, ...]]:
    for shift in account.shifts:
        yield (
            *(
                shift.cell,
                shift.kind,
                "instructions per I/O",
                shift.against,
                shift.variant,
                shift.word,
                shift.baseline,
            ),
            *(
                shift.value,
                shift.change,
                shift.low,
                shift.high,
                shift.bar,
                shift.reason,
                account.blind,
                "",
            ),
        )
    if account.row:
        yield from _tallied(account)
    for bill in account.bills:
        yield from _charged(bill, account)
    billed = {(bill.cell, bill.variant) for bill in account.bills}
    for touched in account.footprints:
        has_bill = (touched.cell, touched.variant) in billed
        yield from _touched(touched, account, has_bill=has_bill)
    for tree in account.trees:
        for root in tree.roots:
            yield from _branches(tree, root, (), account)


def _tallied(account: PathAccount) -> Iterator[tuple[object, ...]]:
    """Yield a row for each metric of each kernel of a row, against the one before."""
    pairs = list(pairwise([side.variant for side in account.sides]))
    tallies = {
        (tally.cell, tally.metric, tally.variant): tally for tally in account.tallies
    }
    for cell, metric in dict.fromkeys(
        (tally.cell, tally.metric) for tally in account.tallies
    ):
        for pair in pairs:
            before, after = (tallies.get((cell, metric, name)) for name in pair)
            if before is None or after is None:
                continue
            values = (before.value, after.value, after.value - before.value)
            rest = (None, None, None, "", account.blind, "")
            unit = f"{metric} per I/O"
            yield (cell, "", unit, *pair, change(before, after), *values, *rest)


def _charged(bill: Bill, account: PathAccount) -> Iterator[tuple[object, ...]]:
    """Yield a row for each class of instructions."""
    for charge in bill.charges:
        values = (charge.word, charge.baseline, charge.value, charge.change)
        functions = (f"{each.name} {each.change:+.2f}" for each in charge.functions)
        unit = f"{charge.kind} per I/O, kernel"
        rest = (None, None, charge.bar, "", account.blind, "; ".join(functions))
        yield (bill.cell, "", unit, account.baseline, bill.variant, *values, *rest)


def _branches(
    tree: CallTree, branch: Branch, above: tuple[str, ...], account: PathAccount
) -> Iterator[tuple[object, ...]]:
    """Yield a row for each path of calls: instructions with all that is called."""
    path = (*above, branch.name.replace(" ", ""))
    values = ("", branch.baseline, branch.value, branch.change)
    rest = (None, None, None, tree.refused, account.blind, " ".join(path))
    unit = "instructions per I/O, branch"
    yield (tree.cell, "", unit, account.baseline, tree.variant, *values, *rest)
    for child in branch.children:
        yield from _branches(tree, child, path, account)


def _touched(
    footprint: Footprint, account: PathAccount, *, has_bill: bool
) -> Iterator[tuple[object, ...]]:
    """Yield a row for each measure that is not in a bill; an anatomy has no directions and no intervals."""
    for measured in footprint.measures:
        if has_bill and measured.scope == "kernel" and measured.name in CLASSES:
            continue
        sides = (
            account.baseline,
            footprint.variant,
            measured.word,
            measured.baseline,
            measured.value,
        )
        unit = f"{measured.name} per I/O, {measured.scope}"
        rest = (measured.change, None, None, measured.bar, "", account.blind, "")
        yield (footprint.cell, "", unit, *sides, *rest)
