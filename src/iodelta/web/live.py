"""Running experiments: what is known of each so far. Looking at one does not slow it down."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from iodelta.decoding import decoder
from iodelta.errors import IodeltaError, MeasureError
from iodelta.lab.account import Account as Journal
from iodelta.lab.folder import (
    JOURNAL,
    CountFolder,
    DiskFolder,
    Ended,
    Event,
    Folder,
    Started,
)
from iodelta.lab.journal import READINGS, whole
from iodelta.lab.judged import (
    counted_trials,
    judge_folder,
    read_plan,
    rules_of,
    seconds_left,
)
from iodelta.lab.opened import read_member
from iodelta.lab.plan import Plan
from iodelta.lab.record import read_trial
from iodelta.lab.seal import Seal, read_seal
from iodelta.report.stories.underway import ahead, beyond_budget
from iodelta.stats.forget import forget_patterns
from iodelta.trial import Trial
from iodelta.verdict import Judgement, next_step
from iodelta.verdict.pared import pared
from iodelta.web.folders import Place
from iodelta.web.launching import lockers
from iodelta.web.underway import Comparison, Pair, Underway, comparisons, comparisons_of

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


class Tail:
    """The whole lines of a growing journal, read once for everybody who follows it."""

    def __init__(self, path: Path) -> None:
        self.events: list[Event] = []
        self.state = Journal()
        """What they amount to."""
        self.ends = [0]
        """Numbers of lines at which a round was over: where the next one began, or the run ended. 0 first."""
        self.broken = ""
        """Why nothing after the last line can be believed."""
        self._path, self._offset, self._failures = path, 0, 0
        self._seal = Seal()
        self._block: int | None = None
        self._lock = threading.Lock()

    def read(self) -> None:
        """Take new lines in; half of one waits for its other half."""
        with self._lock:
            try:
                if self.broken or self._path.stat().st_size == self._offset:
                    return
                data = read_member(self._path.parent, self._path.name, self._offset)
                lines = whole(data)
                seal = read_seal(lines, self._seal)
                events = [] if seal.broken else list(map(decoder(Event).decode, lines))
            except FileNotFoundError as error:
                self.broken = os.strerror(error.errno or 0)
                return
            except MeasureError as error:
                self.broken = error.what
                return
            except msgspec.MsgspecError:
                seal = Seal(broken=len(self.events) + 1)
            if seal.broken:  # a writer may have cut a torn line while it was read
                self._failures += 1
                if self._failures >= READINGS:
                    self.broken = f"line {seal.broken} of the journal is not what was written there"
                return
            # The seals of files are for who reads the files; here they would be most of what is kept.
            self._failures, self._seal = 0, msgspec.structs.replace(seal, files={})
            self._offset += data.rfind(b"\n") + 1
            for event in events:
                if isinstance(event, Started):
                    if self._block not in (None, event.block):
                        self.ends.append(len(self.events))
                    self._block = event.block
                self.state.add(event)
                self.events.append(event)
                if isinstance(event, Ended):
                    self.ends.append(len(self.events))


class _Known(msgspec.Struct, frozen=True):
    """What one judgement said."""

    plan: Plan
    most: int
    """Blocks of a cell."""
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
        self._said: tuple[_Known, int, Underway] | None = None

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
        for number, identity in state.usable().items():
            try:
                if number not in self._trials:
                    self._trials[number] = pared(
                        read_trial(folder, identity), plan.rules.metrics
                    )
            except MeasureError as error:
                state.lose(number, error.what)
        judgement = judge_folder(plan, rules, state, self._trials)
        if self.known is None:
            # What was known at the ends of some earlier rounds, the latest first.
            until, rounds = time.monotonic() + EARLIER_SECONDS, ends[:-1]
            for end in reversed(rounds[:: max(1, -(-len(rounds) // EARLIER))]):
                if time.monotonic() > until:
                    break
                then = Journal(events[:end])
                self._note(judge_folder(plan, rules_of(plan, then), then, self._trials))
        self._note(judgement)
        drawn = comparisons(
            judgement,
            plan.rules.metrics,
            counted_trials(plan, state, self._trials),
            {
                pair: tuple((blocks, *course[blocks]) for blocks in sorted(course))
                for pair, course in self._courses.items()
            },
        )
        left = seconds_left(plan, rules, state, judgement, math.inf)
        if state.state != "running":
            self._trials = {}
        self.problem = ""
        self.known = _Known(
            plan,
            rules.max_blocks,
            judgement,
            ends[-1],
            bool(state.finished),
            state.spent,
            left,
            drawn,
        )

    def _note(self, judgement: Judgement) -> None:
        """Keep the interval of every comparison."""
        for first, *_ in comparisons_of(judgement):
            change = first.change
            if change is None or change.low is None or change.high is None:
                continue
            course = self._courses.setdefault((first.cell, first.variant), {})
            course[first.blocks] = change.low, change.high
            if len(course) > COURSE:  # drop every other one but the newest
                for blocks in sorted(course)[-2::-2]:
                    del course[blocks]

    @property
    def is_behind(self) -> bool:
        """Return whether a round ended that was not judged yet."""
        return self.known is None or self.tail.ends[-1] > self.known.line

    def underway(self, *, writing: bool) -> Underway | None:
        """Return what is known now; none before it was judged once. The same lines are put into words once for all."""
        known, lines = self.known, len(self.tail.events)
        if known is None:
            return None
        if self._said is None or self._said[:2] != (known, lines):
            plan, judgement, experiment = (
                known.plan,
                known.judgement,
                known.plan.experiment,
            )
            state = self.tail.state
            budget = experiment.design.budget + (
                state.extended.budget if state.extended else 0.0
            )
            left = min(known.left, max(0.0, budget - known.spent))
            newest = state.started.get(state.next_trial - 1)
            is_over = (
                newest is None
                or newest.trial in state.finished
                or newest.trial in state.failed
            )
            steps = [next_step(judgement.of(cell.name)) for cell in experiment.cells]
            self._said = (
                known,
                lines,
                Underway(
                    experiment=self.place.id,
                    line=lines,
                    state=state.state,
                    writing=False,
                    question=experiment.question,
                    baseline=experiment.baseline,
                    margin=experiment.margin,
                    block=0 if newest is None else newest.block + 1,
                    most=known.most,
                    trial=""
                    if newest is None or is_over
                    else f"{newest.cell}: {newest.variant}",
                    trials=len(state.finished),
                    repeated=len(state.repeats),
                    spent=state.spent,
                    budget=budget,
                    cells=len(experiment.cells),
                    decided=steps.count("decided"),
                    abandoned=dict(state.abandoned),
                    comparisons=known.comparisons,
                    ahead=ahead(plan, judgement, known.spent, left)
                    if known.has_trials
                    else "",
                    left=left if known.has_trials else None,
                    warning=beyond_budget(plan, judgement, known.spent)
                    if known.has_trials
                    else "",
                ),
            )
        return msgspec.structs.replace(
            self._said[2], writing=writing, pending=self.is_behind
        )


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
            number = (Path(place.path) / JOURNAL).stat().st_ino
        except OSError:
            return False
        if time.monotonic() - self._locked[0] > 0.5:
            self._locked = time.monotonic(), lockers()
        return number in self._locked[1]

    def goes_on(self, place: Place) -> bool:
        """Return whether it is an experiment with trials that is being measured now."""
        if place.kind != "experiment" or not self.is_written(place):
            return False
        return self.following(place).tail.state.state == "running"

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
            # One that had not begun when the server ended is cancelled.
            with contextlib.suppress(TimeoutError, CancelledError):
                follower.judging.result(wait)
        return follower.underway(writing=self.is_written(place))

    def close(self) -> None:
        """Drop the judgements that wait."""
        self._judge.shutdown(wait=False, cancel_futures=True)


def _be_nice() -> None:
    """On Linux this is of the thread alone."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
