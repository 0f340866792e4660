"""The meaning of the numbers of a split table: its runs, or the reason for doubt.

A table has a line of titles that name its measures, a measure in each row, or one measure in its corner or its title. A
number is read only where its own title names its measure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, filterfalse, pairwise
from typing import NamedTuple

import msgspec

from iodelta.ingest import other_tools
from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Run
from iodelta.ingest.numbers import Printed, half_unit
from iodelta.ingest.table_cells import (
    cell,
    decimal_comma,
    doubtful_commas,
    doubtful_points,
    is_missing,
    is_number,
    plain,
)
from iodelta.ingest.table_grids import RULE, UNIT_TITLES, UNNAMED, Grid, Row
from iodelta.ingest.table_runs import merged, row, series
from iodelta.ingest.table_titles import (
    COMPARES,
    Heading,
    certain,
    column,
    doubled,
    heading,
    is_certain,
    is_measure,
    names_percentiles,
    of_names,
    parse,
    with_point,
)
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import MODE, is_direction_title
from iodelta.trial import Finding, Place

TITLE = 100
"""Most characters of a title, and of a quoted name."""
_BACK = 6
"""Number of lines above a table in which its title is searched."""
_EMPTY_CELLS = re.compile(r"(?:\s*[,;|]){2,}$")
OF_ANOTHER = "write one measure and its unit into each title, and nothing else"
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
_SIGNED = re.compile(r"[(]?[~+−-]\s?\d{1,6}(?:[.,]\d{1,6})?\s?%[)]?")
_SIZE = re.compile(r"^(\d{1,6}) ?[kKmM](?:i?B)?$")
_COUNT = re.compile(r"bytes|_ios\b|total|runtime|count|jobs|depth", re.I)
_LEADING = 3
"""Most columns of names before the column of measures."""
_CHANGE = re.compile(r"[(]?[~+−-]?\s?\d{1,6}(?:[.,]\d{1,6})?\s?%[)]?")
_VALUE_TITLES = ("value", "values", "result", "results", "wert")
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
_DERIVED = re.compile(
    r"(?:%\s?)?(?:st[dandr. ]{0,6}(?:dev[a-z.]*|err[a-z.]*)?|sd|sem|var(?:iance)?|cv|rsd|diff\w*|change|delta"
    r"|gain|ratio|speed-?up|slow-?down|improvement|regression|reduction|normali[sz]ed|rel(?:ative)?|factor|count|n|samples|p-?val(?:ue)?s?"
    r"|(?:\d{1,3} ?% )?c\.?i\.?|Δ)"
    r"(?:\s?[(\[]?%[)\]]?)?|.{1,60}[ _](?:vs\.?|versus|over|relative[ _]to)[ _].{1,60}",
    re.I,
)
"""Names of rows with the difference or scatter of others."""
_INDEX = re.compile(r"|#|no\.?|nr\.?|row|index|unnamed: 0|\.\.\.1", re.I)
"""Titles of a column of row numbers; R and pandas print none."""
_SUMMARY = re.compile(
    r"(?:arith\w* |geo\w*[ -]?)?(?:avg|average|mean|median|min|max|minimum|maximum|best|worst|total|sum|all|overall)\.?"
    r"|geomean",
    re.I,
)
"""Names of rows that summarise others: a statistic over runs is not one over I/Os."""
_QUANTILE = re.compile(r"\d{1,2}(?:\.\d{1,2})? ?%|q[1-4]|p\d{1,2}", re.I)
"""Names of further summaries next to such a row; alone, ``50%`` may be how full a disk is."""
_SHORT_TIME = re.compile(r"[(\[]\s?[mnuµμ]s(?:ec)?\s?[)\]]\s*$", re.I)
"""A unit of short times, which are measured, at the end of a title."""
_SET_TIME = re.compile(
    r"delay|think|wait|sleep|interval|timeout|period|window|rtt|slice|limit|target|budget|goal",
    re.I,
)
"""Words in titles of times that are settings."""
_DIRECTIONS = {
    **dict.fromkeys(("r", "rd", "reads", "reading", "0"), "read"),
    **dict.fromkeys(("w", "wr", "writes", "writing", "1"), "write"),
    **dict.fromkeys(
        ("t", "tr", "trims", "trimming", "discard", "discards", "2"), "trim"
    ),
    **dict.fromkeys(
        ("both", "total", "all", "sum", "r+w", "r/w", "read+write", "read/write"),
        "mixed",
    ),
}
"""The numbers are those of fio's logs and of the kernel."""
_OF_NUMBERS = re.compile(r"(?:data|io)?[\s_-]?d?dir(?:ection)?", re.I)
"""Titles under which numbers are directions; under ``op`` or ``rw``, 1 may mean anything."""


