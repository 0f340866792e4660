"""From the boots of an anatomy to the call trees and footprints of its cells."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from iodelta.errors import MeasureError
from iodelta.lab.folder import Folder
from iodelta.path import calls, footprint
from iodelta.path.branches import CallTree, call_tree
from iodelta.path.footprint import Footprint
from iodelta.path.functions import Symbols
from iodelta.path.output import Output
from iodelta.path.plan import PathPlan
from iodelta.path.tallies import Tally, layouts_of, of_epochs


class Anatomy(msgspec.Struct, frozen=True):
    """Every variant against the baseline, cell by cell."""

    trees: tuple[CallTree, ...] = ()
    footprints: tuple[Footprint, ...] = ()
    tallies: tuple[Tally, ...] = ()
    """Counts of each variant, not compared."""


def anatomy(folder: Folder, plan: PathPlan, outputs: Mapping[int, Output]) -> Anatomy:
    """Return the anatomies of a folder, as far as it has their boots. Raises MeasureError for damaged files."""
    epochs: dict[tuple[str, int], dict[int, footprint.Epochs]] = {}
    trees: dict[str, dict[int, calls.Calls]] = {}
    for boot in plan.boots:
        if boot.purpose == "anatomy" and boot.number in outputs:
            place, output = boot.place(folder), outputs[boot.number]
            ios = ios_of(output, place)
            try:
                epochs[boot.variant, boot.seed] = footprint.read(
                    folder.read_raw(boot.number, "epochs"), ios
                )
                if not (boot.seed or plan.row):
                    tree, counts = (
                        folder.read_raw(boot.number, name)
                        for name in ("tree", "counts")
                    )
                    trees[boot.variant] = calls.per_io(
                        tree, counts, Symbols(output.symbols), ios
                    )
            except ValueError as error:
                raise MeasureError(
                    f"the anatomy is damaged: {error}", place=place
                ) from error
    tallies = tuple(of_epochs(plan, epochs))
    if plan.row:
        return Anatomy(tallies=tallies)
    cells, baseline = plan.experiment.cells, plan.experiment.baseline
    exact = {variant: epochs[variant, seed] for variant, seed in epochs if not seed}
    return Anatomy(
        tuple(
            call_tree(cells[number].name, variant, sides)
            for number, variant, *sides in plan.against_baseline(trees)
        ),
        tuple(
            footprint.footprint(
                cells[number].name,
                variant,
                sides,
                [layouts_of(epochs, name, number) for name in (baseline, variant)],
            )
            for number, variant, *sides in plan.against_baseline(exact)
        ),
        tallies,
    )


def ios_of(output: Output, place: str) -> dict[int, int]:
    """Cell -> N, the number of I/Os by which its two runs differ. Raises MeasureError."""
    return {
        number: cell.ios(place) // 2
        for number, cell in output.cells.items()
        if not cell.reason
    }
