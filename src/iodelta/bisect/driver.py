"""A search on disk: replay its log and continue from there, with one fsync per answer."""

from __future__ import annotations

import contextlib
import math
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from iodelta import __version__
from iodelta.bisect.asking import Course
from iodelta.bisect.attribution import Attributing, PatchItems
from iodelta.bisect.byhand import ByHand, Judging, Person, Verdict
from iodelta.bisect.commands import Stopped
from iodelta.bisect.git import Repository
from iodelta.bisect.items import InTree, Titled, kind_of
from iodelta.bisect.log import (
    ENVIRONMENT,
    TREE,
    Answered,
    Asked,
    Ended,
    SearchFolder,
    Session,
    Undone,
)
from iodelta.bisect.measure import Silent
from iodelta.bisect.model import Ask, Estimate, Outcome, Scatter
from iodelta.bisect.question import Better, Patches, Question
from iodelta.bisect.search import Search
from iodelta.bisect.store import Store
from iodelta.bisect.tree import Worktree
from iodelta.bisect.visit import Site, Visitor
from iodelta.errors import IodeltaError, MeasureError, RequestError
from iodelta.figures import share, two_digits
from iodelta.lab.folder import now
from iodelta.lab.session import settle_pending
from iodelta.machine import Machine
from iodelta.plural import plural
from iodelta.probe.environment import environment
from iodelta.probe.sysfs import boot_id
from iodelta.stats.attribution import Attribution
from iodelta.workload.leftovers import end_leftovers


class SearchWatcher(Protocol):
    """Called at each step of a search. Methods must return quickly and must not raise."""

    def note(self, text: str) -> None:
        """A message for the user."""

    def ask(self, ask: Ask, title: str, share: float | None) -> None:
        """A visit begins; about ``share`` of the expected runs are done, None if that is unknown."""

    def answered(self, answered: Answered, title: str, store: Store) -> None:
        """The answer of the visit is on disk."""

    def tick(self, seconds: float) -> None:
        """``seconds`` of a trial have passed."""


class Asking(Protocol):
    """Decides on the next run: a ``Search``, a ``Judging`` or an ``Attributing``."""

    store: Store
    estimate: Estimate | None
    scatter: Scatter | None
    assumed: float


S = TypeVar("S", bound=Asking)
R = TypeVar("R")


class Replay(Generic[S, R]):
    """A course after the answers that count: the next ask, or else the outcome."""

    def __init__(
        self, search: S, course: Course[R], kind: Titled, answers: Iterable[Answered]
    ) -> None:
        """Raises MeasureError when the answers do not follow from the question."""
        self.search = search
        self.kind = kind
        self.outcome: R | None = None
        self._course = course
        self.ask: Ask | None = next(course)
        for number, answered in enumerate(answers, 1):
            if self.ask is None or self.ask.item != answered.item:
                raise MeasureError(
                    f"answer {number} in the log is about {answered.item[:12]}, which this version did not ask for",
                    place="log.jsonl",
                    remedy="continue with the version that the log's first line names",
                )
            self.send(answered)

    def send(self, answered: Answered) -> None:
        """Continue the course with one more answer."""
        try:
            self.ask = self._course.send(answered.answer)
        except StopIteration as end:
            self.ask, self.outcome = None, end.value


Searched = Replay[Search, Outcome]
Judged = Replay[Judging, Verdict]
Attributed = Replay[Attributing, Attribution | None]


def new(path: Path, question: Question, machine: Machine) -> SearchFolder:
    """Create the folder of a question. Raises RequestError or MeasureError, and leaves nothing, if it cannot be
    asked."""
    if not isinstance(question.subject, Patches):
        kind_of(machine, question.subject).line()
    return SearchFolder.make(
        path, question, __version__, f"{random.SystemRandom().getrandbits(64):016x}"
    )


def searched(
    machine: Machine, question: Question, answers: Iterable[Answered]
) -> Searched:
    """Return a search up to these answers. Raises MeasureError, RequestError."""
    if isinstance(question.subject, Patches):
        raise RequestError(
            "this is an attribution", remedy="pass it to `iodelta attribute`"
        )
    kind = kind_of(machine, question.subject)
    search = Search(kind.line(), question.rules, kind.inside, kind.reverted)
    return Replay(search, search.run(), kind, answers)


def judged(machine: Machine, question: Question, answers: Iterable[Answered]) -> Judged:
    """Return a search by words up to these answers. Raises MeasureError, RequestError."""
    assert not isinstance(question.subject, Patches)
    kind = kind_of(machine, question.subject)
    judging = Judging(kind.line(), question.rules, question.wrong, kind.inside)
    return Replay(judging, judging.run(), kind, answers)


def attributed(
    machine: Machine, question: Question, answers: Iterable[Answered]
) -> Attributed:
    """Return an attribution up to these answers. Raises MeasureError, RequestError."""
    if not isinstance(question.subject, Patches):
        raise RequestError("this is a search", remedy="pass it to `iodelta bisect`")
    subject = question.subject
    kind = PatchItems(Repository.open(machine, subject.repo), subject)
    attributing = Attributing(len(subject.names), question.rules, question.blocks)
    return Replay(attributing, attributing.run(), kind, answers)


