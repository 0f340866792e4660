"""What ``iodelta run`` does: begin an experiment, or go on with one. What measures and judges is imported when it is
needed, so that a dry run and a mistyped option do not wait for it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from iodelta.api import planning
from iodelta.api.planning import Looked
from iodelta.cli.checkout import checked_out
from iodelta.cli.contact import contacts
from iodelta.cli.gate import WORSE, Words, exit_code
from iodelta.cli.progress import say_line
from iodelta.cli.turn import expect_turn, in_turn
from iodelta.errors import RequestError
from iodelta.experiment import Experiment, overridden, parse, seconds, shorthand
from iodelta.experiment.command import placed
from iodelta.experiment.options import QUICK, tables
from iodelta.experiment.source import COMMAND_LINE, text_of
from iodelta.lab.folder import CountFolder, Folder
from iodelta.lab.plan import Plan
from iodelta.lab.signals import stop_on_signals
from iodelta.machine import Machine
from iodelta.study.words import inert


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of ``iodelta run``, as they were given."""

    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Those of ``DesignOptions``, by name."""
    fio: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Of the machines."""
    clock: str | None = None
    anatomy: str | None = None
    cpus: int | None = None
    """Of the guest in which moved cache lines are counted."""
    variants: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    quick: bool = False
    repo: str = ""
    """The checkout whose commit is recorded as what was measured."""
    destroy: tuple[str, ...] = ()
    leave_out: bool = False
    place: Path | None = None
    """Name of the folder to create."""
    dry_run: bool = False
    verbose: bool = False
    format_: str = "console"
    fail_on: Words = WORSE
    """The words for which it does not exit with 0."""
    output: Path | None = None
    """The file that the plan of a dry run, or the result, goes to."""
    force: bool = False
    allow_commands: bool = False
    """Whether commands may run although nobody can see what they write."""

    def asks_anew(self) -> bool:
        """Return whether an option is given that only a new experiment can have."""
        new = {name: value for name, value in self.given.items() if name != "budget"}
        own = (
            self.fio,
            self.variants,
            self.conditions,
            self.names,
            self.clock,
            self.anatomy,
            self.repo,
            self.place,
        )
        numbers = (
            self.cpus,
            *(
                value
                for value in new.values()
                if isinstance(value, int) and value is not False
            ),
        )
        flags = (self.quick, self.leave_out, self.dry_run)
        return any((*own, *new.values(), *flags)) or any(
            number is not None for number in numbers
        )

    def overrides(self) -> dict[str, dict[str, Any]]:
        """Return the options by the tables of an experiment file."""
        given = {
            name: value
            for name, value in self.given.items()
            if value not in (None, "", False)
        }
        found = tables({**QUICK, **given} if self.quick else given)
        machine = self.names[0] if len(self.names) == 1 else list(self.names)
        found["top"] |= {
            "machine": machine,
            "clock": self.clock,
            "anatomy": self.anatomy,
        }
        found["subject"] = dict(checked_out(self.repo)) if self.repo else {}
        return found


def measure(path: Path | None, asked: Asked) -> None:
    """Go on with the folder at ``path``, or begin the experiment that the file and the options describe."""
    if path is not None and not path.exists():
        raise RequestError(
            "there is nothing at this path",
            place=str(path),
            remedy="name an experiment file, a fio job file, or the folder of an earlier run to continue it",
        )
    if path is not None and path.is_dir():
        _go_on(path, asked)
    else:
        _begin(path, asked)


def _go_on(path: Path, asked: Asked) -> None:
    if asked.asks_anew():
        raise RequestError(
            "the folder already defines the question and its rules",
            place=str(path),
            remedy="to continue it, only --budget, --destroy, --allow-commands, --wait, --verbose, --format, "
            "--fail-on and --output can be given",
        )
    folder = Folder.open(path)
    if isinstance(folder, CountFolder):
        from iodelta.cli.counting import go_on

        go_on(
            folder,
            asked.format_,
            asked.output,
            force=asked.force,
            fail_on=asked.fail_on,
        )
        return
    from iodelta.cli.watching import watcher
    from iodelta.lab.account import Account
    from iodelta.lab.progress import Control
    from iodelta.lab.remake import remade
    from iodelta.lab.session import go, read_plan

    more = _seconds(asked.given["budget"]) if asked.given.get("budget") else None
    over = more is None and Account(folder.events()).over
    experiment = read_plan(folder).experiment
    with (
        contacts(experiment.machines, boots=experiment.boots) as (first, *others),
        stop_on_signals(stopping(experiment)) as stop,
        watcher(asked.format_) as watching,
        contextlib.nullcontext()
        if over
        else remade(folder, first, watching, stop=stop) as again,
    ):

        def going() -> None:
            control = Control(watching, stop, asked.destroy, asked.allow_commands)
            go(folder, first, control, budget=more, others=others, remade=bool(again))

        in_turn(going, stop, watching.note)
    _show(folder, asked)


