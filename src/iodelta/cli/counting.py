"""Path mode on the command line: begin, continue or rebuild an experiment whose clock counts instructions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from iodelta.cli.delivery import deliver
from iodelta.cli.files import print_document
from iodelta.cli.gate import WORSE, Words, exit_code
from iodelta.cli.progress import Progress, say_line
from iodelta.errors import pasted
from iodelta.lab.folder import Booted, Folder
from iodelta.lab.signals import stop_on_signals
from iodelta.plural import plural
from iodelta.study.words import duration, inert

if TYPE_CHECKING:
    from iodelta.experiment import Experiment
    from iodelta.path.plan import BootPlan, PathPlan


def begin(
    experiment: Experiment,
    text: str,
    path: Path,
    format_: str,
    output: Path | None = None,
    *,
    force: bool = False,
    dry_run: bool = False,
    row: bool = False,
    fail_on: Words = WORSE,
) -> None:
    """Make a plan, show it, and run its boots. Exits with the account's exit code."""
    from iodelta.path.plan import PathPlanAnswer, make_plan
    from iodelta.report.formats.terminal import labelled
    from iodelta.report.stories.path_plan import facts

    plan = make_plan(experiment, row=row)
    if dry_run:
        deliver(PathPlanAnswer(plan), tuple, format_, output, force=force)
        return
    for line in labelled(facts(plan)):
        say_line(line)
    go_on(Folder.begin(path, text, plan), format_, output, force=force, fail_on=fail_on)


def go_on(
    folder: Folder,
    format_: str,
    output: Path | None = None,
    *,
    force: bool = False,
    fail_on: Words = WORSE,
) -> NoReturn:
    """Run the boots that are left, and report. Exits with the account's exit code."""
    from iodelta.path import run
    from iodelta.report.derived import derive_counts

    with stop_on_signals() as stop, Progress(log=True) as progress:
        run.go(folder, _Boots(progress), stop=stop)
    account = derive_counts(folder)
    deliver(account, tuple, format_, output, force=force)
    if format_ == "console":
        click.echo(f"Folder: {inert(pasted(folder.path))}")
    sys.exit(exit_code(account, fail_on))


def rebuild(folder: Folder, format_: str) -> None:
    """Derived files from the boots' raw output."""
    from iodelta.report.derived import derive_counts

    account = derive_counts(folder)
    if format_ == "json":
        from iodelta.report.answers import RebuildAnswer

        print_document(RebuildAnswer(("verdict.json",), account.boots))
        return
    click.echo(
        f"{folder.path / 'verdict.json'} rebuilt from {plural(account.boots, 'boot')}"
    )


WORK: Mapping[str, float] = {"functions": 8.0, "anatomy": 8.0}
"""Purpose of a boot -> its CPU time as a multiple of that of a boot without the plugin (measured)."""


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
        what = {
            "exact": "",
            "again": ", the same again",
            "functions": ", for functions",
            "anatomy": ", for the anatomy",
        }.get(one.purpose, "")
        what += f", layout {one.seed}" if one.seed else ""
        ended = inert(event.problem) or duration(event.seconds)
        self._progress.note(
            f"boot {done} of {self._planned}: {inert(one.variant)}{what}: {ended}"
        )
        self._done += WORK.get(one.purpose, 1.0)
        self._progress.step("booting", min(1.0, self._done / self._work))
