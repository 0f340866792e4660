"""Parse fio's printed numbers as intervals of the values that each format may have rounded.

Facts are from fio's ``lib/num2str.c`` and ``stat.c`` at their tags.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from iodelta.trial import BINS, Quantity, bin_edges, bin_index
from iodelta.workload.fio_schema import US_BINS

COUNT_MAX = 2**63
"""fio counts in 64 bits; anything above is damage."""

Version = tuple[int, int]

_PREFIX = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_NUM = re.compile(
    r"(\d{1,20})(?:\.(\d{1,12}))?\s?([kmgtpeKMGTPE]?)(i?)(?:[bB](?:it)?)?(?:/s)?"
)
_SIZE = re.compile(r"(\d{1,20})(?:\.(\d{1,6}))?\s?([kKmMgGtTpP]?)([iI]?)([bB]?)")


class Printed(NamedTuple):
    """A printed number: its best value and the interval that rounding allows."""

    value: float
    low: float
    high: float

    def quantity(self, unit: str, scale: float = 1.0) -> Quantity:
        """As a Quantity, each bound times ``scale``."""
        return Quantity(self.value * scale, self.low * scale, self.high * scale, unit)


def version_of(text: str | None) -> Version | None:
    """``3.33`` or ``fio-2.2.10-5-gabc`` as (3, 33) or (2, 2); None for another text."""
    match = re.match(r"(?:fio-)?(\d{1,3})\.(\d{1,3})", text or "")
    if not match:
        return None
    return int(match[1]), int(match[2])


def num2str(
    text: str, version: Version | None, *, kilo: int = 1000, truncated: bool = True
) -> Printed | None:
    """Return the argument of fio's ``num2str`` when it printed ``text``; None if the text is not such a number.

    ``kilo`` is the step of the prefixes unless the text says ``i`` (1024). ``truncated``: the number was cut to an
    integer before. Three kinds of fraction: up to 2.19 its digits mean nothing (1023/1024 prints as ".2"), 2.20 to
    3.25 lose a carry (10,970 prints as "10.0k"), later ones round. All drop what divisions before the last left over.
    """
    match = _NUM.fullmatch(text.strip())
    if match is None:
        return None
    whole, digits, prefix, binary = (
        int(match[1]),
        match[2] or "",
        match[3].upper(),
        match[4],
    )
    if whole > COUNT_MAX:
        return None
    step = 1024 if binary else kilo
    power = _power(prefix, version)
    unit = float(step) ** power
    if not power:
        value, half = _value(whole, digits)
        if digits:
            return Printed(value, value - half, value + half)
        return Printed(value, value, value + truncated)
    # The remainder of the division before, or the integer truncation.
    lost = 1 / step if power > 1 else 1 / unit
    # The interval of a number with a prefix: which of the three kinds of fraction it has is the version's.
    if not digits:
        return Printed(whole * unit, (whole - 0.5) * unit, (whole + 0.5 + lost) * unit)
    if version is not None and version < (2, 20):
        return Printed((whole + 0.5) * unit, whole * unit, (whole + 1) * unit)
    value_, half_ = _value(whole, digits)
    low, high = value_ - half_, value_ + half_ + lost
    if version is None:  # it may be of any of the three kinds
        low, high = min(low, float(whole)), max(high, float(whole + 1))
    if (version is None or version < (3, 26)) and not digits.strip("0"):
        high = max(high, float(whole + 1) + lost)
    return Printed(value_ * unit, low * unit, high * unit)


def _value(whole: int, digits: str) -> tuple[float, float]:
    """Return the number, and half a unit of its last digit."""
    value = whole + (int(digits) / 10 ** len(digits) if digits else 0.0)
    return value, 0.5 / 10 ** len(digits)


def _power(prefix: str, version: Version | None) -> int:
    power = _PREFIX[prefix]
    old = version is not None and version < (2, 17)
    if old and prefix in ("P", "E"):
        return power - 1  # the list of prefixes had no T
    return power


def half_unit(number: str) -> float:
    """Half a unit of the last decimal place of ``number`` (``1.25``: 0.005): rounding moved it by no more."""
    return 0.5 * 10.0 ** -len(number.partition(".")[2])


def decimals(text: str) -> Printed | None:
    """Return a plain number with the interval of its rounding; None if the text is not a number."""
    match = re.fullmatch(r"[+-]?\d{1,20}(?:\.\d{1,20})?", text.strip())
    if match is None:
        return None
    value, half = float(match[0]), half_unit(match[0])
    return Printed(value, value - half, value + half)


def size(text: str, kilo: int = 1024) -> int | None:
    """Bytes in fio's spelling of a size (``4k``, ``1M``, ``4096B``, ``128KiB``); None for another text.

    ``kilo`` is the step of its prefixes: 1024 unless the job says kb_base=1000.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    value = (
        float(f"{match[1]}.{match[2] or 0}") * float(kilo) ** _PREFIX[match[3].upper()]
    )
    if value < COUNT_MAX:
        return int(value)
    return None


