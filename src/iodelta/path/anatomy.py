"""From the boots of an anatomy to the trees of calls and the footprints of its cells."""

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
from iodelta.path.tallies import Tally, of_epochs

Read = TypeVar("Read")


class Anatomy(msgspec.Struct, frozen=True):
    """Every variant against the baseline, cell by cell."""

    trees: tuple[CallTree, ...] = ()
    footprints: tuple[Footprint, ...] = ()
    tallies: tuple[Tally, ...] = ()
    """Of each variant for itself."""


def anatomy(folder: Folder, plan: PathPlan, outputs: Mapping[int, Output]) -> Anatomy:
    """The anatomies of a folder, as far as its boots were made. Raises MeasureError for damaged ones."""
    boots = [
        one for one in plan.boots if one.purpose == "anatomy" and one.number in outputs
    ]
    if not boots:
        return Anatomy()
    epochs = {
        (one.variant, one.seed): _epochs(folder, one, outputs[one.number])
        for one in boots
    }
    tallies = tuple(of_epochs(plan, epochs))
    if plan.row:
        return Anatomy(tallies=tallies)
    trees = {
        one.variant: _tree(folder, one, outputs[one.number])
        for one in boots
        if not one.seed
    }
    return Anatomy(
        tuple(_trees(plan, trees)), tuple(_footprints(plan, epochs)), tallies
    )


def ios_of(output: Output, place: str) -> dict[int, int]:
    """N of each cell: the I/Os by which its two runs differ. Raises MeasureError."""
    return {
        number: cell.ios(place) // 2
        for number, cell in output.cells.items()
        if not cell.reason
    }


def _trees(
    plan: PathPlan, trees: Mapping[str, Mapping[int, calls.Calls]]
) -> Iterator[CallTree]:
    for number, name, pair in _pairs(plan):
        before, after = (trees.get(variant, {}).get(number) for variant in pair)
        if before and after:
            yield call_tree(name, pair[1], (before, after))


def _footprints(
    plan: PathPlan,
    epochs: Mapping[tuple[str, int], Mapping[int, footprint.Epochs]],
) -> Iterator[Footprint]:
    for number, name, pair in _pairs(plan):
        before, after = (epochs.get((variant, 0), {}).get(number) for variant in pair)
        if before is None or after is None:
            continue
        layouts = [
            [
                by_cell[number]
                for (variant, seed), by_cell in epochs.items()
                if variant == side and seed and number in by_cell
            ]
            for side in pair
        ]
        yield footprint.footprint(
            name, pair[1], (before, after), (layouts[0], layouts[1])
        )


def _pairs(plan: PathPlan) -> Iterator[tuple[int, str, tuple[str, str]]]:
    for number, cell in enumerate(plan.experiment.cells):
        for variant in plan.others:
            yield number, cell.name, (plan.experiment.baseline, variant)


def _tree(folder: Folder, one: BootPlan, output: Output) -> dict[int, calls.Calls]:
    place = f"{folder.path}, boot {one.number}"
    files = [folder.read_raw(one.number, kind) for kind in ("tree", "counts")]
    symbols, ios = Symbols(output.symbols), ios_of(output, place)
    return _sound(lambda: calls.per_io(files[0], files[1], symbols, ios), place)


def _epochs(
    folder: Folder, one: BootPlan, output: Output
) -> dict[int, footprint.Epochs]:
    place = f"{folder.path}, boot {one.number}"
    data, ios = folder.read_raw(one.number, "epochs"), ios_of(output, place)
    return _sound(lambda: footprint.read(data, ios), place)


def _sound(read: Callable[[], Read], place: str) -> Read:
    """What it reads. Raises MeasureError for what the plugin did not write."""
    try:
        return read()
    except ValueError as error:
        raise MeasureError(f"the anatomy is damaged: {error}", place=place) from error
