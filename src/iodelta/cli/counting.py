"""Path mode on the command line: an experiment whose clock counts instructions is begun, gone on with, reported."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from iodelta.errors import pasted
from iodelta.lab.folder import Booted, Folder
from iodelta.lab.signals import stop_on_signals
from iodelta.plural import plural
from iodelta.report.stories.story import Detail
from iodelta.study.words import duration, inert

if TYPE_CHECKING:
    from iodelta.experiment import Experiment
    from iodelta.path.judge import PathAccount
    from iodelta.path.plan import BootPlan, PathPlan


def begin(
    experiment: Experiment, text: str, path: Path, format_: str, *, dry_run: bool = False, row: bool = False
) -> None:
    """Plan it, show the plan, and make the boots. Ends with the account's exit code."""
    from iodelta.path.plan import make_plan

    plan = make_plan(experiment, row=row)
    if dry_run and format_ == "json":
        from iodelta.path.plan import PathPlanAnswer
        from iodelta.report.documents import written

        sys.stdout.buffer.write(written(PathPlanAnswer(plan)))
        return
    _show(plan)
    if not dry_run:
        go_on(Folder.begin(path, text, plan), format_)


def go_on(folder: Folder, format_: str) -> NoReturn:
    """Make the boots that are left, and say what they say. Ends with the account's exit code."""
    from iodelta.path import run
    from iodelta.report.derived import derive_counts

    with stop_on_signals() as stop:
        run.go(folder, _Lines(), stop=stop)
    account = derive_counts(folder)
    _tell(account, format_, functions=False)
    if format_ == "console":
        click.echo(f"Folder: {inert(pasted(folder.path))}")
    sys.exit(account.exit_code)


def rebuild(folder: Folder, format_: str) -> None:
    """Derived files from the boots' raw output."""
    from iodelta.report.derived import derive_counts

    account = derive_counts(folder)
    if format_ == "json":
        from iodelta.report.answers import RebuildAnswer
        from iodelta.report.documents import written

        sys.stdout.buffer.write(written(RebuildAnswer(("verdict.json", "report.html"), account.boots)))
        return
    click.echo(f"{folder.path / 'verdict.json'} and report.html rebuilt from {plural(account.boots, 'boot')}")


def report(folder: Folder, format_: str, output: Path | None, *, functions: bool, force: bool, gate: bool) -> NoReturn:
    """The account in a format. Ends with 0, or with ``gate`` with its exit code."""
    from iodelta.cli.files import write
    from iodelta.cli.report import reported
    from iodelta.study.counted import counted

    account = counted(folder)
    if output is None:
        _tell(account, format_, functions=functions)
    else:
        write(output, _encoded(account, format_, Detail(functions=functions)), "the report", force=force)
    sys.exit(reported(account.exit_code, gate=gate))


def _tell(account: PathAccount, format_: str, *, functions: bool) -> None:
    if format_ != "console":
        sys.stdout.buffer.write(_encoded(account, format_, Detail(functions=functions)))
        return
    from iodelta.cli.report import tell

    tell(account, Detail(functions=functions))


def _encoded(account: PathAccount, format_: str, detail: Detail) -> bytes:
    if format_ == "html":
        from iodelta.report.formats.html.told import html_of

        return html_of(account, (), detail)
    from iodelta.report.formats.render import rendered

    return rendered(account, format_, detail)


def _show(plan: PathPlan) -> None:
    """The plan, before anything starts."""
    for arm in plan.arms:
        package = f" ({inert(arm.kernel.package)})" if arm.kernel.package.strip() else ""
        click.echo(f"{inert(arm.variant)}: boots {inert(arm.kernel.release)}{package}, {arm.memory} MiB", err=True)
    cells = len(plan.experiment.cells)
    click.echo(
        f"{plural(len(plan.boots), 'boot')} of {plural(cells, 'cell')} each, two "
        "at a time; instructions are "
        "counted, no time is measured",
        err=True,
    )
    if plan.functions:
        click.echo(f"no table of functions: {plan.functions}", err=True)


class _Lines:
    """A line for every boot."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._planned = 0

    def begin(self, plan: PathPlan, folder: str, done: int) -> None:
        self._planned = len(plan.boots)
        again = f", {plural(done, 'boot')} already there" if done else ""
        click.echo(f"folder {inert(pasted(folder))}{again}", err=True)

    def booted(self, one: BootPlan, event: Booted, done: int, left: float) -> None:
        what = {"exact": "", "again": ", the same again", "functions": ", for functions"}.get(
            one.purpose, f", layout {one.seed}"
        )
        ended = inert(event.problem) or duration(event.seconds)
        click.echo(
            f"boot {done} of {self._planned}: {inert(one.variant)}{what}: {ended}; some {duration(left)} left", err=True
        )
