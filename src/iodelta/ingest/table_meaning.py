"""The meaning of the numbers of a split table: its runs, or the reason for doubt.

A table has a line of titles that name its measures (``table_rows``), a measure in each row (``table_metrics``), or one
measure in its corner or its title (here). A number is read only where its own title names its measure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from iodelta.ingest import (
    other_tools,
    table_data,
    table_samples,
    table_spaces,
    table_summaries,
)
from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Run
from iodelta.ingest.numbers import Printed, half_unit
from iodelta.ingest.table_cells import cell, decimal_comma, plain
from iodelta.ingest.table_clock import Spread
from iodelta.ingest.table_columns import column
from iodelta.ingest.table_directions import directed
from iodelta.ingest.table_grids import RULE, Grid
from iodelta.ingest.table_headings import (
    COMPARES,
    Heading,
    heading,
    is_statistic,
    names_percentiles,
    of_names,
    several,
)
from iodelta.ingest.table_levels import Row, between, foreign_sections, of_section
from iodelta.ingest.table_metrics import is_doubled, is_headless, metric_rows
from iodelta.ingest.table_rows import row
from iodelta.ingest.table_titles import is_certain
from iodelta.ingest.wording import clean
from iodelta.trial import Direction, Finding, Place

TITLE = 100
"""Most characters of a title, and of a quoted name."""
_BACK = 6
"""Number of lines above a table in which its title is searched."""
_EMPTY_CELLS = re.compile(r"(?:\s*[,;|]){2,}$")
OF_ANOTHER = (
    "a title must name one measure and its unit once, without words that change the measure; "
    "a name of a variant is understood if every measure has a column for each of several variants"
)
_BETWEEN = "not read, because names of other measures stand between its rows"
_DOUBLED = (
    "a table that names a measure twice without saying how the two differ: not read"
)


_CHANGES = re.compile(
    r"^\W*(?:%|diff\w*|change|delta|Δ|gain|speed-?up|slow-?down|improvement|improved|regression|loss|drop|vs\b.*|unterschied"
    r"|abweichung|änderung|veränderung|изменение|разница|écart|diferencia|变化|差异)\W*(?:in )?\W*%?\W*$",
    re.I,
)
"""Titles of columns with the change between two numbers of the row, in percent."""
_FIRST = re.compile(
    r"\b(?:old|base\w*|before|unpatched|vanilla|stock|orig\w*|alt|vorher|avant|antes|до|前)\b",
    re.I,
)
_WORDED = re.compile(r"gain|speed|slow|improve|regression|loss|drop", re.I)
_PERCENT = re.compile(r"[(]?~?([+-]?)\s?(\d{1,6}(?:\.\d{1,6})?)\s?%[)]?")


def _change(first: Printed, second: Printed) -> tuple[float, float]:
    """Bounds of the change from one number to another, in percent."""
    half = (first.high - first.low) / 2, (second.high - second.low) / 2
    low = 100 * ((second.value - half[1]) / (first.value + half[0]) - 1)
    return low, 100 * ((second.value + half[1]) / max(first.value - half[0], 1e-9) - 1)


class Meaning:
    """The meaning of tables with titles at ``index``, for every way to split them."""

    def __init__(
        self, lines: Sequence[Line], used: bytearray, index: int, file: str
    ) -> None:
        self._lines = lines
        self._used = used
        self._index = index
        self._file = file
        self.doubted = ""
        """Why the table is not read."""

    def place(self, index: int) -> Place:
        """Where the line with this index stands."""
        return Place(self._file, self._lines[index].number)

    def places(self, grid: Grid) -> dict[int, Place]:
        """Return the places of titles and rows, by the index of their line."""
        indexes = [grid.first, *(index for index, _, _ in grid.rows)]
        return {index: self.place(index) for index in indexes}

    def runs(self, grid: Grid) -> list[Run]:
        """The runs of a table; empty for other text, or for a table in doubt."""
        title = self._title(grid.first)
        grid = table_summaries.without_index(directed(grid))
        if not grid.mark and table_data.ends_in_number(grid) and self._continues():
            return []  # a line within a paragraph
        foreign = other_tools.foreign_measure(grid.titles, title)
        if foreign:
            self.doubted = f"a table with {clean(foreign)!r}: not read, because it is not known to measure storage I/O"
            return []
        is_data = table_data.is_data(grid)
        runs: list[Run] = []
        # Only a table with a measure in each row may begin with data; otherwise it is a log whose lines name measures.
        if is_headless(grid) or not is_data:
            runs = metric_rows(grid, self.places(grid), title)
        if not runs and not is_data:
            runs = self._pivot(grid, title) or self._rows(grid, title)
        if not runs and is_doubled(grid):
            self.doubted = _DOUBLED
        contradicted = self._contradicted(grid) if runs else []
        if contradicted:
            runs[0] = msgspec.structs.replace(
                runs[0], findings=(*runs[0].findings, *contradicted)
            )
        return list(map(_without_idle, runs))

    def _contradicted(self, grid: Grid) -> list[Finding]:
        """Return a finding for each row with a change in percent that no two numbers of the row make."""
        findings = []
        changes = [
            at for at, title in enumerate(grid.titles) if at and _CHANGES.search(title)
        ]
        spread = [
            at
            for at, title in enumerate(grid.titles)
            if at and COMPARES.search(title) and at not in changes
        ]
        for index, cells, _ in grid.rows:
            parsed = {
                at: cell(text)
                for at, text in enumerate(cells)
                if at and at not in (*changes, *spread)
            }
            columns = [
                at
                for at, each in parsed.items()
                if each is not None and each[0].value > 0
            ]
            numbers = [
                each
                for at, each in parsed.items()
                if each is not None and at in columns
            ]
            in_order = (
                len(columns) == 2 and _FIRST.search(grid.titles[columns[0]]) is not None
            )
            for at in changes:
                stated = _PERCENT.fullmatch(
                    plain(cells[at]).replace("−", "-").replace(",", ".")
                )
                if stated is None or len(numbers) < 2:
                    continue
                shares = [
                    _change(first[0], second[0])
                    for place, first in enumerate(numbers)
                    for other, second in enumerate(numbers)
                    if place != other
                    and first[1] == second[1]
                    and (place < other or not in_order)
                ]
                half = half_unit(stated[2]) * 1.2
                percent = float(f"{stated[1] if stated[1] == '-' else ''}{stated[2]}")
                # A gain, loss or speed-up is often written without its sign.
                bare = not stated[1] or _WORDED.search(grid.titles[at]) is not None
                fits = any(
                    low - half <= number <= high + half
                    for low, high in shares
                    for number in ((percent, -percent) if bare else (percent,))
                )
                if shares and not fits:
                    likely = _change(numbers[-2][0], numbers[-1][0])
                    pair = f"{numbers[-2][0].value:g} to {numbers[-1][0].value:g}"
                    text = f"{clean(grid.titles[at])}: it says {clean(cells[at])}, but {pair} is {sum(likely) / 2:+.3g} %"
                    remedy = "give the change of the numbers"
                    findings.append(
                        Finding(
                            "change.row", "hard", str(self.place(index)), text, remedy
                        )
                    )
        return findings

    def _rows(self, grid: Grid, title: str) -> list[Run]:
        """Return a table with a line of titles that name measures: a run per row."""
        headings = table_data.headings(grid)
        # Whether the corner names the measure of all numbers, and rows or columns the percentiles.
        measures = [h.column for h in headings if h.column is not None]
        is_alone = len(measures) == 1 and measures[0] == headings[0].column
        if is_alone and _has_bare_percentiles(grid):
            return []
        summed = table_summaries.summaries(grid, headings)
        doubt = _doubt(grid, headings, summed)
        if doubt:
            self.doubted = doubt
            return []
        rows = _measured(grid, headings, summed)
        unread = table_summaries.nameless(headings, rows)
        runs = [
            msgspec.structs.replace(run, nameless=unread)
            for run in self._in_time(headings, rows, title)
        ]
        is_doubtful = any(has_finding(run, "read.comma") for run in runs)
        if is_doubtful or any(run.directions for run in runs):
            return runs
        return []

    def _in_time(
        self, headings: list[Heading], rows: Sequence[Row], title: str
    ) -> list[Run]:
        """The runs of rows: one per row, or one for rows that are samples by their times."""
        series = table_samples.series(headings, rows)
        if series is None or series.spread is Spread.RUNS:
            # The runs of every row by itself.
            runs_: list[Run] = []
            for each_ in rows:
                runs_ += self._row(headings, each_, title)
            return runs_
        if series.spread is Spread.UNCLEAR:
            self.doubted = (
                f"rows that may be samples of one run, or one run each, by their times in {series.title!r}: not read; "
                "call this column 'run' if each row is a run, or give even seconds since the start if they are samples"
            )
            return []
        runs: list[Run] = []
        others = [h for at, h in enumerate(headings) if at != series.at]
        for group in series.groups:
            samples = []
            for each in group:
                timeless = table_samples.without(series.at, each)
                samples.append(self._row(others, timeless, title))
            for parts in zip(*samples, strict=True):
                runs.append(table_samples.merged(parts, series.title))
        return runs

    def _row(self, headings: Sequence[Heading], each: Row, title: str) -> list[Run]:
        index, cells, section = each
        return row(headings, cells, self.place(index), title, section)

    def _pivot(self, grid: Grid, title: str) -> list[Run]:
        """Return a table of one measure, named in its corner or in the line above it: one run per number."""
        corner = column(grid.titles[0]) is not None
        named = grid.titles[0] if corner else self._title(grid.first, nearest=True)
        # The meaning of every number in a table whose only measure is `named`.
        cells_ = list(chain.from_iterable(cells_[1:] for _, cells_, _ in grid.rows))
        commas = decimal_comma(cells_)
        measure = heading(named, cells_, commas=commas)
        if not commas and table_data.in_doubt(measure, cells_, cells_, grid.mark):
            measure = table_data.without_marks(measure)
        else:
            pass
        if not _is_of_one_measure(grid, measure):
            return []
        foreign = between([plain(cells[0]) for _, cells, _ in grid.rows])
        if foreign:
            self.doubted = f"a table of {clean(named)!r}: {_BETWEEN}: {quoted(foreign)}"
            return []
        first = Heading(table_spaces.UNNAMED if corner else grid.titles[0], None)
        runs = self._numbers(grid, measure, first, title)
        if len(runs) < 2:
            return []
        if not is_certain(named):
            self.doubted = (
                f"the table of {clean(named)!r}: not read, because {OF_ANOTHER}"
            )
            return []
        return runs

    def _numbers(
        self, grid: Grid, measure: Heading, first: Heading, title: str
    ) -> list[Run]:
        """Return a run for each number of a table of one measure; ``first`` is the heading of the names of its rows."""
        names = [plain(cells[0]) for _, cells, _ in grid.rows]
        runs: list[Run] = []
        for index, cells, section in grid.rows:
            if table_summaries.is_derived(plain(cells[0]), names):
                continue
            of_row = of_section(measure, section)
            for name, text, of_number in _numbers_of(of_row, grid.titles, cells):
                headings = [first, Heading("column", None), of_number]
                texts = [cells[0], name, text]
                runs += row(headings, texts, self.place(index), title, section)
        return runs

    def _continues(self) -> bool:
        """Return whether the line above belongs to the same paragraph and is not its title."""
        above = self._lines[self._index - 1].text.strip() if self._index else ""
        if above.endswith(":") or RULE.fullmatch(above):
            return False
        return len(above.split()) > 1

    def _title(self, first: int, *, nearest: bool = False) -> str:
        """Return the nearest short line above that is not a sentence and not part of another table; ``nearest``: only
        a line with only blank lines between it and the table."""
        for at in range(first - 1, max(first - 1 - _BACK, -1), -1):
            if self._used[at]:
                break
            text = self._lines[at].text.strip().strip("#*`= ").strip()
            text = _EMPTY_CELLS.sub("", text)
            if not text or RULE.fullmatch(text) or text.startswith("\\"):
                continue
            if len(text) <= TITLE and not text.endswith((".", ",", ";")):
                return clean(text.rstrip(":"))
            if nearest:
                break
        return ""


def quoted(names: Iterable[str]) -> str:
    """Return each name once, in quotes."""
    return ", ".join(repr(clean(name)[:TITLE]) for name in dict.fromkeys(names))


def has_finding(run: Run, rule: str) -> bool:
    """Return whether reading a run has found what this rule says."""
    return any(finding.rule == rule for finding in run.findings)


def _doubt(grid: Grid, headings: Sequence[Heading], summed: dict[int, str]) -> str:
    """Return why the titles of a table may not describe its rows; empty without a doubt."""
    measured = [h.title for h in headings if h.column is not None]
    foreign = foreign_sections(grid.rows, headings) if measured else []
    if foreign:
        return f"a table of {quoted(measured)}: {_BETWEEN}: {quoted(foreign)}"
    if len(grid.rows) > 1 and len(summed) == len(grid.rows):
        rows = quoted(summed.values())
        return (
            f"the rows {rows}: not read, because they summarise rows that are not here"
        )
    return ""


def _measured(
    grid: Grid, headings: Sequence[Heading], summed: dict[int, str]
) -> list[Row]:
    """Return the rows with measurements, without those that are derived from others."""
    names = table_summaries.names(grid, headings)
    rows = []
    for each, name in zip(grid.rows, names, strict=True):
        if each[0] not in summed and not table_summaries.is_derived(name, names):
            rows.append(each)
    return rows


def _is_of_one_measure(grid: Grid, measure: Heading) -> bool:
    """Return whether all numbers of a table can be of ``measure``: no other title names one, and no percentile is
    unnamed.
    """
    if measure.column is None or is_statistic(grid.titles[0]):
        return False
    if any(column(title) or several(title) for title in grid.titles[1:]):
        return False
    return measure.column.of == "rate" or not _has_bare_percentiles(grid)


def _numbers_of(
    measure: Heading, titles: Sequence[str], cells: Sequence[str]
) -> Iterator[tuple[str, str, Heading]]:
    """Yield the title, the text and the heading of every number of ``measure`` in a row, whose name comes first."""
    for name, text in zip(titles[1:], cells[1:], strict=False):
        of_number = of_names(measure, cells[0], name)
        if of_number.column is None or cell(text) is None:
            continue
        if not COMPARES.search(name):
            yield name, text, of_number


def _has_bare_percentiles(grid: Grid) -> bool:
    """Return whether rows or columns may be percentiles with bare names such as 50, 99 and 99.9."""
    names = [cells[0] for _, cells, _ in grid.rows]
    if names_percentiles(grid.titles[0], names):
        return True
    return names_percentiles("", grid.titles[1:])


def _without_idle(run: Run) -> Run:
    """Return the run without directions with a rate of zero, unless all are zero."""
    busy = tuple(d for d in run.directions if not _is_idle(d))
    if not busy:
        return run
    return msgspec.structs.replace(run, directions=busy)


def _is_idle(direction: Direction) -> bool:
    rates = [direction.iops.value, direction.bandwidth.value]
    known = [rate for rate in rates if not math.isnan(rate)]
    return bool(known) and not any(known)
