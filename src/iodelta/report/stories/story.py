"""A report as tables and paragraphs: what an account, a comparison or an import has to say, before any layout.

All text is inert already (``words.inert``); a format escapes it for its own syntax, lays it out, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import msgspec


class Cell(msgspec.Struct, frozen=True):
    """One value; ``best`` where the evidence lets it be called the best of its row, or tied with it."""

    text: str
    best: bool = False


class Row(msgspec.Struct, frozen=True):
    """One line of a table. ``note`` belongs below it: it explains the last column's word, or the whole line."""

    name: str
    cells: tuple[Cell, ...]
    note: str = ""
    group: str = ""
    """What the row has in common with those around it; said once where a layout can."""

    @property
    def label(self) -> str:
        """Return the name with its group."""
        return f"{self.group}: {self.name}" if self.group else self.name

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what the cells say."""
        return tuple(cell.text for cell in self.cells)


class Table(msgspec.Struct, frozen=True):
    """``first`` heads the names, ``heads`` the cells. The last column is words, all others are numbers."""

    title: str
    first: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    words: bool = True
    """Whether the last column holds words."""
    rest: bool = False
    """Whether one screen leaves it out."""


GLYPHS = {
    "regression": "▼",
    "improvement": "▲",
    "equivalent": "■",
    "inconclusive": "○",
    "no verdict": "◆",
}
"""The mark of each word on a page and in a picture on a terminal, the same shapes as in the charts."""

GRADES = ("hard", "warning", "note")
"""What an item about a finding begins with, and a colon; a format may set such an item off."""


class Item(msgspec.Struct, frozen=True):
    """A paragraph, and the smaller ones that belong below it."""

    text: str
    below: tuple[str, ...] = ()
    label: str = ""
    """The word for what it is about, where each item of a section has one: ``Target``."""

    @property
    def grade(self) -> str:
        """Return how grave a finding is that this is about; empty for everything else."""
        grade = self.text.partition(": ")[0]
        return grade if grade in GRADES else ""


class Section(msgspec.Struct, frozen=True):
    """Paragraphs under a title. With ``commands`` each is a line to be typed, which nothing may be put into; with
    ``drawing`` each is a line of a picture of characters, at most 70 of them, all as wide as each other."""

    title: str
    items: tuple[Item, ...]
    commands: bool = False
    drawing: bool = False
    brief: str = ""
    """What one screen shows of it, on one line; empty: all of it."""
    rest: bool = False
    """Whether one screen leaves it out."""


class Box(msgspec.Struct, frozen=True):
    """A function on its path in a flame graph: where it is drawn, as shares of the picture's width."""

    depth: int
    left: float
    width: float
    name: str
    figures: str
    """What both sides execute there."""
    change: float
    """The change as a share of the larger side, from -1 to 1."""


class Flame(msgspec.Struct, frozen=True):
    """The difference of two trees of calls: as wide as the larger side, coloured by the change."""

    title: str
    text: str
    """What it shows, for those who do not see it."""
    boxes: tuple[Box, ...]


class Story(msgspec.Struct, frozen=True):
    """Question, answer, what comes before the tables (``lead``), tables and sections, in the order of the report."""

    question: str
    answer: str
    tables: tuple[Table, ...]
    sections: tuple[Section, ...]
    lead: tuple[Section, ...] = ()
    """What a reader must know before the tables."""
    flames: tuple[Flame, ...] = ()
    """Trees of calls as pictures, where a layout has pictures; their figures are in the tables too."""
    details: str = ""
    """The command that shows all of it, where one screen leaves something out."""

    @property
    def marks(self) -> bool:
        """Return whether any value is called best."""
        rows = chain.from_iterable(table.rows for table in self.tables)
        cells = chain.from_iterable(row.cells for row in rows)
        return any(cell.best for cell in cells)


class Detail(msgspec.Struct, frozen=True):
    """How much of a result a report shows, and the name of its folder in commands."""

    folder: str = "FOLDER"
    """As a shell takes it."""
    again: str = ""
    """The command that was typed, for a result that does not hold it."""
    whole: bool = False
    """Everything, in place of examples."""
    functions: bool = False
    """Of counted instructions: the kernel's functions too."""
    bill: bool = False
    """Of counted instructions: those that cost more than others too."""
    lines: bool = False
    """Of moved cache lines: each of them too."""
    paths: bool = False
    """Of counted instructions: the tree of calls too."""
    footprint: bool = False
    """Of counted instructions: the memory that an I/O touches too."""


PLAIN = Detail()


BEST = "the best, or tied with it, as far as these trials show; without a mark they are indistinguishable"


def section(
    title: str,
    items: Iterable[str | Item],
    *,
    commands: bool = False,
    drawing: bool = False,
    brief: str = "",
    rest: bool = False,
) -> tuple[Section, ...]:
    """Return the section, or nothing when it has no items."""
    entries = tuple(
        Item(item) if isinstance(item, str) else item for item in items if item
    )
    if not entries:
        return ()
    return (
        Section(
            title=title,
            items=entries,
            commands=commands,
            drawing=drawing,
            brief=brief,
            rest=rest,
        ),
    )


def notes(rows: Iterable[Row]) -> dict[str, int]:
    """Return the distinct notes of rows, each with the number by which its rows refer to it."""
    distinct = dict.fromkeys(row.note for row in rows if row.note)
    return {note: number for number, note in enumerate(distinct, 1)}
