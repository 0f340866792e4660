"""The units in which times and rates are said, and the one that fits an axis."""

from __future__ import annotations

STEPS = {
    "ns": ((1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")),
    "B/s": (
        (1.0, "B/s"),
        (2.0**10, "KiB/s"),
        (2.0**20, "MiB/s"),
        (2.0**30, "GiB/s"),
    ),
}
"""Unit of the data -> sizes and names of the units in which it is said, the smallest first."""

LARGEST = 900.0
"""Of an axis' unit: above it the axis may have a tick at 1,000."""

SMALLEST = 1e-3
"""Of an axis' unit, where a logarithmic axis covers more decades than fit below ``LARGEST``."""


def axis_unit(
    unit: str, highest: float, lowest: float | None = None
) -> tuple[float, str]:
    """Size and name of the unit of an axis that ends at ``highest``, so that its ticks are below 1,000.

    ``lowest`` is the other end of a logarithmic axis. Where the two are further apart than fits, such as 100 ns and 2 s,
    the ticks at both ends have a digit more. A unit without steps, such as IOPS, is its own.
    """
    steps = STEPS.get(unit, ((1.0, unit),))
    fitting = (
        place for place, step in enumerate(steps) if highest <= LARGEST * step[0]
    )
    place = next(fitting, len(steps) - 1)
    if place and lowest is not None and lowest < SMALLEST * steps[place][0]:
        place -= 1
    return steps[place]
