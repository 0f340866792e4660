"""Split a table whose columns a web page or mail has flattened to single spaces.

The number of columns, and if necessary the block size (bandwidth is IOPS times it), shows how to group numbers with
spaces between thousands ("6 793 27 171 0.146").
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import compress, islice, takewhile

from iodelta.ingest.cleaning import Line
from iodelta.ingest.numbers import size
from iodelta.ingest.table_cells import cell, is_number
from iodelta.ingest.table_columns import Column, column, is_column
from iodelta.trial import Kind

_UNIT = r"\((?:[kmg]?i?b/s|[mnuµμ]?s(?:ec)?|iops)\)"
_MEASURE = re.compile(
    rf"(?<!\S)(?:(?:read|write|trim|total|random|seq) )?(?:iops|(?:bw|bandwidth|throughput)(?: {_UNIT})?|"
    rf"(?:(?:avg|mean|average|max|min|p\d{{1,2}}(?:\.\d{{1,4}})?|\d{{1,2}}(?:\.\d{{1,4}})?\s?(?:%|th)) )?"
    rf"(?:[sc]?lat(?:ency)?|percentile)(?: {_UNIT})?|p\d{{1,2}}(?:\.\d{{1,4}})? {_UNIT})",
    re.I,
)
_NUMERIC = re.compile(
    r"[~≈]?\d[\d.,'_\xa0\u202f\u2009]{0,20}(?:[eE][+-]?\d{1,2})?(?:[kKMG]i?B?(?:/s)?)?$"
)
_GROUP = re.compile(r"\d{3}(?:\.\d{1,9})?$")
_BLOCK = re.compile(r"\b(\d{1,4})\s?([kKmM])(?:i?B)?\b")
_NUMBERED = ("jobs", "job", "numjobs", "threads", "qd", "depth", "iodepth")
_WORDS = 40
_SECTION = 4
"""Most words of the line of a section."""
_CELL = re.compile(r"very \w{1,8}|\S{1,20}")
_MOST_GROUPS = 5
"""Groups of three digits in a number: a million GB/s in KiB/s has four."""
_MOST_WAYS = 500
_CLEAR = 0.5
"""Further log ratio of bandwidth to IOPS x block size that rules a grouping out: a factor of exp(0.5) = 1.6."""
_UNSURE = "?"
"""A cell with several possible groupings of its digits."""

Rows = list[tuple[int, list[str], str]]


def flattened(lines: Sequence[Line], first: int) -> tuple[list[str], Rows] | None:
    """Titles and rows (index, cells, section) of the table with its titles at index ``first``; None without a table.

    The last title before the measures names one word of each row. A row without the preceding words has those of the
    row above. A short line between rows is a section.
    """
    head = _head(lines[first].text.strip())
    if head is None:
        return None
    names, measures = head
    columns = [column(text) for text in measures]
    rows: Rows = []
    section, above, known = "", [""] * (len(names) - 1), set[str]()
    for index in range(first + 1, len(lines)):
        text = lines[index].text.strip()
        parts = _words(text)
        taken = _taken_apart(parts, len(columns), known)
        if taken is None:
            following = _words(
                "".join(line.text for line in lines[index + 1 : index + 2])
            )
            stands_above_row = _taken_apart(following, len(columns), known) is not None
            if not stands_above_row or not (
                0 < len(parts) <= _SECTION and not is_number(parts[-1])
            ):
                break
            section = text
            continue
        labels, numbers = taken
        if len(names) == 1:
            labels = [" ".join(labels)]
        elif len(labels) > 1:
            above = _named(labels[:-1], names[:-1])
        known.add(labels[-1])
        # One cell per column: groups of three digits are joined to the number before them.
        block: int | None
        match = _BLOCK.search(" ".join(above))
        if not match:
            block = None
        else:
            block = size(f"{match[1]}{match[2]}")
        if len(numbers) == len(columns):
            grouped = numbers
        else:
            ways = list(islice(_ways(numbers, len(columns)), _MOST_WAYS))
            if not ways:
                grouped = [
                    *numbers[: len(columns) - 1],
                    " ".join(numbers[len(columns) - 1 :]),
                ]
            else:
                strains = [_strain(cells, columns, block) for cells in ways]
                most = min(strains) + _CLEAR
                likely = compress(ways, map(most.__ge__, strains))
                grouped = [_agreed(set(texts)) for texts in zip(*likely, strict=True)]
        rows.append((index, [*above, labels[-1], *grouped], section))
    return ([*names, *measures], rows) if len(rows) >= 2 else None


def _words(text: str) -> list[str]:
    """Split at plain spaces; narrow and non-breaking ones belong to a number."""
    return list(filter(None, re.split(r"[ \t]+", text[:1000].strip())))


def _head(text: str) -> tuple[list[str], list[str]] | None:
    """Names and measures of a line of titles: at least two measures, and only measures after the first."""
    measures = list(_MEASURE.finditer(text[:1000]))
    if len(measures) < 2:
        return None
    words = text[: measures[0].start()].split()
    if not words or any(map(is_column, words)):
        return None
    ends = [match.end() for match in measures]
    begins = [*(match.start() for match in measures[1:]), len(text)]
    if any(text[end:begin].strip() for end, begin in zip(ends, begins, strict=True)):
        return None
    *before, last = words
    return [*_names(before), last], [match[0] for match in measures]


def _names(words: Sequence[str]) -> list[str]:
    """The titles before the last name: a title such as Jobs is one, the words before and after it are others."""
    at = _numbered_title(words)
    if at is None:
        parts = [words]
    else:
        parts = [words[:at], words[at : at + 1], words[at + 1 :]]
    return [" ".join(part) for part in parts if part]


def _numbered_title(words: Sequence[str]) -> int | None:
    """The index of the title of a column of numbers: Jobs, iodepth; None without one."""
    places = (at for at, word in enumerate(words) if word.lower() in _NUMBERED)
    return next(places, None)


def _taken_apart(
    parts: Sequence[str], measures: int, known: set[str]
) -> tuple[list[str], list[str]] | None:
    """The words of a row and its numbers, at least as many as ``measures``; None for another line.

    If a number is missing ("~0", "very high", "-"), the numbers begin after a ``known`` last word.
    """
    if not 1 < len(parts) <= _WORDS:
        return None
    numbers = len(list(takewhile(_NUMERIC.match, reversed(parts))))
    at = len(parts) - numbers
    if at > 0 and numbers >= measures:
        return list(parts[:at]), list(parts[at:])
    for place, word in enumerate(parts[:-1], 1):
        if word not in known:
            continue
        rest = " ".join(parts[place:])
        cells = _CELL.findall(rest)
        is_whole = "".join(cells).replace(" ", "") == rest.replace(" ", "")
        if len(cells) == measures and is_whole:
            return list(parts[:place]), cells
    return None


def _named(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """``words`` assigned to ``names``: a title such as Jobs gets the number, the others the words before and after."""
    numbered = _numbered_title(names)
    number = next((at for at, word in enumerate(words) if word.isdigit()), None)
    if numbered is None or number is None:
        return [" ".join(words), *[""] * (len(names) - 1)]
    before = [words[:number]] if numbered else []
    parts = [*before, words[number : number + 1], words[number + 1 :]]
    shared = list(map(" ".join, parts))
    return (shared + [""] * len(names))[: len(names)]


def _agreed(texts: set[str]) -> str:
    """The text of a cell on which all groupings agree, or ``_UNSURE``."""
    return texts.pop() if len(texts) == 1 else _UNSURE


def _ways(numbers: Sequence[str], cells: int) -> Iterator[list[str]]:
    """Every way to read ``numbers`` as ``cells`` numbers."""
    if not cells and not numbers:
        yield []
    if not 0 < cells <= len(numbers) <= cells * _MOST_GROUPS:
        return
    most = min(len(numbers) - cells + 1, _MOST_GROUPS)
    for taken in range(1, most + 1):
        if taken > 1 and not _joins(numbers[:taken]):
            break
        for rest in _ways(numbers[taken:], cells - 1):
            yield [" ".join(numbers[:taken]), *rest]


def _joins(groups: Sequence[str]) -> bool:
    """Whether the last of ``groups`` of digits may continue the number that the others form."""
    is_group = _GROUP.match(groups[-1]) is not None and groups[-2].isdigit()
    return is_group and len(groups[0]) <= 3


def _strain(
    cells: Sequence[str], columns: Sequence[Column | None], block: int | None
) -> float:
    """The absolute log ratio of bandwidth to IOPS times ``block`` (bytes), summed over the directions; 0 if one of the
    three is missing."""
    if block is None:
        return 0.0
    iops: dict[Kind | None, list[float]] = {}
    bandwidths: list[tuple[Kind | None, float]] = []
    for meaning, value in zip(columns, map(_value, cells), strict=True):
        if meaning is None or not value:
            continue
        if meaning.stat == "iops":
            iops.setdefault(meaning.kind, []).append(value)
        if meaning.stat == "bw" and meaning.scale:
            bandwidths.append((meaning.kind, value * meaning.scale))
    strain = 0.0
    for kind, bandwidth in bandwidths:
        rates = iops.get(kind, [])
        strain += sum(abs(math.log(bandwidth / (rate * block))) for rate in rates)
    return strain


def _value(text: str) -> float:
    """The number in a cell; 0 without one."""
    number = cell(text)
    return 0.0 if number is None else number[0].value
