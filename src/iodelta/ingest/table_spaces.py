"""Tables whose columns are set apart by spaces: drawn by hand, or printed by R, pandas and ``column -t``.

Nothing in such a line says where a cell ends. So it is split in several independent ways: at two spaces and more, at
every space, and where all lines have a space in the same place. Whoever reads it must find the same numbers in each
way that fits, or the table is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, product

from iodelta.ingest.cleaning import Line
from iodelta.ingest.table_cells import cell, is_missing
from iodelta.ingest.table_flat import flattened
from iodelta.ingest.table_grids import LONGEST, MOST_COLUMNS, RULE, Grid, grid
from iodelta.ingest.table_headings import (
    column,
    is_of_another,
    is_statistic,
    names_other,
    several,
)
from iodelta.ingest.table_levels import Row

_WIDE = re.compile(r" {2,}")
_TWO_NUMBERS = re.compile(r"\d \d")
"""Thousands, or the cells of two columns."""
_GROUPED = re.compile(
    r"[~+-]?\d{1,3}(?: \d{3}){0,5}(?:[.,]\d{1,9})?(?: ?[a-zA-Zµμ/%]{1,8})?"
)
"""Digits as they stand in a column that sets thousands apart."""
_IN_BRACKETS = re.compile(r"\s?[(\[][^()\[\]]{0,20}[)\]]")
_APART = 3
"""Lines between a table and rows that may be of it."""
UNNAMED = "row"
"""Title of a column of names that has none."""
_CONTINUED = re.compile(r"\s+\\$")
"""pandas marks a heading whose further columns follow below."""


def splits(lines: Sequence[Line], index: int, most: int) -> Iterator[Grid]:
    """Every way to take apart a table whose titles stand at ``index``."""
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
    """Whether a title or a cell is but a piece of one: ``(us)``, ``[MB/s]``, ``avg`` before ``lat (ms)``."""
    rows = [cells for _, cells, _ in way.rows]
    names = [cells[0] for cells in rows]
    if any(map(_is_cut, (way.titles, *rows))) or any(
        map(_holds_value, (*way.titles, *names))
    ):
        return True
    if any(map(_is_bracketed, chain(way.titles, *rows))) or any(
        map(_has_wide_gap, chain.from_iterable(rows))
    ):
        return True
    return _mixes(way.titles, rows)


def _mixes(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a column that names something else, or several measures, holds words and numbers."""
    others = [
        at for at, title in enumerate(titles) if names_other(title) or several(title)
    ]
    return any(_is_mixed(cells[at]) for cells, at in product(rows, others))


def _is_bracketed(text: str) -> bool:
    return text == "|" or (bool(text) and text[0] in "([" and text[-1] in ")]")


def _has_wide_gap(text: str) -> bool:
    """Whether a cell is a number and more, set apart as columns are."""
    return any(cell(part) is not None for part in _WIDE.split(text)[1:])


def _is_cut(cells: Sequence[str]) -> bool:
    """Whether the name of a row lies in two cells: a statistic and its measure, or ``IOPS`` and ``limit``."""
    if is_statistic(cells[0]) and column(cells[1]) is not None:
        return True
    pairs = pairwise(cells)
    return any(
        column(first) is not None and is_of_another(other) for first, other in pairs
    )


def _holds_value(title: str) -> bool:
    """Whether a title, or the name of a row, is a measure and its number: ``CPU (%) 100.1``."""
    name, _, number = title.rpartition(" ")
    return cell(number) is not None and (column(name) is not None or names_other(name))


def _is_mixed(text: str) -> bool:
    """Whether a cell below the title of a measure has a number and more: it is the cells of several columns."""
    return cell(text.strip("+%~≈<> ")) is None and any(
        letter.isdigit() for letter in text
    )


def _block(lines: Sequence[Line], index: int, most: int) -> list[int]:
    """Indexes of the lines below the titles, to the next blank one; without rules."""
    block: list[int] = []
    for at in range(index + 1, len(lines)):
        text = lines[at].text
        if (
            not text.strip()
            or len(text) > LONGEST
            or len(block) >= most
            or (block and _is_heading(text))
        ):
            break
        if not RULE.fullmatch(text.strip()):
            block.append(at)
    return block


def _is_heading(text: str) -> bool:
    """Whether a line names a measure and has no number: R goes on with more columns below."""
    words = text.split()
    return not any(cell(word) for word in words) and any(
        column(word) is not None for word in words
    )


