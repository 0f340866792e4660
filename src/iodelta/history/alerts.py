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
    order, found = Order(entries), clearest(kept)
    known = {entry.alert: entry for entry in entries if isinstance(entry, Opened)}
    spans: dict[str, Span] = {}
    by_series: dict[int, list[str]] = {}
    for name, entry in known.items():
        # Without one of its nights an alert is not found again.
        if entry.last_good in seen and entry.first_bad in seen:
            spans[name] = order.span(seen[entry.last_good], seen[entry.first_bad])
            for series in entry.series:
                by_series.setdefault(series, []).append(name)
    matched: dict[str, list[Candidate]] = {}
    unknown: list[list[Candidate]] = []
    for group in grouped(found):
        meeting = {
            name
            for one in group
            for name in by_series.get(one.candidate.series, ())
            if one.span.meets(spans[name])
        }
        # Steps of a build that changes come first: only its two builds can be compared.
        steps = sorted((one.candidate for one in group), key=lambda step: step.placebo)
        free = [name for name in known if name in meeting - matched.keys()]
        if free:
            matched[free[0]] = steps
        # A second group of one alert opens no other: its step was seen in two places.
        elif not meeting:
            unknown.append(steps)
    fresh: list[Opened] = []
    for steps in unknown:
        first = steps[0]
        ends = (first.last_good.experiment, first.first_bad.experiment)
        words = "\0".join((first.machine, str(first.series), *ends))
        name = hashlib.sha256(words.encode()).hexdigest()[:8]
        matched[name] = steps
        # The name is made from series and nights: the log may have it already.
        if name not in known:
            numbers = tuple(sorted(step.series for step in steps))
            fresh.append(Opened(time.time(), name, numbers, *ends))
    experiments: dict[str, list[AlertExperiment]] = {}
    decided: dict[str, Decided] = {}
    for said in entries:
        if isinstance(said, Confirmed):
            one = AlertExperiment(said.at, said.folder, said.word, said.verdicts)
            experiments.setdefault(said.alert, []).append(one)
        elif isinstance(said, Decided):
            before = decided.get(said.alert, UNDECIDED)
            decided[said.alert] = msgspec.structs.replace(
                said, owner=said.owner or before.owner, bug=said.bug or before.bug
            )
    placebos = Placebos(one.quiet for one in kept if one.quiet is not None)
    numbered = {one.series: one for one in kept}
    notes = placed(entries, seen.values(), order)

    def told(entry: Opened) -> Alert:
        steps = tuple(matched.get(entry.alert, ()))
        good, bad = seen.get(entry.last_good), seen.get(entry.first_bad)
        if steps:
            good, bad = steps[0].last_good, steps[0].first_bad
        own = [numbered[number] for number in entry.series if number in numbered]
        span = spans.get(entry.alert)
        is_over = (
            not steps
            and span is not None
            and any(gone.span.meets(span) for one in own for gone in one.gone)
        )
        measured = tuple(experiments.get(entry.alert, ()))
        state = (
            STATES.get(measured[-1].word, "inconclusive") if measured else "candidate"
        )
        if not steps and state not in ("confirmed", "closed", "contradicted"):
            state = "over" if is_over else "withdrawn"
        word = decided.get(entry.alert, UNDECIDED)
        commits, range_word = (
            order.between(good, bad) if good and bad else ((), "its nights are gone")
        )
        return Alert(
            id=entry.alert,
            kind="incident" if is_over else kind_of(steps),
            state=state,
            triage=word.word,
            why=word.why,
            opened=entry.at,
            last_good=good,
            first_bad=bad,
            commits=tuple(
                AlertCommit(commit.sha, commit.t, commit.author, commit.subject)
                for commit in commits
            ),
            range_word=range_word,
            steps=steps,
            experiments=measured,
            decided_by=word.by,
            decided_at=None if word is UNDECIDED else word.at,
            owner=word.owner,
            bug=word.bug,
            false_alarms=false_alarms(entry, steps, measured, own),
            notes=between(notes, good, bad, order) if good and bad else (),
            gone=()
            if steps
            else tuple("  ".join(filter(None, one.name)) for one in own),
        )

    def false_alarms(
        entry: Opened,
        steps: Sequence[Candidate],
        measured: Sequence[AlertExperiment],
        own: Sequence[Kept],
    ) -> FalseAlarms:
        by = steps[0].by if steps else "ratio"
        rule, rate = f"a candidate at z 3.5 {BY_WORDS[by]}", CANDIDATE_RATES[by]
        if any(STATES.get(one.word) == "confirmed" for one in measured):
            rule, rate = (
                "a candidate that a fresh experiment of both builds confirmed",
                CONFIRMED_RATE,
            )
        first = numbered.get(steps[0].series if steps else entry.series[0])
        of_series = (
            (first.nights, len(first.found) + len(first.gone)) if first else (0, 0)
        )
        return FalseAlarms(
            rule, rate, *placebos.count((one.machine for one in own), by), *of_series
        )

    alerts = [told(entry) for entry in (*known.values(), *fresh)]
    # An alert without its night comes last.
    alerts.sort(
        key=lambda alert: (-alert.first_bad.t if alert.first_bad else 0.0, alert.id)
    )
    return History(tuple(one.candidate for one in found), tuple(alerts), tuple(fresh))


def grouped(items: Sequence[Found]) -> list[list[Found]]:
    """Return the clearest candidate, and of every other series the clearest whose change may be the same; then the
    clearest of what is left. A series that steps twice is in two groups."""
    left = list(items)
    groups = []
    while left:
        anchor = left[0]
        members = {anchor.candidate.series: anchor}
        for item in left[1:]:
            if item.near.meets(anchor.span):
                members.setdefault(item.candidate.series, item)
        groups.append(list(members.values()))
        taken = set(map(id, members.values()))
        left = [item for item in left if id(item) not in taken]
    return groups


BY_WORDS = {"ratio": "against the reference", "level": "of the level alone"}


def kind_of(steps: Sequence[Candidate]) -> str:
    """Return whether a build or the machine changed, or I/Os only moved: one cell lost as many of one kind as it gained
    of another, within two standard errors of their sum. Cells run after each other, so I/Os do not move between them."""
    if steps and all(step.placebo for step in steps):
        return "machine"
    cells: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for step in steps:
        if step.metric.endswith(".iops"):
            # Points are logarithms, and steps of them are positive where it got worse: back to I/Os per second.
            before = math.exp(step.last_good.y)
            moved = (before * math.expm1(-step.size), before * step.error)
            cells.setdefault((step.machine, step.cell, step.variant), []).append(moved)
    is_shifted = bool(cells)
    for moves in cells.values():
        changes = [change for change, _ in moves]
        is_mixed = min(changes) < 0.0 < max(changes)
        is_shifted &= is_mixed and abs(sum(changes)) <= 2.0 * math.hypot(
            *(error for _, error in moves)
        )
    return "shifted" if is_shifted else "step"


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
