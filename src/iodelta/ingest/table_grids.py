"""Result tables taken apart into titles and rows by what stands between their cells: bars, commas, tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from iodelta.ingest.cleaning import Line
from iodelta.ingest.table_cells import cell, is_missing
from iodelta.ingest.table_headings import column
from iodelta.ingest.table_levels import (
    Row,
    in_sections,
    is_above,
    is_heading,
    is_of_next,
    together,
)

SOME = 20
"""Rows by which it is seen whether a table holds results."""
LONGEST = 4000
"""Characters of a line of titles."""
MOST_COLUMNS = 200
_SECTION_WORDS = 4
_APART = 3
"""Lines between a table and rows that may be of it."""
RULE = re.compile(r"[\s|:+=\u2500-\u257f-]{3,}")
_UNIT = re.compile(
    r"[(\[]?(?:1/s|io/s|iops|ops|[kmg]?i?b(?:/s(?:ec)?|ps)|[mnuµμ]?s(?:ec(?:ond)?s?)?|%|k|m|w|count|#)[)\]]?",
    re.I,
)
_UNIT_TITLES = ("unit", "units", "einheit")
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
"""What stands below the titles of a grid of reStructuredText."""

_BORDER = re.compile(r"\+(?:-+\+)+\s*")
"""What stands between two rows of such a grid, whose cells may have several lines."""


class Grid(NamedTuple):
    """A table taken apart. ``misfits``: indexes of lines that look like its rows and have more or fewer cells."""

    titles: list[str]
    rows: list[Row]
    first: int
    mark: str = ""
    """What stands between two cells."""
    misfits: tuple[int, ...] = ()


def grid(
    titles: list[str],
    rows: list[Row],
    first: int,
    mark: str = "",
    misfits: Sequence[int] = (),
) -> Grid | None:
    """None unless there are names and numbers; whether they are measures of storage is seen when they are read."""
    if titles[0] and not any(titles[1:]):
        return None  # the name of what follows
    titles, rows = _with_whole_titles(titles, rows)
    rows = [each for each in rows if not _is_types(each[1])]
    rows, misfits = _of_one_table(titles, rows, misfits)
    if not rows or len(titles) < 2:
        return None
    if not has_numbers(rows):
        return None
    return Grid(titles, in_sections(rows), first, mark, tuple(misfits))


def _with_whole_titles(
    titles: list[str], rows: list[Row]
) -> tuple[list[str], list[Row]]:
    """Titles of two lines, or with their units in a line of their own, as one; and the rows below."""
    if rows and is_above(titles, rows[0][1]):
        titles = together(titles, rows[0][1])
        rows = rows[1:]
    if rows and _is_units(rows[0][1]):
        titles = list(map(_with_unit, titles, rows[0][1]))
        rows = rows[1:]
    return titles, rows


def _of_one_table(
    titles: Sequence[str], rows: list[Row], misfits: Sequence[int]
) -> tuple[list[Row], Sequence[int]]:
    """What is above the titles of another table."""
    another = next((at for at, cells, _ in rows if is_of_next(titles, cells)), None)
    if another is None:
        return rows, misfits
    return [each for each in rows if each[0] < another], [
        at for at in misfits if at < another
    ]


def _with_unit(title: str, unit: str) -> str:
    unit = unit.strip("()[]")
    if unit.strip("-") and unit.lower() not in _UNIT_TITLES:
        return f"{title} ({unit})"
    return title


def _is_units(cells: Sequence[str]) -> bool:
    """Whether a row has nothing but units, of the titles above it."""
    named = [text for text in cells if text.strip("-–—")]
    if named and named[0].lower() in _UNIT_TITLES:
        named = named[1:]
    return bool(named) and all(_UNIT.fullmatch(text) for text in named)


def _is_types(cells: Sequence[str]) -> bool:
    """Whether a row says how a program holds its columns: ``<dbl>``, ``int64``."""
    named = [text for text in cells if text]
    return bool(named) and all(_TYPE.fullmatch(text) for text in named)


def has_numbers(rows: Sequence[Row]) -> bool:
    """Whether there is a number among the cells of the first rows."""
    texts = chain.from_iterable(cells[1:] for _, cells, _ in rows[:SOME])
    return any(cell(text) is not None for text in texts)


def barred(lines: Sequence[Line], index: int, most: int) -> Grid | None:
    """Cells between ``|``, of Markdown or drawn; a rule may stand below the titles."""
    text = _framed(lines[index].text)
    if text.count("|") < 2:
        return None
    titles = _bars(text)
    rows: list[Row] = []
    misfits: list[int] = []
    borders: list[int] = []
    is_grid = False
    for at in range(index + 1, len(lines)):
        text = _framed(lines[at].text)
        if not text.strip() or len(rows) >= most:
            break
        if _BORDER.fullmatch(text):
            borders.append(at)
        if _RST_HEAD.fullmatch(text) and len(rows) == at - index - 1:
            titles, rows = _in_one_line(titles, [cells for _, cells, _ in rows]), []
            is_grid = True
            continue
        if RULE.fullmatch(text) or _LATEX_RULE.fullmatch(text):
            continue
        if text.strip().startswith("|") and text.count("|") == 1:
            misfits.append(at)  # cut after its first cell
            continue
        if text.count("|") < 2:
            break
        cells = _barred_row(text, len(titles))
        if len(cells) != len(titles):
            if is_heading(cells):
                break
            misfits.append(at)
            continue
        rows.append((at, cells, ""))
    rows = _with_names(_whole_rows(rows, borders, is_grid=is_grid))
    return grid(titles, rows, index, "|", misfits)


def _with_names(rows: Sequence[Row]) -> list[Row]:
    """Rows whose first cell was left empty to mean the one above have its name."""
    named: list[Row] = []
    for at, cells, section in rows:
        if named and not cells[0] and any(cells[1:]):
            cells = [named[-1][1][0], *cells[1:]]
        named.append((at, cells, section))
    return named


def _whole_rows(
    rows: Sequence[Row], borders: Sequence[int], *, is_grid: bool
) -> list[Row]:
    """Lines between two borders are one row where there are borders between rows and no line has numbers again."""
    blocks: dict[int, list[Row]] = {}
    for row in rows:
        blocks.setdefault(sum(border < row[0] for border in borders), []).append(row)
    if len(blocks) < 2 and not is_grid:
        return list(rows)
    return list(chain.from_iterable(map(_whole_row, blocks.values())))


def _whole_row(block: Sequence[Row]) -> Sequence[Row]:
    columns = zip(*(cells[1:] for _, cells, _ in block), strict=True)
    if any(sum(cell(text) is not None for text in texts) > 1 for texts in columns):
        return block  # a group of rows
    first, cells, section = block[0]
    return [(first, _in_one_line(cells, [below for _, below, _ in block[1:]]), section)]


def _in_one_line(first: Sequence[str], below: Sequence[Sequence[str]]) -> list[str]:
    """The cells of a row of a grid, which has several lines: ``mq-`` above ``deadline`` is ``mq-deadline``."""
    columns = zip(first, *below, strict=True)
    return [_joined(list(filter(None, texts))) for texts in columns]


def _joined(texts: Sequence[str]) -> str:
    ends = ["" if text.endswith("-") else " " for text in texts]
    return "".join(chain.from_iterable(zip(texts, ends, strict=True))).strip()


def _barred_row(text: str, columns: int) -> list[str]:
    """The cells of a line; a name alone is that of the rows below it."""
    cells = _bars(text)
    alone = len(cells) == 1 and not _DIGIT.search(text)
    if not alone:
        return cells
    return cells + [""] * (columns - 1)


def _framed(text: str) -> str:
    """A row of LaTeX, of Jira or in a drawn frame as Markdown writes it."""
    text = text.translate(_FRAME).strip()
    if text.startswith("||"):
        return text.replace("||", "|")
    if "&" in text and text.removesuffix("\\hline").rstrip().endswith("\\\\"):
        return _latex(f"|{text[: text.rindex(chr(92) * 2)].replace('&', '|')}|")
    return text


def _latex(text: str) -> str:
    """A row of LaTeX without the commands that only say how it looks: ``\\textbf{43{,}600}`` is ``43,600``."""
    for command, unit in _LATEX_UNITS.items():
        text = text.replace(command, unit)
    text = _LATEX_QUANTITY.sub(
        r"\1 \2", text.replace("{,}", ",").replace("\\,", "\u2009")
    )
    while (shorter := _LATEX_STYLE.sub(r"\1\2", text)) != text:
        text = shorter
    return re.sub(r"\\([%_#])", r"\1", text)


def _bars(text: str) -> list[str]:
    if text.startswith("|") and text.endswith("|"):
        text = text[1:-1]  # an empty first or last cell is a cell
    return [part.strip() for part in text.split("|")][:MOST_COLUMNS]


def separated(lines: Sequence[Line], index: int, most: int) -> Grid | None:
    """Values set apart by tabs, semicolons or commas, with a line of titles."""
    for mark in ("\t", ";", ","):
        found = _separated_by(mark, lines, index, most)
        if found is not None:
            return found
    return None


def _separated_by(
    mark: str, lines: Sequence[Line], index: int, most: int
) -> Grid | None:
    # Tabs that align: as many as it takes.
    several = mark == "\t" and "\t\t" in lines[index].tabbed.strip()
    titles = _values(lines[index], mark, several)
    if titles is None or not 2 <= len(titles) <= MOST_COLUMNS:
        return None
    rows: list[Row] = []
    misfits: list[int] = []
    for at in range(index + 1, len(lines)):
        cells = _values(lines[at], mark, several)
        if cells is None and _names_rows(lines, at, mark, several, len(titles)):
            cells = [lines[at].text.strip("# :=*-"), *[""] * (len(titles) - 1)]
        if cells is None or len(rows) >= most:
            break
        if len(cells) == len(titles):
            rows.append((at, cells, ""))
        elif _is_begun(cells, titles) or (
            _DIGIT.search(lines[at].text) and not is_heading(cells)
        ):
            misfits.append(at)
        else:
            break
        if len(misfits) > len(rows) + 2:
            return None
    last = rows[-1][0] if rows else len(lines)
    while (
        misfits
        and misfits[-1] > last
        and not _looks_like(_values(lines[misfits[-1]], mark, several) or [], titles)
    ):
        misfits.pop()  # another table, or a sentence
    return grid(titles, rows, index, mark, misfits)


def _names_rows(
    lines: Sequence[Line], at: int, mark: str, several: bool, titles: int
) -> bool:
    """Whether a line without marks names the rows below it: ``# Write``."""
    text = lines[at].text.strip("# :=*-")
    if not 0 < len(text.split()) <= _SECTION_WORDS or at + 1 == len(lines):
        return False
    below = _values(lines[at + 1], mark, several) or []
    return len(below) == titles and not is_heading(below)


