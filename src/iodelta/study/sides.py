"""Two sides of a comparison: whose runs they are, which cells they share, and in what else they differ."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from iodelta.errors import RequestError
from iodelta.ingest import Run
from iodelta.ingest.layouts import Entry, Layout
from iodelta.ingest.layouts.content import NO_VARIANT, apart, cell_names, is_number
from iodelta.study.confounders import Differing, option_of

GRAVE = (
    *("rw", "bs", "iodepth", "numjobs", "ioengine", "direct", "fio", "clocksource", "rate", "rate_iops", "size"),
    *("fsync", "fdatasync", "sync", "thinktime", "latency", "interval between sides"),
)
"""Differences that by themselves change what is measured."""

BEFORE = frozenset("a base baseline before control good old orig original reference stock unpatched vanilla".split())
"""What people call the side that others are compared with, when it is no path they gave first."""

APART = 3600.0
"""Seconds between the last run of one side and the first of the other that are worth saying."""


class Side(msgspec.Struct, frozen=True):
    """One side: its name and its runs by cell."""

    name: str
    entries: tuple[Entry, ...]

    def cells(self) -> dict[str, list[Entry]]:
        """The runs of each cell; where a side holds several variants, they are cells of their own."""
        several = len({entry.variant for entry in self.entries}) > 1
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            parts = (entry.cell, entry.condition, entry.variant if several else "")
            found.setdefault(", ".join(part for part in parts if part), []).append(entry)
        return found


def sides_of(layouts: Sequence[Layout], paths: Sequence[str], baseline: str | None) -> tuple[Side, ...]:
    """The sides, the baseline first: the variants of one path, or one side for each path. Raises RequestError."""
    if len(layouts) == 1:
        (layout,) = layouts
        names = layout.variants()
        if len(names) < 2:
            raise RequestError(
                f"there is one side only{f', {names[0]}' if names else ''}",
                place=paths[0],
                remedy="give a second path, or --name-pattern '{variant}/...' where the variants are in the names",
            )
        names = tuple(sorted(names, key=lambda name: name.casefold() not in BEFORE))
        sides = [Side(name, tuple(e for e in layout.entries if e.variant == name)) for name in names]
    else:
        sides = [
            Side(name, layout.entries) for name, layout in zip(short_names(paths), _recelled(layouts), strict=True)
        ]
    if baseline is None:
        return tuple(sides)
    chosen = [side for side in sides if side.name == baseline]
    if not chosen:
        raise RequestError(
            f"there is no side {baseline!r}", place="--baseline", remedy=f"sides are {', '.join(s.name for s in sides)}"
        )
    return (*chosen, *(side for side in sides if side.name != baseline))


def _recelled(layouts: Sequence[Layout]) -> list[Layout]:
    """Layouts of no known naming get their cells' names from all sides together, so that they match. Variants inside
    the sides are told apart where all sides hold the same ones."""
    if any(layout.kind != "content" for layout in layouts):
        return list(layouts)
    names = iter(cell_names([entry.run for layout in layouts for entry in layout.entries]))
    sides = [[msgspec.structs.replace(entry, cell=next(names)) for entry in layout.entries] for layout in layouts]
    held = [_variants(entries) for entries in sides]
    kept = {cell for cell, variants in held[0].items() if all(own.get(cell) == variants for own in held)}
    entries = [
        entry if entry.cell in kept else msgspec.structs.replace(entry, variant="") for side in sides for entry in side
    ]
    numbers = [number for number, side in enumerate(sides) for _ in side]
    own = iter(apart(entries, [(number, entry.variant) for number, entry in zip(numbers, entries, strict=True)]))
    return [
        msgspec.structs.replace(layout, entries=tuple(next(own) for _ in side))
        for layout, side in zip(layouts, sides, strict=True)
    ]


def _variants(entries: Iterable[Entry]) -> dict[str, set[str]]:
    """The variants of each cell that has several which are no numbers of replicates."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        found.setdefault(entry.cell, set()).add(entry.variant)
    return {cell: names for cell, names in found.items() if len(names) > 1 and not all(map(is_number, names))}


def short_names(paths: Sequence[str]) -> list[str]:
    """Paths as short as they can be and still differ: their last parts, without what all have in common before."""
    parts = [os.path.normpath(path).split(os.sep) for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def shared_cells(baseline: Side, variant: Side) -> tuple[dict[str, tuple[list[Entry], list[Entry]]], tuple[str, ...]]:
    """The cells of both sides, and the names of those of one side only. Where each side has one cell and they are not
    called the same, they are compared all the same: the differences say what is wrong with that."""
    one, other = baseline.cells(), variant.cells()
    shared = {name: (one[name], other[name]) for name in one if name in other}
    if not shared and len(one) == len(other) == 1:
        (first, a), (second, b) = *one.items(), *other.items()
        return {f"{first} against {second}": (a, b)}, ()
    left = [f"{name} ({baseline.name})" for name in one if name not in other]
    return shared, (*left, *(f"{name} ({variant.name})" for name in other if name not in one))


def differences(pairs: Iterable[tuple[Sequence[Entry], Sequence[Entry]]]) -> tuple[Differing, ...]:
    """What else differs between the sides, over all cells compared."""
    found: dict[tuple[str, str, str], None] = {}
    ends: tuple[list[float], list[float]] = ([], [])
    for one, other in pairs:
        a, b = ([_facts(entry.run) for entry in side] for side in (one, other))
        for what in dict.fromkeys(name for facts in (*a, *b) for name in facts):
            before, after = _values(a, what), _values(b, what)
            if before != after:
                found[what, ", ".join(before), ", ".join(after)] = None
        for times, side in zip(ends, (one, other), strict=True):
            times += [e.run.ended for e in side if e.run.ended is not None and not e.run.local_time]
    given = [_differing(what, a, b) for what, a, b in found]
    return tuple(sorted((*given, *_apart(*ends)), key=lambda one: not one.likely))


def _differing(what: str, one: str, other: str) -> Differing:
    group, why, likely = option_of(what, grave=what in GRAVE)
    return Differing(what, one, other, group, why, likely)


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
    facts = {name: str(value) for name, value in asked.items() if value not in (None, "")}
    return {name: value for name, value in run.options.items() if name not in NO_VARIANT and name not in facts} | facts


def _apart(one: Sequence[float], other: Sequence[float]) -> tuple[Differing, ...]:
    """The time between the sides, when one was run well before the other."""
    if not one or not other:
        return ()
    gap = max(min(other) - max(one), min(one) - max(other))
    if gap < APART:
        return ()
    shown = [
        " to ".join(dict.fromkeys(time.strftime("%Y-%m-%d %H:%M", time.gmtime(t)) for t in (min(s), max(s))))
        for s in (one, other)
    ]
    return (_differing("run at (UTC)", shown[0], shown[1]),)