def quoted(names: Iterable[str]) -> str:
    """Return each name once, in quotes."""
    return ", ".join(repr(clean(name)[:TITLE]) for name in dict.fromkeys(names))


def has_finding(run: Run, rule: str) -> bool:
    """Return whether reading a run has found what this rule says."""
    return any(finding.rule == rule for finding in run.findings)


def directed(grid: Grid) -> tuple[Grid, dict[int, tuple[str, str]]]:
    """``grid`` with full names of directions (``read`` for ``R``), without rows of unknown direction; and the title and
    text of each of these, by the index of their line."""
    unknown: dict[int, tuple[str, str]] = {}
    spelt = {index: list(cells) for index, cells, _ in grid.rows}
    for at, title in enumerate(grid.titles):
        if not is_direction_title(title):
            continue
        takes_numbers = _OF_NUMBERS.fullmatch(plain(title).strip())
        named: dict[int, str] = {}
        strange: dict[int, tuple[str, str]] = {}
        for index, cells, _ in grid.rows:
            text = plain(cells[at])
            word = _DIRECTIONS.get(text.strip(" .:").lower())
            is_word = word and (takes_numbers or not cells[at].strip().isdigit())
            if is_word or MODE.search(text):
                named[index] = (word or cells[at]) if is_word else cells[at]
            elif any(cells[1:]) and not is_missing(text):
                strange[index] = title, cells[at]
        if named:  # at least one cell names a direction
            unknown |= strange
            for index, text in named.items():
                spelt[index][at] = text
    rows = [
        (index, spelt[index], section)
        for index, _, section in grid.rows
        if index not in unknown
    ]
    return grid._replace(rows=rows), unknown


def _has_words(grid: Grid, at: int) -> bool:
    """Return whether a cell of a column is not a number."""
    return not all(is_number(plain(text)) for text in grid.below(at))


def _is_derived(name: str, others: Sequence[str]) -> bool:
    """Return whether the row ``name`` is a difference or scatter of ``others``: ``bfq/none``, ``delta``, ``stddev``."""
    first, _, other = name.partition("/")
    is_of_others = {first.strip(), other.strip()} <= set(others)
    return is_of_others or _DERIVED.fullmatch(name) is not None


def summaries(grid: Grid, headings: Sequence[Heading]) -> dict[int, str]:
    """Return names of rows that summarise others, by the index of their lines: ``mean``, ``max``, ``25%``, ``total``.

    A single row is a result. In columns after the first, only summaries of numbered rows (runs) count.
    """
    sums: dict[int, str] = {}
    if all(h.column is None for h in headings):
        return sums
    columns = _labels(headings)
    for at in columns:
        texts = [
            plain(cells[at]) if at < len(cells) else "" for _, cells, _ in grid.rows
        ]
        some = any(map(_SUMMARY.fullmatch, texts))
        summed = [
            bool(_SUMMARY.fullmatch(text) or (some and _QUANTILE.fullmatch(text)))
            for text in texts
        ]
        others = [
            text for text, is_sum in zip(texts, summed, strict=True) if not is_sum
        ]
        is_of_runs = others and all(any(map(str.isdigit, text)) for text in others)
        if is_of_runs or (at == _first(grid, columns) and len(texts) > 1):
            rows = zip(grid.rows, texts, summed, strict=True)
            sums |= {index: text for (index, _, _), text, is_sum in rows if is_sum}
    return sums


