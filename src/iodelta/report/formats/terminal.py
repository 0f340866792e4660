"""A story on a terminal: 80 columns, or as many as the terminal has for a table; every word readable without colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text

from iodelta.report.stories.story import (
    BEST,
    Cell,
    Item,
    Row,
    Section,
    Story,
    Table,
    notes,
)
from iodelta.study.words import wrap

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
NARROW, WIDE = 60, 120
INDENT = "  "
LABEL = 10
"""Columns of the labels of items."""

STYLES = {
    "regression": "bold red",
    "improvement": "bold green",
    "equivalent": "green",
    "inconclusive": "yellow",
    "no verdict": "dim",
    "regression everywhere": "bold red",
    "regression on average": "bold red",
    "depends on the machine": "bold red",
    "improvement everywhere": "bold green",
    "improvement on average": "bold green",
    "regression on these hosts": "bold red",
    "improvement on these hosts": "bold green",
    "equivalent on these hosts": "green",
    "equivalent everywhere": "green",
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


def show(console: Console, story: Story, *, whole: bool = False) -> None:
    """Print it; ``whole`` includes what otherwise only other formats have."""
    for line in lines(story, width_of(console), whole=whole):
        console.print(line, soft_wrap=True, highlight=False)


def width_of(console: Console) -> int:
    """Columns for a table: those of a terminal, between 60 and 120; 80 elsewhere."""
    if not console.is_terminal:
        return WIDTH
    return min(max(console.width, NARROW), WIDE)


def lines(story: Story, width: int = WIDTH, *, whole: bool = False) -> Iterator[Text]:
    """Yield the story line by line, none wider than ``width`` but commands, which are to be pasted."""
    prose = min(width, WIDTH)
    if not whole:
        story = one_screen(story)
    for text in filter(None, (story.question, story.answer)):
        yield from _wrapped(text, prose, style="bold")
    for section in story.lead:
        yield from section_lines(section, prose)
    yield from _tables(story.tables, width)
    if story.marks:
        yield Text()
        yield from _wrapped(f"* {BEST}", prose)
    yield from sections_lines(story.sections, prose, whole=whole)


def one_screen(story: Story) -> Story:
    """Return the story without what one screen leaves out, and with the command that shows it; whole where there is
    none.
    """
    tables = tuple(table for table in story.tables if not table.rest)
    sections = [part for part in story.sections if not part.rest]
    lead = tuple(part for part in story.lead if not part.rest)
    kept = len(tables) + len(sections) + len(lead)
    everything = len(story.tables) + len(story.sections) + len(story.lead)
    if kept == everything or not story.details:
        return story
    titles = [part.title for part in sections]
    place = titles.index("System") if "System" in titles else len(titles)
    # Behind its title also where it is longer than a line: a command is not cut.
    command, short = (Item(story.details),), f"`{story.details}`"
    details = Section("All details", command, commands=True, brief=short)
    sections.insert(place, details)
    return replace(story, lead=lead, tables=tables, sections=tuple(sections))


def sections_lines(
    sections: Iterable[Section], width: int, *, whole: bool = False
) -> Iterator[Text]:
    """Sections after empty lines; short ones that follow each other share one."""
    short_before = False
    for section in sections:
        short = _in_short(section, width, whole=whole)
        if not short:
            yield from section_lines(section, width)
        elif short_before:
            yield from short
        else:
            yield from (Text(), *short)
        short_before = bool(short)


def section_lines(section: Section, width: int) -> Iterator[Text]:
    """Yield one section, after an empty line. Where items have labels, these stand for its title."""
    yield Text()
    if any(item.label for item in section.items):
        yield from map(Text, labelled(section.items, width))
        return
    yield from _wrapped(section.title, width, style="bold")
    for item in section.items:
        if section.commands or section.drawing:
            yield Text(f"{INDENT}{item.text}")
            continue
        yield from _wrapped(
            item.text, width, before=INDENT, style=GRADED.get(item.grade, "")
        )
        for text in item.below:
            yield from _wrapped(text, width, before=INDENT * 2)


def labelled(items: Iterable[Item], width: int = WIDTH) -> Iterator[str]:
    """Yield each item behind its label, what is continued below the text. A path stays whole, so that it can be pasted."""
    indent = " " * LABEL
    for item in items:
        yield from wrap(
            f"{item.label:<{LABEL - 1}} {item.text}", width, indent, whole=True
        )
        for text in item.below:
            yield from wrap(f"{indent}{text}", width, indent, whole=True)


def _in_short(section: Section, width: int, *, whole: bool) -> list[Text]:
    """Return the section behind its title, where it has a short form or one line holds it; else empty."""
    title = f"{section.title}: "
    if section.brief and not whole:
        text = f"{title}{section.brief}"
        short = [text] if section.commands else wrap(text, width, INDENT)
        return [_titled(short[0], title), *map(Text, short[1:])]
    first = section.items[0]
    alone = len(section.items) == 1 and not (
        first.below or first.label or section.drawing
    )
    if not alone or cell_len(title) + cell_len(first.text) > width:
        return []
    return [_titled(f"{title}{first.text}", title, GRADED.get(first.grade, "default"))]


def _titled(line: str, title: str, style: str = "default") -> Text:
    """Return a line that begins with a title."""
    return Text(title, style="bold").append(line[len(title) :], style=style)


def _tables(tables: Iterable[Table], width: int) -> Iterator[Text]:
    """Yield all tables; those with the same columns, one after the other, share a heading."""
    for _, alike in groupby(
        tables, key=lambda table: (table.first, table.heads, table.words)
    ):
        yield from _together(list(alike), width)


def _together(tables: Sequence[Table], width: int) -> Iterator[Text]:
    first = tables[0]
    prose = min(width, WIDTH)
    rows = list(chain.from_iterable(table.rows for table in tables))
    numbered = notes(rows)
    head = (first.first, *first.heads)
    texts = [(_name(row), *_texts(row, numbered)) for row in rows]
    alone = _alone([head, *texts], width)[1:]
    kept = [
        ("", *text[1:]) if is_alone else text
        for text, is_alone in zip(texts, alone, strict=True)
    ]
    align = "<" + ">" * (len(first.heads) - 1) + ("<" if first.words else ">")
    heading, *made = columns([head, *kept], align, width, indent=len(INDENT))
    waiting = iter(zip(rows, made, alone, strict=True))
    yield Text()
    if len(tables) > 1:
        yield Text(heading, style="dim")
    for table in tables:
        yield from _wrapped(table.title, prose, style="bold")
        if len(tables) == 1:
            yield Text(heading, style="dim")
        yield from _rows(islice(waiting, len(table.rows)), prose)
    for note, number in numbered.items():
        yield from _wrapped(f"[{number}] {note}", prose, before=INDENT)


def _rows(rows: Iterable[tuple[Row, str, bool]], width: int) -> Iterator[Text]:
    """Rows with their lines; a group is named once, and a name that does not fit has a line of its own."""
    group = ""
    for row, line, is_alone in rows:
        if row.group and row.group != group:
            yield from _wrapped(row.group, width, before=INDENT)
        group = row.group
        if is_alone:
            yield from _wrapped(_name(row), width, before=INDENT)
        yield _styled(line, row.cells[-1].text if row.cells else "")


def _alone(rows: Sequence[Sequence[str]], width: int) -> list[bool]:
    """Return whether each row's name is too long to stand before the numbers, because names are not cut."""
    numbers = [
        max(map(cell_len, column)) for column in list(zip(*rows, strict=True))[1:]
    ]
    room = width - len(INDENT) - sum(numbers) - len(numbers)
    return [cell_len(row[0]) > room for row in rows]