def go(
    folder: SearchFolder,
    machine: Machine,
    replay: Callable[[Machine, Question, Iterable[Answered]], Replay[S, R]],
    watcher: SearchWatcher,
    *,
    stop: Callable[[], bool],
    person: Person | None = None,
) -> Replay[S, R]:
    """Run the rest of a course, or ask the ``person``. Raises IodeltaError; answers on disk are always kept."""
    question, identifier = folder.question(), folder.opened().identifier
    with folder.writing():
        # A run that was killed may have left processes.
        end_leftovers(machine, identifier)
        settle_pending(machine, Silent(watcher.note))
        answers = folder.answers()
        state = replay(machine, question, answers)
        if state.ask is None:
            # A run that was killed after its last answer has left its worktree.
            if isinstance(state.kind, InTree):
                Worktree(state.kind.repository, folder.path.absolute() / TREE).remove()
            return state
        # A person measures on a machine that is not known here.
        here = "" if person else uname(machine)
        folder.append(Session(now(), boot_id(machine), os.getpid(), here))
        # The trials of a cell have their own record, which includes the target.
        if question.steps.measure:
            folder.write(ENVIRONMENT, environment(machine, None))
        site: Site | ByHand
        if person is not None:
            site = ByHand(
                question, state.kind, person, watcher.note, lambda: left(state.search)
            )
        else:
            site = Site(
                machine, question, state.kind, folder.path, identifier, stop=stop, say=watcher.note, tick=watcher.tick
            )  # fmt: skip
        try:
            reason = follow(folder, state, site, watcher, stop, len(answers))
        except IodeltaError as error:
            # A full disk cannot take this line either.
            with contextlib.suppress(IodeltaError):
                folder.append(Ended(now(), f"failed: {error.what}"))
            raise
        finally:
            site.leave()
        folder.append(Ended(now(), reason))
        if reason == "complete":
            site.remove_tree()
    return state


def follow(
    folder: SearchFolder,
    state: Replay[S, R],
    site: Visitor,
    watcher: SearchWatcher,
    stop: Callable[[], bool],
    visits: int,
) -> str:
    """Ask until the search is complete or the user stops it; return which."""
    while (ask := state.ask) is not None:
        if stop():
            return "interrupted"
        visits += 1
        title = state.kind.title(ask.item)
        folder.append(Asked(now(), ask.item, ask.stage, ask.why))
        watcher.ask(ask, title, share_done(state.search))
        try:
            visited = site.visit(ask, visits, known=state.search.store.tested(ask.item))
        except Stopped:
            return "interrupted"
        answered = Answered(
            now(), ask.item, ask.stage, visited.answer, visited.values, visited.trials
        )
        folder.append(answered)
        search = state.search
        estimate, scatter, assumed = search.estimate, search.scatter, search.assumed
        state.send(answered)
        if search.scatter is not None and search.scatter is not scatter:
            item = state.kind.title(search.scatter.item)
            watcher.note(scattered(search.scatter, item))
        if search.assumed > assumed:
            watcher.note(repeating(search.assumed))
        if search.estimate is not None and search.estimate is not estimate:
            better = folder.question().better
            watcher.note(expectation(search.estimate, search.store, better))
        watcher.answered(answered, title, search.store)
    return "complete"


def share_done(search: Asking) -> float | None:
    """Return the share, from 0 to below 1, of the expected runs to the first culprit that are done; None before there
    is an estimate, and when it has been exceeded."""
    if search.estimate is None:
        return None
    expected = (search.estimate.runs_low + search.estimate.runs_high) / 2
    done = len(search.store.runs) / max(1.0, expected)
    return done if done < 1 else None


def left(search: Asking) -> str:
    """About how many answers of a person are still needed, as a sentence; nothing while that is unknown."""
    if isinstance(search, Judging):
        return f" About {search.left()} more."
    if search.estimate is None:
        return ""
    most = max(1, search.estimate.runs_high - len(search.store.runs))
    return f" At most about {most} more to the first culprit."


def expectation(estimate: Estimate, store: Store, better: Better) -> str:
    """Return the sentence about the length of a search, from the gate: how far the ends differ, the expected number of
    runs, and minutes from the duration of the visits so far."""
    sign = -1.0 if better == "higher" else 1.0
    apart = sign * math.expm1(sign * estimate.step)
    each = store.seconds / max(1, len(store.runs))
    low, high = (
        max(1, round(runs * each / 60))
        for runs in (estimate.runs_low, estimate.runs_high)
    )
    return (
        f"the ends differ by {share(apart)}, {two_digits(estimate.step / estimate.noise)} times "
        f"the noise of one run: about {estimate.runs_low} to {plural(estimate.runs_high, 'more run')}, "
        f"{f'{low} to ' if low < high else ''}{high} min"
    )


def scattered(scatter: Scatter, title: str) -> str:
    """Return the sentence that runs did not repeat as ``--exact`` promised."""
    promised, apart = (
        share(math.expm1(size)) for size in (scatter.exact, scatter.apart)
    )
    return (
        f"Runs were to repeat to within {promised}, but two of {title} are {apart} apart. That promise is "
        "dropped: the search continues as for a measurement with noise, and what it rested on is tested again"
    )


def repeating(assumed: float) -> str:
    """Return the sentence that runs are assumed to repeat exactly, because all runs so far did."""
    return (
        f"The first runs of both ends were equal to the last digit: the measure is taken to repeat exactly (as with "
        f"--exact {two_digits(100 * math.expm1(assumed))}%), until two runs of one item differ"
    )


def undo(folder: SearchFolder, count: int = 1) -> list[Answered]:
    """Withdraw the last ``count`` answers and return them, oldest first. The log keeps them. Raises RequestError if
    there are fewer, MeasureError if the log cannot be written."""
    with folder.writing():
        answers = folder.answers()
        if not 0 < count <= len(answers):
            raise RequestError(
                f"there are {len(answers)} answers to undo", place=str(folder.path)
            )
        taken = answers[-count:]
        for answered in reversed(taken):
            folder.append(Undone(now(), answered.item))
    return taken


def uname(machine: Machine) -> str:
    """Kernel name, release and architecture of the machine, in a line. Raises MachineError."""
    return machine.run(["uname", "-srm"]).text.strip()
