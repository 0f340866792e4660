"""From the boots of a path experiment to what they say. Nothing is estimated: the counts are exact, and what remains is
how much a kernel's address layout moves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from iodelta.errors import MeasureError
from iodelta.lab.folder import Booted, Ended, Folder
from iodelta.path.functions import Symbols, per_io
from iodelta.path.output import CellOutput, Counts, Output, read
from iodelta.path.plan import CERTAIN, BootPlan, PathPlan
from iodelta.path.run import REFUSED, alike, booted
from iodelta.path.tables import Costs, FunctionTable, Timed, in_flight, table
from iodelta.trial import Kind

BLIND = (
    "Instructions on one emulated CPU, not time: caches, TLB misses, lock contention, NUMA, the real cost of "
    "mitigations, other CPUs, interrupts and every real device are not seen. A longer path is not yet slower I/O. "
    "Copies and zeroing count an instruction per iteration, so large blocks weigh too much; the emulated device is "
    "part of the kernel under test."
)
"""What this kind of measurement cannot see: in every report."""

Word = Literal["longer", "shorter", "same", "no verdict"]


class Count(msgspec.Struct, frozen=True):
    """A cell under a variant, one direction: instructions per I/O."""

    cell: str
    variant: str
    kind: Kind
    median: float
    """Of every I/O's own count, in the boot without random numbers."""
    mean: float
    """With timer ticks and refills."""
    modes: tuple[tuple[int, float], ...]
    """The commonest counts with their share of all I/Os."""
    layouts: tuple[float, ...]
    """Medians of the boots of the layout sweep."""
    reads: dict[str, int] = {}
    """Read requests that each member device served."""

    @property
    def low(self) -> float:
        """The least median of all its boots."""
        return min(self.median, *self.layouts) if self.layouts else self.median

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.median, *self.layouts) if self.layouts else self.median


class Shift(msgspec.Struct, frozen=True):
    """A variant against another in one cell: instructions per I/O."""

    cell: str
    against: str
    """What it is compared with: the baseline, or in a row of kernels the one before."""
    variant: str
    kind: Kind
    baseline: float | None
    value: float | None
    change: float | None
    """Instructions more, from median to median of the boots without random numbers."""
    low: float | None
    high: float | None
    """Layout interval: the least and the largest change between any two layouts of both."""
    bar: float | None
    """A change beyond this counts: 10 instructions, or the wider of the two layout sweeps if that is more."""
    word: Word
    reason: str = ""
    """Why there is no verdict."""

    @property
    def share(self) -> float | None:
        """The change as a share of the baseline."""
        return None if self.change is None or not self.baseline else self.change / self.baseline


class Side(msgspec.Struct, frozen=True):
    """One variant and the kernel it booted."""

    variant: str
    release: str
    """`uname -r`."""
    package: str
    """Name and version of the package the kernel came in; empty for another."""
    cmdline: str
    """The boot's parameters."""
    memory: int
    """MiB of the guest."""


class PathAccount(msgspec.Struct, frozen=True):
    """Everything a path experiment says."""

    schema: str
    folder: str
    question: str
    target: str
    """What was measured inside the guest."""
    baseline: str
    sides: tuple[Side, ...]
    """The variants, and what each booted."""
    counts: tuple[Count, ...]
    """Instructions per I/O of every cell under every variant."""
    shifts: tuple[Shift, ...]
    """Every variant against the baseline; in a row of kernels each against the one before, and last against first."""
    functions: tuple[FunctionTable, ...]
    """Where the changes sit."""
    no_functions: str
    """Why there is no table of functions; empty where there is one."""
    self_check: Literal["identical", "different", "not made"]
    """Whether the boot that was made twice gave the same bytes twice; if not, nothing is reported."""
    problems: tuple[str, ...]
    """Boots that failed, and cells that could not be measured, with reasons."""
    blind: str
    """What this kind of measurement cannot see."""
    qemu: str
    """Its version."""
    boots: int
    """Boots made."""
    planned: int
    """Boots planned."""
    seconds: float
    """Wall time from first to last boot."""
    state: str
    row: bool = False
    """Whether the variants are a row of kernels, oldest first."""
    deep: bool = False
    """Whether some cell has several I/Os in flight: a latency then holds the path of those before it too."""

    @property
    def exit_code(self) -> int:
        """0 nothing longer, 1 a longer path, 3 something has no verdict, 4 nothing measured or refused."""
        words = [one.word for one in self.shifts]
        if self.self_check != "identical" or not self.counts:
            return 4
        return 1 if "longer" in words else 3 if "no verdict" in words or not words else 0