def seconds(text: str) -> float | None:
    """Seconds in fio's spelling of a time (``30``, ``30s``, ``5m``, ``500ms``); None for another text."""
    match = _TIME.fullmatch(text.strip().lower())
    if match is None:
        return None
    return int(match[1]) * _SECONDS[match[2] or "s"]


_TIME = re.compile(r"(\d{1,15})\s?(us|usec|ms|msec|s|sec|m|min|h|hr|d)?")


_SECONDS = {
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "s": 1,
    "sec": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "hr": 3600,
    "d": 86400,
}
"""Seconds of a unit of time."""


def whole(text: str) -> int | None:
    """Return a count as fio prints it; None for another text or beyond 64 bits."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    value = int(text)
    return value if value < COUNT_MAX else None


def percentile(
    value: int, step: int, nanoseconds: bool | None, *, up: bool = True
) -> Quantity:
    """Return a percentile printed as a whole number of ``step`` ns: the union of all bins whose centres print as
    ``value``.

    fio >= 2.99 has bins of ns and divides the centre by 1000 once or twice, rounding ``up`` in text and down in terse
    (``nanoseconds``). Before, bins were of us, and only msec were divided. None: either.
    """
    if value >= COUNT_MAX // step:
        return Quantity(float(value) * step, float(value) * step, math.inf, "ns")
    quantities: list[Quantity] = []
    if nanoseconds is not False:
        quantities.append(_shortened(value, step, 1, up))
    if nanoseconds is not True:
        scale = 1000 if step > 1 else 1
        quantities.append(_shortened(value, max(step // 1000, 1), scale, up))
    low = min(quantity.low for quantity in quantities)
    high = max(quantity.high for quantity in quantities)
    return Quantity(quantities[0].value, low, high, "ns")


def _shortened(value: int, divided: int, scale: int, up: bool) -> Quantity:
    """Return the bins, in units of ``scale`` ns, whose centres print as ``value`` after division by ``divided``."""
    first, last = value * divided, (value + 1) * divided - 1
    if up:
        first, last = (value - 1) * divided + 1, value * divided
    indexes = range(bin_index(max(first, 0)), bin_index(max(last, 0)) + 1)
    bins = [bin_edges(index) for index in indexes]
    fits = [edges for edges in bins if first <= _centre(edges) <= last]
    if not fits:  # not a number that fio prints: somebody rounded it
        low, high = max(first - 1, 0) * scale, (last + 1) * scale
        middle = value * divided * scale
        return Quantity(float(middle), float(low), float(high), "ns")
    least, greatest = fits[0], fits[-1]
    last_bin = (US_BINS if scale > 1 else BINS) - 1
    # The last bin takes all that is longer.
    is_open = bin_index(greatest[0]) >= last_bin
    most = math.inf if is_open else float(greatest[1] * scale)
    centre = (_centre(least) + _centre(greatest)) * scale / 2
    return Quantity(centre, float(least[0] * scale), most, "ns")


def _centre(edges: tuple[int, int]) -> int:
    low, high = edges
    if high - low > 1:
        return low + (high - low) // 2
    return low
