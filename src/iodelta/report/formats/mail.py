"""A story as a plain-text mail: 72 columns, ASCII, cells as rows, the shape that kernel mailing lists are used to."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from iodelta.report.stories.story import BEST, Cell, Section, Story, Table, notes
from iodelta.study.words import wrap

WIDTH = 72
INDENT = "  "
TALLEST = 4
"""Lines that the heading of a column may take."""

EQUALS = {
    ord(char): plain
    for char, plain in zip(
        "\u00a0\u2009\u202f\u2010\u2011\u2012\u2013\u2014\u2212×µμ±…’“”",
        [*"   ------xuu", "+-", "...", *'\'""'],
        strict=True,
    )
}
"""Characters of print with an equal in ASCII."""

WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"])+""")
"""One word of a command, with its quotes."""


def mail(story: Story) -> str:
    """Return the whole mail without headers; no line is wider than 72 columns, none can be taken for a mail's own
    syntax.
    """
    return "".join(f"{line}\n" for line in _safe(_lines(story)))


def _safe(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        text = line.rstrip()
        # "From " begins a message in a mailbox, "-- " a signature, "---" ends a commit message for git am.
        yield f" {text}" if text.startswith(("From ", "--")) or text == "." else text


def _lines(story: Story) -> Iterator[str]:
    if story.question:
        yield from paragraph(story.question, "")
        yield ""
    yield from paragraph(story.answer, "")
    for section in story.lead:
        yield ""
        yield from _section(section)
    for table in story.tables:
        yield ""
        yield from _table(table)
    if story.marks:
        yield ""
        yield from paragraph(f"* {BEST}")
    for section in story.sections:
        yield ""
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    title = plain(section.title)
    yield title
    yield "=" * len(title)
    for item in section.items:
        if section.drawing:
            yield f"{INDENT}{plain(item.text)}"
        elif section.commands:
            yield from _command(plain(item.text))
        else:
            yield from paragraph(
                item.text, f"{plain(item.label):<10}" if item.label else "- "
            )
            for text in item.below:
                yield from paragraph(text, f"{INDENT}- ")


def paragraph(text: str, mark: str = "") -> Iterator[str]:
    """Wrapped text, indented below its mark."""
    # One column is left for what must not stand at the beginning of a line.
    width = WIDTH if mark else WIDTH - 1
    yield from wrap(f"{mark}{plain(text)}", width, " " * len(mark)) or [""]


def _command(line: str) -> Iterator[str]:
    """Yield a command over several lines as a shell takes it: broken between words only, with a backslash."""
    if line.startswith("#"):
        yield from textwrap.wrap(
            line,
            WIDTH,
            initial_indent=INDENT,
            subsequent_indent=f"{INDENT}#     ",
            break_on_hyphens=False,
        )
        return
    current = INDENT
    for word in _together(WORD.findall(line)):
        if len(current) + len(word) + 3 > WIDTH and current.strip():
            yield f"{current} \\"
            current = INDENT * 3
        *broken, word = _broken(word)
        yield from (
            f"{current}{' ' if current.strip() else ''}{part}\\" for part in broken
        )
        if broken:
            current = word
        else:
            current += f" {word}" if current.strip() else word
    yield current


def _together(words: Sequence[str]) -> Iterator[str]:
    """Words, an option in one piece with the value that follows it."""
    waiting = ""
    for word in words:
        is_short = len(waiting) + len(word) < WIDTH - 14
        if waiting and is_short and not word.startswith("-"):
            yield f"{waiting} {word}"
            waiting = ""
            continue
        if waiting:
            yield waiting
        waiting = word if word.startswith("--") and "=" not in word else ""
        if not waiting:
            yield word
    if waiting:
        yield waiting


def _broken(word: str) -> list[str]:
    """Return a word too long for a line in parts, which the shell puts together again: ``'ab'\\`` newline ``'cd'``."""
    room = WIDTH - len(INDENT) * 3 - 4
    if len(word) <= room + 2:
        return [word]
    try:
        (text,) = shlex.split(word)
    except ValueError:
        return [word]
    length = room // 2
    begins = range(0, len(text), length)
    return [shlex.quote(text[begin : begin + length]) for begin in begins]


class _Column(NamedTuple):
    """A column of a table as it is printed."""

    head: str
    cells: Sequence[str]
    width: int
    holds_words: bool
    """Words stand on the left, numbers on the right."""

    def padded(self, text: str) -> str:
        """Return a text as wide as the column."""
        return f"{text:<{self.width}}" if self.holds_words else f"{text:>{self.width}}"

    def heading(self, height: int) -> list[str]:
        """Return the head in so many lines, the last of them at the bottom."""
        lines = _tall(self.head, self.width)
        return [*[""] * (height - len(lines)), *lines]


def _table(table: Table) -> Iterator[str]:
    numbered = notes(table.rows)
    texts = [list(map(_text, row.cells)) for row in table.rows]
    names = [plain(row.name) for row in table.rows]
    for place, row in enumerate(table.rows):
        if row.note and table.words:
            texts[place][-1] += f" [{numbered[row.note]}]"
        elif row.note:
            names[place] += f" [{numbered[row.note]}]"
    longest = max(map(len, (*names, plain(table.first))))
    if table.title:
        yield from paragraph(table.title)
    for columns, gap, room in _parts(_columns(table, texts), longest):
        yield from _part(table, names, columns, gap, room)
    for note, number in numbered.items():
        yield from paragraph(note, f"{INDENT}[{number}] ")


def _columns(table: Table, texts: Sequence[Sequence[str]]) -> list[_Column]:
    last = len(table.heads) - 1
    columns = []
    for place, head in enumerate(map(plain, table.heads)):
        cells = [row[place] for row in texts]
        holds_words = table.words and place == last
        columns.append(_Column(head, cells, _width(head, cells), holds_words))
    return columns


def _parts(
    columns: Sequence[_Column], longest: int
) -> Iterator[tuple[Sequence[_Column], int, int]]:
    """Yield the columns that stand side by side, the gap between them, and the room for names.

    All of them, closer together if need be, with names that do not fit on lines of their own; columns that are too wide
    even so stand in several parts under one another.
    """
    whole = sum(column.width for column in columns)
    for gap, name in ((2, longest), (1, longest), (2, 0), (1, 0)):
        left = WIDTH - len(INDENT) - whole - gap * len(columns)
        if left >= name:
            yield columns, gap, min(longest, left)
            return
    room = min(longest, 14)
    part: list[_Column] = []
    for column in columns:
        used = sum(other.width + 2 for other in (*part, column))
        if part and len(INDENT) + used + room > WIDTH:
            yield part, 2, room
            part = []
        part.append(column)
    yield part, 2, room


def _part(
    table: Table,
    names: Sequence[str],
    columns: Sequence[_Column],
    gap: int,
    room: int,
) -> Iterator[str]:
    def line(name: str, cells: Iterable[str]) -> str:
        parts = [f"{INDENT}{name:<{room}}"]
        parts += [
            column.padded(cell) for column, cell in zip(columns, cells, strict=True)
        ]
        return (" " * gap).join(parts)

    height = max(len(_tall(column.head, column.width)) for column in columns)
    headings = [column.heading(height) for column in columns]
    *above, last = zip(*headings, strict=True)
    yield from (line("", heads) for heads in above)
    first = plain(table.first)
    yield line(first if len(first) <= room else "", last)
    group = ""
    for place, (row, name) in enumerate(zip(table.rows, names, strict=True)):
        head, rest = (plain(row.group), name) if row.group else _split(name, room)
        if head:
            # One line names the group of all rows below it.
            if head != group:
                yield from _hanging(f"{head}:")
            group, name = head, f" {rest}"
        if len(name) > room:
            yield from _hanging(name)
            name = ""
        yield line(name, (column.cells[place] for column in columns))


def _hanging(text: str) -> list[str]:
    """Lines of which those after the first are indented."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT * 2
    )


def _tall(head: str, width: int) -> list[str]:
    """Return a heading in lines, cut where it has more than a reader could use."""
    lines = textwrap.wrap(head, max(width, 1)) or [""]
    if len(lines) <= TALLEST:
        return lines
    return [*lines[: TALLEST - 1], f"{lines[TALLEST - 1][: width - 1]}~"]


def _split(name: str, room: int) -> tuple[str, str]:
    """Return a name that is too long where it has a part that fits: ``("Defrag On: HDD, 1", "QD1")``; else no head."""
    cut = max(name.rfind(": "), name.rfind(", "))
    head, rest = name[: max(cut, 0)], name[cut + 2 :]
    if len(name) <= room or not head or len(rest) >= room:
        return "", name
    return head, rest


def _width(head: str, cells: Sequence[str]) -> int:
    """As wide as its cells; the heading takes several lines rather than make it wider."""
    widest = max(map(len, cells), default=0)
    longest_word = max(map(len, re.split(r"[\s-]", head)))
    if "-" in head:
        longest_word += 1
    needed = max(longest_word, -(-len(head) // TALLEST))
    return max(widest, min(needed, 12))


def _text(cell: Cell) -> str:
    return f"{plain(cell.text)}*" if cell.best else plain(cell.text)


def plain(text: str) -> str:
    """Return the text in ASCII: a character of print becomes its equal, any other one is shown as \\xNN or \\uNNNN."""
    return text.translate(EQUALS).encode("ascii", "backslashreplace").decode("ascii")
