"""A story on a terminal: 80 columns, or as many as the terminal has for a table; every word readable without colour."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from iodelta.report.formats.columns import columns, fits
from iodelta.report.stories.story import BEST, Cell, Row, Section, Story, Table, notes
from iodelta.study.words import wrap

WIDTH = 80
NARROW, WIDE = 60, 120
INDENT = "  "
STYLES = {
    "regression": "bold red",
    "improvement": "bold green",
    "equivalent": "green",
    "inconclusive": "yellow",
    "no verdict": "dim",
    "longer": "bold red",
    "shorter": "bold green",
    "same": "green",
    "reproduced": "green",
    "same direction, size inconclusive": "yellow",
    "same direction, not the same size": "bold red",
    "other direction": "bold red",
    "not seen here": "bold red",
    "seen only here": "bold red",
}
GRADED = {"hard": "bold red", "warning": "yellow", "note": "dim"}


def show(console: Console, story: Story) -> None:
    """Print all of it."""
    for line in lines(story, width_of(console)):
        console.print(line, soft_wrap=True, highlight=False)


def width_of(console: Console) -> int:
    """Columns for a table: those of a terminal, between 60 and 120; 80 elsewhere."""
    return min(max(console.width, NARROW), WIDE) if console.is_terminal else WIDTH


def lines(story: Story, width: int = WIDTH) -> Iterator[Text]:
    """The story line by line, none wider than ``width`` but commands, which are to be pasted."""
    prose = min(width, WIDTH)
    for text in filter(None, (story.question, story.answer)):
        yield from _wrapped(text, prose, style="bold")
    for section in story.lead:
        yield from section_lines(section, prose)
    for table in story.tables:
        yield from _table(table, width)
    if story.marks:
        yield Text()
        yield from _wrapped(f"* {BEST}", prose)
    for section in story.sections:
        yield from section_lines(section, prose)


def section_lines(section: Section, width: int) -> Iterator[Text]:
    """One section, after an empty line."""
    yield Text()
    yield from _wrapped(section.title, width, style="bold")
    for item in section.items:
        if section.commands or section.drawing:
            yield Text(f"{INDENT}{item.text}")
            continue
        yield from _wrapped(item.text, width, before=INDENT, style=GRADED.get(item.grade, ""))
        for text in item.below:
            yield from _wrapped(text, width, before=INDENT * 2)


def _table(table: Table, width: int) -> Iterator[Text]:
    numbered = notes(table.rows)
    head = (table.first, *table.heads)
    rows = [(_name(row), *_texts(row, numbered)) for row in table.rows]
    alone = not fits([head, *rows], width, len(INDENT))  # then names have lines of their own, and none is cut
    if alone:
        rows = [("", *row[1:]) for row in rows]
    align = "<" + ">" * (len(table.heads) - 1) + ("<" if table.words else ">")
    title, *made = columns([head, *rows], align, width, indent=len(INDENT))
    yield Text()
    yield from _wrapped(table.title, min(width, WIDTH), style="bold")
    yield Text(title, style="dim")
    group = ""
    for row, line in zip(table.rows, made, strict=True):
        if row.group and row.group != group:
            yield from _wrapped(row.group, min(width, WIDTH), before=INDENT)
        group = row.group
        if alone:
            yield from _wrapped(_name(row), min(width, WIDTH), before=INDENT)
        yield _styled(line, row.cells[-1].text if row.cells else "")
    for note, number in numbered.items():
        yield from _wrapped(f"[{number}] {note}", min(width, WIDTH), before=INDENT)


def _name(row: Row) -> str:
    return f"{INDENT}{row.name}" if row.group else row.name


def _texts(row: Row, numbered: dict[str, int]) -> list[str]:
    texts = [_text(cell) for cell in row.cells]
    if row.note:
        texts[-1] += f" [{numbered[row.note]}]"
    return texts


def _text(cell: Cell) -> str:
    return f"{cell.text}*" if cell.best else cell.text


def _styled(line: str, word: str) -> Text:
    text = Text(line)
    if word in STYLES:
        begin = line.rindex(word)
        text.stylize(STYLES[word], begin, begin + len(word))
    return text


def _wrapped(text: str, width: int, *, style: str = "", before: str = "") -> Iterator[Text]:
    """Lines of at most ``width`` columns behind ``before``; those after the first are indented."""
    room = width - len(before)
    yield from (Text(f"{before}{line}", style=style) for line in wrap(text, room, INDENT))
