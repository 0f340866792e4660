"""Find result tables in pasted text: which lines are one, and what of them is not read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from iodelta.ingest import table_grids
from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run, RunOrRefusal
from iodelta.ingest.table_cells import is_number
from iodelta.ingest.table_grids import LONGEST, RULE, SOME, Grid
from iodelta.ingest.table_meaning import (
    OF_ANOTHER,
    TITLE,
    Meaning,
    directed,
    has_finding,
    headings,
    metrics,
    quoted,
    summaries,
    unknown_numbers,
)
from iodelta.ingest.table_titles import COMPARES, column
from iodelta.ingest.vocabulary import english
from iodelta.ingest.wording import clean
from iodelta.plural import plural
from iodelta.trial import Finding, Place

_HINTS = (
    "iops",
    "bandwidth",
    "bw",
    "lat",
    "b/s",
    "throughput",
    "p9",
    "percentile",
    "io/s",
    "i/os",
    "iop/s",
    "ops/s",
    "bandbreite",
    "durchsatz",
    "vitesse",
    "velocidad",
)
_DIGIT = re.compile(r"\d")
_NEAR = 4
"""Most lines between the name of a measure and the titles of its table."""
_RANK = re.compile(r"\d{1,3}(?:[.,]\d{1,6})?\s?%")
_NAME = 5
"""Most words of a measure with its number."""
_WORDS = 30
"""Most words of a heading."""
_NAME_WORDS = 4
"""Most words of a row's name."""
_MEASURE_WORD = re.compile(
    r"[(\[]?(?:(?:read|write|trim|total|avg|mean|max|min)[_.])?(?P<iops>[km]?iops)(?:[_.]\w{1,12})?[)\]]?|"
    r"(?:(?:read|write|avg|mean)[_.])?(?P<bw>bw|bandwidth|throughput|[kmg]i?b/s)(?:[_.(\[]\S{1,12})?|"
    r"(?:(?:read|write|avg|mean|p\d+)[_.])?(?P<lat>[sc]?lat(?:ency)?|p\d{2,5}(?:\.\d+)?)(?:[_.(\[]\S{1,20})?",
    re.I,
)
_RESULT = re.compile(
    r"(?<![\w.,:/-])\d[\d.,]{0,20} ?(?:[kKMGT]i?B(?:ytes?)?(?:/s(?:ec)?|ps)(?![\w/])|[kKM]? ?(?:IOPS|iops|IOP/s|IO/s)\b)"
    r"|\b(?:iops|bw|bandwidth|throughput|[cs]?lat(?:ency|encies)?)\b[^\d\n,;]{0,24}[=:] {0,9}\d"
    r"|\b\d{1,2}(?:[.,]\d{1,4})?th ?[=:] ?\[? {0,9}\d|\bmin ?[=:].{1,30}\bmax ?[=:].{1,40}\b(?:avg|mean) ?[=:] ?\d",
    re.I,
)
"""A number with the unit of a rate, a measure with its number, a line of percentiles or of minimum, maximum and mean."""


def hinted(text: str) -> bool:
    """Return whether a measure may be named in ``text``."""
    lowered = text.lower() if text.isascii() else english(text).lower()
    return any(word in lowered for word in _HINTS)


