"""The machine that a command is about. Whoever comes to another machine first puts back what was left changed there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.machine import Machine


def _only(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> str:
    if len(names) > 1:
        raise RequestError(
            "this command uses one machine", place="--machine", remedy="only `iodelta run` takes several"
        )
    return "".join(names)


on_machine = click.option(
    "--machine",
    multiple=True,
    callback=_only,
    metavar="ssh:HOST|vm:KERNEL",
    help="Where to run: over SSH or in a throw-away guest (default: this machine).",
)


@contextlib.contextmanager
def contact(name: str = "") -> Iterator[Machine]:
    """The machine called ``name``; empty: this one. Raises RequestError, MachineError."""
    from iodelta.machine import LocalMachine, reach, throw_away

    if name.partition(":")[0] == "vm":
        click.echo(f"booting {name}", err=True)
    with reach(name) as machine:
        if not isinstance(machine, LocalMachine) and not throw_away(machine):
            _settle(machine)
        yield machine


@contextlib.contextmanager
def contacts(names: Sequence[str], *, boots: bool = False) -> Iterator[list[Machine]]:
    """The machines of an experiment: those it names, else this one.

    Where variants differ in what is booted (``boots``), guests are booted later, each for its own trial.
    """
    if boots and names and all(name.partition(":")[0] == "vm" for name in names):
        from iodelta.machine.vm import VmMachine

        click.echo("booting a guest of every variant", err=True)
        yield [VmMachine(name.partition(":")[2]) for name in names]
        return
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contact(name)) for name in names or ("",)]


def _settle(machine: Machine) -> None:
    from iodelta.lab.undo import restore_pending
    from iodelta.study.words import inert

    for outcome in restore_pending(machine, own="iodelta does not wait for a run that may still be alive"):
        for record in outcome.restored:
            account = inert(record.account or record.error)
            click.echo(f"{inert(record.saved.knob)}, left changed by {inert(outcome.folder)}: {account}", err=True)
