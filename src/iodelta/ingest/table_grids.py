"""Split result tables into titles and rows at the marks between cells: bars, commas, tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from iodelta.ingest.cleaning import Line
from iodelta.ingest.table_cells import is_number, is_value
from iodelta.ingest.table_columns import is_column
from iodelta.ingest.table_levels import (
    Row,
    in_sections,
    is_above,
    is_heading,
    is_of_next,
    together,
)

SOME = 20
"""Rows that decide whether a table contains results."""
LONGEST = 4000
"""Most characters of a line of titles."""
MOST_COLUMNS = 200
_SECTION_WORDS = 4
_APART = 3
"""Most lines between a table and further rows of it."""
RULE = re.compile(r"[\s|:+=\u2500-\u257f-]{3,}")
_UNIT = re.compile(
    r"[(\[]?(?:1/s|io/s|iops|ops|[kmg]?i?b(?:/s(?:ec)?|ps)|[mnuµμ]?s(?:ec(?:ond)?s?)?|%|k|m|w|count|#)[)\]]?",
    re.I,
)
UNIT_TITLES = ("unit", "units", "einheit")
"""Titles of a column, or the name of a row, that holds the units of the others."""
_TYPE = re.compile(
    r"<\w{1,9}>|u?int(?:eger|\d{1,3})?|i64|u64|f64|float\d{0,2}|double|varchar|str(?:ing\d{0,2})?|---",
    re.I,
)
_DIGIT = re.compile(r"\d")
_LATEX_RULE = re.compile(
    r"\\(?:[htmbc][a-z]{0,6}(?:line|rule)|addlinespace)\b[^&]{0,60}"
)
_LATEX_UNITS = {
    r"\micro": "u",
    r"\milli": "m",
    r"\nano": "n",
    r"\second": "s",
    r"$\mu$": "u",
}
_LATEX_STYLE = re.compile(
    r"\\(?:text(?:bf|it|tt|sf|rm)|math(?:bf|it|rm)|emph|underline|num|si|unit)\{([^{}]{0,80})\}"
    r"|(?<=\|)\s*\{([^{}|]{0,80})\}\s*(?=\|)"
)
_LATEX_QUANTITY = re.compile(r"\\(?:SI|qty)\{([^{}]{1,40})\}\{([^{}]{1,20})\}")
_FRAME = str.maketrans(dict.fromkeys("│┃║", "|"))


_RST_HEAD = re.compile(r"\+(?:=+\+)+\s*")
"""The line below the titles of a reStructuredText grid."""

_BORDER = re.compile(r"\+(?:-+\+)+\s*")
"""The line between two rows of such a grid, whose cells may have several lines."""


class Grid(NamedTuple):
    """A split table. ``misfits``: indexes of lines that look like its rows but have more or fewer cells."""

    titles: list[str]
    rows: list[Row]
    first: int
    mark: str = ""
    """The mark between two cells; empty for spaces."""
    misfits: tuple[int, ...] = ()


def grid(
    titles: list[str],
    rows: list[Row],
    first: int,
    mark: str = "",
    misfits: Sequence[int] = (),
) -> Grid | None:
    """Return the table of these titles and rows; None unless it has names and numbers, of whatever measure."""
    if titles[0] and not any(titles[1:]):
        return None  # a heading of the text below
    titles, rows = _with_whole_titles(titles, rows)
    rows = [each for each in rows if not _is_types(each[1])]
    # The rows and misfits above the titles of another table.
    others = (at for at, cells, _ in rows if is_of_next(titles, cells))
    end = next(others, None)
    if end is not None:
        above = [row for row in rows if row[0] < end]
        rows, misfits = above, [at for at in misfits if at < end]
    if not rows or len(titles) < 2:
        return None
    if not has_numbers(rows):
        return None
    return Grid(titles, in_sections(rows), first, mark, tuple(misfits))


def _with_whole_titles(
    titles: list[str], rows: list[Row]
) -> tuple[list[str], list[Row]]:
    """Titles of two lines, or with their units in a separate line, joined to one line; and the rows below."""
    if rows and is_above(titles, rows[0][1]):
        titles = together(titles, rows[0][1])
        rows = rows[1:]
    if rows and _is_units(rows[0][1]):
        titles = list(map(_with_unit, titles, rows[0][1]))
        rows = rows[1:]
    return titles, rows


def _with_unit(title: str, unit: str) -> str:
    unit = unit.strip("()[]")
    if unit.strip("-") and unit.lower() not in UNIT_TITLES:
        return f"{title} ({unit})"
    return title


def _is_units(cells: Sequence[str]) -> bool:
    """Return whether a row contains only units, of the titles above it."""
    texts = [text for text in cells if text.strip("-–—")]
    is_titled = bool(texts) and texts[0].lower() in UNIT_TITLES
    units = texts[1:] if is_titled else texts
    return bool(units) and all(map(_UNIT.fullmatch, units))


def _is_types(cells: Sequence[str]) -> bool:
    """Return whether a row contains data types of columns: ``<dbl>``, ``int64``."""
    types = list(filter(None, cells))
    return bool(types) and all(map(_TYPE.fullmatch, types))


def has_numbers(rows: Sequence[Row]) -> bool:
    """Return whether there is a number among the cells of the first rows."""
    texts = chain.from_iterable(cells[1:] for _, cells, _ in rows[:SOME])
    return any(map(is_number, texts))


class _Barred:
    """Collects the lines below the titles of a table with cells between ``|``."""

    def __init__(self, titles: list[str], first: int) -> None:
        self.titles = titles
        self.rows: list[Row] = []
        self.misfits: list[int] = []
        self.borders: list[int] = []
        """Indexes of the lines between two rows of a drawn grid."""
        self.is_grid = False
        """Whether it is one of reStructuredText, whose rows may have several lines."""
        self._first = first

    def take(self, at: int, text: str) -> bool:
        """Add the line ``at``; False where the table ends above it."""
        if _BORDER.fullmatch(text):
            self.borders.append(at)
        has_titles_above = len(self.rows) == at - self._first - 1
        if _RST_HEAD.fullmatch(text) and has_titles_above:
            # Treat the rows so far as further lines of the titles.
            below = [cells for _, cells, _ in self.rows]
            self.titles, self.rows = _in_one_line(self.titles, below), []
            self.is_grid = True
            return True
        if RULE.fullmatch(text) or _LATEX_RULE.fullmatch(text):
            return True
        bars = text.count("|")
        if bars == 1 and text.strip().startswith("|"):
            self.misfits.append(at)  # cut after its first cell
            return True
        return bars > 1 and self._take_cells(at, text)

    def _take_cells(self, at: int, text: str) -> bool:
        # The cells of a line; a single name is that of the rows below it.
        columns = len(self.titles)
        cells = _bars(text)
        alone = len(cells) == 1 and not _DIGIT.search(text)
        if alone:
            cells = cells + [""] * (columns - 1)
        if len(cells) == len(self.titles):
            self.rows.append((at, cells, ""))
            return True
        if is_heading(cells):
            return False
        self.misfits.append(at)
        return True


def barred(lines: Sequence[Line], index: int, most: int) -> Grid | None:
    """Return the table with cells between ``|``, in Markdown or drawn, with or without a rule below the titles."""
    text = _framed(lines[index].text)
    if text.count("|") < 2:
        return None
    table = _Barred(_bars(text), index)
    for at in range(index + 1, len(lines)):
        text = _framed(lines[at].text)
        if not text.strip() or len(table.rows) >= most:
            break
        if not table.take(at, text):
            break
    # The rows, with lines between two borders joined to one row if there are borders between rows.
    blocks: dict[int, list[Row]] = {}
    for row in table.rows:
        blocks.setdefault(sum(border < row[0] for border in table.borders), []).append(
            row
        )
    if len(blocks) < 2 and not table.is_grid:
        rows = list(table.rows)
    else:
        rows = list(chain.from_iterable(map(_whole_row, blocks.values())))
    # Rows whose first cell was left empty to mean the one above have its name.
    named: list[Row] = []
    for at_, cells, section in rows:
        if named and not cells[0] and any(cells[1:]):
            cells = [named[-1][1][0], *cells[1:]]
        named.append((at_, cells, section))
    return grid(table.titles, named, index, "|", table.misfits)


def _whole_row(block: Sequence[Row]) -> Sequence[Row]:
    """Return the lines between two borders as one row, or unchanged if a column has several numbers: a group of rows."""
    columns = zip(*(cells[1:] for _, cells, _ in block), strict=True)
    most_numbers = max((sum(map(is_number, texts)) for texts in columns), default=0)
    if most_numbers > 1:
        return block
    first, cells, section = block[0]
    below = [cells for _, cells, _ in block[1:]]
    return [(first, _in_one_line(cells, below), section)]


def _in_one_line(first: Sequence[str], below: Sequence[Sequence[str]]) -> list[str]:
    """Return the cells of a row with several lines: ``mq-`` above ``deadline`` is ``mq-deadline``."""
    columns = zip(first, *below, strict=True)
    return [_joined(list(filter(None, texts))) for texts in columns]


def _joined(texts: Sequence[str]) -> str:
    ends = ["" if text.endswith("-") else " " for text in texts]
    return "".join(chain.from_iterable(zip(texts, ends, strict=True))).strip()


def _framed(text: str) -> str:
    """Return a row of LaTeX, of Jira or of a drawn frame in the form of Markdown."""
    text = text.translate(_FRAME).strip()
    if text.startswith("||"):
        return text.replace("||", "|")
    is_latex = text.removesuffix("\\hline").rstrip().endswith("\\\\")
    if is_latex and "&" in text:
        cells, _, _ = text.rpartition("\\\\")
        # A row of LaTeX without formatting commands: `\textbf{43{,}600}` is `43,600`.
        text_ = f"|{cells.replace('&', '|')}|"
        for command, unit in _LATEX_UNITS.items():
            text_ = text_.replace(command, unit)
        text_ = _LATEX_QUANTITY.sub(
            r"\1 \2", text_.replace("{,}", ",").replace("\\,", "\u2009")
        )
        while (shorter := _LATEX_STYLE.sub(r"\1\2", text_)) != text_:
            text_ = shorter
        return re.sub(r"\\([%_#])", r"\1", text_)
    return text


def _bars(text: str) -> list[str]:
    if text.startswith("|") and text.endswith("|"):
        text = text[1:-1]  # an empty first or last cell is a cell
    return [part.strip() for part in text.split("|")][:MOST_COLUMNS]


def separated(lines: Sequence[Line], index: int, most: int) -> Grid | None:
    """Return the table with values between tabs, semicolons or commas, and a line of titles."""
    for mark in ("\t", ";", ","):
        table = _separated_by(mark, lines, index, most)
        if table is not None:
            return table
    return None


class _Separated:
    """Collects the lines below the ``titles`` of a table with values between ``mark``."""

    def __init__(
        self, lines: Sequence[Line], titles: list[str], mark: str, several: bool
    ) -> None:
        self.rows: list[Row] = []
        self.misfits: list[int] = []
        self._lines = lines
        self._titles = titles
        self._mark = mark
        self._several = several
        """Whether any number of tabs aligns the columns."""

    def take(self, at: int) -> bool:
        """Add the line ``at``; False where the table ends above it."""
        values = self._values(at)
        if values is None and self._names_rows(at):
            values = [self._bare(at), *[""] * (len(self._titles) - 1)]
        if values is None:
            return False
        if len(values) == len(self._titles):
            self.rows.append((at, values, ""))
            return True
        if not self._is_misfit(at, values):
            return False
        self.misfits.append(at)
        return True

    def drop_other_lines(self) -> None:
        """Remove misfits below the last row that belong to another table or a sentence."""
        last = self.rows[-1][0] if self.rows else len(self._lines)
        while self.misfits and self.misfits[-1] > last:
            values = self._values(self.misfits[-1]) or []
            if _looks_like(values, self._titles):
                break
            self.misfits.pop()

    def _values(self, at: int) -> list[str] | None:
        return _values(self._lines[at], self._mark, self._several)

    def _bare(self, at: int) -> str:
        return self._lines[at].text.strip("# :=*-")

    def _is_misfit(self, at: int, values: Sequence[str]) -> bool:
        """Return whether a line with another number of values is a cut row, or a row with numbers."""
        if _is_begun(values, self._titles):
            return True
        has_digit = _DIGIT.search(self._lines[at].text) is not None
        return has_digit and not is_heading(values)

    def _names_rows(self, at: int) -> bool:
        """Return whether a line without marks names the rows below it: ``# Write``."""
        words = self._bare(at).split()
        if not 0 < len(words) <= _SECTION_WORDS or at + 1 == len(self._lines):
            return False
        below = self._values(at + 1) or []
        return len(below) == len(self._titles) and not is_heading(below)