def _labels(headings: Sequence[Heading]) -> list[int]:
    return [at for at, h in enumerate(headings) if h.column is None and not h.refused]


def _first(grid: Grid, columns: Sequence[int]) -> int | None:
    """Return the first column of names, preferably one with words; None without any."""
    worded = (at for at in columns if _has_words(grid, at))
    return next(worded, next(iter(columns), None))


def _nameless(headings: Sequence[Heading], rows: Sequence[Row]) -> tuple[str, ...]:
    """Titles of columns with a number of the result that is not read: ``max``, ``延迟(us)``.

    Empty unless the other names distinguish the rows equally well: otherwise ``min`` and ``max`` may be settings.
    """
    names = [at for at, h in enumerate(headings) if h.column is None]
    results = []
    for at in names:
        title = headings[at].title
        is_time = _SHORT_TIME.search(title) and not _SET_TIME.search(title)
        texts = [cells[at] for _, cells, _ in rows if at < len(cells)]
        if (parse(title).statistic or is_time) and all(map(is_number, texts)):
            results.append(at)
    others = [at for at in names if at not in results]
    if others and _distinct(rows, others) < _distinct(rows, names):
        return ()
    return tuple(clean(headings[at].title) for at in results)


def _distinct(rows: Sequence[Row], places: Sequence[int]) -> int:
    """Return how many rows the columns at ``places``, and the sections, distinguish."""
    return len(
        {
            (section, *(cells[at] for at in places if at < len(cells)))
            for _, cells, section in rows
        }
    )


def _is_data(grid: Grid) -> bool:
    """Return whether the titles are a row of data: most have digits outside names, sizes and percentiles."""
    named = list(filter(None, grid.titles[1:]))
    values = list(filterfalse(_SIGNED.fullmatch, named))
    # They can only be numbers: changes stand beside them, or they are no versions, depths or sizes.
    if named and all(map(is_number, values)):
        sizes = [_SIZE.sub(r"\1", title) for title in values]
        if len(values) < len(named) or not _is_axis(sizes):
            return True
    titles = list(filter(None, grid.titles))
    numbered = list(filter(_has_number, titles))
    if 2 * len(numbered) <= len(titles):
        return False
    if grid.titles[0] not in numbered and _is_axis(numbered):
        return False
    for title in numbered:
        below = filterfalse(is_missing, grid.below(grid.titles.index(title)))
        # Below a row of data, units would repeat; plain numbers follow below a title such as ``6.12 IOPS``.
        if not column(title) or any(re.search(r"[a-zA-Z]{2}", text) for text in below):
            return True
    return False


def _has_number(title: str) -> bool:
    """Return whether a title has digits of the kind that only data has."""
    return any(map(str.isdigit, _KNOWN.sub(" ", with_point(title))))


def _is_axis(titles: Sequence[str]) -> bool:
    """Return whether numbers may be rising depths, jobs or sizes, or versions."""
    if not all(map(_AXIS.fullmatch, titles)):
        return False
    if all("." in title for title in titles):
        return True
    if not all(map(str.isdigit, titles)):
        return False
    counts = list(map(int, titles))
    rising = all(first < other for first, other in pairwise(counts))
    return rising and all(map(_is_round, counts))


def _is_round(count: int) -> bool:
    """Return whether a person may have chosen a number: a power of two, or a round number."""
    return count & (count - 1) == 0 or _ROUND.fullmatch(str(count)) is not None


