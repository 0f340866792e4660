"""Begin an experiment, or go on with one: what the command, a fleet and a Python program call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec

from iodelta.api.checkout import checked_out
from iodelta.api.machines import Say, contacts
from iodelta.api.planning import Looked
from iodelta.errors import RequestError
from iodelta.experiment import Experiment, overridden, parse, seconds
from iodelta.experiment.command import placed
from iodelta.experiment.options import QUICK, tables
from iodelta.experiment.shorthand import shorthand
from iodelta.experiment.source import COMMAND_LINE, text_of
from iodelta.lab.account import Account
from iodelta.lab.folder import Folder
from iodelta.lab.judged import read_plan
from iodelta.lab.progress import Control, Watcher
from iodelta.lab.remake import remade
from iodelta.lab.session import go, start
from iodelta.lab.turns import alone, patiently
from iodelta.machine import Machine

Stop = Callable[[], bool]


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured, where, and what the user allows."""

    given: Mapping[str, Any] = {}
    """Options of ``DesignOptions``, by name."""
    fio: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    quick: bool = False
    machines: tuple[str, ...] = ()
    clock: str | None = None
    anatomy: str | None = None
    cpus: int | None = None
    """Of the guest in which moved cache lines are counted."""
    repo: str = ""
    """The checkout whose commit is recorded as what was measured."""
    leave_out: bool = False
    folder: Path | None = None
    """The folder to create."""
    destroy: tuple[str, ...] = ()
    allow_commands: bool = False
    """Whether commands may run although nobody can see what they write."""
    wait: bool = False

    def overrides(self) -> dict[str, dict[str, Any]]:
        """Return the options by the tables of an experiment file."""
        given = {
            name: value
            for name, value in self.given.items()
            if value not in (None, "", False)
        }
        found = tables({**QUICK, **given} if self.quick else given)
        found["top"] |= {
            "machine": self.machines[0]
            if len(self.machines) == 1
            else list(self.machines),
            "clock": self.clock,
            "anatomy": self.anatomy,
        }
        found["subject"] = dict(checked_out(self.repo)) if self.repo else {}
        return found

    def control(self, watcher: Watcher, stop: Stop) -> Control:
        return Control(watcher, stop, self.destroy, self.allow_commands)


class Silent:
    """A watcher that nobody asked for."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *said, **named: None


SILENT = cast(Watcher, Silent())


class Question(NamedTuple):
    """An experiment, and its text."""

    text: str
    experiment: Experiment


def question_of(path: Path | None, asked: Wishes) -> Question:
    """Return what the file at ``path`` and the options ask. Raises RequestError."""
    name, base = COMMAND_LINE, Path()
    if path is None or path.suffix != ".toml":
        fio = (
            asked.fio if path is None else (f"--job_file={path.absolute()}", *asked.fio)
        )
        text = shorthand(
            fio=fio,
            variants=asked.variants,
            conditions=asked.conditions,
            **asked.overrides(),
        )
    else:
        if asked.fio or asked.variants or asked.conditions:
            raise RequestError(
                "an experiment file holds its own workload, variants and conditions",
                place=str(path),
                remedy="write them there, or leave the file out",
            )
        base = path.parent
        text = placed(text_of(path), base)
        changed = overridden(text, **asked.overrides())
        name = str(path) if changed is None else f"{path} with options"
        text = changed or text
    return Question(
        text, parse(text, name, base=base, numbered=name == str(path), strict=True)
    )


def folder_to_continue(path: Path, asked: Wishes) -> Folder:
    """Return the folder of an earlier run. Raises RequestError for an option that only a new experiment can have."""
    given = {
        name for name, value in asked.given.items() if value not in (None, "", False)
    }
    others = msgspec.structs.replace(
        asked, given={}, destroy=(), allow_commands=False, wait=False
    )
    if given - {"budget"} or others != Wishes():
        raise RequestError(
            "the folder already defines the question and its rules",
            place=str(path),
            remedy="to continue it, only budget, destroy, allow-commands and wait can be given, and how it is shown",
        )
    return Folder.open(path)


def go_on(folder: Folder, asked: Wishes, watcher: Watcher, stop: Stop) -> None:
    """Measure what is left of a folder; with a budget that much longer, once."""
    budget = asked.given.get("budget")
    try:
        more = seconds(budget) if budget else None
    except ValueError as error:
        raise RequestError(str(error), place="--budget") from error
    over = more is None and Account(folder.events()).over
    experiment = read_plan(folder).experiment
    with (
        contacts(experiment.machines, watcher.note, boots=experiment.boots) as (
            first,
            *others,
        ),
        contextlib.nullcontext()
        if over
        else remade(folder, first, watcher, stop=stop) as again,
    ):
        patiently(
            lambda: go(
                folder,
                first,
                asked.control(watcher, stop),
                budget=more,
                others=others,
                remade=bool(again),
            ),
            wait=asked.wait,
            stop=stop,
            note=watcher.note,
        )


def begin(
    place: Path,
    text: str,
    machines: Sequence[Machine],
    found: Looked,
    asked: Wishes,
    watcher: Watcher,
    stop: Stop,
    show: Callable[[Looked], None] = lambda found: None,
    beside: Mapping[str, bytes] = MappingProxyType({}),
) -> Folder:
    """Return a new folder at ``place``, measured until its end, after the plan that was ``found`` was shown.

    Raises RequestError, RefusedError for what may not be written to, and BusyError.
    """
    if found.refused is not None:
        raise found.refused
    if not (asked.wait or found.plan.experiment.target.none):
        for machine, seen in zip(machines, found.seen, strict=True):
            with alone(machine, [seen.target], Path.cwd()):
                """Nobody else measures on the target."""
    show(found)
    first, *others = machines
    return patiently(
        lambda: start(
            place,
            text,
            found.plan,
            first,
            asked.control(watcher, stop),
            others=others,
            beside=beside,
        ),
        wait=asked.wait,
        stop=stop,
        note=watcher.note,
    )


def look_for(
    machines: Sequence[Machine], question: Question, asked: Wishes, say: Say
) -> Looked:
    """Return the plan of a question for these machines. Raises RequestError."""
    from iodelta.api.planning import looked

    return looked(
        machines,
        question.experiment,
        leave_out=asked.leave_out,
        destroy=asked.destroy,
        commands=asked.allow_commands,
        say=say,
    )
