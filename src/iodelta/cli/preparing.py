"""What ``iodelta prepare`` does: begin the preparation of a disk, or go on with one."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from iodelta.cli.contact import contact
from iodelta.cli.delivery import deliver
from iodelta.cli.turn import expect_turn, in_turn
from iodelta.cli.watching import watcher
from iodelta.errors import RefusedError, RequestError, pasted
from iodelta.experiment import disk_text, parse_disk
from iodelta.experiment.source import text_of
from iodelta.lab.disksession import (
    DiskPlan,
    go,
    look,
    make_plan,
    read_plan,
    refusal,
    start,
)
from iodelta.lab.folder import DiskFolder, Folder
from iodelta.lab.progress import Control
from iodelta.lab.signals import stop_on_signals
from iodelta.machine import Machine
from iodelta.report.derived import charts_of_preparation, derive_prepared
from iodelta.report.formats.terminal import labelled
from iodelta.report.stories.disk_plan import facts
from iodelta.report.stories.story import Detail
from iodelta.study.planned import refusal_text
from iodelta.study.preparation import DiskPlanAnswer
from iodelta.study.words import inert


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of ``iodelta prepare``, as they were given."""

    fio: tuple[str, ...]
    machine: str
    purge: str | None
    fill: float | None
    round_: str
    limit: int | None
    spare: str
    size: str
    destroy: tuple[str, ...]
    place: Path | None
    """Name of the folder to create."""
    dry_run: bool
    format_: str
    output: Path | None
    force: bool

    def asks_anew(self) -> bool:
        """Return whether an option is given that only a new preparation can have."""
        texts = (
            self.fio,
            self.machine,
            self.purge,
            self.round_,
            self.spare,
            self.size,
            self.place,
        )
        return any(texts) or any(
            number is not None for number in (self.fill, self.limit)
        )


def prepare(what: str, asked: Asked) -> NoReturn:
    """Go on with a folder, or begin. Ends with the exit code."""
    if not what.strip():
        raise RequestError(
            "names no disk",
            place=repr(what),
            remedy="name a block device, a file or a folder",
        )
    path = Path(what)
    if path.is_dir() and (path / "experiment.toml").is_file():
        _go_on(path, asked)
    text, name, base = _question(path, asked)
    question = parse_disk(text, name, base=base, numbered=path.suffix == ".toml")
    plan = make_plan(question)
    with contact(question.machine) as machine:
        survey = look(machine, question)
        with watcher(asked.format_) as watching, stop_on_signals() as stop:
            control = Control(watching, stop, asked.destroy)
            refused = refusal(machine, survey, control)
            answer = DiskPlanAnswer(plan, survey, refusal_text(refused))
            if asked.dry_run:
                _rehearse(answer, refused, asked)
            expect_turn(machine, survey.target)
            for line in labelled(facts(answer)):
                click.echo(line, err=asked.format_ != "console")
            folder = _started(asked, text, plan, machine, control)
    _show(folder, asked)


def _started(
    asked: Asked, text: str, plan: DiskPlan, machine: Machine, control: Control
) -> Folder:
    place = asked.place or Path(time.strftime("iodelta-prepare-%Y%m%d-%H%M%S"))
    return in_turn(
        lambda: start(place, text, plan, machine, control)[0],
        control.stop,
        control.watcher.note,
    )


def _question(path: Path, asked: Asked) -> tuple[str, str, Path]:
    """Return the text of the question, what to call it, and where its files are looked up. Raises RequestError."""
    if path.suffix != ".toml":
        target = {"path": str(path), "size": asked.size}
        steps = {"purge": asked.purge, "round": asked.round_, "spare": asked.spare}
        numbers = {"fill": asked.fill, "limit": asked.limit}
        table: dict[str, str | int | float | bool | list[str] | None] = {
            **steps,
            **numbers,
        }
        return (
            disk_text(
                machine=asked.machine, target=target, prepare=table, fio=asked.fio
            ),
            "command line",
            Path(),
        )
    if dataclasses.replace(asked, place=None).asks_anew():
        raise RequestError(
            "the file already defines the steps",
            place=str(path),
            remedy="change [prepare] there, or name the device in place of the file",
        )
    return text_of(path), str(path), path.parent


def _go_on(path: Path, asked: Asked) -> NoReturn:
    folder = Folder.open(path)
    if not isinstance(folder, DiskFolder):
        raise RequestError(
            "this folder contains an experiment, which prepares its own disk",
            place=str(path),
            remedy="`iodelta run` continues it",
        )
    if asked.asks_anew() or asked.dry_run:
        raise RequestError(
            "the folder already defines the disk and the steps",
            place=str(path),
            remedy="to continue it, only --destroy, --wait, --format and --output can be given",
        )
    question = read_plan(folder).question
    with (
        contact(question.machine) as machine,
        stop_on_signals() as stop,
        watcher(asked.format_) as watching,
    ):
        in_turn(
            lambda: go(folder, machine, Control(watching, stop, asked.destroy)),
            stop,
            watching.note,
        )
    _show(folder, asked)


def _rehearse(
    answer: DiskPlanAnswer, refused: RefusedError | None, asked: Asked
) -> NoReturn:
    """The plan alone. Raises RefusedError, as the preparation would."""
    deliver(answer, tuple, asked.format_, asked.output, force=asked.force)
    if refused is not None:
        raise refused
    sys.exit(0)


def _show(folder: Folder, asked: Asked) -> NoReturn:
    """The result, and its exit code."""
    account = derive_prepared(folder)
    detail = Detail(folder=inert(pasted(folder.path)))
    deliver(
        account,
        lambda: charts_of_preparation(account),
        asked.format_,
        asked.output,
        force=asked.force,
        detail=detail,
    )
    sys.exit(account.exit_code)
