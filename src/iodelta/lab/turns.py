"""One run at a time on each physical device: two would measure each other.

A run that measures holds a lock on a file with the device's name, on the machine that has the device, in a directory
that all users share. The kernel releases it when the run ends, however it ends. The file is empty and never written to:
what others learn about a run is in the run's own state directory, and is valid while the kernel names the same process
for the lock.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MachineError, MeasureError, RequestError
from iodelta.machine import LocalMachine, Lock, Machine
from iodelta.machine.held import locker
from iodelta.machine.vm import VmMachine
from iodelta.probe.devices import members
from iodelta.probe.sysfs import sysfs_name
from iodelta.probe.topology import Target, resolve
from iodelta.vm.spec import Disk

T = TypeVar("T")

_mine: set[tuple[str, str, str]] = set()
"""Machine, device and folder of what this process holds."""

FILE = """
place=
if [ -z "$IODELTA_STATE" ]; then
  for one in /run/lock /tmp; do
    [ "$place" ] || [ "$(stat -c '%F %u %a' -- "$one" 2>/dev/null)" != "directory 0 1777" ] || place=$one
  done
fi
[ "$place" ] || { place=$1; mkdir -p -- "$place" || exit 1; }
file=$place/iodelta-$2
[ -e "$file" ] || [ -L "$file" ] || (umask 022; set -C; : >"$file")
[ -f "$file" ] && [ ! -L "$file" ] || { echo "$file is not a plain file" >&2; exit 1; }
stat -c '%i %n' -- "$file"
"""
"""For sh: make the file of a device where there is none, never through a link, and print its inode and path. It lies in
a sticky directory of root's, in which every user may make files but not change those of others; in the user's own (the
argument) where there is none, or where a state directory is given."""

POLL = 1.0
"""Seconds between looks whether a device is free."""


class Holder(msgspec.Struct, frozen=True):
    """Who measures there."""

    folder: str
    pid: int
    since: float
    """Unix seconds, by the clock of the machine that has the device."""
    locker: int = 0
    """Process that the kernel names for the lock; 0 where it names none."""
    stranger: bool = False
    """Whether that is a process of another user."""

    def __str__(self) -> str:
        if not self.since:
            return f"process {self.pid}{', of another user' if self.stranger else ''}"
        return f"process {self.pid}, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.since))}"


class BusyError(RequestError):
    """Another run measures on the same device. ``free`` says whether it has come to its end."""

    def __init__(
        self, names: str, holder: Holder | None, free: Callable[[], bool]
    ) -> None:
        super().__init__(
            f"this run is measuring on {names} now ({holder or 'it has just begun'}): the two would disturb each other",
            place=(holder.folder if holder else "") or names,
            remedy="wait until it ends, or add --wait to begin then",
        )
        self.free = free


def physical(machine: Machine, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return what two runs may not share, sorted: whole disks, below partitions, arrays, mappings, loop files,
    filesystems.

    Of a filesystem that has no block device here (in memory, over a network, overlayfs) its device number.
    """
    found = set()
    for target in targets:
        disks = set(
            chain.from_iterable(members(machine, name) for name in target.devices)
        )
        found |= set(map(sysfs_name, disks)) or {f"filesystem-{target.identity.devno}"}
    return tuple(sorted(found))


@contextlib.contextmanager
def alone(machine: Machine, targets: Sequence[Target], folder: Path) -> Iterator[None]:
    """Keep other runs from the devices of ``targets`` meanwhile; they are shown ``folder``.

    For a throw-away guest the devices are those of this machine that it was given. Locks that this process already
    holds for the same folder stay. Raises BusyError when another run holds one of them, MeasureError when locks cannot
    be kept.
    """
    if isinstance(machine, VmMachine):
        machine, targets = given(machine.spec.disks)
    own = _own(folder, machine)
    with contextlib.ExitStack() as stack:
        try:
            for name in physical(machine, targets):
                mine = (machine.name, name, own.folder)
                if mine not in _mine:
                    stack.callback(_taken(machine, name, own).release)
                    _mine.add(mine)
                    stack.callback(_mine.discard, mine)
        except MachineError as error:
            remedy = "free some space there; or set IODELTA_STATE to a directory that you can write, for all runs here"
            raise MeasureError(
                f"cannot lock the device for this run: {error.what}",
                place=error.place,
                remedy=remedy,
            ) from error
        yield


def given(disks: Sequence[Disk]) -> tuple[Machine, list[Target]]:
    """Return the files and devices of this machine that a guest's disks are. Raises RequestError for one that is gone."""
    here = LocalMachine()
    return here, [resolve(here, disk.path) for disk in disks if disk.path]


def patiently(
    measure: Callable[[], T],
    *,
    wait: bool,
    stop: Callable[[], bool],
    note: Callable[[str], None],
) -> T:
    """Return what ``measure`` returns; if ``wait`` it is called again once others that measure on its devices have
    ended.

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
    place = f"{directory}/{name}"
    made = machine.run(["sh", "-c", FILE, "sh", directory, name])
    if made.returncode != 0:
        raise MachineError(made.error_text, place=name)
    inode, _, path = made.text.rstrip("\n").partition(" ")
    held = machine.lock(path)
    if (
        held is None
        and (other := _holder(machine, place, inode)) is not None
        and other.folder == own.folder
    ):
        # Our own lock from before a lost connection: the other side may take a while to notice the loss.
        held = machine.lock(path, wait=machine.patience)
    if held is None:
        raise BusyError(
            name, _holder(machine, place, inode), lambda: _is_free(machine, path)
        )
    own = msgspec.structs.replace(own, locker=locker(machine, inode))
    machine.run(["mkdir", "-p", "--", directory])
    machine.run(["tee", "--", place], stdin=msgspec.json.encode(own))
    return held


def _holder(machine: Machine, place: str, inode: str) -> Holder | None:
    """Who holds the lock of that inode, by the records of this user's own runs, else by the kernel; None while neither
    knows."""
    pid = locker(machine, inode)
    try:
        holder = from_json(machine.read_bytes(place), Holder)
    except (MachineError, msgspec.MsgspecError):
        holder = None
    if holder is not None and pid in (0, holder.locker):
        return holder
    if not pid:
        return None
    # Runs of one user with other state directories do not see each other's records.
    own = machine.run(
        ["sh", "-c", 'test "$(stat -c %u "/proc/$1")" = "$(id -u)"', "sh", str(pid)]
    )
    return Holder("", pid, 0.0, pid, stranger=own.returncode != 0)


def _is_free(machine: Machine, path: str) -> bool:
    held = machine.lock(path)
    if held is not None:
        held.release()
    return held is not None
