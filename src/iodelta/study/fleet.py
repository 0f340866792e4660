"""Many hosts that measured one plan: the word of each, and the word they give together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Literal

import msgspec
import numpy as np

from iodelta.experiment.model import PLACEBO
from iodelta.grouping import grouped
from iodelta.lab.folder import Folder
from iodelta.plural import plural
from iodelta.stats.agreement import FEWEST, Agreement, settling
from iodelta.stats.effect import Estimate
from iodelta.study.confounders import Differing, differences
from iodelta.study.fleet_host import (
    FleetMember,
    HostWord,
    Left,
    MeasuredHost,
    key_of,
    notes_of,
    read_hosts,
    seconds_each,
    words_of,
)
from iodelta.verdict import Metric, Verdict
from iodelta.verdict.agreement import (
    Agreed,
    HostChange,
    Joint,
    JointWord,
    agreed,
    joint,
    worth_half,
)
from iodelta.verdict.model import Basis, Change, relative

SCHEMA = "iodelta.fleet/1"

ESTIMANDS = 2
"""Joint statements of a comparison: of a typical trial, and of all work."""

HOUR = 3600.0

Kind = Literal["CPU", "disk", "kernel"]

KINDS: tuple[tuple[Kind, str], ...] = (
    ("CPU", "cpu"),
    ("disk", "disk"),
    ("kernel", "kernel"),
)
"""What hosts are grouped by, and its field of a member."""

NONE_LEFT: Mapping[str, Left] = {}

EXIT_CODES: Mapping[JointWord, int] = {
    "regression everywhere": 1,
    "regression on average": 1,
    "equivalent everywhere": 0,
    "improvement everywhere": 0,
    "improvement on average": 0,
    "regression on these hosts": 1,
    "improvement on these hosts": 0,
    "equivalent on these hosts": 0,
    "inconclusive": 3,
}
"""Of joint words that decide it; 3: a regression cannot be ruled out."""

NO_ALARM = (None, "equivalent everywhere", "equivalent on these hosts", "inconclusive")
"""Joint words of a placebo that give no reason for doubt."""


class Together(msgspec.Struct, frozen=True):
    """What the hosts say together of one estimand, as relative changes of the metric."""

    mean: Change
    """The mean change over hosts like these."""
    next: Change
    """What the next such host will show: its median and prediction interval."""
    spread: float
    """Standard deviation of the true change between hosts (tau), a log-ratio."""
    spread_low: float
    """Lower bound of the spread."""
    spread_high: float
    """Upper bound of the spread."""
    between: float
    """Share of the variance that lies between hosts and not in their errors (I squared)."""


class FleetGroup(msgspec.Struct, frozen=True):
    """The hosts that have one CPU model, disk model or kernel."""

    by: Kind
    """What is the same in this group."""
    value: str
    """The model or release."""
    hosts: tuple[str, ...]
    """Names of its hosts."""
    change: float
    """Mean of their relative changes: a description, it carries no error rate."""


class Cheaper(msgspec.Struct, frozen=True):
    """What would settle an open comparison, in hours of one machine; null where no number would."""

    hosts: int | None
    """Hosts in all, each with as many blocks as today's."""
    hosts_hours: float | None
    """Machine hours of the hosts to be added."""
    blocks: int | None
    """Blocks in all on each of today's hosts."""
    blocks_hours: float | None
    """Machine hours of the blocks to be added, over all hosts."""

    @property
    def choice(self) -> Literal["hosts", "blocks", "neither"]:
        """Return the cheaper of both."""
        of_hosts = math.inf if self.hosts_hours is None else self.hosts_hours
        of_blocks = math.inf if self.blocks_hours is None else self.blocks_hours
        if math.isinf(min(of_hosts, of_blocks)):
            return "neither"
        return "blocks" if of_blocks <= of_hosts else "hosts"


