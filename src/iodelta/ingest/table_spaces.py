"""Tables whose columns are set apart by spaces: drawn by hand, or printed by R, pandas and ``column -t``.

Such a line does not show where a cell ends. So it is split in several independent ways: at two spaces and more, at
every space, and where all lines have a space in the same column. The table is refused unless all ways that fit give the
same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, compress, pairwise, takewhile
from operator import itemgetter

from iodelta.ingest.cleaning import Line
from iodelta.ingest.table_cells import is_number, is_value
from iodelta.ingest.table_columns import is_column
from iodelta.ingest.table_flat import flattened
from iodelta.ingest.table_grids import LONGEST, MOST_COLUMNS, RULE, Grid, grid
from iodelta.ingest.table_headings import (
    is_of_another,
    is_statistic,
    names_other,
    several,
)
from iodelta.ingest.table_levels import Row
from iodelta.ingest.table_spans import spans

_WIDE = re.compile(r" {2,}")
_TWO_NUMBERS = re.compile(r"\d \d")
"""Groups of thousands, or cells of two columns."""
_GROUPED = re.compile(
    r"[~+-]?\d{1,3}(?: \d{3}){0,5}(?:[.,]\d{1,9})?(?: ?[a-zA-Zµμ/%]{1,8})?"
)
"""A number in a column with spaces between thousands."""
_IN_BRACKETS = re.compile(r"\s?[(\[][^()\[\]]{0,20}[)\]]")
_APART = 3
"""Most lines between a table and further rows of it."""
UNNAMED = "row"
"""The title of a column of names without a title."""
_CONTINUED = re.compile(r"\s+\\$")
"""pandas marks a heading whose further columns follow below."""


def splits(lines: Sequence[Line], index: int, most: int) -> Iterator[Grid]:
    """Yield every way to split the table with titles at ``index``."""
    block = _block(lines, index, most)
    if not block:
        return
    ways = (
        _at_gaps(lines, index, block),
        _at_wide_gaps(lines, index, block),
        _at_every_gap(lines, index, block),
        _flat(lines, index),
    )
    yield from (way for way in ways if way is not None and not _is_torn(way))


def _is_torn(way: Grid) -> bool:
    """Return whether a title or cell is only a part of one: ``(us)``, ``[MB/s]``, ``avg`` before ``lat (ms)``."""
    rows = [cells for _, cells, _ in way.rows]
    names = map(itemgetter(0), rows)
    if any(map(_is_cut, (way.titles, *rows))):
        return True
    if any(map(_holds_value, (*way.titles, *names))):
        return True
    if any(map(_is_bracketed, chain(way.titles, *rows))):
        return True
    if any(map(_has_wide_gap, chain.from_iterable(rows))):
        return True
    # Whether a column that names something else, or several measures, holds words and numbers.
    is_other = [names_other(title) or several(title) for title in way.titles]
    cells_ = chain.from_iterable(compress(cells_, is_other) for cells_ in rows)
    return any(map(_is_mixed, cells_))


_BRACKETED = re.compile(r"\||[(\[].*[)\]]", re.S)


def _is_bracketed(text: str) -> bool:
    return _BRACKETED.fullmatch(text) is not None


def _has_wide_gap(text: str) -> bool:
    """Return whether a cell contains a number after a wide gap, as between columns."""
    return any(map(is_number, _WIDE.split(text)[1:]))


def _is_cut(cells: Sequence[str]) -> bool:
    """Return whether a name is split into two cells: a statistic and its measure, or ``IOPS`` and ``limit``."""
    if is_statistic(cells[0]) and is_column(cells[1]):
        return True
    pairs = pairwise(cells)
    return any(is_column(first) and is_of_another(other) for first, other in pairs)


def _holds_value(title: str) -> bool:
    """Return whether a title, or the name of a row, is a measure and its number: ``CPU (%) 100.1``."""
    name, _, number = title.rpartition(" ")
    if not is_number(number):
        return False
    return is_column(name) or names_other(name)


def _is_mixed(text: str) -> bool:
    """Return whether a cell contains a number and more, and so the cells of several columns."""
    has_digit = any(map(str.isdigit, text))
    return has_digit and not is_number(text.strip("+%~≈<> "))


def _block(lines: Sequence[Line], index: int, most: int) -> list[int]:
    """Indexes of the lines below the titles, to the next blank one; without rules."""
    block: list[int] = []
    for at in range(index + 1, len(lines)):
        text = lines[at].text
        is_end = not text.strip() or len(text) > LONGEST or len(block) >= most
        if is_end or (block and _is_heading(text)):
            break
        if not RULE.fullmatch(text.strip()):
            block.append(at)
    return block


def _is_heading(text: str) -> bool:
    """Return whether a line names a measure and has no number: R continues with more columns below."""
    words = text.split()
    has_number = any(map(is_number, words))
    return not has_number and any(map(is_column, words))


def continued(first_columns: Grid, lines: Sequence[Line]) -> tuple[Grid, int]:
    """Return the table with the columns that R and pandas print below it, row by row, and the index of its last line."""
    grid, last = first_columns, first_columns.rows[-1][0]
    while grid.titles[0] == UNNAMED:
        # Further columns of the same rows, at most two blank lines below the line `last`; None without any.
        more: Grid | None
        index = last + 1
        while index < min(len(lines), last + 3) and not lines[index].text.strip():
            index += 1
        if index == len(lines) or not lines[index].text.startswith(" "):
            more = None
        else:
            more = _at_every_gap(lines, index, _block(lines, index, len(grid.rows)))
            if more is None or more.titles[0] != UNNAMED:
                more = None
            else:
                has_same_rows = _row_names(more) == _row_names(grid)
                more = (
                    more if has_same_rows and _is_heading(lines[index].text) else None
                )
        if more is None:
            break
        rows = [
            (at, [*cells, *further[1:]], section)
            for (at, cells, section), (_, further, _) in zip(
                grid.rows, more.rows, strict=True
            )
        ]
        last = more.rows[-1][0]
        grid = grid._replace(titles=[*grid.titles, *more.titles[1:]], rows=rows)
    return grid, last


def _row_names(grid: Grid) -> list[str]:
    return [cells[0] for _, cells, _ in grid.rows]


def strays(table: Grid, lines: Sequence[Line], last: int) -> list[int]:
    """Indexes of lines shortly below a table with as many numbers at their ends as its rows."""
    seen = {_numbers_at_end(lines[at].text) for at, _, _ in table.rows} - {0}
    # The counts of rows differ if spaces separate thousands.
    counts = range(min(seen, default=1), max(seen, default=0) + 1)
    strays: list[int] = []
    for at in range(last + 1, len(lines)):
        if _numbers_at_end(lines[at].text) in counts:
            strays.append(at)
        elif lines[at].text.strip() or at > max([last, *strays]) + _APART:
            break
    return strays


def _numbers_at_end(text: str) -> int:
    # A thin space belongs to a number.
    words = re.findall(r"[^ \t]+", text[:LONGEST])
    return len(list(takewhile(is_number, reversed(words))))


def _head(lines: Sequence[Line], index: int) -> str:
    return _CONTINUED.sub("", lines[index].text.rstrip())


def _at_wide_gaps(
    lines: Sequence[Line], index: int, block: Sequence[int]
) -> Grid | None:
    """Split at two spaces and more."""
    text = _head(lines, index)
    titles = _WIDE.split(text.strip())
    if not 2 <= len(titles) <= MOST_COLUMNS:
        return None
    rows = [(at, _WIDE.split(lines[at].text.strip()), "") for at in block]
    fitted = _fitting(titles, rows, index, unnamed=_is_indented(lines, index, block))
    if fitted is None or not _proves_thousands(fitted):
        return None
    return fitted


def _proves_thousands(way: Grid) -> bool:
    """Return whether every ``100 940`` is one number: its title is one word, and its whole column is written so.

    Under two words, or without titles, it may be the cells of two columns that are one space apart.
    """
    for at, title in enumerate(way.titles):
        texts = [cells[at] for _, cells, _ in way.rows]
        numbers = list(filter(is_number, texts))
        if _TWO_NUMBERS.search(title):
            return False
        if not any(map(_TWO_NUMBERS.search, numbers)):
            continue
        word = _IN_BRACKETS.sub("", title).strip()
        if " " in word or not all(map(_GROUPED.fullmatch, numbers)):
            return False
    return True


def _at_every_gap(
    lines: Sequence[Line], index: int, block: Sequence[int]
) -> Grid | None:
    """Split at every space; fits only if titles and cells have none, and most cells are numbers."""
    titles = _head(lines, index).split()
    if not 2 <= len(titles) <= MOST_COLUMNS:
        return None
    rows: list[Row] = []
    for at in block:
        cells = list(filter(None, lines[at].text.split(" ")))
        if 2 * sum(map(is_value, cells)) < len(cells):
            break
        rows.append((at, cells, ""))
    fitted = _fitting(titles, rows, index, unnamed=_is_indented(lines, index, block))
    left = block[len(fitted.rows) :] if fitted else []
    if any(ends_in_number(lines[at].text) for at in left):
        return None
    return fitted


def _is_indented(lines: Sequence[Line], index: int, block: Sequence[int]) -> bool:
    """Return whether the titles begin to the right of all rows: the column of names has no title."""
    indents = [
        len(lines[at].text) - len(lines[at].text.lstrip()) for at in (index, *block)
    ]
    return bool(block) and max(indents[1:]) < indents[0]


def ends_in_number(text: str) -> bool:
    """Return whether the last word of a line is a number."""
    words = text.split()
    return bool(words) and is_number(words[-1])


def _fitting(
    titles: list[str], rows: Sequence[Row], first: int, *, unnamed: bool
) -> Grid | None:
    """Return the first rows with one cell per title, or one more if the column of names is ``unnamed``."""
    widths = [len(cells) for _, cells, _ in rows]
    if unnamed and widths[:1] == [len(titles) + 1]:
        titles = [UNNAMED, *titles]
    fitting = takewhile(len(titles).__eq__, widths)
    return grid(titles, list(rows[: len(list(fitting))]), first)


def _at_gaps(lines: Sequence[Line], index: int, block: Sequence[int]) -> Grid | None:
    """Split where the titles and all rows have a space in the same column."""
    head = _head(lines, index)
    texts = [lines[at].text.rstrip() for at in block]
    columns = spans(head, texts)
    if columns is None or not 2 <= len(columns) <= MOST_COLUMNS:
        return None
    titles = [" ".join(title.split()) for title in _cut(head, columns)]
    parts = [list(map(str.strip, _cut(text, columns))) for text in texts]
    indexes = list(block)
    has_name_of_index = bool(parts) and not titles[0] and not any(parts[0][1:])
    if has_name_of_index:  # pandas prints it on a line of its own
        titles[0] = parts.pop(0)[0]
        indexes.pop(0)
    titles[0] = titles[0] or UNNAMED
    # Rows whose first cell was left empty to mean the one above have its name.
    named: list[Row] = []
    above = ""
    for index_, cells in zip(indexes, parts, strict=True):
        above = cells[0] or above
        named.append((index_, [above, *cells[1:]], ""))
    rows = named
    if all(titles) and not _joins_numbers(rows):
        return grid(titles, rows, index)
    return None


def _cut(text: str, columns: Sequence[tuple[int, int]]) -> list[str]:
    return [text[begin:end] for begin, end in columns]


def _joins_numbers(rows: Sequence[Row]) -> bool:
    cells = chain.from_iterable(cells for _, cells, _ in rows)
    return any(map(_TWO_NUMBERS.search, cells))


def _flat(lines: Sequence[Line], index: int) -> Grid | None:
    flat = flattened(lines, index)
    if flat is None:
        return None
    return grid(*flat, index)
