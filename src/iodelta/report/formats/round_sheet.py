"""The rounds of a preparation as CSV, one row each."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.report.formats.spreadsheet import csv_text
from iodelta.study.preparation import PrepareAnswer

COLUMNS = tuple(
    """
    disk round started seconds iops written_bytes range slope steady_window
    after_rest state size_bytes filled_bytes purged schema
    """.split()
)
"""Shares are fractions; range and slope are of the five rounds that end with this one."""


def of_preparation(account: PrepareAnswer) -> str:
    """Return one row per round."""
    return csv_text(COLUMNS, _rows(account))


def _rows(account: PrepareAnswer) -> Iterator[tuple[object, ...]]:
    disk = account.disk
    constant = (
        disk.state,
        disk.size,
        disk.filled,
        disk.purged,
        "iodelta.prepare.csv/1",
    )
    for seen in disk.rounds:
        window = (
            (seen.window.range, seen.window.slope, seen.window.steady)
            if seen.window
            else (None, None, None)
        )
        values = (
            disk.path,
            seen.round,
            seen.started,
            seen.seconds,
            seen.iops,
            seen.written,
        )
        yield (*values, *window, seen.rested, *constant)
