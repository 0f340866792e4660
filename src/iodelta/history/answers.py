"""What a history answers: its points, its candidates, and the JSON documents of ``iodelta history``."""

from __future__ import annotations

import msgspec


class NightAdded(msgspec.Struct, frozen=True):
    """One folder or bundle that was to be added."""

    folder: str
    """As it was named."""
    outcome: str
    """``added``, ``known`` (nothing changed), ``replaced`` (it has grown) or ``moved``."""
    points: int
    """Points that it gives: one of each series."""
    left_out: dict[str, str]
    """Series without a point, and why."""


class HistoryAddAnswer(msgspec.Struct, frozen=True):
    """What ``iodelta history add`` did."""

    added: tuple[NightAdded, ...]
    """One for each path."""
    schema: str = "iodelta.history-add/1"


class HistoryPoint(msgspec.Struct, frozen=True):
    """One series in one night."""

    t: float
    """Unix seconds at which the experiment began."""
    experiment: str
    """Identifier of the experiment."""
    epoch: str
    """Of the machine: a new disk, firmware, fio or kernel configuration begins another."""
    commit: str
    """The commit that was measured; empty where it is not known."""
    describe: str
    """Its name for people, such as ``v6.12``."""
    y: float
    """Mean logarithm of the blocks' values."""
    se: float
    """Its standard error."""
    r: float | None
    """Mean log-ratio to the reference variant in the same blocks, positive where it is worse."""
    r_se: float | None
    """Its standard error."""
    flags: tuple[str, ...] = ()
    """``foreign`` (another program measured it), ``no-error`` (its standard error is not known and stands as 0),
    ``counted`` (instructions, which have no error)."""


class HistorySeries(msgspec.Struct, frozen=True):
    """One series: points that can be compared."""

    machine: str
    """The machine's name."""
    cell: str
    """Name of the cell in the newest experiment."""
    variant: str
    """Name of the variant in the newest experiment."""
    metric: str
    """Such as ``read.iops``."""
    unit: str
    """Of the values whose logarithms the points have."""
    better: str
    """``higher`` or ``lower``."""
    points: tuple[HistoryPoint, ...]
    """Oldest first."""


class HistoryShowAnswer(msgspec.Struct, frozen=True):
    """What a history holds."""

    experiments: int
    """How many experiments it has."""
    series: tuple[HistorySeries, ...]
    """All of its series."""
    schema: str = "iodelta.history-show/1"


class Candidate(msgspec.Struct, frozen=True):
    """A step that a fresh experiment may confirm; not a verdict."""

    machine: str
    """The machine's name."""
    cell: str
    """Name of the cell."""
    variant: str
    """Name of the variant."""
    metric: str
    """Such as ``read.iops``."""
    by: str
    """``ratio`` to the reference variant, or the ``level`` alone, which holds what the nights did too."""
    size: float
    """Log-ratio, positive where it became worse."""
    error: float
    """Standard error of the size."""
    z: float
    """How many standard errors the step stands out by, with the inflation of this series."""
    last_good: HistoryPoint
    """The newest night that was surely before the step."""
    first_bad: HistoryPoint
    """The oldest night that was surely after it."""
    nights: int
    """Points of the epoch."""
    inflation: float
    """Long-run variance of the nights over their variance: by how much neighbours resemble each other."""
    few: bool
    """Whether the epoch has too few nights to know how much they resemble each other."""


class HistoryScanAnswer(msgspec.Struct, frozen=True):
    """What ``iodelta history scan`` found."""

    candidates: tuple[Candidate, ...]
    """The largest z first."""
    schema: str = "iodelta.history-scan/1"


class HistoryCheckAnswer(msgspec.Struct, frozen=True):
    """Whether database, log and folders agree."""

    problems: tuple[str, ...]
    """Empty when they do."""
    schema: str = "iodelta.history-check/1"


class HistoryRebuildAnswer(msgspec.Struct, frozen=True):
    """What ``iodelta history rebuild`` did."""

    folders: int
    """From how many folders the database was made."""
    schema: str = "iodelta.history-rebuild/1"
