"""The column of a table with the direction of its rows: ``dir``, ``rw``, ``op``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from iodelta.ingest.table_cells import is_missing, plain
from iodelta.ingest.table_grids import Grid
from iodelta.ingest.table_levels import Row
from iodelta.ingest.workload_words import MODE, is_direction_title

_WORDS = {
    **dict.fromkeys(("r", "rd", "reads", "reading"), "read"),
    **dict.fromkeys(("w", "wr", "writes", "writing"), "write"),
    **dict.fromkeys(("t", "tr", "trims", "trimming", "discard", "discards"), "trim"),
    **dict.fromkeys(
        ("both", "total", "all", "sum", "r+w", "r/w", "read+write", "read/write"),
        "mixed",
    ),
}
_NUMBERS = {"0": "read", "1": "write", "2": "trim"}
"""The directions as fio's logs and the kernel number them."""
_OF_NUMBERS = re.compile(r"(?:data|io)?[\s_-]?d?dir(?:ection)?", re.I)
"""Titles under which numbers are directions; under ``op`` or ``rw``, 1 may mean anything."""


class Unknown(NamedTuple):
    """A cell in a column of directions that does not name one."""

    title: str
    text: str


def directed(grid: Grid) -> Grid:
    """``grid`` with full names of directions (``read`` for ``R``), without rows of unknown direction."""
    columns = list(_columns(grid))
    if not columns:
        return grid
    doubted = unknown(grid)
    rows = [_spelt(row, columns) for row in grid.rows if row[0] not in doubted]
    return grid._replace(rows=rows)


def unknown(grid: Grid) -> Mapping[int, Unknown]:
    """Return the cells that should name a direction and do not, by the index of their line."""
    unknowns: dict[int, Unknown] = {}
    for at in _columns(grid):
        for index, cells, _ in grid.rows:
            text = cells[at]
            if (
                any(cells[1:])
                and not is_missing(text)
                and not _direction(grid.titles[at], text)
            ):
                unknowns[index] = Unknown(grid.titles[at], text)
    return unknowns


def _columns(grid: Grid) -> Iterator[int]:
    """Yield the columns with a title for directions in which at least one cell names a direction."""
    for at, title in enumerate(grid.titles):
        if is_direction_title(title) and any(
            _direction(title, cells[at]) for _, cells, _ in grid.rows
        ):
            yield at


def _spelt(row: Row, columns: list[int]) -> Row:
    index, cells, section = row
    spelt = list(cells)
    for at in columns:
        spelt[at] = _short(cells[at]) or cells[at]
    return index, spelt, section


def _direction(title: str, text: str) -> str:
    """Return the direction or mode that a cell names; empty for anything else."""
    short = _short(text)
    if short and not (
        text.strip() in _NUMBERS and not _OF_NUMBERS.fullmatch(plain(title).strip())
    ):
        return short
    mode = MODE.search(plain(text))
    if not mode:
        return ""
    return mode[0]


def _short(text: str) -> str:
    word = plain(text).strip(" .:").lower()
    return _WORDS.get(word) or _NUMBERS.get(word, "")
