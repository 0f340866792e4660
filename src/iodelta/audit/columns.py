"""The columns of somebody's table that name its rows."""

from __future__ import annotations

import re

from iodelta.ingest import Run
from iodelta.ingest.table_headings import names_rows

_LONG = re.compile(r"\s*(?:\d[\d ,.]{4,}|[\d.]+e[+-]?\d+)\s*", re.IGNORECASE)


def naming(run: Run) -> dict[str, str]:
    """The cells that name a table's row, by title, in the columns' order. A number of five digits names nothing."""
    return {
        title: text
        for title, text in run.labels.items()
        if title not in run.nameless and names_rows(title) and not _LONG.fullmatch(text)
    }
