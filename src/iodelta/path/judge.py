"""From the boots of a path experiment to its account. Nothing is estimated: counts are exact, and the only uncertainty
is how much a kernel's address layout changes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Literal

import msgspec

from iodelta.errors import MeasureError
from iodelta.lab.folder import Booted, Ended, Folder
from iodelta.path import sharing
from iodelta.path.anatomy import Anatomy, anatomy
from iodelta.path.bill import Bill
from iodelta.path.branches import CallTree
from iodelta.path.costs import bills as bills_of
from iodelta.path.costs import costed, function_tables
from iodelta.path.footprint import Footprint
from iodelta.path.output import Output, cell_of, read
from iodelta.path.plan import CERTAIN, PathPlan
from iodelta.path.run import REFUSED, alike, booted
from iodelta.path.sharing import Sharing
from iodelta.path.tables import FunctionTable, in_flight
from iodelta.path.tallies import Tally, of_sharing
from iodelta.trial import Kind

BLIND = (
    "Instructions on one emulated CPU, not time: caches, TLB misses, lock contention, NUMA, the real cost of "
    "mitigations, other CPUs, interrupts and every real device are not seen. A longer path is not yet slower I/O. "
    "Copies and zeroing count an instruction per iteration, so large blocks weigh too much; the emulated device is "
    "part of the kernel under test."
)
"""What this kind of measurement cannot see; every report contains it."""

Word = Literal["longer", "shorter", "same", "no verdict"]
SelfCheck = Literal["identical", "different", "not made"]


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
        """Return the least median of all its boots."""
        return min((self.median, *self.layouts))

    @property
    def high(self) -> float:
        """Return the largest."""
        return max((self.median, *self.layouts))


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
        """Return the change as a share of the baseline."""
        if self.change is None or not self.baseline:
            return None
        return self.change / self.baseline


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
    self_check: SelfCheck
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
    again: tuple[str, ...] = ()
    """Commands that count it again."""
    bills: tuple[Bill, ...] = ()
    """What an I/O executes of the instructions that cost more than others."""
    trees: tuple[CallTree, ...] = ()
    """Where the changes sit, by paths of calls; with an anatomy."""
    footprints: tuple[Footprint, ...] = ()
    """What an I/O touches; with an anatomy."""
    anatomy: str = ""
    """What else was counted: ``path``, or ``sharing``: moved cache lines, in place of instructions."""
    sharing: Sharing = Sharing()
    """Which cache lines move between two CPUs for an I/O."""
    tallies: tuple[Tally, ...] = ()
    """What an I/O of every variant takes by each metric that a search follows; with an anatomy."""

    @property
    def exit_code(self) -> int:
        """0 nothing longer, 1 a longer path or more moved lines, 3 something has no verdict, 4 nothing measured or
        refused."""
        words: set[str] = {shift.word for shift in self.shifts}
        words |= {shift.word for shift in self.sharing.shifts}
        measured = self.counts or self.sharing.cells
        if not measured or self.self_check != "identical":
            return 4
        if words & {"longer", "more"}:
            return 1
        if self.problems or "no verdict" in words:
            return 3
        return 0 if words else 3


def judge(folder: Folder) -> PathAccount:
    """Return the account of a folder, complete or still being made. Raises MeasureError for a damaged one."""
    plan = folder.read_plan(PathPlan)
    experiment = plan.experiment
    events = folder.events()
    folder.check_journal()
    done = booted(events)
    same = alike(folder, plan, done)
    sound = [
        boot
        for boot in plan.boots
        if boot.number in done and not done[boot.number].problem
    ]
    moved = Sharing()
    outputs: dict[int, Output] = {}
    if not plan.sharing:
        outputs = {
            boot.number: read(folder.read_raw(boot.number, "out"), boot.place(folder))
            for boot in sound
        }
    elif same:
        moved = sharing.sharing(folder, plan, sound)
    problems = (*_problems(plan, done, outputs), *moved.problems)
    counts: tuple[Count, ...] = ()
    functions: tuple[FunctionTable, ...] = ()
    bills: tuple[Bill, ...] = ()
    shifts: tuple[Shift, ...] = ()
    more = Anatomy()
    if same and not plan.sharing:
        counts = tuple(_counts(plan, outputs))
        costs = [] if plan.row else list(costed(folder, plan, outputs))
        functions = tuple(function_tables(plan, outputs, costs))
        more = anatomy(folder, plan, outputs)
        bills = tuple(bills_of(costs, more.footprints))
        shifts = tuple(_shifts(plan, counts, outputs))
    # Files that nothing has read so far, such as consoles.
    for name, why in folder.altered().items():
        raise MeasureError(
            why,
            place=f"{folder.path}/{name}",
            remedy="restore a copy of the folder, if you have one",
        )
    ends = [event.reason for event in events if isinstance(event, Ended)]
    boots = [event for event in events if isinstance(event, Booted)]
    began = min((boot.at - boot.seconds for boot in boots), default=0.0)
    checks: dict[bool | None, SelfCheck] = {
        None: "not made",
        True: "identical",
        False: "different",
    }
    # Of a synchronous engine one I/O is in flight, whatever its depth.
    deep = any(
        in_flight(cell.options_under(variant)) != 1
        for cell, variant in product(experiment.cells, experiment.variants)
    )
    return PathAccount(
        schema="iodelta.path/1",
        folder=str(folder.path),
        question=experiment.question,
        target=experiment.target.path or "null_blk",
        baseline=experiment.baseline,
        sides=tuple(
            Side(
                arm.variant,
                arm.kernel.release,
                arm.kernel.package,
                arm.cmdline,
                arm.memory,
            )
            for arm in plan.arms
        ),
        counts=counts,
        shifts=shifts,
        functions=functions,
        no_functions=plan.functions,
        self_check=checks[same],
        problems=problems,
        blind=sharing.BLIND if plan.sharing else BLIND,
        qemu=plan.qemu,
        boots=len(done),
        planned=len(plan.boots),
        seconds=max((boot.at for boot in boots), default=0.0) - began,
        state=REFUSED if same is False else ends[-1] if ends else "running",
        row=plan.row,
        deep=deep,
        bills=bills,
        trees=more.trees,
        footprints=more.footprints,
        anatomy=experiment.anatomy,
        sharing=moved,
        tallies=(*more.tallies, *of_sharing(moved)),
    )


def _problems(
    plan: PathPlan, done: Mapping[int, Booted], outputs: Mapping[int, Output]
) -> list[str]:
    """Return why boots failed and cells could not be measured, each once."""
    problems: dict[str, None] = {}
    for boot in plan.boots:
        ended = done.get(boot.number)
        if ended is not None and ended.problem:
            lines = " / ".join(ended.console[-3:])
            last = f"; last lines: {lines}" if ended.console else ""
            problems[f"{boot.variant}: {ended.problem}{last}"] = None
        cells = outputs[boot.number].cells if boot.number in outputs else {}
        for number, cell in cells.items():
            if cell.reason:
                name = plan.experiment.cells[number].name
                problems[f"{boot.variant}, {name}: {cell.reason}"] = None
    return list(problems)


def _counts(plan: PathPlan, outputs: Mapping[int, Output]) -> Iterator[Count]:
    """Yield the counts of every cell under every variant, by direction."""
    for (number, cell), arm in product(enumerate(plan.experiment.cells), plan.arms):
        exact = cell_of(outputs, plan.exact(arm.variant), number)
        others = [
            cell_of(outputs, boot.number, number)
            for boot in plan.boots
            if (boot.variant, boot.purpose) == (arm.variant, "layout")
        ]
        for kind, counts in exact.latencies.items() if exact else ():
            layouts = [
                other.latencies[kind].median
                for other in others
                if other and kind in other.latencies
            ]
            yield Count(
                cell=cell.name,
                variant=arm.variant,
                kind=kind,
                median=counts.median,
                mean=counts.mean,
                modes=counts.modes(),
                layouts=tuple(layouts),
                reads=exact.reads if exact and len(exact.reads) > 1 else {},
            )


def _shifts(
    plan: PathPlan, counts: Sequence[Count], outputs: Mapping[int, Output]
) -> Iterator[Shift]:
    """Yield the shifts of all pairs of the plan."""
    count_of = {(count.cell, count.variant, count.kind): count for count in counts}
    for number, cell in enumerate(plan.experiment.cells):
        kinds = dict.fromkeys(count.kind for count in counts if count.cell == cell.name)
        for kind, (against, variant) in product(kinds, plan.pairs):
            a, b = (
                count_of.get((cell.name, name, kind)) for name in (against, variant)
            )
            values = (a.median if a else None, b.median if b else None)
            change = b.median - a.median if a and b else None
            if a is None or b is None or not (a.layouts and b.layouts):
                reason = "the layout sweep was not made"
                for name in (variant, against):
                    output = cell_of(outputs, plan.exact(name), number)
                    why = output.reason if output else "did not boot to its end"
                    reason = f"{name}: {why}" if why else reason
                yield Shift(
                    cell.name,
                    against,
                    variant,
                    kind,
                    *values,
                    change,
                    None,
                    None,
                    None,
                    "no verdict",
                    reason,
                )
                continue
            change = b.median - a.median
            # A change that another address layout also makes is not one of the path's length.
            bar = max(CERTAIN, a.high - a.low, b.high - b.low)
            word: Word = "longer" if change > 0 else "shorter"
            if abs(change) <= bar:
                word = "same"
            yield Shift(
                cell.name,
                against,
                variant,
                kind,
                *values,
                change,
                b.low - a.high,
                b.high - a.low,
                bar,
                word,
            )