def _check_cpus(cpus: int, anatomy: str) -> None:
    """Raises RequestError for CPUs of a guest that has another number of them."""
    from iodelta.path.sharing_job import CPUS

    if anatomy != "sharing":
        raise RequestError(
            "--cpus is for guests in which moved cache lines are counted",
            place="--cpus",
            remedy="add --anatomy=sharing, or say --machine vm:cpus=2 where time is measured",
        )
    if cpus != CPUS:
        raise RequestError(
            f"moved cache lines are counted between two CPUs that take turns, not {cpus}",
            place="--cpus",
            remedy=f"say --cpus {CPUS}, or omit it",
        )


def _begin(path: Path | None, asked: Asked) -> None:
    text, name, base = _question(path, asked)
    experiment = parse(text, name, base=base, numbered=name == str(path), strict=True)
    place = asked.place or _new_name()
    if asked.cpus is not None:
        _check_cpus(asked.cpus, experiment.anatomy)
    if experiment.clock == "instructions":
        from iodelta.cli.counting import begin

        begin(
            experiment,
            text,
            place,
            asked.format_,
            asked.output,
            force=asked.force,
            dry_run=asked.dry_run,
            fail_on=asked.fail_on,
        )
        return
    with contacts(experiment.machines, boots=experiment.boots) as machines:
        survey = looked(
            machines,
            experiment,
            leave_out=asked.leave_out,
            destroy=asked.destroy,
            commands=asked.allow_commands,
        )
        if asked.dry_run:
            rehearse(survey, asked)
            return
        plan = planned(machines, survey, asked.format_)
        folder = _started(place, text, plan, machines, asked)
    _show(folder, asked)


def _started(
    place: Path, text: str, plan: Plan, machines: Sequence[Machine], asked: Asked
) -> Folder:
    """Return the folder of an experiment that was measured until its end."""
    from iodelta.cli.watching import watcher
    from iodelta.lab.progress import Control
    from iodelta.lab.session import start

    first, *others = machines
    with (
        stop_on_signals(stopping(plan.experiment)) as stop,
        watcher(asked.format_) as watching,
    ):

        def starting() -> Folder:
            control = Control(watching, stop, asked.destroy, asked.allow_commands)
            return start(place, text, plan, first, control, others=others)

        return in_turn(starting, stop, watching.note)


def stopping(experiment: Experiment) -> str:
    """Return what Ctrl-C makes a run do, said at once."""
    tool = "the command" if experiment.of_command else "fio"
    return ", ".join(
        [
            f"stopping: ending {tool}",
            *(f"restoring {inert(name)}" for name in experiment.knob_names()),
        ]
    )


def _show(folder: Folder, asked: Asked) -> NoReturn:
    """The result, and its exit code."""
    from iodelta.cli.delivery import deliver
    from iodelta.report.derived import charted, derive
    from iodelta.report.stories.story import Detail

    account = derive(folder)
    charts = charted(folder)[1] if asked.format_ == "html" else ()
    detail = Detail(whole=asked.verbose)
    deliver(
        account,
        lambda: charts,
        asked.format_,
        asked.output,
        force=asked.force,
        detail=detail,
    )
    sys.exit(exit_code(account, asked.fail_on))


looked = functools.partial(planning.looked, say=say_line)
"""Variants that are left out are named on standard error."""


def planned(machines: Sequence[Machine], found: Looked, format_: str) -> Plan:
    """Return the plan that was ``found`` to run on all the machines, shown to the user in a few lines.

    Raises RequestError, RefusedError for what may not be written to, and BusyError.
    """
    from iodelta.report.formats.terminal import labelled
    from iodelta.report.stories.plan import facts

    if found.refused is not None:
        raise found.refused
    for machine, seen in zip(machines, found.seen, strict=True):
        if not found.plan.experiment.target.none:
            expect_turn(machine, seen.target)
    for line in labelled(facts(found.answer, rules=False)):
        click.echo(line, err=format_ != "console")
    return found.plan


def rehearse(seen: Looked, asked: Asked) -> None:
    """Print the plan, or write it to a file. Raises RefusedError for what the run would refuse."""
    from iodelta.cli.delivery import deliver

    deliver(seen.answer, tuple, asked.format_, asked.output, force=asked.force)
    if seen.refused is not None:
        raise seen.refused


def _seconds(budget: str) -> float:
    try:
        return seconds(budget)
    except ValueError as error:
        raise RequestError(str(error), place="--budget") from error


def _question(path: Path | None, asked: Asked) -> tuple[str, str, Path]:
    """Return the text of the experiment, what to call it in messages, and where its relative paths begin."""
    fio = asked.fio
    if path is None or path.suffix != ".toml":
        if path is not None:
            fio = (f"--job_file={path.absolute()}", *fio)
        lines = shorthand(
            fio=fio,
            variants=asked.variants,
            conditions=asked.conditions,
            **asked.overrides(),
        )
        return lines, COMMAND_LINE, Path()
    if asked.fio or asked.variants or asked.conditions:
        raise RequestError(
            "an experiment file holds its own workload, variants and conditions",
            place=str(path),
            remedy="write them there, or leave the file out",
        )
    text = placed(text_of(path), path.parent)
    changed = overridden(text, **asked.overrides())
    if changed is None:
        return text, str(path), path.parent
    return changed, f"{path} with options", path.parent


def _new_name() -> Path:
    return Path(time.strftime("iodelta-%Y%m%d-%H%M%S"))
