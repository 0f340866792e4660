"""From the boots of an anatomy to the call trees and footprints of its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec

from iodelta.errors import MeasureError
from iodelta.lab.folder import Folder
from iodelta.path import calls, footprint
from iodelta.path.branches import CallTree, call_tree
from iodelta.path.footprint import Footprint
from iodelta.path.functions import Symbols
from iodelta.path.output import Output
from iodelta.path.plan import BootPlan, PathPlan
from iodelta.path.tallies import Tally, layouts_of, of_epochs

Read = TypeVar("Read")


class Anatomy(msgspec.Struct, frozen=True):
    """Every variant against the baseline, cell by cell."""

    trees: tuple[CallTree, ...] = ()
    footprints: tuple[Footprint, ...] = ()
    tallies: tuple[Tally, ...] = ()
    """Counts of each variant, not compared."""


def anatomy(folder: Folder, plan: PathPlan, outputs: Mapping[int, Output]) -> Anatomy:
    """Return the anatomies of a folder, as far as it has their boots. Raises MeasureError for damaged files."""
    boots = [
        boot
        for boot in plan.boots
        if boot.purpose == "anatomy" and boot.number in outputs
    ]
    epochs = {
        (boot.variant, boot.seed): _epochs(folder, boot, outputs[boot.number])
        for boot in boots
    }
    tallies = tuple(of_epochs(plan, epochs))
    if plan.row:
        return Anatomy(tallies=tallies)
    trees = {
        boot.variant: _tree(folder, boot, outputs[boot.number])
        for boot in boots
        if not boot.seed
    }
    return Anatomy(
        tuple(_trees(plan, trees)), tuple(_footprints(plan, epochs)), tallies
    )


def ios_of(output: Output, place: str) -> dict[int, int]:
    """Cell -> N, the number of I/Os by which its two runs differ. Raises MeasureError."""
    return {
        number: cell.ios(place) // 2
        for number, cell in output.cells.items()
        if not cell.reason
    }


def _trees(
    plan: PathPlan, trees: Mapping[str, Mapping[int, calls.Calls]]
) -> Iterator[CallTree]:
    for number, variant, before, after in plan.against_baseline(trees):
        name = plan.experiment.cells[number].name
        yield call_tree(name, variant, (before, after))


def _footprints(
    plan: PathPlan,
    epochs: Mapping[tuple[str, int], Mapping[int, footprint.Epochs]],
) -> Iterator[Footprint]:
    exact = {variant: epochs[variant, seed] for variant, seed in epochs if not seed}
    for number, variant, before, after in plan.against_baseline(exact):
        name = plan.experiment.cells[number].name
        baseline = layouts_of(epochs, plan.experiment.baseline, number)
        layouts = (baseline, layouts_of(epochs, variant, number))
        yield footprint.footprint(name, variant, (before, after), layouts)


def _tree(folder: Folder, boot: BootPlan, output: Output) -> dict[int, calls.Calls]:
    place = boot.place(folder)
    tree = folder.read_raw(boot.number, "tree")
    counts = folder.read_raw(boot.number, "counts")
    symbols, ios = Symbols(output.symbols), ios_of(output, place)
    return _sound(lambda: calls.per_io(tree, counts, symbols, ios), place)


def _epochs(
    folder: Folder, boot: BootPlan, output: Output
) -> dict[int, footprint.Epochs]:
    place = boot.place(folder)
    data, ios = folder.read_raw(boot.number, "epochs"), ios_of(output, place)
    return _sound(lambda: footprint.read(data, ios), place)


def _sound(read: Callable[[], Read], place: str) -> Read:
    """Return what ``read`` returns. Raises MeasureError for a file that the plugin did not write."""
    try:
        return read()
    except ValueError as error:
        raise MeasureError(f"the anatomy is damaged: {error}", place=place) from error