def tables(
    lines: Sequence[Line], used: bytearray, file: str, *, ended: bool = True
) -> list[list[RunOrRefusal]]:
    """Return the rows of every result table among ``lines``, table by table; the indexes are marked in ``used``.

    ``ended``: the last line has an end, so it was not cut.
    """
    groups: list[list[RunOrRefusal]] = []
    # What another reader took is blank here.
    lines = [
        line._replace(text="", tabbed="") if taken else line
        for line, taken in zip(lines, used, strict=True)
    ]
    hints = [hinted(line.text[:LONGEST]) for line in lines]
    digits = [_DIGIT.search(line.text) is not None for line in lines]
    with_text = [at for at, line in enumerate(lines) if line.text.strip()]
    torn = with_text[-1] if with_text and not ended else None
    index = 0
    while index < len(lines):
        is_near = any(digits[index : index + SOME]) and not used[index]
        if not is_near or not _begins(lines[index].text, hints, index):
            index += 1
            continue
        runs, last = _Table(lines, used, index, file, torn).read()
        if runs:
            if torn is not None:
                last = _mark_torn(runs, lines, last, torn, file)
            groups.append(runs)
            titles = {run.table for run in runs if isinstance(run, Run)} - {""}
            for above in range(max(0, index - 6), index):
                if any(title in clean(lines[above].text) for title in titles):
                    used[above] = 1
            used[index : last + 1] = b"\1" * (last + 1 - index)
        index = max(last, index) + 1
    return groups


def _mark_torn(
    items: list[RunOrRefusal], lines: Sequence[Line], last: int, end: int, file: str
) -> int:
    """Add a note or refusal to the ``items`` of a table if its last line may be cut; return the index of that line.

    ``last`` is the index of the table's last line, ``end`` that of the line within which the file ends.
    """
    text, number = lines[end].text, lines[end].number
    # A sentence below a table is not the beginning of a row's name.
    may_begin = len(text.split()) <= _NAME_WORDS
    may_begin = may_begin and not text.rstrip().endswith((".", "!", "?"))
    if last + 1 == end and may_begin:
        words = "the file ends within this line below a table: if it begins a row, that row is cut; not read"
        items.append(Refusal(Place(file, number), words))
        return end
    runs = [at for at, each in enumerate(items) if isinstance(each, Run)]
    cut = any(isinstance(each, Refusal) and each.place.line == number for each in items)
    if last != end or not runs or cut:
        return last
    run = items[runs[-1]]
    assert isinstance(run, Run)
    note = Finding(
        "read.no-end",
        "note",
        f"{run.place.file}:{number}",
        "the last line has no end: the file may be cut, and the last number of this line with it",
        "compare it with the original, or end the line",
    )
    items[runs[-1]] = msgspec.structs.replace(run, findings=(*run.findings, note))
    return last


def lost(lines: Sequence[Line], used: Sequence[int], file: str) -> list[Refusal]:
    """Return one refusal for all lines with numbers of a result that no reader took."""
    unread = []
    for at, line in enumerate(lines):
        if used[at] or not _DIGIT.search(line.text):
            continue
        text = line.text[:LONGEST]
        text = text if text.isascii() else english(text)
        words = text.split()
        # It ends in the name of a measure and its number: ``none lat_us 12``.
        begins = range(max(len(words) - _NAME, 0), len(words) - 1)
        is_named = table_grids.ends_in_number(text) and len(words) <= _WORDS
        names_number = is_named and any(
            column(" ".join(words[first:-1])) for first in begins
        )
        if names_number or _RESULT.search(text):
            unread.append(line)
    if not unread:
        return []
    said = f"{plural(len(unread), 'line')} with numbers of a result not read"
    if len(unread) > 1:
        said += f" ({ranges([line.number for line in unread])})"
    first_line = clean(" ".join(unread[0].text.split()))[:TITLE]
    remedy = (
        "put them into a table with a title, a measure and its unit for every column"
    )
    return [
        Refusal(
            Place(file, unread[0].number),
            f"{said}: {first_line!r}; {remedy}",
            lost=True,
        )
    ]