def _name(row: Row) -> str:
    return f"{INDENT}{row.name}" if row.group else row.name


def _texts(row: Row, numbered: dict[str, int]) -> list[str]:
    texts = list(map(_text, row.cells))
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


def _wrapped(
    text: str, width: int, *, style: str = "", before: str = ""
) -> Iterator[Text]:
    """Lines of at most ``width`` columns behind ``before``; those after the first are indented."""
    room = width - len(before)
    yield from (
        Text(f"{before}{line}", style=style) for line in wrap(text, room, INDENT)
    )


GAPS = (2, 1)
"""Blanks between columns, the wider first."""

LEAST = 8
"""Columns of names that are kept where a table is too wide."""


def columns(
    rows: Sequence[Sequence[str]],
    align: str,
    width: int,
    *,
    indent: int = 0,
    fold: int | None = None,
) -> list[str]:
    """Return one line for each row (the first holds the headings), at most ``width`` wide where that can be.

    ``align`` says ``<`` or ``>`` of each column. Where they do not fit, the first column is cut at its end, never a
    number; then the columns from ``fold`` on (else those that do not fit) go to a line of their own below (of a row
    that has any), in the same string; then headings that are wider than what stands below them are cut.
    """
    widths = [
        max(map(cell_len, column), default=0) for column in zip(*rows, strict=True)
    ]
    for gap in GAPS:
        spare = width - indent - sum(widths) - gap * (len(widths) - 1)
        if spare >= 0 or (gap == GAPS[-1] and widths[0] + spare >= LEAST):
            widths[0] += min(0, spare)
            return [_line(row, widths, align, gap, indent) for row in rows]
    at = _whole_columns(widths, width - indent) if fold is None else fold
    rows = [
        (
            *_headings(rows, (0, at), width - indent),
            *_headings(rows, (at, len(widths)), width - indent - 2),
        ),
        *rows[1:],
    ]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    widths[0] = max(
        LEAST, min(widths[0], width - indent - sum(widths[1:at]) - (at - 1))
    )
    lines = []
    for row in rows:
        lines.append(_line(row[:at], widths[:at], align, 1, indent))
        if any(row[at:]):
            lines[-1] += "\n" + _line(row[at:], widths[at:], align[at:], 1, indent + 2)
    return lines


