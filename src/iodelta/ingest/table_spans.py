"""Find the columns of a table from places in which the titles and all rows have a space."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from iodelta.ingest.table_cells import is_number, is_value


def spans(head: str, rows: Sequence[str]) -> list[tuple[int, int]] | None:
    """Begin and end of each column of a table with the titles ``head``; None if a word may belong to either of two."""
    # Begin and end of each stretch between common gaps of `texts`.
    texts = [head, *rows]
    width = max(map(len, texts))
    taken = bytearray(width)
    for text in texts:
        for word in re.finditer(r"[^ ]+", text):
            taken[word.start() : word.end()] = b"\1" * len(word[0])
    # `spans` with the words of a title or a name joined; None if a word may belong to either side.
    spans = [match.span() for match in re.finditer(rb"\x01+", taken)]
    columns: list[tuple[int, int]] = []
    whole = [(_has_text(span, head) and any(_texts(span, rows))) for span in spans]
    whole[:1] = (
        [whole[0] or (not _has_text(spans[0], head) and _stands_alone(spans, rows))]
        if spans
        else []
    )
    pending: int | None = None  # begin of words that belong to the next column
    for at, (begin, end) in enumerate(spans):
        if whole[at]:
            columns.append((begin if pending is None else pending, end))
            pending = None
            continue
        touches_left = pending is None and _touches(columns[-1:], begin)
        left = columns[-1] if touches_left else None
        # The neighbour to which a word that is not a column belongs; `left` is the column one space before it. None:
        # either, or neither.
        side: Literal["left", "right"] | None
        is_titled = _has_text(spans[at], head)
        if not is_titled and any(map(is_number, _texts(spans[at], rows))):
            side = None  # a number without a title
        else:
            may_be_right = _reaches_right(spans, whole, at)
            if left is None:
                side = "right" if may_be_right else None
            elif not may_be_right:
                side = "left"
            else:
                # Which of two columns, one space away on each side, a word belongs to; None: either.
                right = spans[at + 1]
                if is_titled:
                    # The title of a right-aligned column ends where its numbers end.
                    side = "right" if _ends_together(left, head, rows) else None
                else:
                    # It is part of a name, unless there is also a name on the right.
                    side = "left" if all(map(is_value, _texts(right, rows))) else None
        if side is None:
            return None
        if side == "left":
            columns[-1] = (columns[-1][0], end)
        elif pending is None:
            pending = begin
    return columns if pending is None else None


def _touches(left: Sequence[tuple[int, int]], begin: int) -> bool:
    """Return whether one space separates a word from the column ``left``, if there is one."""
    return any(begin - end == 1 for _, end in left)


def _is_next(spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Return whether one space separates a word from the previous one."""
    return spans[at][0] - spans[at - 1][1] == 1


def _has_text(span: tuple[int, int], line: str) -> bool:
    begin, end = span
    return bool(line[begin:end].strip())


def _texts(span: tuple[int, int], rows: Sequence[str]) -> list[str]:
    """Return the text of each row within a span."""
    begin, end = span
    return [text[begin:end].strip() for text in rows]


def _stands_alone(spans: Sequence[tuple[int, int]], rows: Sequence[str]) -> bool:
    """Return whether the first words of the rows, without a title, are a column: row numbers, or separated by a gap."""
    counts_rows = all(map(str.isdigit, filter(None, _texts(spans[0], rows))))
    return counts_rows or len(spans) < 2 or not _is_next(spans, 1)


def _ends_together(span: Sequence[int], head: str, rows: Sequence[str]) -> bool:
    """Return whether the title and all cells of a column end at the same place, and begin at different ones."""
    begin, end = span
    texts = [text[begin:end] for text in (head, *rows)]
    flush_right = {len(text.rstrip()) for text in texts} == {end - begin}
    return flush_right and len({len(text) - len(text.lstrip()) for text in texts}) > 1


def _reaches_right(
    spans: Sequence[tuple[int, int]], whole: Sequence[bool], at: int
) -> bool:
    """Return whether only single spaces separate a word and the words up to the next column."""
    for right in range(at + 1, len(spans)):
        if not _is_next(spans, right):
            return False
        if whole[right]:
            return True
    return False
