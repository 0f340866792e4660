"""Which user of this machine is at the other end of a connection: a server without tokens listens for all of them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from starlette.requests import Request

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def is_same_user(request: Request) -> bool:
    """Return whether a request comes from this machine, and from the user who runs the server or from root."""
    client, server = request.client, request.scope.get("server")
    if client is None or server is None or server[1] is None:
        return False
    owners = owners_of(client.port, server[1])
    return bool(owners) and owners <= {os.geteuid(), 0}


def owners_of(port: int, server: int) -> set[int]:
    """Users of all sockets of this machine that are bound to ``port`` and connected to port ``server``."""
    # A line of the kernel: 0: 0100007F:C350 0100007F:223D 01 ... uid ..., addresses and ports in hexadecimal.
    ends = [f"{port:04X}", f"{server:04X}"]
    owners = set()
    for table in TABLES:
        with contextlib.suppress(OSError):
            lines = Path(table).read_text(encoding="ascii").splitlines()
            for words in map(str.split, lines[1:]):
                if [word.rpartition(":")[2] for word in words[1:3]] == ends:
                    owners.add(int(words[7]))
    return owners