def judge(folder: Folder) -> PathAccount:
    """The account of a folder, complete or still being made. Raises MeasureError for a damaged one."""
    plan = folder.read_plan(PathPlan)
    events = folder.events()
    folder.check_journal()
    done = booted(events)
    same = alike(folder, plan, done)
    outputs = {
        one.number: _output(folder, one) for one in plan.boots if one.number in done and not done[one.number].problem
    }
    problems = tuple(_problems(plan, done, outputs))
    counts: tuple[Count, ...] = ()
    functions: tuple[FunctionTable, ...] = ()
    if same:
        counts = tuple(_counts(plan, outputs))
        functions = tuple(_functions(folder, plan, outputs))
    for name, why in folder.altered().items():  # what nobody had to read so far, as consoles
        raise MeasureError(why, place=f"{folder.path}/{name}", remedy="put back a copy of the folder, if there is one")
    ended = next((event.reason for event in reversed(events) if isinstance(event, Ended)), "running")
    times = [event.at for event in events if isinstance(event, Booted)]
    first = min((event.at - event.seconds for event in events if isinstance(event, Booted)), default=0.0)
    return PathAccount(
        schema="iodelta.path/1",
        folder=folder.path.name,
        question=plan.experiment.question,
        target=plan.experiment.target.path or "null_blk",
        baseline=plan.experiment.baseline,
        sides=tuple(
            Side(arm.variant, arm.kernel.release, arm.kernel.package, arm.cmdline, arm.memory) for arm in plan.arms
        ),
        counts=counts,
        shifts=tuple(_shifts(plan, counts, outputs)) if same else (),
        functions=functions,
        no_functions=plan.functions,
        self_check="not made" if same is None else "identical" if same else "different",
        problems=problems,
        blind=BLIND,
        qemu=plan.qemu,
        boots=len(done),
        planned=len(plan.boots),
        seconds=max(times, default=first) - first,
        state=REFUSED if same is False else ended,
        row=plan.row,
        deep=any(
            cell.option(name) not in (None, "1") for cell in plan.experiment.cells for name in ("iodepth", "numjobs")
        ),
    )


def _output(folder: Folder, one: BootPlan) -> Output:
    return read(folder.read_raw(one.number, "out"), f"{folder.path}, boot {one.number}")


def _problems(plan: PathPlan, done: Mapping[int, Booted], outputs: Mapping[int, Output]) -> list[str]:
    found: dict[str, None] = {}
    for one in plan.boots:
        if one.number in done and done[one.number].problem:
            last = "; last lines: " + " / ".join(done[one.number].console[-3:]) if done[one.number].console else ""
            found[f"{one.variant}: {done[one.number].problem}{last}"] = None
        for number, cell in outputs[one.number].cells.items() if one.number in outputs else ():
            if cell.reason:
                found[f"{one.variant}, {plan.experiment.cells[number].name}: {cell.reason}"] = None
    return list(found)


def _exact(plan: PathPlan, variant: str) -> int:
    return next(one.number for one in plan.boots if one.variant == variant and one.purpose == "exact")


def _counts(plan: PathPlan, outputs: Mapping[int, Output]) -> list[Count]:
    found = []
    for number, cell in enumerate(plan.experiment.cells):
        for arm in plan.arms:
            own = _cell(outputs, _exact(plan, arm.variant), number)
            for kind, counts in (own.latencies if own else {}).items():
                layouts = [
                    _latencies(outputs, one.number, number, kind)
                    for one in plan.boots
                    if one.variant == arm.variant and one.purpose == "layout"
                ]
                medians = tuple(one.median for one in layouts if one)
                reads = own.reads if own and len(own.reads) > 1 else {}
                found.append(
                    Count(cell.name, arm.variant, kind, counts.median, counts.mean, counts.modes(), medians, reads)
                )
    return found