def _values(line: Line, mark: str, several: bool) -> list[str] | None:
    """The values of a line; None when it has none of ``mark``. ``several`` tabs may stand between two."""
    text = line.tabbed.strip(" ") if mark == "\t" else line.text
    if mark not in text or len(text) > 5 * LONGEST or not text.strip():
        return None
    if mark == "\t":
        parts = re.split(r"\t+", text.strip()) if several else text.split("\t")
        return [part.strip() for part in parts]
    try:
        cells = next(
            csv.reader(
                [text.replace("\0", "").strip()], delimiter=mark, skipinitialspace=True
            )
        )
    except (csv.Error, StopIteration):
        return None
    return [part.strip() for part in cells]


def strays(found: Grid, lines: Sequence[Line], last: int) -> list[int]:
    """Indexes of the rows of a table that other lines set apart from it: they have no titles of their own."""
    numbered = _numbered(found)
    by_row = any(column(cells[0]) is not None for _, cells, _ in found.rows)
    strays: list[int] = []
    for at in range(last + 1, len(lines)):
        cells = _cells(lines[at], found.mark)
        is_row = len(cells) == len(found.titles) and _has_numbers_in(cells, numbered)
        if is_row and (by_row or column(cells[0]) is None):
            strays.append(at)
        elif at > max([last, *strays]) + _APART or is_of_next(found.titles, cells):
            break
    return strays


