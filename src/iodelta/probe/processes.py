"""Processes on a machine, read from /proc."""

from __future__ import annotations

import contextlib

from iodelta.errors import MachineError
from iodelta.machine import Machine


def children(machine: Machine, pid: int | str) -> tuple[int, ...]:
    """Return the children of a process at this moment; none where the kernel lists none (CONFIG_PROC_CHILDREN)."""
    pids: list[int] = []
    for path in machine.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(MachineError):  # the thread has just ended
            pids += map(int, machine.read(path).split())
    return tuple(pids)
