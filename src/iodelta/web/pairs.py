"""Any two results of the list side by side: what ``iodelta compare`` says of them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from iodelta.api.foreign import compared
from iodelta.report.formats.html.pages import charts_of, page_of
from iodelta.report.formats.render import rendered
from iodelta.report.stories.story import PLAIN
from iodelta.web.folders import Place
from iodelta.web.layout import shown_report
from iodelta.web.negotiation import json_response, prefers_json
from iodelta.web.results import folder_of
from iodelta.web.site import Site

MARGIN = 0.01

KINDS = ("experiment", "bundle")
"""What can be compared."""


def pair(request: Request) -> Response:
    """``/pair?a=ID&b=ID``: the second against the first."""
    places = [_place(request, name) for name in ("a", "b")]
    for place in places:
        folder_of(place)  # which refuses what must not be read
    paths = tuple(place.path for place in places)
    comparison, layouts = compared(paths, MARGIN)
    if prefers_json(request):
        return json_response(rendered(comparison, "json", PLAIN))
    page = page_of(comparison, charts_of(comparison, layouts, paths))
    return shown_report(request, "pair.html", page, places=places)


def _place(request: Request, name: str) -> Place:
    site: Site = request.app.state.site
    place = site.folders.get(request.query_params.get(name, ""))
    if place is None or place.kind not in KINDS:
        raise HTTPException(404)
    return place
