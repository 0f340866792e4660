"""One run at a time on each physical device: two would measure each other.

Whoever measures holds a lock on a file of the device's name in the state directory of the machine that has it. The
kernel lets go of it when the run ends, however it ends; the file says whose it was and stays.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from iodelta.errors import MachineError, MeasureError, RequestError
from iodelta.machine import LocalMachine, Lock, Machine, throw_away
from iodelta.probe.devices import members
from iodelta.probe.sysfs import sysfs_name
from iodelta.probe.topology import Target

T = TypeVar("T")

POLL = 1.0
"""Seconds between looks whether a device is free."""


class Holder(msgspec.Struct, frozen=True):
    """Who measures there."""

    folder: str
    pid: int
    since: float
    """Unix seconds, by the clock of the machine that has the device."""

    def __str__(self) -> str:
        return f"process {self.pid}, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.since))}"


class BusyError(RequestError):
    """Another run measures on the same device. ``free`` says whether it has come to its end."""

    def __init__(self, names: str, holder: Holder | None, free: Callable[[], bool]) -> None:
        super().__init__(
            f"this run measures on {names} now ({holder or 'it has just begun'}): both would disturb each other",
            place=holder.folder if holder else names,
            remedy="wait for it to end; with --wait this one begins then",
        )
        self.free = free


def physical(machine: Machine, targets: Sequence[Target]) -> tuple[str, ...]:
    """What two runs may not share, sorted: whole disks, below partitions, arrays, mappings, loop files, filesystems.

    Of a filesystem that has no block device here (in memory, over a network, overlayfs) its device number.
    """
    found = set()
    for target in targets:
        disks = {one for name in target.devices for one in members(machine, name)}
        found |= {sysfs_name(one) for one in disks} or {f"filesystem-{target.identity.devno}"}
    return tuple(sorted(found))


@contextlib.contextmanager
def alone(machine: Machine, targets: Sequence[Target], folder: Path) -> Iterator[None]:
    """Nobody else measures on the devices of ``targets`` meanwhile; ``folder`` is what others are told.

    A throw-away guest has its devices to itself. Raises BusyError when another run holds one of them, MeasureError when
    locks cannot be kept.
    """
    with contextlib.ExitStack() as stack:
        names = () if throw_away(machine) else physical(machine, targets)
        try:
            for name in names:
                stack.callback(_taken(machine, name, _own(folder, machine)).release)
        except MachineError as error:
            remedy = "make room there, or set IODELTA_STATE to another directory that you can write"
            raise MeasureError(
                f"cannot keep the device for this run: {error.what}", place=error.place, remedy=remedy
            ) from error
        yield


def patiently(measure: Callable[[], T], *, wait: bool, stop: Callable[[], bool], note: Callable[[str], None]) -> T:
    """What ``measure`` returns; if ``wait`` it is called again once others that measure on its devices have ended.

    Raises BusyError without ``wait`` and when ``stop`` ended the waiting, and what ``measure`` raises.
    """
    while True:
        try:
            return measure()
        except BusyError as busy:
            if not wait:
                raise
            note(f"waiting: {busy.place}: {busy.what}")
            while not busy.free():
                if stop():
                    raise
                time.sleep(POLL)


def _own(folder: Path, machine: Machine) -> Holder:
    here = "" if isinstance(machine, LocalMachine) else f"{os.uname().nodename}:"
    return Holder(f"{here}{folder.absolute()}", os.getpid(), machine.time())


def _taken(machine: Machine, name: str, own: Holder) -> Lock:
    """Raises BusyError, MachineError."""
    directory = f"{machine.state}/devices"
    path = f"{directory}/{name}"
    made = machine.run(["mkdir", "-p", "--", directory])
    if made.returncode != 0:
        raise MachineError(made.stderr.decode(errors="replace").strip(), place=directory)
    machine.append(path, b"")
    held = machine.lock(path)
    if held is None and (other := _holder(machine, path)) is not None and other.folder == own.folder:
        held = machine.lock(path, wait=machine.patience)  # a machine may take a while to notice that we were cut off
    if held is None:
        raise BusyError(name, _holder(machine, path), lambda: _is_free(machine, path))
    machine.run(["tee", "--", path], stdin=msgspec.json.encode(own))  # in place: the lock is on the file
    return held


def _holder(machine: Machine, path: str) -> Holder | None:
    """Who wrote to the file last; None while it is being written."""
    try:
        return msgspec.json.decode(machine.read_bytes(path), type=Holder)
    except (MachineError, msgspec.MsgspecError):
        return None


def _is_free(machine: Machine, path: str) -> bool:
    held = machine.lock(path)
    if held is not None:
        held.release()
    return held is not None
