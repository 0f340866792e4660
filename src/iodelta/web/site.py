"""What a site consists of, where it sends a browser, and the document of a request that it does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

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
    """Return whether this user may start experiments."""
    site: Site = request.app.state.site
    return site.rules.write and request.scope["user"].may("run")


def led_to(request: Request, path: str, status: int = 303) -> Response:
    """Return a redirect to another page of this site, by default with GET."""
    site: Site = request.app.state.site
    return RedirectResponse(f"{site.rules.prefix}{path}", status)


class Problem(msgspec.Struct, frozen=True):
    """Why a request was not answered."""

    status: int
    """The status of HTTP."""
    title: str
    """What is wrong, in a sentence."""
    remedy: str = ""
    """What to do."""
    schema: str = "iodelta.web-problem/1"