def continued(found: Grid, lines: Sequence[Line]) -> tuple[Grid, int]:
    """The table with the columns that R and pandas print below it, row by row, and the index of its last line."""
    last = found.rows[-1][0]
    while found.titles[0] == UNNAMED:
        index = last + 1
        while index < len(lines) and not lines[index].text.strip() and index < last + 3:
            index += 1
        below = None
        if index < len(lines) and lines[index].text.startswith(" "):
            below = _at_every_gap(lines, index, _block(lines, index, len(found.rows)))
        if below is None or [row[1][0] for row in below.rows] != [
            row[1][0] for row in found.rows
        ]:
            break
        if below.titles[0] != UNNAMED or not _is_heading(lines[index].text):
            break
        rows = [
            (at, [*cells, *more[1:]], part)
            for (at, cells, part), (_, more, _) in zip(
                found.rows, below.rows, strict=True
            )
        ]
        last = below.rows[-1][0]
        found = found._replace(titles=[*found.titles, *below.titles[1:]], rows=rows)
    return found, last


def strays(found: Grid, lines: Sequence[Line], last: int) -> list[int]:
    """Indexes of lines with as many numbers at their ends as the rows of a table, a blank line or two below it."""
    seen = {_numbers_at_end(lines[at].text) for at, _, _ in found.rows} - {0}
    # Rows differ where a space stands before thousands.
    counts = range(min(seen, default=1), max(seen, default=0) + 1)
    strays: list[int] = []
    for at in range(last + 1, len(lines)):
        if _numbers_at_end(lines[at].text) in counts:
            strays.append(at)
        elif lines[at].text.strip() or at > max([last, *strays]) + _APART:
            break
    return strays


def _numbers_at_end(text: str) -> int:
    # A thin space stands within a number.
    words = re.findall(r"[^ \t]+", text[:LONGEST])
    return next(
        (at for at, word in enumerate(reversed(words)) if cell(word) is None),
        len(words),
    )


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
    return fitted if fitted is None or _proves_thousands(fitted) else None


def _proves_thousands(way: Grid) -> bool:
    """Whether every ``100 940`` is one number: its title is one word, and its whole column is written so.

    Under two words, or without titles, it may be the cells of two columns that are one space apart.
    """
    for at, title in enumerate(way.titles):
        numbers = [cells[at] for _, cells, _ in way.rows if cell(cells[at]) is not None]
        if _TWO_NUMBERS.search(title):
            return False
        if not any(_TWO_NUMBERS.search(text) for text in numbers):
            continue
        word = _IN_BRACKETS.sub("", title).strip()
        if " " in word or not all(_GROUPED.fullmatch(text) for text in numbers):
            return False
    return True


def _at_every_gap(
    lines: Sequence[Line], index: int, block: Sequence[int]
) -> Grid | None:
    """Split at every space: fits only where no title and no cell has one, and most cells are numbers."""
    titles = _head(lines, index).split()
    if not 2 <= len(titles) <= MOST_COLUMNS:
        return None
    rows: list[Row] = []
    for at in block:
        cells = list(filter(None, lines[at].text.split(" ")))
        if 2 * sum(cell(text) is not None or is_missing(text) for text in cells) < len(
            cells
        ):
            break
        rows.append((at, cells, ""))
    fitted = _fitting(titles, rows, index, unnamed=_is_indented(lines, index, block))
    left = block[len(fitted.rows) :] if fitted else []
    return None if any(ends_in_number(lines[at].text) for at in left) else fitted


def _is_indented(lines: Sequence[Line], index: int, block: Sequence[int]) -> bool:
    """Whether the titles begin to the right of all rows: the column of names has none."""
    indents = [
        len(lines[at].text) - len(lines[at].text.lstrip()) for at in (index, *block)
    ]
    return bool(block) and max(indents[1:]) < indents[0]


def ends_in_number(text: str) -> bool:
    """Whether the last word of a line is a number."""
    words = text.split()
    return bool(words) and cell(words[-1]) is not None


def _fitting(
    titles: list[str], rows: Sequence[Row], first: int, *, unnamed: bool
) -> Grid | None:
    """The rows with as many cells as there are titles, or, where they are ``unnamed``, one more in all."""
    if rows and unnamed and len(rows[0][1]) == len(titles) + 1:
        titles = [UNNAMED, *titles]
    fitting: list[Row] = []
    for row in rows:
        if len(row[1]) != len(titles):
            break
        fitting.append(row)
    return grid(titles, fitting, first)


def _at_gaps(lines: Sequence[Line], index: int, block: Sequence[int]) -> Grid | None:
    """Split where the titles and all rows have a space in the same place."""
    head = _head(lines, index)
    texts = [head, *(lines[at].text.rstrip() for at in block)]
    spans = _merged(_spans(texts), head, texts[1:])
    if spans is None or not 2 <= len(spans) <= MOST_COLUMNS:
        return None
    titles = [" ".join(title.split()) for title in _cut(head, spans)]
    rows: list[Row] = []
    for at, text in zip(block, texts[1:], strict=True):
        cells = [part.strip() for part in _cut(text, spans)]
        if not rows and not any(cells[1:]) and not titles[0]:
            # pandas prints the name of the index on a line of its own.
            titles[0] = cells[0]
            continue
        if rows and not cells[0]:
            cells[0] = rows[-1][1][0]  # left empty to mean the one above
        rows.append((at, cells, ""))
    titles[0] = titles[0] or UNNAMED
    if all(titles) and not _joins_numbers(rows):
        return grid(titles, rows, index)
    return None


