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

TOUCHED: Mapping[str, float] = {
    "loads": 0.001,
    "stores": 0.001,
    "data_lines": 0.01,
    "written_lines": 0.01,
    "data_pages": 0.02,
    "code_lines": 0.01,
    "code_pages": 0.02,
}
"""As ``LATENCY``: another commit also moves what lies behind its change to other lines and pages. Other address layouts
alone move data lines by 1 of 300, and pages by 2 of 100."""

LEAST = 0.25
"""A value below this counts as this: searches and histories compare by ratios, and an I/O may have none."""

UNITS: Mapping[str, str] = {
    "loads": "accesses",
    "stores": "accesses",
    "data_lines": "lines",
    "written_lines": "lines",
    "data_pages": "pages",
    "code_lines": "lines",
    "code_pages": "pages",
}


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
        PathMetric(
            name=f"{kind}.instructions",
            source="latency",
            column=kind,
            unit="instructions",
            exact=LATENCY,
        )
        for kind in _KINDS
    ),
    *(
        PathMetric(
            name=f"bill.{kind}",
            source="bill",
            column=kind,
            unit="instructions",
            exact=CHARGE,
        )
        for kind in CLASSES
        if kind != "string"
    ),
    *(
        PathMetric(
            name=f"footprint.{name}",
            source="footprint",
            column=name,
            unit=UNITS[name],
            exact=TOUCHED[name],
        )
        for name in MEASURES
        if name in UNITS
    ),
    PathMetric(
        name="moved_lines", source="sharing", column="", unit="lines", exact=CHARGE
    ),
)

METRICS: Mapping[str, PathMetric] = {metric.name: metric for metric in _ALL}
"""By name."""

SHORT: Mapping[str, str] = {
    "locks": "bill.locked",
    "fences": "bill.fence",
    "clock_reads": "bill.rdtsc",
    "indirect_calls": "bill.indirect",
    **{name: f"footprint.{name}" for name in UNITS},
}
"""Short name -> name."""


def path_metric(name: str) -> PathMetric | None:
    """Return the metric of a name or of a short one; None for one that is not counted."""
    return METRICS.get(SHORT.get(name, name))
