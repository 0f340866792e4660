"""The state that a folder's journal adds up to: which trials count, what is left to do, what was spent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import msgspec

from iodelta.lab.folder import (
    Abandoned,
    Ended,
    Event,
    Extended,
    Failed,
    Finished,
    LeftOut,
    Planned,
    Preparing,
    Repeated,
    Session,
    Settled,
    Started,
    StepBegun,
    StepDone,
)
from iodelta.trial import Finding

LEFT_OUT = "boot.left-out"
"""The rule of a finding that names a variant which was not measured."""

OVER = ("complete", "budget")
"""Ends after which nothing is left to do, unless the experiment is extended."""


class Lost(msgspec.Struct, frozen=True):
    """Why a finished trial cannot be read any more."""

    reason: str
    """What happened to its files."""
    remedy: str = ""

    @property
    def consequence(self) -> str:
        """Return what follows from the loss, and what to do."""
        return "; ".join(filter(None, ("its block no longer counts", self.remedy)))


class Account:
    """The journal, folded event by event; the cost of an event does not grow with the journal."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.planned: Planned | None = None
        self.started: dict[int, Started] = {}
        self.finished: dict[int, Finished] = {}
        self.failed: dict[int, str] = {}
        self.lost: dict[int, Lost] = {}
        """Finished trials whose raw files cannot be read any more, with the reason."""
        self.abandoned: dict[str, str] = {}
        """Cell -> reason."""
        self.left_out: dict[str, str] = {}
        """Variant -> why its kernel did not come up; none of its trials count, and the others went on."""
        self.repeats: list[Repeated] = []
        self.sessions: list[Session] = []
        self.preparing: list[Preparing] = []
        """Sessions of the preparation of disks."""
        self.steps: dict[int, StepDone] = {}
        """Finished steps of preparations."""
        self.steps_begun: list[StepBegun] = []
        """Every step that began; a step that is repeated after a kill has the same number."""
        self.settled: dict[str, Settled] = {}
        """Machine -> how the preparation of its disk ended, the last time that it did."""
        self.state = "running"
        """How the last session ended, as in ``Ended``; ``running`` while it has no end (or was killed)."""
        self.extended: Extended | None = None
        self.budget_ends: list[int] = []
        """Numbers of the last trials before a session ended because its budget did."""
        self.spent = 0.0
        """Seconds of finished trials, in all sessions."""
        self.next_trial = 1
        self._attempts: dict[tuple[str, int], dict[int, list[Started]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take one more event into account."""
        match event:
            case Started() | Finished() | Failed():
                if isinstance(event, Started):
                    self.started[event.trial] = event
                    self._attempts[event.cell, event.block][event.attempt].append(event)
                    self.next_trial = max(self.next_trial, event.trial + 1)
                elif isinstance(event, Finished):
                    self.finished[event.trial] = event
                    self.spent += event.seconds
                else:
                    self.failed[event.trial] = event.reason
            case Session() | Extended() | Ended():
                if isinstance(event, Session):
                    self.sessions.append(event)
                    self.state = "running"
                elif isinstance(event, Extended):
                    self.extended = event
                    self.state = "running"
                else:
                    self.state = event.reason
                    # The last look after a budget depends on when it ended, so a folder is judged with the same looks again.
                    if event.reason == "budget" and self.finished:
                        self.budget_ends.append(max(self.finished))
            case Preparing() | StepBegun() | StepDone() | Settled():
                if isinstance(event, Preparing):
                    self.preparing.append(event)
                elif isinstance(event, StepDone):
                    self.steps[event.number] = event
                elif isinstance(event, StepBegun):
                    self.steps_begun.append(event)
                else:
                    self.settled[event.machine] = event
            case Planned():
                self.planned = event
            case Repeated():
                self.repeats.append(event)
            case Abandoned():
                self.abandoned[event.cell] = event.reason
            case LeftOut():
                self.left_out[event.variant] = event.reason
            case _:
                pass  # knob records belong to the undo log, not to the trials

    def unfinished(self, machine: str) -> dict[str, int]:
        """Kind of a step -> how often one began on ``machine`` and did not end: it was killed, or is still running."""
        begun: Counter[str] = Counter(
            step.step for step in self.steps_begun if step.machine == machine
        )
        ended: Counter[str] = Counter(
            step.step for step in self.steps.values() if step.machine == machine
        )
        return dict(begun - ended)

    @property
    def begun(self) -> bool:
        """Return whether anything was done for this folder that is worth keeping."""
        return bool(self.sessions or self.steps)

    @property
    def over(self) -> bool:
        """Return whether the experiment came to its end: only an extension would go on."""
        return self.state in OVER

    def trial_seconds(self, planned: float) -> float:
        """Seconds of one trial, boots, repeats and all: as measured, once some were; ``planned`` before."""
        if not self.finished:
            return planned
        return self.spent / len(self.finished)

    def lose(self, trial: int, reason: str, remedy: str = "") -> None:
        """A finished trial turns out to be unreadable: it no longer counts, and its block is open again."""
        self.lost[trial] = Lost(reason, remedy)

    def problem(self, trial: int) -> str:
        """Return what spoilt a trial; empty when nothing did, or when it never finished."""
        reason = self.failed.get(trial) or (
            self.lost[trial].reason if trial in self.lost else ""
        )
        return reason or (
            self.finished[trial].problem if trial in self.finished else ""
        )

    def is_usable(self, trial: int) -> bool:
        """Return whether a trial finished without a problem."""
        return trial in self.finished and not self.problem(trial)

    def usable(self) -> dict[int, Started]:
        """Return the identities of the finished trials without a problem."""
        return {
            number: self.started[number]
            for number in self.finished
            if self.is_usable(number)
        }

    def attempts(self, cell: str, block: int) -> dict[int, list[Started]]:
        """Return the trials begun for a block, by attempt."""
        return self._attempts.get((cell, block), {})

    def is_complete(self, cell: str, block: int, variants: Collection[str]) -> bool:
        """Return whether a block has counted trials."""
        return bool(self._counted(self.attempts(cell, block), variants))

    def complete(self, variants: Collection[str]) -> list[tuple[str, int]]:
        """Cell and number of every block that has counted trials."""
        return [place for place in self._attempts if self.is_complete(*place, variants)]

    def counted(self, variants: Iterable[str]) -> dict[int, Started]:
        """Return the trials that count: of each block the first attempt in which every trial is usable.

        A block is repeated only because one of its trials has no result: spoilt, cut short, lost or unreadable. Where
        an older run repeated a block for noise, its first attempt counts: the variant itself may have caused the noise.
        """
        return {
            number: started
            for number, started in self.judged(variants).items()
            if not started.conditioning
        }

    def judged(self, variants: Iterable[str]) -> dict[int, Started]:
        """Return the trials that count, and the conditioning trials of their superblocks."""
        wanted = tuple(variants)
        counted: list[Started] = []
        for attempts in self._attempts.values():
            counted += self._counted(attempts, wanted)
        counted.sort(key=lambda started: started.trial)
        return {started.trial: started for started in counted}

    def findings(self) -> tuple[Finding, ...]:
        """Return what a reader must know of the journal: trials that are lost, variants that were left out."""
        lost = [
            Finding(
                "folder.lost", "hard", f"trial {number}", loss.reason, loss.consequence
            )
            for number, loss in sorted(self.lost.items())
        ]
        for variant, reason in self.left_out.items():
            lost.append(
                Finding(
                    LEFT_OUT,
                    "hard",
                    f"variant {variant}",
                    reason,
                    "the others were measured without it",
                )
            )
        return tuple(lost)

    def _counted(
        self, attempts: dict[int, list[Started]], variants: Collection[str]
    ) -> list[Started]:
        """Return the usable trials of a block's first whole attempt, the conditioning ones included."""
        names = {name for name in variants if name not in self.left_out}
        for _, begun in sorted(attempts.items()):
            usable = [
                started
                for started in begun
                if started.variant in names and self.is_usable(started.trial)
            ]
            conditioning = [started for started in usable if started.conditioning]
            counted = {
                started.variant: started
                for started in usable
                if not started.conditioning
            }
            if (counted.keys() == names) and _conditioned_alike(
                begun, conditioning, names
            ):
                return [*conditioning, *counted.values()]
        return []


def _conditioned_alike(
    begun: Iterable[Started], usable: Sequence[Started], variants: Iterable[str]
) -> bool:
    """Return whether each variant was conditioned by as many trials; ``usable`` are the conditioning trials that count.

    Assumption: only then are variants comparable. A block that lost all of its conditioning trials is not whole.
    """
    if not usable:
        return not any(started.conditioning for started in begun)
    trials = Counter(started.variant for started in usable)
    return len({trials[name] for name in variants}) == 1
