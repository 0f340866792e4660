"""fio options that take a value each for reads, writes and trims: ``bs=4k,64k`` is no list of cells."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.experiment.model import Cell, Variant
from iodelta.jobfile import canonical

APART = frozenset(
    "bs ba bsrange bssplit rate rate_min rate_iops rate_iops_min cmdprio_percentage cmdprio_class cmdprio "
    "cmdprio_bssplit".split()
)
"""By fio 3.33's HOWTO, in fio's own names."""

NUMBER = 3
"""Reads, writes, trims; fio ignores what follows."""

ONE_WAY = {
    "read": 0,
    "randread": 0,
    "write": 1,
    "randwrite": 1,
    "trim": 2,
    "randtrim": 2,
}
"""Place of the value that a workload of one direction takes."""

DIRECTIONS = ("reads", "writes", "trims")


def unused(cell: Cell, variant: Variant) -> Iterator[tuple[str, str, str]]:
    """Options of a cell under a variant with values that its I/Os never take, as with ``bs=4k,64k`` in a workload that
    only reads: name, value, and what fio makes of it."""
    options = {
        canonical(name): (name, value or "")
        for name, value in (*cell.options, *variant.options)
    }
    mode = options.get("rw", ("rw", "read"))[1].partition(":")[0]
    for name, value in options.values():
        parts = value.split(",")
        if canonical(name) not in APART or len(parts) == 1:
            continue
        if len(parts) > NUMBER:
            yield (
                name,
                value,
                "fio takes one value for reads, one for writes, one for trims, and ignores what follows",
            )
        elif mode in ONE_WAY and len(set(filter(None, parts))) > 1:
            means = ", ".join(
                f"{part} for {what}"
                for part, what in zip(parts, DIRECTIONS, strict=False)
                if part
            )
            yield (
                name,
                value,
                f"to fio this is {means}, and rw={mode} makes only {DIRECTIONS[ONE_WAY[mode]]}",
            )
