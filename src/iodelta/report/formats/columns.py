"""Tables for a terminal: every column as wide as what stands in it, so that no two of them ever meet."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

GAPS = (2, 1)
"""Blanks between columns, the wider first."""

LEAST = 8
"""Columns of names that are kept where a table is too wide."""


def columns(
    rows: Sequence[Sequence[str]],
    align: str,
    width: int,
    *,
    indent: int = 0,
    fold: int | None = None,
) -> list[str]:
    """Return one line for each row (the first holds the headings), at most ``width`` wide where that can be.

    ``align`` says ``<`` or ``>`` of each column. Where they do not fit, the first column is cut at its end, never a
    number; then the columns from ``fold`` on (else those that do not fit) go to a line of their own below (of a row
    that has any), in the same string; then headings that are wider than what stands below them are cut.
    """
    widths = [
        max(map(cell_len, column), default=0) for column in zip(*rows, strict=True)
    ]
    for gap in GAPS:
        spare = width - indent - sum(widths) - gap * (len(widths) - 1)
        if spare >= 0 or (gap == GAPS[-1] and widths[0] + spare >= LEAST):
            widths[0] += min(0, spare)
            return [_line(row, widths, align, gap, indent) for row in rows]
    at = _whole_columns(widths, width - indent) if fold is None else fold
    rows = [
        (
            *_headings(rows, (0, at), width - indent),
            *_headings(rows, (at, len(widths)), width - indent - 2),
        ),
        *rows[1:],
    ]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    widths[0] = max(
        LEAST, min(widths[0], width - indent - sum(widths[1:at]) - (at - 1))
    )
    lines = []
    for row in rows:
        lines.append(_line(row[:at], widths[:at], align, 1, indent))
        if any(row[at:]):
            lines[-1] += "\n" + _line(row[at:], widths[at:], align[at:], 1, indent + 2)
    return lines


def _headings(
    rows: Sequence[Sequence[str]], part: tuple[int, int], room: int
) -> Sequence[str]:
    """Return the headings of the columns from ``part[0]`` to ``part[1]``, cut so that these fit ``room``.

    Names of files differ at their ends: what all that are cut begin with goes first. None is cut to look like another.
    """
    heads, *bodies = [row[slice(*part)] for row in rows]
    least = [
        max([LEAST, *map(cell_len, column)]) for column in zip(*bodies, strict=True)
    ]
    if not least:
        least = [LEAST] * len(heads)
    spare = room - sum(least) - GAPS[-1] * (len(heads) - 1)
    too_wide = [
        cell_len(head) - width for head, width in zip(heads, least, strict=True)
    ]
    long = [place for place, excess in enumerate(too_wide) if excess > 0]
    if sum(too_wide[place] for place in long) <= max(0, spare):
        return heads
    names = [heads[place] for place in long]
    each = max(0, spare) // len(long)
    shorter = [
        cut(name, least[place] + each)
        for place, name in zip(long, _ends(names), strict=True)
    ]
    if len(set(shorter)) < len(set(names)):
        return heads
    shown = dict(zip(long, shorter, strict=True))
    return [shown.get(place, head) for place, head in enumerate(heads)]


def _ends(names: Sequence[str]) -> list[str]:
    """Return names without what all of them begin with, for which ``~`` stands."""
    first, last = min(names), max(names)
    same = differs_from(first, last)
    return [f"~{name[same:]}" if same else name for name in names]


def differs_from(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the place from which on two texts or rows differ; 0 where one is the beginning of the other."""
    differs = [text != other for text, other in zip(first, second, strict=False)]
    return differs.index(True) if True in differs else 0


def _whole_columns(widths: Sequence[int], room: int) -> int:
    """Return how many columns stand on one line, names cut to the least."""
    used = LEAST
    for count, width in enumerate(widths[1:], 1):
        used += GAPS[-1] + width
        if used > room:
            return max(count, 2)
    return len(widths)


def _line(
    row: Sequence[str], widths: Sequence[int], align: str, gap: int, indent: int
) -> str:
    padded = []
    for text, width, side in zip(row, widths, align, strict=False):
        shown = cut(text, width)
        blanks = " " * (width - cell_len(shown))
        padded.append(blanks + shown if side == ">" else shown + blanks)
    return (" " * indent + (" " * gap).join(padded)).rstrip()


def cut(text: str, width: int) -> str:
    """Text of at most ``width`` columns, ``~`` where its end is missing."""
    if cell_len(text) <= width:
        return text
    # A name of megabytes is not measured again for each of its characters.
    text = text[:width]
    while cell_len(text) > width - 1:
        text = text[:-1]
    return f"{text}~"
