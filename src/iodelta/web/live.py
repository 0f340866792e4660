"""Running experiments: what is known of each so far. Looking at one does not slow it down."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from iodelta.errors import IodeltaError, MeasureError
from iodelta.lab.account import Account as Journal
from iodelta.lab.events import Event
from iodelta.lab.folder import JOURNAL, CountFolder, DiskFolder, Folder
from iodelta.lab.judged import counted_trials, judge_folder, seconds_left
from iodelta.lab.plan import Plan
from iodelta.lab.record import read_trial
from iodelta.lab.session import read_plan, rules_of
from iodelta.report.stories.underway import ahead, beyond_budget
from iodelta.stats.forget import forget_patterns
from iodelta.trial import Trial
from iodelta.verdict import Judgement, Metric, Rules, next_step
from iodelta.verdict.pared import pared
from iodelta.web.folders import Place
from iodelta.web.lockers import lockers
from iodelta.web.tails import Tail, Tally
from iodelta.web.underway import (
    Comparison,
    Interval,
    Pair,
    Underway,
    comparisons,
    comparisons_of,
)

EVERY = 2.0
"""Seconds between two judgements of one experiment, at least."""

SHARE = 0.1
"""Of the time that is spent on judging an experiment, at most: a judgement that takes long is made seldom."""

FOLLOWED = 32
"""Experiments that are kept in memory, while they go on with as much of their trials as judging needs."""

EARLIER = 8
"""Judgements of what was there before anybody looked, so that an interval is seen to shrink."""

EARLIER_SECONDS = 1.0
"""What these may take."""

COURSE = 360
"""Intervals of a comparison that are kept: its picture is as many pixels wide."""

NICE = 10
"""Niceness of the thread that judges, so that a trial goes first. At 19 a busy machine let the thread wait for minutes,
and all requests with it, because the threads of Python share a lock."""


class _Known(msgspec.Struct, frozen=True):
    """What one judgement said."""

    plan: Plan
    rules: Rules
    judgement: Judgement
    line: int
    """The last line that it rests on."""
    has_trials: bool
    """Whether any trial had finished by then."""
    spent: float
    """Seconds of finished trials until then."""
    left: float
    """Seconds that open cells need still, whatever the budget is."""
    comparisons: tuple[Comparison, ...]


class Following:
    """One experiment: what is known of it, judged at most every few seconds.

    A trial takes some 2 KiB, of which ``verdict.pared`` is most. It is the same however many people look.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.tail = Tail(Path(place.path) / JOURNAL)
        self.judging: Future[None] | None = None
        self.not_before = 0.0
        self.problem = ""
        self.known: _Known | None = None
        self._trials: dict[int, Trial] = {}
        self._courses: dict[Pair, dict[int, tuple[float, float]]] = {}
        self._said: tuple[_Known, Tally, Underway] | None = None

    def judge(self, folder: Folder) -> None:
        """Judge what is there up to the end of the last round: then the run itself looks, and never before."""
        begun, is_first = time.thread_time(), self.known is None
        try:
            self._judge(folder)
        except IodeltaError as error:
            self.problem = error.what
        forget_patterns()  # those of a longer run are larger
        # The first one also loads what judging needs, and looks back.
        took = 0.0 if is_first else time.thread_time() - begun
        self.not_before = time.monotonic() + max(EVERY, took / SHARE)

    def _judge(self, folder: Folder) -> None:
        ends = list(self.tail.ends)
        events = self.tail.events[: ends[-1]]
        plan = self.known.plan if self.known else read_plan(folder)
        state = Journal(events)
        rules = rules_of(plan, state)
        self._read(folder, state, plan.rules.metrics)
        judgement = judge_folder(plan, rules, state, self._trials)
        if self.known is None:
            self._look_back(plan, events, ends[:-1])
        self._note(judgement)
        drawn = comparisons(
            judgement,
            plan.rules.metrics,
            counted_trials(plan, state, self._trials),
            {pair: _sorted(course) for pair, course in self._courses.items()},
        )
        left = seconds_left(plan, rules, state, judgement, math.inf)
        if state.state != "running":
            self._trials = {}
        self.problem = ""
        self.known = _Known(
            plan,
            rules,
            judgement,
            ends[-1],
            bool(state.finished),
            state.spent,
            left,
            drawn,
        )

    def _read(self, folder: Folder, state: Journal, metrics: Sequence[Metric]) -> None:
        for number, identity in state.usable().items():
            if number in self._trials:
                continue
            try:
                self._trials[number] = pared(read_trial(folder, identity), metrics)
            except MeasureError as error:
                state.lose(number, error.what)

    def _look_back(
        self, plan: Plan, events: Sequence[Event], ends: Sequence[int]
    ) -> None:
        """What was known at the ends of some earlier rounds, the latest first."""
        until = time.monotonic() + EARLIER_SECONDS
        for end in reversed(ends[:: max(1, -(-len(ends) // EARLIER))]):
            if time.monotonic() > until:
                return
            state = Journal(events[:end])
            self._note(judge_folder(plan, rules_of(plan, state), state, self._trials))

    def _note(self, judgement: Judgement) -> None:
        """Keep the interval of every comparison."""
        for first, *_ in comparisons_of(judgement):
            change = first.change
            if change is None or change.low is None or change.high is None:
                continue
            course = self._courses.setdefault((first.cell, first.variant), {})
            course[first.blocks] = change.low, change.high
            if len(course) > COURSE:
                _thin(course)

    @property
    def is_behind(self) -> bool:
        """Return whether a round ended that was not judged yet."""
        return self.known is None or self.tail.ends[-1] > self.known.line

    @property
    def is_awaited(self) -> bool:
        """Return whether a page should ask again even without a new line: a judgement is being made or due."""
        is_stuck = bool(self.problem or self.tail.broken)
        return self.judging is not None and self.is_behind and not is_stuck

    def underway(self, *, writing: bool) -> Underway | None:
        """Return what is known now; none before it was judged once. The same lines are put into words once for all."""
        known, tally = self.known, self.tail.tally
        if known is None:
            return None
        said = self._said
        if said is None or said[0] is not known or said[1] is not tally:
            said = self._said = known, tally, self._underway(known, tally)
        return msgspec.structs.replace(said[2], writing=writing, pending=self.is_behind)

    def _underway(self, known: _Known, tally: Tally) -> Underway:
        plan, judgement, experiment = known.plan, known.judgement, known.plan.experiment
        budget = experiment.design.budget + tally.more_budget
        left = min(known.left, max(0.0, budget - known.spent))
        newest = tally.newest
        is_measuring = newest is not None and not tally.is_over
        decided = [
            cell.name
            for cell in experiment.cells
            if next_step(judgement.of(cell.name)) == "decided"
        ]
        made = Underway(
            experiment=self.place.id,
            line=tally.lines,
            state=tally.state,
            writing=False,
            question=experiment.question,
            baseline=experiment.baseline,
            margin=experiment.margin,
            block=0 if newest is None else newest.block + 1,
            most=known.rules.max_blocks,
            trial=f"{newest.cell}: {newest.variant}" if newest and is_measuring else "",
            trials=tally.trials,
            repeated=tally.repeated,
            spent=tally.spent,
            budget=budget,
            cells=len(experiment.cells),
            decided=len(decided),
            abandoned=tally.abandoned,
            comparisons=known.comparisons,
        )
        if not known.has_trials:
            return made
        return msgspec.structs.replace(
            made,
            ahead=ahead(plan, judgement, known.spent, left),
            left=left,
            warning=beyond_budget(plan, judgement, known.spent),
        )


def _sorted(course: dict[int, tuple[float, float]]) -> tuple[Interval, ...]:
    return tuple((blocks, *course[blocks]) for blocks in sorted(course))


def _thin(course: dict[int, tuple[float, float]]) -> None:
    """Drop every other interval but the newest."""
    for blocks in sorted(course)[-2::-2]:
        del course[blocks]


class Live:
    """All experiments that somebody follows. One thread judges them, after everything else that the machine does."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Following] = OrderedDict()
        self._lock = threading.Lock()
        self._judge = ThreadPoolExecutor(1, "judge", initializer=_be_nice)
        self._locked: tuple[float, dict[int, int]] = (0.0, {})

    def is_written(self, place: Place) -> bool:
        """Return whether an iodelta of this machine writes to it, by the lock of its journal."""
        try:
            return (Path(place.path) / JOURNAL).stat().st_ino in self._locks()
        except OSError:
            return False

    def goes_on(self, place: Place) -> bool:
        """Return whether it is an experiment with trials that is being measured now."""
        if place.kind != "experiment" or not self.is_written(place):
            return False
        return self.following(place).tail.state == "running"

    def following(self, place: Place) -> Following:
        """Return what is known of a place, with its journal as it is now."""
        with self._lock:
            follower = self._known.setdefault(place.id, Following(place))
            self._known.move_to_end(place.id)
            while len(self._known) > FOLLOWED:
                self._known.popitem(last=False)
        follower.tail.read()
        return follower

    def underway(
        self, place: Place, folder: Folder, *, wait: float = 0.0
    ) -> Underway | None:
        """Return what is known of an experiment that goes on; none before it was judged once, for which this may
        ``wait``.

        A judgement is ordered where one is due, and never made here.
        """
        follower = self.following(place)
        if isinstance(folder, CountFolder | DiskFolder):
            return None
        with self._lock:
            idle = follower.judging is None or follower.judging.done()
            if idle and follower.is_behind and time.monotonic() >= follower.not_before:
                with contextlib.suppress(RuntimeError):  # the server is ending
                    follower.judging = self._judge.submit(follower.judge, folder)
        if follower.known is None and follower.judging is not None:
            _wait(follower.judging, wait)
        return follower.underway(writing=self.is_written(place))

    def close(self) -> None:
        """Drop the judgements that wait."""
        self._judge.shutdown(wait=False, cancel_futures=True)

    def _locks(self) -> dict[int, int]:
        """Files that somebody holds a lock on; read twice a second at most."""
        then, known = self._locked
        if time.monotonic() - then > 0.5:
            known = lockers()
            self._locked = time.monotonic(), known
        return known


def _wait(judging: Future[None], seconds: float) -> None:
    # One that had not begun when the server ended is cancelled.
    with contextlib.suppress(TimeoutError, CancelledError):
        judging.result(seconds)


def _be_nice() -> None:
    """On Linux this is of the thread alone."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
