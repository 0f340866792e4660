"""What a history answers: its points, its candidates, and the JSON documents of ``iodelta history``."""

from __future__ import annotations

import math

import msgspec

from iodelta.plural import plural


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
    """What ``iodelta history add`` did, up to the first path that could not be added."""

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
    repo: str = ""
    """The repository of the commit."""
    n: int = 0
    """The blocks, or what else was repeated."""


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


class Note(msgspec.Struct, frozen=True):
    """What a person noted."""

    text: str
    """What it says."""
    t: float | None
    """Unix seconds at which it stands: of a note at a commit, the first night that measured the commit or a later one;
    none where no night did."""
    commit: str = ""
    """The commit at which it stands; empty where it stands at a time."""
    by: str = ""
    """Who noted it; empty where that is not known."""


class HistoryShowAnswer(msgspec.Struct, frozen=True):
    """What a history holds."""

    experiments: int
    """How many experiments it has."""
    series: tuple[HistorySeries, ...]
    """All of its series."""
    notes: tuple[Note, ...] = ()
    """What people noted, in the order of time."""
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
    """Whether there are too few nights to know how much they resemble each other."""
    series: int = 0
    """The number of the series in the database."""
    order: str = "time"
    """What nights follow: ``commits`` by first parent, or ``time``."""
    order_word: str = ""
    """Why they do not follow the commits."""
    placebo: bool = False
    """Whether the series is of a build that stays the same: then the machine changed."""
    better: str = "higher"
    """Which number of the metric is better: ``higher`` or ``lower``."""
    doubts: tuple[str, ...] = ()
    """What else may have made the step: a drift, a season, a young epoch; or that a second segmentation lacks it."""

    @property
    def name(self) -> tuple[str, str, str, str]:
        """Machine, cell, variant and metric."""
        return self.machine, self.cell, self.variant, self.metric

    @property
    def change(self) -> float:
        """Return the relative change of the metric's number: negative where it fell."""
        return math.expm1(-self.size if self.better == "higher" else self.size)

    @property
    def way(self) -> str:
        """``worse`` or ``better``."""
        return "worse" if self.size > 0.0 else "better"


class AlertCommit(msgspec.Struct, frozen=True):
    """A commit in the range of an alert."""

    sha: str
    """Full hash."""
    t: float
    """Unix seconds at which it was committed."""
    author: str
    """Name of its author."""
    subject: str
    """First line of its message."""


class AlertExperiment(msgspec.Struct, frozen=True):
    """A fresh experiment of both builds."""

    at: float
    """Unix seconds at which it ended."""
    folder: str
    """Its folder."""
    word: str
    """``regression``, ``improvement``, ``equivalent``, ``inconclusive``, or ``contradicted``: the other direction."""
    verdicts: tuple[str, ...]
    """What it found in each cell, a sentence each."""


class FalseAlarms(msgspec.Struct, frozen=True):
    """How often the rule of an alert speaks without a change."""

    rule: str
    """The rule in words."""
    per_1000: float
    """Expected in 1000 points without a change (simulated: benchmarks/history)."""
    placebo_points: int
    """Points of this machine's own series without a change."""
    placebo_candidates: int
    """Candidates among them."""
    series_points: int = 0
    """Points of the clearest series of the alert."""
    series_candidates: int = 0
    """Steps and incidents in these: where the series drifts or has a season, most of them are false."""

    @property
    def of_series(self) -> str:
        """Return in words what the rule says of this very series."""
        rate = 1000.0 * self.series_candidates / max(self.series_points, 1)
        counted = plural(self.series_candidates, "candidate")
        return f"{counted} in {plural(self.series_points, 'night')}, {rate:.3g} in 1000"


