"""What a search amounts to, as data: for every format the same, and documented as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from scipy.special import stdtrit

from iodelta.bisect.counted import UNIT
from iodelta.bisect.driver import Searched, scattered
from iodelta.bisect.git import Commit
from iodelta.bisect.items import CommitItems
from iodelta.bisect.log import Answered, Asked, Ended, SearchFolder, Session, Undone
from iodelta.bisect.model import Culprit
from iodelta.bisect.question import Question
from iodelta.bisect.remainder import remainder
from iodelta.path.judge import BLIND
from iodelta.plural import plural
from iodelta.study.system import system
from iodelta.study.words import inert

BUCKETS = 64


class Changed(msgspec.Struct, frozen=True):
    """A relative change of the metric itself with its interval at 95 % (None: too few runs)."""

    value: float
    low: float | None
    high: float | None


class Level(msgspec.Struct, frozen=True):
    """An item that was measured: place on the line (-1 inside a merge), runs, median, and change against good."""

    item: str
    title: str
    place: int
    """Place on the line, from 0; -1 inside a merge."""
    runs: int
    value: float
    """Median of its runs."""
    change: Changed | None


class Skipped(msgspec.Struct, frozen=True):
    """An item that could not be tested."""

    item: str
    title: str
    reason: str


class Spoken(msgspec.Struct, frozen=True):
    """What a person said of an item, in words."""

    item: str
    title: str
    place: int
    """Place on the line, from 0; -1 inside a merge."""
    good: int
    """Times that it was called good."""
    bad: int
    """Times that it was called bad."""


class Proof(msgspec.Struct, frozen=True):
    """The second proof of a culprit: it is taken out on top of the bad end, in fresh pairs of runs."""

    title: str
    """The bad end without it."""
    change: Changed | None
    """What the culprit does there; None when it could not be measured."""
    pairs: int
    """Fresh pairs of runs."""
    p: float
    """One-sided, of the pairs."""
    shown: bool
    """Whether the bad end is shown to be slower than without it."""
    reason: str
    """Why it could not be measured; empty otherwise."""


class Found(msgspec.Struct, frozen=True):
    """A culprit: the change against its parent, and all items among which it lies."""

    item: str
    title: str
    parent: str
    """The item that it was tested against."""
    suspects: tuple[str, ...]
    """All items among which the change lies, in order."""
    change: Changed | None
    """None where a person answered in words."""
    probability: float
    """Probability that it was the place when it was put to the test; by words, when it was named."""
    pairs: int
    """Pairs of runs in that test; 0 by words."""
    p: float | None
    """One-sided, of the pairs; None by words."""
    runs: int
    """Runs, or answers in words, of the whole search when it was confirmed."""
    via: tuple[str, ...]
    """Merges that brought it in, outermost first; empty without one."""
    commit: Commit | None
    """What git knows of it; None where items are no commits."""
    contradicting: int = 0
    """Words of a person that do not fit this culprit."""
    revert: Proof | None = None
    """The bad end against the bad end without it; None where that was not tried."""


class Range(msgspec.Struct, frozen=True):
    """A part of the line about which something is said, without a claim."""

    first: str
    """Item at its good end."""
    last: str
    """Item at its bad end."""
    text: str


class Left(msgspec.Struct, frozen=True):
    """What the culprits leave of the difference between the ends."""

    whole: Changed
    """Bad against good."""
    change: Changed
    """Bad against good, with the change of every culprit divided out: all of them together make ``whole``."""
    between: tuple[tuple[str, str], ...]
    """Titles of the ends of stretches that hold it; empty unless it is certainly more than nothing, and matters."""
    rest: float
    """What to give as --rest to look for it; 0 when it would not help."""
    possible: bool
    """Whether a change as large as the margin is not excluded."""


class Bar(msgspec.Struct, frozen=True):
    """Probability that the change lies at one of the items ``first .. last``, by place."""

    first: int
    """Place of its first item on the line."""
    last: int
    """Place of its last item on the line."""
    share: float
    """Probability that the change lies here."""


class Totals(msgspec.Struct, frozen=True):
    """What it took. Seconds; ``wall`` counts sessions alone."""

    visits: int
    """Times that an item was visited, each for one or more runs."""
    runs: int
    builds: int
    """How many different items were visited."""
    build_seconds: float
    """Seconds that builds took."""
    run_seconds: float
    """Seconds that putting under test and measuring took."""
    wall: float
    """Wall time of all sessions in seconds."""
    undone: int
    """Answers that were taken back."""


class SearchPlanAnswer(msgspec.Struct, frozen=True):
    """What a search would be about, before anything is built or measured."""

    items: tuple[str, ...]
    """Commits, or items of a list, in order: good first, bad last."""
    next: str
    """What would be measured first; empty when there is nothing to do."""
    why: str
    """Why that."""
    schema: Literal["iodelta.search-plan/1"] = "iodelta.search-plan/1"


class SearchAccount(msgspec.Struct, frozen=True):
    """The whole of it. ``state``: complete, interrupted, running (or killed), failed: ..."""

    folder: str
    question: Question
    state: str
    exit_code: int
    """1: a culprit was found; 0: a change as large as the margin is excluded; 3: neither."""
    items: int
    """How many the line has, both ends included."""
    good: str
    """The first item of the line."""
    bad: str
    """The last item of the line."""
    culprits: tuple[Found, ...]
    """Changes that a test of their own confirmed, in the order of the line."""
    suspects: tuple[Range, ...]
    """Ranges that probably hold a change which no test confirmed."""
    gaps: tuple[Range, ...]
    """Parts of the line from whose one end to the other the level rises no further, or by no more than is said."""
    refused: str
    """Why the search did not begin, or ended without an answer; empty otherwise."""
    estimate: str
    """What the ends differ by and the runs that a search takes; empty while unknown."""
    posterior: tuple[tuple[Bar, ...], ...]
    """For every culprit, or for the search that goes on, the posterior over its part of the line."""
    levels: tuple[Level, ...]
    """Items that were measured, in the order of the line."""
    skipped: tuple[Skipped, ...]
    """Items that could not be tested."""
    totals: Totals
    drifts: bool
    """Whether the level walks over time by itself."""
    machine: str
    """The machine of the latest session, in a line; empty before the first."""
    system: tuple[tuple[str, str], ...]
    """Name and value of what matters most of the machine that was measured; empty before the first run."""
    blind: str
    """What the measure cannot see; empty where it is time."""
    scatter: str
    """Why runs are not taken to repeat exactly after all; empty where that was not promised, or holds."""
    next: str
    """What would be done next and why; empty when there is nothing left to do."""
    git_log: str
    """The search as git bisect log would tell it; empty where items are no commits."""
    answers: tuple[Spoken, ...] = ()
    """What a person said of items, in the order of the line; empty where values were measured."""
    left: Left | None = None
    """What the culprits leave of the difference between the ends; None without a culprit."""
    schema: Literal["iodelta.bisect/2"] = "iodelta.bisect/2"


def account(folder: SearchFolder, question: Question, at: Searched) -> SearchAccount:
    """Judge a folder as it is now."""
    events = folder.events()
    search, kind = at.search, at.kind
    places = {item: place for place, item in enumerate(search.line.items)}
    answers = folder.answers()
    state = state_of(events, over=at.ask is None)
    outcome = at.outcome
    culprits = tuple(
        sorted(outcome.culprits if outcome else search.culprits, key=lambda one: places[(*one.via, one.item)[0]])
    )
    suspects = tuple(
        Range(one.first, one.last, f"{100 * one.share:.0f} % of the probability, no claim: {one.why}")
        for one in (outcome.suspects if outcome else search.suspects)
    )
    gaps = tuple(
        Range(
            gap.good,
            gap.bad,
            f"improves by {_words(question, -gap.step)}: it hides part of what is worse"
            if gap.improves
            else "the level does not rise"
            + (f" by more than {_words(question, gap.largest)} from end to end" if gap.largest > 0 else ""),
        )
        for gap in (outcome.gaps if outcome else search.gaps)
    )
    refused = outcome.refused if outcome else ""
    estimate = search.estimate
    told = ""
    if estimate is not None:
        told = (
            f"ends differ by {_words(question, estimate.step)}, {estimate.step / estimate.noise:.2g} times the "
            f"noise of one run: {estimate.runs_low} to {plural(estimate.runs_high, 'run')} expected"
        )
    asked = at.ask
    return SearchAccount(
        folder=str(folder.path),
        question=question,
        state=state,
        exit_code=_exit_code(culprits, at),
        items=len(search.line.items),
        good=kind.title(search.line.items[0]),
        bad=kind.title(search.line.items[-1]),
        culprits=tuple(_found(one, at, question) for one in culprits),
        suspects=suspects,
        gaps=gaps,
        refused=refused,
        estimate=told,
        posterior=_posteriors(at, culprits),
        levels=_levels(at, question, answers, places),
        skipped=tuple(
            Skipped(item, kind.title(item), why)
            for item, why in search.store.broken.items()
            if item not in _taken_out(search.culprits)
        ),
        totals=totals(events, answers),
        drifts=_drifts(at, culprits),
        machine=next((e.machine for e in reversed(events) if isinstance(e, Session)), ""),
        system=system(folder.environment()),
        blind=BLIND if question.unit == UNIT else "",
        scatter=scattered(search.scatter, kind.title(search.scatter.item)) if search.scatter else "",
        next=f"{kind.title(asked.item)}: {asked.stage}: {asked.why}" if asked else "",
        git_log=git_log(at) if isinstance(kind, CommitItems) else "",
        left=_left(at, question),
    )


def _left(at: Searched, question: Question) -> Left | None:
    found = remainder(at.search)
    if found is None:
        return None
    title, rules = at.kind.title, question.rules
    between = tuple((title(first), title(last)) for first, last in found.rises)
    rest = 4 * max((rules.rest, *rules.further)[-1], 1.0) if at.search.used_up else 0.0
    whole, left = (changed(question, one.size, one.low, one.high) for one in (found.whole, found.left))
    return Left(whole, left, between, rest, found.possible)


def state_of(events: Sequence[object], *, over: bool) -> str:
    """How the latest session ended; ``over``: nothing is left to ask."""
    ended = [event for event in events if isinstance(event, Ended | Session)]
    if over:
        return "complete"
    return ended[-1].reason if ended and isinstance(ended[-1], Ended) else "running"


def changed(question: Question, size: float, low: float | None = None, high: float | None = None) -> Changed:
    """A step (logarithm, positive is worse) as a change of the metric."""
    sign = -1.0 if question.better == "higher" else 1.0
    ends = [None if end is None or math.isinf(end) else math.expm1(sign * end) for end in (low, high)]
    return Changed(math.expm1(sign * size), *(ends if sign > 0 else reversed(ends)))


def _words(question: Question, size: float) -> str:
    return f"{abs(100 * changed(question, size).value):.2g} %"


def _exit_code(culprits: tuple[Culprit, ...], at: Searched) -> int:
    if culprits:
        return 1
    gap = next(iter(at.search.gaps), None)
    excluded = gap is not None and gap.largest < at.search.rules.margin
    return 0 if at.ask is None and excluded and not at.search.suspects else 3


def _found(culprit: Culprit, at: Searched, question: Question) -> Found:
    effect = culprit.effect
    kind = at.kind
    return Found(
        culprit.item,
        kind.title(culprit.item),
        kind.title(culprit.parent),
        tuple(kind.title(item) for item in culprit.suspects),
        changed(question, effect.size, effect.low, effect.high),
        culprit.share,
        culprit.pairs,
        culprit.p,
        culprit.runs,
        tuple(kind.title(item) for item in culprit.via),
        kind.repository.commit(culprit.item) if isinstance(kind, CommitItems) else None,
        revert=_proof(culprit, at, question),
    )


def _proof(culprit: Culprit, at: Searched, question: Question) -> Proof | None:
    revert = culprit.revert
    if revert is None:
        return None
    effect = revert.effect
    change = changed(question, effect.size, effect.low, effect.high) if effect else None
    return Proof(at.kind.title(revert.item), change, revert.pairs, revert.p, revert.shown, revert.reason)


def _taken_out(culprits: Sequence[Culprit]) -> set[str]:
    """The items that are the bad end without a culprit."""
    return {culprit.revert.item for culprit in culprits if culprit.revert}


def _posteriors(at: Searched, culprits: tuple[Culprit, ...]) -> tuple[tuple[Bar, ...], ...]:
    search = at.search
    found = []
    for first, last in _ranges(at, culprits):
        exact = search.rules.exact
        evidence = search.store.evidence(search.line, first, last, least=search.rules.margin / 2, floor=exact)
        cuts = np.unique(np.linspace(0, last - first, min(BUCKETS, last - first) + 1).round().astype(np.int64))
        share = np.diff(evidence.posterior().at_or_below(cuts, evidence.prior))
        bars = [
            Bar(first + int(a) + 1, first + int(b), float(s)) for a, b, s in zip(cuts, cuts[1:], share, strict=False)
        ]
        found.append(tuple(bars))
    return tuple(found)


def _ranges(at: Searched, culprits: tuple[Culprit, ...]) -> list[tuple[int, int]]:
    """For every culprit the part of the line in which it is the only one; else the part that is searched now."""
    search = at.search
    places = [search.line.items.index((*one.via, one.item)[0]) for one in culprits]
    found = []
    for place in places:
        before = max((p for p in places if p < place), default=0)
        after = min((p - 1 for p in places if p > place), default=len(search.line.items) - 1)
        found.append((before, after))
    if not found and at.outcome is None and search.where[0] is search.line:
        found.append(search.where[1:])
    return found


def _levels(at: Searched, question: Question, answers: list[Answered], places: dict[str, int]) -> tuple[Level, ...]:
    good = at.search.line.items[0]
    values: dict[str, list[float]] = {}
    for answered in answers:
        values.setdefault(answered.item, []).extend(answered.values)
    found = []
    for item, own in values.items():
        if not own or item in _taken_out(at.search.culprits):
            continue
        step = at.search.store.step([good], [item]) if item != good else None
        change = None
        if step is not None:
            half = at.search.rules.exact or step.error * float(stdtrit(step.freedom, 0.975))
            known = at.search.rules.exact or step.freedom >= 2
            change = changed(
                question, step.size, step.size - half if known else None, step.size + half if known else None
            )  # fmt: skip
        found.append(Level(item, at.kind.title(item), places.get(item, -1), len(own), float(np.median(own)), change))
    return tuple(sorted(found, key=lambda level: level.place))


def totals(events: Sequence[object], answers: list[Answered]) -> Totals:
    wall, begun, last = 0.0, 0.0, 0.0
    for event in events:
        stamp = event.at if isinstance(event, Session | Asked | Answered | Ended) else last
        if isinstance(event, Session):
            wall += last - begun
            begun = stamp
        last = stamp
    wall += last - begun
    builds = [answered.answer.build for answered in answers if answered.answer.build > 0.5]
    return Totals(
        visits=len(answers),
        runs=sum(len(answered.values) for answered in answers),
        builds=len({answered.item for answered in answers}),
        build_seconds=sum(builds),
        run_seconds=sum(answered.answer.run for answered in answers),
        wall=max(0.0, wall),
        undone=sum(isinstance(event, Undone) for event in events),
    )


def _drifts(at: Searched, culprits: tuple[Culprit, ...]) -> bool:
    """Whether the level walks, by the part of the line with the most to say."""
    search = at.search
    found = False
    for first, last in _ranges(at, culprits)[:1]:
        evidence = search.store.evidence(
            search.line, first, last, least=search.rules.margin / 2, floor=search.rules.exact
        )
        found = evidence.runs >= 20 and evidence.posterior().drifts
    return found


def git_log(at: Searched) -> str:
    """What `git bisect log` would say of the same search: for readers, and for `git bisect replay`.

    Items below a parent are good, from a culprit on bad; what lies between stays out. With several culprits git
    knows of the first alone.
    """
    search, kind = at.search, at.kind
    items = search.line.items
    culprit = min(
        (one for one in search.culprits if not one.via), key=lambda one: items.index(one.item), default=None
    )  # fmt: skip
    lines = ["git bisect start"]

    def mark(word: str, item: str) -> None:
        lines.extend([f"# {word}: [{item}] {_subject(kind, item)}", f"git bisect {word} {item}"])

    mark("good", items[0])
    mark("bad", items[-1])
    measured = [place for place in range(1, len(items) - 1) if search.store.of(items[place])]
    for item in items[1:-1]:
        if item in search.store.broken:
            mark("skip", item)
    if culprit is not None:
        parent, guilty = items.index(culprit.parent), items.index(culprit.item)
        for place in measured:
            if place <= parent:
                mark("good", items[place])
        for place in reversed(measured):  # git narrows towards the last one named
            if place >= guilty:
                mark("bad", items[place])
    if culprit is not None and not culprit.skipped:
        lines.append(f"# first bad commit: [{culprit.item}] {_subject(kind, culprit.item)}")
    elif culprit is not None:
        lines.append("# only skipped commits left to test")
        lines += [f"# possible first bad commit: [{item}] {_subject(kind, item)}" for item in culprit.suspects]
    return "\n".join(lines) + "\n"


def _subject(kind: object, item: str) -> str:
    return inert(kind.repository.commit(item).subject) if isinstance(kind, CommitItems) else item