def _separated_by(
    mark: str, lines: Sequence[Line], index: int, most: int
) -> Grid | None:
    several = mark == "\t" and "\t\t" in lines[index].tabbed.strip()
    titles = _values(lines[index], mark, several)
    if titles is None or not 2 <= len(titles) <= MOST_COLUMNS:
        return None
    table = _Separated(lines, titles, mark, several)
    for at in range(index + 1, len(lines)):
        if len(table.rows) >= most or not table.take(at):
            break
        if len(table.misfits) > len(table.rows) + 2:
            return None
    table.drop_other_lines()
    return grid(titles, table.rows, index, mark, table.misfits)


def _values(line: Line, mark: str, several: bool) -> list[str] | None:
    """Return the values of a line; None without ``mark``. ``several``: any number of tabs separates two values."""
    text = line.tabbed.strip(" ") if mark == "\t" else line.text
    if mark not in text or len(text) > 5 * LONGEST or not text.strip():
        return None
    if mark == "\t":
        parts = re.split(r"\t+", text.strip()) if several else text.split("\t")
        return list(map(str.strip, parts))
    rows = [text.replace("\0", "").strip()]
    try:
        cells = next(csv.reader(rows, delimiter=mark, skipinitialspace=True))
    except (csv.Error, StopIteration):
        return None
    return list(map(str.strip, cells))