def headings(grid: Grid) -> list[Heading]:
    """Return the meaning of the titles, from their words and the commas in the cells below."""
    columns = [grid.below(at) for at in range(len(grid.titles))]
    commas = any(map(decimal_comma, columns))
    parsed = certain(
        [
            heading(title, cells, commas=commas)
            for title, cells in zip(grid.titles, columns, strict=True)
        ]
    )
    if commas:
        return parsed
    pairs = list(zip(parsed, columns, strict=True))
    beside = list(chain.from_iterable(cells for h, cells in pairs if h.column))
    return [_doubting(h, cells, beside, grid.mark) for h, cells in pairs]


def _doubting(
    h: Heading, cells: Sequence[str], beside: Sequence[str], mark: str
) -> Heading:
    """Return a heading whose numbers are not read if commas or points in ``cells`` may separate thousands or decimals;
    ``beside``: all numbers of the table.

    If ``;`` separates columns, the author may use decimal commas. Otherwise only points in IOPS are ambiguous: nobody
    measures thousandths of an I/O.
    """
    if h.column is None:
        return h
    doubtful = doubtful_commas(cells) if mark == ";" else False
    is_plain = h.column.stat == "iops" and h.column.scale == 1
    if mark == ";" or is_plain:
        doubtful = doubtful or doubtful_points(cells, beside)
    return h._replace(doubtful=doubtful)


def unknown_numbers(grid: Grid, headings: Sequence[Heading]) -> list[str]:
    """Titles of columns with numbers that are neither of a known measure nor known to be something else: a setting, a
    count, a change, or round numbers, which name their rows."""
    unknown = []
    for at, h in enumerate(headings):
        if not at or h.column is not None or h.refused or not h.title.strip():
            continue
        cells = list(filterfalse(is_missing, grid.below(at)))
        numbers = list(filter(is_number, cells))
        if not numbers or 2 * len(numbers) < len(cells):
            continue
        settings = _SETTING if all(map(str.isdigit, numbers)) else _MEASURED_SETTING
        whole = [text for text in numbers if text.isdigit() and _is_round(int(text))]
        names = [
            place
            for place, other in enumerate(headings)
            if other.column is None and place != at
        ]
        is_name = (
            len(whole) == len(numbers)
            or len(set(numbers)) == 1 < len(numbers)
            or len({tuple(cells[n] for n in names) for _, cells, _ in grid.rows})
            < len({tuple(cells[n] for n in (*names, at)) for _, cells, _ in grid.rows})
        )
        is_known = settings.search(h.title.replace("_", " ")) or parse(h.title).other
        if not is_name and not is_known:
            unknown.append(h.title)
    return unknown


class Metrics(NamedTuple):
    """A table with a measure in each row: ``IOPS | 70800 | 43600`` above ``p99 (us) | 40 | 90``, by variant or melted.

    Names of groups stand before the column of measures, numbers after it.
    """

    titles: list[str]
    rows: list[Row]
    measure: int
    unit: int | None
    statistics: tuple[int, ...]
    """Columns with a statistic of the row's measure: ``mean``, ``p99``."""
    variants: tuple[int, ...]
    """Columns with the numbers of a variant each."""

    def groups(self) -> dict[tuple[str, ...], list[Row]]:
        """Return the rows by section and by the names before the column of measures."""
        groups: dict[tuple[str, ...], list[Row]] = {}
        for each in self.rows:
            _, cells, section = each
            groups.setdefault((section, *cells[: self.measure]), []).append(each)
        return groups

    def named(self) -> list[list[Heading]]:
        """Return the measures of each group of rows."""
        return [
            [heading(cells[self.measure]) for _, cells, _ in group]
            for group in self.groups().values()
        ]

    def unread(self) -> list[str]:
        """Return the names of rows that name a measure and are not read."""
        titles = (
            [] if self.statistics else [t for t in self.titles if parse(t).statistic]
        )
        for group in self.named():
            titles += [h.title for h in certain(group) if h.refused]
        for _, cells, _ in self.rows:
            name = cells[self.measure]
            places = (*self.variants, *self.statistics)
            is_known = is_measure(name) or parse(name).measures
            is_count = _COUNT.search(name) or _CHANGE.fullmatch(name)
            if (
                any(is_number(cells[at]) for at in places)
                and not is_known
                and not is_count
                and not COMPARES.search(name)
            ):
                titles.append(name)
        return list(dict.fromkeys(titles))


