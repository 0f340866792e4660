"""Rows as CSV, and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from iodelta.study.words import inert

RUNS = re.compile(r"(^|[;,|])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Where a spreadsheet would take a text for a formula: at its beginning, or after what it may split cells at."""


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows with a heading. What is unknown (None, nan, infinite) is empty; numbers have all their digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(list(map(defused, row)))
    return buffer.getvalue()


def records_text(
    columns: Sequence[str], records: Iterable[Mapping[str, object]]
) -> str:
    """As ``csv_text``, of rows that name their values. Raises KeyError where one lacks a column."""
    rows = ([record[column] for column in columns] for record in records)
    return csv_text(columns, rows)


def defused(value: object) -> object:
    """Return a value as a cell: text without control characters, and with ' before what a spreadsheet would run."""
    if isinstance(value, str):
        return RUNS.sub(r"\1\2'", inert(value))
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return value