def ranges(numbers: Sequence[int]) -> str:
    """``lines 251-255, 268``."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number - groups[-1][1] <= 1:
            groups[-1][1] = number
        else:
            groups.append([number, number])
    shown = ["-".join(map(str, dict.fromkeys(ends))) for ends in groups]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"lines {', '.join(shown[:8])}{more}"


def first_hint(lines: Sequence[Line]) -> Line | None:
    """Return the first line that may name a measure, with digits in it or shortly below; None without one."""
    digits = [_DIGIT.search(line.text[:LONGEST]) is not None for line in lines]
    for at, line in enumerate(lines):
        if hinted(line.text[:LONGEST]) and any(digits[at : at + _NEAR]):
            return line
    return None


def _begins(text: str, hints: Sequence[bool], index: int) -> bool:
    """Return whether a table may begin here: the titles name a measure, or have marks between columns and one is near:
    bars, wide gaps, or a single space."""
    if not text.strip() or len(text) >= LONGEST or RULE.fullmatch(text.strip()):
        return False
    if hints[index]:
        return True
    if not any(hints[max(0, index - _NEAR) : index + SOME]):
        return False
    is_barred = any(text.count(mark) > 1 for mark in "|&│")
    is_marked = any(mark in text for mark in ("  ", ",", ";"))
    return is_barred or is_marked or text.strip().count(" ") == 1


class _Table:
    """The table that may begin at one line."""

    def __init__(
        self,
        lines: Sequence[Line],
        used: bytearray,
        index: int,
        file: str,
        torn: int | None,
    ) -> None:
        self._lines = lines
        self._index = index
        self._torn = torn
        """Index of the file's last line if it has no end."""
        self._meaning = Meaning(lines, used, index, file)

    def read(self) -> tuple[list[RunOrRefusal], int]:
        """Return the items of the table and the index of its last line; no items and its first line if it is not a
        table.
        """
        lines, index = self._lines, self._index
        barred = table_grids.marked(lines, index, "|", SOME)
        # The first mark of the others that splits the lines at all.
        ways = (table_grids.marked(lines, index, mark, SOME) for mark in "\t;,")
        for first in (barred, next(filter(None, ways), None)):
            # Its first rows decide whether it contains results and is read to its end.
            if first is None or not self._meaning.runs(first):
                continue
            grid = table_grids.marked(lines, index, first.mark, len(lines))
            if grid is None:
                continue
            words = f"a row of a table with more or fewer cells than its {len(grid.titles)} titles: not read"
            cut = f"the file ends within this row of a table of {len(grid.titles)} columns: it is cut; not read"
            misfits = [
                Refusal(self._meaning.place(at), cut if at == self._torn else words)
                for at in grid.misfits
            ]
            return self._items(grid, misfits, max(grid.rows[-1][0], *grid.misfits, 0))
        # One of the longest ways to split the whole table; None if they give different numbers.
        if not any(
            map(self._sound, table_grids.spaced(self._lines, self._index, SOME))
        ):
            grid = None
        else:
            grids = table_grids.spaced(self._lines, self._index, len(self._lines))
            sound = list(filter(self._sound, grids))
            longest = max((len(grid.rows) for grid in sound), default=0)
            sound = [grid for grid in sound if len(grid.rows) == longest]
            meanings = set()
            for grid in sound:
                runs = self._meaning.runs(grid)
                directions = chain.from_iterable(run.directions for run in runs)
                meanings.add(tuple((d.kind, str(d)) for d in directions))
            grid = sound[0] if len(meanings) == 1 else None
        if grid is None:
            return self._unsplit()
        grid, last = table_grids.continued(grid, lines)
        end = last + 1
        while end < len(lines) and table_grids.ends_in_number(lines[end].text):
            end += 1
        if end - last - 1 > len(grid.rows):
            words = "a table whose rows do not fit the columns of its heading: not read; put a tab, comma or | between its columns"
            return [Refusal(self._meaning.place(index), words)], end - 1
        words = "it does not fit the columns of the table above it: not read"
        unfit = [Refusal(self._meaning.place(at), words) for at in range(last + 1, end)]
        return self._items(grid, unfit, end - 1)

    def _items(
        self, grid: Grid, misfits: Sequence[Refusal], last: int
    ) -> tuple[list[RunOrRefusal], int]:
        """Return the runs of a table and refusals for what of it is not read, and the index of its last line."""
        items: list[RunOrRefusal] = [*self._meaning.runs(grid), *self._unread(grid)]
        items += misfits
        strays = table_grids.strays(grid, self._lines, last)
        if strays:
            words = f"{plural(len(strays), 'row')} like those of the table above, after lines that end it: not read"
            remedy = "remove what stands between, or repeat the titles"
            place = self._meaning.place(strays[0])
            items.append(Refusal(place, f"{words}; {remedy}"))
        return items, max(last, *strays, 0)

    def _unread(self, grid: Grid) -> Iterator[Refusal]:
        """Yield refusals for the parts of a table that are not read."""
        layout = metrics(grid)
        runs = self._meaning.runs(grid)
        if layout is not None and self._meaning.of_metrics(grid, layout, ""):
            titles, noun = layout.unread(), "row"
        else:
            noun = "column"
            meant = headings(grid)
            titles = [h.title for h in meant if h.refused]
            if any(h.column is not None for h in meant):
                names = {text for run in runs for text in run.labels.values()}
                titles += [
                    title
                    for title in unknown_numbers(grid, meant)
                    if clean(title) not in names
                ]
        # Changes of other columns follow from these.
        wanted = [
            title for title in titles if not COMPARES.search(_RANK.sub("", title))
        ]
        if wanted:
            yield Refusal(
                self._meaning.place(grid.first),
                f"{plural(len(wanted), noun)} not read: {quoted(wanted)}; {OF_ANOTHER}",
                lost=True,
            )
        summed = summaries(grid, meant) if noun == "column" else {}
        if summed:
            place = self._meaning.place(next(iter(summed)))
            named = quoted(summed.values())
            yield Refusal(place, f"{named}: rows that summarise others are not read")
        for index, (title, text) in directed(grid)[1].items():
            words = f"{clean(title)}: {clean(text)[:TITLE]!r} is not a known direction: its row is not read"
            yield Refusal(self._meaning.place(index), words)

    def _sound(self, grid: Grid) -> bool:
        """Return whether the table has runs, and every cell of a measure is a number or a gap."""
        runs = self._meaning.runs(grid)
        return bool(runs) and not any(has_finding(run, "read.cell") for run in runs)

    def _unsplit(self) -> tuple[list[RunOrRefusal], int]:
        """Return a refusal for a table in doubt, or with an ambiguous heading of several measures; else no items."""
        lines, last, words = self._lines, self._index, self._meaning.doubted
        if words:
            while last + 1 < len(lines) and lines[last + 1].text.strip():
                last += 1
            return [Refusal(self._meaning.place(self._index), words)], last
        text = lines[last].text.strip()
        titles = text.split()
        below = (line.text for line in lines[last + 1 : last + 4])
        first = next((b for b in below if b.strip() and not RULE.fullmatch(b)), "")
        measures = filter(None, map(_MEASURE_WORD.fullmatch, titles))
        kinds = sorted({str(match.lastgroup) for match in measures})
        if (
            text.endswith((".", ",", ";", ":"))
            or not 2 <= len(titles) <= _WORDS
            or len(kinds) < 2
            or sum(map(is_number, titles)) > 1
            or not _is_row(first)
        ):
            return [], last
        names = {"iops": "IOPS", "bw": "bandwidth", "lat": "latency"}
        named = " and ".join(names[kind] for kind in kinds)
        words = (
            f"a table whose heading names {named}, and whose columns are not clearly separated by spaces: not read; "
            "put a tab, comma or | between its columns"
        )
        while last + 1 < len(lines) and _is_row(lines[last + 1].text):
            last += 1
        return [Refusal(self._meaning.place(self._index), words)], last


def _is_row(text: str) -> bool:
    """Return whether a line may be a row of numbers: at least two, and at least half of its words."""
    words = text.split() if len(text) <= LONGEST else []
    numbers = sum(map(is_number, words))
    return numbers >= 2 and 2 * numbers >= len(words)
