"""Hand-made tables: which variant and cell a row belongs to, and whether it was measured under a load."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from iodelta.audit.columns import naming
from iodelta.audit.model import Evidence
from iodelta.audit.numbers import known, number, parts
from iodelta.ingest import Run

if TYPE_CHECKING:
    from iodelta.ingest.layouts import Entry, Layout

_LOADED = re.compile(r"\b(?:with|on|loaded|load|busy)\b", re.IGNORECASE)
_IDLE = re.compile(r"\b(?:no|without|off|idle|unloaded)\b", re.IGNORECASE)
_BESIDE = re.compile(
    r"\b(?:(?:un)?load(?:ed)?|idle|busy|background|defrag\w*|scrub\w*)\b", re.IGNORECASE
)
"""A heading or cell with one of these words is about a load; one about a write cache is not."""

_COMPARED = re.compile(
    r"\b(?:variant|policy|kernel|scheduler|elevator|governor|commit)\b", re.IGNORECASE
)
"""Headings of what people compare. A kernel release looks like a number."""

SECTION = "section"
"""The key under which readers keep the heading of a part of a table (``With Defrag``)."""


def variant_column(run: Run) -> str | None:
    """Return the column of the variants: one with such a heading, else the last that names the row and is not a number."""
    names = naming(run)
    names.pop(SECTION, None)
    titles = list(reversed(names))
    called = next(filter(_COMPARED.search, titles), None)
    worded = (title for title in titles if number(names[title]) is None)
    return called or next(worded, None)


def variant(run: Run) -> str:
    """Return the variant of a row: the cell in its variant column."""
    title = variant_column(run)
    if not title:
        return ""
    return run.labels[title]


def cell(run: Run) -> tuple[str, ...]:
    """Return the names of a row except its variant."""
    return tuple(_other_names(run).values())


def _other_names(run: Run) -> dict[str, str]:
    """Return the cells that name a row except its variant, by title."""
    names = naming(run)
    title = variant_column(run)
    if title is not None:
        del names[title]
    return names


def context(run: Run) -> str:
    """Return the title of the table and the names of a row except its variant, as one text."""
    return " ".join(text for text, _ in _context(run))


def load(run: Run) -> Literal["idle", "loaded"] | None:
    """Return whether the title or the names of a row say that it was measured with or without a load; None if neither."""
    text = " ".join(part for part, of_load in _context(run) if of_load)
    if _IDLE.search(text):
        return "idle"
    return "loaded" if _LOADED.search(text) else None


def without_load(run: Run) -> Hashable:
    """Return a key that a row shares with the same row under load."""
    parts: list[str] = []
    for part, of_load in _context(run):
        parts.append(_LOADED.sub(" ", _IDLE.sub(" ", part)) if of_load else part)
    words = re.findall(r"[\w.]+", " ".join(parts).casefold())
    return (run.place.file, variant(run), workload(run), tuple(words))


def _context(run: Run) -> Iterator[tuple[str, bool]]:
    """Yield each part of ``context``, and whether it is about a load."""
    for title, text in (("", run.table), *_other_names(run).items()):
        yield text, _BESIDE.search(f"{title} {text}") is not None


def workload(run: Run) -> Hashable:
    """Return the workload of a row; the default for jobs is 1."""
    work = run.workload
    return (work.rw, work.bs, work.iodepth, work.numjobs or 1)


def groups(evidence: Evidence) -> Iterator[tuple[int, ...]]:
    """Groups of rows that differ only in their variant, in the order of the table."""
    members: dict[Hashable, list[int]] = {}
    for index, run in evidence.rows():
        if variant_column(run) is not None:
            key = (run.place.file, run.table, cell(run), tuple(run.labels))
            members.setdefault(key, []).append(index)
    return map(tuple, members.values())


def rate(run: Run) -> float | None:
    """I/Os per second over all directions; None if unknown or zero."""
    rates = [direction.iops for direction in parts(run)]
    if not rates or not all(map(known, rates)):
        return None
    total = sum(iops.value for iops in rates)
    return total if total > 0 else None


def with_tables_named(layout: Layout) -> Layout:
    """Return the layout with the variant and cell of each table row taken from the names in its table."""
    return msgspec.structs.replace(layout, entries=tuple(map(_named, layout.entries)))


def _named(entry: Entry) -> Entry:
    run = entry.run
    if run.format != "table" or variant_column(run) is None:
        return entry
    place = ": ".join(filter(None, (run.table, ", ".join(cell(run)))))
    return msgspec.structs.replace(entry, cell=place or "table", variant=variant(run))
