"""The cache lines that move between two CPUs for an I/O, by cell, from the boots of a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Literal

import msgspec

from iodelta.errors import MeasureError
from iodelta.lab.folder import Folder
from iodelta.path.moved import Names, Phase, SharedLine, births, phases, shared_line
from iodelta.path.output import median_of, sections, unpacked
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


class CellMade(msgspec.Struct, frozen=True):
    """What a guest wrote of one cell."""

    reason: str = ""
    """Why it could not be measured."""
    births: tuple[str, ...] = ()
    """Allocations of the kernel, a line each."""
    tags: str = ""
    """Whether the tags of both CPUs begin ``apart``, in words of their own: else ``shared``, or ``unknown``."""


class Output(msgspec.Struct, frozen=True):
    """What a guest wrote to its second serial port."""

    release: str
    cells: dict[int, CellMade]
    symbols: str


def read(data: bytes, place: str) -> Output:
    """Return a guest's output. Raises MeasureError for one that is not whole."""
    parts = list(sections(data.decode("utf-8", "replace")))
    heads = [head for head, _ in parts]
    whole = len(heads) >= 3 and heads[0].startswith("boot ") and heads[-1] == "end"
    if not whole:
        raise MeasureError("the guest's output is not whole", place=place)
    cells: dict[int, CellMade] = {}
    symbols, number = "", -1
    for head, lines in parts[1:-1]:
        word, _, rest = head.partition(" ")
        if word == "symbols":
            symbols = unpacked("".join(lines), place)
        elif word == "cell" and rest.isdigit():
            number = int(rest)
            cells[number] = CellMade()
        elif number in cells and word in ("tags", "births", "reason"):
            cells[number] = _with(cells[number], word, rest, lines)
        else:
            raise MeasureError(
                f"unexpected {head[:80]!r} in the guest's output", place=place
            )
    return Output(heads[0].removeprefix("boot "), cells, symbols)


def _with(cell: CellMade, word: str, rest: str, lines: Sequence[str]) -> CellMade:
    """Return a cell with one more section of the guest's output."""
    if word == "reason":
        return CellMade(reason=rest)
    if word == "tags":
        return msgspec.structs.replace(cell, tags=rest)
    return msgspec.structs.replace(cell, births=tuple(lines))


class _Boot(msgspec.Struct, frozen=True):
    """A boot that ended well."""

    plan: BootPlan
    output: Output
    phases: Mapping[int, Phase]
    """By cell."""


def sharing(folder: Folder, plan: PathPlan, sound: Sequence[BootPlan]) -> Sharing:
    """Return what ``sound`` boots of a folder say. Raises MeasureError for raw output that is damaged."""
    boots = [_boot(folder, boot) for boot in sound if boot.purpose != "again"]
    cells = tuple(_cells(plan, boots))
    problems = dict.fromkeys(_problems(plan, boots))
    shifts = tuple(_shifts(plan, cells, boots))
    return Sharing(
        cells=cells,
        shifts=shifts,
        problems=tuple(problems),
        panics=tuple(_panics(folder, plan)),
    )


def _boot(folder: Folder, boot: BootPlan) -> _Boot:
    place = boot.place(folder)
    output = read(folder.read_raw(boot.number, "out"), place)
    counted = phases(folder.read_raw(boot.number, "counts"), place)
    by_cell = {number - 1: phase for number, phase in counted.items() if phase.ios}
    return _Boot(boot, output, by_cell)


def _panics(folder: Folder, plan: PathPlan) -> Iterator[Panics]:
    """Boots that qemu ended with a panic of the kernel, and how often."""
    for boot in plan.boots:
        if folder.has_raw(boot.number, "panics"):
            consoles = folder.read_raw(boot.number, "panics")
            times = consoles.count(b"Kernel panic - not syncing")
            yield Panics(boot.number, boot.variant, times)


def _problems(plan: PathPlan, boots: Sequence[_Boot]) -> Iterator[str]:
    for boot in boots:
        for number, cell in boot.output.cells.items():
            if cell.reason:
                name = plan.experiment.cells[number].name
                yield f"{boot.plan.variant}, {name}: {cell.reason}"


def _cells(plan: PathPlan, boots: Sequence[_Boot]) -> Iterator[SharedCell]:
    """Yield every cell of every variant that was counted, with the medians of its boots at other layouts."""
    exact = _exact(boots)
    for (number, cell), arm in product(enumerate(plan.experiment.cells), plan.arms):
        boot = exact.get(arm.variant)
        if boot is not None and number in boot.phases:
            layouts = _medians(boots, arm.variant, number)
            yield _cell(cell.name, arm.variant, number, boot, layouts)


