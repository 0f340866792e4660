"""The fields of every form: each request is read into one of these structs, and ``/openapi.json`` is made of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from starlette.requests import Request

from iodelta.decoding import converted
from iodelta.web.asked import COLUMNS, CONDITIONS, ROWS
from iodelta.web.security import DeniedError, Role, User, check_form

File = Annotated[str, msgspec.Meta(extra_json_schema={"format": "binary"})]

F = TypeVar("F")


class Signed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A form with its CSRF token alone."""

    csrf: str = ""
    """The CSRF token of a page, from ``/history/access``; a request with ``Authorization`` needs none."""


class LoginForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who asks."""

    token: str


class DecisionForm(Signed, frozen=True, kw_only=True):
    """What is to become of an alert."""

    word: Literal[
        "investigating", "expected", "fixed", "wontfix", "noise", "ignored", "new"
    ]
    why: str = ""
    """The reason, for the log."""
    owner: str = ""
    """Who looks after it."""
    bug: str = ""
    """Address of its bug report."""
    also: str = ""
    """Further alerts of which the same is decided, separated by spaces."""
    back: str = ""
    """The page to return to."""


class NoteForm(Signed, frozen=True, kw_only=True):
    """Something that happened, at a time or at a commit."""

    text: str
    at: str = ""
    """ISO 8601 in UTC; empty for now."""
    commit: str = ""
    """Its hash."""
    back: str = ""
    """The page to return to."""


class PairForm(Signed, frozen=True, kw_only=True):
    """Two points of a history."""

    a: str
    """SERIES-EXPERIMENT."""
    b: str


class UploadForm(Signed, frozen=True, kw_only=True):
    """Results to look at."""

    files: list[File]
    """The files, with their names."""
    with_: str = msgspec.field(default="", name="with")
    """An earlier upload that they are compared with."""


class Composing(Signed, frozen=True, kw_only=True):
    """What a form of an experiment asks of the server."""

    look: Literal["", "1"] = ""
    """``1``: nothing is planned, the form is shown again with the settings of its place."""


_names = (
    "question size rw bs iodepth numjobs ioengine direct options margin trial ramp budget blocks"
).split()
_columns = range(1, COLUMNS + 1)
_names += [f"name-{column}" for column in _columns]
for row in range(1, ROWS + 1):
    _names += [f"setting-{row}", *(f"value-{row}-{column}" for column in _columns)]
for row in range(1, CONDITIONS + 1):
    _names += [f"condition-{row}", f"load-{row}", f"held-{row}"]

# All are text, all but the place may be empty.
ExperimentForm: type[Composing] = msgspec.defstruct(
    "ExperimentForm",
    [
        ("target", str, msgspec.field()),
        *(
            (name.replace("-", "_"), str, msgspec.field(default="", name=name))
            for name in _names
        ),
    ],
    bases=(Composing,),
    namespace={"__doc__": "An experiment, as the form of ``/measure`` has it."},
    frozen=True,
    kw_only=True,
)  # type: ignore[assignment]


def parsed(fields: Mapping[str, Any], kind: type[F]) -> F:
    """Return the fields as that form has them. Raises DeniedError for one that is missing, unknown or has another
    value.
    """
    try:
        return converted(fields, kind)
    except msgspec.ValidationError as error:
        raise DeniedError(400, f"not a form of this address: {error}") from None


def given(form: object) -> dict[str, str]:
    """Return the fields of an experiment that hold something, without what it asks of the server."""
    fields: dict[str, str] = msgspec.to_builtins(form)
    return {
        name: value
        for name, value in fields.items()
        if value and name not in ("csrf", "look")
    }


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