def _numbered(found: Grid) -> list[int]:
    """The columns that hold numbers."""
    texts = [cells for _, cells, _ in found.rows]
    return [
        at
        for at in range(len(found.titles))
        if _holds_numbers(list(map(itemgetter(at), texts)))
    ]


def _has_numbers_in(cells: Sequence[str], places: Sequence[int]) -> bool:
    """Whether a number stands in one of the places, and nothing but numbers or gaps in any."""
    texts = [cells[place] for place in places]
    return any(cell(text) is not None for text in texts) and all(
        _holds_numbers([text, "0"]) for text in texts
    )


def _holds_numbers(texts: Sequence[str]) -> bool:
    are_numbers = [cell(text) is not None for text in texts]
    return any(are_numbers) and all(
        is_number or is_missing(text)
        for is_number, text in zip(are_numbers, texts, strict=True)
    )


def _cells(line: Line, mark: str) -> list[str]:
    if mark == "|":
        text = _framed(line.text)
        if text.count("|") > 1:
            return _bars(text)
        return []
    return _values(line, mark, mark == "\t" and "\t\t" in line.tabbed.strip()) or []


def _looks_like(cells: Sequence[str], titles: Sequence[str]) -> bool:
    """Whether a line with another number of cells is a row all the same: it has nearly as many, most are numbers."""
    if _is_begun(cells, titles):
        return True
    numbers = sum(cell(text) is not None for text in cells)
    return abs(len(cells) - len(titles)) <= 2 and 2 * numbers >= len(cells)


def _is_begun(cells: Sequence[str], titles: Sequence[str]) -> bool:
    """Whether a line holds the name of a row and only the first of its numbers, or none: the row was cut."""
    is_named = 0 < len(cells[0].split()) <= _SECTION_WORDS
    return (
        is_named
        and 1 < len(cells) < len(titles)
        and all(is_missing(text) or cell(text) for text in cells[1:])
    )
