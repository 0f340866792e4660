"""Result tables as people paste them: Markdown, CSV, columns of spaces, and web pages flattened to single spaces."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Run
from iodelta.ingest.table_cells import COMPARES, Heading, cell, column, decimal_comma, heading, row
from iodelta.ingest.table_flat import flattened
from iodelta.ingest.wording import clean
from iodelta.trial import Direction, Place

_MEASURES = ("iops", "bandwidth", "bw", "lat", "b/s", "throughput", "p9", "percentile")
_RULE = re.compile(r"[\s|:+=\u2500-\u257f-]{3,}")
_DIGIT = re.compile(r"\d")
_SPLIT = re.compile(r" {2,}")
_UNNAMED = "row"
"""Title of a column of names that has none."""
_LATEX = ("\\hline", "\\midrule", "\\toprule")
_FRAME = str.maketrans(dict.fromkeys("│┃║", "|"))
_TITLE = 100
_BACK = 6
"""Lines above a table among which its title is looked for."""
_MOST_COLUMNS = 200
_SOME = 20
"""Rows without a number that make no table."""


_LONGEST = 4000
"""Characters of a line of titles."""


class Grid(NamedTuple):
    """A table taken apart: titles, and the index of the line and the cells of each row; ``section`` above a row."""

    titles: list[str]
    rows: list[tuple[int, list[str], str]]
    first: int


def hinted(text: str) -> bool:
    """Whether a measure may be named in ``text``."""
    lowered = text.lower()
    return any(word in lowered for word in _MEASURES)


def tables(lines: Sequence[Line], used: bytearray, file: str) -> list[list[Run]]:
    """The rows of every result table among ``lines``, table by table; the indexes are marked in ``used``."""
    found: list[list[Run]] = []
    hints = [hinted(line.text[:_LONGEST]) for line in lines]
    digits = [_DIGIT.search(line.text) is not None for line in lines]
    index = 0
    while index < len(lines):
        text = lines[index].text
        grid = None
        if (
            not used[index]
            and len(text) < _LONGEST
            and _begins(text, hints, index)
            and any(digits[index : index + _SOME])
        ):
            grid = _markdown(lines, index) or _separated(lines, index) or _spaced(lines, index)
            grid = grid or _flat(lines, index)
        if grid is None:
            index += 1
            continue
        title = _title(lines, used, grid.first)
        runs = _transposed(grid, lines, file, title) or _pivot(grid, lines, file, title)
        runs = runs or _rows(grid, lines, file, title)
        if len(runs) > 0:
            found.append(runs)
            for at in range(grid.first, grid.rows[-1][0] + 1):
                used[at] = 1
        index = max(grid.rows[-1][0], index) + 1
    return found


def _begins(text: str, hints: Sequence[bool], index: int) -> bool:
    """Whether a table may begin here: a measure is named in the titles, or just above or below them."""
    return hints[index] or (("  " in text or text.count("|") > 1) and any(hints[max(0, index - 3) : index + 4]))


def _rows(grid: Grid, lines: Sequence[Line], file: str, title: str) -> list[Run]:
    columns = [[cells[at] for _, cells, _ in grid.rows if at < len(cells)] for at in range(len(grid.titles))]
    commas = any(map(decimal_comma, columns))
    headings = [heading(text, cells, commas=commas) for text, cells in zip(grid.titles, columns, strict=True)]
    runs = [
        _without_idle(run)
        for index, cells, section in grid.rows
        for run in row(headings, cells, Place(file, lines[index].number), title, section)
    ]
    return runs if any(run.directions for run in runs) else []


def _transposed(grid: Grid, lines: Sequence[Line], file: str, title: str) -> list[Run]:
    """A table with a measure per row and a variant per column: a run per column."""
    measures = [heading(cells[0]) for _, cells, _ in grid.rows]
    if any(column(text) for text in grid.titles) or sum(m.column is not None for m in measures) < 2:
        return []
    runs = []
    for at, name in enumerate(grid.titles):
        if at == 0 or COMPARES.search(name):
            continue
        headings = [heading(grid.titles[0]), *measures]
        cells = [name, *(cells[at] if at < len(cells) else "" for _, cells, _ in grid.rows)]
        runs += row(headings, cells, Place(file, lines[grid.first].number), title)
    return [_without_idle(run) for run in runs if run.directions]


def _pivot(grid: Grid, lines: Sequence[Line], file: str, title: str) -> list[Run]:
    """A table of one measure, named in its corner or its title: a run per number."""
    corner = column(grid.titles[0]) is not None
    measure = heading(grid.titles[0] if corner else title)
    if measure.column is None or any(column(text) for text in grid.titles[1:]):
        return []
    runs = []
    for index, cells, section in grid.rows:
        for name, text in zip(grid.titles[1:], cells[1:], strict=False):
            if COMPARES.search(name) or cell(text) is None:
                continue
            headings = [Heading(_UNNAMED if corner else grid.titles[0], None), Heading("column", None), measure]
            place = Place(file, lines[index].number)
            runs += row(headings, [cells[0], name, text], place, title, section)
    return runs if len(runs) > 1 else []


def _without_idle(run: Run) -> Run:
    """Without the directions whose rate is given as zero, where another's is not."""
    busy = tuple(d for d in run.directions if not _is_idle(d))
    return msgspec.structs.replace(run, directions=busy) if busy else run


