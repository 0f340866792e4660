"""Decide whether a line of a table contains titles or data, and parse the titles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import chain, filterfalse, pairwise, starmap
from operator import lt

from iodelta.ingest.cleaning import Line
from iodelta.ingest.table_cells import (
    decimal_comma,
    doubtful_commas,
    doubtful_points,
    is_missing,
    is_number,
)
from iodelta.ingest.table_columns import is_column, with_point
from iodelta.ingest.table_grids import LONGEST, RULE, Grid
from iodelta.ingest.table_headings import Heading, heading, names_other
from iodelta.ingest.table_titles import certain

_KNOWN = re.compile(
    r"\bp\d{1,3}(?:\.\d{1,6})?(?![\d.a-z])|\d{1,3}(?:\.\d{1,6})?\s?(?:%|th\b)|\b\d{1,6}\s?[km](?:i?b)?\b(?![/\w])"
    r"|\b(?:qd|io_?depth|queue ?depth|depth|(?:num)?(?:jobs?|threads?))\s?[=:]?\s?\d{1,6}\b"
    r"|\b\d{1,5}\s?(?:jobs?|threads?)\b"
    r"|[a-z_][\w.-]{0,60}\d[\w.-]{0,60}|\b1024\b|\b10\^\d|[x×*]\s?1[ ,]?000\b",
    re.I,
)
"""Digits that titles contain: percentiles, block sizes, depths, jobs, and digits within names."""
_AXIS = re.compile(r"v?\d{1,9}(?:\.\d{1,6}){0,4}(?:[-+~][a-z][\w.+~-]{0,40})?", re.I)
_ROUND = re.compile(r"(?:[125]|10|20|50)0*|1[0-6]|[3-9]|24|40|48|60|80|96")
_NAME = 5
"""Most words of a measure with its number."""
_WORDS = 30
"""Most words of a heading."""
_MEASURE_WORD = re.compile(
    r"[(\[]?(?:(?:read|write|trim|total|avg|mean|max|min)[_.])?(?P<iops>[km]?iops)(?:[_.]\w{1,12})?[)\]]?|"
    r"(?:(?:read|write|avg|mean)[_.])?(?P<bw>bw|bandwidth|throughput|[kmg]i?b/s)(?:[_.(\[]\S{1,12})?|"
    r"(?:(?:read|write|avg|mean|p\d+)[_.])?(?P<lat>[sc]?lat(?:ency)?|p\d{2,5}(?:\.\d+)?)(?:[_.(\[]\S{1,20})?",
    re.I,
)


def is_data(grid: Grid) -> bool:
    """Return whether the titles are a row of data: most have digits outside names, sizes and percentiles."""
    titles = [title for title in grid.titles if title]
    numbered = [title for title in titles if has_number(title)]
    if _are_values(grid.titles[1:]):
        return True
    if 2 * len(numbered) <= len(titles):
        return False
    if grid.titles[0] not in numbered and _is_axis(numbered):
        return False
    return not all(_names_version(grid, title) for title in numbered)


def _are_values(titles: Sequence[str]) -> bool:
    """Return whether titles can only be the numbers of a row: all are numbers or changes, and no versions, depths or
    sizes.
    """
    named = list(filter(None, titles))
    numbers = [title for title in named if not _CHANGE.fullmatch(title)]
    if not named or not all(map(is_number, numbers)):
        return False
    return len(numbers) < len(named) or not _is_axis(
        [_SIZE.sub(r"\1", title) for title in numbers]
    )


_CHANGE = re.compile(r"[(]?[~+−-]\s?\d{1,6}(?:[.,]\d{1,6})?\s?%[)]?")
_SIZE = re.compile(r"^(\d{1,6}) ?[kKmM](?:i?B)?$")


def ends_in_number(grid: Grid) -> bool:
    """Return whether the last title is a number of a row of data, not a depth or a version."""
    first, *rest = grid.titles
    last_word = rest[-1].split()[-1].rstrip("%)")
    if not is_number(last_word):
        return False
    names_measure = is_column(first) or names_other(first)
    return names_measure or not _is_axis(rest)


def has_number(title: str) -> bool:
    """Return whether a title has digits of the kind that only data has."""
    return any(letter.isdigit() for letter in _KNOWN.sub(" ", with_point(title)))


def _is_axis(titles: Sequence[str]) -> bool:
    """Return whether numbers may be rising depths, jobs or sizes, or versions."""
    if not all(map(_AXIS.fullmatch, titles)):
        return False
    if all("." in title for title in titles):
        return True
    if not all(map(str.isdigit, titles)):
        return False
    counts = list(map(int, titles))
    rising = all(starmap(lt, pairwise(counts)))
    return rising and all(map(_is_round, counts))


def _is_round(count: int) -> bool:
    """Return whether a person may have chosen a number: a power of two, or a round number."""
    is_power_of_two = count & (count - 1) == 0
    return is_power_of_two or _ROUND.fullmatch(str(count)) is not None


def _names_version(grid: Grid, title: str) -> bool:
    """Return whether plain numbers follow below a title such as ``6.12 IOPS``; below a row of data, units would repeat."""
    if not is_column(title):
        return False
    at = grid.titles.index(title)
    below = filterfalse(is_missing, _below(grid, at))
    return not any(map(_TWO_LETTERS.search, below))


_TWO_LETTERS = re.compile(r"[a-zA-Z]{2}")


def headings(grid: Grid) -> list[Heading]:
    """Return the meaning of the titles, from their words and the commas in the cells below."""
    columns = [_below(grid, at) for at in range(len(grid.titles))]
    commas = any(map(decimal_comma, columns))
    parsed = map(partial(heading, commas=commas), grid.titles, columns)
    headings_ = certain(list(parsed))
    if commas:
        return headings_
    pairs = list(zip(headings_, columns, strict=True))
    numbers = [cells for h, cells in pairs if h.column is not None]
    beside = list(chain.from_iterable(numbers))
    unmarked: list[Heading] = []
    for h, cells in pairs:
        is_doubtful = in_doubt(h, cells, beside, grid.mark)
        unmarked.append(without_marks(h) if is_doubtful else h)
    return unmarked


def _below(grid: Grid, at: int) -> list[str]:
    """Return the cells below a title."""
    return [cells[at] for _, cells, _ in grid.rows if at < len(cells)]


def unknown_numbers(grid: Grid, headings: Sequence[Heading]) -> list[str]:
    """Titles of columns with numbers that are neither of a known measure nor known to be something else: a setting, a
    count, a change, or round numbers, which name their rows."""
    unknown = []
    for at, h in enumerate(headings):
        if not at or h.column is not None or h.refused or not h.title.strip():
            continue
        cells = [text for text in _below(grid, at) if not is_missing(text)]
        numbers = list(filter(is_number, cells))
        if not numbers or 2 * len(numbers) < len(cells):
            continue
        settings = _SETTING if all(map(str.isdigit, numbers)) else _MEASURED_SETTING
        whole = [text for text in numbers if text.isdigit() and _is_round(int(text))]
        is_name = len(whole) == len(numbers) or len(set(numbers)) == 1 < len(numbers)
        names = [
            place
            for place, other in enumerate(headings)
            if other.column is None and place != at
        ]
        distinct = [
            len({tuple(cells[place] for place in places) for _, cells, _ in grid.rows})
            for places in (names, [*names, at])
        ]
        is_name = is_name or distinct[0] < distinct[1]
        if (
            not is_name
            and not settings.search(h.title.replace("_", " "))
            and not names_other(h.title)
        ):
            unknown.append(h.title)
    return unknown


_SETTING = re.compile(
    r"\b(?:q?d|io ?depth|depth|queue\w*|(?:num)?jobs?|threads?|procs?|clients?|cores?|cpus?|numa|nodes?|dis[ck]s?|drives?|devices?"
    r"|kernel|version|release|fio|bs|blocks?|block ?size|size|sizes|seed|date|time|year|day|run|runs|rep\w*|iter\w*|loops?|no|nr"
    r"|id|index|rank|step|groups?|rw ?mix\w*|mix|ratio|pct|percent|sec|secs|seconds?|duration|runtime|elapsed|ramp|port|lba"
    r"|temp\w*|util\w*|samples?|counts?|n|errors?|bytes|ios|total|capacity|\w*bytes|watts?|power|line|commit|build|usr|sys|ctx\w*|faults?)\b"
    r"|[%#Δ]|°|\bnr ?\w+",
    re.I,
)
"""Titles of numbers that say how it was measured, or that are not of I/O."""
_MEASURED_SETTING = re.compile(
    r"\b(?:date|time|secs?|seconds?|duration|runtime|elapsed|ratio|pct|percent|temp\w*|util\w*|watts?|power|usr|sys|cpu|size|capacity"
    r"|version|kernel|release)\b|[%#Δ]|°",
    re.I,
)
"""The same of numbers with decimals, which count nothing."""


def in_doubt(
    h: Heading, cells: Sequence[str], beside: Sequence[str], mark: str
) -> bool:
    """Return whether commas or points in ``cells`` may separate thousands or decimals; ``beside``: all numbers of the
    table.

    If ``;`` separates columns, the author may use decimal commas. Otherwise only points in IOPS are ambiguous: nobody
    measures thousandths of an I/O.
    """
    if h.column is None:
        return False
    if mark == ";":
        return doubtful_commas(cells) or doubtful_points(cells, beside)
    is_plain = h.column.stat == "iops" and h.column.scale == 1
    return is_plain and doubtful_points(cells, beside)


def without_marks(h: Heading) -> Heading:
    """Return a heading whose numbers are not read if they have a comma or point, because its meaning is ambiguous."""
    return h._replace(doubtful=True)


def is_row(text: str) -> bool:
    """Return whether a line may be a row of numbers: at least two, and at least half of its words."""
    if not text.strip() or len(text) > LONGEST:
        return False
    words = text.split()
    numbers = sum(map(is_number, words))
    return numbers >= 2 and 2 * numbers >= len(words)


def names_number(text: str) -> bool:
    """Return whether a line ends in the name of a measure and its number: ``none lat_us 12``."""
    words = text.split()
    if len(words) > _WORDS:
        return False
    begins = range(max(len(words) - _NAME, 0), len(words) - 1)
    return any(is_column(" ".join(words[first:-1])) for first in begins)


def unsplit_heading(lines: Sequence[Line], index: int) -> str:
    """Return the measures in a line of titles that rows of numbers follow; empty for any other line."""
    text = lines[index].text.strip()
    words = text.split()
    is_sentence = text.endswith((".", ",", ";", ":"))
    if is_sentence or not 2 <= len(words) <= _WORDS:
        return ""
    measures = filter(None, map(_MEASURE_WORD.fullmatch, words))
    kinds = sorted({str(match.lastgroup) for match in measures})
    if len(kinds) < 2 or sum(map(is_number, words)) > 1:
        return ""
    if not is_row(_first_below(lines, index)):
        return ""
    names = {"iops": "IOPS", "bw": "bandwidth", "lat": "latency"}
    return " and ".join(names[kind] for kind in kinds)


def _first_below(lines: Sequence[Line], index: int) -> str:
    """Return the first of the three lines below that is neither blank nor a rule; empty without one."""
    for line in lines[index + 1 : index + 4]:
        if line.text.strip() and not RULE.fullmatch(line.text):
            return line.text
    return ""
