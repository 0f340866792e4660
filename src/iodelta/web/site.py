"""What a site consists of, and the document of a request that it does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from iodelta.web.folders import Folders
from iodelta.web.results import Results
from iodelta.web.security import Rules

if TYPE_CHECKING:
    from iodelta.web.histories import Histories


class Site(msgspec.Struct, frozen=True):
    """What is served, and to whom."""

    folders: Folders
    results: Results
    rules: Rules
    history: Histories | None = None


def may_start(request: Request) -> bool:
    """Whether this user may start experiments."""
    site: Site = request.app.state.site
    return site.rules.write and request.scope["user"].may("run")


class Problem(msgspec.Struct, frozen=True):
    """Why a request was not answered."""

    status: int
    """The status of HTTP."""
    title: str
    """What is wrong, in a sentence."""
    remedy: str = ""
    """What to do."""
    schema: str = "iodelta.web-problem/1"
