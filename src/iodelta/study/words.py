"""Numbers and names in words, the same in every format: units, digits by resolution, safe text."""

from __future__ import annotations

import math
import re
import shlex
import textwrap
import unicodedata
from collections.abc import Iterable
from itertools import starmap
from typing import TYPE_CHECKING

import msgspec

from iodelta.decoding import from_json
from iodelta.experiment.model import option_word
from iodelta.figures import share
from iodelta.study.units import STEPS

if TYPE_CHECKING:  # quick commands need no statistics
    from iodelta.verdict import Metric

BEYOND = 1e4
"""A storage device never changes by this much: one side did no I/O."""

MANIFOLD = 99.0
"""A change from which on it is printed as a factor."""

SCALED = ("ns", "B/s", "B", "%")
"""Units that are printed with every value."""

NAMES_OF_COMMANDS = {"wall": "wall time", "cpu": "CPU time", "memory": "peak memory"}

SIZES = (
    (1.0, "B"),
    (2.0**10, "KiB"),
    (2.0**20, "MiB"),
    (2.0**30, "GiB"),
    (2.0**40, "TiB"),
)

_LATENCY = {
    "lat": "latency",
    "clat": "completion latency",
    "slat": "submission latency",
}


def setting(knob: str, value: str) -> str:
    """Return the value of a knob for a reader: the table of ``command`` as command lines."""
    if knob != "command":
        return value
    try:
        table = from_json(value, dict[str, list[str]])
    # A file from elsewhere may hold anything.
    except msgspec.MsgspecError:
        return value
    return ", ".join(
        f"{step}: {shlex.join(words)}" for step, words in table.items() if words
    )


def options_line(options: Iterable[tuple[str, str | None]]) -> str:
    """Options as they stand on fio's command line."""
    return inert(" ".join(starmap(option_word, options)))


