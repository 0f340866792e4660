"""The functions of ``iodelta.api``, each the one that the command of its name calls."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from iodelta.api.results import Audit, Comparison, Experiment, frame_of
from iodelta.errors import RequestError
from iodelta.experiment.options import DesignOptions

if TYPE_CHECKING:
    import polars

    from iodelta.api.fleets import Agreement, Fleet
    from iodelta.api.histories import History
    from iodelta.lab.progress import Watcher

Path_ = str | os.PathLike[str]


def open(path: Path_) -> Experiment:
    """Return the folder that ``iodelta run`` made, or a bundle of one, judged again from its raw data.

    Raises RequestError where there is none, MeasureError for a damaged one.
    """
    from iodelta.bundle.packed import is_own
    from iodelta.lab.folder import CountFolder, DiskFolder, Folder

    if not is_own(Path(path)):
        raise RequestError(
            "not an experiment folder, and not a bundle of one",
            place=os.fspath(path),
            remedy="`iodelta.read` reads results of other tools",
        )
    if Path(path).is_dir() and isinstance(
        Folder.open(Path(path)), CountFolder | DiskFolder
    ):
        raise RequestError(
            "this folder has no trials: it counts instructions, or prepares a disk",
            place=os.fspath(path),
            remedy="`iodelta report` shows it",
        )
    return Experiment(Path(path))


def compare(
    *paths: Path_,
    baseline: str | None = None,
    margin: str | float = "1%",
    pattern: str | None = None,
) -> Comparison:
    """Results from any source: the first path with each other, or the variants in one, as ``iodelta compare``.

    ``pattern`` says how file names are read: ``{variant}/{cell}-{replicate}.json``. Raises RequestError, MeasureError.
    """
    from iodelta.api.foreign import compared, share_of

    if not paths:
        raise RequestError(
            "there is nothing to compare", remedy="name files or folders"
        )
    comparison, layouts = compared(
        [os.fspath(path) for path in paths],
        share_of(margin, "margin"),
        baseline,
        pattern=pattern,
    )
    return Comparison(comparison, layouts, baseline)


def audit(*paths: Path_, claims: str = "", pattern: str | None = None) -> Audit:
    """Return what is impossible, inconsistent or unsafe in results, as ``iodelta audit``. ``claims`` are sentences
    about them.

    Raises RequestError, MeasureError.
    """
    from iodelta.api.foreign import audited

    if not paths:
        raise RequestError("there is nothing to audit", remedy="name files or folders")
    return Audit(audited([os.fspath(path) for path in paths], claims, pattern=pattern))


def read(*paths: Path_, pattern: str | None = None) -> polars.DataFrame:
    """Return what ``iodelta show`` reads, a row for each run and direction, with the columns of ``show --format csv``.

    Raises RequestError for a path that is not there, and where nothing could be read, with the reasons.
    """
    from iodelta.study.paths import read_all
    from iodelta.study.runs import shown

    if not paths:
        raise RequestError("there is nothing to read", remedy="name files or folders")
    names = [os.fspath(path) for path in paths]
    layout, imported = read_all(names, pattern=pattern)
    runs = shown(layout, imported, each=True, paths=names)
    if not runs.rows:
        reasons = "; ".join(
            f"{refusal.place}: {refusal.reason}" for refusal in runs.refusals
        )
        raise RequestError(
            f"nothing here could be read{': ' if reasons else ''}{reasons}",
            place=", ".join(names),
        )
    return frame_of(runs)


def open_history(
    place: Path_ = "iodelta-history", *, log: Path_ | None = None, token: str = ""
) -> History:
    """Return a history: a directory, or ``postgresql://USER@HOST/DATABASE`` with its ``log``. It is made where there
    is none.

    Or the address of ``iodelta serve --history``, with a ``token`` of it (default: the variable ``IODELTA_TOKEN``).
    Raises RequestError where the extra ``history`` is missing, MeasureError where the database does not answer.
    """
    from iodelta.api.histories import opened

    return opened(os.fspath(place), Path(log) if log is not None else None, token)


def open_fleet(inventory: Path_ = "fleet.toml") -> Fleet:
    """Return the hosts that an inventory names. Raises RequestError for one that cannot be read."""
    from iodelta.api.fleets import Fleet

    return Fleet(inventory)


def agreement(*folders: Path_) -> Agreement:
    """Return what hosts that measured one plan say together, as ``iodelta fleet report``: folders of hosts, or fleet
    folders.

    Raises RequestError, MeasureError.
    """
    from iodelta.api.fleets import Agreement, agreed

    if not folders:
        raise RequestError(
            "there are no hosts to join", remedy="name folders of hosts, or a fleet's"
        )
    return Agreement(agreed([os.fspath(folder) for folder in folders]))


def run(
    path: Path_,
    *,
    folder: Path_ | None = None,
    machine: str | Sequence[str] = (),
    destroy: Sequence[str] = (),
    allow_commands: bool = False,
    leave_out: bool = False,
    wait: bool = False,
    watcher: Watcher | None = None,
    quick: bool = False,
    **options: Unpack[DesignOptions],
) -> Experiment:
    """Run an experiment file, or continue the folder at ``path``, as ``iodelta run`` does. Ctrl-C ends it cleanly.

    The options are those of the command (``DesignOptions``); of a folder only ``budget``, ``destroy``,
    ``allow_commands`` and ``wait``. ``watcher`` is told of each step. Raises RequestError, RefusedError for what may not be written to, BusyError,
    MeasureError.
    """
    from iodelta.api.foreign import share_of
    from iodelta.api.machines import contacts
    from iodelta.api.measuring import (
        SILENT,
        Wishes,
        begin,
        folder_to_continue,
        go_on,
        look_for,
        question_of,
    )
    from iodelta.lab.folder import CountFolder
    from iodelta.lab.signals import stop_on_signals
    from iodelta.report.derived import derive

    given = dict(options)
    if options.get("margin", "") != "":
        given["margin"] = f"{100 * share_of(options['margin'], 'margin'):.12g}%"
    asked = Wishes(
        machines=(machine,) if isinstance(machine, str) and machine else tuple(machine),
        given=given,
        quick=quick,
        destroy=tuple(destroy),
        allow_commands=allow_commands,
        leave_out=leave_out,
        wait=wait,
        folder=Path(folder) if folder is not None else None,
    )
    told, place = watcher or SILENT, Path(path)
    counted = RequestError(
        "instructions are counted by the command alone",
        place=os.fspath(path),
        remedy="use `iodelta run`",
    )
    with stop_on_signals() as stop:
        if place.is_dir():
            made = folder_to_continue(place, asked)
            if isinstance(made, CountFolder):
                raise counted
            go_on(made, asked, told, stop)
        else:
            question = question_of(place, asked)
            if question.experiment.clock == "instructions":
                raise counted
            names, boots = question.experiment.machines, question.experiment.boots
            new = asked.folder or Path(time.strftime("iodelta-%Y%m%d-%H%M%S"))
            with contacts(names, told.note, boots=boots) as machines:
                found = look_for(machines, question, asked, told.note)
                made = begin(new, question.text, machines, found, asked, told, stop)
    derive(made)
    return Experiment(made.path)
