"""A fleet: the state of every host, and what those that were measured say together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from iodelta.errors import IodeltaError
from iodelta.fleet.folder import FleetFolder
from iodelta.fleet.status import status_of
from iodelta.report.formats.html.page import Page
from iodelta.report.formats.html.pages import page_of
from iodelta.report.formats.html.write import parts, scripts_of
from iodelta.web.folders import place_of
from iodelta.web.layout import shown
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.site import Site


def fleet(request: Request) -> Response:
    """Its hosts, then the report over all of them, as far as there is one."""
    place, context = place_of(request), _hosts(request)
    if prefers_json(request):
        return document(context["fleet"])
    site: Site = request.app.state.site
    page: Page | None = None
    problem = ""
    try:
        seen = site.results.of(place)
        page = page_of(seen.result, seen.charts, seen.detail)
    except (
        IodeltaError
    ) as error:  # before the first host was measured there is no report
        problem = error.what
    laid: dict[str, Any] = (
        {"scripts": ()}
        if page is None
        else {**parts(page), "scripts": scripts_of(page)}
    )
    return shown(
        request,
        "fleet.html",
        **context,
        **laid,
        joint=page is not None,
        problem=problem,
    )


def hosts(request: Request) -> Response:
    """Return the table of hosts alone: the page asks for it again and again."""
    return shown(request, "hosts.html", **_hosts(request))


def _hosts(request: Request) -> dict[str, Any]:
    place = place_of(request)
    if place.kind != "fleet":
        raise HTTPException(404)
    site: Site = request.app.state.site
    status = status_of(FleetFolder.open(Path(place.path)))
    places = {
        host.name: site.folders.at(host.folder) if host.folder else None
        for host in status.hosts
    }
    return {"place": place, "fleet": status, "places": places}
