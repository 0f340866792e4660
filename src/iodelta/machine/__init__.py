"""Run a command, read and write a file: on this machine, over SSH, or in a VM. All rooms above use only this."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from iodelta import plugins
from iodelta.errors import RequestError
from iodelta.machine.base import Completed, Lock, Machine, Process, literal
from iodelta.machine.local import LocalMachine

__all__ = [
    "Completed",
    "LocalMachine",
    "Lock",
    "Machine",
    "Process",
    "literal",
    "reach",
    "throw_away",
]


def throw_away(machine: Machine) -> bool:
    """Whether the machine ends with its use, so that nothing needs to be restored."""
    return machine.name.partition(":")[0] == "vm"


def reach(name: str = "") -> AbstractContextManager[Machine]:
    """The machine that a user calls ``name``: empty or ``local`` for this one, ``ssh:HOST``, ``vm`` or
    ``vm:KERNEL,...`` for a throw-away guest. Entering connects, or boots.

    Raises RequestError for an unknown name, MachineError when the machine cannot be reached.
    """
    kind, _, place = name.partition(":")
    if name in ("", "local"):
        return nullcontext(LocalMachine())
    if kind == "ssh":
        from iodelta.machine.ssh import SshMachine

        return SshMachine(place)
    if kind == "vm":
        from iodelta.machine.vm import VmMachine

        return VmMachine(place)
    for plugin in plugins.sound("machine", unusable):
        if plugin.name == kind:
            made: AbstractContextManager[Machine] = plugins.guarded(
                plugin.title, plugin.made
            )(place)
            return made
    known = "local, ssh:HOST, or vm:KERNEL"
    broken = plugins.troubles("machine", unusable)
    raise RequestError(
        f"{name!r} is not a valid machine",
        place="machine",
        remedy=f"{broken}; {known}" if broken else known,
    )


def unusable(name: str, made: object) -> str:
    """Why a plugin's machine cannot be used; empty where it can."""
    if name in ("local", "ssh", "vm"):
        return f"{name} is a machine of iodelta"
    return "" if callable(made) else "it is not a function of the part behind the colon"
