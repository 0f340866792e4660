"""Two sides of a comparison: whose runs they are, which cells they share, and in what else they differ."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

import msgspec

from iodelta.errors import RequestError
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
"""Names that people give to the baseline, where it is not the first path."""

APART = 3600.0
"""Seconds between the last run of one side and the first of the other that are worth saying."""


class Side(msgspec.Struct, frozen=True):
    """One side: its name and its runs by cell."""

    name: str
    entries: tuple[Entry, ...]

    def cells(self) -> dict[str, list[Entry]]:
        """The runs of each cell; where a side holds several variants, they are cells of their own."""
        several = len({entry.variant for entry in self.entries}) > 1
        entries: dict[str, list[Entry]] = {}
        for entry in self.entries:
            parts = (entry.cell, entry.condition, entry.variant if several else "")
            entries.setdefault(", ".join(part for part in parts if part), []).append(
                entry
            )
        return entries


def sides_of(
    layouts: Sequence[Layout], paths: Sequence[str], baseline: str | None
) -> tuple[Side, ...]:
    """The sides, the baseline first: the variants of one path, or one side for each path. Raises RequestError."""
    sides = (
        _variants_of(layouts[0], paths[0])
        if len(layouts) == 1
        else _one_each(layouts, paths)
    )
    if baseline is None:
        return tuple(sides)
    chosen = [side for side in sides if side.name == baseline]
    if not chosen:
        remedy = f"sides are {', '.join(side.name for side in sides)}"
        raise RequestError(
            f"there is no side {baseline!r}", place="--baseline", remedy=remedy
        )
    return (*chosen, *(side for side in sides if side.name != baseline))


def _variants_of(layout: Layout, path: str) -> list[Side]:
    names = layout.variants()
    if len(names) < 2:
        raise RequestError(
            f"there is only one side{f', {names[0]}' if names else ''}",
            place=path,
            remedy="give a second path, or --name-pattern '{variant}/...' where the variants are in the names",
        )
    entries: dict[str, list[Entry]] = {name: [] for name in names}
    for entry in layout.entries:
        if entry.variant in entries:
            entries[entry.variant].append(entry)
    return [
        Side(name, tuple(entries[name]))
        for name in sorted(names, key=lambda name: name.casefold() not in BEFORE)
    ]


def _one_each(layouts: Sequence[Layout], paths: Sequence[str]) -> list[Side]:
    names = short_names(paths)
    return [
        Side(name, tuple(entries))
        for name, entries in zip(names, _named_together(layouts), strict=True)
    ]


def _named_together(layouts: Sequence[Layout]) -> list[list[Entry]]:
    """The entries of each side. Those of no known naming get their cells' names from all sides together, so that they
    match. Variants inside the sides are compared separately where all sides hold the same ones."""
    sides = [list(layout.entries) for layout in layouts]
    if any(layout.kind != "content" for layout in layouts):
        return sides
    names = cell_names([entry.run for entry in chain.from_iterable(sides)])
    sides = _split(
        [
            _celled(entry, name)
            for entry, name in zip(chain.from_iterable(sides), names, strict=True)
        ],
        sides,
    )
    matching = _matching_cells(sides)
    every = chain.from_iterable(sides)
    sides = _split(
        [
            entry if entry.cell in matching else _without_variant(entry)
            for entry in every
        ],
        sides,
    )
    arms: list[tuple[int, str]] = []
    for number, side in enumerate(sides):
        arms += [(number, entry.variant) for entry in side]
    return _split(apart(list(chain.from_iterable(sides)), arms), sides)


def _split(
    entries: Iterable[Entry], sides: Sequence[Sequence[Entry]]
) -> list[list[Entry]]:
    """One row of entries, cut into sides as long as these."""
    left = iter(entries)
    return [list(islice(left, len(side))) for side in sides]


def _celled(entry: Entry, cell: str) -> Entry:
    return msgspec.structs.replace(entry, cell=cell)


def _without_variant(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, variant="")


def _matching_cells(sides: Sequence[Sequence[Entry]]) -> set[str]:
    """Cells that have the same several variants on all sides."""
    first, *others = map(_variants, sides)
    matching = set(first)
    for held in others:
        matching &= {cell for cell in matching if held.get(cell) == first[cell]}
    return matching


def _variants(entries: Iterable[Entry]) -> dict[str, set[str]]:
    """The variants of each cell that has several, other than numbers of replicates."""
    variants: dict[str, set[str]] = {}
    for entry in entries:
        variants.setdefault(entry.cell, set()).add(entry.variant)
    return {
        cell: names
        for cell, names in variants.items()
        if len(names) > 1 and not all(map(is_number, names))
    }


def short_names(paths: Sequence[str]) -> list[str]:
    """Paths as short as they can be and still differ: their last parts, without what all have in common before."""
    parts = [os.path.normpath(path).split(os.sep) for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def shared_cells(
    baseline: Side, variant: Side
) -> tuple[dict[str, tuple[list[Entry], list[Entry]]], tuple[str, ...]]:
    """The cells of both sides, and the names of those of one side only. Where each side has one cell and they are not
    called the same, they are compared all the same: the differences say what is wrong with that."""
    old, other = baseline.cells(), variant.cells()
    shared = {name: (old[name], other[name]) for name in old if name in other}
    if not shared and len(old) == len(other) == 1:
        (first, a), (second, b) = *old.items(), *other.items()
        return {f"{first} against {second}": (a, b)}, ()
    left = [f"{name} ({baseline.name})" for name in old if name not in other]
    return shared, (
        *left,
        *(f"{name} ({variant.name})" for name in other if name not in old),
    )


def differences(
    pairs: Iterable[tuple[Sequence[Entry], Sequence[Entry]]],
) -> tuple[Differing, ...]:
    """What else differs between the sides, over all cells compared."""
    pairs_apart: dict[tuple[str, str, str], None] = {}
    ends_of_one: list[float] = []
    ends_of_other: list[float] = []
    for old, other in pairs:
        a, b = (
            [_facts(entry.run) for entry in old],
            [_facts(entry.run) for entry in other],
        )
        for what in dict.fromkeys(chain.from_iterable((*a, *b))):
            before, after = _values(a, what), _values(b, what)
            if before != after:
                pairs_apart[what, ", ".join(before), ", ".join(after)] = None
        ends_of_one += _ends(old)
        ends_of_other += _ends(other)
    given = [_differing(what, before, after) for what, before, after in pairs_apart]
    return tuple(
        sorted(
            (*given, *_apart(ends_of_one, ends_of_other)),
            key=lambda differing: not differing.likely,
        )
    )


def _ends(side: Sequence[Entry]) -> list[float]:
    """When its runs ended, in Unix seconds, of those that say so in a known time zone."""
    runs = [entry.run for entry in side]
    return [run.ended for run in runs if run.ended is not None and not run.local_time]


def _differing(what: str, old: str, other: str) -> Differing:
    group, why, likely = option_of(what, grave=what in GRAVE)
    return Differing(what, old, other, group, why, likely)


def _values(facts: Sequence[Mapping[str, str]], what: str) -> tuple[str, ...]:
    return tuple(sorted({own.get(what, "not given") for own in facts}))


def _facts(run: Run) -> dict[str, str]:
    work = run.workload
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
        "devices": " ".join(disk.name for disk in run.disks if not disk.member),
        "filename": run.options.get("filename"),
    }
    facts = {
        name: str(value) for name, value in asked.items() if value not in (None, "")
    }
    return {
        name: value
        for name, value in run.options.items()
        if name not in NO_VARIANT and name not in facts
    } | facts


def _apart(old: Sequence[float], other: Sequence[float]) -> tuple[Differing, ...]:
    """The time between the sides, when one was run well before the other."""
    if not old or not other:
        return ()
    gap = max(min(other) - max(old), min(old) - max(other))
    if gap < APART:
        return ()
    return (_differing("run at (UTC)", _span(old), _span(other)),)


def _span(times: Sequence[float]) -> str:
    """``2026-01-02 03:04 to 2026-01-02 05:06``; one of them where both are the same."""
    ends = [
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(end))
        for end in (min(times), max(times))
    ]
    return " to ".join(dict.fromkeys(ends))
