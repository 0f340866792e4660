"""HTML as the text that a browser shows, every line in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TABLE = re.compile(r"<(/?)table\b[^<>]{0,300}>", re.I)
_CELL = re.compile(r"</t[dh]>\s{0,200}<t[dh]\b[^<>]{0,300}>", re.I)
_ROW = re.compile(r"</tr>", re.I)
_BREAK = re.compile(r"<br ?/?>(?:\r?\n)?|</p>(?=[^\n])", re.I)
_TAG = re.compile(
    r"</?(?:a|b|body|br|code|div|em|font|h\d|head|html|i|li|p|pre|samp|span|strong|t[dhrt]|table|tbody|thead|ul)"
    r"(?:\s[^<>\n]{0,300})?/?>",
    re.I,
)
_ENTITY = re.compile(r"&(?:gt|lt|amp|quot|nbsp|#39|#x27);")
_LOOK = 1_000_000
"""Characters in which markup is looked for."""


def plain(text: str) -> str:
    """``text`` without entities and tags; a line end that only markup made is a carriage return."""
    if _TAG.search(text, 0, _LOOK):
        text = "".join(_tables(text))
        text = _TAG.sub("", _BREAK.sub(lambda found: "\n" if "\n" in found[0] else "\r", text))
    if not _ENTITY.search(text, 0, _LOOK):
        return text
    import html  # with its table of thousands

    return html.unescape(text)


def _tables(text: str) -> Iterator[str]:
    """The parts of ``text``, tables with rows as Markdown has them; the line ends inside them follow the table."""
    end = begin = 0
    for found in _TABLE.finditer(text):
        if not found[1]:
            begin = found.end()
        elif begin > end:
            yield text[end:begin]
            lines = " ".join(text[begin : found.start()].split())
            yield "\r" + _ROW.sub("\r", _CELL.sub(" | ", lines)) + "\n" * text.count("\n", begin, found.start())
            end = found.start()
    yield text[end:]
