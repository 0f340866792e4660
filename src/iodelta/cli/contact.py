"""``--machine``, and the connection to machines, with its progress on standard error."""

from __future__ import annotations

import functools

import click

from iodelta.api import machines
from iodelta.cli.progress import say_line
from iodelta.errors import RequestError


def _only(
    context: click.Context, parameter: click.Parameter, names: tuple[str, ...]
) -> str:
    if len(names) > 1:
        raise RequestError(
            "this command uses one machine",
            place="--machine",
            remedy="only `iodelta run` takes several",
        )
    return "".join(names)


on_machine = click.option(
    "--machine",
    multiple=True,
    callback=_only,
    metavar="ssh:HOST|vm:KERNEL",
    help="Where to run: over SSH or in a throw-away guest (default: this machine).",
)

contact = functools.partial(machines.contact, say=say_line)
contacts = functools.partial(machines.contacts, say=say_line)
