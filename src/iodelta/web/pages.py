"""The first page: what runs, what waits for somebody, what was found last."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from iodelta.web.folders import Place
from iodelta.web.layout import paged, shown
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.pairs import KINDS
from iodelta.web.results import Results, Summary
from iodelta.web.site import Site

EACH = 50
"""Results on one page."""

BUDGET = 0.25
"""Seconds that a page takes to judge results; it fetches the rest afterwards, one by one."""


class Overview(msgspec.Struct, frozen=True):
    """What is served."""

    results: tuple[Summary, ...]
    """Of this page, the newest first."""
    total: int
    """Results on all pages."""
    page: int
    """The number of this page, 1 first."""
    pages: int
    """How many there are: ``/?page=2`` is the second."""
    waiting: int | None = None
    """Alerts of the history that wait for somebody; null without a history, and before it was read."""
    schema: str = "iodelta.web-overview/1"


def overview(request: Request) -> Response:
    """Return the newest results, and what needs somebody."""
    site: Site = request.app.state.site
    places = site.folders.all()
    shown_places, number, pages = paged(request, places, EACH)
    board = site.history.known if site.history is not None else None
    waiting = None if board is None else len(board.asking)
    if prefers_json(request):
        summaries = (site.results.summary(place) for place in shown_places)
        results = tuple(summary for summary in summaries if summary is not None)
        return document(Overview(results, len(places), number, pages, waiting))
    context: dict[str, Any] = {
        "pairs": [place for place in shown_places if place.kind in KINDS],
        "total": len(places),
        "number": number,
        "pages": pages,
        "waiting": waiting,
    }
    return shown(
        request, "overview.html", rows=_rows(shown_places, site.results), **context
    )


def _rows(
    places: Sequence[Place], results: Results
) -> list[tuple[Place, Summary | None]]:
    """Places with their summaries, as far as the budget goes."""
    until = time.monotonic() + BUDGET
    return [
        (place, results.summary(place, wait=time.monotonic() < until))
        for place in places
    ]
