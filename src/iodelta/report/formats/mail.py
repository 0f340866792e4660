"""A story as a plain-text mail: 72 columns, ASCII, cells as rows, the shape that kernel mailing lists are used to."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from operator import itemgetter

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
    """The whole mail without headers; no line is wider than 72 columns, none can be taken for a mail's own syntax."""
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
    """A command over several lines as a shell takes it: broken between words only, with a backslash."""
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
    """A word too long for a line in parts, which the shell puts together again: ``'ab'\\`` newline ``'cd'``."""
    room = WIDTH - len(INDENT) * 3 - 4
    if len(word) <= room + 2:
        return [word]
    try:
        (text,) = shlex.split(word)
    except ValueError:
        return [word]
    return [
        shlex.quote(text[at : at + room // 2]) for at in range(0, len(text), room // 2)
    ]


def _table(table: Table) -> Iterator[str]:
    numbered = notes(table.rows)
    texts = [list(map(_text, row.cells)) for row in table.rows]
    names = [plain(row.name) for row in table.rows]
    for at, (row, own) in enumerate(zip(table.rows, texts, strict=True)):
        if row.note and table.words:
            own[-1] += f" [{numbered[row.note]}]"
        elif row.note:
            names[at] += f" [{numbered[row.note]}]"
    heads = list(map(plain, table.heads))
    widths = [
        _width(head, list(map(itemgetter(at), texts))) for at, head in enumerate(heads)
    ]
    longest = max(map(len, (*names, table.first)))
    yield from paragraph(table.title)
    for columns, gap, room in _parts(widths, longest):
        of_part = [widths[at] for at in columns]
        yield from _part(table, names, heads, texts, of_part, columns, gap, room)
    for note, number in numbered.items():
        yield from paragraph(note, f"{INDENT}[{number}] ")


def _parts(widths: Sequence[int], longest: int) -> Iterator[tuple[list[int], int, int]]:
    """The columns that stand side by side, the gap between them, and the room for names.

    All of them, closer together where need be, with names that do not fit on lines of their own; only where even so
    they are too wide, several parts under one another.
    """
    for gap, name in ((2, longest), (1, longest), (2, 0), (1, 0)):
        left = WIDTH - len(INDENT) - sum(widths) - gap * len(widths)
        if left >= name:
            yield list(range(len(widths))), gap, min(longest, left)
            return
    chunk: list[int] = []
    for at, _ in enumerate(widths):
        used = sum(widths[column] + 2 for column in (*chunk, at))
        if chunk and len(INDENT) + used + min(longest, 14) > WIDTH:
            yield chunk, 2, min(longest, 14)
            chunk = []
        chunk.append(at)
    yield chunk, 2, min(longest, 14)


def _part(
    table: Table,
    names: Sequence[str],
    heads: Sequence[str],
    texts: Sequence[Sequence[str]],
    widths: Sequence[int],
    columns: Sequence[int],
    gap: int,
    room: int,
) -> Iterator[str]:
    words = len(heads) - 1 if table.words else -1

    def line(name: str, cells: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if at == words else cell.rjust(width)
            for at, width, cell in zip(columns, widths, cells, strict=True)
        ]
        return INDENT + name.ljust(room) + "".join(" " * gap + part for part in parts)

    tall = [_tall(heads[at], width) for at, width in zip(columns, widths, strict=True)]
    height = max(map(len, tall))
    for number in range(height):
        row = [
            parts[number - height] if number >= height - len(parts) else ""
            for parts in tall
        ]
        yield line(
            table.first if number == height - 1 and room >= len(table.first) else "",
            row,
        )
    group = ""
    for line_of, name, own in zip(table.rows, names, texts, strict=True):
        head, rest = (
            (plain(line_of.group), name) if line_of.group else _split(name, room)
        )
        if head:  # one line for all that have it in common
            if head != group:
                yield from textwrap.wrap(
                    f"{head}:",
                    WIDTH,
                    initial_indent=INDENT,
                    subsequent_indent=INDENT * 2,
                )
            group, name = head, f" {rest}"
        if len(name) > room:
            yield from textwrap.wrap(
                name, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT * 2
            )
            name = ""
        yield line(name, [own[at] for at in columns])


def _tall(head: str, width: int) -> list[str]:
    """A heading in lines, cut where it has more than a reader could use."""
    lines = textwrap.wrap(head, max(width, 1)) or [""]
    if len(lines) <= TALLEST:
        return lines
    return [*lines[: TALLEST - 1], f"{lines[TALLEST - 1][: width - 1]}~"]


def _split(name: str, room: int) -> tuple[str, str]:
    """A name that is too long where it has a part that fits: ``("Defrag On: HDD, 1", "QD1")``; else no head."""
    at = max(name.rfind(": "), name.rfind(", "))
    fits = len(name) > room and at > 0 and len(name) - at - 2 < room
    return (name[:at], name[at + 2 :]) if fits else ("", name)


def _width(head: str, cells: Sequence[str]) -> int:
    """As wide as its cells; the heading takes several lines rather than make it wider."""
    widest = max(map(len, cells), default=0)
    part = max(map(len, re.split(r"[\s-]", head)), default=0)
    return max(
        widest,
        min(max(part + 1 if "-" in head else part, -(-len(head) // TALLEST)), 12),
    )


def _text(cell: Cell) -> str:
    return f"{plain(cell.text)}*" if cell.best else plain(cell.text)


def plain(text: str) -> str:
    """ASCII alone: what has an equal there becomes it, what has none is shown as \\xNN or \\uNNNN."""
    return text.translate(EQUALS).encode("ascii", "backslashreplace").decode("ascii")
