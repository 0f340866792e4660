"""A machine over SSH."""

from __future__ import annotations

from iodelta.machine.connection import Connection
from iodelta.machine.shell import ShellMachine


class SshMachine(ShellMachine):
    """``host`` is what one would type after ``ssh``."""

    def __init__(self, host: str) -> None:
        super().__init__(f"ssh:{host}", Connection(host))