def is_headless(grid: Grid) -> bool:
    """Return whether the first line contains numbers, and its first cell names their measure."""
    first, *rest = grid.titles
    others = list(filterfalse(is_number, rest))
    is_of_numbers = len(others) < len(rest) and all(map(_CHANGE.fullmatch, others))
    return is_of_numbers and _names_measure(first)


def _names_measure(text: str) -> bool:
    return not _has_number(text) and is_measure(text)


def metrics(grid: Grid) -> Metrics | None:
    """Return the roles of the columns of a table with a measure in each row; None for another table."""
    titles, rows = grid.titles, grid.rows
    if is_headless(grid):
        rows = [(grid.first, titles, ""), *rows]
        # Names for columns without a title.
        titles = [""]
        for at in range(1, len(grid.titles)):
            is_change = all(_CHANGE.fullmatch(cells[at]) for _, cells, _ in rows)
            titles.append("change" if is_change else f"column {at}")
    # Of a table without titles, the first row's name would be that of a measure of all.
    is_titled = titles[1:2] != ["column 1"]
    measured = [column(t) or len(parse(t).measures) > 1 for t in titles]
    for at in range(min(_LEADING, len(titles) - 1)):
        names = [cells[at] for _, cells, _ in rows]
        known = any(column(name) for name in names if not _has_number(name))
        of_measures = sum(
            _names_measure(name) or len(parse(name).measures) > 1 for name in names
        )
        # Half of all names are of measures, unless no title names one, so that only rows can.
        is_mixed = not at and is_titled and not any(measured)
        if not known or (2 * of_measures < len(names) and not is_mixed):
            continue
        rest = range(at + 1, len(titles))
        if any(column(titles[n]) and not parse(titles[n]).statistic for n in rest):
            return None
        units = (n for n in rest if titles[n].strip().lower() in UNIT_TITLES)
        unit = next(units, None)
        usable = [n for n in rest if n != unit and not COMPARES.search(titles[n])]
        statistics = tuple(n for n in usable if parse(titles[n]).statistic)
        others = tuple(n for n in usable if n not in statistics)
        variants = [
            n
            for n in others
            if not parse(titles[n]).other
            and any(is_number(cells[n]) for _, cells, _ in rows)
        ]
        if not usable:
            return None
        # Of statistics only if there are fewer than two variants.
        if statistics and len(variants) < 2:
            return Metrics(titles, rows, at, unit, statistics, ())
        return Metrics(titles, rows, at, unit, (), others)
    return None


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

    def runs(self, grid: Grid) -> list[Run]:
        """The runs of a table; empty for other text, or for a table in doubt."""
        title = self._title(grid.first)
        # `grid` without a first column of row numbers, which pandas (from 0) and R (from 1) print, if other columns
        # name the rows.
        grid = directed(grid)[0]
        counted = [text.strip("\"' ") for text in grid.below(0)]
        numbers = [
            list(map(str, range(first_, first_ + len(counted)))) for first_ in (0, 1)
        ]
        others = [
            at
            for at, title_ in enumerate(grid.titles)
            if at and parse(title_).names_rows and _has_words(grid, at)
        ]
        is_index = len(counted) > 1 and counted in numbers and others
        if not (not is_index or not _INDEX.fullmatch(grid.titles[0].strip())):
            rows = [(index, cells[1:], section) for index, cells, section in grid.rows]
            grid = grid._replace(titles=grid.titles[1:], rows=rows)
        first, *rest = grid.titles
        ends_in_number = (
            is_number(rest[-1].split()[-1].rstrip("%)")) if rest[-1] else False
        )
        if (
            not grid.mark
            and ends_in_number
            and (is_measure(first) or not _is_axis(rest))
        ):
            # A row of data; and a line within a paragraph unless the line above is its title.
            above = self._lines[self._index - 1].text.strip() if self._index else ""
            is_title = above.endswith(":") or RULE.fullmatch(above)
            if not is_title and len(above.split()) > 1:
                return []
        foreign = other_tools.foreign_measure(grid.titles, title)
        if foreign:
            self.doubted = f"a table with {clean(foreign)!r}: not read, because it is not known to measure storage I/O"
            return []
        is_data = _is_data(grid)
        layout = metrics(grid)
        runs: list[Run] = []
        # Only a table with a measure in each row may begin with data; otherwise it is a log whose lines name measures.
        if layout is not None and (is_headless(grid) or not is_data):
            runs = self.of_metrics(grid, layout, title)
        if not runs and not is_data:
            runs = self._pivot(grid, title) or self._rows(grid, title)
        named = layout.named() if layout else [list(map(heading, grid.titles))]
        if not runs and any(map(doubled, named)):
            self.doubted = _DOUBLED
        contradicted = list(self._contradicted(grid)) if runs else []
        if contradicted:
            findings = (*runs[0].findings, *contradicted)
            runs[0] = msgspec.structs.replace(runs[0], findings=findings)
        return list(map(_without_idle, runs))

    def _contradicted(self, grid: Grid) -> Iterator[Finding]:
        """Yield a finding for each row with a change in percent that no two numbers of the row make."""
        columns = list(enumerate(grid.titles))[1:]
        changes = [at for at, title in columns if _CHANGES.search(title)]
        others = [
            at
            for at, title in columns
            if at not in changes and not COMPARES.search(title)
        ]
        for index, cells, _ in grid.rows:
            numbers: dict[int, tuple[Printed, str]] = {}
            for at in others:
                parsed = cell(cells[at])
                if parsed is not None and parsed[0].value > 0:
                    numbers[at] = parsed
            places = list(numbers)
            is_ordered = len(places) == 2 and _FIRST.search(grid.titles[places[0]])
            shares = [
                _change(numbers[first][0], numbers[other][0])
                for first in places
                for other in places
                if first != other
                and numbers[first][1] == numbers[other][1]
                and (first < other or not is_ordered)
            ]
            for at in changes:
                written = plain(cells[at]).replace("−", "-").replace(",", ".")
                stated = _PERCENT.fullmatch(written)
                if stated is None or not shares:
                    continue
                half = half_unit(stated[2]) * 1.2
                percent = float(stated[1].replace("+", "") + stated[2])
                # A gain, loss or speed-up is often written without its sign.
                bare = not stated[1] or _WORDED.search(grid.titles[at])
                if not any(
                    low - half <= number <= high + half
                    for low, high in shares
                    for number in ((percent, -percent) if bare else (percent,))
                ):
                    first, last = (numbers[place][0] for place in places[-2:])
                    shown = sum(_change(first, last)) / 2
                    text = f"{clean(grid.titles[at])}: it says {clean(cells[at])}, but {first.value:g} to {last.value:g}"
                    yield Finding(
                        "change.row",
                        "hard",
                        str(self.place(index)),
                        f"{text} is {shown:+.3g} %",
                        "give the change of the numbers",
                    )

    def of_metrics(self, grid: Grid, layout: Metrics, title: str) -> list[Run]:
        """Return a table with a measure in each row."""
        titles, at = layout.titles, layout.measure
        numbers = [cells[at + 1 :] for _, cells, _ in layout.rows]
        commas = any(map(decimal_comma, numbers))
        beside = list(chain.from_iterable(numbers))

        def meaning(cells: Sequence[str], statistic: str = "") -> Heading:
            unit = cells[layout.unit] if layout.unit is not None else ""
            name = f"{cells[at]} ({unit})" if unit else cells[at]
            h = heading(f"{name} {statistic}".strip(), cells[at + 1 :], commas=commas)
            return h if commas else _doubting(h, cells[at + 1 :], beside, grid.mark)

        names = [Heading(text, None) for text in titles[:at]]
        runs: list[Run] = []
        for (section, *cells), group in layout.groups().items():
            place = self.place(group[0][0] if at or section else grid.first)
            rows = [each for _, each, _ in group]
            columns = []
            if layout.statistics:
                pairs = [
                    (h, each[n])
                    for each in rows
                    for n in layout.statistics
                    if (h := meaning(each, titles[n])).column is not None
                ]
                certain_ = certain([h for h, _ in pairs])
                columns.append((certain_, [text for _, text in pairs]))
            for n in layout.variants:
                certain_ = certain(list(map(meaning, rows)))
                values = [each[n] for each in rows]
                if len(layout.variants) > 1 or titles[n].lower() not in _VALUE_TITLES:
                    certain_ = [Heading(titles[at] or "column", None), *certain_]
                    values = [titles[n], *values]
                columns.append((certain_, values))
            for certain_, values in columns:
                made = row(
                    [*names, *certain_], [*cells, *values], place, title, section
                )
                runs += [run for run in made if run.directions]
        return runs

    def _rows(self, grid: Grid, title: str) -> list[Run]:
        """Return a table with a line of titles that name measures: a run per row, or one for rows that are samples by
        their times."""
        meant = headings(grid)
        measures = [h for h in meant if h.column is not None]
        # The corner names the measure of all numbers, and rows or columns the percentiles.
        is_alone = len(measures) == 1 and measures[0].column == meant[0].column
        if is_alone and _has_bare_percentiles(grid):
            return []
        summed = summaries(grid, meant)
        foreign = _foreign_sections(grid.rows, meant) if measures else []
        if foreign:
            named = quoted(h.title for h in measures)
            self.doubted = f"a table of {named}: {_BETWEEN}: {quoted(foreign)}"
            return []
        if 1 < len(grid.rows) == len(summed):
            named = quoted(summed.values())
            self.doubted = f"the rows {named}: not read, because they summarise rows that are not here"
            return []
        first = _first(grid, _labels(meant))
        names = ["" for _ in grid.rows]
        if first is not None:
            names = [plain(c[first]) if first < len(c) else "" for _, c, _ in grid.rows]
        rows = [
            each
            for each, name in zip(grid.rows, names, strict=True)
            if each[0] not in summed and not _is_derived(name, names)
        ]
        unread = _nameless(meant, rows)
        runs: list[Run] = []
        in_time = series(meant, rows)
        if in_time is None or in_time.spread == "runs":
            for index, cells, section in rows:
                runs += row(meant, cells, self.place(index), title, section)
        elif in_time.spread == "unclear":
            self.doubted = (
                f"rows that may be samples of one run, or one run each, by their times in {in_time.title!r}: not read; "
                "call this column 'run' if each row is a run, or give even seconds since the start if they are samples"
            )
        else:
            at = in_time.at
            for group in in_time.groups:
                samples = [
                    row(
                        [*meant[:at], *meant[at + 1 :]],
                        [*cells[:at], *cells[at + 1 :]],
                        self.place(index),
                        title,
                        section,
                    )
                    for index, cells, section in group
                ]
                for parts in zip(*samples, strict=True):
                    runs.append(merged(parts, in_time.title))
        is_doubtful = any(has_finding(run, "read.comma") for run in runs)
        if not is_doubtful and not any(run.directions for run in runs):
            return []
        return [msgspec.structs.replace(run, nameless=unread) for run in runs]

    def _pivot(self, grid: Grid, title: str) -> list[Run]:
        """Return a table of one measure, named in its corner or in the line above it: one run per number."""
        corner = column(grid.titles[0]) is not None
        named = grid.titles[0] if corner else self._title(grid.first, nearest=True)
        cells = list(chain.from_iterable(cells[1:] for _, cells, _ in grid.rows))
        commas = decimal_comma(cells)
        measure = heading(named, cells, commas=commas)
        if not commas:
            measure = _doubting(measure, cells, cells, grid.mark)
        # No other title names a measure, and no percentile is unnamed.
        others = [parse(text) for text in grid.titles[1:]]
        if measure.column is None or parse(grid.titles[0]).statistic:
            return []
        if any(other.column or len(other.measures) > 1 for other in others):
            return []
        if measure.column.of != "rate" and _has_bare_percentiles(grid):
            return []
        names = [plain(cells[0]) for _, cells, _ in grid.rows]
        # Names of measures above rows that are not: they may be headings of these.
        plain_rows = [
            at
            for at, name in enumerate(names)
            if not is_measure(name)
            and len(parse(name).measures) < 2
            and not parse(name).statistic
        ]
        foreign = [
            name
            for name in names[: max(plain_rows, default=0)]
            if not parse(name).statistic and is_measure(name)
        ]
        if foreign:
            self.doubted = f"a table of {clean(named)!r}: {_BETWEEN}: {quoted(foreign)}"
            return []
        first = Heading(UNNAMED if corner else grid.titles[0], None)
        runs: list[Run] = []
        for index, cells, section in grid.rows:
            if _is_derived(plain(cells[0]), names):
                continue
            of_row = measure
            if is_measure(section):
                inner = heading(section)
                of_row = measure._replace(
                    title=section, column=inner.column, asked=inner.asked
                )
            for name, text in zip(grid.titles[1:], cells[1:], strict=False):
                meant = of_names(of_row, cells[0], name)
                if meant.column and cell(text) and not COMPARES.search(name):
                    pairs = [first, Heading("column", None), meant]
                    texts = [cells[0], name, text]
                    runs += row(pairs, texts, self.place(index), title, section)
        if len(runs) < 2:
            return []
        if not is_certain(named):
            self.doubted = f"the table of {clean(named)!r}: not read; {OF_ANOTHER}"
            return []
        return runs

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


