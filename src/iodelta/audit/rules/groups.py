"""Compare rows and runs with each other: order, copies, load, and the scatter of repeated measurements."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from iodelta.audit.columns import measured
from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import count, known, latency, number, parts
from iodelta.audit.tables import (
    context,
    groups,
    load,
    rate,
    variant,
    without_load,
    workload,
)
from iodelta.ingest import Run
from iodelta.plural import plural
from iodelta.trial import Direction

FASTER = 0.05
"""A row under load may be faster by this share than the same row without, by chance."""

RISING = 5
"""Rows in strictly rising order, which happens by chance once in 5! = 120."""


@rule(
    "order.trend",
    "warning",
    says="IOPS rise or fall strictly in the order of the rows",
    needs="a table with five variants or more of a cell, in the order they were run",
    remedy="run the variants interleaved, in random order and several times: a warming cache rises like this by itself",
)
def trend(evidence: Evidence) -> Iterator[Mark]:
    for rows in groups(evidence):
        # A row without a number ("~0") at the start or end does not disturb the order of the others.
        rates = [rate(evidence.runs[index]) or 0.0 for index in rows]
        if len(rows) < RISING or _sorted_by_design(evidence.runs, rows):
            continue
        # Whether rates rise or fall from each to the next; empty for neither.
        if _rises(rates):
            way = "rise"
        else:
            way = "fall" if _rises(rates[::-1]) else ""
        if way:
            listed = ", ".join(map(count, rates))
            text = f"IOPS {way} from row to row: {listed}; were the rows run in this order?"
            yield Mark(rows, text)


def _rises(rates: Sequence[float]) -> bool:
    return all(itertools.starmap(operator.lt, itertools.pairwise(rates)))


def _sorted_by_design(runs: Sequence[Run], rows: Sequence[int]) -> bool:
    """Return whether the variants are a numbered series (v1, v2 ...), which somebody sorted."""
    variants = [variant(runs[index]) for index in rows]
    return all(re.search(r"\d", name) for name in variants)


@rule(
    "load.faster",
    "warning",
    says="a row is faster under load than without",
    needs="the same rows with and without a background load",
    remedy="these differences are noise or chance: they show how small a difference can be resolved here",
)
def faster(evidence: Evidence) -> Iterator[Mark]:
    idle: dict[Hashable, int] = {}
    for index, run in evidence.rows():
        if load(run) == "idle":
            idle.setdefault(without_load(run), index)
    for index, run in evidence.rows():
        if load(run) != "loaded":
            continue
        other = idle.get(without_load(run))
        if other is None:
            continue
        before, after = rate(evidence.runs[other]), rate(run)
        if before and after and after > before * (1 + FASTER):
            text = f"{count(after)} IOPS under load against {count(before)} without ({after / before - 1:+.0%})"
            yield Mark((other, index), text)


@rule(
    "replicates.scatter",
    "note",
    says="the same cell was measured more than once, with different results",
    needs="a cell that occurs in several tables, or runs of the same job",
    remedy="differences smaller than this scatter are not findings; compare variants inside one session only",
)
def scatter(evidence: Evidence) -> Iterator[Mark]:
    rows = [
        _Row(index, run, _words(run))
        for index, run in evidence.rows()
        if load(run) != "loaded"
    ]
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    changes: dict[tuple[str, str], list[float]] = {}
    for position, row in enumerate(rows):
        before = rate(row.run)
        if before is None or row.run.workload.iodepth is None:
            continue
        for later in rows[position + 1 :]:
            after = rate(later.run)
            if after and _same_cell(row, later):
                tables = (row.run.table, later.run.table)
                pairs.setdefault(tables, []).append((row.number, later.number))
                changes.setdefault(tables, []).append(after / before - 1)
    for tables, pair_cells in pairs.items():
        low, high = min(changes[tables]), max(changes[tables])
        text = f"{plural(len(pair_cells), 'cell')} of {tables[0]!r} again in {tables[1]!r}, {low:+.0%} to {high:+.0%} different"
        yield Mark(tuple(itertools.chain.from_iterable(pair_cells)), text)


class _Row(NamedTuple):
    number: int
    """The index of the run in the evidence."""
    run: Run
    words: frozenset[str]
    """The words of its context."""


def _words(run: Run) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", context(run).casefold()))


def _same_cell(row: _Row, later: _Row) -> bool:
    """Return whether rows of two tables have the same workload and variant, and one context contains the other."""
    if later.run.table == row.run.table or variant(later.run) != variant(row.run):
        return False
    if workload(later.run) != workload(row.run):
        return False
    return row.words <= later.words or later.words <= row.words


@rule(
    "cells.identical",
    "warning",
    says="different cells contain the same numbers to the last digit",
    needs="a table, or runs, with counts of four digits or more",
    remedy="look for a cell copied from another row, or a file read twice",
)
def identical(evidence: Evidence) -> Iterator[Mark]:
    # Rows by file and number, for rates with too many digits to be equal by chance. Latencies are rounded.
    rows_: dict[tuple[str, float], list[int]] = {}
    for index_, run_ in evidence.rows():
        stats = {title: meaning.stat for title, _, meaning in measured(run_)}
        for title, written in run_.labels.items():
            parsed = number(written)
            is_latency = stats.get(title) in ("mean", "percentile")
            if parsed is None or is_latency or _digits(parsed[0]) < 5:
                continue
            rows_.setdefault((run_.place.file, parsed[0]), []).append(index_)
    for (_, value), rows in rows_.items():
        runs = [evidence.runs[index] for index in rows]
        cells = {(run.place, variant(run)) for run in runs}
        if len(cells) > 1:
            indexes = tuple(dict.fromkeys(rows))
            yield Mark(indexes, f"{value:.15g} occurs {len(rows)} times")
    yield from _identical_runs(evidence)


def _identical_runs(evidence: Evidence) -> Iterator[Mark]:
    same: dict[Hashable, list[int]] = {}
    for index, run in evidence.measured():
        directions = parts(run)
        most = max((part.ios for part in directions), default=0)
        if most >= 1000 and any(map(latency, directions)):
            same.setdefault(tuple(map(_counts, directions)), []).append(index)
    for runs in same.values():
        if len(runs) > 1:
            text = f"{plural(len(runs), 'run')} have the same counts, run time and mean latency"
            yield Mark(tuple(runs), text)


def _counts(part: Direction) -> Hashable:
    spread = latency(part)
    mean = spread.mean.value if spread is not None and known(spread.mean) else None
    return (part.ios, part.bytes, part.runtime_ms, mean)


def _digits(value: float) -> int:
    """Significant digits, without trailing zeros; the fewest that the number has after divisions by 1024."""
    if value != int(value):
        return len(f"{value:.12g}".replace(".", "").strip("0"))
    short = [len(str(int(value)).rstrip("0"))]
    while value and value % 1024 == 0:
        value /= 1024
        short.append(len(str(int(value)).rstrip("0")))
    return min(short)


RULES = (trend, faster, scatter, identical)
