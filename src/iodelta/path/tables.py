"""A cell's change by kernel function, and whether the functions agree with the counts of the cell's I/Os."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from iodelta.path.functions import STRAY, USER
from iodelta.path.plan import CERTAIN

Costs = Mapping[str, float]
"""Function -> instructions per I/O."""

TOTAL = 0.01
"""Share of the kernel's instructions by which table and medians may differ: only the table includes the kernel's work
besides the I/O (ticks, the end of an interrupt, the return from a system call). Measured: up to 28 of 6,600."""

IDLE = 0.9
"""Share of a latency that instructions must explain: otherwise the guest's CPU was idle. Boots with the plugin do not
log latencies, so a little is missing."""

ASYNCHRONOUS = frozenset({"libaio", "io_uring", "posixaio"})
"""fio's engines that keep several I/Os in flight; the others keep one, regardless of ``iodepth``."""

TRIMS = frozenset({"trim", "randtrim"})
"""Directions of which fio waits for each I/O, whatever its engine (measured with fio 3.33)."""


class Function(msgspec.Struct, frozen=True):
    """A kernel function: instructions per I/O under baseline and variant."""

    name: str
    baseline: float
    value: float

    @property
    def change(self) -> float:
        """Instructions more."""
        return self.value - self.baseline


class FunctionTable(msgspec.Struct, frozen=True):
    """Where a cell's change sits, the largest changes first."""

    cell: str
    variant: str
    rows: tuple[Function, ...]
    """Every kernel function, the largest changes first."""
    kernel: tuple[float, float]
    """All kernel functions together, under baseline and variant."""
    user: tuple[float, float]
    """User space: fio itself."""
    doubts: tuple[str, ...] = ()
    """Where the table contradicts itself, or the medians."""


class Timed(msgspec.Struct, frozen=True):
    """What the boots that are judged counted of one side."""

    median: float
    """Instructions from submission to completion."""
    depth: int
    """I/Os in flight, whose paths that median holds."""

    @property
    def each(self) -> float:
        """Instructions of one I/O."""
        return self.median / self.depth


def table(
    cell: str,
    variant: str,
    costs: tuple[Costs, Costs],
    timed: tuple[Timed, Timed] | None,
) -> FunctionTable:
    """Return the table of a cell's costs under baseline and variant; ``timed`` is None where medians say nothing of it."""
    a, b = costs
    rows = [
        Function(name, a.get(name, 0.0), b.get(name, 0.0))
        for name in a.keys() | b.keys()
        if name != USER
    ]
    rows.sort(key=lambda row: (-abs(row.change), row.name))
    kernel = (sum(row.baseline for row in rows), sum(row.value for row in rows))
    user = (a.get(USER, 0.0), b.get(USER, 0.0))
    doubts = [*_negative(rows)]
    if timed:
        doubts += _disagreeing(kernel, timed)
        doubts += _idle((kernel[0] + user[0], kernel[1] + user[1]), timed)
    return FunctionTable(cell, variant, tuple(rows), kernel, user, tuple(doubts))


def in_flight(options: Mapping[str, str | None]) -> int:
    """I/Os that fio keeps in flight; 0 if several jobs share the CPU, since a latency then includes other jobs."""
    depth = options.get("iodepth") or "1"
    if options.get("numjobs") not in (None, "1") or not depth.isdigit():
        return 0
    if options.get("rw") in TRIMS or options.get("ioengine") not in ASYNCHRONOUS:
        return 1
    return int(depth)


def _negative(rows: list[Function]) -> Iterator[str]:
    """Doubts about counts below 0, which are work that only the run with fewer I/Os did."""
    smaller = {row.name: min(row.baseline, row.value) for row in rows}
    least = {name: count for name, count in smaller.items() if count <= -STRAY}
    worst = sorted(least, key=lambda name: (least[name], name))
    if worst:
        named = ", ".join(f"{name} {least[name]:,.1f}" for name in worst[:3])
        more = f" and {len(worst) - 3} more" if len(worst) > 3 else ""
        yield (
            f"Counts below zero: {named}{more}. Work that belongs to no I/O fell into one of the two runs that are "
            f"subtracted; rows that changed by less than {-least[worst[0]]:,.0f} say nothing."
        )


def _disagreeing(
    kernel: tuple[float, float], timed: tuple[Timed, Timed]
) -> Iterator[str]:
    counted, median = kernel[1] - kernel[0], timed[1].each - timed[0].each
    if abs(counted - median) > max(CERTAIN, TOTAL * max(kernel)):
        deep = f", {timed[0].depth} of them in flight" if timed[0].depth > 1 else ""
        yield (
            f"The kernel's functions together changed by {counted:+,.0f}, the median by {median:+,.0f} for each I/O"
            f"{deep}: part of this table does not belong to the path of an I/O, or the change lies outside the timed "
            "path. Believe the median."
        )


def _idle(totals: tuple[float, float], timed: tuple[Timed, Timed]) -> Iterator[str]:
    for name, total, timing in zip(("baseline", "variant"), totals, timed, strict=True):
        if total < IDLE * timing.each:
            yield (
                f"Of {timing.each:,.0f} for each I/O under the {name} {total:,.0f} are instructions; for the rest the "
                "guest's CPU was idle, waiting for its device."
            )