def _change(first: Printed, second: Printed) -> tuple[float, float]:
    """Bounds of the change from one number to another, in percent."""
    half = (first.high - first.low) / 2, (second.high - second.low) / 2
    low = 100 * ((second.value - half[1]) / (first.value + half[0]) - 1)
    return low, 100 * ((second.value + half[1]) / max(first.value - half[0], 1e-9) - 1)


def _foreign_sections(rows: Sequence[Row], headings: Sequence[Heading]) -> list[str]:
    """Return names of sections that are measures without a column: ``lat (us)`` among rows of IOPS."""
    own = {
        h.column.stat if h.column.of == "rate" else "lat" for h in headings if h.column
    }
    foreign: list[str] = []
    for section in dict.fromkeys(section for _, _, section in rows if section):
        meant = parse(section)
        if meant.column is None:
            is_foreign = bool(meant.measures)
        else:
            is_rate = meant.column.of == "rate"
            is_foreign = (meant.column.stat if is_rate else "lat") not in own
        if is_foreign:
            foreign.append(section)
    return foreign


def _has_bare_percentiles(grid: Grid) -> bool:
    """Return whether rows or columns may be percentiles with bare names such as 50, 99 and 99.9."""
    names = [cells[0] for _, cells, _ in grid.rows]
    return names_percentiles(grid.titles[0], names) or names_percentiles(
        "", grid.titles[1:]
    )


def _without_idle(run: Run) -> Run:
    """Return the run without directions with a rate of zero, unless all are zero."""
    busy = []
    for direction in run.directions:
        rates = (direction.iops.value, direction.bandwidth.value)
        known = list(filterfalse(math.isnan, rates))
        if any(known) or not known:
            busy.append(direction)
    return msgspec.structs.replace(run, directions=tuple(busy)) if busy else run
