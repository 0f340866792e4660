"""The metrics of an I/O's path by name, for searches, sweeps of kernels and histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from iodelta.path.footprint import MEASURES
from iodelta.path.functions import CLASSES
from iodelta.trial import Kind

Source = Literal["latency", "bill", "footprint", "sharing"]

LATENCY = 0.001
"""Share to within which two kernels with the same path agree: irrelevant changes of layout move a median of several
thousand instructions by up to eight."""

CHARGE = 0.02
"""As ``LATENCY``, for a charge: ticks of the timer move some twenty locked instructions by less than a tenth."""

TOUCHED: Mapping[str, tuple[str, float]] = {
    "loads": ("accesses", 0.001),
    "stores": ("accesses", 0.001),
    "data_lines": ("lines", 0.01),
    "written_lines": ("lines", 0.01),
    "data_pages": ("pages", 0.02),
    "code_lines": ("lines", 0.01),
    "code_pages": ("pages", 0.02),
}
"""Measure of a footprint -> its unit, and as ``LATENCY``: another commit also moves what lies behind its change to other
lines and pages. Other address layouts alone move data lines by 1 of 300, and pages by 2 of 100."""

LEAST = 0.25
"""A value below this counts as this: searches and histories compare by ratios, and an I/O may have none."""


class PathMetric(msgspec.Struct, frozen=True):
    """A count of each I/O, less is better."""

    name: str
    source: Source
    """What counts it: latencies, the plugin's classes, its epochs, or two CPUs in turn."""
    column: str
    """Its name there: a direction, a class of instructions, a measure."""
    unit: str
    exact: float
    """Share to within which two kernels agree that do not differ."""


_KINDS: tuple[Kind, ...] = ("read", "write", "trim")
_ALL = (
    *(
        PathMetric(f"{kind}.instructions", "latency", kind, "instructions", LATENCY)
        for kind in _KINDS
    ),
    *(
        PathMetric(f"bill.{kind}", "bill", kind, "instructions", CHARGE)
        for kind in CLASSES
        if kind != "string"
    ),
    *(
        PathMetric(f"footprint.{name}", "footprint", name, *TOUCHED[name])
        for name in MEASURES
        if name in TOUCHED
    ),
    PathMetric("moved_lines", "sharing", "", "lines", CHARGE),
)

METRICS: Mapping[str, PathMetric] = {metric.name: metric for metric in _ALL}
"""By name."""

SHORT: Mapping[str, str] = {
    "locks": "bill.locked",
    "fences": "bill.fence",
    "clock_reads": "bill.rdtsc",
    "indirect_calls": "bill.indirect",
    **{name: f"footprint.{name}" for name in TOUCHED},
}
"""Short name -> name."""


def path_metric(name: str) -> PathMetric | None:
    """Return the metric of a name or of a short one; None for one that is not counted."""
    return METRICS.get(SHORT.get(name, name))
