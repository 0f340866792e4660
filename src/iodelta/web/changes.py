"""What may be posted: the fields of every form, as a program sends them, and what answers. ``/openapi.json`` says so."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from iodelta.history.answers import Alert, NightAdded
from iodelta.web.asked import COLUMNS
from iodelta.web.asked import ROWS as SETTINGS
from iodelta.web.held import ROWS as CONDITIONS
from iodelta.web.starting import FormAnswer

FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data"


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing but a sign."""

    csrf: str = ""
    """The sign of a page. ``/history/access`` gives it; with ``Authorization`` none is needed."""


class LoginForm(msgspec.Struct, frozen=True):
    """Who asks."""

    token: str


class DecisionForm(Signed, frozen=True, kw_only=True):
    """What is to become of an alert."""

    word: Literal[
        "investigating", "expected", "fixed", "wontfix", "noise", "ignored", "new"
    ]
    why: str = ""
    """The reason, for the log."""
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

    files: list[str]
    """The files, with their names."""
    with_: str = msgspec.field(default="", name="with")
    """An earlier upload that they are compared with."""


def _fields() -> list[tuple[str, type, object]]:
    """The fields of an experiment: all are text, all but the place may be empty."""
    plain = (
        "question size rw bs iodepth numjobs ioengine direct options "
        "margin trial ramp budget blocks"
    ).split()
    names = [f"name-{column}" for column in range(1, COLUMNS + 1)]
    for row in range(1, SETTINGS + 1):
        names.append(f"setting-{row}")
        names += [f"value-{row}-{column}" for column in range(1, COLUMNS + 1)]
    for row in range(1, CONDITIONS + 1):
        names += [f"condition-{row}", f"load-{row}", f"held-{row}"]
    optional = [
        (name.replace("-", "_"), str, msgspec.field(default="", name=name))
        for name in (*plain, *names)
    ]
    return [("target", str, msgspec.field()), *optional]


ExperimentForm = msgspec.defstruct(
    "ExperimentForm",
    _fields(),
    bases=(Signed,),
    namespace={"__doc__": "An experiment, as the form of ``/measure`` has it."},
    frozen=True,
    kw_only=True,
)


class Change(NamedTuple):
    """An address that is posted to."""

    path: str
    summary: str
    fields: type
    """Of its form."""
    encoding: str = FORM
    answer: type | None = None
    """The document of a program that asks for JSON; none where another page answers (303)."""
    refused: type | None = None
    """The document that says what is wrong with the fields (422), where it is one of its own."""


CHANGES = (
    Change("/login", "Log in: a cookie for a token.", LoginForm),
    Change("/upload", "Send results to look at.", UploadForm, PARTS),
    Change(
        "/measure",
        "Plan an experiment; nothing starts.",
        ExperimentForm,
        refused=FormAnswer,
    ),
    Change("/measure/{id}", "Start what was planned.", Signed),
    Change("/experiment/{id}/cancel", "End a run that a page started.", Signed),
    Change("/compare", "Plan an experiment of two nights.", PairForm),
    Change("/alert/{id}/confirm", "Plan the confirmation of an alert.", Signed),
    Change("/alert/{id}/decide", "Decide on an alert.", DecisionForm, answer=Alert),
    Change("/notes", "Write a note.", NoteForm),
    Change(
        "/history/add",
        "Add the night of a bundle, which is the body.",
        bytes,
        "application/octet-stream",
        NightAdded,
    ),
)
