"""Rows of a table that are derived from others: summaries and differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import not_

from iodelta.ingest.table_cells import is_number, plain
from iodelta.ingest.table_grids import Grid
from iodelta.ingest.table_headings import Heading, is_statistic, names_rows
from iodelta.ingest.table_levels import Row
from iodelta.ingest.wording import clean

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


def names(grid: Grid, headings: Sequence[Heading]) -> list[str]:
    """Return the name of each row: its first cell that is neither a number of a measure nor a row number."""
    at = _first(grid, _labels(headings))
    return _column(grid, at) if at is not None else ["" for _ in grid.rows]


def without_index(grid: Grid) -> Grid:
    """``grid`` without a first column of row numbers, which pandas and R print, if other columns name the rows."""
    if not _has_index(grid):
        return grid
    others = [at for at, title in enumerate(grid.titles) if at and names_rows(title)]
    if not any(_has_words(grid, at) for at in others):
        return grid
    rows = [(index, cells[1:], section) for index, cells, section in grid.rows]
    return grid._replace(titles=grid.titles[1:], rows=rows)


def _has_index(grid: Grid) -> bool:
    """Return whether the first column contains row numbers, from 0 (pandas) or from 1 (R)."""
    if not _INDEX.fullmatch(grid.titles[0].strip()):
        return False
    counted = [cells[0].strip("\"' ") for _, cells, _ in grid.rows]
    from_zero = list(map(str, range(len(counted))))
    from_one = [*from_zero[1:], str(len(counted))]
    return len(counted) > 1 and counted in (from_zero, from_one)


def _has_words(grid: Grid, at: int) -> bool:
    """Return whether a cell of a column is not a number."""
    return not all(map(is_number, _column(grid, at)))


def is_derived(name: str, others: Sequence[str]) -> bool:
    """Return whether the row ``name`` is a difference or scatter of ``others``: ``bfq/none``, ``delta``, ``stddev``."""
    if _DERIVED.fullmatch(name):
        return True
    first, _, other = name.partition("/")
    return {first.strip(), other.strip()} <= set(others)


def summaries(grid: Grid, headings: Sequence[Heading]) -> dict[int, str]:
    """Return names of rows that summarise others, by the index of their lines: ``mean``, ``max``, ``25%``, ``total``.

    A single row is a result. In columns after the first, only summaries of numbered rows (runs) count.
    """
    sums: dict[int, str] = {}
    if all(h.column is None for h in headings):
        return sums
    columns = _labels(headings)
    first = _first(grid, columns)
    indexes = [index for index, _, _ in grid.rows]
    for at in columns:
        texts = _column(grid, at)
        summed = list(_are_summaries(texts))
        others = list(compress(texts, map(not_, summed)))
        is_of_runs = bool(others) and all(map(_has_digit, others))
        names_several = at == first and len(texts) > 1
        if is_of_runs or names_several:
            sums |= compress(zip(indexes, texts, strict=True), summed)
    return sums


def _are_summaries(texts: Sequence[str]) -> Iterator[bool]:
    """Yield whether each text names a summary; quantiles do only next to another summary."""
    some = any(map(_SUMMARY.fullmatch, texts))
    for text in texts:
        is_sum = _SUMMARY.fullmatch(text) is not None
        yield is_sum or (some and _QUANTILE.fullmatch(text) is not None)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _labels(headings: Sequence[Heading]) -> list[int]:
    return [at for at, h in enumerate(headings) if h.column is None and not h.refused]


def _first(grid: Grid, columns: Sequence[int]) -> int | None:
    """Return the first column of names, preferably one with words; None without any."""
    worded = (at for at in columns if _has_words(grid, at))
    return next(worded, next(iter(columns), None))


def _column(grid: Grid, at: int) -> list[str]:
    return [plain(cells[at]) if at < len(cells) else "" for _, cells, _ in grid.rows]


def nameless(headings: Sequence[Heading], rows: Sequence[Row]) -> tuple[str, ...]:
    """Titles of columns with a number of the result that is not read: ``max``, ``延迟(us)``.

    Empty unless the other names distinguish the rows equally well: otherwise ``min`` and ``max`` may be settings.
    """
    names = [at for at, h in enumerate(headings) if h.column is None]
    results = [at for at in names if _is_result(headings[at].title, rows, at)]
    others = [at for at in names if at not in results]
    if others and _distinct(rows, others) < _distinct(rows, names):
        return ()
    return tuple(clean(headings[at].title) for at in results)


def _is_result(title: str, rows: Sequence[Row], at: int) -> bool:
    """Return whether a column may be a number of the result; rows that end before it are ignored."""
    texts = (cells[at] for _, cells, _ in rows if at < len(cells))
    return _may_be_result(title) and all(map(is_number, texts))


def _may_be_result(title: str) -> bool:
    """Return whether a title names a statistic, or a short time that is not a setting."""
    is_time = _SHORT_TIME.search(title) is not None and not _SET_TIME.search(title)
    return is_statistic(title) or is_time


def _distinct(rows: Sequence[Row], places: Sequence[int]) -> int:
    """Return how many rows the columns at ``places``, and the sections, distinguish."""
    distinct = set()
    for _, cells, section in rows:
        distinct.add((section, *(cells[at] for at in places if at < len(cells))))
    return len(distinct)
