"""``/openapi.json``: every address and method, what it is asked, and what its documents and forms consist of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from iodelta import __version__
from iodelta.fleet.answers import FleetStatusAnswer
from iodelta.history.answers import Alert, HistoryScanAnswer
from iodelta.history.exchange import HistoryAccess, HistoryLines
from iodelta.history.newest import OPENMETRICS
from iodelta.path.judge import PathAccount
from iodelta.report.documents import described
from iodelta.report.verdict_json import Document
from iodelta.study.attribution import AttributionAccount
from iodelta.study.audited import Audited
from iodelta.study.comparison import Comparison
from iodelta.study.planned import PlanAnswer
from iodelta.study.preparation import PrepareAnswer
from iodelta.study.rows import Shown
from iodelta.study.search import SearchAccount
from iodelta.web.changes import CHANGES, Change
from iodelta.web.comparing import Compared
from iodelta.web.experiments import TrialAnswer, Trials
from iodelta.web.histories import Board
from iodelta.web.negotiation import JSON
from iodelta.web.pages import Overview
from iodelta.web.series import SeriesAnswer
from iodelta.web.site import Problem
from iodelta.web.starting import StartedAnswer
from iodelta.web.underway import Underway

FOLDERS = (Document, PathAccount, PrepareAnswer)
"""What ``iodelta report`` says of a folder or bundle."""

PATHS: tuple[tuple[str, str, tuple[type, ...]], ...] = (
    ("/", "The results that are served, the newest first.", (Overview,)),
    (
        "/experiment/{id}",
        "A result, as the command that made it prints it; a fleet is at `/fleet/{id}` (307).",
        (*FOLDERS, SearchAccount, AttributionAccount),
    ),
    ("/experiment/{id}/trials", "Every trial of an experiment.", (Trials,)),
    ("/experiment/{id}/trial/{number}", "One trial.", (TrialAnswer,)),
    (
        "/experiment/{id}/now",
        "What is known of an experiment that goes on.",
        (Underway,),
    ),
    ("/pair", "Two results side by side, as `iodelta compare`.", (Comparison,)),
    ("/fleet/{id}", "The hosts of a fleet.", (FleetStatusAnswer,)),
    ("/matrix", "The history at a glance.", (Board,)),
    ("/series/{number}", "One series of the history.", (SeriesAnswer,)),
    ("/compare", "Two points of the history.", (Compared,)),
    ("/triage", "All alerts.", (HistoryScanAnswer,)),
    ("/alert/{id}", "One alert.", (Alert,)),
    ("/history/lines", "Whole series of the history.", (HistoryLines,)),
    ("/history/candidates", "Steps that stand out.", (HistoryScanAnswer,)),
    ("/history/access", "What you may do.", (HistoryAccess,)),
    (
        "/measure/{id}",
        "A plan that waits to be started; afterwards, what became of it.",
        (PlanAnswer, StartedAnswer),
    ),
    (
        "/upload/{id}/{what}",
        "What `iodelta show`, `audit`, `compare` or `report` says of what was sent.",
        (Shown, Audited, Comparison, *FOLDERS),
    ),
)
"""Address, what it is, and the structs that its document may be."""

PAGE, PICTURE = "text/html", "image/svg+xml"

FILES: tuple[tuple[str, str, str], ...] = (
    ("/login", "The form that asks for a token.", PAGE),
    ("/measure", "The form of an experiment.", PAGE),
    ("/static/{name}", "Scripts, styles and pictures of the pages.", "*/*"),
    ("/favicon.ico", "The picture of the site.", PICTURE),
    ("/series/{number}/chart.svg", "The chart of a series.", PICTURE),
    ("/experiment/{id}/row", "The line of a result on the first page.", PAGE),
    ("/fleet/{id}/hosts", "The table of hosts alone.", PAGE),
    (
        "/experiment/{id}/cell/{number}",
        "Every block of a cell, in words; the document of the experiment has its numbers.",
        PAGE,
    ),
    (
        "/experiment/{id}/trial/{number}/output",
        "What fio, or the command, printed, byte for byte.",
        "*/*",
    ),
    (
        "/experiment/{id}/events",
        "The lines of the journal, as they are written.",
        "text/event-stream",
    ),
    ("/metrics", "The newest values, for Prometheus.", OPENMETRICS),
    ("/openapi.json", "This description.", JSON),
)
"""Addresses whose answer is not one of the documents, and its media type."""

MOVED: tuple[tuple[str, str, int], ...] = (
    ("/upload/{id}", "Leads to the page that says most of what was sent.", 303),
)
"""Addresses that lead to another one."""

ASKED = {
    "/": (("page", "Number of the page, 1 first."),),
    "/experiment/{id}/trials": (
        ("page", "Which 200 trials the page shows, 1 first; the document has all."),
    ),
    "/pair": (("a", "Identifier of the baseline."), ("b", "Of the other one.")),
    "/compare": (("a", "A point: SERIES-EXPERIMENT."), ("b", "Another one.")),
}
"""What is asked for behind ``?``."""

Schemas = Mapping[type, dict[str, Any]]


def document_of(request: Request) -> Response:
    """Return the description of this server."""
    made = {
        **_described(),
        "servers": [{"url": request.app.state.site.rules.prefix or "/"}],
    }
    return Response(msgspec.json.encode(made), media_type=JSON)


@lru_cache(maxsize=1)
def _described() -> dict[str, Any]:
    structs = [*chain.from_iterable(kinds for _, _, kinds in PATHS), Problem]
    for change in CHANGES:
        structs += [change.fields, change.answer or Problem, change.refused or Problem]
    kinds = list(dict.fromkeys(structs))
    made, components = described(kinds, "#/components/schemas/{name}")
    schemas = dict(zip(kinds, made, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for path, operation in chain(_readable(schemas), _postable(schemas)):
        paths.setdefault(path, {}).update(operation)
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


def _readable(schemas: Schemas) -> Iterator[tuple[str, dict[str, Any]]]:
    """Address, and its operation ``get``."""
    for path, summary, kinds in PATHS:
        yield (
            path,
            _get(path, summary, {"200": _answered(summary, kinds, schemas)}, schemas),
        )
    for path, summary, media in FILES:
        answer = {"description": summary, "content": {media: {}}}
        yield path, _get(path, summary, {"200": answer}, schemas)
    for path, summary, status in MOVED:
        yield path, _get(path, summary, {str(status): _elsewhere(summary)}, schemas)


def _get(
    path: str, summary: str, responses: dict[str, Any], schemas: Schemas
) -> dict[str, Any]:
    operation = {"summary": summary, "parameters": _parameters(path)}
    return {
        "get": {**operation, "responses": {**responses, "default": _failed(schemas)}}
    }


def _postable(schemas: Schemas) -> Iterator[tuple[str, dict[str, Any]]]:
    """Address, and its operation ``post``."""
    for change in CHANGES:
        responses = {**_after(change, schemas), "default": _failed(schemas)}
        if change.refused is not None:
            why = "What is wrong, field by field."
            responses["422"] = _answered(why, (change.refused,), schemas)
        yield (
            change.path,
            {"post": {**_posted(change, schemas), "responses": responses}},
        )


def _answered(
    summary: str, kinds: tuple[type, ...], schemas: Schemas
) -> dict[str, Any]:
    several = [schemas[kind] for kind in kinds]
    schema = several[0] if len(several) == 1 else {"anyOf": several}
    return {"description": summary, "content": {JSON: {"schema": schema}}}


def _failed(schemas: Schemas) -> dict[str, Any]:
    return _answered("Why it was not answered.", (Problem,), schemas)


def _elsewhere(summary: str) -> dict[str, Any]:
    there = {"description": "What follows.", "schema": {"type": "string"}}
    return {"description": summary, "headers": {"Location": there}}


def _posted(change: Change, schemas: Schemas) -> dict[str, Any]:
    """Return the fields of a form; what is sent as it is has no schema."""
    schema = {} if change.fields is bytes else {"schema": schemas[change.fields]}
    return {
        "summary": change.summary,
        "parameters": _parameters(change.path, asked=False),
        "requestBody": {"required": True, "content": {change.encoding: schema}},
    }


def _after(change: Change, schemas: Schemas) -> dict[str, Any]:
    if change.answer is None:
        return {"303": _elsewhere("Done.")}
    return {"200": _answered("Done.", (change.answer,), schemas)}


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
