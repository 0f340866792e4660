"""Plans that wait to be started. Planning changes nothing on the machine."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Literal

import msgspec

from iodelta.study.planned import PlanAnswer

KEPT = 3600.0
"""Seconds that a plan waits."""

MOST = 200
"""Plans at once; the oldest gives way."""


class Draft(msgspec.Struct, frozen=True):
    """A plan, and what starting it does."""

    id: str
    """Unguessable."""
    owner: str
    at: float
    kind: Literal["run", "confirm"]
    answer: PlanAnswer
    text: str
    """The experiment file."""
    alert: str = ""
    """The alert that it confirms."""
    back: str = ""
    """The page that it was made on."""
    fields: Mapping[str, str] = {}
    """The form that it was made of; empty where it was made of nights."""
    folder: str = ""
    """Where it is measured, once it was started."""


class Drafts:
    """All plans, in memory: planning again takes a second."""

    def __init__(self) -> None:
        self._drafts: OrderedDict[str, Draft] = OrderedDict()
        self.lock = threading.Lock()
        """Held while a plan is started, so that a second click does not start it twice."""

    def add(
        self,
        owner: str,
        kind: Literal["run", "confirm"],
        answer: PlanAnswer,
        text: str,
        *,
        alert: str = "",
        back: str = "",
        fields: Mapping[str, str] = {},
    ) -> Draft:
        """Keep a plan for its owner."""
        made = Draft(
            secrets.token_urlsafe(9),
            owner,
            time.monotonic(),
            kind,
            answer,
            text,
            alert,
            back,
            dict(fields),
        )
        self._drafts[made.id] = made
        while len(self._drafts) > MOST:
            self._drafts.popitem(last=False)
        return made

    def get(self, identifier: str, owner: str) -> Draft | None:
        """Return the plan with that identifier; None if it is gone or belongs to another user."""
        draft = self._drafts.get(identifier)
        if draft is None or draft.owner != owner or time.monotonic() - draft.at > KEPT:
            return None
        return draft

    def started(self, draft: Draft, folder: str) -> Draft:
        """Record that it was started; a plan is started once."""
        made = msgspec.structs.replace(draft, folder=folder)
        self._drafts[draft.id] = made
        return made