def strays(table: Grid, lines: Sequence[Line], last: int) -> list[int]:
    """Indexes of further rows of a table below other lines, without their own titles."""
    # The columns that hold numbers.
    columns = zip(*(cells_ for _, cells_, _ in table.rows), strict=True)
    numbered = [at_ for at_, texts in enumerate(columns) if _holds_numbers(texts)]
    by_row = any(is_column(cells[0]) for _, cells, _ in table.rows)
    strays: list[int] = []
    for at in range(last + 1, len(lines)):
        cells = _cells(lines[at], table.mark)
        is_row = len(cells) == len(table.titles) and _holds_numbers(
            [cells[place] for place in numbered]
        )
        is_far = at > max([last, *strays]) + _APART
        if is_row and (by_row or not is_column(cells[0])):
            strays.append(at)
        elif is_far or is_of_next(table.titles, cells):
            break
    return strays


def _holds_numbers(texts: Sequence[str]) -> bool:
    """Return whether ``texts`` contain a number, and otherwise only numbers or gaps."""
    return any(map(is_number, texts)) and all(map(is_value, texts))


def _cells(line: Line, mark: str) -> list[str]:
    """Return the cells of a line that may be a row; empty without ``mark``."""
    if mark != "|":
        several = mark == "\t" and "\t\t" in line.tabbed.strip()
        return _values(line, mark, several) or []
    text = _framed(line.text)
    return _bars(text) if text.count("|") > 1 else []


def _looks_like(cells: Sequence[str], titles: Sequence[str]) -> bool:
    """Return whether a line with another number of cells is still a row: it has nearly as many, and most are numbers."""
    if _is_begun(cells, titles):
        return True
    has_nearly_as_many = abs(len(cells) - len(titles)) <= 2
    return has_nearly_as_many and 2 * sum(map(is_number, cells)) >= len(cells)


def _is_begun(cells: Sequence[str], titles: Sequence[str]) -> bool:
    """Return whether a line is a cut row: the name, and none or only the first of the numbers."""
    is_named = 0 < len(cells[0].split()) <= _SECTION_WORDS
    is_short = 1 < len(cells) < len(titles)
    return is_named and is_short and all(map(is_value, cells[1:]))
