"""What pages send back to change something."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TypeVar

from starlette.requests import Request

from iodelta.web.fields import Signed, parsed
from iodelta.web.security import DeniedError, Role, User, check_form

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


S = TypeVar("S", bound=Signed)

LONGEST = 2000
"""Characters of a text."""


FIELDS = 20
"""In a form; the one of an experiment has more."""


async def posted(request: Request, role: Role, kind: type[S], most: int = FIELDS) -> S:
    """Return a form that this user may send. Raises DeniedError."""
    check_change(request, role)
    user: User = request.scope["user"]
    async with request.form(max_files=0, max_fields=most) as form:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
    check_form(user, request.headers, fields.get("csrf", ""))
    if any(len(value) > LONGEST for value in fields.values()):
        raise DeniedError(413, f"a text has at most {LONGEST} characters")
    return parsed(fields, kind)


def check_change(request: Request, role: Role) -> None:
    """Raises DeniedError for a user who may not change anything in that role."""
    user: User = request.scope["user"]
    if not request.app.state.site.rules.write:
        raise DeniedError(
            403, "this server changes nothing; `iodelta serve --write` does"
        )
    if not user.may(role):
        raise DeniedError(403, f"this needs the role {role}")
    if not user.name and not is_same_user(request):
        raise DeniedError(
            403,
            "only the user who runs this server may start or change anything without a login",
        )
