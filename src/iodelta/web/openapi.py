"""``/openapi.json``: every address that answers with JSON or is posted to, and what its documents and forms consist of."""

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
from iodelta.study.comparison import Comparison
from iodelta.study.planned import PlanAnswer
from iodelta.web.changes import CHANGES, Change
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
    ("/pair", "Two results side by side, as `iodelta compare`.", Comparison),
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
    "/pair": (("a", "Identifier of the baseline."), ("b", "Of the other one.")),
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
    for change in CHANGES:
        structs += [change.fields, change.answer or Problem, change.refused or Problem]
    kinds = list(dict.fromkeys([*structs, Problem]))
    made, components = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    schemas = dict(zip(kinds, made, strict=True))
    failed = {
        "description": "Why it was not answered.",
        "content": {JSON: {"schema": schemas[Problem]}},
    }
    paths: dict[str, dict[str, Any]] = {}
    for path, summary, struct in PATHS:
        answered = _answered(summary, schemas[struct])
        operation = {"summary": summary, "parameters": _parameters(path)}
        paths[path] = {
            "get": {**operation, "responses": {"200": answered, "default": failed}}
        }
    for change in CHANGES:
        responses = {**_after(change, schemas), "default": failed}
        if change.refused is not None:
            why = "What is wrong, field by field."
            responses["422"] = _answered(why, schemas[change.refused])
        posted = {**_posted(change, schemas), "responses": responses}
        paths.setdefault(change.path, {})["post"] = posted
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


def _answered(summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": summary, "content": {JSON: {"schema": schema}}}


def _posted(change: Change, schemas: dict[type, dict[str, Any]]) -> dict[str, Any]:
    """The fields of a form; what is sent as it is has no schema."""
    schema = {} if change.fields is bytes else {"schema": schemas[change.fields]}
    return {
        "summary": change.summary,
        "parameters": _parameters(change.path, asked=False),
        "requestBody": {"required": True, "content": {change.encoding: schema}},
    }


def _after(change: Change, schemas: dict[type, dict[str, Any]]) -> dict[str, Any]:
    if change.answer is None:
        there = {"description": "What follows.", "schema": {"type": "string"}}
        return {"303": {"description": "Done.", "headers": {"Location": there}}}
    return {"200": _answered("Done.", schemas[change.answer])}


def _parameters(path: str, *, asked: bool = True) -> list[dict[str, Any]]:
    inside = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in inside
    ]
    for name, about in ASKED.get(path, ()) if asked else ():
        parameters.append(
            {
                "name": name,
                "in": "query",
                "description": about,
                "schema": {"type": "string"},
            }
        )
    return parameters
