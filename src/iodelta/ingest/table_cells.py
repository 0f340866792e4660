"""The numbers in the cells of a result table: thousands separators, decimal commas, ranges, scatter, units."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.ingest.numbers import Printed, half_unit
from iodelta.ingest.vocabulary import english

_NUMBER = re.compile(
    r"([~≈]?[+-]?)((?:\d{1,3}(?:[ ,'_\xa0\u202f\u2009]\d{3}){1,5}|\d{1,18})(?:[.,]\d{1,18})?(?:[eE][+-]?\d{1,2})?)"
    r"\s?([a-zA-Zµμ/]{0,12})"
)
_EMPHASIS = re.compile(r"`|(?<!\d)\*\*|\*\*(?!\d)")
"""``1024**2`` is a power, not Markdown."""
_SPREAD = re.compile(
    r"\s?\([^()]{1,40}\)$|\s?(?:±|\+/-|\+-)\s?\d[\d.,]{0,15}\s?%?(?P<unit>[kKmMGnuµμ]?[a-zA-Z/]{0,6})$"
)
"""Text after a number with its scatter or change."""
_RANGE = re.compile(
    r"(\d[\d.,]{0,20})\s?([kKMG]?)\s?(?:-|–|—|\.\.|to)\s?(\d[\d.,]{0,20})\s?([a-zA-Zµμ/]{0,10})"
)
_GERMAN = re.compile(r"-?\d{1,3}(?:\.\d{3}){1,5},\d{1,9}")
"""Points between thousands, a comma before decimals."""
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3}){1,6}(?:\.\d{1,18})?")
_SPACES = " \xa0\u202f\u2009'_"
_UNIT = re.compile(r"\s?[a-zA-Zµμ/%]{1,12}$")
_MISSING = frozenset(
    (
        "",
        "-",
        "--",
        "–",
        "—",
        "na",
        "n/a",
        "nan",
        "none",
        "null",
        "?",
        "x",
        "tbd",
        "failed",
        "error",
    )
)


def cell(text: str, *, comma: bool = False) -> tuple[Printed, str] | None:
    """Return the number in a cell and the letters after it; None without a number, or for an approximate one (``~0``).

    ``12 ± 3`` is 12, because a scatter is not a rounding; ``10-14`` is 12, with an interval from 10 to 14.
    Groups of three digits after a space, apostrophe or comma are thousands; ``comma``: in this column it precedes
    decimals. A table may have rounded or truncated its numbers: the interval reaches a unit of the last place up.
    """
    text = _without_scatter(plain(text))
    span = _RANGE.fullmatch(text)
    if span:
        # `10-14 us` or `10k-14k`: a first number without a unit has that of the second.
        first_unit = span[2] or span[4]
        low = cell(span[1] + first_unit, comma=comma)
        high = cell(span[3] + span[4], comma=comma)
        if low is None or high is None:
            return None
        # A range as the number in its middle; None if its ends have different units, or are in falling order.
        (first, first_unit_), (last, last_unit) = low, high
        if first_unit_ != last_unit or first.value > last.value:
            return None
        middle = (first.value + last.value) / 2
        return Printed(middle, first.low, last.high), last_unit
    comma = comma or _GERMAN.fullmatch(text) is not None
    match = _NUMBER.fullmatch(text.replace(".", "") if comma else text)
    if match is None:
        return None
    sign = match[1]
    is_approximate = "~" in sign or "≈" in sign
    mantissa, _, exponent = match[2].lower().partition("e")
    mantissa = _with_point(mantissa, comma)
    is_ambiguous = mantissa.count(".") > 1  # either of two marks may be the decimal one
    if is_approximate or is_ambiguous:
        return None
    power = 10.0 ** int(exponent or 0)
    value, half = float(mantissa) * power, half_unit(mantissa) * power
    if "-" in sign:
        value = -value
    return Printed(value, value - half, value + 2 * half), match[3]


def is_number(text: str) -> bool:
    """Return whether a cell contains a number."""
    return cell(text) is not None


def is_value(text: str) -> bool:
    """Return whether a cell contains a number, or stands for a missing one."""
    return is_number(text) or is_missing(text)


def _without_scatter(text: str) -> str:
    """Return a cell without the scatter or change of its number; a unit after these belongs to the number."""
    spread = _SPREAD.search(text)
    if spread is None:
        return text
    number = text[: spread.start()]
    if not number[-1:].isdigit():
        return number
    return number + (spread["unit"] or "")


def _with_point(mantissa: str, comma: bool) -> str:
    """Digits without marks between thousands, with a point before decimals; ``comma``: a comma precedes decimals."""
    for separator in _SPACES:
        mantissa = mantissa.replace(separator, "")
    is_grouped = _THOUSANDS.fullmatch(mantissa) is not None or "." in mantissa
    return mantissa.replace(",", "" if is_grouped and not comma else ".")


def plain(text: str) -> str:
    """Return a cell without Markdown's emphasis."""
    text = _EMPHASIS.sub("", text).strip()
    return text if text.isascii() else english(text).strip()


