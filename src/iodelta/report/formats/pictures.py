"""Pictures of a few lines for a terminal: each change with its interval as a bar, a sweep as a row of small bars."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, TYPE_CHECKING

import msgspec
from rich.cells import cell_len
from rich.text import Text

from iodelta.figures import share
from iodelta.plural import plural
from iodelta.report.formats.terminal import INDENT, STYLES, cut
from iodelta.report.stories.story import GLYPHS
from iodelta.study.rows import Row, Shown
from iodelta.study.words import inert, quantity

if TYPE_CHECKING:
    from iodelta.study.comparison import Comparison

BARS = "▁▂▃▄▅▆▇█"
"""Of a row of small bars, the lowest first."""


REACH, LEFT, RIGHT, ZERO, EDGE = "─◄►│┊"
"""Of an interval its line and the ends that run off the picture; no change; the margin."""

NAMED = 40
"""Columns of a name on a narrow terminal."""

MOST = 8
"""Rows of a picture: one screen holds the numbers too."""

LEAST = 4
"""Points of a sweep."""

WIDE = 300.0
"""A sweep whose rates differ by a larger factor is drawn on a logarithmic scale, as on a page, and says so."""


class Change(msgspec.Struct, frozen=True):
    """A comparison as a bar: relative change and interval, None where there is none."""

    name: str
    change: float
    low: float | None
    high: float | None
    word: str


def draws(file: IO[str]) -> bool:
    """Return whether pictures go to ``file``: a terminal that shows more than letters, whose encoding has their
    characters.
    """
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return False
    try:
        "".join((BARS, REACH, LEFT, RIGHT, ZERO, EDGE, *GLYPHS.values())).encode(
            getattr(file, "encoding", None) or "ascii"
        )
    except (UnicodeEncodeError, LookupError):
        return False
    return file.isatty()


def bars(changes: Sequence[Change], margin: float, width: int) -> Iterator[Text]:
    """Yield a line for each change on one scale, its ends and 0 above; nothing for a single one, which its row says."""
    if not 2 <= len(changes) <= MOST:
        return
    names = _cut([change.name for change in changes], max(NAMED, width // 2 - 10))
    before = max(map(cell_len, names))
    room = width - before - 2 * len(INDENT)
    reach = _reach(changes, margin)
    yield Text(f"{INDENT}{'':{before}}{INDENT}{_scale(reach, room)}", style="dim")
    for name, change in zip(names, changes, strict=True):
        line = Text(f"{INDENT}{name}{' ' * (before - cell_len(name))}{INDENT}")
        yield line.append(
            _bar(change, reach, margin, room), style=STYLES.get(change.word, "")
        )


def _cut(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most ``width`` columns: without their ends, or without their beginnings where these are alike."""
    shortened = [cut(name, width) for name in names]
    if len(set(shortened)) == len(set(names)):
        return shortened
    return [cut(name[::-1], width)[::-1] for name in names]


def bars_of(comparison: Comparison, width: int) -> Iterator[Text]:
    """Yield the changes of a comparison. What digits leave open is not an interval, and is not drawn as one."""
    from iodelta.report.stories.comparison import name_of

    several = len({row.metric.partition(".")[0] for row in comparison.compared}) > 1
    changes = []
    for row in comparison.compared:
        if row.change is None:
            continue
        low: float | None = row.change.low
        high: float | None = row.change.high
        ends = (row.change.low, row.change.high)
        if row.basis == "single runs" or not all(map(math.isfinite, ends)):
            low = high = None
        variant = row.variant if len(comparison.variants) > 1 else ""
        name = ", ".join(filter(None, (row.cell, variant, name_of(row, several))))
        changes.append(
            Change(
                name=inert(name),
                change=row.change.value,
                low=low,
                high=high,
                word=row.word,
            )
        )
    drawn = list(bars(changes, comparison.margin, width))
    yield from (Text(), *drawn) if drawn else ()


def _reach(changes: Sequence[Change], margin: float) -> float:
    """Return how far the scale goes either way: all changes, and as much of their intervals as leaves them legible."""
    largest = max(abs(change.change) for change in changes)
    ends = chain.from_iterable((change.low, change.high) for change in changes)
    bounds = [abs(end) for end in ends if end is not None]
    return max(
        1.1 * largest,
        1.5 * margin,
        min(3 * max(largest, margin), 1.05 * max(bounds, default=0.0)),
    )


