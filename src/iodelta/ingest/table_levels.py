"""What lies above the titles and between the rows of a table, and says of which numbers they are."""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.ingest.model import Workload
from iodelta.ingest.table_cells import cell, plain
from iodelta.ingest.table_headings import column
from iodelta.ingest.workload_words import facts

Row = tuple[int, list[str], str]
"""The index of its line, its cells, and the section it stands in."""


def is_heading(cells: Sequence[str]) -> bool:
    """Whether cells are titles: one names a measure, and none after the first is a number."""
    return any(column(text) is not None for text in cells[1:]) and not any(
        cell(text) for text in cells[1:]
    )


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
