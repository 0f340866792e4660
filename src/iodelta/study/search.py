"""What a search amounts to, as data: for every format the same, and documented as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np
from scipy.special import stdtrit

from iodelta.bisect.counted import UNIT
from iodelta.bisect.driver import Searched, scattered
from iodelta.bisect.git import Commit
from iodelta.bisect.items import CommitItems
from iodelta.bisect.log import Answered, Asked, Ended, SearchFolder, Session, Undone
from iodelta.bisect.model import Culprit, Estimate, Gap, Suspect
from iodelta.bisect.question import Question
from iodelta.bisect.remainder import remainder
from iodelta.path.judge import BLIND
from iodelta.plural import plural
from iodelta.study.git_log import git_log
from iodelta.study.posterior import Bar, drifts, posteriors
from iodelta.study.system import system


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
    """What git knows of it; None where items are not commits."""
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
    titles: tuple[str, ...] = ()
    """What each item is called."""
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
    """The search as `git bisect log` prints it; empty where items are not commits."""
    answers: tuple[Spoken, ...] = ()
    """What a person said of items, in the order of the line; empty where values were measured."""
    left: Left | None = None
    """What the culprits leave of the difference between the ends; None without a culprit."""
    schema: Literal["iodelta.bisect/2"] = "iodelta.bisect/2"


def account(folder: SearchFolder, question: Question, at: Searched) -> SearchAccount:
    """Judge a folder as it is now."""
    events, answers = folder.events(), folder.answers()
    search, kind, outcome = at.search, at.kind, at.outcome
    places = {item: place for place, item in enumerate(search.line.items)}
    unordered = outcome.culprits if outcome else search.culprits
    culprits = tuple(sorted(unordered, key=lambda culprit: places[(*culprit.via, culprit.item)[0]]))
    return SearchAccount(
        folder=str(folder.path),
        question=question,
        state=state_of(events, over=at.ask is None),
        exit_code=_exit_code(culprits, at),
        items=len(search.line.items),
        good=kind.title(search.line.items[0]),
        bad=kind.title(search.line.items[-1]),
        culprits=tuple(_found(culprit, at, question) for culprit in culprits),
        suspects=tuple(map(_suspect, outcome.suspects if outcome else search.suspects)),
        gaps=tuple(_gap(gap, question) for gap in (outcome.gaps if outcome else search.gaps)),
        refused=outcome.refused if outcome else "",
        estimate=_estimate(search.estimate, question),
        posterior=posteriors(at, culprits),
        levels=_levels(at, question, answers, places),
        skipped=_skipped(at),
        totals=totals(events, answers),
        drifts=drifts(at, culprits),
        machine=next((event.machine for event in reversed(events) if isinstance(event, Session)), ""),
        system=system(folder.environment()),
        blind=BLIND if question.unit == UNIT else "",
        scatter=scattered(search.scatter, kind.title(search.scatter.item)) if search.scatter else "",
        next=f"{kind.title(at.ask.item)}: {at.ask.stage}: {at.ask.why}" if at.ask else "",
        git_log=git_log(at) if isinstance(kind, CommitItems) else "",
        left=_left(at, question),
    )


def _suspect(suspect: Suspect) -> Range:
    text = f"{100 * suspect.share:.0f} % of the probability, no claim: {suspect.why}"
    return Range(suspect.first, suspect.last, text)


def _gap(gap: Gap, question: Question) -> Range:
    text = "the level does not rise"
    if gap.improves:
        text = f"improves by {_words(question, -gap.step)}: it hides part of what is worse"
    elif gap.largest > 0:
        text += f" by more than {_words(question, gap.largest)} from end to end"
    return Range(gap.good, gap.bad, text)


def _estimate(estimate: Estimate | None, question: Question) -> str:
    """By what the ends differ, and the runs that a search takes; empty while unknown."""
    if estimate is None:
        return ""
    return (
        f"ends differ by {_words(question, estimate.step)}, {estimate.step / estimate.noise:.2g} times the "
        f"noise of one run: {estimate.runs_low} to {plural(estimate.runs_high, 'run')} expected"
    )


def _skipped(at: Searched) -> tuple[Skipped, ...]:
    """Items that could not be tested; a culprit reverted on top of the bad end is not an item of the line."""
    taken_out = _taken_out(at.search.culprits)
    broken = at.search.store.broken
    return tuple(Skipped(item, at.kind.title(item), why) for item, why in broken.items() if item not in taken_out)


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


def _levels(at: Searched, question: Question, answers: list[Answered], places: dict[str, int]) -> tuple[Level, ...]:
    taken_out = _taken_out(at.search.culprits)
    found = []
    for item, values in values_by_item(answers).items():
        if item in taken_out:
            continue
        change = _against_good(item, at, question)
        median = float(np.median(values))
        found.append(Level(item, at.kind.title(item), places.get(item, -1), len(values), median, change))
    return tuple(sorted(found, key=lambda level: level.place))


def _against_good(item: str, at: Searched, question: Question) -> Changed | None:
    """The change of an item against the good end; None where too little of either was measured."""
    good, exact = at.search.line.items[0], at.search.rules.exact
    step = at.search.store.step([good], [item]) if item != good else None
    if step is None:
        return None
    if not exact and step.freedom < 2:
        return changed(question, step.size)
    half = exact or step.error * float(stdtrit(step.freedom, 0.975))
    return changed(question, step.size, step.size - half, step.size + half)


def values_by_item(answers: Iterable[Answered]) -> dict[str, list[float]]:
    """All values of each item that has some, in the order measured."""
    values: dict[str, list[float]] = {}
    for answered in answers:
        if answered.values:
            values.setdefault(answered.item, []).extend(answered.values)
    return values


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