def _cell(outputs: Mapping[int, Output], boot: int, number: int) -> CellOutput | None:
    return outputs[boot].cells.get(number) if boot in outputs else None


def _latencies(outputs: Mapping[int, Output], boot: int, number: int, kind: Kind) -> Counts | None:
    own = _cell(outputs, boot, number)
    return own.latencies.get(kind) if own else None


def _shifts(plan: PathPlan, counts: Sequence[Count], outputs: Mapping[int, Output]) -> list[Shift]:
    """Every variant against the baseline; in a row of kernels against the one before, and its last against its first:
    many small steps may be a long way."""
    names = [arm.variant for arm in plan.arms]
    pairs = [(plan.experiment.baseline, name) for name in plan.others]
    if plan.row:
        pairs = list(dict.fromkeys([*pairwise(names), (names[0], names[-1])]))
    held = {(one.cell, one.variant, one.kind): one for one in counts}
    found = []
    for number, cell in enumerate(plan.experiment.cells):
        kinds: dict[Kind, None] = dict.fromkeys(one.kind for one in counts if one.cell == cell.name)
        for kind in kinds:
            for pair in pairs:
                a, b = (held.get((cell.name, name, kind)) for name in pair)
                found.append(_shift(cell.name, pair, kind, a, b, _missing(plan, outputs, number, pair)))
    return found


def _missing(plan: PathPlan, outputs: Mapping[int, Output], number: int, pair: tuple[str, str]) -> str:
    for name in pair:
        own = _cell(outputs, _exact(plan, name), number)
        if own is None or own.reason:
            return f"{name}: {own.reason if own else 'did not boot to its end'}"
    return ""


def _shift(cell: str, pair: tuple[str, str], kind: Kind, a: Count | None, b: Count | None, missing: str) -> Shift:
    values = (a.median if a else None, b.median if b else None)
    change = b.median - a.median if a and b else None
    if a is None or b is None or change is None or not (a.layouts and b.layouts):
        reason = missing or "the layout sweep was not made"
        return Shift(cell, *pair, kind, *values, change, None, None, None, "no verdict", reason)
    bar = max(CERTAIN, a.high - a.low, b.high - b.low)
    word: Word = "same" if abs(change) <= bar else "longer" if change > 0 else "shorter"
    return Shift(cell, *pair, kind, *values, change, b.low - a.high, b.high - a.low, bar, word)


def _functions(folder: Folder, plan: PathPlan, outputs: Mapping[int, Output]) -> list[FunctionTable]:
    """The tables, each held against the medians of the boots that are judged."""
    costs: dict[str, Mapping[int, Costs]] = {}
    for one in plan.boots:
        if one.purpose != "functions" or one.number not in outputs:
            continue
        output, place = outputs[one.number], f"{folder.path}, boot {one.number}"
        ios = {number: cell.ios(place) // 2 for number, cell in output.cells.items() if not cell.reason}
        try:
            costs[one.variant] = per_io(folder.read_raw(one.number, "counts"), Symbols(output.symbols), ios)
        except ValueError as error:
            raise MeasureError(f"the counts of boot {one.number} are damaged: {error}", place=place) from error
    tables = []
    for number, cell in enumerate(plan.experiment.cells):
        for variant in plan.others:
            pair = (plan.experiment.baseline, variant)
            a, b = (costs.get(name, {}).get(number) for name in pair)
            if a is not None and b is not None:
                sides = [_timed(plan, outputs, name, number) for name in pair]
                timed = (sides[0], sides[1]) if sides[0] and sides[1] else None
                tables.append(table(cell.name, variant, (a, b), timed))
    return tables


def _timed(plan: PathPlan, outputs: Mapping[int, Output], variant: str, number: int) -> Timed | None:
    """The median of a cell; None where its I/Os go in more than one direction, for a table is of all of them."""
    own = _cell(outputs, _exact(plan, variant), number)
    depth = in_flight(dict((*plan.experiment.cells[number].options, *plan.experiment.variant(variant).options)))
    if own is None or len(own.latencies) != 1 or not depth:
        return None
    (counts,) = own.latencies.values()
    return Timed(counts.median, depth)