def _exact(boots: Sequence[_Boot]) -> dict[str, _Boot]:
    """Return the boot of each variant whose counts are judged."""
    return {boot.plan.variant: boot for boot in boots if boot.plan.purpose == "exact"}


def _medians(boots: Sequence[_Boot], variant: str, number: int) -> list[float]:
    """Return the medians of a cell in those boots of a variant at other layouts that counted it."""
    medians = []
    for boot in boots:
        is_layout = (boot.plan.variant, boot.plan.purpose) == (variant, "layout")
        if is_layout and number in boot.phases:
            medians.append(median(boot.phases[number]))
    return medians


def _cell(
    name: str, variant: str, number: int, boot: _Boot, layouts: Sequence[float]
) -> SharedCell:
    phase = boot.phases[number]
    made = boot.output.cells.get(number, CellMade())
    names = Names(boot.output.symbols, births(made.births))
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
        tags=made.tags,
        lines=tuple(lines),
    )


def median(phase: Phase) -> float:
    """Moves of the middle I/O; the mean of the two middle ones of an even number."""
    return median_of(sorted(phase.moves.items()), phase.ios)


def _shifts(
    plan: PathPlan, cells: Sequence[SharedCell], boots: Sequence[_Boot]
) -> Iterator[SharingShift]:
    """Yield each pair of variants in each cell: the shift, or why there is none."""
    by_name = {(cell.cell, cell.variant): cell for cell in cells}
    numbered = enumerate(plan.experiment.cells)
    for (number, cell), (against, variant) in product(numbered, plan.pairs):
        before = by_name.get((cell.name, against))
        after = by_name.get((cell.name, variant))
        if before is not None and after is not None:
            yield _shift(before, after)
            continue
        reasons = _missing(boots, number, (against, variant))
        yield SharingShift(
            cell=cell.name,
            against=against,
            variant=variant,
            baseline=before.median if before else None,
            value=after.median if after else None,
            change=None,
            low=None,
            high=None,
            word="no verdict",
            reason="; ".join(reasons),
        )


def _missing(
    boots: Sequence[_Boot], number: int, pair: tuple[str, str]
) -> Iterator[str]:
    """Yield why a cell of a pair of variants has no counts."""
    exact = _exact(boots)
    for name in pair:
        boot = exact.get(name)
        if boot is None:
            yield f"{name}: did not boot to its end"
        elif number not in boot.phases:
            made = boot.output.cells.get(number, CellMade())
            yield f"{name}: {made.reason or 'no I/O was counted'}"


def _shift(before: SharedCell, after: SharedCell) -> SharingShift:
    """Return how many more lines move; no verdict if chance decided in which line a counter is."""
    change = after.median - before.median
    word, reason = _word(change, before, after), ""
    for cell in (after, before):
        if cell.tags in BY_CHANCE:
            word, reason = "no verdict", f"{cell.variant}: {BY_CHANCE[cell.tags]}"
    return SharingShift(
        cell=before.cell,
        against=before.variant,
        variant=after.variant,
        baseline=before.median,
        value=after.median,
        change=change,
        low=after.low - before.high,
        high=after.high - before.low,
        word=word,
        reason=reason,
    )


def _word(change: float, before: SharedCell, after: SharedCell) -> Word:
    """Medians are whole numbers, so half a line is a change, unless another layout changes as much."""
    sweep = max(before.high - before.low, after.high - after.low)
    if abs(change) < CERTAIN or abs(change) <= sweep:
        return "same"
    return "more" if change > 0 else "fewer"


def summary(cell: SharedCell) -> str:
    """Return what moves for an I/O, in a sentence without its end: the lines of at least half of all I/Os."""
    unit = "line" if cell.median == 1 else "lines"
    count = f"{cell.median:.2f} {unit} per I/O"
    regular = [line for line in cell.lines if line.moved >= 0.5]
    if not regular:
        return count
    return f"{count}: {'; '.join(map(_described, regular[:SUMMED]))}"


SUMMED = 3
"""Lines that a sentence names."""


def _described(line: SharedLine) -> str:
    by = list(line.writers or line.readers)[:3]
    what = "written by" if line.writers else "read by"
    name = line.name or "a line of unknown birth"
    false = ", falsely shared" if line.false_share > 0.5 else ""
    return f"{re.sub(', .*', ' and others', name)}{false}, {what} {', '.join(by)}"