class Alert(msgspec.Struct, frozen=True):
    """All series that step where one change may have made them step."""

    id: str
    """Stays the same for as long as the alert is known."""
    kind: str
    """``step``; ``incident`` (gone within five points); ``shifted`` (as many I/Os more as fewer); ``machine`` (a build
    that stays the same stepped)."""
    state: str
    """``candidate``, ``confirmed``, ``closed`` (equivalent), ``inconclusive``, ``contradicted``, ``over`` (an incident)
    or ``withdrawn`` (more nights say that there is none)."""
    triage: str
    """``new``, or the last word that a person decided."""
    why: str
    """The reason that the person gave."""
    opened: float
    """Unix seconds at which it was first seen."""
    last_good: HistoryPoint | None
    """The newest night that was surely before the step; none where its folder is gone."""
    first_bad: HistoryPoint | None
    """The oldest night that was surely after it."""
    commits: tuple[AlertCommit, ...]
    """Commits between them by first parent, oldest first."""
    range_word: str
    """Why there are none to list."""
    steps: tuple[Candidate, ...]
    """The series, the clearest first; those of builds that stay the same come last."""
    experiments: tuple[AlertExperiment, ...]
    """Fresh experiments of both builds, oldest first."""
    false_alarms: FalseAlarms
    """How often this rule is wrong."""
    notes: tuple[Note, ...] = ()
    """What people noted between the two nights: it may explain the step."""
    gone: tuple[str, ...] = ()
    """Names of the series that it was opened with, where none of them steps any more."""
    decided_by: str = ""
    """Who said the last word; empty where that is not known."""
    decided_at: float | None = None
    """Unix seconds of the last word."""
    owner: str = ""
    """Who looks after it, by the last word that names somebody."""
    bug: str = ""
    """Address of its bug report, by the last word that has one."""
    schema: str = "iodelta.history-alert/1"


class HistoryScanAnswer(msgspec.Struct, frozen=True):
    """What ``iodelta history scan`` found."""

    candidates: tuple[Candidate, ...]
    """The largest z first."""
    alerts: tuple[Alert, ...] = ()
    """The candidates by what may have made them, with the alerts of before; the newest first."""
    schema: str = "iodelta.history-scan/1"


class RevisionChange(msgspec.Struct, frozen=True):
    """One series that measured two builds, in nights of one epoch."""

    series: str
    """Its number."""
    name: str
    """Machine, cell, variant and metric."""
    change: float
    """Logarithm of the new build's number over the old one's (of the ratios to the reference, where there are such)."""
    error: float
    """Its standard error, with the scatter between the nights of the series."""
    z: float
    """The change over its error."""
    worse: bool
    """Whether the new build is worse."""
    old_nights: int
    """Nights of the old build."""
    new_nights: int
    """Nights of the new one."""


class HistoryCompareAnswer(msgspec.Struct, frozen=True):
    """Two builds over all series that measured both; none of it is a verdict."""

    old: str
    """As it was asked for."""
    new: str
    """As it was asked for."""
    rows: tuple[RevisionChange, ...]
    """The clearest first."""
    schema: str = "iodelta.history-compare/1"


class HistoryNightAnswer(msgspec.Struct, frozen=True):
    """What one night brought."""

    added: NightAdded
    """Its folder."""
    alerts: tuple[Alert, ...]
    """All alerts of the history, the newest first."""
    waiting: tuple[str, ...]
    """Alerts whose confirmation needs something of the user, and what."""
    failed: tuple[str, ...]
    """Alerts whose builds could not be measured, and why."""
    schema: str = "iodelta.history-night/1"


class HistoryNoteAnswer(msgspec.Struct, frozen=True):
    """A note that was kept."""

    text: str
    """What it says."""
    t: float | None
    """Unix seconds at which it stands; none where it stands at a commit."""
    commit: str
    """The commit at which it stands; empty where it stands at a time."""
    schema: str = "iodelta.history-note/1"


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


class NightPruned(msgspec.Struct, frozen=True):
    """One night that is taken out of a history."""

    experiment: str
    """Its identifier."""
    t: float
    """Unix seconds at which it began."""
    machine: str
    """The machine's name."""
    folder: str
    """Where its folder is or was; nothing there is changed."""
    reason: str
    """Why it is taken out."""


class HistoryPruneAnswer(msgspec.Struct, frozen=True):
    """What ``iodelta history prune`` took out."""

    pruned: tuple[NightPruned, ...]
    """The oldest first."""
    done: bool
    """False where this was only asked for (``--dry-run``)."""
    schema: str = "iodelta.history-prune/1"


class LakeWritten(msgspec.Struct, frozen=True):
    """What an export to a lake did."""

    target: str
    """Directory or address of the table."""
    appended: int
    """Experiments that it lacked."""
    deleted: int
    """Experiments that were replaced, or are no longer in the history."""
    commits: int
    """Batches that were appended."""
