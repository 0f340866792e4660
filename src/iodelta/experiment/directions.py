"""fio options with separate values for reads, writes and trims: ``bs=4k,64k`` is not a list of cells."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.experiment.model import Cell, Variant
from iodelta.jobfile import canonical

APART = frozenset(
    "bs ba bsrange bssplit rate rate_min rate_iops rate_iops_min cmdprio_percentage cmdprio_class cmdprio "
    "cmdprio_bssplit".split()
)
"""From the HOWTO of fio 3.33, by fio's first names."""

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
    """Options of a cell under a variant with values that none of its I/Os uses, such as ``bs=4k,64k`` if it only reads.

    Yields name, value, and how fio interprets it.
    """
    options: dict[str, tuple[str, str]] = {}
    for name, value in (*cell.options, *variant.options):
        options[canonical(name)] = (name, value or "")
    _, mode = options.get("rw", ("rw", "read"))
    mode = mode.partition(":")[0]
    for first_name, (name, value) in options.items():
        if first_name in APART:
            # How fio interprets the values of one option in a workload ``rw=mode``; empty if it uses all of
            # them.
            values = value.split(",")
            if len(values) > NUMBER:
                why = "fio takes one value for reads, one for writes, one for trims, and ignores what follows"
            else:
                # An empty value leaves a direction at its default.
                differing = set(filter(None, values))
                if mode not in ONE_WAY or len(differing) <= 1:
                    why = ""
                else:
                    pairs = zip(values, DIRECTIONS, strict=False)
                    means = ", ".join(
                        f"{value} for {direction}"
                        for value, direction in pairs
                        if value
                    )
                    only = DIRECTIONS[ONE_WAY[mode]]
                    why = f"to fio this is {means}, and rw={mode} makes only {only}"
            if why:
                yield name, value, why
