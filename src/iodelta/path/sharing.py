"""The cache lines that move between two CPUs for an I/O, by cell, from the boots of a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal

import msgspec

from iodelta.lab.folder import Folder
from iodelta.path.moved import Names, Phase, SharedLine, births, phases, shared_line
from iodelta.path.output import CellOutput, Output, median_of, read
from iodelta.path.plan import BootPlan, PathPlan

BLIND = (
    "Moves of cache lines between two emulated CPUs, not time: what a move costs depends on the machine. One "
    "interleaving of many: the CPUs do whole I/Os in turn, so that lines which only move while both are inside an I/O "
    "are not seen. Caches have no size here, and there is no NUMA, no prefetch and no out-of-order execution; page "
    "walks, devices and idle CPUs are not seen. The code is the one that the kernel runs on CPU model qemu64; the "
    "emulated device is part of the kernel under test."
)
"""What this kind of measurement cannot see; every report contains it."""

LEAST = 0.01
"""Moves or invalidations per I/O below which a line is left out: ticks, and what the kernel does in the background."""

CERTAIN = 0.5
"""Lines per I/O by which a median must change: it is a whole number, or between two."""

BY_CHANCE: Mapping[str, str] = {
    "unknown": "whether the tags of both CPUs come from one word of their bitmap, by chance, is not known: "
    "this kernel lacks CONFIG_BLK_DEBUG_FS (with null_blk.submit_queues=2 each CPU has a bitmap of its own)",
    "shared": "the tags of both CPUs come from one word of their bitmap, by chance",
}
"""Why the lines that move under one kernel say nothing about another: kernels of one history moved 1 to 4."""

Word = Literal["more", "fewer", "same", "no verdict"]


class SharedCell(msgspec.Struct, frozen=True):
    """A cell under a variant: cache lines that move between CPUs for an I/O."""

    cell: str
    variant: str
    median: float
    """Moves of an I/O, in the boot without random numbers."""
    mean: float
    """With ticks of the timer, and what the kernel does in the background."""
    false: float
    """Moves of an I/O, in the mean, after which the CPU touched no byte that the other had written."""
    ios: int
    """I/Os of both CPUs."""
    moves: tuple[tuple[int, float], ...]
    """Numbers of moves with the share of I/Os that had so many, the commonest first."""
    layouts: tuple[float, ...]
    """Medians of the boots of the layout sweep."""
    tags: str
    """Whether the tags of both CPUs begin ``apart``, in words of their own: else ``shared``, or ``unknown``."""
    lines: tuple[SharedLine, ...]
    """Lines that moved or were invalidated in at least a hundredth of all I/Os, those that move most first."""

    @property
    def low(self) -> float:
        """Return the least median of all its boots."""
        return min((self.median, *self.layouts))

    @property
    def high(self) -> float:
        """Return the largest."""
        return max((self.median, *self.layouts))


class SharingShift(msgspec.Struct, frozen=True):
    """A variant against the baseline in one cell: moved lines per I/O."""

    cell: str
    against: str
    """What it is compared with: the baseline, or in a row of kernels the one before."""
    variant: str
    baseline: float | None
    value: float | None
    change: float | None
    """From median to median of the boots without random numbers."""
    low: float | None
    high: float | None
    """The least and the largest change between any two layouts of both."""
    word: Word
    reason: str = ""
    """Why there is no verdict."""


class Panics(msgspec.Struct, frozen=True):
    """A boot that panicked under qemu before the guest's script began; the run repeated it."""

    boot: int
    variant: str
    times: int
    """How often it panicked."""


class Sharing(msgspec.Struct, frozen=True):
    """Everything that boots with two CPUs say."""

    cells: tuple[SharedCell, ...] = ()
    shifts: tuple[SharingShift, ...] = ()
    """Every variant against the baseline; in a row of kernels each against the one before, and last against first."""
    problems: tuple[str, ...] = ()
    """Cells that could not be measured, with reasons."""
    panics: tuple[Panics, ...] = ()
    """Boots that panicked before the guest's script began."""


