"""Experiments that go on: the lines of their journals, and what is known so far. Nobody who looks slows a run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from iodelta.decoding import decoder
from iodelta.errors import IodeltaError, MeasureError
from iodelta.lab.account import Account as Journal
from iodelta.lab.events import Ended, Event, Extended, Session, Started
from iodelta.lab.folder import JOURNAL, CountFolder, DiskFolder, Folder
from iodelta.lab.journal import READINGS, whole
from iodelta.lab.judged import counted_trials, judge_folder, seconds_left
from iodelta.lab.plan import Plan
from iodelta.lab.record import read_trial
from iodelta.lab.seal import Seal, read_seal
from iodelta.lab.session import read_plan, rules_of
from iodelta.plural import plural
from iodelta.report.stories.underway import SETTLED, ahead, beyond_budget
from iodelta.study.words import duration, metric_name
from iodelta.trial import Trial
from iodelta.verdict import Judgement, Metric, Verdict, next_step
from iodelta.verdict.metrics import pared
from iodelta.verdict.series import blocks_of, pairs_of
from iodelta.web.folders import Place
from iodelta.web.lockers import lockers

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

LEAST_NICE = 19


class Comparison(msgspec.Struct, frozen=True):
    """One cell and variant, as the progress line of the run would say it: no word before its look."""

    cell: str
    variant: str
    metric: str
    """The first that is decided on; the others have their words below."""
    blocks: int
    value: float | None
    """Change so far, as a share."""
    low: float | None
    high: float | None
    noise: float | None
    """Standard deviation of the blocks' log-ratios."""
    looks: int
    """Taken until now."""
    looked_at: int
    """Blocks at the last of them; 0 before the first."""
    next_look: int | None
    words: tuple[tuple[str, str], ...]
    """Metric and word, once all that the cell was measured for is settled; empty before."""
    waiting: bool
    """It could go on, but other cells make better use of the time."""
    each: tuple[float, ...]
    """The change in every block."""
    course: tuple[tuple[int, float, float], ...]
    """Blocks, and the interval that they gave."""


class Underway(msgspec.Struct, frozen=True):
    """An experiment that goes on."""

    experiment: str
    line: int
    """Lines of its journal that this rests on."""
    state: str
    """``running``, or how it ended."""
    writing: bool
    """Whether an iodelta of this machine writes to the folder."""
    question: str
    baseline: str
    margin: float
    block: int
    """That is being made, 1 first; 0 before the first."""
    most: int
    """Blocks of a cell, at most."""
    trial: str
    """Cell and variant that are being measured; empty between trials."""
    trials: int
    """Finished."""
    repeated: int
    """Blocks that were made again."""
    spent: float
    """Seconds."""
    budget: float
    """Seconds."""
    cells: int
    decided: int
    ahead: str = ""
    """What is to come, as the run itself says it."""
    left: float | None = None
    """Seconds that it expects to take still."""
    warning: str = ""
    abandoned: dict[str, str] = {}
    comparisons: tuple[Comparison, ...] = ()
    pending: bool = False
    """A newer round waits to be judged."""
    schema: str = "iodelta.web-live/1"


class Tail:
    """The whole lines of a journal, read once for everybody who follows it."""

    def __init__(self, path: Path) -> None:
        self.lines: list[bytes] = []
        """Without their seals."""
        self.events: list[Event] = []
        self.broken = ""
        """Why nothing after the last line can be believed."""
        self._path, self._offset, self._failures = path, 0, 0
        self._seal = Seal()
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """``running``, or how the last session ended."""
        for event in reversed(self.events):
            if isinstance(event, Ended):
                return event.reason
            if isinstance(event, Session | Extended | Started):
                break
        return "running"

    def read(self) -> None:
        """Take new lines in; half of one waits for its other half."""
        with self._lock:
            try:
                if self.broken or self._path.stat().st_size == self._offset:
                    return
                with open(self._path, "rb") as file:
                    file.seek(self._offset)
                    data = file.read()
            except OSError as error:
                self.broken = os.strerror(error.errno or 0)
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        lines = whole(data)
        seal = read_seal(lines, self._seal)
        events = self._decoded(lines) if not seal.broken else None
        if events is None:  # a writer may have cut a torn line while it was read
            self._failures += 1
            if self._failures >= READINGS:
                number = seal.broken or len(self.lines) + 1
                self.broken = (
                    f"line {number} of the journal is not what was written there"
                )
            return
        self._failures, self._seal = 0, seal
        self._offset += data.rfind(b"\n") + 1
        self.events += events
        self.lines += map(msgspec.json.encode, events)

    def _decoded(self, lines: Sequence[bytes]) -> list[Event] | None:
        reader = decoder(Event)
        try:
            return [reader.decode(line) for line in lines]
        except msgspec.MsgspecError:
            return None


