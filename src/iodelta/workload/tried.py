"""A run of fio that only checks something, within a time limit."""

from __future__ import annotations

from iodelta.errors import MachineError
from iodelta.machine import Completed

PATIENCE = 60
"""Seconds after which it is stopped."""


def in_time(done: Completed, place: str) -> None:
    """Raises MachineError for a fio that was stopped at the limit: that is not a refusal."""
    if done.timed_out:
        raise MachineError(
            f"fio did not answer in {PATIENCE} s",
            place=place,
            remedy="find out what keeps the machine busy or the disk waiting, and run it again",
        )
