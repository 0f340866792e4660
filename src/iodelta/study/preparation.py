"""The result of preparing a disk: its rounds, the window that decides, and whether the disk is steady."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Literal

import msgspec

from iodelta.decoding import converted
from iodelta.experiment import Experiment, Prepare
from iodelta.grouping import grouped
from iodelta.lab.account import Account
from iodelta.lab.diskstate import Known, findings
from iodelta.lab.folder import Folder, Preparing, Session
from iodelta.lab.plan import kinds_of
from iodelta.lab.preparing import (
    Round,
    State,
    least_written,
    overwritten,
    parts_of_fill,
    rounds_of,
    unbroken,
    window_of,
)
from iodelta.plural import plural
from iodelta.probe.topology import Target
from iodelta.stats.rounds import RANGE, SLOPE, Window, departure
from iodelta.study.system import recorded_environment, system
from iodelta.study.words import inert, percent, size
from iodelta.trial import Finding, Trial
from iodelta.verdict import Metric
from iodelta.verdict.metrics import reader


class RoundSeen(msgspec.Struct, frozen=True):
    """One round, and the window of five that ends with it."""

    round: int
    """From 1."""
    started: float
    """Unix seconds."""
    seconds: float
    iops: float
    written: int
    """Bytes that it wrote."""
    rested: bool
    """Whether the disk rested before it, so that no window reaches over that."""
    window: Window | None
    """None before there are five rounds in a row."""


class DiskAccount(msgspec.Struct, frozen=True):
    """The preparation of one disk. Bytes and seconds."""

    path: str
    """Of the disk."""
    machine: str
    """The machine that has it."""
    size: int
    """Bytes that are prepared, from its beginning."""
    prepare: Prepare
    """What was asked for."""
    workload: tuple[tuple[str, str | None], ...]
    """fio options of the rounds."""
    state: State
    """``running`` while it has no end."""
    purged: bool
    """Whether everything on it was given up first."""
    filled: int
    """Bytes written in sequence, by parts that ended."""
    to_fill: int
    """Bytes that were to be written in sequence."""
    rounds: tuple[RoundSeen, ...]
    overwritten: int
    """Bytes that the rounds have written, those that ended."""
    least_written: float
    """Bytes that the rounds had to write before five of them could be called steady."""
    begun: float
    """Unix seconds at which it began first."""
    ended: float | None
    """Unix seconds at which it ended; null while it has no end."""
    unfinished: Mapping[str, int] = {}
    """How many steps of each kind (purge, fill, round) began and did not end: they were killed, or one still runs.
    Nobody knows how much they wrote; nothing of them is counted."""

    @property
    def window(self) -> Window | None:
        """Return the last five rounds."""
        if not self.rounds:
            return None
        return self.rounds[-1].window

    @property
    def before_window(self) -> int:
        """Bytes that rounds wrote before the last five."""
        if not self.window:
            return 0
        return sum(measured.written for measured in self.rounds[: self.window.first])


class PrepareAnswer(msgspec.Struct, frozen=True):
    """A folder that `iodelta prepare` made."""

    folder: str
    disk: DiskAccount
    measured_by: str
    """Version of iodelta that did it."""
    system: tuple[tuple[str, str], ...] = ()
    """What the machine was, in a few lines: name and value; empty where it is not recorded."""
    schema: Literal["iodelta.prepare/1"] = "iodelta.prepare/1"

    @property
    def exit_code(self) -> int:
        """0 steady, 3 not steady, or not finished."""
        return 0 if self.disk.state == "steady" else 3


def prepared(folder: Folder) -> PrepareAnswer:
    """Return a folder of a preparation alone, complete or still being written. Raises MeasureError for a damaged one."""
    from iodelta.lab.disksession import read_plan

    plan = read_plan(folder)
    folder.check_journal()
    account = Account(folder.events())
    question = plan.question
    disks = disk_accounts(folder, account, question.prepare)
    nothing = DiskAccount(
        path=question.target.path,
        machine="",
        size=0,
        prepare=question.prepare,
        workload=(),
        state="running",
        purged=False,
        filled=0,
        to_fill=0,
        rounds=(),
        overwritten=0,
        least_written=0.0,
        begun=0.0,
        ended=None,
    )
    return PrepareAnswer(
        folder=str(folder.path),
        disk=next(iter(disks), nothing),
        measured_by=account.planned.version if account.planned else "",
        system=system(recorded_environment(folder)),
    )


def disk_accounts(
    folder: Folder, account: Account, prepare: Prepare
) -> tuple[DiskAccount, ...]:
    """Return what became of each disk that the journal says was prepared. Raises MeasureError."""
    by_machine = grouped(account.preparing, lambda begun: begun.machine)
    return tuple(
        _account(folder, account, prepare, of_machine[0])
        for of_machine in by_machine.values()
    )


def _account(
    folder: Folder, account: Account, prepare: Prepare, begun: Preparing
) -> DiskAccount:
    """Return what became of the disk of one machine."""

    rounds = rounds_of(folder, account, begun.machine)
    steps = [step for step in account.steps.values() if step.machine == begun.machine]
    fills = [step.written for step in steps if step.step == "fill"]
    to_fill = [part.size for part in parts_of_fill(begun.size, prepare.fill)]
    settled = account.settled.get(begun.machine)
    state: State = "running"
    ended = None
    # A round after the end belongs to a preparation that was continued.
    if settled is not None and (settled.steady or settled.rounds == len(rounds)):
        state = "steady" if settled.steady else "not steady"
        ended = settled.at
    return DiskAccount(
        path=converted(begun.target, Target).path,
        machine=begun.machine,
        size=begun.size,
        prepare=prepare,
        workload=begun.workload,
        state=state,
        purged=any(step.step == "purge" for step in steps),
        filled=sum(fills),
        to_fill=sum(to_fill),
        rounds=tuple(_seen(rounds)),
        overwritten=overwritten(rounds),
        least_written=least_written(prepare, begun.size),
        begun=begun.at,
        ended=ended,
        unfinished=account.unfinished(begun.machine),
    )


def _seen(rounds: Sequence[Round]) -> Iterator[RoundSeen]:
    """Yield each round with the window that ends with it."""
    for number, measured in enumerate(rounds, 1):
        before = rounds[:number]
        rested = number > 1 and len(unbroken(before)) == 1
        yield RoundSeen(
            round=number,
            started=measured.started,
            seconds=measured.seconds,
            iops=measured.iops,
            written=measured.written,
            rested=rested,
            window=window_of(before),
        )


def disk_findings(
    experiment: Experiment,
    account: Account,
    trials: Sequence[Trial],
    metrics: Sequence[Metric],
) -> Iterator[Finding]:
    """Findings about the state of disks that were written to: before the trials, and during them."""
    for session in _first_sessions(account):
        if session.disk is not None:
            path = converted(session.target, Target).path
            yield from findings(converted(session.disk, Known), path)
    if any(session.disk is not None for session in account.sessions):
        # Arms whose trials show that the disk was not steady while they were measured.
        rates = [
            metric
            for metric in metrics
            if metric.name.endswith((".iops", ".bandwidth"))
        ]
        sound = [trial for trial in trials if not trial.problem]
        in_time = sorted(sound, key=lambda trial: trial.number)
        arms = grouped(in_time, lambda trial: (trial.cell, trial.variant))
        for cell, variant in product(experiment.cells, experiment.variants):
            # A disk that was not prepared wears only where it is written to.
            if experiment.prepare is None and "write" not in kinds_of(cell):
                continue
            of_arm = arms.get((cell.name, variant.name), [])
            for metric in rates:
                window = departure([reader(metric)(trial)[0] for trial in of_arm])
                if window is not None:
                    place = f"{cell.name}, {variant.name}"
                    yield _departed(place, metric.name, window, len(of_arm))


def _first_sessions(account: Account) -> list[Session]:
    """Return the first session on each machine."""
    by_machine = grouped(account.sessions, lambda session: session.machine)
    return [sessions[0] for sessions in by_machine.values()]


def prepared_earlier(account: Account) -> tuple[tuple[str, str], ...]:
    """Return how the disk of each machine had been prepared when the first session began there: name and value."""
    texts = chain.from_iterable(map(_prepared_then, _first_sessions(account)))
    return tuple(("disk prepared", text) for text in texts)


def _prepared_then(session: Session) -> Iterator[str]:
    if session.disk is None:
        return
    disk = converted(session.disk, Known)
    if disk.prepared is None:
        return
    path = inert(converted(session.target, Target).path)
    ended = time.strftime("%Y-%m-%d %H:%M", time.gmtime(disk.prepared.at))
    state = "steady" if disk.prepared.steady else "not steady"
    rounds = plural(disk.prepared.rounds, "round")
    since = "an unknown amount" if disk.since is None else size(disk.since)
    done = f"{inert(disk.prepared.how)}; {state} after {rounds}"
    yield f"{path}, {ended} UTC: {done}; {since} written to it before the first trial"


def _departed(place: str, metric: str, window: Window, trials: int) -> Finding:
    groups = f"five groups of its {plural(trials, 'trial')}, in the order in which they were made,"
    text = (
        f"{metric} left the steady state: {groups} "
        f"range over {100 * window.range:.0f} % of their average ({100 * RANGE:.0f} % is steady), and their line "
        f"changes by {percent(window.slope, 0.05)} ({100 * SLOPE:.0f} % is steady)"
    )
    remedy = "prepare the disk with the workload that is measured: `iodelta prepare`, or [prepare] in the experiment"
    return Finding("disk.left-steady", "warning", place, text, remedy)
