"""Tables with what can be mended, in Markdown: what was written struck out, what was meant in bold."""

from __future__ import annotations

from itertools import groupby

from iodelta.audit import Repair
from iodelta.ingest import Run
from iodelta.study.audited import Audited
from iodelta.study.words import inert


def mended(audited: Audited) -> str:
    """Return the tables in Markdown with every repair marked: what was written struck out, what was meant in bold.

    Empty when nothing can be mended exactly.
    """
    repairs = {(repair.run, repair.column): repair for repair in audited.repairs}
    if not repairs:
        return ""
    reasons: dict[str, int] = {}
    lines: list[str] = []
    runs = enumerate(audited.runs)
    rows = [(index, run) for index, run in runs if run.format == "table"]
    for (title, columns), group in groupby(rows, key=_table_of):
        lines.append(f"### {_cell(title)}\n" if title else "")
        lines.append(f"| {' | '.join(map(_cell, columns))} | |")
        lines.append("|" + "---|" * (len(columns) + 1))
        for index, run in group:
            of_run = {column: repairs.get((index, column)) for column in run.labels}
            cells = [
                _mended(text, of_run[column], reasons)
                for column, text in run.labels.items()
            ]
            spoilt = index in audited.failed and not any(of_run.values())
            remark = "not to be used" if spoilt else ""
            lines.append(f"| {' | '.join(cells)} | {remark} |")
        lines.append("")
    notes = [f"[{number}] {reason}" for reason, number in reasons.items()]
    return "\n".join([*lines, *notes]) + "\n"


def _table_of(row: tuple[int, Run]) -> tuple[str, tuple[str, ...]]:
    """Return the table that a row is of: its title and columns."""
    _, run = row
    return run.table, tuple(run.labels)


def _mended(text: str, repair: Repair | None, reasons: dict[str, int]) -> str:
    if repair is None:
        return _cell(text)
    number = reasons.setdefault(repair.why, len(reasons) + 1)
    return f"~~{_cell(text)}~~ **{repair.mended}** [{number}]"


def _cell(text: str) -> str:
    return inert(text).replace("|", "\\|").replace("\n", " ")
