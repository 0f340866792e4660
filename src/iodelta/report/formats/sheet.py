"""CSV for spreadsheets and scripts: exact numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodelta.part import kind_of, load

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result


def csv_of(result: Result) -> str:
    """Return any result as rows."""
    rows: str = load(kind_of(result).rows)(result)
    return rows