def _scale(reach: float, room: int) -> str:
    """Numbers above a scale: nothing can lose more than all of it, so that no number is below -100 %."""
    middle = room // 2
    lowest = min(reach, 1.0)
    left = " " * round((1 - lowest / reach) / 2 * (room - 1)) + f"-{share(lowest)}"
    if len(left) >= middle:
        left = ""  # it would touch the 0
    right = f"+{share(reach)}"
    return f"{left:<{middle}}0{right:>{room - middle - 1}}"


def _bar(change: Change, reach: float, margin: float, room: int) -> str:
    def place(value: float) -> int:
        return round((max(-reach, min(reach, value)) / reach + 1) / 2 * (room - 1))

    cells = [" "] * room
    for edge in (-margin, margin):
        cells[place(edge)] = EDGE
    cells[room // 2] = ZERO
    if change.low is not None and change.high is not None:
        first, last = place(change.low), place(change.high)
        cells[first : last + 1] = REACH * (last + 1 - first)
        if change.low < -reach:
            cells[first] = LEFT
        if change.high > reach:
            cells[last] = RIGHT
    cells[place(change.change)] = GLYPHS.get(change.word, GLYPHS["no verdict"])
    return "".join(cells).rstrip()


def sparks_of(shown: Shown, width: int) -> Iterator[Text]:
    """IOPS of the sweeps among runs, as small bars."""
    return sparks(shown.rows, width)


def sparks(rows: Iterable[Row], width: int) -> Iterator[Text]:
    """IOPS over iodepth, or over jobs, of runs that differ in nothing else: a small bar for each, on a scale
    from 0; on a logarithmic one where they are far apart."""
    curves = list(
        chain.from_iterable(_sweeps(rows, axis) for axis in ("iodepth", "jobs"))
    )
    if curves:
        yield Text()
        yield Text("IOPS of each sweep, from 0:", style="dim")
    for name, curve in curves[:MOST]:
        wide = min(curve) > 0 and max(curve) > WIDE * min(curve)
        places = [math.log(rate / min(curve)) for rate in curve] if wide else curve
        drawn = "".join(
            BARS[min(int(place / max(places) * len(BARS)), len(BARS) - 1)]
            for place in places
        )
        scale = ", logarithmic" if wide else ""
        text = (
            f"{quantity(curve[0], 'IOPS')} to {quantity(curve[-1], 'IOPS')} IOPS{scale}"
        )
        room = width - cell_len(drawn) - len(text) - 3 * len(INDENT)
        yield Text(f"{INDENT}{drawn}{INDENT}{text}{INDENT}{cut(name, max(room, 12))}")
    if len(curves) > MOST:
        more = plural(len(curves) - MOST, "more sweep")
        yield Text(
            f"{INDENT}{more}; `iodelta show ... -o page.html` draws all", style="dim"
        )


def _sweeps(rows: Iterable[Row], axis: str) -> Iterator[tuple[str, list[float]]]:
    """Yield the rates of each sweep in the order of the axis, named by what its runs have in common."""
    other = "jobs" if axis == "iodepth" else "iodepth"
    groups: dict[tuple[object, ...], list[tuple[int, float]]] = {}
    for row in rows:
        place = getattr(row, axis)
        rate = row.iops.value if row.iops else math.nan
        if place and math.isfinite(rate):
            directory = row.name.rpartition("/")[0]
            work = (row.rw, row.bs, row.kind, row.ioengine)
            key = (directory, *work, getattr(row, other))
            groups.setdefault(key, []).append((place, rate))
    for (folder, rw, bs, kind, _, held), points in groups.items():
        points.sort()
        if not _is_sweep(points):
            continue
        parts = (
            rw,
            quantity_of(bs),
            kind if rw != kind else "",
            f"{other} {held}" if held and held != 1 else "",
        )
        what = " ".join(map(str, filter(None, parts)))
        name = f"{axis} {points[0][0]} to {points[-1][0]}: {what}"
        rates = [rate for _, rate in points]
        yield inert(f"{name}, {folder}" if folder else name), rates


def _is_sweep(points: Sequence[tuple[int, float]]) -> bool:
    """Return whether places in order have one rate each, enough of them, and not all of them zero."""
    places = {place for place, _ in points}
    fastest = max(rate for _, rate in points)
    return len(places) == len(points) >= LEAST and fastest > 0


def quantity_of(size: object) -> str:
    """Return a block size as fio writes it."""
    if isinstance(size, int) and size % 1024 == 0:
        return f"{size // 1024}k"
    return str(size or "")
