"""A fio that only has to check something, and has a limit of time for it."""

from __future__ import annotations

from iodelta.errors import MachineError
from iodelta.machine import Completed

PATIENCE = 60
"""Seconds after which it is stopped."""


def in_time(done: Completed, place: str) -> None:
    """A fio that was stopped has refused nothing. Raises MachineError."""
    if done.timed_out:
        raise MachineError(
            f"fio did not answer in {PATIENCE} s",
            place=place,
            remedy="find out what keeps the machine busy or the disk waiting, and run it again",
        )