def sharing(folder: Folder, plan: PathPlan, sound: Sequence[BootPlan]) -> Sharing:
    """Return what ``sound`` boots of a folder say. Raises MeasureError for raw output that is damaged."""
    boots: dict[tuple[str, str, int], tuple[Output, dict[int, Phase]]] = {}
    problems: dict[str, None] = {}
    for boot in sound:
        if boot.purpose != "again":
            place = boot.place(folder)
            output = read(folder.read_raw(boot.number, "out"), place)
            counted = phases(folder.read_raw(boot.number, "counts"), place)
            by_cell = {
                number - 1: phase for number, phase in counted.items() if phase.ios
            }
            boots[boot.variant, boot.purpose, boot.seed] = (output, by_cell)
            for number, made in output.cells.items():
                if made.reason:
                    name = plan.experiment.cells[number].name
                    problems[f"{boot.variant}, {name}: {made.reason}"] = None
    cells: dict[tuple[int, str], SharedCell] = {}
    for (number, cell), arm in product(enumerate(plan.experiment.cells), plan.arms):
        exact = boots.get((arm.variant, "exact", 0))
        if exact is not None and number in exact[1]:
            layouts = [
                median(counts[number])
                for (variant, purpose, _), (_, counts) in boots.items()
                if (variant, purpose) == (arm.variant, "layout") and number in counts
            ]
            made = exact[0].cells.get(number, CellOutput())
            names = Names(exact[0].symbols, births(made.births))
            cells[number, arm.variant] = _cell(
                cell.name, arm.variant, exact[1][number], made.tags, names, layouts
            )
    shifts = []
    for (number, cell), pair in product(enumerate(plan.experiment.cells), plan.pairs):
        before, after = (cells.get((number, name)) for name in pair)
        if before is not None and after is not None:
            shifts.append(_shift(before, after))
            continue
        reasons = []
        for name in pair:
            exact = boots.get((name, "exact", 0))
            if exact is None:
                reasons.append(f"{name}: did not boot to its end")
            elif number not in exact[1]:
                reason = exact[0].cells.get(number, CellOutput()).reason
                reasons.append(f"{name}: {reason or 'no I/O was counted'}")
        values = (before.median if before else None, after.median if after else None)
        shifts.append(
            SharingShift(
                cell.name,
                *pair,
                *values,
                None,
                None,
                None,
                "no verdict",
                "; ".join(reasons),
            )
        )
    panics = []
    for boot in plan.boots:
        if folder.has_raw(boot.number, "panics"):
            times = folder.read_raw(boot.number, "panics").count(
                b"Kernel panic - not syncing"
            )
            panics.append(Panics(boot.number, boot.variant, times))
    return Sharing(tuple(cells.values()), tuple(shifts), tuple(problems), tuple(panics))


def _cell(
    name: str,
    variant: str,
    phase: Phase,
    tags: str,
    names: Names,
    layouts: Sequence[float],
) -> SharedCell:
    lines = [
        shared_line(line, phase, names)
        for line in phase.lines
        if max(line.moved, line.invalidated) >= LEAST * phase.ios
    ]
    lines.sort(key=lambda line: (-line.moved, -line.invalidated, line.name))
    moved = sum(line.moved for line in phase.lines)
    shared = sum(line.shared for line in phase.lines)
    common = sorted(phase.moves.items(), key=lambda pair: (-pair[1], pair[0]))
    return SharedCell(
        cell=name,
        variant=variant,
        median=median(phase),
        mean=moved / phase.ios,
        false=(moved - shared) / phase.ios,
        ios=phase.ios,
        moves=tuple((count, ios / phase.ios) for count, ios in common[:5]),
        layouts=tuple(layouts),
        tags=tags,
        lines=tuple(lines),
    )


def median(phase: Phase) -> float:
    """Moves of the middle I/O; the mean of the two middle ones of an even number."""
    return median_of(sorted(phase.moves.items()), phase.ios)


def _shift(before: SharedCell, after: SharedCell) -> SharingShift:
    """Return how many more lines move; no verdict if chance decided in which line a counter is. Medians are whole
    numbers, so half a line is a change, unless another layout changes as much."""
    change = after.median - before.median
    sweep = max(before.high - before.low, after.high - after.low)
    word: Word = "more" if change > 0 else "fewer"
    if abs(change) < CERTAIN or abs(change) <= sweep:
        word = "same"
    reason = ""
    for cell in (after, before):
        if cell.tags in BY_CHANCE:
            word, reason = "no verdict", f"{cell.variant}: {BY_CHANCE[cell.tags]}"
    values = (
        before.median,
        after.median,
        change,
        after.low - before.high,
        after.high - before.low,
    )
    return SharingShift(
        before.cell, before.variant, after.variant, *values, word, reason
    )


SUMMED = 3
"""Lines that a sentence names."""


def summary(cell: SharedCell) -> str:
    """Return what moves for an I/O, in a sentence without its end: the lines of at least half of all I/Os."""
    unit = "line" if cell.median == 1 else "lines"
    described = []
    for line in cell.lines:
        if line.moved >= 0.5:
            by = list(line.writers or line.readers)[:3]
            what = "written by" if line.writers else "read by"
            name = re.sub(", .*", " and others", line.name or "a line of unknown birth")
            false = ", falsely shared" if line.false_share > 0.5 else ""
            described.append(f"{name}{false}, {what} {', '.join(by)}")
    count = f"{cell.median:.2f} {unit} per I/O"
    return f"{count}: {'; '.join(described[:SUMMED])}" if described else count
