"""What may be posted: the fields of every form, as a program sends them, and what answers. ``/openapi.json`` says so."""

from __future__ import annotations

from typing import NamedTuple

from iodelta.history.answers import Alert, NightAdded
from iodelta.web.fields import (
    DecisionForm,
    ExperimentForm,
    LoginForm,
    NoteForm,
    PairForm,
    Signed,
    UploadForm,
)
from iodelta.web.starting import FormAnswer

FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data"


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