class _Known(msgspec.Struct, frozen=True):
    """What one judgement said."""

    plan: Plan
    state: Journal
    """The journal up to there."""
    judgement: Judgement
    line: int
    """The last line that it rests on."""
    each: dict[tuple[str, str], tuple[float, ...]]
    """By cell and variant the change in every block."""
    course: dict[tuple[str, str], tuple[tuple[int, float, float], ...]]


class Following:
    """One experiment: what is known of it, judged at most every few seconds."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.tail = Tail(Path(place.path) / JOURNAL)
        self.judging: Future[None] | None = None
        self.not_before = 0.0
        self.problem = ""
        self.known: _Known | None = None
        self._trials: dict[int, Trial] = {}
        self._course: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}

    def judge(self, folder: Folder) -> None:
        """Judge what is there up to the end of the last round: then the run itself looks, and never before."""
        begun, is_first = time.thread_time(), self.known is None
        try:
            self._judge(folder)
        except IodeltaError as error:
            self.problem = error.what
        # The first one also loads what judging needs, and looks back.
        took = 0.0 if is_first else time.thread_time() - begun
        self.not_before = time.monotonic() + max(EVERY, took / SHARE)

    def _judge(self, folder: Folder) -> None:
        events = folder.events()
        ends = round_ends(events)
        plan = self.known.plan if self.known else read_plan(folder)
        state = Journal(events[: ends[-1]])
        self._read(folder, state, plan.rules.metrics)
        judgement = judge_folder(plan, rules_of(plan, state), state, self._trials)
        if self.known is None:
            self._look_back(plan, events, ends[:-1])
        self._note(judgement)
        course = {
            key: tuple((blocks, *own[blocks]) for blocks in sorted(own))
            for key, own in self._course.items()
        }
        each = dict(_changes(judgement, counted_trials(plan, state, self._trials)))
        if state.state != "running":
            self._trials = {}
        self.problem = ""
        self.known = _Known(plan, state, judgement, ends[-1], each, course)

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
        for own in comparisons_of(judgement):
            change = own[0].change
            if (
                change is not None
                and change.low is not None
                and change.high is not None
            ):
                course = self._course.setdefault((own[0].cell, own[0].variant), {})
                course[own[0].blocks] = change.low, change.high

    @property
    def is_behind(self) -> bool:
        """Whether a round ended that was not judged yet."""
        return self.known is None or round_ends(self.tail.events)[-1] > self.known.line

    def underway(self, *, writing: bool) -> Underway | None:
        """What is known now; none before it was judged once."""
        known = self.known
        if known is None:
            return None
        plan, judgement, experiment = known.plan, known.judgement, known.plan.experiment
        events = list(self.tail.events)
        journal, rules = Journal(events), rules_of(plan, known.state)
        budget = experiment.design.budget + (
            journal.extended.budget if journal.extended else 0.0
        )
        left = seconds_left(plan, rules, known.state, judgement, budget)
        begun = bool(known.state.finished)
        last = max(
            journal.started.values(), key=lambda trial: trial.trial, default=None
        )
        return Underway(
            experiment=self.place.id,
            line=len(events),
            state=self.tail.state,
            writing=writing,
            question=experiment.question,
            baseline=experiment.baseline,
            margin=experiment.margin,
            block=0 if last is None else last.block + 1,
            most=rules.max_blocks,
            trial=""
            if last is None or _is_over(last, journal)
            else f"{last.cell}: {last.variant}",
            trials=len(journal.finished),
            repeated=len(journal.repeats),
            spent=journal.spent,
            budget=budget,
            cells=len(experiment.cells),
            decided=sum(
                next_step(judgement.of(cell.name)) == "decided"
                for cell in experiment.cells
            ),
            ahead=ahead(plan, judgement, known.state.spent, left) if begun else "",
            left=left if begun else None,
            warning=beyond_budget(plan, judgement, known.state.spent) if begun else "",
            abandoned=journal.abandoned,
            comparisons=tuple(_comparisons(known)),
            pending=self.is_behind,
        )


def _is_over(started: Started, journal: Journal) -> bool:
    return started.trial in journal.finished or started.trial in journal.failed


def _changes(
    judgement: Judgement, counted: Sequence[Trial]
) -> Iterator[tuple[tuple[str, str], tuple[float, ...]]]:
    """By cell and variant the change in every block."""
    for first, *_ in comparisons_of(judgement):
        blocks = blocks_of(trial for trial in counted if trial.cell == first.cell)
        pairs = pairs_of(blocks, first.metric, first.baseline, first.variant)
        yield (
            (first.cell, first.variant),
            tuple(new / old - 1.0 for old, new in pairs if old > 0.0),
        )


def _comparisons(known: _Known) -> Iterator[Comparison]:
    """The open ones first."""
    several = len({metric.kind for metric in known.plan.rules.metrics}) > 1
    for own in sorted(
        comparisons_of(known.judgement), key=lambda own: next_step(own) in SETTLED
    ):
        first, step = own[0], next_step(own)
        key, change, look = (first.cell, first.variant), first.change, first.look
        named = {
            metric_name(verdict.metric, with_kind=several): verdict.word
            for verdict in own
        }
        yield Comparison(
            cell=first.cell,
            variant=first.variant,
            metric=next(iter(named)),
            blocks=first.blocks,
            value=change.value if change else None,
            low=change.low if change else None,
            high=change.high if change else None,
            noise=first.sd,
            looks=0 if look is None else look.index + 1,
            looked_at=0 if look is None else look.blocks,
            next_look=min(
                (verdict.next_look for verdict in own if verdict.next_look is not None),
                default=None,
            ),
            words=tuple(named.items()) if step in SETTLED else (),
            waiting=step == "waiting",
            each=known.each.get(key, ()),
            course=known.course.get(key, ()),
        )


def comparisons_of(judgement: Judgement) -> list[tuple[Verdict, ...]]:
    """The verdicts of each cell and variant."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in judgement.verdicts:
        groups.setdefault((verdict.cell, verdict.variant), []).append(verdict)
    return [tuple(own) for own in groups.values()]


