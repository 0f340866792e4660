"""An import as a story: what is in results of others, nothing compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from iodelta.plural import plural
from iodelta.report.foreign import table
from iodelta.report.stories.comparison import quoted
from iodelta.report.stories.statements import (
    findings,
)
from iodelta.report.stories.story import PLAIN, Cell, Detail, Row, Story, Table, section
from iodelta.study.runs import Row as RunRow
from iodelta.study.runs import Shown
from iodelta.study.words import inert


def of_shown(found: Shown, detail: Detail = PLAIN) -> Story:
    """What is in foreign results, nothing compared: the rows of ``iodelta show``."""
    runs = plural(found.runs, "run")
    return Story(
        question="",
        answer=f"{runs} in {plural(found.files, 'file')}; nothing is compared.",
        tables=tuple(_shown_table(group, list(rows)) for group, rows in groupby(found.rows, key=lambda row: row.group)),
        sections=(
            *section("Legend", table.legend(found.rows)),
            *section("Findings", findings(found.findings) if found.findings else ("none",)),
            *section("Not read", (f"{inert(r.place.file)}: {inert(r.reason)}" for r in found.refusals)),
            *section("To do it again", (f"iodelta show {' '.join(map(quoted, found.paths))}",), commands=True),
        ),
    )


def _shown_table(group: str, rows: Sequence[RunRow]) -> Table:
    heads = ("", "IOPS", "MiB/s", "mean", "p50", "p99", "p99.9")
    return Table(inert(group), "run", heads, tuple(map(_shown_row, rows)), words=False)


def _shown_row(row: RunRow) -> Row:
    cells = [row.kind, table.rate(row), table.bandwidth(row.bandwidth), table.time(row.mean)]
    cells += [table.point(row.point(share)) for share in (50.0, 99.0, 99.9)]
    mark = {"hard": " !", "warning": " ?"}.get(row.severity, "")
    return Row(f"{table.named(row)}{mark}", tuple(Cell(text) for text in cells))
