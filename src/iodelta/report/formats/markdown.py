"""A story as Markdown for a gist or a pull request (GitHub's dialect); foreign text cannot become markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from iodelta.audit import Repair
from iodelta.ingest import Run
from iodelta.report.stories.story import BEST, Cell, Section, Story, Table, notes
from iodelta.study.audited import Audited
from iodelta.study.words import inert

SPECIAL = re.compile(r"[\\`*\[<|~$]|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_])")
"""What means something to Markdown wherever it stands."""

BEGINS = re.compile(r"^(?:[#+=:>-]|\d+(?=[.)](?:\s|$)))")
"""What means something at the beginning of a line."""

LIVE = re.compile(
    r"@(?=[\w-])|(?<=:)//|www(?=\.)|#(?=\d)|GH(?=-\d)|:(?=[\w+-]+:)", re.IGNORECASE
)
"""What GitHub makes live without any markup: people, addresses, issues, pictures of faces."""


def markdown(story: Story) -> str:
    """Return the whole report; tables in GitHub's form, the best values bold."""
    return "\n".join(_lines(story)) + "\n"


def _lines(story: Story) -> Iterator[str]:
    if story.question:
        yield f"## {escaped(story.question)}"
        yield ""
    yield f"**{escaped(story.answer)}**"
    for section in story.lead:
        yield ""
        yield from _section(section)
    for table in story.tables:
        yield ""
        yield from _table(table)
    if story.marks:
        yield ""
        yield f"Bold: {BEST}."
    for section in story.sections:
        yield ""
        yield from _section(section)


def _table(table: Table) -> Iterator[str]:
    numbered = notes(table.rows)
    if table.title:
        yield f"### {escaped(table.title)}"
        yield ""
    yield f"| {' | '.join(escaped(head) or ' ' for head in (table.first, *table.heads))} |"
    last = "---" if table.words else "---:"
    yield f"|{'|'.join(['---', *(['---:'] * (len(table.heads) - 1)), last])}|"
    for row in table.rows:
        cells = [escaped(row.label), *map(_cell, row.cells)]
        if row.note:
            cells[-1 if table.words else 0] += f" \\[{numbered[row.note]}]"
        yield f"| {' | '.join(cells)} |"
    if numbered:
        yield ""
        yield from (
            f"\\[{number}] {escaped(note)}  " for note, number in numbered.items()
        )


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    if cell.best and text:
        return f"**{text}**"
    return text


def _section(section: Section) -> Iterator[str]:
    yield f"### {escaped(section.title)}"
    yield ""
    if not (section.commands or section.drawing):
        for item in section.items:
            yield (
                f"- **{escaped(item.label)}**: {escaped(item.text)}"
                if item.label
                else f"- {first(item.text)}"
            )
            yield from (f"  - {first(below)}" for below in item.below)
        return
    text = "\n".join(item.text for item in section.items)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    yield f"{fence}{'sh' if section.commands else 'text'}"
    yield text
    yield fence


def escaped(text: str) -> str:
    """Text that renders as itself, letter by letter: no markup, link, image, HTML, mention or table cell comes of it.

    What GitHub makes live without markup is cut by an empty comment, which no reader sees.
    """
    return LIVE.sub(
        r"\g<0><!-- -->", SPECIAL.sub(r"\\\g<0>", " ".join(text.split("\n")))
    )


def first(text: str) -> str:
    """As ``escaped``, where it begins a line or the text of a list item."""
    return BEGINS.sub(
        lambda match: f"{match[0]}<!-- -->" if match[0].isdigit() else f"\\{match[0]}",
        escaped(text),
    )


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
        lines.append(f"### {_mended_cell(title)}\n" if title else "")
        lines.append(f"| {' | '.join(map(_mended_cell, columns))} | |")
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
        return _mended_cell(text)
    number = reasons.setdefault(repair.why, len(reasons) + 1)
    return f"~~{_mended_cell(text)}~~ **{repair.mended}** [{number}]"


def _mended_cell(text: str) -> str:
    return inert(text).replace("|", "\\|").replace("\n", " ")
