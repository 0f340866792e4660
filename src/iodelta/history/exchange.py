"""A history as rows of a table: what is exported, and what others' tables are read as."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from iodelta.errors import needs_extra
from iodelta.history.answers import HistoryPoint
from iodelta.history.store import Line


class PointRow(msgspec.Struct, frozen=True):
    """One point of an exported history."""

    time: str
    """ISO 8601, UTC."""
    machine: str
    """Its name in the history."""
    cell: str
    """Name of the cell."""
    variant: str
    """Name of the variant."""
    metric: str
    """Such as ``read.iops``."""
    unit: str
    """Of the value."""
    better: str
    """``higher`` or ``lower``."""
    value: float
    """Geometric mean of the blocks."""
    error: float | None
    """Its standard error as a share of the value; null where it is not known."""
    ratio: float | None
    """Value over the reference's in the same blocks; null without a reference."""
    ratio_error: float | None
    """Standard error of the ratio as a share of it."""
    build: str
    """What the build is called."""
    commit: str
    """The commit that was measured."""
    experiment: str
    """Identifier of the experiment."""
    epoch: str
    """Of the machine."""
    flags: str
    """See ``iodelta history show``; separated by spaces."""
    role: str
    """``reference``, ``foreign`` or empty."""


class HistoryExportAnswer(msgspec.Struct, frozen=True):
    """All points of a history."""

    points: tuple[PointRow, ...]
    """By series, oldest first."""
    schema: str = "iodelta.history-export/1"


class HistoryLines(msgspec.Struct, frozen=True):
    """Series with everything that a program needs of them."""

    lines: tuple[Line, ...]
    """Each with its points, oldest first."""
    schema: str = "iodelta.web-lines/1"


class HistoryAccess(msgspec.Struct, frozen=True):
    """What a server of a history lets somebody do."""

    name: str
    """Empty where nobody logs in."""
    role: str
    """``read``, ``triage`` or ``run``."""
    csrf: str
    """What a request that changes something carries as ``X-CSRF-Token``."""
    schema: str = "iodelta.web-access/1"


def rows(lines: Iterable[Line]) -> Iterator[PointRow]:
    """Yield every point of every series."""
    for line in lines:
        for point in line.points:
            yield row_of(line, point)


def row_of(line: Line, point: HistoryPoint) -> PointRow:
    """Return one point as a row."""
    sign = -1.0 if line.better == "higher" else 1.0
    return PointRow(
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(point.t)),
        machine=line.key.machine,
        cell=line.cell,
        variant=line.variant,
        metric=line.key.metric,
        unit=line.unit,
        better=line.better,
        value=math.exp(point.y),
        error=None if "no-error" in point.flags else point.se,
        ratio=None if point.r is None else math.exp(sign * point.r),
        ratio_error=point.r_se,
        build=point.describe,
        commit=point.commit,
        experiment=point.experiment,
        epoch=point.epoch,
        flags=" ".join(point.flags),
        role=line.key.role,
    )


def frame(lines: Iterable[Line]) -> Any:
    """Return the rows as a polars frame."""
    with needs_extra("frames", "a data frame"):
        import polars as pl

    kinds = {
        "value": pl.Float64,
        "error": pl.Float64,
        "ratio": pl.Float64,
        "ratio_error": pl.Float64,
    }
    schema = {name: kinds.get(name, pl.String) for name in PointRow.__struct_fields__}
    return pl.DataFrame(
        [msgspec.structs.asdict(row) for row in rows(lines)], schema=schema
    )
