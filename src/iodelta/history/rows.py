"""Nights and points as rows of the database, and back."""

from __future__ import annotations

import functools
import math
from typing import Any

import msgspec

from iodelta.experiment.command import kept_unit
from iodelta.history.answers import HistoryPoint
from iodelta.history.points import Night, Point

NIGHT_COLUMNS = ("t", "epoch", "subject")
POINT_COLUMNS = ("series", "experiment", "y", "se", "r", "r_se", "flags", "n")
"""Columns of which ``point_of`` makes a point, in this order."""


def experiment_row(night: Night) -> dict[str, Any]:
    """Return the row of a night."""
    return {
        "id": night.identifier,
        "sha": night.sha,
        "t": night.t,
        "machine": night.machine,
        "epoch": night.epoch,
        "facts": msgspec.json.encode(night.facts, order="sorted").decode(),
        "subject": msgspec.json.encode(night.subject).decode(),
        "folder": night.folder,
        "state": night.state,
    }


def series_row(number: int, point: Point) -> dict[str, Any]:
    """Return the row of the series that a point belongs to."""
    return {
        "id": number,
        "key": msgspec.json.encode(point.key).decode(),
        "cell": point.cell,
        "variant": point.variant,
        "better": point.better,
        "unit": point.unit,
    }


def in_unit(y: float, unit: str, other: str) -> float:
    """Return the logarithm of a value in another unit: a series keeps its first one. Unchanged where they measure
    different things."""
    (base, factor), (wanted, divisor) = kept_unit(unit), kept_unit(other)
    return y + math.log(factor / divisor) if base == wanted else y


def point_row(number: int, point: Point, night: Night) -> dict[str, Any]:
    """Return the row of a point, of the series with this number, in a night."""
    columns = ("y", "se", "lag1", "n", "r", "r_se")
    values = {name: getattr(point, name) for name in columns}
    where = {"series": number, "experiment": night.identifier}
    return {**where, **values, "flags": " ".join(point.flags)}


def point_of(row: Any) -> tuple[int, HistoryPoint]:
    """Return the number of its series, and the point, of a row of ``NIGHT_COLUMNS`` and ``POINT_COLUMNS``."""
    t, epoch, subject, number, experiment, y, se, r, r_se, flags, n = row
    commit, describe, repo = _build(subject)
    point = HistoryPoint(
        t, experiment, epoch, commit, describe, y, se, r, r_se, _flags(flags), repo, n
    )
    return number, point


# Many points share a build and their flags: a scan of years would decode them again and again.
@functools.lru_cache(maxsize=1 << 14)
def _build(subject: str) -> tuple[str, str, str]:
    """Commit, name and repository of a build."""
    fields = msgspec.json.decode(subject)
    return fields.get("commit", ""), fields.get("describe", ""), fields.get("repo", "")


@functools.lru_cache(maxsize=1 << 8)
def _flags(text: str) -> tuple[str, ...]:
    return tuple(text.split())
