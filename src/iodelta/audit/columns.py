"""The columns of a hand-made table: those that name its rows, and those that hold measures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodelta.ingest import Run
from iodelta.ingest.table_titles import Column, column, parse

_LONG = re.compile(r"\s*(?:\d[\d ,.]{4,}|[\d.]+e[+-]?\d+)\s*", re.IGNORECASE)


def naming(run: Run) -> dict[str, str]:
    """Return the cells that name a row, by title, in the order of the columns. A number of five digits is not a name."""
    return {
        title: text
        for title, text in run.labels.items()
        if title not in run.nameless
        and parse(title).names_rows
        and not _LONG.fullmatch(text)
    }


def measured(run: Run) -> Iterator[tuple[str, str, Column]]:
    """Title, text and meaning of each cell of a table's row whose title names a measure, in the columns' order."""
    for title, text in run.labels.items():
        meaning = column(title)
        if meaning is not None:
            yield title, text, meaning
