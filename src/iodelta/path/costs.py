"""The cost of an I/O by the plugin's counts: tables of functions and bills of each variant against the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from iodelta.errors import MeasureError
from iodelta.lab.folder import Folder
from iodelta.path.anatomy import ios_of
from iodelta.path.bill import Bill, bill
from iodelta.path.footprint import Footprint
from iodelta.path.functions import Cost, Symbols, per_io
from iodelta.path.output import Output, cell_of
from iodelta.path.plan import BootPlan, PathPlan
from iodelta.path.tables import FunctionTable, Timed, in_flight, table


class Costed(msgspec.Struct, frozen=True):
    """A cell under baseline and variant, in the boots that the plugin counted."""

    number: int
    cell: str
    variant: str
    costs: tuple[Cost, Cost]


def costed(
    folder: Folder, plan: PathPlan, outputs: Mapping[int, Output]
) -> Iterator[Costed]:
    """Yield every cell of every variant for which the plugin counted both sides. Raises MeasureError for damaged
    counts.
    """
    costs: dict[str, Mapping[int, Cost]] = {}
    for boot in plan.boots:
        counted = boot.purpose in ("functions", "anatomy") and not boot.seed
        if counted and boot.number in outputs:
            costs[boot.variant] = _costs(folder, boot, outputs[boot.number])
    for number, variant, before, after in plan.against_baseline(costs):
        yield Costed(
            number=number,
            cell=plan.experiment.cells[number].name,
            variant=variant,
            costs=(before, after),
        )


def function_tables(
    plan: PathPlan, outputs: Mapping[int, Output], costed: Sequence[Costed]
) -> Iterator[FunctionTable]:
    """Yield the tables, each checked against the medians of the boots that are judged."""
    for pair in costed:
        before, after = pair.costs
        timed = _both_timed(
            plan, outputs, (plan.experiment.baseline, pair.variant), pair.number
        )
        yield table(
            pair.cell, pair.variant, (before.instructions, after.instructions), timed
        )


def bills(costed: Sequence[Costed], footprints: Sequence[Footprint]) -> Iterator[Bill]:
    """Yield the bill of each pair whose boots both counted classes of instructions."""
    medians = {(pair.cell, pair.variant): pair for pair in footprints if pair.by_ios}
    for pair in costed:
        before, after = pair.costs
        if before.classes and after.classes:
            exact = medians.get((pair.cell, pair.variant))
            yield bill(pair.cell, pair.variant, (before, after), exact)


def _both_timed(
    plan: PathPlan, outputs: Mapping[int, Output], pair: tuple[str, str], number: int
) -> tuple[Timed, Timed] | None:
    before, after = (_timed(plan, outputs, name, number) for name in pair)
    return (before, after) if before and after else None


def _costs(folder: Folder, boot: BootPlan, output: Output) -> Mapping[int, Cost]:
    """Return what an I/O of each cell of a boot costs. Raises MeasureError."""
    place = boot.place(folder)
    counts = folder.read_raw(boot.number, "counts")
    try:
        return per_io(counts, Symbols(output.symbols), ios_of(output, place))
    except ValueError as error:
        raise MeasureError(
            f"the counts of boot {boot.number} are damaged: {error}", place=place
        ) from error


def _timed(
    plan: PathPlan, outputs: Mapping[int, Output], variant: str, number: int
) -> Timed | None:
    """Return the median of a cell; None if its I/Os have several directions, since a table covers all of them."""
    output = cell_of(outputs, plan.exact(variant), number)
    experiment = plan.experiment
    cell = experiment.cells[number]
    depth = in_flight(cell.options_under(experiment.variant(variant)))
    if output is None or len(output.latencies) != 1 or not depth:
        return None
    (counts,) = output.latencies.values()
    return Timed(counts.median, depth)
