"""Tables with a measure in each row: ``IOPS | 70800 | 43600`` above ``p99 (us) | 40 | 90``, by variant or melted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, filterfalse
from typing import NamedTuple

from iodelta.ingest.model import Run
from iodelta.ingest.table_cells import decimal_comma, is_number
from iodelta.ingest.table_columns import is_column
from iodelta.ingest.table_data import has_number, in_doubt, without_marks
from iodelta.ingest.table_grids import UNIT_TITLES, Grid
from iodelta.ingest.table_headings import (
    COMPARES,
    Heading,
    heading,
    is_statistic,
    names_measure,
    names_other,
    several,
)
from iodelta.ingest.table_levels import Row
from iodelta.ingest.table_rows import row
from iodelta.ingest.table_titles import certain, doubled
from iodelta.trial import Place

_COUNT = re.compile(r"bytes|_ios\b|total|runtime|count|jobs|depth", re.I)
_LEADING = 3
"""Most columns of names before the column of measures."""
_CHANGE = re.compile(r"[(]?[~+−-]?\s?\d{1,6}(?:[.,]\d{1,6})?\s?%[)]?")
_VALUE_TITLES = ("value", "values", "result", "results", "wert")


class _Layout(NamedTuple):
    """The roles of columns: names of groups before the column of measures, numbers after it."""

    measure: int
    unit: int | None
    statistics: tuple[int, ...]
    """Columns with a statistic of the row's measure: ``mean``, ``p99``."""
    variants: tuple[int, ...]
    """Columns with the numbers of a variant each."""


def metric_rows(grid: Grid, places: Mapping[int, Place], title: str) -> list[Run]:
    """The runs of a table with a measure in each row; none when it is not one."""
    titles, rows = grid.titles, _rows(grid)
    if is_headless(grid):
        titles = ["", *(_unnamed(at, rows) for at in range(1, len(titles)))]
    layout = _layout(titles, rows)
    if layout is None:
        return []
    numbers = [cells[layout.measure + 1 :] for _, cells, _ in rows]
    beside = list(chain.from_iterable(numbers))
    commas = any(map(decimal_comma, numbers))
    mark = None if commas else grid.mark
    names = [Heading(text, None) for text in titles[: layout.measure]]
    runs: list[Run] = []
    for (section, *cells), group in _groups(layout, rows).items():
        is_named = bool(layout.measure or section)
        place = places[group[0][0] if is_named else grid.first]
        measures = _Measures(
            group, layout, titles, commas=commas, mark=mark, beside=beside
        )
        for headings, values in _numbers(layout, titles, measures):
            pairs = [*names, *headings], [*cells, *values]
            runs += filter(_has_directions, row(*pairs, place, title, section))
    return runs


def _has_directions(run: Run) -> bool:
    return bool(run.directions)


def _rows(grid: Grid) -> list[Row]:
    """Return the rows of a table, including the first line if it is not a line of titles."""
    if is_headless(grid):
        return [(grid.first, grid.titles, ""), *grid.rows]
    return grid.rows