def round_ends(events: Sequence[Event]) -> list[int]:
    """Numbers of lines at which a round was over: where the next one began, or the run ended. 0 first."""
    ends, block = [0], None
    for number, event in enumerate(events):
        if isinstance(event, Started):
            if block is not None and event.block != block:
                ends.append(number)
            block = event.block
        elif isinstance(event, Ended):
            ends.append(number + 1)
    return ends


class Live:
    """All experiments that somebody follows. One thread judges them, after everything else that the machine does."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Following] = OrderedDict()
        self._lock = threading.Lock()
        self._judge = ThreadPoolExecutor(1, "judge", initializer=_be_nice)
        self._locked: tuple[float, dict[int, int]] = (0.0, {})

    def is_written(self, place: Place) -> bool:
        """Whether an iodelta of this machine writes to it, by the lock of its journal."""
        try:
            return (Path(place.path) / JOURNAL).stat().st_ino in self._locks()
        except OSError:
            return False

    def goes_on(self, place: Place) -> bool:
        """Whether it is an experiment with trials that is being measured now."""
        if place.kind != "experiment" or not self.is_written(place):
            return False
        return self.following(place).tail.state == "running"

    def following(self, place: Place) -> Following:
        """What is known of a place, with its journal as it is now."""
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
        """What is known of an experiment that goes on; none before it was judged once, for which this may ``wait``.

        A judgement is ordered where one is due, and never made here.
        """
        follower = self.following(place)
        if isinstance(folder, CountFolder | DiskFolder):
            return None
        with self._lock:
            idle = follower.judging is None or follower.judging.done()
            if idle and follower.is_behind and time.monotonic() >= follower.not_before:
                follower.judging = self._judge.submit(follower.judge, folder)
        if follower.known is None and follower.judging is not None:
            _wait(follower.judging, wait)
        return follower.underway(writing=self.is_written(place))

    def close(self) -> None:
        """No judgement is made any more."""
        self._judge.shutdown(wait=False, cancel_futures=True)

    def _locks(self) -> dict[int, int]:
        """Files that somebody holds a lock on; read twice a second at most."""
        then, known = self._locked
        if time.monotonic() - then > 0.5:
            known = lockers()
            self._locked = time.monotonic(), known
        return known


def _wait(judging: Future[None], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        judging.result(seconds)


def _be_nice() -> None:
    """On Linux this is of the thread alone."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_NICE)


def progress(known: Underway) -> str:
    """How far it is, as the run's own line says it."""
    if not known.block:
        return "no trial yet"
    block = f"block {known.block} of at most {known.most}"
    decided = f"{known.decided} of {plural(known.cells, 'cell')} decided"
    return ", ".join(
        filter(None, (block, decided, f"{duration(known.spent)} spent", known.ahead))
    )


def course_of(comparison: Comparison, most: int, margin: float) -> Mapping[str, object]:
    """The picture of a comparison: blocks from left to right, the interval around its change, the margin as a band."""
    ends = [end for _, low, high in comparison.course[-3:] for end in (low, high)]
    reach = 1.15 * max(
        [
            2 * margin,
            *map(abs, ends),
            *(abs(value) for value in sorted(comparison.each, key=abs)[:-1]),
        ]
    )

    def x(block: float) -> float:
        return round(WIDTH * block / (most + 1), 1)

    def y(change: float) -> float:
        return round(HEIGHT / 2 * (1 - min(1.0, max(-1.0, change / reach))), 1)

    upper = [(x(blocks), y(high)) for blocks, _, high in comparison.course]
    lower = [(x(blocks), y(low)) for blocks, low, _ in reversed(comparison.course)]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "band": (y(margin), y(-margin)),
        "area": " ".join(f"{left},{top}" for left, top in (*upper, *lower)),
        "last": (*(upper[-1]), lower[0][1]) if upper else None,
        "dots": [
            (x(number), y(change)) for number, change in enumerate(comparison.each, 1)
        ],
        "next": x(comparison.next_look) if comparison.next_look else None,
        "reach": reach,
    }


WIDTH, HEIGHT = 360, 110
