"""Undo what mails, web pages, terminals and editors do to text; each line keeps its original number."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple

from iodelta.ingest import escaped, markup, prefixes

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,10}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|[@-Z\\^_()][0-9A-B]?)"
)
_QUOTE = re.compile(r"[ \t]{0,8}(?:>(?![=>\d])[ \t]?|>(?=>)){1,8}")
_PROGRESS = re.compile(
    r"Jobs: \d{1,9} \(f=\d{1,9}\)(?:.{0,400}?\[eta [^\[\]]{1,30}\])?"
)
"""The status line that fio repeats while it runs: current rates, not a result."""
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FULL_WIDTH = {0xFF01 + place: 0x21 + place for place in range(94)} | {0x3000: " "}
_WIDE_MARKS = re.compile(
    r"(?<!\d)[，：][ \u3000]?|[，：](?!\d)[ \u3000]?|[；、][ \u3000]?|）(?=\w)"
)
"""Full-width punctuation, which includes its own space: East Asian editors write it for ``, `` and ``: ``."""
_MARKS = {"，": ", ", "：": ": ", "；": "; ", "、": ", ", "）": ") "}
_TYPESET = str.maketrans("“”„", '"""')
"""Typographic quotes, which editors write for plain ones."""
_FIXED_SPACE = re.compile(r"(?<!\d)\xa0|\xa0(?!\d{3})")
"""A non-breaking space, except between groups of digits."""
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Characters that editors and web pages insert where a line may break or text changes its direction."""
_LINE_ENDS = re.compile("[\x0b\x0c\x85\u2028\u2029]")
"""Other characters that end a line."""
_LOOK = 8192
"""Bytes that decide whether a file is text."""
_NOT_TEXT = bytes((0, 1, 2, 3, 4, 5, 6, 14))
_HEADERS = 1 << 16
"""Characters at the beginning of a mail that contain its headers."""
_BASE64 = re.compile(
    r"(?:^[A-Za-z0-9+/=]{40,100}\r?\n){2,100000}(?:^[A-Za-z0-9+/=]{1,100}\r?$)?", re.M
)


class Line(NamedTuple):
    """A cleaned line and the 1-based number of its original line."""

    number: int
    text: str
    tabbed: str = ""
    """The same text with its tabs, which separate the columns of tables; empty if it has none."""


def looks_binary(head: bytes) -> bool:
    """Return whether the beginning of a file is not text in any encoding of fio's output."""
    head = head[:_LOOK]
    zeros = head.count(0)
    controls = len(head) - len(head.translate(None, _NOT_TEXT)) - zeros
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or not zeros + controls:
        return False
    if zeros and _bare_utf_16(head):
        return False
    return zeros > len(head) // 50 or controls > 4


def _bare_utf_16(head: bytes) -> str:
    """Return the byte order of UTF-16 without its mark: text of Latin letters has a zero in every other byte."""
    odd, even = head[1:_LOOK:2], head[:_LOOK:2]
    for order, zeros, letters in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        is_mostly_zero = zeros.count(0) > 0.9 * len(zeros)
        if len(zeros) > 16 and is_mostly_zero and not letters.count(0):
            return order
    return ""


def lines(data: bytes) -> list[Line]:
    """``data`` without mail quotes, escape sequences, carriage returns, soft line ends, markup and common prefixes of
    lines; strings that contain lines are expanded.

    A carriage return begins a new line with the same number: text that a terminal would overwrite is kept.
    """
    numbers: list[int] = []
    texts: list[str] = []
    tabbed: list[str] = []
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    elif order := _bare_utf_16(data):
        text = data.decode(order, "replace")
    else:
        text = data.decode("utf-8-sig", "replace")
    if not text.isascii():
        text = _LINE_ENDS.sub("\n", text)
    if "\nContent-Transfer-Encoding: base64" in text[:_HEADERS]:
        text = _BASE64.sub(_of_base64, text)
    for number, raw in escaped.opened(_unfolded(markup.plain(text))):
        parts = raw.split("\r")
        for part in parts:
            plain = _plain(part)
            is_blank_line = len(parts) == 1 and not part.strip()
            if plain or is_blank_line:
                numbers.append(number)
                texts.append(plain)
                tabbed.append(_plain(part, tab="\t") if "\t" in part else "")
    return list(map(Line, numbers, prefixes.without(texts), tabbed))


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; lines that quoted-printable has broken are joined."""
    quoted, begun = text.count("=3D") >= 3, ""
    for number, raw in enumerate(text.split("\n"), 1):
        if quoted:
            raw = begun + raw.rstrip("\r")
            if raw.endswith("=") and len(raw) < 4000:
                begun = raw[:-1]
                continue
            raw, begun = _unquoted(raw), ""
        yield number, raw


def _of_base64(match: re.Match[str]) -> str:
    """Return the decoded text of a mail that was sent as base64; other text is unchanged."""
    try:
        return binascii.a2b_base64(match[0]).decode("utf-8", "replace")
    except ValueError:
        return match[0]


def _plain(text: str, tab: str = "    ") -> str:
    if not text.isprintable():
        if "\x1b" in text:
            text = _ESCAPE.sub("", text)
        text = _UNFIT.sub("", _FIXED_SPACE.sub(" ", text.replace("\t", tab)))
    if ">" in text:
        text = text[quote.end() :] if (quote := _QUOTE.match(text)) else text
    if not text.isascii():
        text = _typed(text)
    if "Jobs: " in text:
        text = _PROGRESS.sub("", text)
    return text


def _typed(text: str) -> str:
    """Text without typographic quotes and full-width letters, as fio writes it; strings keep their quotes."""
    text = _INVISIBLE.sub("", text)
    text = _WIDE_MARKS.sub(lambda match: _MARKS[match[0][0]], text)
    if '"' in text:
        return text.translate(
            {
                code: plain
                for code, plain in _FULL_WIDTH.items()
                if plain not in (0x22, 0x5C)
            }
        )
    return text.translate(_TYPESET).translate(_FULL_WIDTH)


def _unquoted(text: str) -> str:
    """Quoted-printable: ``=3D`` is ``=``."""
    if "=" not in text:
        return text
    raw = re.sub(
        rb"=([0-9A-F]{2})",
        lambda match: bytes([int(match[1], 16)]),
        text.encode("utf-8", "replace"),
    )
    return raw.decode("utf-8", "replace")
