"""Convert HTML to the text that a browser shows, without moving lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TABLE = re.compile(r"<(/?)table\b[^<>]{0,300}>", re.I)
_CELL = re.compile(r"<t[dh]\b([^<>]{0,300})>", re.I)
_ROW = re.compile(r"<tr\b[^<>]{0,300}>", re.I)
_SPAN = re.compile(r"\b(col|row)span\s?=\s?[\"']?(\d{1,3})", re.I)
_BREAK = re.compile(r"<br ?/?>(?:\r?\n)?|</(?:p|div|li|h\d)>(?=[^\n])", re.I)
_BREAK_IN_CELL = re.compile(
    r"\s*<(?:br\b ?/?|/?(?:p|div|li|ul|ol|h\d)\b[^<>]{0,300})>\s*", re.I
)
_HIDDEN = re.compile(
    r"<(span|div|i|b|p|small|td|th|tr)\b(?=[^<>]{0,300}(?:display: ?none|visibility: ?hidden|\shidden[\s>=]))[^<>]{0,300}>"
    r"(?:(?!</?\1\b).){0,2000}</\1>",
    re.I | re.S,
)
"""Elements that a browser does not show, such as the sort key of a column."""
_TAG = re.compile(
    r"</?(?:a|b|body|br|code|div|em|font|h\d|head|html|i|li|p|pre|samp|span|strong|t[dhrt]|table|tbody|thead|ul)"
    r"(?:\s[^<>\n]{0,300})?/?>",
    re.I,
)
_ENTITY = re.compile(r"&(?:gt|lt|amp|quot|nbsp|#39|#x27);")
_MOST_SPANNED = 200
_LOOK = 1_000_000
"""Characters in which markup is looked for."""


def plain(text: str) -> str:
    """``text`` without entities and tags; a line break in markup becomes a carriage return, to keep line numbers."""
    if _TAG.search(text, 0, _LOOK):
        text = _HIDDEN.sub(lambda match: "\n" * match[0].count("\n"), text)
        text = "".join(_tables(text))
        text = _TAG.sub(
            "", _BREAK.sub(lambda found: "\n" if "\n" in found[0] else "\r", text)
        )
    if not _ENTITY.search(text, 0, _LOOK):
        return text
    import html  # with its table of thousands

    return html.unescape(text)


def _tables(text: str) -> Iterator[str]:
    """Yield the parts of ``text`` with tables in Markdown; the line ends within a table follow it."""
    end = begin = 0
    for match in _TABLE.finditer(text):
        if not match[1]:
            begin = match.end()
        elif begin > end:
            yield text[end:begin]
            lines = " ".join(text[begin : match.start()].split())
            yield (
                "\r"
                + "\r".join(_rows(lines))
                + "\n" * text.count("\n", begin, match.start())
            )
            end = match.start()
    yield text[end:]


def _rows(text: str) -> Iterator[str]:
    """Yield the rows of a table; a cell over several rows is repeated in each, one over several columns is in the
    first.
    """
    text = re.sub(r" {2,}", " ", _BREAK_IN_CELL.sub(" ", text))
    before, *rows = _ROW.split(text)
    yield before
    # Column -> number of further rows that a cell covers, and its text.
    spanned: dict[int, tuple[int, str]] = {}
    for row in rows:
        first, *parts = _CELL.split(row)
        cells: list[str] = []
        for attributes, words in zip(parts[::2], parts[1::2], strict=True):
            _fill(cells, spanned)
            spans = {
                name.lower(): int(number) for name, number in _SPAN.findall(attributes)
            }
            if spans.get("row", 1) > 1:
                spanned[len(cells)] = (spans["row"] - 1, words)
            cells += [words, *[""] * (min(spans.get("col", 1), _MOST_SPANNED) - 1)]
        _fill(cells, spanned)
        yield f"{first}| {' | '.join(cells)} |" if cells else first


def _fill(cells: list[str], spanned: dict[int, tuple[int, str]]) -> None:
    """Add the cells of rows above that cover the next columns of this row."""
    while len(cells) in spanned:
        rows, words = spanned.pop(len(cells))
        if rows > 1:
            spanned[len(cells)] = (rows - 1, words)
        cells.append(words)