def inert(text: str) -> str:
    """Foreign text without control characters and terminal escapes: they are shown as \\xNN."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_inert_character, text))


def _inert_character(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    number = ord(character)
    # A surrogate by which Python represents a byte of a file name (PEP 383).
    if 0xDC80 <= number <= 0xDCFF:
        number -= 0xDC00
    return f"\\x{number:02x}"


def inert_message(text: str) -> str:
    """Return a message of one line or several, without control characters.

    Further lines of a message are indented. A line break before anything else belongs to a quoted name, which would
    otherwise make a line that looks like one of iodelta's own.
    """
    first, *further = text.split("\n")
    lines = [first]
    for line in further:
        if line.startswith((" ", "\t")):
            lines.append(line)
        else:
            lines[-1] += f"\n{line}"
    return "\n".join(map(inert, lines))


def wrap(text: str, width: int, indent: str = "", *, whole: bool = False) -> list[str]:
    """Lines of at most ``width`` columns, those after the first behind ``indent``; a longer word is cut unless words
    stay ``whole``.

    What can be pasted stays whole: a command in `` ` `` is never cut, on a line of its own if need be, nor is a word at
    a hyphen; a number keeps its ``%``.
    """
    tied = re.sub(r"`[^`]*`|(?<=\d) %", lambda match: match[0].replace(" ", "\0"), text)
    room = width - len(indent)
    if not whole:
        tied = " ".join(_cut(word, room) for word in tied.split(" "))
    lines = textwrap.wrap(
        tied,
        width,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace("\0", " ") for line in lines]


def _cut(word: str, room: int) -> str:
    """Return a word in parts that fit a line; a command stays whole."""
    if "`" in word:
        return word
    return " ".join(word[start : start + room] for start in range(0, len(word), room))


def name_of_command(name: str, unit: str) -> str:
    """Return a number of a command: with its unit where ``quantity`` does not print one."""
    if unit in ("", *SCALED):
        return NAMES_OF_COMMANDS.get(name, name)
    return f"{name} ({unit})"


def metric_name(metric: Metric, *, with_kind: bool) -> str:
    """``read IOPS``, ``p99 latency``: the direction only where a cell has several, and ``sync mean latency``."""
    kind, _, what = metric.name.partition(".")
    if kind == "command":
        return name_of_command(what, metric.unit)
    family, _, point = what.partition(".")
    if family in _LATENCY:
        name = f"{point} {_LATENCY[family]}"
    else:
        name = {
            "iops": "IOPS",
            "bandwidth": "bandwidth",
            "jitter": "jitter",
            "system": "kernel time",
            "switches": "switches",
        }.get(what, what)
    named = with_kind or kind == "sync"
    if named and kind != "cpu":
        return f"{kind} {name}"
    return name


def quantity(value: float | None, unit: str, places: int = 4) -> str:
    """Return a value for a reader, to significant digits: ``12,345``, ``1.234 MiB/s``, ``78.12 us``; ``-`` if unknown.

    ``places`` (3 or 4) are those of a time or a rate in bytes.
    """
    if value is None or not math.isfinite(value):
        return "-"
    if unit in STEPS:
        return _scaled(value, STEPS[unit], places)
    if unit == "B":
        return size(value)
    if unit == "%":
        return f"{_grouped(value, places)} %"
    return _grouped(value, 4)


def _scaled(value: float, steps: tuple[tuple[float, str], ...], places: int) -> str:
    fitting = (step for step in reversed(steps) if abs(value) >= step[0])
    size, name = next(fitting, steps[0])
    return f"{_grouped(value / size, places)} {name}"


def _grouped(value: float, places: int) -> str:
    """``places`` significant digits; from 1,000 on all digits, in groups of three."""
    text = f"{value:.{places}g}"
    if abs(float(text)) >= 1000:
        return f"{value:,.0f}"
    return text


def percent(value: float | None, half_width: float | None = None) -> str:
    """``+1.2 %`` of 0.012; as many digits as the interval's half width makes meaningful, two at most. ``x702`` where
    a percentage would be absurd."""
    if value is None or not math.isfinite(value):
        return "-"
    if value >= MANIFOLD:
        return _times(value)
    return f"{_signed(value, digits(half_width))} %"


def measured(value: float | None, low: float | None, high: float | None) -> str:
    """Return a change as ``percent``, with the digits that its interval allows; not rounded to 0 where that excludes 0."""
    if value is None or low is None or high is None:
        return percent(value)
    half = (high - low) / 2
    if low * high > 0 and value < MANIFOLD:
        return f"{_signed(value, _places_to_see(value, digits(half)))} %"
    return percent(value, half)


def interval(low: float | None, high: float | None) -> str:
    """``-1.9 .. -0.4 %``, ``below -0.2 %`` where one end is unbounded, or why there is none; ``x0.5 .. x702`` where
    percentages would be absurd."""
    low = None if low == -math.inf else low
    high = None if high == math.inf else high
    if low is None or high is None:
        end = high if low is None else low
        if end is None:
            return "too few blocks"
        bound = (
            _times(end)
            if end >= MANIFOLD
            else f"{_signed(end, _places_to_see(end, 1))} %"
        )
        return f"{'below' if low is None else 'above'} {bound}"
    if high >= MANIFOLD:
        return f"{_times(low)} .. {_times(high)}"
    return f"{between(low, high)} %"


def between(low: float, high: float) -> str:
    """``-1.9 .. -0.4``, in percent. An interval that excludes 0 is not rounded to one that ends at it."""
    enough = digits((high - low) / 2)
    low_places = high_places = enough
    if low * high > 0:
        low_places = _places_to_see(low, enough)
        high_places = _places_to_see(high, enough)
    return f"{_signed(low, low_places)} .. {_signed(high, high_places)}"


def _places_to_see(value: float, enough: int) -> int:
    """Decimals of a percentage that is not 0: ``enough``, or as many more as its first digit needs."""
    if value == 0 or round(100 * abs(value), enough) > 0:
        return enough
    return math.ceil(-math.log10(100 * abs(value)))


def _times(change: float) -> str:
    """Return a change as a factor."""
    if change >= BEYOND:
        return f">x{BEYOND:,.0f}"
    times = 1 + change
    return f"x{times:.2g}" if times < 100 else f"x{times:,.0f}"


def _signed(value: float, places: int) -> str:
    """Return a percentage with its sign. 0 has none: next to two values, the second of them smaller, ``+0 %`` would be
    wrong.
    """
    text = f"{100 * value:+.{places}f}"
    if float(text) != 0:
        return text
    return text[1:]


def digits(half_width: float | None) -> int:
    """Decimals of a percentage whose uncertainty is ``half_width`` (a fraction): none from 5 % on, two below 0.1 %."""
    if half_width is None or not math.isfinite(half_width) or half_width <= 0:
        return 1
    if half_width >= 0.05:
        return 0
    return 1 if half_width >= 0.001 else 2


def scatter(spread: float | None) -> str:
    """Return a standard deviation as a share of its mean: ``0.42 %``, ``5.1 %``, ``190 %``; ``-`` when it is not known."""
    if spread is None or not math.isfinite(spread):
        return "-"
    return share(spread)


def duration(seconds: float) -> str:
    """``45 s``, ``2 min 05 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    if minutes % 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 60} h"


def expected(seconds: float) -> str:
    """Return how long something still takes."""
    return f"about {duration(seconds)} left"


def size(count: float) -> str:
    """``4 KiB``, ``1.5 GiB``."""
    return _scaled(count, SIZES, 4)