def _is_idle(direction: Direction) -> bool:
    return 0 in (direction.iops.value, direction.bandwidth.value)


def _markdown(lines: Sequence[Line], index: int) -> Grid | None:
    """Cells between ``|``, of Markdown or drawn; a rule may stand below the titles."""
    text = _framed(lines[index].text)
    if text.count("|") < 2:
        return None
    titles = _bars(text)
    rows: list[tuple[int, list[str], str]] = []
    at = index + 1
    while at < len(lines):
        text = _framed(lines[at].text)
        if not text.strip():
            break
        if _RULE.fullmatch(text) or text.strip() in _LATEX:
            at += 1
            continue
        if text.count("|") < 2:
            break
        cells = _bars(text)
        if len(cells) == len(titles):
            if rows and not cells[0] and any(cells[1:]):  # left empty to mean the one above
                cells[0] = rows[-1][1][0]
            rows.append((at, cells, ""))
        at += 1
        if at - index > _SOME and not _numbers(rows):
            return None
    return _grid(titles, rows, index)


def _framed(text: str) -> str:
    """A row of LaTeX, of Jira or in a drawn frame as Markdown writes it."""
    text = text.translate(_FRAME).strip()
    if text.startswith("||"):
        return text.replace("||", "|")
    if "&" in text and text.removesuffix("\\hline").rstrip().endswith("\\\\"):
        return f"|{text[: text.rindex(chr(92) * 2)].replace('&', '|')}|".replace("\\%", "%")
    return text


def _bars(text: str) -> list[str]:
    return [part.strip() for part in text.strip("|").split("|")][:_MOST_COLUMNS]


def _separated(lines: Sequence[Line], index: int) -> Grid | None:
    """Comma or semicolon separated values with a line of titles."""
    head = lines[index].text
    mark = max(",;", key=head.count)
    if head.count(mark) < 1 or head.count(mark) > _MOST_COLUMNS:
        return None
    titles = next(csv.reader([head], delimiter=mark))
    rows: list[tuple[int, list[str], str]] = []
    for at in range(index + 1, len(lines)):
        text = lines[at].text
        if not text.strip() or mark not in text or len(text) > 20_000:
            break
        try:
            cells = next(csv.reader([text.replace("\0", "")], delimiter=mark))
        except (csv.Error, StopIteration):
            break
        if len(cells) != len(titles):
            break
        rows.append((at, [part.strip() for part in cells], ""))
        if len(rows) == _SOME and not _numbers(rows):
            return None
    return _grid([part.strip() for part in titles], rows, index)


def _spaced(lines: Sequence[Line], index: int) -> Grid | None:
    """Columns set apart by several spaces; lines of dashes between."""
    titles = _SPLIT.split(lines[index].text.strip())
    if not 2 <= len(titles) <= _MOST_COLUMNS:
        return None
    unnamed = lines[index].text.startswith("  ")  # perhaps the column of names has no title
    rows: list[tuple[int, list[str], str]] = []
    for at in range(index + 1, len(lines)):
        text = lines[at].text.strip()[:_LONGEST]
        if _RULE.fullmatch(text):
            continue
        cells = _SPLIT.split(text)
        if unnamed and not rows and len(cells) > len(titles):
            titles = [_UNNAMED, *titles]
        if titles[0] == _UNNAMED and len(cells) > len(titles):
            cells = [" ".join(cells[: 1 - len(titles)]), *cells[1 - len(titles) :]]
        if len(cells) != len(titles):
            break
        rows.append((at, cells, ""))
        if len(rows) == _SOME and not _numbers(rows):
            return None
    return _grid(titles, rows, index)


def _flat(lines: Sequence[Line], index: int) -> Grid | None:
    found = flattened(lines, index)
    return None if found is None else _grid(*found, index)


def _grid(titles: list[str], rows: list[tuple[int, list[str], str]], first: int) -> Grid | None:
    """None unless there are names and numbers; whether they are measures of storage is seen when they are read."""
    if not rows or len(titles) < 2:
        return None
    return Grid(titles, rows, first) if _numbers(rows) else None


def _numbers(rows: Sequence[tuple[int, list[str], str]]) -> bool:
    """Whether there is a number among the cells of the first rows."""
    return any(cell(text) is not None for _, cells, _ in rows[:_SOME] for text in cells[1:])


def _title(lines: Sequence[Line], used: bytearray, first: int) -> str:
    """The nearest short line above that is no sentence and no part of another table."""
    for at in range(first - 1, max(first - 1 - _BACK, -1), -1):
        text = lines[at].text.strip().strip("#*`= ").strip()
        if used[at]:
            break
        if text and len(text) <= _TITLE and not text.endswith((".", ",", ";")) and not _RULE.fullmatch(text):
            return clean(text.rstrip(":"))
    return ""
