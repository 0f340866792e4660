"""Begin an experiment, or go on with one, without a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from iodelta.api.machines import contacts
from iodelta.api.planning import looked
from iodelta.errors import RequestError
from iodelta.experiment import overridden, parse, seconds
from iodelta.experiment.command import placed
from iodelta.experiment.options import tables
from iodelta.experiment.source import text_of
from iodelta.lab.account import Account
from iodelta.lab.folder import CountFolder, Folder
from iodelta.lab.plan import Plan, Slot
from iodelta.lab.progress import Control, Watcher
from iodelta.lab.remake import remade
from iodelta.lab.session import go, read_plan, start
from iodelta.lab.turns import patiently
from iodelta.report.derived import derive
from iodelta.trial import Trial
from iodelta.verdict import Judgement

Stop = Callable[[], bool]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a run."""

    machines: tuple[str, ...]
    given: Mapping[str, Any]
    """Those of ``DesignOptions``, by name."""
    destroy: tuple[str, ...]
    commands: bool
    leave_out: bool
    wait: bool
    watcher: Watcher | None

    @property
    def anew(self) -> bool:
        """Return whether an option is given that only a new experiment can have."""
        given = {name for name, value in self.given.items() if value not in (None, "")}
        return bool(given - {"budget"} or self.machines) or self.leave_out


class Silent:
    """A watcher that nobody asked for."""

    def begin(self, plan: Plan, folder: str, done: int) -> None: ...
    def note(self, text: str) -> None: ...
    def trial(self, slot: Slot, variant: str, number: int) -> None: ...
    def tick(self, seconds: float) -> None: ...
    def measured(self, trial: Trial) -> None: ...
    def judged(self, judgement: Judgement, spent: float, left: float) -> None: ...
    def preparing(self, what: str, share: float) -> None: ...


def begin(path: Path, place: Path, asked: Asked, stop: Stop) -> Folder:
    """Measure what the file at ``path`` asks until its end, in a new folder at ``place``."""
    text = placed(text_of(path), path.parent)
    names = list(asked.machines)
    found = tables(asked.given)
    found["top"]["machine"] = names[0] if len(names) == 1 else names
    changed = overridden(text, **found)
    experiment = parse(
        changed or text,
        str(path),
        base=path.parent,
        numbered=changed is None,
        strict=True,
    )
    if experiment.clock == "instructions":
        raise RequestError(
            "instructions are counted by the command alone",
            place=str(path),
            remedy="use `iodelta run`",
        )
    watcher = asked.watcher or Silent()
    with contacts(
        experiment.machines, watcher.note, boots=experiment.boots
    ) as machines:
        survey = looked(
            machines,
            experiment,
            leave_out=asked.leave_out,
            destroy=asked.destroy,
            commands=asked.commands,
            say=watcher.note,
        )
        if survey.refused is not None:
            raise survey.refused
        first, *others = machines
        control = Control(watcher, stop, asked.destroy, asked.commands)

        def starting() -> Folder:
            return start(
                place, changed or text, survey.plan, first, control, others=others
            )

        folder = patiently(starting, wait=asked.wait, stop=stop, note=watcher.note)
    derive(folder)
    return folder


def go_on(path: Path, asked: Asked, stop: Stop) -> Folder:
    """Measure what is left of the folder at ``path``; with a budget that much longer, once."""
    folder = Folder.open(path)
    if asked.anew:
        raise RequestError(
            "the folder already defines the question and its rules",
            place=str(path),
            remedy="to continue it, only budget, destroy, allow_commands and wait can be given",
        )
    if isinstance(folder, CountFolder):
        raise RequestError(
            "instructions are counted by the command alone",
            place=str(path),
            remedy="use `iodelta run`",
        )
    budget = str(asked.given.get("budget") or "")
    more = seconds(budget) if budget else None
    over = more is None and Account(folder.events()).over
    experiment = read_plan(folder).experiment
    watcher = asked.watcher or Silent()
    with (
        contacts(experiment.machines, watcher.note, boots=experiment.boots) as (
            first,
            *others,
        ),
        contextlib.nullcontext()
        if over
        else remade(folder, first, watcher, stop=stop) as again,
    ):

        def going() -> None:
            control = Control(watcher, stop, asked.destroy, asked.commands)
            go(folder, first, control, budget=more, others=others, remade=bool(again))

        patiently(going, wait=asked.wait, stop=stop, note=watcher.note)
    derive(folder)
    return folder
