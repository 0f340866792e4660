"""What sets of runs show about each other: interleaved pairs allow verdicts, replicates intervals, and single runs
differences with their resolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import msgspec

from iodelta.audit import audit
from iodelta.experiment.order import in_order
from iodelta.ingest import Refusal, Run
from iodelta.ingest.layouts import Entry, Layout, order_finding, order_of
from iodelta.ingest.layouts.effective import spelt
from iodelta.plural import plural
from iodelta.study.cell import Cell, Compared
from iodelta.study.confounders import Differing
from iodelta.study.confounders import differences as of_environments
from iodelta.study.measured import common_metrics
from iodelta.study.sides import Side, differences, shared_cells, sides_of
from iodelta.study.system import system
from iodelta.trial import Finding

NONE: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


class Comparison(msgspec.Struct, frozen=True):
    """Everything ``iodelta compare`` has to say."""

    schema: str
    baseline: str
    variants: tuple[str, ...]
    margin: float
    compared: tuple[Compared, ...]
    """One per cell, metric and variant."""
    differences: dict[str, tuple[Differing, ...]]
    """By variant."""
    unmatched: tuple[str, ...]
    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]
    paths: tuple[str, ...] = ()
    """As they were given."""
    lacking: dict[str, tuple[str, ...]] = {}
    """By variant, the cells of both sides that have no number in all of their runs, though some have numbers."""
    systems: dict[str, tuple[tuple[str, str], ...]] = {}
    """What the machine was, by side, where iodelta recorded it: name and value."""

    @property
    def exit_code(self) -> int:
        """0 nothing worse, 1 regression, 3 no or no conclusive verdict, 4 nothing to compare. A percentile that its
        source cannot resolve counts only where nothing else does."""
        resolved = [row for row in self.compared if row.resolved]
        words = {row.word for row in resolved or self.compared}
        lacking = any(self.lacking.values())
        if "regression" in words:
            return 1
        if lacking or words & {"inconclusive", "no verdict"}:
            return 3
        return 0 if words else 4


def compare(
    layouts: Sequence[Layout],
    paths: Sequence[str],
    *,
    baseline: str | None = None,
    margin: float = 0.01,
    environments: Mapping[str, Mapping[str, Any]] = NONE,
) -> Comparison:
    """Compare the variants of one layout, or several layouts with the first. Raises RequestError for one side only.

    ``environments`` are the recorded ones of sides, by name; their differences are reported too.
    """
    base, *others = sides_of(layouts, paths, baseline)
    matches = [_match(base, other, environments) for other in others]
    results = list(map(_judged, _cells(base, matches, margin)))
    compared = tuple(chain.from_iterable(result.compared for result in results))
    verdicts = [row.verdict for row in compared if row.verdict is not None]
    findings = [
        *(result.findings for result in results),
        *(verdict.findings for verdict in verdicts),
    ]
    return Comparison(
        schema="iodelta.compare/1",
        baseline=base.name,
        variants=tuple(other.name for other in others),
        margin=margin,
        compared=compared,
        differences={match.variant.name: match.differing for match in matches},
        unmatched=tuple(
            dict.fromkeys(chain.from_iterable(match.unmatched for match in matches))
        ),
        findings=tuple(dict.fromkeys(chain.from_iterable(findings))),
        refusals=tuple(chain.from_iterable(layout.refusals for layout in layouts)),
        paths=tuple(paths),
        lacking=_lacking(results),
        systems={
            name: system(environment) for name, environment in environments.items()
        },
    )


class _Match(msgspec.Struct, frozen=True):
    """A variant against the baseline: the cells that both have, and what else differs."""

    variant: Side
    cells: dict[str, tuple[list[Entry], list[Entry]]]
    unmatched: tuple[str, ...]
    differing: tuple[Differing, ...]


def _match(
    base: Side, variant: Side, environments: Mapping[str, Mapping[str, Any]]
) -> _Match:
    cells, unmatched = shared_cells(base, variant)
    here, there = environments.get(base.name), environments.get(variant.name)
    recorded: tuple[Differing, ...] = ()
    if here is not None and there is not None:
        recorded = of_environments(here, there)
    return _Match(
        variant=variant,
        cells=cells,
        unmatched=unmatched,
        differing=(*recorded, *differences(cells.values())),
    )


def _cells(base: Side, matches: Sequence[_Match], margin: float) -> list[Cell]:
    """Return every cell of every variant, each knowing how many questions are asked together with its own."""
    cells = []
    for match in matches:
        for name in in_order(match.cells):
            first, other = match.cells[name]
            runs = [entry.run for entry in (*first, *other)]
            # What makes a number of these runs incredible: findings of the audit and of the readers.
            findings = [hit.finding for hit in audit(runs).hits]
            findings += chain.from_iterable(run.findings for run in runs)
            hard = [finding for finding in findings if finding.severity == "hard"]
            cell = Cell(
                name=with_syncs(name, runs),
                baseline=base.name,
                variant=match.variant.name,
                one=first,
                other=other,
                order=order_of(first, other),
                hard=tuple(dict.fromkeys(hard)),
                margin=margin,
                metrics=common_metrics(runs),
            )
            cells.append(cell)
    family = sum(bool(cell.metrics) for cell in cells)
    return [msgspec.structs.replace(cell, family=family) for cell in cells]


class _Judged(msgspec.Struct, frozen=True):
    """One cell, with what its runs allow to be said by each metric."""

    cell: Cell
    compared: tuple[Compared, ...]
    findings: tuple[Finding, ...]
    lacking: bool


def _judged(cell: Cell) -> _Judged:
    """Return every metric of a cell, and the findings on its runs."""
    place = f"{cell.name}, {cell.variant}"
    runs = [entry.run for entry in (*cell.one, *cell.other)]
    # Two runs have no order that could be at fault.
    risk = order_finding(cell.order, place) if len(runs) > 2 else None
    compared = tuple(filter(None, map(cell.compare, cell.metrics)))
    lack = None if compared else _lack(runs, place)
    return _Judged(
        cell=cell,
        compared=compared,
        findings=tuple(filter(None, (*cell.hard, risk, lack))),
        lacking=lack is not None,
    )


def _lacking(results: Sequence[_Judged]) -> dict[str, tuple[str, ...]]:
    """By variant, the cells without a number that all runs have."""
    lacking: dict[str, tuple[str, ...]] = {}
    for result in results:
        if result.lacking:
            cell = result.cell
            lacking[cell.variant] = (*lacking.get(cell.variant, ()), cell.name)
    return lacking


def _lack(runs: Sequence[Run], place: str) -> Finding | None:
    """Return why runs, some of which have numbers, have none that all have; None where no run has any."""
    bare = [run for run in runs if not (run.directions or run.measured)]
    if len(bare) == len(runs):
        return None
    text = "no number is present in all runs"
    if bare:
        text = f"{len(bare)} of {plural(len(runs), 'run')} without numbers, the first is {bare[0].place}"
    remedy = "omit such runs together with their pairs, and say so; or repeat them"
    return Finding("compare.lacking", "warning", place, text, remedy)


def with_syncs(name: str, runs: Sequence[Run]) -> str:
    """Return the cell, with the syncs that all of its runs make, where its name lacks them: most of a write is their
    time.
    """
    spellings = {spelt(run, ("fsync", "fdatasync", "sync")) for run in runs}
    words = spellings.pop() if len(spellings) == 1 else ""
    if words not in name:
        return f"{name} {words}".strip()
    return name
