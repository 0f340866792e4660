"""A table whose columns a web page or mail has flattened to single spaces, taken apart again.

Numbers with spaces for thousands ("6 793 27 171 0.146") are told apart by the number of columns and, where that is
not enough, by the block size: bandwidth is IOPS times it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from iodelta.ingest.cleaning import Line
from iodelta.ingest.numbers import size
from iodelta.ingest.table_cells import cell
from iodelta.ingest.table_headings import Column, column

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
"""Words of a section's line, at most."""
_CELL = re.compile(r"very \w{1,8}|\S{1,20}")
_MOST_GROUPS = 5
"""Groups of three digits in a number: a million GB/s in KiB/s has four."""
_MOST_WAYS = 500
_CLEAR = 0.5
"""How much farther from IOPS times the block size a way must be to be ruled out: bandwidth is 1.6 times too high."""
_UNSURE = "?"
"""A cell whose digits may be grouped in several ways."""

Rows = list[tuple[int, list[str], str]]


def flattened(lines: Sequence[Line], first: int) -> tuple[list[str], Rows] | None:
    """Titles and rows (index, cells, section) of the table with its titles at index ``first``; None if it is none.

    The last title before the measures names one word of each row; a row without the words before it means those of
    the row above; a short line between rows is a section.
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
            following = _words(lines[index + 1].text) if index + 1 < len(lines) else []
            if (
                not 0 < len(parts) <= _SECTION
                or cell(parts[-1]) is not None
                or _taken_apart(following, len(columns), known) is None
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
        rows.append(
            (
                index,
                [*above, labels[-1], *_grouped(numbers, columns, _block(above))],
                section,
            )
        )
    if len(rows) >= 2:
        return [*names, *measures], rows
    return None


def _words(text: str) -> list[str]:
    """Split at plain spaces: a narrow or fixed one belongs to its number."""
    return [word for word in re.split(r"[ \t]+", text[:1000].strip()) if word]


def _head(text: str) -> tuple[list[str], list[str]] | None:
    """Names and measures of a line of titles: at least two measures, and nothing but measures after the first."""
    measures = list(_MEASURE.finditer(text[:1000]))
    if len(measures) < 2 or not text[: measures[0].start()].strip():
        return None
    between = [text[a.end() : b.start()] for a, b in pairwise(measures)] + [
        text[measures[-1].end() :]
    ]
    words = text[: measures[0].start()].split()
    if any(part.strip() for part in between) or any(
        column(word) is not None for word in words
    ):
        return None
    numbered = next(
        (at for at, word in enumerate(words[:-1]) if word.lower() in _NUMBERED), None
    )
    if numbered is None:
        names = [" ".join(words[:-1])] if len(words) > 1 else []
    else:
        parts = (
            words[:numbered],
            words[numbered : numbered + 1],
            words[numbered + 1 : -1],
        )
        names = [" ".join(part) for part in parts if part]
    return [*names, words[-1]], [match[0] for match in measures]


def _taken_apart(
    parts: Sequence[str], measures: int, known: set[str]
) -> tuple[list[str], list[str]] | None:
    """The words of a row and its numbers, as many as there are ``measures`` or more; None when it is no row.

    Where a number is missing ("~0", "very high", "-"), the row is told by its last word being ``known``.
    """
    if not 1 < len(parts) <= _WORDS:
        return None
    at = len(parts)
    while at > 0 and _NUMERIC.match(parts[at - 1]):
        at -= 1
    if at > 0 and len(parts) - at >= measures:
        return list(parts[:at]), list(parts[at:])
    for place, word in enumerate(parts[:-1]):
        rest = " ".join(parts[place + 1 :])
        cells = _CELL.findall(rest)
        if (
            word in known
            and len(cells) == measures
            and "".join(cells).replace(" ", "") == rest.replace(" ", "")
        ):
            return list(parts[: place + 1]), cells
    return None


def _named(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """``words`` shared out to ``names``: a title such as Jobs takes the number, the others what is before and after."""
    numbered = next(
        (at for at, name in enumerate(names) if name.lower() in _NUMBERED), None
    )
    number = next((at for at, word in enumerate(words) if word.isdigit()), None)
    if numbered is None or number is None:
        return [" ".join(words), *[""] * (len(names) - 1)]
    parts = ([words[:number]] if numbered else []) + [
        words[number : number + 1],
        words[number + 1 :],
    ]
    shared = [" ".join(part) for part in parts]
    return (shared + [""] * len(names))[: len(names)]


def _grouped(
    numbers: list[str], columns: Sequence[Column | None], block: int | None
) -> list[str]:
    """As many cells as ``columns``: groups of three digits are joined to the number before them."""
    if len(numbers) == len(columns):
        return numbers
    ways = list(islice(_ways(numbers, len(columns)), _MOST_WAYS))
    if not ways:
        return [*numbers[: len(columns) - 1], " ".join(numbers[len(columns) - 1 :])]
    strains = [_strain(cells, columns, block) for cells in ways]
    least = min(strains)
    likely = [
        cells
        for cells, strain in zip(ways, strains, strict=True)
        if strain <= least + _CLEAR
    ]
    return [
        texts[0] if len(set(texts)) == 1 else _UNSURE
        for texts in zip(*likely, strict=True)
    ]


def _ways(numbers: Sequence[str], cells: int) -> Iterator[list[str]]:
    """Every way to read ``numbers`` as ``cells`` numbers."""
    if not cells or len(numbers) < cells:
        if not cells and not numbers:
            yield []
        return
    if len(numbers) > cells * _MOST_GROUPS:
        return
    for taken in range(1, min(len(numbers) - cells + 2, _MOST_GROUPS + 1)):
        if taken > 1 and not (
            _GROUP.match(numbers[taken - 1]) and numbers[taken - 2].isdigit()
        ):
            break
        if taken > 1 and len(numbers[0]) > 3:
            break
        for rest in _ways(numbers[taken:], cells - 1):
            yield [" ".join(numbers[:taken]), *rest]


def _strain(
    cells: Sequence[str], columns: Sequence[Column | None], block: int | None
) -> float:
    """How far bandwidth is from IOPS times the block size, summed over the directions; 0 where nothing tells."""
    strain = 0.0
    if block is None:
        return strain
    values = [
        found[0].value if (found := cell(text)) is not None else 0.0 for text in cells
    ]
    numbers = [
        (meaning, value)
        for meaning, value in zip(columns, values, strict=True)
        if meaning is not None and value
    ]
    for meaning, bandwidth in numbers:
        if meaning.stat != "bw" or not meaning.scale:
            continue
        rates = [
            iops
            for other, iops in numbers
            if other.stat == "iops" and other.kind == meaning.kind
        ]
        strain += sum(
            abs(math.log(bandwidth * meaning.scale / (iops * block))) for iops in rates
        )
    return strain


def _block(words: Sequence[str]) -> int | None:
    match = _BLOCK.search(" ".join(words))
    if not match:
        return None
    return size(f"{match[1]}{match[2]}")
