"""The few verbs of a machine, and what they return."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec


class Completed(msgspec.Struct, frozen=True):
    """A finished command: its words, exit code (negative: the signal that ended it), and all its output."""

    args: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False

    @property
    def text(self) -> str:
        """Standard output as text; undecodable bytes are replaced."""
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        """Standard error as text, stripped; undecodable bytes are replaced."""
        return self.stderr.decode(errors="replace").strip()


def literal(path: str) -> str:
    """Return a pattern for ``glob`` that only ``path`` itself matches."""
    return re.sub(r"([*?[])", r"[\1]", path)


class Process(Protocol):
    """A command that is running, with its children, in a session of its own."""

    pid: int
    args: tuple[str, ...]

    def poll(self) -> int | None:
        """Exit code, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Exit code, or None when ``timeout`` seconds passed first."""

    def stop(self, grace: float = 5.0) -> int:
        """SIGTERM to the whole session, SIGKILL after ``grace`` seconds; returns the exit code.

        Raises MachineError when even that does not end it.
        """


class Lock(Protocol):
    """A file or directory that is locked until ``release``, or until we end, are killed or lose the connection."""

    def release(self) -> None:
        """Release it; further calls do nothing."""


class Machine(Protocol):
    """Where trials happen. Paths are absolute on that machine; commands are argument lists, never shell strings.

    Every verb raises LostError once the machine does not answer any more.
    """

    name: str

    @property
    def directory(self) -> str:
        """Where relative paths begin there, and scratch files are made."""

    @property
    def state(self) -> str:
        """Return the directory for what must outlive a run there."""

    @property
    def patience(self) -> float:
        """Seconds after which the machine has noticed for certain that we are gone, and released our locks."""

    def run(
        self,
        args: Sequence[str],
        *,
        timeout: float | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """Run to its end and keep all its output. ``env`` is added to the environment.

        A command over ``timeout`` seconds is stopped (SIGTERM, then SIGKILL) and returned with ``timed_out``. Raises
        MachineError when it cannot be started, not for a non-zero exit.
        """

    def start(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdout: str = "/dev/null",
        stderr: str = "/dev/null",
    ) -> Process:
        """Start in a session of its own, output to the named files. Raises MachineError when it cannot be started."""

    def read(self, path: str) -> str:
        """Text of a file. Raises MachineError."""

    def read_bytes(self, path: str) -> bytes:
        """Bytes of a file. Raises MachineError."""

    def write(self, path: str, text: str) -> None:
        """Write to an existing sysfs, procfs or cgroup file in one ``write(2)``. Raises MachineError with errno."""

    def glob(self, pattern: str) -> list[str]:
        """Existing paths that match, sorted."""

    def put(self, local: str, remote: str) -> None:
        """Copy a file to the machine."""

    def get(self, remote: str, local: str) -> None:
        """Copy a file from the machine."""

    def append(self, path: str, data: bytes) -> None:
        """Append to a file, created with mode 600 if missing; on the medium on return. Raises MachineError."""

    def lock(self, path: str, *, wait: float = 0.0) -> Lock | None:
        """Hold an existing file or directory; None when there is none, or another still holds it after ``wait`` s.

        Raises MachineError when it cannot be opened."""

    def time(self) -> float:
        """Unix seconds by the clock of that machine."""

    def together(self, *name: str) -> AbstractContextManager[None]:
        """Reads and globs in this block may be answered together when it begins. Blocks with the same ``name`` are
        expected to read the same: over a network, all but the first cost one round trip. A value read in the block is
        as old as the block's beginning, or as the last action in it.
        """
