"""What runs on this machine, by /proc."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def alive(file: str = "cmdline") -> Iterator[tuple[int, list[bytes]]]:
    """Every process with the words of its /proc/PID/``file``; those that end meanwhile are left out.

    A pattern of pathlib below /proc raises ProcessLookupError where a process ends between two of its steps.
    """
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            content = Path("/proc", name, file).read_bytes()
        except OSError:
            continue
        yield int(name), content.split(b"\0")


def descriptors(pid: int) -> set[str]:
    """What a process has open: paths, and names of what has none. A descriptor that is closed meanwhile is left out."""
    opened = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            opened.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return opened


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """A process stands still inside this: what is to be seen before it goes on can be waited for, however long."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # a test may have it end before
            os.kill(pid, signal.SIGCONT)
