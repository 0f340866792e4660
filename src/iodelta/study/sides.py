"""The sides of a comparison: their runs, the cells that they share, and what else differs between them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

import msgspec

from iodelta.errors import RequestError
from iodelta.grouping import grouped
from iodelta.ingest import Run
from iodelta.ingest.layouts import Entry, Layout
from iodelta.ingest.layouts.content import NO_VARIANT, apart, cell_names, is_number
from iodelta.study.confounders import Differing, option_of

GRAVE = (
    *(
        "rw",
        "bs",
        "iodepth",
        "numjobs",
        "ioengine",
        "direct",
        "fio",
        "clocksource",
        "rate",
        "rate_iops",
        "size",
    ),
    *("fsync", "fdatasync", "sync", "thinktime", "latency", "interval between sides"),
)
"""Differences that by themselves change what is measured."""

BEFORE = frozenset(
    "a base baseline before control good old orig original reference stock unpatched vanilla".split()
)
"""Names that people give to a baseline."""

APART = 3600.0
"""Minimum time between the sides, in seconds, that is reported."""


class Side(msgspec.Struct, frozen=True):
    """One side: its name and its runs by cell."""

    name: str
    entries: tuple[Entry, ...]

    def cells(self) -> dict[str, list[Entry]]:
        """The runs of each cell; where a side holds several variants, they are cells of their own."""
        several = len({entry.variant for entry in self.entries}) > 1

        def name(entry: Entry) -> str:
            variant = entry.variant if several else ""
            return ", ".join(filter(None, (entry.cell, entry.condition, variant)))

        return grouped(self.entries, name)


def sides_of(
    layouts: Sequence[Layout], paths: Sequence[str], baseline: str | None
) -> tuple[Side, ...]:
    """Return the sides, the baseline first: the variants of one path, or one side for each path. Raises RequestError."""
    several = len(layouts) > 1
    sides = _one_each(layouts, paths) if several else _variants_of(layouts[0], paths[0])
    if baseline is None:
        return tuple(sides)
    names = [side.name for side in sides]
    if baseline not in names:
        raise RequestError(
            f"there is no side {baseline!r}",
            place="--baseline",
            remedy=f"sides are {', '.join(names)}",
        )
    return tuple(sorted(sides, key=lambda side: side.name != baseline))


def _variants_of(layout: Layout, path: str) -> list[Side]:
    """Return one side for each variant; a name of a baseline first, else in their order."""
    names = layout.variants()
    if len(names) < 2:
        only = f", {names[0]}" if names else ""
        raise RequestError(
            f"there is only one side{only}",
            place=path,
            remedy="give a second path, or --name-pattern '{variant}/...' where the variants are in the names",
        )
    entries = grouped(layout.entries, lambda entry: entry.variant)
    in_order = sorted(names, key=lambda name: name.casefold() not in BEFORE)
    return [Side(name, tuple(entries[name])) for name in in_order]


def _one_each(layouts: Sequence[Layout], paths: Sequence[str]) -> list[Side]:
    named = zip(short_names(paths), _named_together(layouts), strict=True)
    return [Side(name, tuple(entries)) for name, entries in named]


def _named_together(layouts: Sequence[Layout]) -> list[list[Entry]]:
    """Return the entries of each side. If no names identify cells, all sides together give the cells their names, so
    that they match. Variants inside the sides are compared separately if all sides hold the same ones."""
    sides = [list(layout.entries) for layout in layouts]
    if any(layout.kind != "content" for layout in layouts):
        return sides
    entries = list(chain.from_iterable(sides))
    names = cell_names([entry.run for entry in entries])
    entries = list(map(_celled, entries, names))
    matching = _matching_cells(_split(entries, sides))
    entries = [
        entry if entry.cell in matching else msgspec.structs.replace(entry, variant="")
        for entry in entries
    ]
    arms: list[tuple[int, str]] = []
    for number, side in enumerate(_split(entries, sides)):
        arms += [(number, entry.variant) for entry in side]
    return _split(apart(entries, arms), sides)


def _split(
    entries: Iterable[Entry], sides: Sequence[Sequence[Entry]]
) -> list[list[Entry]]:
    """Return the entries of all sides in a row, split into sides as long as these."""
    left = iter(entries)
    return [list(islice(left, len(side))) for side in sides]


def _celled(entry: Entry, cell: str) -> Entry:
    return msgspec.structs.replace(entry, cell=cell)


def _matching_cells(sides: Sequence[Sequence[Entry]]) -> set[str]:
    """Cells that have the same several variants on all sides."""
    first, *others = map(_variants, sides)
    matching = set(first)
    for other in others:
        matching &= {cell for cell in first if other.get(cell) == first[cell]}
    return matching


def _variants(entries: Iterable[Entry]) -> dict[str, set[str]]:
    """Return the variants of each cell that has several, other than numbers of replicates."""
    variants: dict[str, set[str]] = {}
    for entry in entries:
        variants.setdefault(entry.cell, set()).add(entry.variant)
    several = {cell: names for cell, names in variants.items() if len(names) > 1}
    return {
        cell: names for cell, names in several.items() if not all(map(is_number, names))
    }


def short_names(paths: Sequence[str]) -> list[str]:
    """Return the shortest ends of paths that still differ from each other."""
    parts = [os.path.normpath(path).split(os.sep) for path in paths]
    longest = max(map(len, parts))
    for length in range(1, longest + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    # The same path was given twice.
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def shared_cells(
    baseline: Side, variant: Side
) -> tuple[dict[str, tuple[list[Entry], list[Entry]]], tuple[str, ...]]:
    """Return the cells of both sides, and the names of cells that only one side has.

    A single cell on each side is compared even if the names differ: the differences then say what is wrong with that.
    """
    old, other = baseline.cells(), variant.cells()
    shared = {name: (old[name], other[name]) for name in old if name in other}
    if not shared and len(old) == len(other) == 1:
        [(first, runs)], [(second, other_runs)] = old.items(), other.items()
        return {f"{first} against {second}": (runs, other_runs)}, ()
    unmatched = [f"{name} ({baseline.name})" for name in old if name not in shared]
    unmatched += [f"{name} ({variant.name})" for name in other if name not in shared]
    return shared, tuple(unmatched)


def differences(
    pairs: Iterable[tuple[Sequence[Entry], Sequence[Entry]]],
) -> tuple[Differing, ...]:
    """Return what else differs between the sides, over all cells compared; likely confounders first."""
    different: dict[tuple[str, str, str], None] = {}
    ends: list[float] = []
    other_ends: list[float] = []
    for old, other in pairs:
        facts = [_facts(entry.run) for entry in old]
        other_facts = [_facts(entry.run) for entry in other]
        for what in dict.fromkeys(chain.from_iterable((*facts, *other_facts))):
            before, after = _values(facts, what), _values(other_facts, what)
            if before != after:
                different[what, ", ".join(before), ", ".join(after)] = None
        ends += _ends(old)
        other_ends += _ends(other)
    given = [_differing(*values) for values in different]
    given += _apart(ends, other_ends)
    return tuple(sorted(given, key=lambda differing: not differing.likely))


def _ends(side: Sequence[Entry]) -> list[float]:
    """When its runs ended, in Unix seconds; without runs whose time or time zone is unknown."""
    in_known_zone = [entry.run for entry in side if not entry.run.local_time]
    return [run.ended for run in in_known_zone if run.ended is not None]


def _differing(what: str, old: str, other: str) -> Differing:
    group, why, likely = option_of(what, grave=what in GRAVE)
    return Differing(
        what=what, baseline=old, variant=other, group=group, why=why, likely=likely
    )


def _values(facts: Sequence[Mapping[str, str]], what: str) -> tuple[str, ...]:
    values = {of_run.get(what, "not given") for of_run in facts}
    return tuple(sorted(values))


def _facts(run: Run) -> dict[str, str]:
    """Return the options of a run and where it ran, by name; without options that name a variant."""
    work = run.workload
    disks = [disk.name for disk in run.disks if not disk.member]
    asked = {
        "fio": run.fio_version,
        "host": run.host,
        "format": run.format,
        "rw": work.rw,
        "bs": work.bs,
        "iodepth": work.iodepth,
        "numjobs": run.jobs or work.numjobs,
        "ioengine": work.ioengine,
        "direct": None if work.direct is None else int(work.direct),
        "runtime": work.runtime,
        "size": work.size,
        "devices": " ".join(disks),
        "filename": run.options.get("filename"),
    }
    facts = {
        name: str(value) for name, value in asked.items() if value not in (None, "")
    }
    left_out = NO_VARIANT | facts.keys()
    options = {
        name: value for name, value in run.options.items() if name not in left_out
    }
    return options | facts


def _apart(old: Sequence[float], other: Sequence[float]) -> tuple[Differing, ...]:
    """Return the time between the sides, when one was run well before the other."""
    if not old or not other:
        return ()
    gap = max(min(other) - max(old), min(old) - max(other))
    if gap < APART:
        return ()
    return (_differing("run at (UTC)", _span(old), _span(other)),)


def _span(times: Sequence[float]) -> str:
    """``2026-01-02 03:04 to 2026-01-02 05:06``; one of them where both are the same."""
    first, last = time.gmtime(min(times)), time.gmtime(max(times))
    ends = [time.strftime("%Y-%m-%d %H:%M", end) for end in (first, last)]
    return " to ".join(dict.fromkeys(ends))
