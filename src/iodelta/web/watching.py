"""The page of a running experiment: what is known so far, renewed until the report takes its place."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from iodelta.errors import MeasureError
from iodelta.web.folders import Place, place_of
from iodelta.web.layout import shown
from iodelta.web.live import Live
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.results import folder_of
from iodelta.web.starting import started
from iodelta.web.underway import Underway, course_of, progress

FIRST = 2.0
"""Seconds that the page waits for the first judgement."""

SHOWN = 20
"""Comparisons that are drawn; of more those still open come first."""


def is_wanted(request: Request, place: Place) -> bool:
    """Return whether this page answers for the report: the experiment goes on, and a person did not ask for the report."""
    asks = "report" in request.query_params or prefers_json(request)
    return not asks and _live(request).goes_on(place)


def page(request: Request, place: Place) -> Response:
    """Return the whole page."""
    return _shown(
        request,
        "live.html",
        place,
        _live(request).underway(place, folder_of(place), wait=FIRST),
    )


def now(request: Request) -> Response:
    """Return the part of the page that changes."""
    place = place_of(request)
    known = _live(request).underway(place, folder_of(place), wait=FIRST)
    if prefers_json(request):
        if known is None:
            raise MeasureError("nothing is known of this experiment yet")
        return document(known)
    return _shown(request, "now.html", place, known)


def _shown(
    request: Request, template: str, place: Place, known: Underway | None
) -> Response:
    line, rows = "", []
    if known is not None:
        line = progress(known)
        rows = [
            (comparison, course_of(comparison, known.most, known.margin))
            for comparison in known.comparisons[:SHOWN]
        ]
    following = _live(request).following(place)
    return shown(
        request,
        template,
        place=place,
        known=known,
        rows=rows,
        said=line,
        following=following,
        **started(request, place.path),
    )


def _live(request: Request) -> Live:
    live_runs: Live = request.app.state.site.results.live
    return live_runs