class FleetRow(msgspec.Struct, frozen=True):
    """One comparison on all hosts."""

    cell: str
    variant: str
    baseline: str
    metric: Metric
    hosts: tuple[HostWord, ...]
    """What each host says."""
    word: JointWord | None
    """The joint word; null for fewer than three hosts."""
    basis: Basis
    says: str
    """What the word rests on or lacks, where that needs saying."""
    typical: Together | None
    """Of a typical trial."""
    total: Together | None
    """Of all work done; null where it is not known of every host."""
    apart: tuple[str, str] | None
    """The two hosts whose changes most surely differ by more than the margin, the worse first."""
    groups: tuple[FleetGroup, ...]
    """The hosts by CPU model, disk model and kernel, where these differ."""
    differing: tuple[Differing, ...]
    """What differs between the hosts in ``apart``."""
    settles: Cheaper | None
    """What would settle it; null where a word is said."""
    surely_worse: tuple[str, ...]
    """Hosts with a regression of their own that also holds corrected for the number of hosts and statements."""

    @property
    def together(self) -> Together | None:
        """Return the numbers behind the word."""
        return self.total if self.basis == "total" else self.typical

    @property
    def averaged(self) -> tuple[HostWord, ...]:
        """Return the hosts that count."""
        return tuple(host for host in self.hosts if host.averaged)

    @property
    def exit_code(self) -> int:
        """1 a regression for sure, 3 one cannot be ruled out, 0 otherwise."""
        if self.surely_worse:
            return 1
        if self.word is not None and self.word in EXIT_CODES:
            return EXIT_CODES[self.word]
        # Too few hosts for a joint word, or hosts that differ: their own words decide.
        words = {host.word for host in self.averaged}
        if self.word is None and "regression" in words:
            return 1
        settled = bool(words) and words <= {"improvement", "equivalent"}
        return 0 if settled else 3


class FleetAccount(msgspec.Struct, frozen=True):
    """Everything that ``iodelta fleet report`` has to say."""

    schema: str
    question: str
    margin: float
    """The relative change that matters."""
    level: float
    """Level of every joint interval: corrected for the number of joint statements."""
    statements: int
    """Joint statements that the level is corrected for."""
    hosts: tuple[FleetMember, ...]
    """Every host, averaged or not."""
    rows: tuple[FleetRow, ...]
    """One for each cell, variant and metric."""
    notes: tuple[str, ...] = ()
    """What a reader must know of the hosts."""
    again: tuple[str, ...] = ()
    """Commands that do it again."""
    placebo: str = ""
    """The variant that is the baseline under another name; empty where there is none."""

    @property
    def alarms(self) -> tuple[FleetRow, ...]:
        """Comparisons of the baseline with itself that the hosts together call a change: then trust no word."""
        if not self.placebo:
            return ()
        of_placebo = [row for row in self.rows if row.variant == self.placebo]
        return tuple(row for row in of_placebo if row.word not in NO_ALARM)

    @property
    def drained(self) -> tuple[FleetMember, ...]:
        """Hosts that are shown and not averaged."""
        return tuple(host for host in self.hosts if host.drained)

    @property
    def exit_code(self) -> int:
        """1 a regression everywhere, on average or on some host for sure, 3 one cannot be ruled out, 4 nothing could be
        judged, 0 otherwise."""
        if not any(row.averaged for row in self.rows):
            return 4
        if self.alarms:
            return 3
        codes = {row.exit_code for row in self.rows if row.variant != self.placebo}
        if 1 in codes:
            return 1
        return 3 if 3 in codes else 0