def _cut(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    return [text[begin:end] for begin, end in spans]


def _joins_numbers(rows: Sequence[Row]) -> bool:
    cells = chain.from_iterable(cells for _, cells, _ in rows)
    return any(map(_TWO_NUMBERS.search, cells))


def _spans(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Where any of ``texts`` has something, from gap to gap."""
    width = max(map(len, texts))
    taken = bytearray(width)
    for text in texts:
        for word in re.finditer(r"[^ ]+", text):
            taken[word.start() : word.end()] = b"\1" * len(word[0])
    return [match.span() for match in re.finditer(rb"\x01+", taken)]


def _merged(
    spans: Sequence[tuple[int, int]], head: str, rows: Sequence[str]
) -> list[tuple[int, int]] | None:
    """``spans`` with the words of one title, or of one name, put together; None where a word may belong to either side.

    A word of a title without cells below goes to its neighbour, one space away; words without a title go to the name
    that they stand in.
    """
    merged: list[list[int]] = []
    kept = [_is_kept(span, head, rows) for span in spans]
    pending: int | None = None  # where words begin that belong to the column after them
    for at, (begin, end) in enumerate(spans):
        titled = bool(head[begin:end].strip())
        if kept[at] or (at == 0 and not titled and _stands_alone(spans, rows)):
            merged.append([begin if pending is None else pending, end])
            pending = None
            continue
        if not titled and _has_number(spans[at], rows):
            return None  # a number without a title
        near_left = bool(merged) and pending is None and begin - spans[at - 1][1] == 1
        near_right = _reaches_right(spans, kept, at)
        if near_left and near_right:
            near_left, near_right = _nearer(
                merged[-1], spans[at + 1], head, rows, titled=titled
            )
        if near_left == near_right:
            return None
        if near_left:
            merged[-1][1] = end
        elif pending is None:
            pending = begin
    if pending is not None:
        return None
    return [(begin, end) for begin, end in merged]


def _nearer(
    left: Sequence[int],
    right: tuple[int, int],
    head: str,
    rows: Sequence[str],
    *,
    titled: bool,
) -> tuple[bool, bool]:
    """Whether a word between two columns, a space from each, may belong to the left and to the right one."""
    # A column that is flush right has a title that ends where its numbers do.
    if titled:
        return not _ends_together(left, head, rows), True
    # Part of a name, unless a name stands to the right as well.
    return True, not _holds_numbers(right, rows)


def _has_number(span: tuple[int, int], rows: Sequence[str]) -> bool:
    begin, end = span
    return any(cell(text[begin:end].strip()) is not None for text in rows)


def _stands_alone(spans: Sequence[tuple[int, int]], rows: Sequence[str]) -> bool:
    """Whether the first words of the rows, which have no title, are a column: numbers of rows, or set apart."""
    begin, end = spans[0]
    texts = [text[begin:end].strip() for text in rows]
    return (
        all(text.isdigit() or not text for text in texts)
        or len(spans) < 2
        or spans[1][0] - end > 1
    )


def _holds_numbers(span: tuple[int, int], rows: Sequence[str]) -> bool:
    texts = [text[span[0] : span[1]].strip() for text in rows]
    return all(cell(text) is not None or is_missing(text) for text in texts)


def _ends_together(span: Sequence[int], head: str, rows: Sequence[str]) -> bool:
    """Whether the title and all cells of a column end in the same place, and do not all begin in one."""
    begin, end = span
    texts = [text[begin:end] for text in (head, *rows)]
    flush_right = {len(text.rstrip()) for text in texts} == {end - begin}
    return flush_right and len({len(text) - len(text.lstrip()) for text in texts}) > 1


def _reaches_right(
    spans: Sequence[tuple[int, int]], kept: Sequence[bool], at: int
) -> bool:
    """Whether only single spaces lie between a word and the next column."""
    while at + 1 < len(spans) and spans[at + 1][0] - spans[at][1] == 1:
        at += 1
        if kept[at]:
            return True
    return False


def _is_kept(span: tuple[int, int], head: str, rows: Sequence[str]) -> bool:
    """Whether a span is a column by itself: it has a title, and cells below it."""
    begin, end = span
    return bool(head[begin:end].strip()) and any(
        text[begin:end].strip() for text in rows
    )


def _flat(lines: Sequence[Line], index: int) -> Grid | None:
    flat = flattened(lines, index)
    if flat is None:
        return None
    return grid(*flat, index)
