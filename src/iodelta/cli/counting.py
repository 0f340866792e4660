"""Path mode on the command line: begin or continue an experiment whose clock counts instructions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from iodelta.cli.commands import Asked
from iodelta.cli.progress import Progress, say_line
from iodelta.errors import pasted
from iodelta.lab.folder import Booted, Folder
from iodelta.lab.signals import stop_on_signals
from iodelta.plural import plural
from iodelta.study.words import duration, inert

if TYPE_CHECKING:
    from iodelta.api.measuring import Question
    from iodelta.path.plan import BootPlan, PathPlan


def begin(
    question: Question,
    path: Path,
    asked: Asked,
    *,
    dry_run: bool = False,
    row: bool = False,
) -> None:
    """Make a plan, show it, and run its boots. Exits with the account's exit code."""
    from iodelta.path.plan import PathPlanAnswer, make_plan
    from iodelta.report.formats.terminal import labelled
    from iodelta.report.stories.plan import path_facts

    plan = make_plan(question.experiment, row=row)
    if dry_run:
        asked.deliver(PathPlanAnswer(plan))
        return
    for line in labelled(path_facts(plan)):
        say_line(line)
    go_on(Folder.begin(path, question.text, plan), asked)


def go_on(folder: Folder, asked: Asked) -> NoReturn:
    """Run the boots that are left, and report. Exits with the account's exit code."""
    from iodelta.path import run
    from iodelta.report.derived import derive_counts

    with stop_on_signals() as stop, Progress(log=True) as progress:
        run.go(folder, _Boots(progress), stop=stop)
    account = derive_counts(folder)
    asked.deliver(account)
    if asked.format == "console":
        click.echo(f"Folder: {inert(pasted(folder.path))}")
    if "words" in vars(asked):
        asked.end(account)
    sys.exit(account.exit_code)


WORK: Mapping[str, float] = {"functions": 8.0, "anatomy": 8.0}
"""Purpose of a boot -> its CPU time as a multiple of that of a boot without the plugin (measured)."""

PURPOSES = {
    "again": ", the same again",
    "functions": ", for functions",
    "anatomy": ", for the anatomy",
}


class _Boots:
    """A line for every boot, and how much of their work is done."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._planned = 0
        self._work = self._done = 0.0

    def begin(self, plan: PathPlan, folder: str, done: int) -> None:
        self._planned = len(plan.boots)
        again = f", {plural(done, 'boot')} already there" if done else ""
        self._progress.note(f"folder {inert(pasted(folder))}{again}")
        work = [WORK.get(boot.purpose, 1.0) for boot in plan.boots]
        # Boots start in the order of the plan.
        self._work, self._done = sum(work), sum(work[:done])
        self._progress.step("booting", self._done / self._work)

    def booted(self, one: BootPlan, event: Booted, done: int) -> None:
        what = PURPOSES.get(one.purpose, "")
        what += f", layout {one.seed}" if one.seed else ""
        ended = inert(event.problem) or duration(event.seconds)
        self._progress.note(
            f"boot {done} of {self._planned}: {inert(one.variant)}{what}: {ended}"
        )
        self._done += WORK.get(one.purpose, 1.0)
        self._progress.step("booting", min(1.0, self._done / self._work))