def fleet_account(
    folders: Mapping[str, Folder],
    again: Sequence[str] = (),
    left: Mapping[str, Left] = NONE_LEFT,
) -> FleetAccount:
    """Return the account of hosts by name; ``left`` is what a fleet says of its hosts. Raises RequestError where their
    folders are not of one plan."""
    hosts = read_hosts(folders, left)
    judged = [host.judged for host in hosts if host.judged is not None]
    if not judged:
        return FleetAccount(
            schema=SCHEMA,
            question="",
            margin=0.0,
            level=0.0,
            statements=0,
            hosts=tuple(host.member for host in hosts),
            rows=(),
            notes=(),
            again=tuple(again),
        )
    rules = judged[0].account.judgement.rules
    of_hosts = list(chain.from_iterable(map(words_of, hosts)))
    comparisons = grouped(of_hosts, lambda of_host: key_of(of_host[1]))
    statements = ESTIMANDS * len(comparisons)
    level = 1.0 - rules.alpha / max(1, statements)
    joining = _Joining(hosts, rules.margin, level)
    rows = []
    for comparison in comparisons.values():
        words, verdicts = zip(*comparison, strict=True)
        rows.append(joining.row(verdicts[0], words))
    return FleetAccount(
        schema=SCHEMA,
        question=judged[0].account.plan.experiment.question,
        margin=rules.margin,
        level=level,
        statements=statements,
        hosts=tuple(host.member for host in hosts),
        rows=tuple(rows),
        notes=tuple(notes_of(hosts)),
        again=tuple(again),
        placebo=PLACEBO if judged[0].account.plan.experiment.design.placebo else "",
    )


class _Joining:
    """What the hosts of one plan have in common when their rows are joined."""

    def __init__(
        self, hosts: Sequence[MeasuredHost], margin: float, level: float
    ) -> None:
        self._members = {host.member.name: host.member for host in hosts}
        self._environments = {host.member.name: host.environment for host in hosts}
        self._seconds = seconds_each(hosts)
        self._margin, self._level = math.log1p(margin), level

    def row(self, about: Verdict, words: tuple[HostWord, ...]) -> FleetRow:
        """Return all that is said of one comparison; ``about`` is its verdict on any host."""
        counting = [word for word in words if word.averaged]
        typical = self._joint([word.typical for word in counting])
        total = self._joint([word.total for word in counting])
        agreement = self._agreed(words, counting, typical, total)
        word: JointWord | None = None
        basis: Basis = "typical"
        says = _alone(counting)
        if agreement is not None:
            word, basis, says = agreement.word, agreement.basis, agreement.says
        of_total = basis == "total"
        behind = total if of_total and total is not None else typical
        changes = [word.total if of_total else word.typical for word in counting]
        known = list(filter(None, changes))
        hosts = len(counting)
        # The hosts by CPU, disk and kernel, where these differ between hosts.
        groups: list[FleetGroup] = []
        for by, field in KINDS:
            by_value = grouped(known, partial(self._model, field))
            if len(by_value) > 1:
                groups += [
                    _group(by, value, of_value, about.metric)
                    for value, of_value in by_value.items()
                ]
        return FleetRow(
            cell=about.cell,
            variant=about.variant,
            baseline=about.baseline,
            metric=about.metric,
            hosts=words,
            word=word,
            basis=basis,
            says=says,
            typical=_together(typical, about.metric),
            total=_together(total, about.metric),
            apart=behind.apart if behind is not None else None,
            groups=tuple(groups),
            differing=self._differing(behind),
            settles=self._settles(word, behind, known, counting),
            surely_worse=tuple(
                word.host
                for word in counting
                if (
                    word.word == "regression"
                    and word.p * hosts <= (1.0 - self._level) / 2
                )
            ),
        )

    def _differing(self, behind: Joint | None) -> tuple[Differing, ...]:
        """Return what differs between the two hosts whose changes most surely differ."""
        if behind is None or behind.apart is None:
            return ()
        worse, better = behind.apart
        return differences(self._environments[worse], self._environments[better])

    def _joint(self, changes: Sequence[HostChange | None]) -> Joint | None:
        """Return what at least three hosts say; None where one of them does not know this change."""
        known = [change for change in changes if change is not None]
        if len(known) < max(FEWEST, len(changes)):
            return None
        return joint(known, self._margin, level=self._level)

    def _model(self, field: str, change: HostChange) -> str:
        """Return the CPU, disk or kernel of the host of a change."""
        model: str = getattr(self._members[change.host], field)
        return model

    def _settles(
        self,
        word: JointWord | None,
        behind: Joint | None,
        changes: Sequence[HostChange],
        counting: Sequence[HostWord],
    ) -> Cheaper | None:
        """Both ways to settle what is inconclusive, with their machine hours as blocks took here."""
        if word != "inconclusive" or behind is None or behind.together is None:
            return None
        hosts = len(changes)
        blocks = float(np.mean([change.blocks for change in counting]))
        error = math.sqrt(float(np.mean([change.error**2 for change in changes])))
        needed = settling(
            behind.together.spread.value,
            error,
            hosts,
            blocks,
            worth_half(behind.together, self._margin),
            self._level,
        )
        more_hosts = hosts_hours = more_blocks = blocks_hours = None
        if needed.hosts is not None:
            more_hosts = max(needed.hosts, hosts + 1)
            hosts_hours = (more_hosts - hosts) * blocks * self._seconds / HOUR
        if needed.blocks is not None:
            more_blocks = max(math.ceil(needed.blocks), math.ceil(blocks) + 1)
            blocks_hours = (more_blocks - blocks) * hosts * self._seconds / HOUR
        return Cheaper(
            hosts=more_hosts,
            hosts_hours=hosts_hours,
            blocks=more_blocks,
            blocks_hours=blocks_hours,
        )

    def _agreed(
        self,
        words: Sequence[HostWord],
        counting: Sequence[HostWord],
        typical: Joint | None,
        total: Joint | None,
    ) -> Agreed | None:
        """Return the joint word; None for too few hosts, "inconclusive" where a host's obstacle forbids one."""
        if typical is None:
            return None
        obstacles = [f"{word.host}: {word.obstacle}" for word in words if word.obstacle]
        if obstacles:
            says = f"no joint verdict can rest on {'; '.join(obstacles)}"
            return Agreed("inconclusive", "typical", says)
        return agreed(
            typical.word,
            total.word if total is not None else None,
            stalls_excluded=all(word.stalls_excluded for word in counting),
        )


