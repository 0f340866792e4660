"""Result tables taken apart into titles and rows by what stands between their cells: bars, commas, tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from iodelta.ingest.cleaning import Line
from iodelta.ingest.table_cells import cell
from iodelta.ingest.table_headings import column

SOME = 20
"""Rows by which it is seen whether a table holds results."""
LONGEST = 4000
"""Characters of a line of titles."""
MOST_COLUMNS = 200
RULE = re.compile(r"[\s|:+=\u2500-\u257f-]{3,}")
_UNIT = re.compile(r"[(\[]?(?:1/s|io/s|iops|ops|[kmg]?i?b/s|[mnuµμ]?s|[mnu]sec|%|k|w|count|#)[)\]]?", re.I)
_DIGIT = re.compile(r"\d")
_LATEX_RULE = re.compile(r"\\(?:[htmbc][a-z]{0,6}(?:line|rule)|addlinespace)\b[^&]{0,60}")
_LATEX_UNITS = {r"\micro": "u", r"\milli": "m", r"\nano": "n", r"\second": "s", r"$\mu$": "u"}
_LATEX_STYLE = re.compile(
    r"\\(?:text(?:bf|it|tt|sf|rm)|math(?:bf|it|rm)|emph|underline|num|si|unit)\{([^{}]{0,80})\}"
    r"|(?<=\|)\s*\{([^{}|]{0,80})\}\s*(?=\|)"
)
_LATEX_QUANTITY = re.compile(r"\\(?:SI|qty)\{([^{}]{1,40})\}\{([^{}]{1,20})\}")
_FRAME = str.maketrans(dict.fromkeys("│┃║", "|"))

Row = tuple[int, list[str], str]
"""The index of its line, its cells, and the section it stands in."""


class Grid(NamedTuple):
    """A table taken apart. ``misfits``: indexes of lines that look like its rows and have more or fewer cells."""

    titles: list[str]
    rows: list[Row]
    first: int
    mark: str = ""
    """What stands between two cells."""
    misfits: tuple[int, ...] = ()


def grid(titles: list[str], rows: list[Row], first: int, mark: str = "", misfits: Sequence[int] = ()) -> Grid | None:
    """None unless there are names and numbers; whether they are measures of storage is seen when they are read."""
    another = next((at for at, cells, _ in rows if is_heading(cells)), None)  # the titles of another table
    if another is not None:
        rows = [each for each in rows if each[0] < another]
        misfits = [at for at in misfits if at < another]
    if rows and _is_units(rows[0][1]):
        titles = list(map(_with_unit, titles, rows[0][1]))
        rows = rows[1:]
    if not rows or len(titles) < 2:
        return None
    return Grid(titles, rows, first, mark, tuple(misfits)) if has_numbers(rows) else None


def _with_unit(title: str, unit: str) -> str:
    return f"{title} ({unit.strip('()[]')})" if unit else title


def is_heading(cells: Sequence[str]) -> bool:
    """Whether cells are titles: one names a measure, and none after the first is a number."""
    return any(column(text) is not None for text in cells[1:]) and not any(cell(text) for text in cells[1:])


def _is_units(cells: Sequence[str]) -> bool:
    """Whether a row has nothing but units, of the titles above it."""
    named = [text for text in cells if text]
    return bool(named) and all(_UNIT.fullmatch(text) for text in named)


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
    for at in range(index + 1, len(lines)):
        text = _framed(lines[at].text)
        if not text.strip() or len(rows) >= most:
            break
        if RULE.fullmatch(text) or _LATEX_RULE.fullmatch(text):
            continue
        if text.count("|") < 2:
            break
        cells = _bars(text)
        if len(cells) != len(titles):
            if is_heading(cells):
                break
            misfits.append(at)
            continue
        if rows and not cells[0] and any(cells[1:]):  # left empty to mean the one above
            cells[0] = rows[-1][1][0]
        rows.append((at, cells, ""))
    return grid(titles, rows, index, "|", misfits)


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
    text = _LATEX_QUANTITY.sub(r"\1 \2", text.replace("{,}", ",").replace("\\,", "\u2009"))
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


def _separated_by(mark: str, lines: Sequence[Line], index: int, most: int) -> Grid | None:
    several = mark == "\t" and "\t\t" in lines[index].tabbed.strip()  # tabs that align: as many as it takes
    titles = _values(lines[index], mark, several)
    if titles is None or not 2 <= len(titles) <= MOST_COLUMNS:
        return None
    rows: list[Row] = []
    misfits: list[int] = []
    for at in range(index + 1, len(lines)):
        cells = _values(lines[at], mark, several)
        if cells is None or len(rows) >= most:
            break
        if len(cells) == len(titles):
            rows.append((at, cells, ""))
        elif _DIGIT.search(lines[at].text) and not is_heading(cells):
            misfits.append(at)
        else:
            break
        if len(misfits) > len(rows) + 2:
            return None
    last = rows[-1][0] if rows else len(lines)
    while misfits and misfits[-1] > last and not _looks_like(_values(lines[misfits[-1]], mark, several) or [], titles):
        misfits.pop()  # another table, or a sentence
    return grid(titles, rows, index, mark, misfits)


def _values(line: Line, mark: str, several: bool) -> list[str] | None:
    """The values of a line; None when it has none of ``mark``. ``several`` tabs may stand between two."""
    text = line.tabbed.strip(" ") if mark == "\t" else line.text
    if mark not in text or len(text) > 5 * LONGEST or not text.strip():
        return None
    if mark == "\t":
        parts = re.split(r"\t+", text.strip()) if several else text.split("\t")
        return [part.strip() for part in parts]
    try:
        found = next(csv.reader([text.replace("\0", "").strip()], delimiter=mark, skipinitialspace=True))
    except (csv.Error, StopIteration):
        return None
    return [part.strip() for part in found]


def _looks_like(cells: Sequence[str], titles: Sequence[str]) -> bool:
    """Whether a line with another number of cells is a row all the same: it has nearly as many, most are numbers."""
    numbers = sum(cell(text) is not None for text in cells)
    return abs(len(cells) - len(titles)) <= 2 and 2 * numbers >= len(cells)
