"""Result tables as people paste them: which lines are one, how it lies, and what its numbers are.

A table has a line of titles that name its measures (``table_rows``), a measure in each row (``table_metrics``), or one
measure in its corner or its title (here). A number is read only where its own title names its measure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from iodelta.ingest import (
    table_data,
    table_ends,
    table_grids,
    table_samples,
    table_spaces,
    table_summaries,
)
from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run
from iodelta.ingest.table_cells import cell, decimal_comma, plain
from iodelta.ingest.table_clock import Spread
from iodelta.ingest.table_directions import directed, unknown
from iodelta.ingest.table_grids import LONGEST, RULE, SOME, Grid
from iodelta.ingest.table_headings import (
    COMPARES,
    Heading,
    column,
    heading,
    is_statistic,
    names_percentiles,
    of_names,
    several,
)
from iodelta.ingest.table_levels import Row, between, foreign_sections, of_section
from iodelta.ingest.table_metrics import is_doubled, metric_rows, unread
from iodelta.ingest.table_rows import row
from iodelta.ingest.table_titles import is_certain
from iodelta.ingest.wording import clean
from iodelta.plural import plural
from iodelta.trial import Direction, Place

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
)
_DIGIT = re.compile(r"\d")
_TITLE = 100
_BACK = 6
"""Lines above a table among which its title is looked for."""
_NEAR = 4
"""Lines above the titles in which a measure is named, if not there or below."""
_RANK = re.compile(r"\d{1,3}(?:[.,]\d{1,6})?\s?%")
_EMPTY_CELLS = re.compile(r"(?:\s*[,;|]){2,}$")
_LEAST_LOST = 3
"""Lines of a paragraph that end in numbers and may be a table; one is enough next to what was read of the paragraph."""
_OF_ANOTHER = (
    "not read, because a title must name one measure and its unit once, without words that change the measure; "
    "a name of a variant is understood if every measure has a column for each of several variants"
)

_BETWEEN = "not read, because names of other measures stand between its rows"

Found = Run | Refusal


def hinted(text: str) -> bool:
    """Whether a measure may be named in ``text``."""
    lowered = text.lower()
    return any(word in lowered for word in _HINTS)


def tables(
    lines: Sequence[Line], used: bytearray, file: str, *, ended: bool = True
) -> list[list[Found]]:
    """The rows of every result table among ``lines``, table by table; the indexes are marked in ``used``.

    ``ended``: the last line ends, so it was not cut.
    """
    groups: list[list[Found]] = []
    lines = [
        line._replace(text="", tabbed="") if taken else line
        for line, taken in zip(lines, used, strict=True)
    ]
    hints = [hinted(line.text[:LONGEST]) for line in lines]
    digits = [_DIGIT.search(line.text) is not None for line in lines]
    torn = None if ended else table_ends.last_with_text(lines)
    index = 0
    while index < len(lines):
        if (
            used[index]
            or not digits_below(digits, index)
            or not _begins(lines[index].text, hints, index)
        ):
            index += 1
            continue
        table = _Table(lines, used, index, file, torn)
        runs, last = table.read()
        if runs:
            if torn is not None:
                runs, last = table_ends.torn(runs, lines, last, torn, file)
            groups.append(runs)
            for at in range(index, last + 1):
                used[at] = 1
        index = max(last, index) + 1
    return groups


def lost(lines: Sequence[Line], used: Sequence[int], file: str) -> list[Refusal]:
    """A refusal for each paragraph that no reader took, of lines that end in numbers and name a measure."""
    refusals: list[Refusal] = []
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and not used[end] and lines[end].text.strip():
            end += 1
        rows = [
            line
            for line in lines[at:end]
            if table_spaces.ends_in_number(line.text[:LONGEST])
        ]
        is_rest = (at > 0 and used[at - 1]) or (end < len(lines) and used[end])
        if len(rows) >= (1 if is_rest else _LEAST_LOST) and any(
            table_data.names_number(line.text[:LONGEST]) for line in rows
        ):
            words = "lines that name a measure and end in numbers, but do not form a table with clear columns: not read"
            place = Place(file, rows[0].number)
            refusals.append(
                Refusal(place, f"{words}; put a comma, tab or | between their columns")
            )
        at = end + 1
    return refusals


def first_hint(lines: Sequence[Line]) -> Line | None:
    """The first line that may name a measure and has digits, or some right below it; None without one."""
    digits = [_DIGIT.search(line.text[:LONGEST]) is not None for line in lines]
    named = (
        at
        for at, line in enumerate(lines)
        if hinted(line.text[:LONGEST]) and any(digits[at : at + _NEAR])
    )
    return next((lines[at] for at in named), None)


def digits_below(digits: Sequence[bool], index: int) -> bool:
    """Whether a line near below ``index`` has a digit."""
    return any(digits[index : index + SOME])


def _begins(text: str, hints: Sequence[bool], index: int) -> bool:
    """Whether a table may begin here: a measure is named in the titles, or near them where columns are marked."""
    if not text.strip() or len(text) >= LONGEST or RULE.fullmatch(text.strip()):
        return False
    return hints[index] or (
        _is_marked(text) and any(hints[max(0, index - _NEAR) : index + SOME])
    )


def _is_marked(text: str) -> bool:
    """Whether something may set columns apart: a mark between them, wide gaps, or a single space."""
    barred = any(text.count(mark) > 1 for mark in "|&│")
    return (
        barred
        or any(mark in text for mark in ("  ", ",", ";"))
        or text.strip().count(" ") == 1
    )


def _numbers_of(
    measure: Heading, titles: Sequence[str], cells: Sequence[str]
) -> Iterator[tuple[str, str, Heading]]:
    """The title, the text and the heading of every number of ``measure`` in a row, whose name comes first."""
    for name, text in zip(titles[1:], cells[1:], strict=False):
        own = of_names(measure, cells[0], name)
        if (
            own.column is not None
            and cell(text) is not None
            and not COMPARES.search(name)
        ):
            yield name, text, own


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
        self._used = used
        self._index = index
        self._file = file
        self._torn = torn
        """Index of the file's last line, where it has no end."""
        self._doubted = ""
        """Why the table is not read."""

    def read(self) -> tuple[list[Found], int]:
        """Its runs and the index of its last line; nothing and its own line when it is not a table."""
        for split in (table_grids.barred, table_grids.separated):
            grid = self._whole(split)
            if grid is not None:
                return self._with_misfits(grid)
        return self._spaced()

    def _whole(
        self, split: Callable[[Sequence[Line], int, int], Grid | None]
    ) -> Grid | None:
        """The table by ``split``, if its first rows hold results: it is looked at to its end only then."""
        first = split(self._lines, self._index, SOME)
        if first is None or not self._meaning(first):
            return None
        return split(self._lines, self._index, len(self._lines))

    def _with_misfits(self, grid: Grid) -> tuple[list[Found], int]:
        items: list[Found] = [*self._meaning(grid), *self._unread(grid)]
        for at in grid.misfits:
            words = f"a row of a table with more or fewer cells than its {len(grid.titles)} titles: not read"
            if at == self._torn:
                words = f"the file ends within this row of a table of {len(grid.titles)} columns: it is cut; not read"
            items.append(Refusal(self._place(at), words))
        last = max(grid.rows[-1][0], *grid.misfits, 0)
        strays = table_grids.strays(grid, self._lines, last)
        return items + self._strays(strays), max(last, *strays, 0)

    def _strays(self, rows: Sequence[int]) -> list[Refusal]:
        if not rows:
            return []
        words = f"{plural(len(rows), 'row')} like those of the table above, after lines that end it: not read"
        return [
            Refusal(
                self._place(rows[0]),
                f"{words}; remove what stands between, or repeat the titles",
            )
        ]

    def _spaced(self) -> tuple[list[Found], int]:
        """A table whose columns only spaces set apart: what all ways to split it that fit have in common."""
        if not any(
            self._sound(grid)
            for grid in table_spaces.splits(self._lines, self._index, SOME)
        ):
            return self._unsplit()
        grids = list(table_spaces.splits(self._lines, self._index, len(self._lines)))
        sound = [grid for grid in grids if self._sound(grid)]
        longest = max((len(grid.rows) for grid in sound), default=0)
        sound = [grid for grid in sound if len(grid.rows) == longest]
        if len({_numbers(self._meaning(grid)) for grid in sound}) != 1:
            return self._unsplit()
        grid, last = table_spaces.continued(sound[0], self._lines)
        end = last + 1
        while end < len(self._lines) and table_spaces.ends_in_number(
            self._lines[end].text
        ):
            end += 1
        misfits = range(last + 1, end)
        if len(misfits) > len(grid.rows):
            words = "a table whose rows do not fit the columns of its heading: not read; put a tab, comma or | between"
            return [Refusal(self._place(self._index), f"{words} its columns")], end - 1
        words = "it does not fit the columns of the table above it: not read"
        unfit = [Refusal(self._place(at), words) for at in misfits]
        strays = table_spaces.strays(grid, self._lines, end - 1)
        items: list[Found] = [
            *self._meaning(grid),
            *self._unread(grid),
            *unfit,
            *self._strays(strays),
        ]
        return items, max(end - 1, *strays, 0)

    def _unread(self, grid: Grid) -> list[Refusal]:
        """The titles that name a measure, and something that makes it another's, or may."""
        by_row = metric_rows(grid, self._places(grid), "")
        titles = (
            unread(grid)
            if by_row
            else [h.title for h in table_data.headings(grid) if h.refused]
        )
        named = _quoted(
            title for title in titles if not COMPARES.search(_RANK.sub("", title))
        )
        refusals = (
            [Refusal(self._place(grid.first), f"{named}: {_OF_ANOTHER}")]
            if named
            else []
        )
        summed = (
            {} if by_row else table_summaries.summaries(grid, table_data.headings(grid))
        )
        if summed:
            words = (
                f"{_quoted(summed.values())}: rows that summarise others are not read"
            )
            refusals.append(Refusal(self._place(next(iter(summed))), words))
        for index, own in unknown(grid).items():
            words = f"{clean(own.title)}: {clean(own.text)[:_TITLE]!r} is not a known direction: its row is not read"
            refusals.append(Refusal(self._place(index), words))
        return refusals

    def _sound(self, grid: Grid) -> bool:
        """Whether every cell of a measure holds one number, or says that there is none."""
        runs = self._meaning(grid)
        return bool(runs) and not any(_found(run, "read.cell") for run in runs)

    def _unsplit(self) -> tuple[list[Found], int]:
        """A heading of several measures that cannot be told apart is refused; anything else is not a table."""
        if self._doubted:
            return self._refused_title()
        names = table_data.unsplit_heading(self._lines, self._index)
        if not names:
            return [], self._index
        words = (
            f"a table whose heading names {names}, and whose columns are not clearly separated by spaces: not read; "
            "put a tab, comma or | between its columns"
        )
        last = self._index
        while last + 1 < len(self._lines) and table_data.is_row(
            self._lines[last + 1].text
        ):
            last += 1
        return [Refusal(self._place(self._index), words)], last

    def _refused_title(self) -> tuple[list[Found], int]:
        """A table below a title that may be of something else, to its next blank line."""
        last = self._index
        while last + 1 < len(self._lines) and self._lines[last + 1].text.strip():
            last += 1
        return [Refusal(self._place(self._index), self._doubted)], last

    def _meaning(self, grid: Grid) -> list[Run]:
        title = self._title(grid.first)
        grid = table_summaries.without_index(directed(grid))
        if not grid.mark and table_data.ends_in_number(grid) and self._continues():
            return []  # a row of something else
        runs = metric_rows(grid, self._places(grid), title)
        if not runs and not table_data.is_data(grid):
            runs = self._pivot(grid, title) or self._rows(grid, title)
        if not runs and is_doubled(grid):
            self._doubted = "a table that names a measure twice without saying how the two differ: not read"
        return [_without_idle(run) for run in runs]

    def _rows(self, grid: Grid, title: str) -> list[Run]:
        """A table with a line of titles that name measures: a run per row."""
        headings = table_data.headings(grid)
        measures = [h.column for h in headings if h.column is not None]
        if (
            len(measures) == 1
            and measures[0] == headings[0].column
            and _has_bare_percentiles(grid)
        ):
            return []  # the corner is of every number
        foreign = foreign_sections(grid.rows, headings) if measures else []
        if foreign:
            named = _quoted(h.title for h in headings if h.column is not None)
            self._doubted = f"a table of {named}: {_BETWEEN}: {_quoted(foreign)}"
            return []
        summed = table_summaries.summaries(grid, headings)
        if len(grid.rows) > 1 and len(summed) == len(grid.rows):
            self._doubted = f"the rows {_quoted(summed.values())}: not read, because they summarise rows that are not here"
            return []
        names = table_summaries.names(grid, headings)
        rows = [
            each
            for each, name in zip(grid.rows, names, strict=True)
            if each[0] not in summed and not table_summaries.is_derived(name, names)
        ]
        runs = self._in_time(headings, rows, title)
        doubtful = any(_found(run, "read.comma") for run in runs)
        if doubtful or any(run.directions for run in runs):
            return runs
        return []

    def _in_time(
        self, headings: list[Heading], rows: Sequence[Row], title: str
    ) -> list[Run]:
        """The runs of rows: one each, or one of all that are samples by their clock."""
        series = table_samples.series(headings, rows)
        if series is None or series.spread is Spread.RUNS:
            return list(
                chain.from_iterable(self._row(headings, each, title) for each in rows)
            )
        if series.spread is Spread.UNCLEAR:
            self._doubted = (
                f"rows that may be the samples of one run or a run each, by their times in {series.title!r}: not read; "
                "call this column 'run' if each row is a run, or give even seconds since the start if they are samples"
            )
            return []
        runs: list[Run] = []
        others = [h for at, h in enumerate(headings) if at != series.at]
        for group in series.groups:
            samples = [
                self._row(others, table_samples.without(series.at, each), title)
                for each in group
            ]
            runs += [
                table_samples.merged(parts, series.title)
                for parts in zip(*samples, strict=True)
            ]
        return runs

    def _row(self, headings: Sequence[Heading], each: Row, title: str) -> list[Run]:
        index, cells, section = each
        return row(headings, cells, self._place(index), title, section)

    def _pivot(self, grid: Grid, title: str) -> list[Run]:
        """A table of one measure, named in its corner or in the line above: a run per number."""
        corner = column(grid.titles[0]) is not None
        named = grid.titles[0] if corner else self._title(grid.first, nearest=True)
        cells = list(chain.from_iterable(cells[1:] for _, cells, _ in grid.rows))
        commas = decimal_comma(cells)
        measure = heading(named, cells, commas=commas)
        if not commas and table_data.in_doubt(measure, cells, cells, grid.mark):
            measure = table_data.without_marks(measure)
        if measure.column is None or any(
            column(text) or several(text) for text in grid.titles[1:]
        ):
            return []
        if is_statistic(grid.titles[0]) or (
            measure.column.of != "rate" and _has_bare_percentiles(grid)
        ):
            return []
        names = [plain(cells[0]) for _, cells, _ in grid.rows]
        foreign = between(names)
        if foreign:
            self._doubted = (
                f"a table of {clean(named)!r}: {_BETWEEN}: {_quoted(foreign)}"
            )
            return []
        first = Heading(table_spaces.UNNAMED if corner else grid.titles[0], None)
        runs = []
        for index, cells, section in grid.rows:
            if table_summaries.is_derived(plain(cells[0]), names):
                continue
            mine = of_section(measure, section)
            for name, text, own in _numbers_of(mine, grid.titles, cells):
                headings = [first, Heading("column", None), own]
                runs += row(
                    headings, [cells[0], name, text], self._place(index), title, section
                )
        if len(runs) > 1 and not is_certain(named):
            self._doubted = f"the table of {clean(named)!r}: {_OF_ANOTHER}"
            return []
        if len(runs) > 1:
            return runs
        return []

    def _continues(self) -> bool:
        """Whether the line above belongs to the same paragraph and is not its title."""
        above = self._lines[self._index - 1].text.strip() if self._index else ""
        return (
            len(above.split()) > 1
            and not above.endswith(":")
            and not RULE.fullmatch(above)
        )

    def _place(self, index: int) -> Place:
        return Place(self._file, self._lines[index].number)

    def _places(self, grid: Grid) -> dict[int, Place]:
        indexes = [grid.first, *(index for index, _, _ in grid.rows)]
        return {index: self._place(index) for index in indexes}

    def _title(self, first: int, *, nearest: bool = False) -> str:
        """The nearest short line above that is not a sentence and not part of another table; ``nearest``: only a line
        with only blank lines between it and the table."""
        for at in range(first - 1, max(first - 1 - _BACK, -1), -1):
            text = _EMPTY_CELLS.sub(
                "", self._lines[at].text.strip().strip("#*`= ").strip()
            )
            if self._used[at]:
                break
            if not text or RULE.fullmatch(text) or text.startswith("\\"):
                continue
            if len(text) <= _TITLE and not text.endswith((".", ",", ";")):
                return clean(text.rstrip(":"))
            if nearest:
                break
        return ""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(clean(name)[:_TITLE]) for name in dict.fromkeys(names))


def _has_bare_percentiles(grid: Grid) -> bool:
    """Whether the rows or columns may be percentiles whose names say only 50, 99 and 99.9."""
    rows = [cells[0] for _, cells, _ in grid.rows]
    return names_percentiles(grid.titles[0], rows) or names_percentiles(
        "", grid.titles[1:]
    )


def _numbers(runs: Sequence[Run]) -> Hashable:
    """What several ways to split a table must agree in."""
    directions = chain.from_iterable(run.directions for run in runs)
    return tuple((direction.kind, str(direction)) for direction in directions)


def _found(run: Run, rule: str) -> bool:
    return any(finding.rule == rule for finding in run.findings)


def _without_idle(run: Run) -> Run:
    """Without the directions whose rate is given as zero, where another's is not."""
    busy = tuple(d for d in run.directions if not _is_idle(d))
    if not busy:
        return run
    return msgspec.structs.replace(run, directions=busy)


def _is_idle(direction: Direction) -> bool:
    rates = [
        rate.value
        for rate in (direction.iops, direction.bandwidth)
        if not math.isnan(rate.value)
    ]
    return bool(rates) and not any(rates)
