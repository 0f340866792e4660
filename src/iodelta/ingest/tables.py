"""Find result tables in pasted text: which lines are one, and how to split them. Their numbers: ``table_meaning``."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain

from iodelta.ingest import (
    table_data,
    table_ends,
    table_grids,
    table_spaces,
    table_summaries,
)
from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run, RunOrRefusal
from iodelta.ingest.table_directions import unknown
from iodelta.ingest.table_grids import LONGEST, RULE, SOME, Grid
from iodelta.ingest.table_headings import COMPARES
from iodelta.ingest.table_meaning import OF_ANOTHER, TITLE, Meaning, has_finding, quoted
from iodelta.ingest.table_metrics import metric_rows, unread
from iodelta.ingest.vocabulary import english
from iodelta.ingest.wording import clean
from iodelta.plural import plural
from iodelta.trial import Place

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
    lines = list(map(_unless_taken, lines, used))
    hints = [hinted(line.text[:LONGEST]) for line in lines]
    digits = [_DIGIT.search(line.text) is not None for line in lines]
    torn = None if ended else table_ends.last_with_text(lines)
    index = 0
    while index < len(lines):
        may_begin = digits_below(digits, index) and not used[index]
        if not may_begin or not _begins(lines[index].text, hints, index):
            index += 1
            continue
        runs, last = _Table(lines, used, index, file, torn).read()
        if runs:
            if torn is not None:
                runs, last = table_ends.torn(runs, lines, last, torn, file)
            groups.append(runs)
            titles = {run.table for run in runs if isinstance(run, Run)} - {""}
            for above in range(max(0, index - 6), index):
                if any(title in clean(lines[above].text) for title in titles):
                    used[above] = 1
            used[index : last + 1] = b"\1" * (last + 1 - index)
        index = max(last, index) + 1
    return groups


def _unless_taken(line: Line, taken: int) -> Line:
    """Return the line; blank if another reader took it."""
    return line._replace(text="", tabbed="") if taken else line


def lost(lines: Sequence[Line], used: Sequence[int], file: str) -> list[Refusal]:
    """Return one refusal for all lines with numbers of a result that no reader took."""
    unread = []
    for at, line in enumerate(lines):
        if used[at] or not _DIGIT.search(line.text):
            continue
        text = line.text[:LONGEST]
        text = text if text.isascii() else english(text)
        names_number = table_spaces.ends_in_number(text) and table_data.names_number(
            text
        )
        if names_number or _RESULT.search(text):
            unread.append(line)
    if not unread:
        return []
    words = f"{plural(len(unread), 'line')} with numbers of a result not read"
    if len(unread) > 1:
        words += f" ({ranges([line.number for line in unread])})"
    first = clean(" ".join(unread[0].text.split()))[:TITLE]
    remedy = (
        "put them into a table with a title, a measure and its unit for every column"
    )
    return [
        Refusal(
            Place(file, unread[0].number), f"{words}: {first!r}; {remedy}", lost=True
        )
    ]


_RESULT = re.compile(
    r"(?<![\w.,:/-])\d[\d.,]{0,20} ?(?:[kKMGT]i?B(?:ytes?)?(?:/s(?:ec)?|ps)(?![\w/])|[kKM]? ?(?:IOPS|iops|IOP/s|IO/s)\b)"
    r"|\b(?:iops|bw|bandwidth|throughput|[cs]?lat(?:ency|encies)?)\b[^\d\n,;]{0,24}[=:] {0,9}\d"
    r"|\b\d{1,2}(?:[.,]\d{1,4})?th ?[=:] ?\[? {0,9}\d|\bmin ?[=:].{1,30}\bmax ?[=:].{1,40}\b(?:avg|mean) ?[=:] ?\d",
    re.I,
)
"""A number with the unit of a rate, a measure with its number, a line of percentiles or of minimum, maximum and mean."""


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


def digits_below(digits: Sequence[bool], index: int) -> bool:
    """Return whether a line near below ``index`` has a digit."""
    return any(digits[index : index + SOME])


def _begins(text: str, hints: Sequence[bool], index: int) -> bool:
    """Return whether a table may begin here: the titles name a measure, or have marks between columns and one is near."""
    if not text.strip() or len(text) >= LONGEST or RULE.fullmatch(text.strip()):
        return False
    if hints[index]:
        return True
    near = hints[max(0, index - _NEAR) : index + SOME]
    return any(near) and _is_marked(text)


def _is_marked(text: str) -> bool:
    """Return whether a line may have columns: a mark between them, wide gaps, or a single space."""
    if any(text.count(mark) > 1 for mark in "|&│"):
        return True
    if any(mark in text for mark in ("  ", ",", ";")):
        return True
    return text.strip().count(" ") == 1


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
        for split in (table_grids.barred, table_grids.separated):
            # The table by `split`; its first rows decide whether it contains results and is read to its end.
            grid: Grid | None
            first = split(self._lines, self._index, SOME)
            if first is None or not self._meaning.runs(first):
                grid = None
            else:
                grid = split(self._lines, self._index, len(self._lines))
            if grid is not None:
                items: list[RunOrRefusal] = [
                    *self._meaning.runs(grid),
                    *self._unread(grid),
                ]
                for at in grid.misfits:
                    words = f"a row of a table with more or fewer cells than its {len(grid.titles)} titles: not read"
                    if at == self._torn:
                        words = f"the file ends within this row of a table of {len(grid.titles)} columns: it is cut; not read"
                    items.append(Refusal(self._meaning.place(at), words))
                last = max(grid.rows[-1][0], *grid.misfits, 0)
                strays = table_grids.strays(grid, self._lines, last)
                return items + self._strays(strays), max(last, *strays, 0)
        return self._spaced()

    def _strays(self, rows: Sequence[int]) -> list[Refusal]:
        if not rows:
            return []
        words = f"{plural(len(rows), 'row')} like those of the table above, after lines that end it: not read"
        remedy = "remove what stands between, or repeat the titles"
        return [Refusal(self._meaning.place(rows[0]), f"{words}; {remedy}")]

    def _spaced(self) -> tuple[list[RunOrRefusal], int]:
        """Return a table with spaces between columns, if all ways to split it that fit agree."""
        begun = table_spaces.splits(self._lines, self._index, SOME)
        if not any(map(self._sound, begun)):
            return self._unsplit()
        # One of the longest ways to split the whole table; None if they give different numbers.
        grid: Grid | None
        grids = table_spaces.splits(self._lines, self._index, len(self._lines))
        sound = list(filter(self._sound, grids))
        longest = max((len(grid.rows) for grid in sound), default=0)
        sound = [grid for grid in sound if len(grid.rows) == longest]
        meanings = {_numbers(self._meaning.runs(grid)) for grid in sound}
        if len(meanings) != 1:
            grid = None
        else:
            grid = sound[0]
        if grid is None:
            return self._unsplit()
        grid, last = table_spaces.continued(grid, self._lines)
        # Indexes of the lines right below the last row that end in numbers too.
        end_ = last + 1
        while end_ < len(self._lines):
            if not table_spaces.ends_in_number(self._lines[end_].text):
                break
            end_ += 1
        misfits = range(last + 1, end_)
        end = misfits.stop
        if len(misfits) > len(grid.rows):
            words = "a table whose rows do not fit the columns of its heading: not read"
            remedy = "put a tab, comma or | between its columns"
            place = self._meaning.place(self._index)
            return [Refusal(place, f"{words}; {remedy}")], end - 1
        words = "it does not fit the columns of the table above it: not read"
        unfit = [Refusal(self._meaning.place(at), words) for at in misfits]
        strays = table_spaces.strays(grid, self._lines, end - 1)
        items: list[RunOrRefusal] = [
            *self._meaning.runs(grid),
            *self._unread(grid),
            *unfit,
            *self._strays(strays),
        ]
        return items, max(end - 1, *strays, 0)

    def _unread(self, grid: Grid) -> list[Refusal]:
        """Refusals for the parts of a table that are not read."""
        by_row = metric_rows(grid, self._meaning.places(grid), "")
        if by_row:
            return [
                *self._named(grid, unread(grid), "row"),
                *self._odd_directions(grid),
            ]
        headings = table_data.headings(grid)
        titles = [h.title for h in headings if h.refused]
        if any(h.column is not None for h in headings):
            names = {
                text for run in self._meaning.runs(grid) for text in run.labels.values()
            }
            titles += [
                title
                for title in table_data.unknown_numbers(grid, headings)
                if clean(title) not in names
            ]
        return [
            *self._named(grid, titles, "column"),
            *self._summaries(table_summaries.summaries(grid, headings)),
            *self._odd_directions(grid),
        ]

    def _named(self, grid: Grid, titles: Sequence[str], noun: str) -> Iterator[Refusal]:
        """Yield a refusal for columns or rows with numbers that are not read; changes of others follow from these."""
        wanted = [
            title for title in titles if not COMPARES.search(_RANK.sub("", title))
        ]
        if wanted:
            place = self._meaning.place(grid.first)
            yield Refusal(
                place,
                f"{plural(len(wanted), noun)} not read: {quoted(wanted)}: {OF_ANOTHER}",
                lost=True,
            )

    def _summaries(self, summed: dict[int, str]) -> Iterator[Refusal]:
        if summed:
            place = self._meaning.place(next(iter(summed)))
            names = quoted(summed.values())
            yield Refusal(place, f"{names}: rows that summarise others are not read")

    def _odd_directions(self, grid: Grid) -> Iterator[Refusal]:
        for index, direction in unknown(grid).items():
            words = f"{clean(direction.title)}: {clean(direction.text)[:TITLE]!r} is not a known direction: its row is not read"
            yield Refusal(self._meaning.place(index), words)

    def _sound(self, grid: Grid) -> bool:
        """Return whether the table has runs, and every cell of a measure is a number or a gap."""
        runs = self._meaning.runs(grid)
        return bool(runs) and not any(has_finding(run, "read.cell") for run in runs)

    def _unsplit(self) -> tuple[list[RunOrRefusal], int]:
        """Return a refusal for a table in doubt, or with an ambiguous heading of several measures; else no items."""
        if self._meaning.doubted:
            # A refusal for a table in doubt, up to the next blank line.
            last_ = self._index
            while last_ + 1 < len(self._lines) and self._lines[last_ + 1].text.strip():
                last_ += 1
            return [
                Refusal(self._meaning.place(self._index), self._meaning.doubted)
            ], last_
        names = table_data.unsplit_heading(self._lines, self._index)
        if not names:
            return [], self._index
        words = (
            f"a table whose heading names {names}, and whose columns are not clearly separated by spaces: not read; "
            "put a tab, comma or | between its columns"
        )
        last = self._index
        while last + 1 < len(self._lines):
            if not table_data.is_row(self._lines[last + 1].text):
                break
            last += 1
        return [Refusal(self._meaning.place(self._index), words)], last


def _numbers(runs: Sequence[Run]) -> Hashable:
    """Return the facts on which several ways to split a table must agree."""
    directions = chain.from_iterable(run.directions for run in runs)
    return tuple((direction.kind, str(direction)) for direction in directions)
