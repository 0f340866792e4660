"""Stops a command and its children, the same way on every machine."""

from __future__ import annotations

import signal
from collections.abc import Callable

from iodelta.errors import MachineError
from iodelta.machine.base import Process

STUCK = 30.0
"""Seconds that a killed process may take to end before it counts as hanging in the kernel."""


def stop(
    process: Process,
    send: Callable[[signal.Signals], None],
    grace: float,
    *,
    place: str,
) -> int:
    """SIGTERM, after ``grace`` seconds SIGKILL, to the whole session by ``send``; returns the exit code.

    Raises MachineError, which names ``place``, when even SIGKILL does not end it.
    """
    send(signal.SIGTERM)
    code = process.wait(grace)
    if code is None:
        send(signal.SIGKILL)
        code = process.wait(STUCK)
    if code is None:
        raise MachineError(
            "SIGKILL does not end it: it hangs in the kernel",
            place=f"{place}, process {process.pid}",
            remedy="look at dmesg and at the device; nothing can be measured there until it ends",
        )
    send(signal.SIGKILL)  # members of the session that outlived its leader
    return code
