"""``iodelta doctor``: what is missing on this machine, what needs it, and what installs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from iodelta.cli.files import print_document
from iodelta.cli.shared_options import in_console_or_json
from iodelta.study.words import inert, wrap

if TYPE_CHECKING:
    from iodelta.api.doctor import DoctorAnswer

WIDTH = 80


@click.command(
    "doctor", epilog="\b\nExamples:\n  iodelta doctor\n  iodelta doctor --format json\n"
)
@in_console_or_json
def command(format_: str) -> None:
    """List what this machine lacks, which features need it, and what installs it. Changes nothing.

    Exit code: always 0, because each part of the list is needed by some commands only.
    """
    from iodelta.api.doctor import doctor

    answer = doctor()
    if format_ == "json":
        print_document(answer)
        return
    for line in lines(answer):
        click.echo(line)


def lines(answer: DoctorAnswer) -> Iterator[str]:
    """80 columns: what is here, then what is not, and at the end the commands that install it."""
    here = ", ".join(
        f"{component.name} {component.version}" for component in answer.here
    )
    yield from wrap(inert(f"Here: {here}"), WIDTH, "  ")
    if not answer.missing:
        yield "Nothing is missing."
        return
    yield ""
    yield "Missing, and what needs it:"
    for lack in answer.missing:
        yield from wrap(
            inert(f"  {lack.what}: {lack.needed_for} ({lack.remedy})"), WIDTH, "    "
        )
    if answer.install:
        yield ""
        yield "To install all of it:"
        yield from (f"  {inert(line)}" for line in answer.install)
