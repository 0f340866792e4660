"""A directory for fio's output, in memory where possible, so that it does no I/O on the measured disk.

Its run holds a lock on it. That distinguishes the directory of a killed run, which is removed, from one in use, even
between containers that share the place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from iodelta.errors import LostError, MachineError, MeasureError
from iodelta.machine import Lock, Machine

PREFIX = "iodelta-work-"

PLACES = ("/dev/shm", "/tmp", "/var/tmp")


def _place(machine: Machine) -> str:
    return next(
        (
            place
            for place in PLACES
            if machine.run(["test", "-w", place]).returncode == 0
        ),
        PLACES[-1],
    )


@contextlib.contextmanager
def workdir(machine: Machine) -> Iterator[str]:
    """A new empty directory on the machine, gone afterwards. Raises MeasureError when it cannot be made."""
    path, held = take(machine, _place(machine), PREFIX)
    try:
        yield path
    finally:
        with contextlib.suppress(LostError):  # then the next contact sweeps it
            machine.run(["rm", "-rf", "--", path])
        held.release()


def sweep(machine: Machine, place: str = "", prefix: str = PREFIX) -> None:
    """Remove the directories of this user that nobody holds: what killed runs left behind."""
    for path in machine.glob(f"{place or _place(machine)}/{prefix}*"):
        if machine.run(["test", "-O", path]).returncode != 0:
            continue  # another user's
        with contextlib.suppress(MachineError):
            held = machine.lock(path)
            if held is not None:
                machine.run(["rm", "-rf", "--", path])
                held.release()


def take(machine: Machine, place: str, prefix: str) -> tuple[str, Lock]:
    """Return a new directory that only this user can enter, and the lock on it. Raises MeasureError when it cannot be
    made.
    """
    while True:
        done = machine.run(["mktemp", "-d", "-p", place, f"{prefix}XXXXXXXX"])
        path = done.text.rstrip("\n")
        if done.returncode != 0:
            message = done.error_text
            raise MeasureError(
                f"cannot make a directory: {message}",
                place=place,
                remedy="free some space there",
            )
        held = machine.lock(path)
        if held is not None:  # else somebody swept it between its making and our lock
            return path, held
