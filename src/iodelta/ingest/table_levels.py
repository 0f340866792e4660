"""Upper titles above, and section names between the rows of a table, which qualify its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import filterfalse

from iodelta.ingest.model import Workload
from iodelta.ingest.table_cells import is_number, plain
from iodelta.ingest.table_columns import column, is_column
from iodelta.ingest.table_headings import (
    Heading,
    heading,
    is_measure,
    is_statistic,
    names_measure,
)
from iodelta.ingest.workload_words import facts

Row = tuple[int, list[str], str]
"""The index of its line, its cells, and the section it stands in."""


def is_heading(cells: Sequence[str]) -> bool:
    """Return whether cells are titles: one names a measure, and none after the first is a number."""
    titles = cells[1:]
    return any(map(is_column, titles)) and not any(map(is_number, titles))


def is_of_next(titles: Sequence[str], cells: Sequence[str]) -> bool:
    """Return whether a row below ``titles`` is the heading of the next table: ``lat (us) | none | bfq`` below that of
    IOPS.
    """
    if is_heading(cells) or len(cells) != len(titles):
        return is_heading(cells)
    variants = cells[1:]
    is_again = variants == titles[1:]
    names = names_measure(titles[0]), names_measure(cells[0])
    if any(map(is_number, variants)):  # the same numbers twice, or the same versions
        return is_again and names == (False, True)
    if not any(variants):
        return False
    repeats_titles = is_again and any(names)
    names_other_variants = all(names) and all(variants)
    return repeats_titles or names_other_variants


def is_above(upper: Sequence[str], lower: Sequence[str]) -> bool:
    """Return whether the titles ``upper`` qualify those below: ``Read`` and ``Write`` above two of ``IOPS``."""
    has_measure = any(map(is_column, upper)) or any(map(is_number, upper))
    if has_measure or not is_heading(lower):
        return False
    titles = set(filter(None, upper[1:]))
    stand_above_several = len(titles) < len(upper) - 1
    return bool(titles) and (stand_above_several or not lower[0])


def together(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Titles of two levels as one; an empty upper title after the first column means the one to its left."""
    titles = [lower[0] or upper[0]]
    above = ""
    for high, low in zip(upper[1:], lower[1:], strict=True):
        above = high or above
        titles.append(low if above == low else f"{above} {low}".strip())
    return titles


def in_sections(rows: Sequence[Row]) -> list[Row]:
    """``rows`` without section headings, each with its section."""
    named = [
        at
        for at, (_, cells, _) in enumerate(rows)
        if (bool(cells[0]) and not any(cells[1:]) and not is_number(cells[0]))
        and at + 1 < len(rows)
    ]
    # Whether the rows `named` are headings: one is the first row, or names a workload, or rows repeat around one.
    of_work = (
        at_ == 0 or (facts({}, plain(rows[at_][1][0])) != Workload()) for at_ in named
    )
    if not (any(of_work) or _repeat(rows, named)):
        return list(rows)  # rows whose results are missing
    sectioned: list[Row] = []
    section = ""
    for at, (index, cells, outer) in enumerate(rows):
        if at in named:
            section = plain(cells[0]).strip(" :")
        else:
            sectioned.append((index, cells, section or outer))
    return sectioned


def _repeat(rows: Sequence[Row], named: Sequence[int]) -> bool:
    """Return whether a row name occurs both above and below one of the rows ``named``."""
    names = [cells[0] for _, cells, _ in rows]
    return any(set(names[:at]) & set(names[at + 1 :]) for at in named)


def of_section(measure: Heading, section: str) -> Heading:
    """Return the measure of the rows in a section: the one in its name, if any."""
    if not is_measure(section):
        return measure
    named = heading(section)
    return measure._replace(title=section, column=named.column, asked=named.asked)


def between(names: Sequence[str]) -> list[str]:
    """Return names of rows that are measures above rows that are not: they may be headings of these."""
    nameless = [at for at, name in enumerate(names) if not is_measure(name)]
    above = names[
        : max((at_ for at_ in nameless if not is_statistic(names[at_])), default=0)
    ]
    return [name for name in filterfalse(is_statistic, above) if is_measure(name)]


def foreign_sections(rows: Sequence[Row], headings: Sequence[Heading]) -> list[str]:
    """Return names of sections that are measures without a column: ``lat (us)`` among rows of IOPS."""
    measures = [h.column for h in headings if h.column is not None]
    rates = {measure.stat for measure in measures if measure.of == "rate"}
    has_latency = any(measure.of != "rate" for measure in measures)
    sections = dict.fromkeys(section for _, _, section in rows)
    foreign: list[str] = []
    for section in filter(None, sections):
        measure = column(section)
        if measure is None:
            is_foreign = names_measure(section)
        elif measure.of == "rate":
            is_foreign = measure.stat not in rates
        else:
            is_foreign = not has_latency
        if is_foreign:
            foreign.append(section)
    return foreign