def _headings(
    rows: Sequence[Sequence[str]], part: tuple[int, int], room: int
) -> Sequence[str]:
    """Return the headings of the columns from ``part[0]`` to ``part[1]``, cut so that these fit ``room``.

    Names of files differ at their ends: what all that are cut begin with goes first. None is cut to look like another.
    """
    heads, *bodies = [row[slice(*part)] for row in rows]
    least = [
        max([LEAST, *map(cell_len, column)]) for column in zip(*bodies, strict=True)
    ]
    if not least:
        least = [LEAST] * len(heads)
    spare = room - sum(least) - GAPS[-1] * (len(heads) - 1)
    too_wide = [
        cell_len(head) - width for head, width in zip(heads, least, strict=True)
    ]
    long = [place for place, excess in enumerate(too_wide) if excess > 0]
    if sum(too_wide[place] for place in long) <= max(0, spare):
        return heads
    names = [heads[place] for place in long]
    each = max(0, spare) // len(long)
    shorter = [
        cut(name, least[place] + each)
        for place, name in zip(long, _ends(names), strict=True)
    ]
    if len(set(shorter)) < len(set(names)):
        return heads
    shown = dict(zip(long, shorter, strict=True))
    return [shown.get(place, head) for place, head in enumerate(heads)]


def _ends(names: Sequence[str]) -> list[str]:
    """Return names without what all of them begin with, for which ``~`` stands."""
    first, last = min(names), max(names)
    same = differs_from(first, last)
    return [f"~{name[same:]}" if same else name for name in names]


def differs_from(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the place from which on two texts or rows differ; 0 where one is the beginning of the other."""
    differs = [text != other for text, other in zip(first, second, strict=False)]
    return differs.index(True) if True in differs else 0


def _whole_columns(widths: Sequence[int], room: int) -> int:
    """Return how many columns stand on one line, names cut to the least."""
    used = LEAST
    for count, width in enumerate(widths[1:], 1):
        used += GAPS[-1] + width
        if used > room:
            return max(count, 2)
    return len(widths)


def _line(
    row: Sequence[str], widths: Sequence[int], align: str, gap: int, indent: int
) -> str:
    padded = []
    for text, width, side in zip(row, widths, align, strict=False):
        shown = cut(text, width)
        blanks = " " * (width - cell_len(shown))
        padded.append(blanks + shown if side == ">" else shown + blanks)
    return (" " * indent + (" " * gap).join(padded)).rstrip()


def cut(text: str, width: int) -> str:
    """Text of at most ``width`` columns, ``~`` where its end is missing."""
    if cell_len(text) <= width:
        return text
    # A name of megabytes is not measured again for each of its characters.
    text = text[:width]
    while cell_len(text) > width - 1:
        text = text[:-1]
    return f"{text}~"
