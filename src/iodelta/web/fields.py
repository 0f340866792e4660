"""The fields of every form: each request is read into one of these structs, and ``/openapi.json`` is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from iodelta.decoding import converted
from iodelta.web.asked import COLUMNS, CONDITIONS, ROWS
from iodelta.web.security import DeniedError

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
