"""The calls by which a run reports its progress; nothing is printed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from iodelta.lab.plan import Plan, Slot
from iodelta.trial import Trial
from iodelta.verdict import Judgement


class Watcher(Protocol):
    """Is called for each step; must return quickly and must not raise."""

    def begin(self, plan: Plan, folder: str, done: int) -> None:
        """The run begins (or continues, with ``done`` trials made before)."""

    def note(self, text: str) -> None:
        """Something worth a line: a repeat, an abandoned cell, a restored knob."""

    def trial(self, slot: Slot, variant: str, number: int) -> None:
        """A trial begins."""

    def tick(self, seconds: float) -> None:
        """``seconds`` into the trial; about once a second."""

    def measured(self, trial: Trial) -> None:
        """A usable trial is on disk."""

    def judged(self, judgement: Judgement, spent: float, left: float) -> None:
        """The state of all cells after a round: seconds of the budget spent, and seconds expected still."""

    def preparing(self, what: str, share: float) -> None:
        """Something long before the first trial: a scratch file is written, 0..1 of it done."""


class Control(NamedTuple):
    """How the user follows a run, stops it, and what they gave up for it."""

    watcher: Watcher
    stop: Callable[[], bool]
    """Whether the run is to end at the next safe place."""
    destroy: Sequence[str] = ()
    """Targets that may be overwritten although they contain data."""
    commands: bool = False
    """Whether commands may run although nobody can see what they write."""
