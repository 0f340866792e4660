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
from iodelta.path.plan import PathPlan
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
            place, output = boot.place(folder), outputs[boot.number]
            counts = folder.read_raw(boot.number, "counts")
            try:
                costs[boot.variant] = per_io(
                    counts, Symbols(output.symbols), ios_of(output, place)
                )
            except ValueError as error:
                raise MeasureError(
                    f"the counts of boot {boot.number} are damaged: {error}",
                    place=place,
                ) from error
    for number, variant, before, after in plan.against_baseline(costs):
        yield Costed(
            number, plan.experiment.cells[number].name, variant, (before, after)
        )


def function_tables(
    plan: PathPlan, outputs: Mapping[int, Output], costed: Sequence[Costed]
) -> Iterator[FunctionTable]:
    """Yield the tables, each checked against the medians of the boots that are judged. A table covers all directions,
    so it has no median where a cell's I/Os have several."""
    experiment = plan.experiment
    for pair in costed:
        timed = []
        for name in (experiment.baseline, pair.variant):
            output = cell_of(outputs, plan.exact(name), pair.number)
            depth = in_flight(
                experiment.cells[pair.number].options_under(experiment.variant(name))
            )
            if output is not None and len(output.latencies) == 1 and depth:
                (counts,) = output.latencies.values()
                timed.append(Timed(counts.median, depth))
        before, after = pair.costs
        both = (timed[0], timed[1]) if len(timed) == 2 else None
        yield table(
            pair.cell, pair.variant, (before.instructions, after.instructions), both
        )


def bills(costed: Sequence[Costed], footprints: Sequence[Footprint]) -> Iterator[Bill]:
    """Yield the bill of each pair whose boots both counted classes of instructions."""
    medians = {(pair.cell, pair.variant): pair for pair in footprints if pair.by_ios}
    for pair in costed:
        if all(cost.classes for cost in pair.costs):
            yield bill(
                pair.cell,
                pair.variant,
                pair.costs,
                medians.get((pair.cell, pair.variant)),
            )
