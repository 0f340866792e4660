"""The column of times of a table: whether the rows are samples of one run, or separate runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from itertools import pairwise, starmap
from statistics import median
from typing import NamedTuple

from iodelta.ingest.table_cells import plain
from iodelta.ingest.vocabulary import TIMES

_UNITS = {
    **TIMES,
    "min": 60e9,
    "mins": 60e9,
    "minutes": 60e9,
    "h": 3600e9,
    "hours": 3600e9,
}
"""Nanoseconds of a unit."""
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_TITLE = re.compile(
    r"(?:(?:wall|clock|elapsed|relative|rel|unix|epoch|log|sample|since start)[ _-]?)?"
    r"(?:time(?:[ _-]?stamp)?|timestamp|date(?:[ _/-]?time)?|clock|epoch|elapsed|secs?|seconds?|minutes|zeit|ts"
    r"|t(?=[ _]?[(\[]))"
    rf"(?:[ _]?[(\[]?(?:(?P<unit>{_UNIT})|utc|local|gmt)[)\]]?)?",
    re.I,
)
"""Titles of points in time. ``runtime`` and ``time to`` something are durations."""
_NUMBER = re.compile(r"(\d{1,20}(?:[.,]\d{1,9})?)\s?(?:s|sec|ms|min|h)?")
_CLOCK = re.compile(r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2}(?:[.,]\d{1,9})?)")
_EPOCH = 1e8
"""Seconds, three years: a larger number is a date since 1970, not the duration of a run."""
_DAY = 86400.0
_LEAST = 3
"""Fewest rows of a series."""
_MANY = 8
"""Rows in rising order that are not due to chance."""
_EVEN = (0.5, 1.5)
"""Bounds of the time between two samples, as factors of the median: a late sample makes the next step short."""
_SAMPLED = 10.0
"""Seconds: rows with time stamps this close are samples. Runs take longer; samples may, too."""

Spread = Enum("Spread", ["RUNS", "SAMPLES", "UNCLEAR"])
"""The meaning of rows by their times: separate runs, samples of one run, or unclear."""


class _Moment(NamedTuple):
    seconds: float
    is_stamp: bool
    """Whether it is a time of day or a date, not a time since the start of the run."""
    wraps: bool = False
    """Whether it restarts at midnight."""


def is_clock(title: str) -> bool:
    """Return whether a column with this title contains times."""
    return _TITLE.fullmatch(plain(title)) is not None


def spread(title: str, series: Sequence[Sequence[str]]) -> Spread:
    """Return the meaning of rows with the times ``series`` below ``title``, one series per name of rows."""
    kinds = {_spread(title, cells) for cells in series if len(cells) > 1}
    if not kinds or Spread.RUNS in kinds:
        return Spread.RUNS
    return Spread.UNCLEAR if Spread.UNCLEAR in kinds else Spread.SAMPLES


def _spread(title: str, cells: Sequence[str]) -> Spread:
    read = (_moment(title, text) for text in cells)
    moments = [moment for moment in read if moment is not None]
    if len(cells) < _LEAST or len(moments) < len(cells):
        return Spread.RUNS
    steps = list(starmap(_step, pairwise(moments)))
    usual = median(steps)
    if min(steps) <= 0 or usual >= _DAY:
        return Spread.RUNS
    least, most = (factor * usual for factor in _EVEN)
    is_even = least <= min(steps) and max(steps) <= most
    first = moments[0]
    if first.is_stamp and first.seconds > usual:
        if usual <= _SAMPLED:
            return Spread.SAMPLES if is_even else Spread.UNCLEAR
        return Spread.UNCLEAR if is_even else Spread.RUNS
    # For seconds since the start of the run. Durations of runs may also rise by chance, but are similar.
    is_long = moments[-1].seconds >= 2 * moments[0].seconds or len(moments) >= _MANY
    if not is_long:
        return Spread.RUNS
    return Spread.SAMPLES if is_even else Spread.UNCLEAR


def _step(first: _Moment, other: _Moment) -> float:
    step = other.seconds - first.seconds
    if step < -_DAY / 2 and other.wraps:
        return step + _DAY
    return step


def _moment(title: str, text: str) -> _Moment | None:
    """Return the time in a cell; None without one."""
    text = plain(text)
    number = _NUMBER.fullmatch(text)
    if number is not None:
        # A number in the unit of the title; without one, in the unit in which it can be a date.
        number_ = float(number[1].replace(",", "."))
        match = _TITLE.fullmatch(plain(title))
        if match is not None and match["unit"]:
            scale = _UNITS[match["unit"].lower()] / 1e9
        else:
            scale = next(
                (1.0 / size for size in (1e9, 1e6, 1e3) if number_ / size >= _EPOCH),
                1.0,
            )
        seconds = number_ * scale
        return _Moment(seconds, is_stamp=seconds >= _EPOCH)
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        # `23:59:58`; `10:30` is a time of day. `0:01` after `0:00` counts from the start either way.
        first, second, last = (
            int(clock[1] or 0),
            int(clock[2]),
            float(clock[3].replace(",", ".")),
        )
        whole = 3600.0 * first + 60.0 * second + last
        return _Moment(whole if clock[1] else 60.0 * whole, is_stamp=True, wraps=True)
    try:
        stamp = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None
    if stamp.tzinfo is None:
        stamp = stamp.replace(tzinfo=UTC)
    return _Moment(stamp.timestamp(), is_stamp=True)
