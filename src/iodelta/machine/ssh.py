"""A machine over SSH."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from iodelta.errors import LostError, MachineError
from iodelta.machine.connection import MARKER, Connection
from iodelta.machine.shell import ShellMachine
from iodelta.machine.spelling import command, exit_code

LEAVING = 5.0
"""Seconds to wait for a failure of the command that reboots a host; success gives no answer."""

DOWN = 240.0
"""Seconds within which a host must go down for a reboot: its services may stop slowly."""

PAUSE = 1.0
"""Seconds between tries to find it again."""

IDENTITY = ("/etc/machine-id", "/sys/class/dmi/id/product_uuid")
"""Files that identify a host across reboots."""

REFUSED = "Host key verification failed"


class SshMachine(ShellMachine):
    """``host`` is the destination as given to ``ssh``."""

    def __init__(self, host: str) -> None:
        super().__init__(f"ssh:{host}", Connection(host))
        self._host = host

    def reboot(self, words: Sequence[str], *, limit: float) -> None:
        """Run ``words``, which reboot the host, and reconnect to its next boot within ``limit`` seconds.

        Locks and processes of the boot before are gone. Raises MachineError when it stays in that boot, LostError when
        it does not come back or another machine answers; then the connection is closed.
        """
        before, known_identity, begun = (
            self._separator,
            self._identity(),
            time.monotonic(),
        )
        channel = self._take()
        # Without the marker: the guardian would end the reboot command together with the connection.
        channel.send(command(("env", "-u", MARKER, *words)))
        with contextlib.suppress(LostError):
            reply = channel.receive(LEAVING)
            if reply is not None and (
                reply.word == "missing" or 0 < exit_code(reply.word) < 128
            ):
                self.give(channel)
                message = reply.stderr.decode(errors="replace").split()
                raise MachineError(
                    f"cannot be rebooted: {' '.join(message)}",
                    place=f"{self.name}: {' '.join(words)}",
                )
        self.__exit__()
        while True:
            time.sleep(PAUSE)
            late = time.monotonic() - begun
            self._connection = Connection(self._host, timeout=10)
            try:
                self.__enter__()
                identities = self._identity()
            except (MachineError, LostError) as error:
                self.__exit__()
                if REFUSED in error.what:
                    raise self._given_up(
                        f"another host key answers since the reboot: {error.what}",
                        error.remedy,
                    ) from error
                if late > limit:
                    raise self._given_up(
                        f"did not come back within {limit:.0f} s after the reboot (last try: "
                        f"{error.what}). If it hangs, reset it by its console, BMC or power: it then boots its default "
                        "entry",
                        f"once it is back: `iodelta restore --machine {self.name}`",
                    ) from error
                continue
            if any(
                one and other and one != other
                for one, other in zip(known_identity, identities, strict=True)
            ):
                self.__exit__()
                raise self._given_up(
                    "a different machine answers since the reboot (its machine-id or board UUID differs)",
                    "does another machine have its address now? iodelta did not change the one that answers",
                )
            if self._separator != before:
                return
            if late > min(limit, DOWN):
                raise MachineError(
                    f"was asked to reboot ({' '.join(words)}) and is still in its old boot after {late:.0f} s",
                    place=self.name,
                    remedy="`systemctl list-jobs` there shows what it waits for",
                )
            self.__exit__()

    def _identity(self) -> tuple[bytes, ...]:
        return tuple(self._read_one(path).strip() for path in IDENTITY)

    def _given_up(self, what: str, remedy: str) -> LostError:
        self._gone = LostError(what, place=self.name, remedy=remedy)
        return self._gone
