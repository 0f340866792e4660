"""Superblocks: where a trial may leave something behind for those after it, every variant runs several times in a row.

A trial that writes, trims or fills the page cache changes what the trial after it finds: an SSD's debt, dirty pages, a
warm cache. In a superblock (A A B B) the first trial of each variant brings the machine into that variant's state and
does not count; the second one follows its own variant, as it does for whoever uses that variant. What lasts for several
trials takes several such first trials: ``[design] conditioning``.
"""

from __future__ import annotations

from itertools import chain
from pathlib import PurePath

from iodelta.errors import RequestError
from iodelta.experiment import Cell, Condition, Experiment, Variant
from iodelta.experiment.io_uring import TOOL
from iodelta.trial import Kind
from iodelta.verdict.rules import CarryOver

KINDS: dict[str, tuple[Kind, ...]] = {
    "read": ("read",),
    "randread": ("read",),
    "write": ("write",),
    "randwrite": ("write",),
    "rw": ("read", "write"),
    "readwrite": ("read", "write"),
    "randrw": ("read", "write"),
    "trim": ("trim",),
    "randtrim": ("trim",),
    "trimwrite": ("trim", "write"),
    "randtrimwrite": ("trim", "write"),
}

DROPS = ("1", "3")
"""Values of ``memory.drop_caches`` that empty the page cache."""

TIMES = {1: "once", 2: "twice"}

OFF = '[design] carry-over = "none" turns this off'


def kinds_of(cell: Cell) -> tuple[Kind, ...]:
    """The directions a cell's workload does, from its ``rw``; fio's default is read."""
    return _kinds(cell.option("rw") or cell.option("readwrite"))


def _kinds(rw: str | None) -> tuple[Kind, ...]:
    return KINDS.get((rw or "read").partition(":")[0], ("read",))


def carry_of(experiment: Experiment) -> CarryOver:
    """Return how the experiment handles carry-over: as its design says, else by what its trials leave behind.

    Raises RequestError for superblocks where every trial has a boot of its own.
    """
    asked = experiment.design.carry_over
    if asked == "superblocks" and experiment.boots:
        raise RequestError(
            "superblocks need two trials of a variant in a row, but here every trial has a boot of its own",
            place="[design] carry-over",
            remedy='leave carry-over out, or say carry-over = "tested"',
        )
    if asked:
        return "ignored" if asked == "none" else asked
    if leaves_state(experiment) and not experiment.boots:
        return "superblocks"
    return "tested"


def leaves_state(experiment: Experiment) -> str:
    """Return why a trial may find what the one before it left: the first reason found; empty where none is."""
    for cell in experiment.cells:
        condition = experiment.condition(cell.condition)
        why = _left_by_background(condition)
        if why:
            return f"{cell.name}: {why}"
        for variant in experiment.variants:
            why = _left_by(cell, condition, variant)
            if why:
                return f"{cell.name}: {why}"
    return ""


def _left_by(cell: Cell, condition: Condition, variant: Variant) -> str:
    """Return what a trial of this workload leaves to the next one; empty for direct reads."""
    if cell.command is not None:
        return "" if cell.command.reset else "what a command leaves behind is not known"
    given = dict((*cell.options, *variant.options))
    done = kinds_of(Cell(cell.name, cell.condition, tuple(given.items())))
    written = [kind for kind in done if kind != "read"]
    if written:
        return f"it {written[0]}s"
    uncached = (
        given.get("direct", "0") in ("1", None)
        or given.get("buffered") == "0"
        or bool(given.get(TOOL))
    )
    knobs = {**condition.knobs, **variant.knobs}
    if knobs.get("memory.drop_caches") in DROPS:
        return ""
    if given.get("ioengine") == "mmap":
        return "it reads through mmap, from the page cache"
    return "" if uncached else "it reads through the page cache"


def _left_by_background(condition: Condition) -> str:
    """Return what a background load leaves, as far as fio's options tell; empty where it only reads, or is another
    program.
    """
    options = list(condition.background_fio)
    if condition.background and PurePath(condition.background[0]).name == "fio":
        words = (word.lstrip("-").partition("=") for word in condition.background[1:])
        options += [(name, value) for name, _, value in words]
    kinds = chain.from_iterable(
        _kinds(rw) for name, rw in options if name in ("rw", "readwrite")
    )
    written = [kind for kind in kinds if kind != "read"]
    if not written:
        return ""
    return f"its background load {written[0]}s"


def explained(experiment: Experiment, carry: CarryOver) -> str:
    """Return what the plan says of carry-over; empty where direct reads are simply tested."""
    if carry == "superblocks":
        before = experiment.design.conditioning
        price = "twice" if before == 1 else f"{before + 1} times"
        often = TIMES.get(before, f"{before} times")
        return f"superblocks, {price} the trials: each variant runs {often} uncounted before its counted trial; {OFF}"
    if carry == "ignored":
        return 'ignored ([design] carry-over = "none"): carry-over from trial to trial is part of the change'
    why = leaves_state(experiment)
    if why and experiment.boots:
        return "tested; no superblocks, as every trial has a boot of its own"
    if not why:
        return ""
    return f'tested only ([design] carry-over = "tested"), although {why}'