def _alone(counting: Sequence[HostWord]) -> str:
    hosts = plural(len(counting), "host")
    return (
        f"{hosts} averaged; a joint verdict needs {FEWEST}, so each host keeps its own"
    )


def _group(
    by: Kind, value: str, changes: Sequence[HostChange], metric: Metric
) -> FleetGroup:
    mean = float(np.mean([change.value for change in changes]))
    return FleetGroup(
        by=by,
        value=value,
        hosts=tuple(change.host for change in changes),
        change=relative(_signed(mean, metric)),
    )


def _signed(value: float, metric: Metric) -> float:
    """Return a log-ratio in the metric's own sign, from one where positive is worse."""
    return -value if metric.better == "higher" else value


def _together(joint_change: Joint | None, metric: Metric) -> Together | None:
    if joint_change is None or joint_change.together is None:
        return None
    agreement: Agreement = joint_change.together
    spread = agreement.spread
    return Together(
        mean=_change(agreement.mean, metric),
        next=_change(agreement.next, metric),
        spread=spread.value,
        spread_low=spread.low,
        spread_high=spread.high,
        between=agreement.share,
    )


def _change(estimate: Estimate, metric: Metric) -> Change:
    """Return a log-ratio as a relative change of the metric."""
    ends = (estimate.low, estimate.high)
    low, high = sorted(relative(_signed(end, metric)) for end in ends)
    return Change(relative(_signed(estimate.value, metric)), low, high, estimate.level)


def counted(rows: Sequence[FleetRow]) -> dict[str, int]:
    """Word -> how many comparisons, the most frequent first; of hosts alone their own words."""
    words = Counter(row.word for row in rows if row.word is not None)
    return dict(words.most_common())
