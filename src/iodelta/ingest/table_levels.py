"""What lies above the titles and between the rows of a table, and says of which numbers they are."""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.ingest.model import Workload
from iodelta.ingest.table_cells import cell, plain
from iodelta.ingest.table_headings import (
    Heading,
    column,
    heading,
    is_measure,
    is_statistic,
    names_measure,
)
from iodelta.ingest.workload_words import facts

Row = tuple[int, list[str], str]
"""The index of its line, its cells, and the section it stands in."""


def is_heading(cells: Sequence[str]) -> bool:
    """Whether cells are titles: one names a measure, and none after the first is a number."""
    return any(column(text) is not None for text in cells[1:]) and not any(
        cell(text) for text in cells[1:]
    )


def is_of_next(titles: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether a row below ``titles`` is the heading of the next table: ``lat (us) | none | bfq`` below that of IOPS."""
    if is_heading(cells) or len(cells) != len(titles):
        return is_heading(cells)
    named = names_measure(titles[0]), names_measure(cells[0])
    if any(map(cell, cells[1:])):  # the same numbers twice, or the same versions
        return cells[1:] == titles[1:] and named == (False, True)
    is_again = cells[1:] == titles[1:] and any(named)
    return any(cells[1:]) and (is_again or (all(named) and all(cells[1:])))


def is_above(upper: Sequence[str], lower: Sequence[str]) -> bool:
    """Whether the titles ``upper`` say of what those below are: ``Read`` and ``Write`` above two of ``IOPS``."""
    if not is_heading(lower) or any(
        column(text) is not None or cell(text) for text in upper
    ):
        return False
    spread = len({text for text in upper[1:] if text}) < len(upper) - 1
    return any(upper[1:]) and (spread or not lower[0])


def together(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Titles of two levels as one: an empty one after the first column means that to its left."""
    titles = [lower[0] or upper[0]]
    above = ""
    for high, low in zip(upper[1:], lower[1:], strict=True):
        above = high or above
        titles.append(low if above == low else f"{above} {low}".strip())
    return titles


def _are_sections(rows: Sequence[Row], named: Sequence[int]) -> bool:
    """Whether the rows ``named`` head those below them: the first does, one that names work, and those that repeat."""
    of_work = (at == 0 or _is_of_workload(rows[at][1][0]) for at in named)
    return any(of_work) or _repeat(rows, named)


def in_sections(rows: Sequence[Row]) -> list[Row]:
    """``rows`` without those that only name the rows below them, each with that name as its section."""
    named = [
        at
        for at, (_, cells, _) in enumerate(rows)
        if _has_name_only(cells) and at + 1 < len(rows)
    ]
    if not _are_sections(rows, named):
        return list(rows)  # rows whose results are missing
    found: list[Row] = []
    section = ""
    for at, (index, cells, own) in enumerate(rows):
        if at in named:
            section = plain(cells[0]).strip(" :")
        else:
            found.append((index, cells, section or own))
    return found


def _has_name_only(cells: Sequence[str]) -> bool:
    return bool(cells[0]) and not any(cells[1:]) and cell(cells[0]) is None


def _is_of_workload(name: str) -> bool:
    return facts({}, plain(name)) != Workload()


def _repeat(rows: Sequence[Row], named: Sequence[int]) -> bool:
    """Whether a name stands above and below one of the rows ``named``."""
    names = [cells[0] for _, cells, _ in rows]
    return any(set(names[:at]) & set(names[at + 1 :]) for at in named)


def of_section(measure: Heading, section: str) -> Heading:
    """The measure of the rows in a section: the one that its name says, where it does."""
    if not is_measure(section):
        return measure
    named = heading(section)
    return measure._replace(title=section, column=named.column, asked=named.asked)


def between(names: Sequence[str]) -> list[str]:
    """The names of rows that are of a measure and stand above some that are of none: they may head those."""
    measures = [is_measure(name) and not is_statistic(name) for name in names]
    statistics = list(map(is_statistic, names))
    others = (
        at for at, named in enumerate(measures) if not named and not statistics[at]
    )
    last = max(others, default=0)
    return [name for name, named in zip(names[:last], measures, strict=False) if named]


def foreign_sections(rows: Sequence[Row], headings: Sequence[Heading]) -> list[str]:
    """The names of sections that are of a measure which no column is of: ``lat (us)`` among rows of IOPS."""
    measures = [h.column for h in headings if h.column is not None]
    rates = {each.stat for each in measures if each.of == "rate"}
    has_latency = any(each.of != "rate" for each in measures)
    found = []
    for section in dict.fromkeys(section for _, _, section in rows):
        named = column(section)
        if named is None:
            fits = not names_measure(section)
        elif named.of == "rate":
            fits = named.stat in rates
        else:
            fits = has_latency
        if section and not fits:
            found.append(section)
    return found
