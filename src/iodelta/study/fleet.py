"""Many hosts that measured one plan: the word of each, and the word they give together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from iodelta.experiment.model import PLACEBO
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

CHANGES = ("regression everywhere", "regression on average")


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
        """The cheaper of both."""
        if self.hosts_hours is None and self.blocks_hours is None:
            return "neither"
        of_hosts, of_blocks = (
            math.inf if hours is None else hours
            for hours in (self.hosts_hours, self.blocks_hours)
        )
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
        """The numbers behind the word."""
        return self.total if self.basis == "total" else self.typical

    @property
    def averaged(self) -> tuple[HostWord, ...]:
        """The hosts that count."""
        return tuple(host for host in self.hosts if host.averaged)

    @property
    def exit_code(self) -> int:
        """1 a regression for sure, 3 one cannot be ruled out, 0 otherwise."""
        own = {host.word for host in self.averaged}
        if (
            self.word in CHANGES
            or self.surely_worse
            or (self.word is None and "regression" in own)
        ):
            return 1
        if self.word in (
            "equivalent everywhere",
            "improvement everywhere",
            "improvement on average",
        ):
            return 0
        settled = bool(own) and own <= {"improvement", "equivalent"}
        return 0 if settled and self.word != "inconclusive" else 3


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
        own = [row for row in self.rows if self.placebo and row.variant == self.placebo]
        return tuple(
            row
            for row in own
            if row.word not in (None, "equivalent everywhere", "inconclusive")
        )

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
        return next((code for code in (1, 3) if code in codes), 0)


def fleet_account(
    folders: Mapping[str, Folder],
    again: Sequence[str] = (),
    left: Mapping[str, Left] = NONE_LEFT,
) -> FleetAccount:
    """The account of hosts by name; ``left`` is what a fleet says of its hosts. Raises RequestError where their folders
    are not of one plan."""
    hosts = read_hosts(folders, left)
    judged = [host.judged for host in hosts if host.judged is not None]
    if not judged:
        return FleetAccount(
            SCHEMA,
            "",
            0.0,
            0.0,
            0,
            tuple(host.member for host in hosts),
            (),
            (),
            tuple(again),
        )
    rules = judged[0].account.judgement.rules
    found: dict[tuple[str, str, str], dict[str, HostWord]] = {}
    about: dict[tuple[str, str, str], Verdict] = {}
    for host in hosts:
        for key, word, verdict in words_of(host):
            found.setdefault(key, {})[host.member.name] = word
            about.setdefault(key, verdict)
    statements = ESTIMANDS * len(found)
    level = 1.0 - rules.alpha / max(1, statements)
    joining = _Joining(hosts, rules.margin, level)
    rows = tuple(
        joining.row(about[key], tuple(words.values())) for key, words in found.items()
    )
    return FleetAccount(
        SCHEMA,
        judged[0].account.plan.experiment.question,
        rules.margin,
        level,
        statements,
        tuple(host.member for host in hosts),
        rows,
        tuple(notes_of(hosts)),
        tuple(again),
        PLACEBO if judged[0].account.plan.experiment.design.placebo else "",
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
        own = [word for word in words if word.averaged]
        typical = self._joint([word.typical for word in own])
        total = self._joint([word.total for word in own])
        agreed_word = self._told(words, own, typical, total)
        basis = agreed_word.basis if agreed_word is not None else "typical"
        of_basis = total if basis == "total" and total is not None else typical
        changes = [word.total if basis == "total" else word.typical for word in own]
        known = [change for change in changes if change is not None]
        apart = of_basis.apart if of_basis is not None else None
        open_ = agreed_word is not None and agreed_word.word == "inconclusive"
        return FleetRow(
            cell=about.cell,
            variant=about.variant,
            baseline=about.baseline,
            metric=about.metric,
            hosts=words,
            word=agreed_word.word if agreed_word is not None else None,
            basis=basis,
            says=agreed_word.says if agreed_word is not None else _alone(own),
            typical=_together(typical, about.metric),
            total=_together(total, about.metric),
            apart=apart,
            groups=self._groups(known, about.metric),
            differing=differences(*(self._environments[name] for name in apart))
            if apart
            else (),
            settles=self._settles(of_basis, known, own)
            if open_ and of_basis is not None
            else None,
            surely_worse=tuple(
                word.host for word in own if self._surely_worse(word, len(own))
            ),
        )

    def _joint(self, changes: Sequence[HostChange | None]) -> Joint | None:
        """What at least three hosts say; None where one of them does not know this change."""
        known = [change for change in changes if change is not None]
        if len(known) < max(FEWEST, len(changes)):
            return None
        return joint(known, self._margin, level=self._level)

    def _told(
        self,
        words: Sequence[HostWord],
        own: Sequence[HostWord],
        typical: Joint | None,
        total: Joint | None,
    ) -> Agreed | None:
        if typical is None:
            return None
        stopped = [f"{word.host}: {word.obstacle}" for word in words if word.obstacle]
        if stopped:
            return Agreed(
                "inconclusive",
                "typical",
                f"no joint verdict can rest on {'; '.join(stopped)}",
            )
        enough = all(word.stalls_excluded for word in own)
        return agreed(
            typical.word,
            total.word if total is not None else None,
            stalls_excluded=enough,
        )

    def _surely_worse(self, word: HostWord, hosts: int) -> bool:
        """Its own folder calls it one, and so does a one-sided t test, Bonferroni over hosts and joint statements."""
        return word.word == "regression" and word.p * hosts <= (1.0 - self._level) / 2

    def _groups(
        self, changes: Sequence[HostChange], metric: Metric
    ) -> tuple[FleetGroup, ...]:
        groups = []
        for by, field in KINDS:
            hosts: dict[str, list[HostChange]] = {}
            for change in changes:
                hosts.setdefault(getattr(self._members[change.host], field), []).append(
                    change
                )
            if len(hosts) < 2:
                continue
            for value, own in hosts.items():
                mean = _signed(float(np.mean([change.value for change in own])), metric)
                groups.append(
                    FleetGroup(
                        by, value, tuple(change.host for change in own), relative(mean)
                    )
                )
        return tuple(groups)

    def _settles(
        self,
        joint_change: Joint,
        changes: Sequence[HostChange],
        own: Sequence[HostWord],
    ) -> Cheaper | None:
        """Both ways to settle it, with their machine hours as blocks took here."""
        if joint_change.together is None:
            return None
        hosts, blocks = len(changes), float(np.mean([change.blocks for change in own]))
        error = math.sqrt(float(np.mean([change.error**2 for change in changes])))
        half = worth_half(joint_change.together, self._margin)
        needed = settling(
            joint_change.together.spread.value, error, hosts, blocks, half, self._level
        )
        more_hosts = None if needed.hosts is None else max(needed.hosts, hosts + 1)
        more_blocks = (
            None
            if needed.blocks is None
            else max(math.ceil(needed.blocks), math.ceil(blocks) + 1)
        )
        return Cheaper(
            more_hosts,
            None
            if more_hosts is None
            else (more_hosts - hosts) * blocks * self._seconds / HOUR,
            more_blocks,
            None
            if more_blocks is None
            else (more_blocks - blocks) * hosts * self._seconds / HOUR,
        )


def _alone(own: Sequence[HostWord]) -> str:
    return f"{plural(len(own), 'host')}: a joint verdict needs {FEWEST}, so each keeps its own"


def _signed(value: float, metric: Metric) -> float:
    """A log-ratio in the metric's own sign, from one where positive is worse."""
    return -value if metric.better == "higher" else value


def _together(joint_change: Joint | None, metric: Metric) -> Together | None:
    if joint_change is None or joint_change.together is None:
        return None
    agreement: Agreement = joint_change.together
    spread = agreement.spread
    return Together(
        _change(agreement.mean, metric),
        _change(agreement.next, metric),
        spread.value,
        spread.low,
        spread.high,
        agreement.share,
    )


def _change(estimate: Estimate, metric: Metric) -> Change:
    low, high = sorted(
        relative(_signed(bound, metric)) for bound in (estimate.low, estimate.high)
    )
    return Change(relative(_signed(estimate.value, metric)), low, high, estimate.level)


def counted(rows: Sequence[FleetRow]) -> dict[str, int]:
    """Word -> how many comparisons, the most frequent first; of hosts alone their own words."""
    words = [row.word for row in rows if row.word is not None]
    return {
        word: words.count(word)
        for word in sorted(set(words), key=lambda word: -words.count(word))
    }
