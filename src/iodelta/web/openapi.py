"""``/openapi.json``: every address that answers with JSON, and what its documents consist of."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from iodelta import __version__
from iodelta.fleet.answers import FleetStatusAnswer
from iodelta.history.answers import Alert, HistoryScanAnswer
from iodelta.history.exchange import HistoryAccess, HistoryLines
from iodelta.report.derived import Document
from iodelta.study.planned import PlanAnswer
from iodelta.web.comparing import Compared
from iodelta.web.experiments import TrialAnswer, Trials
from iodelta.web.histories import Board
from iodelta.web.live import Underway
from iodelta.web.negotiation import JSON
from iodelta.web.pages import Overview
from iodelta.web.series import SeriesAnswer
from iodelta.web.site import Problem

PATHS: tuple[tuple[str, str, type], ...] = (
    ("/", "The results that are served, the newest first.", Overview),
    (
        "/experiment/{id}",
        "A result; one that is no experiment has the document of its own command.",
        Document,
    ),
    ("/experiment/{id}/trials", "Every trial of an experiment.", Trials),
    ("/experiment/{id}/trial/{number}", "One trial.", TrialAnswer),
    ("/experiment/{id}/now", "What is known of an experiment that goes on.", Underway),
    ("/fleet/{id}", "The hosts of a fleet.", FleetStatusAnswer),
    ("/matrix", "The history at a glance.", Board),
    ("/series/{number}", "One series of the history.", SeriesAnswer),
    ("/compare", "Two points of the history.", Compared),
    ("/triage", "All alerts.", HistoryScanAnswer),
    ("/alert/{id}", "One alert.", Alert),
    ("/history/lines", "Whole series of the history.", HistoryLines),
    ("/history/candidates", "Steps that stand out.", HistoryScanAnswer),
    ("/history/access", "What you may do.", HistoryAccess),
    ("/measure/{id}", "A plan that waits to be started.", PlanAnswer),
)
"""Address, what it is, and the struct of its document."""

ASKED = {
    "/": (("page", "Number of the page, 1 first."),),
    "/compare": (("a", "A point: SERIES-EXPERIMENT."), ("b", "Another one.")),
}
"""What is asked for behind ``?``."""


def document_of(request: Request) -> Response:
    """The description of this server."""
    made = {
        **_described(),
        "servers": [{"url": request.app.state.site.rules.prefix or "/"}],
    }
    return Response(msgspec.json.encode(made), media_type=JSON)


@lru_cache(maxsize=1)
def _described() -> dict[str, Any]:
    structs = [struct for _, _, struct in PATHS]
    schemas, components = msgspec.json.schema_components(
        [*structs, Problem], ref_template="#/components/schemas/{name}"
    )
    failed = {
        "description": "Why it was not answered.",
        "content": {JSON: {"schema": schemas[-1]}},
    }
    paths = {}
    for (path, summary, _), schema in zip(PATHS, schemas, strict=False):
        answered = {"description": summary, "content": {JSON: {"schema": schema}}}
        operation = {"summary": summary, "parameters": _parameters(path)}
        paths[path] = {
            "get": {**operation, "responses": {"200": answered, "default": failed}}
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "iodelta serve", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _parameters(path: str) -> list[dict[str, Any]]:
    inside = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in inside
    ]
    for name, about in ASKED.get(path, ()):
        parameters.append(
            {
                "name": name,
                "in": "query",
                "description": about,
                "schema": {"type": "string"},
            }
        )
    return parameters