def _groups(layout: _Layout, rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    """Return the rows by section and by the names before the column of measures."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row_ in rows:
        _, cells, section = row_
        groups.setdefault((section, *cells[: layout.measure]), []).append(row_)
    return groups


def unread(grid: Grid) -> list[str]:
    """Return the names of rows that name a measure and are not read, in a table with a measure in each row."""
    rows = _rows(grid)
    layout = _layout(grid.titles, rows)
    if layout is None:
        return []
    titles = [] if layout.statistics else list(filter(is_statistic, grid.titles))
    for headings in _named(layout, rows):
        titles += [h.title for h in certain(headings) if h.refused]
    for _, cells, _ in rows:
        name = cells[layout.measure]
        numbers = sum(
            is_number(cells[at]) for at in (*layout.variants, *layout.statistics)
        )
        if numbers and not (
            is_column(name)
            or names_other(name)
            or names_measure(name)
            or _COUNT.search(name)
            or _CHANGE.fullmatch(name)
            or COMPARES.search(name)
        ):
            titles.append(name)
    return list(dict.fromkeys(titles))


def is_doubled(grid: Grid) -> bool:
    """Return whether a measure has several columns or rows without a distinction."""
    rows = _rows(grid)
    layout = _layout(grid.titles, rows)
    if layout is None:
        return bool(doubled(list(map(heading, grid.titles))))
    return any(map(doubled, _named(layout, rows)))


def _named(layout: _Layout, rows: Sequence[Row]) -> list[list[Heading]]:
    """Return the measures of each group of rows."""
    named: list[list[Heading]] = []
    for group in _groups(layout, rows).values():
        named.append([heading(cells[layout.measure]) for _, cells, _ in group])
    return named


def _numbers(
    layout: _Layout, titles: Sequence[str], measures: _Measures
) -> Iterator[tuple[list[Heading], list[str]]]:
    """Headings and cells of each run of a group."""
    if layout.statistics:
        yield measures.of_statistics()
    for at in layout.variants:
        headings, cells = measures.of_column(at)
        if len(layout.variants) > 1 or titles[at].lower() not in _VALUE_TITLES:
            headings = [Heading(titles[layout.measure] or "column", None), *headings]
            cells = [titles[at], *cells]
        yield headings, cells


def is_headless(grid: Grid) -> bool:
    """Return whether the first line contains numbers, and its first cell names their measure."""
    first, *rest = grid.titles
    others = list(filterfalse(is_number, rest))
    has_numbers = len(others) < len(rest)
    return has_numbers and all(map(_CHANGE.fullmatch, others)) and _names_measure(first)


def _unnamed(at: int, rows: Sequence[Row]) -> str:
    """Return a name for a column without a title: its number, or ``change`` for a column of changes."""
    changes = all(_CHANGE.fullmatch(cells[at]) for _, cells, _ in rows)
    if changes:
        return "change"
    return f"column {at}"


def _names_measure(text: str) -> bool:
    if has_number(text):
        return False
    return is_column(text) or names_other(text)


def _layout(titles: Sequence[str], rows: Sequence[Row]) -> _Layout | None:
    for at in range(min(_LEADING, len(titles) - 1)):
        # Of a table without titles, the first row's name would be that of a measure of all.
        is_titled = titles[1:2] != ["column 1"]
        is_mixed = at == 0 and is_titled and not any(map(_is_measured, titles))
        if _names_measures([cells[at] for _, cells, _ in rows], is_mixed=is_mixed):
            # The roles of the columns after that of the measures; None if a title names a measure itself.
            rest = range(at + 1, len(titles))
            own_measures = filterfalse(
                is_statistic, filter(is_column, titles[at + 1 :])
            )
            if any(own_measures):
                return None
            units = (
                place for place in rest if titles[place].strip().lower() in UNIT_TITLES
            )
            unit = next(units, None)
            others = [place for place in rest if place != unit]
            usable = [place for place in others if not COMPARES.search(titles[place])]
            if not usable:
                return None
            return _Layout(at, unit, *_statistics_or_variants(usable, titles, rows))
    return None


def _names_measures(names: Sequence[str], *, is_mixed: bool) -> bool:
    """Return whether a column names the measures of the rows: at least one is known, and half of all are names of
    some, unless the table ``is_mixed``: no title names a measure, so that only rows can."""
    without_number = filterfalse(has_number, names)
    if not any(map(is_column, without_number)):
        return False
    named = sum(_names_measure(text) or several(text) for text in names)
    return 2 * named >= len(names) or is_mixed


def _is_measured(title: str) -> bool:
    return is_column(title) or several(title)


def _statistics_or_variants(
    places: Sequence[int], titles: Sequence[str], rows: Sequence[Row]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the columns of statistics and of variants: of statistics only if there are fewer than two variants."""
    statistics = tuple(place for place in places if is_statistic(titles[place]))
    others = tuple(place for place in places if place not in statistics)
    variants = sum(
        (_has_numbers(place, rows) and not names_other(titles[place]))
        for place in others
    )
    if statistics and variants < 2:
        return statistics, ()
    return (), others


def _has_numbers(at: int, rows: Sequence[Row]) -> bool:
    return any(is_number(cells[at]) for _, cells, _ in rows)


class _Measures:
    """The rows of one group as headings with a number each."""

    def __init__(
        self,
        rows: Sequence[Row],
        layout: _Layout,
        titles: Sequence[str],
        *,
        commas: bool,
        mark: str | None,
        beside: Sequence[str],
    ) -> None:
        self._rows = rows
        self._layout = layout
        self._titles = titles
        self._commas = commas
        self._mark = mark
        """The mark between columns; None if the meaning of a comma is known."""
        self._beside = beside

    def of_column(self, at: int) -> tuple[list[Heading], list[str]]:
        """Headings and numbers of one variant."""
        headings = certain([self._heading(cells, "") for _, cells, _ in self._rows])
        return headings, [cells[at] for _, cells, _ in self._rows]

    def of_statistics(self) -> tuple[list[Heading], list[str]]:
        """Headings and numbers of all columns of statistics."""
        headings, numbers = [], []
        for _, cells, _ in self._rows:
            for at in self._layout.statistics:
                measure = self._heading(cells, self._titles[at])
                if measure.column is not None:
                    headings.append(measure)
                    numbers.append(cells[at])
        return certain(headings), numbers

    def _heading(self, cells: Sequence[str], statistic: str) -> Heading:
        name = cells[self._layout.measure]
        if self._layout.unit is not None and cells[self._layout.unit]:
            name = f"{name} ({cells[self._layout.unit]})"
        values = cells[self._layout.measure + 1 :]
        title = heading(f"{name} {statistic}".strip(), values, commas=self._commas)
        if self._mark is not None and in_doubt(title, values, self._beside, self._mark):
            return without_marks(title)
        return title
