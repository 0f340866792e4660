"""The result of a search as data: the same for every format, and documented as JSON."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from iodelta.bisect.git import Commit
from iodelta.bisect.question import Question
from iodelta.study.ends import Ends
from iodelta.study.posterior import Bar


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


class Stalled(msgspec.Struct, frozen=True):
    """An item of which some runs were far worse than its others."""

    item: str
    title: str
    runs: int
    stalled: int
    """Those of its runs that were far worse."""


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
    """Everything that ``iodelta bisect`` reports. ``state``: complete, interrupted, running (or killed), failed: ..."""

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
    repeats: str = ""
    """Why runs are taken to repeat exactly without a promise; empty where they are not."""
    left: Left | None = None
    """What the culprits leave of the difference between the ends; None without a culprit."""
    stalled: tuple[Stalled, ...] = ()
    """Items of which some runs stalled, in the order of the line. The search compares typical runs: an item that is bad
    only now and then counts as good."""
    ends: Ends | None = None
    """What the rounds of both ends say beyond their typical runs; None unless the search was refused after them."""
    schema: Literal["iodelta.bisect/2"] = "iodelta.bisect/2"


def changed(
    question: Question, size: float, low: float | None = None, high: float | None = None
) -> Changed:
    """Return a step (logarithm, positive is worse) as a change of the metric."""
    if question.better == "higher":
        return Changed(math.expm1(-size), _end(high, -1.0), _end(low, -1.0))
    return Changed(math.expm1(size), _end(low, 1.0), _end(high, 1.0))


def _end(step: float | None, sign: float) -> float | None:
    """Return an end of an interval as a change of the metric; None without one."""
    if step is None or math.isinf(step):
        return None
    return math.expm1(sign * step)
