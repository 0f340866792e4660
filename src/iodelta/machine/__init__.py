"""Run a command, read and write a file: on this machine, over SSH, or in a VM. All rooms above use only this."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

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


TRANSFERS = ("put", "get", "append", "read_bytes")
"""Verbs of a machine whose time depends on a size."""

CONNECT = 600.0
"""Seconds that a plugin's machine may take to connect, which may be a boot, and to end."""


def throw_away(machine: Machine) -> bool:
    """Return whether the machine ends with its use, so that nothing needs to be restored."""
    return machine.name.partition(":")[0] == "vm"


def reach(name: str = "") -> AbstractContextManager[Machine]:
    """Return the machine that a user calls ``name``: empty or ``local`` for this one, ``ssh:HOST``, ``vm`` or
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
            connect = plugins.guarded(plugin.title, plugin.made, AbstractContextManager)
            return guarded(plugin.title, connect(place))
    known = "local, ssh:HOST, or vm:KERNEL"
    broken = plugins.troubles("machine", unusable)
    raise RequestError(
        f"{name!r} is not a valid machine",
        place="machine",
        remedy=f"{broken}; {known}" if broken else known,
    )


def unusable(name: str, made: object) -> str:
    """Return why a plugin's machine cannot be used; empty where it can."""
    if name in ("local", "ssh", "vm"):
        return f"{name} is a machine of iodelta"
    return "" if callable(made) else "it is not a function of the part behind the colon"


@contextmanager
def guarded(
    title: str, connection: AbstractContextManager[Machine]
) -> Iterator[Machine]:
    """Enter a plugin's machine, and check what its verbs raise and return; errors begin with ``title``."""
    machine = plugins.guarded(title, connection.__enter__, Machine, CONNECT)()
    leave = plugins.guarded(title, connection.__exit__, seconds=CONNECT)
    try:
        yield (
            machine
            if isinstance(machine, LocalMachine)
            else cast(Machine, _Guarded(title, machine))
        )
    except BaseException as error:
        if not leave(type(error), error, error.__traceback__):
            raise
    else:
        leave(None, None, None)


class _Guarded:
    """A machine of a plugin."""

    def __init__(self, title: str, machine: Machine) -> None:
        self._title, self._machine = title, machine

    def __getattr__(self, name: str) -> Any:
        own = vars(Machine).get(name)
        hinted = own.fget if isinstance(own, property) else own
        returns = typing.get_type_hints(hinted or Machine).get(
            "return" if hinted else name, Any
        )
        value = plugins.guarded(
            self._title,
            lambda: getattr(self._machine, name),
            Any if callable(own) else returns,
        )()
        if not callable(own):
            return value

        def verb(*args: Any, **options: Any) -> Any:
            # A command without a timeout lasts as long as it does.
            wait = options.get("timeout") if name == "run" else options.get("wait", 0.0)
            spare = CONNECT if name in TRANSFERS else plugins.SECONDS
            limit = None if wait is None else wait + spare
            return plugins.guarded(self._title, value, returns, limit)(*args, **options)

        return verb
