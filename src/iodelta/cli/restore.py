"""``iodelta restore``: after a crash."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from iodelta.cli.contact import on_machine
from iodelta.cli.files import print_document
from iodelta.cli.shared_options import in_console_or_json
from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.lab.undo import Outcome
    from iodelta.machine import Machine


@click.command(
    "restore",
    epilog="\b\nExamples:\n  iodelta restore\n  iodelta restore --forget\n  iodelta restore --machine ssh:storage1\n",
)
@on_machine
@click.option(
    "--forget",
    is_flag=True,
    help="Give up settings that cannot be restored; shows what is lost and asks first.",
)
@click.option("--yes", is_flag=True, help="With --forget: do not ask.")
@in_console_or_json
def command(machine: str, forget: bool, yes: bool, format_: str) -> None:
    """Restore every setting that a killed run left changed, and end the processes that it left running.

    It does not touch runs that are still alive. Every new run does the same before it starts. From a damaged log it
    restores every readable line, names the others, and keeps the shell script of that run, which sets all original
    values.

    Exit codes: 0 everything is restored or given up, 2 it could not ask you, 4 a setting could not be restored.
    """
    from iodelta.lab.undo import restore_pending  # --help does without
    from iodelta.machine import reach

    with reach(machine) as place:
        outcomes = restore_pending(place)
        left = [outcome for outcome in outcomes if not outcome.done]
        if format_ == "console":
            _tell(outcomes)
        given_up = bool(left) and forget
        if given_up:
            _agreed(left, yes=yes, error=format_ == "json")
            _give_up(place, left, error=format_ == "json")
    if format_ == "json":
        from iodelta.report.answers import RestoreAnswer

        print_document(RestoreAnswer(tuple(outcomes), given_up))
    sys.exit(4 if left and not given_up else 0)


def _tell(outcomes: Sequence[Outcome]) -> None:
    from iodelta.study.words import inert

    if not outcomes:
        click.echo("nothing to restore")
    for outcome in outcomes:
        click.echo(f"{inert(outcome.folder)}:")
        for pid in outcome.ended:
            click.echo(f"  ended left-over process {pid}")
        for record in outcome.restored:
            click.echo(
                f"  {inert(record.saved.knob)}: {inert(record.account or record.error)}"
            )
        if outcome.problem:
            click.echo(f"  {inert(outcome.problem)}")


def _agreed(left: Sequence[Outcome], *, yes: bool, error: bool) -> None:
    """Show what will be lost and ask. Raises RequestError unless the user accepts."""
    from iodelta.lab.undo import lost
    from iodelta.study.words import inert

    what = "Given up" if yes else "To give up"
    click.echo(f"{what}; iodelta will not restore:", err=error)
    for outcome in left:
        for sentence in lost(outcome):
            click.echo(f"  {inert(sentence)}", err=error)
    if yes:
        return
    if not _can_ask():
        raise RequestError(
            "not accepted, nothing was given up",
            place="--forget",
            remedy="use --yes if you cannot answer questions",
        )
    try:
        agreed = click.confirm("Give it up?", default=False, err=True)
    except click.Abort:
        click.echo("", err=True)
        agreed = False
    if not agreed:
        raise RequestError("not accepted, nothing was given up", place="--forget")


def _can_ask() -> bool:
    return sys.stdin.isatty()


def _give_up(machine: Machine, left: Sequence[Outcome], *, error: bool) -> None:
    from iodelta.lab.undo import give_up
    from iodelta.study.words import inert

    for outcome in left:
        kept = give_up(machine, outcome)
        if kept:
            click.echo(
                f"  kept: {inert(kept)}, which sets every original of that run",
                err=error,
            )