def is_missing(text: str) -> bool:
    """Return whether a cell stands for a missing number."""
    return plain(text).lower() in _MISSING


_POINTED_THOUSANDS = re.compile(r"-?\d{1,3}(?:\.\d{3}){1,5}")
_ONE_COMMA = re.compile(r"-?\d{1,9},\d{1,9}")
_COMMA_BEFORE_DECIMALS = re.compile(r"-?\d{1,9},(?:\d{1,2}|\d{4,9})|0,\d{1,9}")


_EITHER_COMMA = re.compile(r"[1-9]\d{0,2},\d{3}")


_CLEAR_COMMA = re.compile(r"\d{1,3}(?:,\d{3}){2,}|\d{4,}")
"""Numbers that show the meaning of a comma: with two of them, or with thousands and none."""


def decimal_comma(cells: Sequence[str], *, beside: bool = False) -> bool:
    """Return whether the commas in a column precede decimals: one of them is not followed by exactly three digits.

    ``beside``: they do in another column. Then they do here too, and points may separate thousands.
    """
    numbers = list(map(_without_unit, cells))
    if any(map(_GERMAN.fullmatch, numbers)):
        return True
    pointed = [text for text in numbers if "." in text]
    if pointed:
        return beside and all(map(_POINTED_THOUSANDS.fullmatch, pointed))
    shape = _ONE_COMMA if beside else _COMMA_BEFORE_DECIMALS
    return any(map(shape.fullmatch, numbers))


def doubtful_commas(cells: Sequence[str]) -> bool:
    """Return whether a comma in a column may separate thousands or decimals: ``1,234``, and no other cell shows which."""
    numbers = list(map(_without_unit, cells))
    has_point = any("." in text for text in numbers)
    is_clear = has_point or any(map(_CLEAR_COMMA.fullmatch, numbers))
    return not is_clear and any(map(_EITHER_COMMA.fullmatch, numbers))


def _without_unit(text: str) -> str:
    return _UNIT.sub("", plain(text))


_EITHER_POINT = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")
_CLEAR_POINT = re.compile(
    r"-?(?:0?\.\d{1,18}|\d{1,18}\.(?:\d{1,2}|\d{4,18})|\d{4,18}(?:\.\d{1,18})?"
    r"|\d{1,3}(?:,\d{3}){2,}|\d{1,3}(?:,\d{3}){1,5}\.\d{1,18})(?:e[+-]?\d{1,2})?",
    re.I,
)
"""Numbers that show the meaning of a point: with decimals, or with thousands and no point."""


def doubtful_points(cells: Sequence[str], beside: Sequence[str]) -> bool:
    """Return whether a point in a column may separate thousands or decimals: ``45.000``, and no number ``beside`` it
    shows which."""
    if not any(map(_EITHER_POINT.fullmatch, map(_without_unit, cells))):
        return False
    numbers = (_UNIT.sub("", _without_scatter(plain(text))) for text in beside)
    return not any(map(_CLEAR_POINT.fullmatch, numbers))
