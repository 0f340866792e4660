"""A started command and a lock at the far end of a channel."""

from __future__ import annotations

import contextlib
import signal
from typing import Protocol

from iodelta.errors import LostError
from iodelta.machine.channel import Channel, Reply
from iodelta.machine.spelling import exit_code
from iodelta.machine.stopping import stop


class Shells(Protocol):
    """The machine that they are on."""

    name: str

    def ask(self, code: str) -> Reply:
        """Return one answer of an idle channel."""

    def give(self, channel: Channel) -> None:
        """Take back a channel that has nothing left to say."""


class ShellProcess:
    """A command in a session of its own there; the channel that started it reports its end."""

    def __init__(
        self, machine: Shells, channel: Channel, pid: int, args: tuple[str, ...]
    ) -> None:
        self.pid = pid
        self.args = args
        self._machine = machine
        self._channel: Channel | None = channel
        self._code: int | None = None

    def poll(self) -> int | None:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> int | None:
        if self._channel is not None:
            reply = self._channel.receive(timeout)
            if reply is None:
                return None
            self._code = exit_code(reply.word)
            self._machine.give(self._channel)
            self._channel = None
        return self._code

    def stop(self, grace: float = 5.0) -> int:
        return stop(
            self, self._signal, grace, place=f"{self._machine.name}: {self.args[0]}"
        )

    def _signal(self, number: signal.Signals) -> None:
        self._machine.ask(
            f"kill -s {number.name.removeprefix('SIG')} -- -{self.pid} 2>/dev/null; iodelta_end 0"
        )


class ShellLock:
    """A sh there that has the file open, with flock(1) on it; the lock ends with that sh."""

    def __init__(self, machine: Shells, channel: Channel) -> None:
        self._machine = machine
        self._channel: Channel | None = channel

    def release(self) -> None:
        if self._channel is not None:
            channel, self._channel = self._channel, None
            with contextlib.suppress(LostError):
                channel.ask("exec 9<&-; iodelta_end 0")
                self._machine.give(channel)
