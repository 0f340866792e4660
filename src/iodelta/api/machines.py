"""The machine that a command is about. Whoever comes to another machine first puts back what was left changed there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iodelta.machine import Machine

Say = Callable[[str], None]


def nobody(text: str) -> None:
    """Where nobody listens."""


@contextlib.contextmanager
def contact(name: str = "", say: Say = nobody) -> Iterator[Machine]:
    """The machine called ``name``; empty: this one. Raises RequestError, MachineError."""
    from iodelta.machine import LocalMachine, reach, throw_away

    if name.partition(":")[0] == "vm":
        say(f"booting {name}")
    with reach(name) as machine:
        if not isinstance(machine, LocalMachine) and not throw_away(machine):
            _settle(machine, say)
        yield machine


@contextlib.contextmanager
def contacts(
    names: Sequence[str], say: Say = nobody, *, boots: bool = False
) -> Iterator[list[Machine]]:
    """The machines of an experiment: those it names, else this one.

    Where variants differ in what is booted (``boots``), guests are booted later, each for its own trial.
    """
    if boots and names and all(name.partition(":")[0] == "vm" for name in names):
        from iodelta.machine.vm import VmMachine

        say("booting a guest of every variant")
        yield [VmMachine(name.partition(":")[2]) for name in names]
        return
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contact(name, say)) for name in names or ("",)]


def _settle(machine: Machine, say: Say) -> None:
    from iodelta.lab.undo import restore_pending
    from iodelta.study.words import inert

    for outcome in restore_pending(
        machine, own="iodelta does not wait for a run that may still be alive"
    ):
        for record in outcome.restored:
            account = inert(record.account or record.error)
            say(
                f"{inert(record.saved.knob)}, left changed by {inert(outcome.folder)}: {account}"
            )
