"""Alerts: all series that step where one change may have made them step, with what was measured and decided of them.

An alert follows from the points and the log alone, so a history that is rebuilt has the same alerts.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from iodelta.history.answers import (
    Alert,
    AlertCommit,
    AlertExperiment,
    Candidate,
    FalseAlarms,
    HistoryPoint,
)
from iodelta.history.commits import Order, Span
from iodelta.history.log import Confirmed, Decided, Entry, Opened
from iodelta.history.notes import between, placed
from iodelta.history.placebo import Placebos
from iodelta.history.scan import Found, Kept, clearest, scanned
from iodelta.history.store import Line

OPEN = ("new", "investigating")
"""Words after which an alert still asks for something."""

CANDIDATE_RATES = {"ratio": 1.4, "level": 4.9}
"""Candidates in 1000 points without a step: the worst of the simulated nights of each kind (benchmarks/history)."""

CONFIRMED_RATE = 0.06
"""Upper bound of those that a fresh experiment confirmed, over all simulated nights (benchmarks/history)."""

STATES = {
    "regression": "confirmed",
    "improvement": "confirmed",
    "equivalent": "closed",
    "inconclusive": "inconclusive",
    "contradicted": "contradicted",
}
"""State of an alert by the word of its last experiment."""


UNDECIDED = Decided(0.0, "", "new")


class Group(msgspec.Struct, frozen=True):
    """Candidates that one change may have made, the clearest first; those of builds that stay the same come last."""

    members: tuple[Found, ...]

    @property
    def first(self) -> Candidate:
        """Return the clearest of a build that changes, where there is one: only its two builds can be compared."""
        return self.members[0].candidate


class History(msgspec.Struct, frozen=True):
    """What a history amounts to."""

    candidates: tuple[Candidate, ...]
    alerts: tuple[Alert, ...]
    """The newest first."""
    opened: tuple[Opened, ...]
    """Alerts that the log does not have yet."""


def history(lines: Iterable[Line], entries: Sequence[Entry]) -> History:
    """Return all alerts of these series, scanned here, and which of them the log is to hold."""
    lines = list(lines)
    seen = {point.experiment: point for line in lines for point in line.points}
    return alerts_of(scanned(lines, Order(entries)), entries, seen)


def alerts_of(
    kept: Sequence[Kept], entries: Sequence[Entry], seen: Mapping[str, HistoryPoint]
) -> History:
    """Return all alerts by what scans found and by the log, without a scan; ``seen`` are the nights by experiment."""
    order = Order(entries)
    found = clearest(kept)
    known = [entry for entry in entries if isinstance(entry, Opened)]
    matched, unknown = _matched(grouped(found), known, seen, order)
    logged = {entry.alert for entry in known}
    fresh: list[Opened] = []
    for group in unknown:
        opened = _opened(group)
        matched[opened.alert] = group
        # The identifier is made from series and nights: the log may have it already.
        if opened.alert not in logged:
            fresh.append(opened)
    teller = _Teller(kept, order, entries, seen)
    alerts = [
        teller.alert(entry, matched.get(entry.alert)) for entry in (*known, *fresh)
    ]
    alerts.sort(key=_newest_first)
    return History(tuple(item.candidate for item in found), tuple(alerts), tuple(fresh))


def _newest_first(alert: Alert) -> tuple[float, str]:
    """Return a key for sorting; an alert without its night comes last."""
    t = alert.first_bad.t if alert.first_bad else 0.0
    return -t, alert.id


def grouped(items: Sequence[Found]) -> list[Group]:
    """Return the clearest candidate, and of every other series the clearest whose change may be the same; then the
    clearest of what is left. A series that steps twice is in two groups."""
    left = list(items)
    groups = []
    while left:
        anchor = left[0]
        members = {anchor.candidate.series: anchor}
        for item in left[1:]:
            if item.span.meets(anchor.span):
                members.setdefault(item.candidate.series, item)
        changing_first = sorted(
            members.values(), key=lambda item: item.candidate.placebo
        )
        groups.append(Group(tuple(changing_first)))
        taken = set(map(id, members.values()))
        left = [item for item in left if id(item) not in taken]
    return groups


def _matched(
    groups: Sequence[Group],
    known: Sequence[Opened],
    seen: Mapping[str, HistoryPoint],
    order: Order,
) -> tuple[dict[str, Group], list[Group]]:
    """Return the groups of alerts that the log has, by identifier, and the others."""
    spans = {entry.alert: _span(entry, seen, order) for entry in known}
    by_series: dict[int, list[Opened]] = {}
    for entry in known:
        for series in entry.series:
            by_series.setdefault(series, []).append(entry)
    places = {entry.alert: place for place, entry in enumerate(known)}
    matched: dict[str, Group] = {}
    unknown = []
    for group in groups:
        alerts: set[str] = set()
        for member in group.members:
            for entry in by_series.get(member.candidate.series, ()):
                span = spans[entry.alert]
                if span is not None and member.span.meets(span):
                    alerts.add(entry.alert)
        free = sorted(alerts - matched.keys(), key=places.__getitem__)
        if free:
            matched[free[0]] = group
        # A second group of one alert opens no other: its step was seen in two places.
        elif not alerts:
            unknown.append(group)
    return matched, unknown


def _span(entry: Opened, seen: Mapping[str, HistoryPoint], order: Order) -> Span | None:
    """From the good night of an alert to the bad one; None where the history has one of them no more."""
    if entry.last_good not in seen or entry.first_bad not in seen:
        return None
    return order.span(seen[entry.last_good], seen[entry.first_bad])


def _opened(group: Group) -> Opened:
    first = group.first
    named = (
        first.machine,
        str(first.series),
        first.last_good.experiment,
        first.first_bad.experiment,
    )
    alert = hashlib.sha256("\0".join(named).encode()).hexdigest()[:8]
    series = tuple(sorted(member.candidate.series for member in group.members))
    return Opened(
        time.time(),
        alert,
        series,
        first.last_good.experiment,
        first.first_bad.experiment,
    )


class _Teller:
    """What is known of an alert."""

    def __init__(
        self,
        kept: Sequence[Kept],
        order: Order,
        entries: Sequence[Entry],
        seen: Mapping[str, HistoryPoint],
    ) -> None:
        self._placebos = Placebos(one.quiet for one in kept if one.quiet is not None)
        self._kept = {one.series: one for one in kept}
        self._order = order
        self._seen = seen
        self._notes = placed(entries, seen.values(), order)
        self._experiments: dict[str, list[AlertExperiment]] = {}
        self._decided: dict[str, Decided] = {}
        for entry in entries:
            if isinstance(entry, Confirmed):
                experiment = AlertExperiment(
                    entry.at, entry.folder, entry.word, entry.verdicts
                )
                self._experiments.setdefault(entry.alert, []).append(experiment)
            elif isinstance(entry, Decided):
                before = self._decided.get(entry.alert, UNDECIDED)
                self._decided[entry.alert] = msgspec.structs.replace(
                    entry,
                    owner=entry.owner or before.owner,
                    bug=entry.bug or before.bug,
                )

    def alert(self, entry: Opened, group: Group | None) -> Alert:
        """Return an alert of the log with the group of steps that is its own; None where its step is no longer seen."""
        experiments = tuple(self._experiments.get(entry.alert, ()))
        decided = self._decided.get(entry.alert, UNDECIDED)
        good, bad = self._seen.get(entry.last_good), self._seen.get(entry.first_bad)
        steps: tuple[Candidate, ...] = ()
        gone: tuple[str, ...] = ()
        if group:
            steps = tuple(member.candidate for member in group.members)
            good, bad = steps[0].last_good, steps[0].first_bad
        else:
            gone = self._names_of(entry)
        is_over = group is None and self._is_over(entry)
        commits, word = self._commits(good, bad)
        return Alert(
            id=entry.alert,
            kind="incident" if is_over else kind_of(steps),
            state=_state(experiments, is_there=group is not None, is_over=is_over),
            triage=decided.word,
            why=decided.why,
            opened=entry.at,
            last_good=good,
            first_bad=bad,
            commits=commits,
            range_word=word,
            steps=steps,
            experiments=experiments,
            decided_by=decided.by,
            decided_at=None if decided is UNDECIDED else decided.at,
            owner=decided.owner,
            bug=decided.bug,
            false_alarms=self._false_alarms(entry, steps, experiments),
            notes=between(self._notes, good, bad, self._order) if good and bad else (),
            gone=gone,
        )

    def _commits(
        self, good: HistoryPoint | None, bad: HistoryPoint | None
    ) -> tuple[tuple[AlertCommit, ...], str]:
        """Return the commits after the good night's up to the bad night's; or why they cannot be listed."""
        if good is None or bad is None:
            return (), "its nights are gone"
        logged, word = self._order.between(good, bad)
        commits = [
            AlertCommit(commit.sha, commit.t, commit.author, commit.subject)
            for commit in logged
        ]
        return tuple(commits), word

    def _names_of(self, entry: Opened) -> tuple[str, ...]:
        """Return what the series of an alert are called, as far as the history still has them."""
        known = [self._kept[number] for number in entry.series if number in self._kept]
        return tuple("  ".join(filter(None, one.name)) for one in known)

    def _is_over(self, entry: Opened) -> bool:
        """Return whether what was seen went away within five points."""
        span = _span(entry, self._seen, self._order)
        if span is None:
            return False
        known = [self._kept[number] for number in entry.series if number in self._kept]
        return any(gone.span.meets(span) for one in known for gone in one.gone)

    def _false_alarms(
        self,
        entry: Opened,
        steps: Sequence[Candidate],
        experiments: Sequence[AlertExperiment],
    ) -> FalseAlarms:
        by = steps[0].by if steps else "ratio"
        own = self._kept.get(steps[0].series if steps else entry.series[0])
        of_series = (
            (own.nights, len(own.found) + len(own.gone)) if own is not None else (0, 0)
        )
        machines = [
            self._kept[series].machine
            for series in entry.series
            if series in self._kept
        ]
        points, candidates = self._placebos.count(machines, by)
        states = [STATES.get(experiment.word) for experiment in experiments]
        if "confirmed" in states:
            rule = "a candidate that a fresh experiment of both builds confirmed"
            return FalseAlarms(rule, CONFIRMED_RATE, points, candidates, *of_series)
        rule = f"a candidate at z 3.5 {BY_WORDS[by]}"
        return FalseAlarms(rule, CANDIDATE_RATES[by], points, candidates, *of_series)


BY_WORDS = {"ratio": "against the reference", "level": "of the level alone"}


def _state(
    experiments: Sequence[AlertExperiment], *, is_there: bool, is_over: bool
) -> str:
    state = _measured_state([experiment.word for experiment in experiments])
    if is_there or state in ("confirmed", "closed", "contradicted"):
        return state
    return "over" if is_over else "withdrawn"


def _measured_state(words: Sequence[str]) -> str:
    """Return the state of an alert by the words of its experiments, of which the last counts."""
    if not words:
        return "candidate"
    return STATES.get(words[-1], "inconclusive")


def kind_of(steps: Sequence[Candidate]) -> str:
    """Return whether a build or the machine changed, or I/Os only moved."""
    if steps and all(step.placebo for step in steps):
        return "machine"
    if _is_shifted(steps):
        return "shifted"
    return "step"


def _is_shifted(steps: Sequence[Candidate]) -> bool:
    """Return whether one cell lost as many I/Os of one kind as it gained of another. Cells run after each other, so
    I/Os do not move between them."""
    cells: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for step in steps:
        if step.metric.endswith(".iops"):
            # Points are logarithms, and steps of them are positive where it got worse: back to I/Os per second.
            before = math.exp(step.last_good.y)
            moved = (before * math.expm1(-step.size), before * step.error)
            cells.setdefault((step.machine, step.cell, step.variant), []).append(moved)
    return bool(cells) and all(map(_balanced, cells.values()))


def _balanced(moved: Sequence[tuple[float, float]]) -> bool:
    """Return whether gains and losses cancel out, within two standard errors of their sum."""
    changes = [change for change, _ in moved]
    if min(changes) >= 0.0 or max(changes) <= 0.0:
        return False
    return abs(sum(changes)) <= 2.0 * math.hypot(*(error for _, error in moved))


class Standing(msgspec.Struct, frozen=True):
    """What the log says of a step."""

    alert: str = ""
    """Its alert; empty for a step that no scan has recorded."""
    state: str = "candidate"
    """As that of an alert."""
    triage: str = ""
    """What a person decided; empty before."""

    @property
    def is_confirmed(self) -> bool:
        """Return whether the last experiment of both builds found it."""
        return self.state == "confirmed"

    @property
    def said(self) -> str:
        """In words: state, alert and decision."""
        words = (self.state, self.alert and f"alert {self.alert}", self.triage)
        return ", ".join(filter(None, words))


def standing(step: Candidate, alerts: Iterable[Alert]) -> Standing:
    """Return what the alerts of a history say of a step."""
    for alert in alerts:
        for own in alert.steps:
            same = (own.series, own.first_bad.experiment) == (
                step.series,
                step.first_bad.experiment,
            )
            if same:
                # "new" is what a step is before anybody decided.
                return Standing(
                    alert.id, alert.state, "" if alert.triage == "new" else alert.triage
                )
    return Standing()


def is_foreign(alert: Alert) -> bool:
    """Return whether another program measured its nights: then iodelta has no builds to measure again."""
    return any(
        "foreign" in point.flags
        for step in alert.steps
        for point in (step.last_good, step.first_bad)
    )


def is_asking(alert: Alert) -> bool:
    """Return whether an alert waits for a measurement or a person."""
    return alert.triage in OPEN and alert.state in (
        "candidate",
        "inconclusive",
        "confirmed",
    )
