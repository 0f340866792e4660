"""Numbers of runs in words: digits by what is known, every mark explained by the legend."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain

from iodelta.study.rows import Number, Point, Row
from iodelta.study.units import STEPS
from iodelta.study.words import inert

COARSE = 0.05
"""A number known no better than this is marked."""

NAME = 160
"""Characters of a name that are shown."""


def named(row: Row) -> str:
    """Return what the row is called, and how many runs it stands for."""
    return shortened(inert(row.name)) + (f" x{row.runs}" if row.runs > 1 else "")


def shortened(name: str) -> str:
    """Return a name that a table can hold. Names differ at their ends: what is too much is taken from the middle."""
    if len(name) <= NAME:
        return name
    return f"{name[: NAME // 3]}..{name[-2 * NAME // 3 :]}"


def rate(row: Row) -> str:
    """IOPS, with their spread where the row stands for several runs."""
    if row.spread is None:
        return iops(row.iops)
    share = 100 * row.spread
    places = 0 if share >= 9.5 else 1
    return f"{iops(row.iops)} ±{share:.{places}f}%"


def iops(number: Number | None) -> str:
    """``72,401`` where every digit is known, else ``72.4k``."""
    if number is None:
        return "-"
    digits = known_digits(number.resolution)
    return coarse(_iops(number.value, digits), number.resolution)


def _iops(value: float, digits: int) -> str:
    # An exact number is said in full, as far as a reader can take it in.
    in_full = digits == 5 and value < 1e7
    if value < 100:
        places = min(4, max(2, digits))
        return f"{value:.{places}g}"
    if in_full or value < 10 ** max(3, digits):
        return f"{value:,.0f}"
    if value >= 1e6:
        return f"{significant(value / 1e6, digits)}M"
    return f"{significant(value / 1e3, digits)}k"


def bandwidth(number: Number | None) -> str:
    """In MiB/s."""
    if number is None:
        return "-"
    value = number.value / 2**20
    text = significant(value, known_digits(number.resolution))
    if value >= 1000:
        text = f"{value:,.0f}"
    return coarse(text, number.resolution)


def time(value: Number | Point | None) -> str:
    """``4.49ms``: as many digits as are known, four at most."""
    if value is None:
        return "-"
    times = STEPS["ns"]
    digits = known_digits(value.resolution)
    fitting = (step for step in reversed(times) if value.value >= step[0])
    size, unit = next(fitting, times[0])
    text = f"{significant(value.value / size, digits)}{unit}"
    return coarse(text, value.resolution)


def point(value: Point | None) -> str:
    """Return a percentile, in brackets where fewer than 100 I/Os lie beyond it."""
    text = time(value)
    if value is None or not value.thin:
        return text
    return f"({text})"


def coarse(text: str, resolution: float) -> str:
    """Marked where the number is known to 5 % at best."""
    if resolution > COARSE:
        return f"~{text}"
    return text


def known_digits(resolution: float) -> int:
    """Significant digits: 5 of an exact number, 3 of a percentile, 2 of one known to a tenth."""
    return 5 - bisect_left((2e-4, 2e-3, 2e-2), resolution)


def significant(value: float, digits: int) -> str:
    """``digits`` significant digits, four at most, without an exponent."""
    if value == 0:
        return "0"
    digits = min(digits, 4)
    if abs(value) < 1:
        return f"{value:.{digits - 1}f}"
    before_point = len(f"{abs(value):.0f}")
    places = max(0, digits - before_point)
    return f"{value:.{places}f}"


def legend(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the marks in rows mean."""
    points = list(chain.from_iterable(row.points for row in rows))
    numbers = chain.from_iterable((row.iops, row.bandwidth, row.mean) for row in rows)
    resolutions = [number.resolution for number in numbers if number is not None]
    resolutions += [point.resolution for point in points]
    if max(resolutions, default=0.0) > COARSE:
        yield "~ known to within 5 % at best, because its source is rounded"
    if any(point.thin for point in points):
        yield "( ) fewer than 100 I/Os beyond"
    if {row.spread for row in rows} - {None}:
        yield "xN ±: medians of N runs, standard deviation of IOPS (--verbose shows all)"
    if "clat" in {row.latency for row in rows}:
        yield "some means are of completion latency: total latency is not in the source"
