"""The columns of lines in which the titles and all rows have a space in the same place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from iodelta.ingest.table_cells import is_number, is_value


def spans(head: str, rows: Sequence[str]) -> list[tuple[int, int]] | None:
    """Where the columns of a table begin and end, whose titles are ``head``; None where a word may belong to either of
    two."""
    return _merged(_spans([head, *rows]), head, rows)


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
    columns: list[tuple[int, int]] = []
    whole = [_is_kept(span, head, rows) for span in spans]
    whole[:1] = [whole[0] or _is_column_of_names(spans, head, rows)] if spans else []
    pending: int | None = None  # where words begin that belong to the column after them
    for at, (begin, end) in enumerate(spans):
        if whole[at]:
            columns.append((begin if pending is None else pending, end))
            pending = None
            continue
        touches_left = pending is None and _touches(columns[-1:], begin)
        left = columns[-1] if touches_left else None
        side = _side_of_word(at, spans, head, rows, left, whole)
        if side is None:
            return None
        if side == "left":
            columns[-1] = (columns[-1][0], end)
        elif pending is None:
            pending = begin
    return columns if pending is None else None


def _touches(left: Sequence[tuple[int, int]], begin: int) -> bool:
    """Whether one space stands between the column ``left``, if there is any, and a word."""
    return any(begin - end == 1 for _, end in left)


def _is_next(spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Whether one space stands between a word and the one before it."""
    return spans[at][0] - spans[at - 1][1] == 1


def _side_of_word(
    at: int,
    spans: Sequence[tuple[int, int]],
    head: str,
    rows: Sequence[str],
    left: tuple[int, int] | None,
    whole: Sequence[bool],
) -> Literal["left", "right"] | None:
    """To which neighbour a word belongs that is no column; ``left`` is the column one space before it. None: to either,
    or to neither."""
    is_titled = _has_text(spans[at], head)
    if not is_titled and _has_number(spans[at], rows):
        return None  # a number without a title
    may_be_right = _reaches_right(spans, whole, at)
    if left is None:
        return "right" if may_be_right else None
    if not may_be_right:
        return "left"
    return _nearer(left, spans[at + 1], head, rows, titled=is_titled)


def _has_text(span: tuple[int, int], line: str) -> bool:
    begin, end = span
    return bool(line[begin:end].strip())


def _is_column_of_names(
    spans: Sequence[tuple[int, int]], head: str, rows: Sequence[str]
) -> bool:
    """Whether the first words of the rows are a column although no title is above them."""
    return not _has_text(spans[0], head) and _stands_alone(spans, rows)


def _nearer(
    left: tuple[int, int],
    right: tuple[int, int],
    head: str,
    rows: Sequence[str],
    *,
    titled: bool,
) -> Literal["left", "right"] | None:
    """To which of two columns a word between them, a space from each, belongs; None: to either."""
    if titled:
        # A column that is flush right has a title that ends where its numbers do.
        return "right" if _ends_together(left, head, rows) else None
    # Part of a name, unless a name stands to the right as well.
    return "left" if _holds_numbers(right, rows) else None


def _has_number(span: tuple[int, int], rows: Sequence[str]) -> bool:
    return any(map(is_number, _texts(span, rows)))


def _texts(span: tuple[int, int], rows: Sequence[str]) -> list[str]:
    """What stands in a span of each row."""
    begin, end = span
    return [text[begin:end].strip() for text in rows]


def _stands_alone(spans: Sequence[tuple[int, int]], rows: Sequence[str]) -> bool:
    """Whether the first words of the rows, which have no title, are a column: numbers of rows, or set apart."""
    counts_rows = all(map(str.isdigit, filter(None, _texts(spans[0], rows))))
    return counts_rows or len(spans) < 2 or not _is_next(spans, 1)


def _holds_numbers(span: tuple[int, int], rows: Sequence[str]) -> bool:
    return all(map(is_value, _texts(span, rows)))


def _ends_together(span: Sequence[int], head: str, rows: Sequence[str]) -> bool:
    """Whether the title and all cells of a column end in the same place, and do not all begin in one."""
    begin, end = span
    texts = [text[begin:end] for text in (head, *rows)]
    flush_right = {len(text.rstrip()) for text in texts} == {end - begin}
    return flush_right and len({len(text) - len(text.lstrip()) for text in texts}) > 1


def _reaches_right(
    spans: Sequence[tuple[int, int]], whole: Sequence[bool], at: int
) -> bool:
    """Whether only single spaces lie between a word and the next column."""
    for right in range(at + 1, len(spans)):
        if not _is_next(spans, right):
            return False
        if whole[right]:
            return True
    return False


def _is_kept(span: tuple[int, int], head: str, rows: Sequence[str]) -> bool:
    """Whether a span is a column by itself: it has a title, and cells below it."""
    return _has_text(span, head) and any(_texts(span, rows))
