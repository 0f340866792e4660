"""Tables with what can be mended, in Markdown: what was written struck out, what was meant in bold."""

from __future__ import annotations

from itertools import groupby

from iodelta.audit import Repair
from iodelta.study.audited import Audited
from iodelta.study.words import inert


def mended(audited: Audited) -> str:
    """The tables in Markdown with every repair marked: what was written struck out, what was meant in bold.

    Empty when nothing can be mended exactly.
    """
    repairs = {(repair.run, repair.column): repair for repair in audited.repairs}
    if not repairs:
        return ""
    reasons: dict[str, int] = {}
    parts = []
    failed = set(audited.failed)
    rows = [
        (index, run) for index, run in enumerate(audited.runs) if run.format == "table"
    ]
    for (title, columns), group in groupby(
        rows, key=lambda row: (row[1].table, tuple(row[1].labels))
    ):
        parts.append(f"### {_cell(title)}\n" if title else "")
        parts.append(f"| {' | '.join(map(_cell, columns))} | |")
        parts.append("|" + "---|" * (len(columns) + 1))
        for index, run in group:
            cells = [
                _mended(text, repairs.get((index, column)), reasons)
                for column, text in run.labels.items()
            ]
            spoilt = index in failed and not any(
                (index, column) in repairs for column in run.labels
            )
            parts.append(
                f"| {' | '.join(cells)} | {'not to be used' if spoilt else ''} |"
            )
        parts.append("")
    notes = [f"[{number}] {reason}" for reason, number in reasons.items()]
    return "\n".join([*parts, *notes]) + "\n"


def _mended(text: str, repair: Repair | None, reasons: dict[str, int]) -> str:
    if repair is None:
        return _cell(text)
    number = reasons.setdefault(repair.why, len(reasons) + 1)
    return f"~~{_cell(text)}~~ **{repair.mended}** [{number}]"


def _cell(text: str) -> str:
    return inert(text).replace("|", "\\|").replace("\n", " ")
