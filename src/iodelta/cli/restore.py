"""``iodelta restore``: after a crash."""

from __future__ import annotations

import sys

import click

from iodelta.cli.contact import on_machine
from iodelta.lab.undo import restore_pending
from iodelta.machine import reach
from iodelta.report.words import inert


@click.command(
    "restore",
    epilog="\b\nExamples:\n  iodelta restore\n  iodelta restore --forget\n  iodelta restore --machine ssh:storage1\n",
)
@on_machine
@click.option("--forget", is_flag=True, help="Give up what cannot be put back, after saying what it is.")
@click.option("--format", "format_", type=click.Choice(["console", "json"]), default="console", show_default=True)
def command(machine: str, forget: bool, format_: str) -> None:
    """Put back every setting that a run changed and, killed, could not put back; end what it left running.

    A run that is alive is not touched. Every new run does the same before it starts. Exit codes: 0 all is as it was,
    4 something could not be put back.
    """
    with reach(machine) as place:
        outcomes = restore_pending(place, forget=forget)
    exit_code = 0 if forget or all(outcome.done for outcome in outcomes) else 4
    if format_ == "json":
        from iodelta.report.answers import RestoreAnswer
        from iodelta.report.documents import written

        sys.stdout.buffer.write(written(RestoreAnswer(tuple(outcomes), forget)))
        sys.exit(exit_code)
    if not outcomes:
        click.echo("nothing to put back")
    for outcome in outcomes:
        click.echo(f"{inert(outcome.folder)}:")
        for pid in outcome.ended:
            click.echo(f"  ended left-over process {pid}")
        for record in outcome.restored:
            click.echo(f"  {inert(record.saved.knob)}: {inert(record.account or record.error)}")
        if outcome.problem:
            click.echo(f"  {inert(outcome.problem)}")
        if not outcome.done and forget:
            click.echo("  given up")
    sys.exit(exit_code)
