"""A story as Markdown for a gist or a pull request (GitHub's dialect); foreign text cannot become markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodelta.report.stories.story import BEST, Cell, Section, Story, Table, notes

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
