"""What rows and runs say about each other: order, copies, load, and the scatter of what was measured twice."""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterator, Sequence

from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import known, latency, number, parts
from iodelta.audit.tables import context, groups, load, rate, variant, without_load, workload
from iodelta.ingest import Run
from iodelta.ingest.table_headings import column

FASTER = 0.05
"""A row under load may be this much faster than the same row without, by chance."""

RISING = 5
"""So many rows in strict order happen once in 120 by chance."""


@rule(
    "order.trend",
    "warning",
    says="IOPS rise or fall strictly in the order of the rows",
    needs="a table with five variants or more of a cell, in the order they were run",
    remedy="run the variants interleaved, in random order and several times: a warming cache rises like this by itself",
)
def trend(evidence: Evidence) -> Iterator[Mark]:
    for rows in groups(evidence):
        # A row without a number ("~0") at the start or end takes nothing from the order of the others.
        rates = [0.0 if (found := rate(evidence.runs[index])) is None else found for index in rows]
        if len(rows) < RISING or _sorted_by_design(evidence.runs, rows):
            continue
        pairs = list(itertools.pairwise(rates))
        if all(a < b for a, b in pairs) or all(a > b for a, b in pairs):
            way = "rise" if rates[0] < rates[-1] else "fall"
            listed = ", ".join(f"{value:g}" for value in rates)
            yield Mark(rows, f"IOPS {way} from row to row: {listed}; were the rows run in this order?")


def _sorted_by_design(runs: Sequence[Run], rows: Sequence[int]) -> bool:
    """Whether the variants themselves are in alphabetical order of a numbered series (v1, v2 ...)."""
    return all(re.search(r"\d", variant(runs[index])) for index in rows)


@rule(
    "load.faster",
    "warning",
    says="a row is faster under load than without",
    needs="the same rows with and without a background load",
    remedy="these differences are noise or a lottery: take them as the size of what can be told apart here",
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
        before, after = (None, None) if other is None else (rate(evidence.runs[other]), rate(run))
        if other is not None and before and after and after > before * (1 + FASTER):
            yield Mark(
                (other, index), f"{after:g} IOPS under load against {before:g} without ({after / before - 1:+.0%})"
            )


@rule(
    "replicates.scatter",
    "note",
    says="the same cell was measured more than once, with different results",
    needs="a cell that occurs in several tables, or runs of the same job",
    remedy="differences smaller than this scatter are no findings; compare variants inside one session only",
)
def scatter(evidence: Evidence) -> Iterator[Mark]:
    """Rows of other tables, of the same workload and variant, whose context is contained in the longer one."""
    rows = [(index, run, frozenset(re.findall(r"\w+", context(run).casefold()))) for index, run in evidence.rows()]
    pairs: dict[tuple[str, str], list[tuple[int, int, float]]] = {}
    for at, (index, run, words) in enumerate(rows):
        before = rate(run)
        if load(run) == "loaded" or before is None or run.workload.iodepth is None:
            continue
        for other, later, more in rows[at + 1 :]:
            same = later.table != run.table and variant(later) == variant(run) and workload(later) == workload(run)
            if same and load(later) != "loaded" and (words <= more or more <= words) and (after := rate(later)):
                pairs.setdefault((run.table, later.table), []).append((index, other, after / before - 1))
    for (first, second), found in pairs.items():
        low, high = min(change for *_, change in found), max(change for *_, change in found)
        yield Mark(
            tuple(index for pair in found for index in pair[:2]),
            f"{len(found)} cells of {first!r} are in {second!r} again, {low:+.0%} to {high:+.0%} different",
        )


@rule(
    "cells.identical",
    "warning",
    says="different cells hold the same numbers to the last digit",
    needs="a table, or runs, with counts of four digits or more",
    remedy="look for a cell copied from another row, or a file read twice",
)
def identical(evidence: Evidence) -> Iterator[Mark]:
    counts: dict[tuple[str, float], list[int]] = {}
    for index, run in evidence.rows():
        for title, written in run.labels.items():
            holds, count = column(title), number(written)
            late = holds is not None and holds.stat in ("mean", "percentile")
            if count is not None and not late and _digits(count[0]) >= 5:
                counts.setdefault((run.place.file, count[0]), []).append(index)
    for (_, value), rows in counts.items():
        if len({(evidence.runs[index].place, variant(evidence.runs[index])) for index in rows}) > 1:
            yield Mark(tuple(dict.fromkeys(rows)), f"{value:.15g} occurs {len(rows)} times")
    whole: dict[Hashable, list[int]] = {}
    for index, run in evidence.measured():
        means = [known(found.mean) and found.mean.value for d in parts(run) if (found := latency(d))]
        if means and max(d.ios for d in parts(run)) >= 1000:
            whole.setdefault((*((d.ios, d.bytes, d.runtime_ms) for d in parts(run)), *means), []).append(index)
    for runs in whole.values():
        if len(runs) > 1:
            yield Mark(tuple(runs), f"{len(runs)} runs have the same counts, run time and mean latency")


def _digits(value: float) -> int:
    """Significant digits: zeros at the end do not count, nor what a factor 1024 makes of a rounded number."""
    if value != int(value):
        return len(f"{value:.12g}".replace(".", "").strip("0"))
    short = [len(str(int(value)).rstrip("0"))]
    while value and value % 1024 == 0:
        value /= 1024
        short.append(len(str(int(value)).rstrip("0")))
    return min(short)


RULES = (trend, faster, scatter, identical)
