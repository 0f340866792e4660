"""The application: every address with the function that answers it, and with what ``/openapi.json`` says of it."""

from __future__ import annotations

import functools
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from iodelta import __version__
from iodelta.errors import IodeltaError, RequestError
from iodelta.fleet.answers import FleetStatusAnswer
from iodelta.history.answers import Alert, HistoryScanAnswer, NightAdded
from iodelta.history.exchange import HistoryAccess, HistoryLines
from iodelta.history.services import OPENMETRICS
from iodelta.path.judge import PathAccount
from iodelta.report.documents import described as schemas_of
from iodelta.report.verdict_json import Document
from iodelta.study.attribution import AttributionAccount
from iodelta.study.audited import Audited
from iodelta.study.comparison import Comparison
from iodelta.study.planned import PlanAnswer
from iodelta.study.preparation import PrepareAnswer
from iodelta.study.rows import Shown
from iodelta.study.search import SearchAccount
from iodelta.web import (
    comparing,
    experiments,
    fleets,
    pages,
    pairs,
    programs,
    series,
    starting,
    triage,
    uploads,
)
from iodelta.web.fields import (
    DecisionForm,
    ExperimentForm,
    LoginForm,
    NoteForm,
    PairForm,
    Signed,
    UploadForm,
    parsed,
)
from iodelta.web.histories import Board
from iodelta.web.launching import Launches
from iodelta.web.layout import shown, static_file
from iodelta.web.negotiation import JSON, document, prefers_json
from iodelta.web.security import COOKIE, SESSION, DeniedError, Guard
from iodelta.web.shelf import Shelf
from iodelta.web.site import Problem, Site
from iodelta.web.underway import Underway

PAGE, PICTURE = "text/html", "image/svg+xml"
FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data"


class Address(msgspec.Struct, frozen=True):
    """An address and method."""

    path: str
    endpoint: Callable[..., Any]
    summary: str
    answers: tuple[type, ...] | str = ()
    """The structs that its document may be, or the media type of another answer; empty: it leads elsewhere (303)."""
    asked: Mapping[str, str] = {}
    """What is asked for behind ``?``."""
    form: type | None = None
    """The fields that are posted; none of an address that is only read."""
    encoding: str = FORM
    refused: type | None = None
    """The document that says what is wrong with the fields (422), where it is one of its own."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """Return the structs of its documents and of its form."""
        several = () if isinstance(self.answers, str) else self.answers
        return tuple(
            kind
            for kind in (*several, self.form, self.refused)
            if kind not in (None, bytes)
        )


def described(addresses: tuple[Address, ...]) -> dict[str, Any]:
    """Return the description of these addresses."""
    kinds = list(
        dict.fromkeys([*chain.from_iterable(one.kinds for one in addresses), Problem])
    )
    made, components = schemas_of(kinds, "#/components/schemas/{name}")
    schemas = dict(zip(kinds, made, strict=True))

    def answered(summary: str, *kinds: type) -> dict[str, Any]:
        several = [schemas[kind] for kind in kinds]
        schema = several[0] if len(several) == 1 else {"anyOf": several}
        return {"description": summary, "content": {JSON: {"schema": schema}}}

    paths: dict[str, dict[str, Any]] = {}
    for one in addresses:
        path = re.sub(r":\w+}", "}", one.path)
        text = {"required": True, "schema": {"type": "string"}}
        inside = [
            {"name": name, "in": "path", **text}
            for name in re.findall(r"{(\w+)}", path)
        ]
        behind = [
            {
                "name": name,
                "in": "query",
                "description": about,
                "schema": {"type": "string"},
            }
            for name, about in one.asked.items()
        ]
        summary = one.summary if one.form is None else "Done."
        if isinstance(one.answers, str):
            responses = {"200": {"description": summary, "content": {one.answers: {}}}}
        elif one.answers:
            responses = {"200": answered(summary, *one.answers)}
        else:
            there = {"description": "What follows.", "schema": {"type": "string"}}
            responses = {
                "303": {"description": summary, "headers": {"Location": there}}
            }
        if one.refused is not None:
            responses["422"] = answered("What is wrong, field by field.", one.refused)
        responses["default"] = answered("Why it was not answered.", Problem)
        operation = {
            "summary": one.summary,
            "parameters": inside + behind,
            "responses": responses,
        }
        if one.form is not None:
            # What is sent as it is has no schema.
            content = {
                one.encoding: {} if one.form is bytes else {"schema": schemas[one.form]}
            }
            operation["requestBody"] = {"required": True, "content": content}
        paths.setdefault(path, {})["get" if one.form is None else "post"] = operation
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


KEPT = 64
"""Answers that are kept in memory."""

Endpoint = Callable[[Request], Response]


def kept(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint, whose answers follow from the address, the user and the history alone."""

    @functools.wraps(endpoint)
    def answered(request: Request) -> Response:
        state, user = request.app.state, request.scope["user"]
        words = (
            *(
                __version__,
                state.site.rules.prefix,
                request.url.path,
                request.url.query,
            ),
            *(request.headers.get("accept", ""), user.name, user.role, user.csrf),
            *(state.site.history.stamp(), state.launches.running()),
        )
        tag = f'"{hashlib.sha256(repr(words).encode()).hexdigest()[:24]}"'
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={"ETag": tag, "Vary": "Accept"})
        answers: OrderedDict[str, tuple[bytes, dict[str, str]]] = state.answers
        if tag not in answers:
            response = endpoint(request)
            if response.status_code != 200:
                return response
            answers[tag] = bytes(response.body), {**response.headers, "ETag": tag}
            while len(answers) > KEPT:
                answers.popitem(last=False)
        # A response of its own each time: what compresses it writes into its headers.
        body, headers = answers[tag]
        return Response(body, headers=headers)

    return answered


FOLDERS = (Document, PathAccount, PrepareAnswer)
"""What ``iodelta report`` says of a folder or bundle."""


class Application(NamedTuple):
    """The application, and the function to call when the server ends."""

    app: ASGIApp
    end: Callable[[], None]


def static(request: Request) -> Response:
    """Scripts and style sheets."""
    response = static_file(
        request.path_params["name"], is_dated="v" in request.query_params
    )
    if response is None:
        raise HTTPException(404)
    return response


def icon(request: Request) -> Response:
    """Return the icon that browsers request by themselves."""
    response = static_file("icon.svg", is_dated=False)
    assert response is not None
    return response


async def login(request: Request) -> Response:
    """Return a page that asks for a token, and the cookie for a right one."""
    site, guard = request.app.state.site, request.app.state.guard
    home = f"{site.rules.prefix}/"
    if request.method == "GET":
        return shown(request, "login.html", wrong=False)
    async with request.form(max_files=0, max_fields=4) as form:
        secret = parsed(dict(form), LoginForm).token.strip()
    user = guard.login(secret, request.client.host if request.client else "")
    if user is None and prefers_json(request):
        raise DeniedError(401, "not a token of this server")
    if user is None:
        return shown(request, "login.html", status=401, wrong=True)
    response = RedirectResponse(home, 303)
    # Behind several proxies the first word is the browser's protocol. Only the cookie of this response depends on it.
    spoken = request.headers.get("x-forwarded-proto", request.url.scheme)
    is_secure = spoken.partition(",")[0].strip().lower() == "https"
    response.set_cookie(
        COOKIE,
        guard.cookie(user),
        SESSION,
        path=home,
        secure=is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


def openapi(request: Request) -> Response:
    """Return the description of this server."""
    servers = [{"url": request.app.state.site.rules.prefix or "/"}]
    made = {**all_described(), "servers": servers}
    return Response(msgspec.json.encode(made), media_type=JSON)


@lru_cache(maxsize=1)
def all_described() -> dict[str, Any]:
    """Return the description of every address, with those of a history."""
    return described(ADDRESSES + OF_HISTORY)


def _problem(request: Request, status: int, title: str, remedy: str = "") -> Response:
    problem = Problem(status, title, remedy)
    if prefers_json(request):
        return document(problem, status)
    return shown(request, "problem.html", status=status, problem=problem)


def _failed(request: Request, error: Any) -> Response:
    """Return a folder that cannot be read is not a failure of the server."""
    return _problem(
        request,
        404 if isinstance(error, RequestError) else 422,
        error.what,
        error.remedy,
    )


def _not_answered(request: Request, error: Any) -> Response:
    titles = {
        404: "There is nothing at this address",
        405: "This address does not support that method",
    }
    return _problem(
        request,
        error.status_code,
        titles.get(error.status_code, HTTPStatus(error.status_code).phrase),
    )


def _denied(request: Request, denied: Any) -> Response:
    is_page = request.method == "GET" and not prefers_json(request)
    if denied.status != 401 or not is_page:
        response = _problem(request, denied.status, denied.why)
    elif request.headers.get("sec-fetch-site") == "cross-site":
        # A link in a mail arrives without the cookie, which browsers send only from pages of this site: such a page
        # loads itself again, and then has it.
        response = shown(request, "again.html")
    else:
        response = RedirectResponse(f"{request.app.state.site.rules.prefix}/login", 303)
    response.headers.update(denied.headers)
    return response


ADDRESSES = (
    Address(
        "/",
        pages.overview,
        "The results that are served, the newest first.",
        (pages.Overview,),
        asked={"page": "Number of the page, 1 first."},
    ),
    Address("/login", login, "The form that asks for a token.", PAGE),
    Address("/login", login, "Log in: a cookie for a token.", form=LoginForm),
    Address(
        "/static/{name:path}",
        static,
        "Scripts, styles and pictures of the pages.",
        "*/*",
    ),
    Address("/favicon.ico", icon, "The picture of the site.", PICTURE),
    Address(
        "/experiment/{id}",
        experiments.report,
        "A result, as the command that made it prints it; a fleet is at `/fleet/{id}` (307).",
        (*FOLDERS, SearchAccount, AttributionAccount),
    ),
    Address(
        "/experiment/{id}/row",
        experiments.row,
        "The line of a result on the first page.",
        PAGE,
    ),
    Address(
        "/experiment/{id}/now",
        experiments.now,
        "What is known of an experiment that goes on.",
        (Underway,),
    ),
    Address(
        "/experiment/{id}/cell/{number:int}",
        experiments.cell,
        "Every block of a cell, in words; the document of the experiment has its numbers.",
        PAGE,
    ),
    Address(
        "/experiment/{id}/trials",
        experiments.trials,
        "Every trial of an experiment.",
        (experiments.Trials,),
        asked={
            "page": "Which 200 trials the page shows, 1 first; the document has all."
        },
    ),
    Address(
        "/experiment/{id}/trial/{number:int}",
        experiments.trial,
        "One trial.",
        (experiments.TrialAnswer,),
    ),
    Address(
        "/experiment/{id}/trial/{number:int}/output",
        experiments.output,
        "What fio, or the command, printed, byte for byte.",
        "*/*",
    ),
    Address(
        "/pair",
        pairs.pair,
        "Two results side by side, as `iodelta compare`.",
        (Comparison,),
        asked={"a": "Identifier of the baseline.", "b": "Of the other one."},
    ),
    Address("/fleet/{id}", fleets.fleet, "The hosts of a fleet.", (FleetStatusAnswer,)),
    Address("/fleet/{id}/hosts", fleets.hosts, "The table of hosts alone.", PAGE),
    Address("/openapi.json", openapi, "This description.", JSON),
    Address(
        "/upload",
        uploads.take,
        "Send results to look at.",
        form=UploadForm,
        encoding=PARTS,
    ),
    Address(
        "/upload/{id}",
        uploads.first,
        "Leads to the page that says most of what was sent.",
    ),
    Address(
        "/upload/{id}/{what}",
        uploads.page,
        "What `iodelta show`, `audit`, `compare` or `report` says of what was sent.",
        (Shown, Audited, Comparison, *FOLDERS),
    ),
    Address("/measure", starting.form, "The form of an experiment.", PAGE),
    Address(
        "/measure",
        starting.propose,
        "Plan an experiment; nothing starts.",
        form=ExperimentForm,
        refused=starting.FormAnswer,
    ),
    Address(
        "/measure/{id}",
        starting.plan,
        "A plan that waits to be started; afterwards, what became of it.",
        (PlanAnswer, starting.StartedAnswer),
    ),
    Address("/measure/{id}", starting.start, "Start what was planned.", form=Signed),
    Address(
        "/experiment/{id}/cancel",
        starting.cancel,
        "End a run that a page started.",
        form=Signed,
    ),
)

OF_HISTORY = (
    Address("/matrix", kept(series.matrix), "The history at a glance.", (Board,)),
    Address(
        "/graph",
        kept(series.graph),
        "Several series in one graph.",
        PAGE,
        asked={
            "only": "Words of machine, cell, variant or metric.",
            "measure": "The metric.",
            "variant": "The variant.",
            "from": "ISO 8601 in UTC.",
            "to": "ISO 8601 in UTC.",
        },
    ),
    Address(
        "/metrics", series.metrics, "The newest values, for Prometheus.", OPENMETRICS
    ),
    Address(
        "/series/{number:int}",
        kept(series.series),
        "One series of the history.",
        (series.SeriesAnswer,),
    ),
    Address(
        "/series/{number:int}/chart.svg",
        kept(series.picture),
        "The chart of a series.",
        PICTURE,
    ),
    Address(
        "/compare",
        comparing.compare,
        "Two points of the history.",
        (comparing.Compared,),
        asked={"a": "A point: SERIES-EXPERIMENT.", "b": "Another one."},
    ),
    Address(
        "/compare",
        starting.measure_two,
        "Plan an experiment of two nights.",
        form=PairForm,
    ),
    Address(
        "/alert/{id}/confirm",
        starting.confirm,
        "Plan the confirmation of an alert.",
        form=Signed,
    ),
    Address(
        "/triage",
        kept(triage.triage),
        "All alerts.",
        (HistoryScanAnswer,),
        asked={"only": "Words of series, state, decision, owner or bug."},
    ),
    Address(
        "/history/lines",
        programs.lines,
        "Whole series of the history.",
        (HistoryLines,),
    ),
    Address(
        "/history/candidates",
        programs.candidates,
        "Steps that stand out.",
        (HistoryScanAnswer,),
    ),
    Address("/history/access", programs.access, "What you may do.", (HistoryAccess,)),
    Address(
        "/history/add",
        programs.take,
        "Add the night of a bundle, which is the body.",
        (NightAdded,),
        form=bytes,
        encoding="application/octet-stream",
    ),
    Address("/alert/{id}", kept(triage.alert), "One alert.", (Alert,)),
    Address(
        "/alert/{id}/decide",
        triage.decide,
        "Decide on an alert.",
        (Alert,),
        form=DecisionForm,
    ),
    Address("/notes", triage.annotate, "Write a note.", form=NoteForm),
)


def make_app(site: Site) -> Application:
    """Return the whole application with its guard."""
    served = ADDRESSES if site.history is None else ADDRESSES + OF_HISTORY
    app = Starlette(
        routes=[
            Route(
                one.path, one.endpoint, methods=["GET" if one.form is None else "POST"]
            )
            for one in served
        ],
        exception_handlers={
            IodeltaError: _failed,
            HTTPException: _not_answered,
            DeniedError: _denied,
        },
    )
    app.router.redirect_slashes = False
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.state.answers = OrderedDict()
    app.state.site = site
    app.state.shelf = shelf = Shelf()
    app.state.drafts = starting.Drafts()
    app.state.launches = Launches(site.folders.roots[0])
    guard = Guard(app, site.rules, _denied)
    app.state.guard = guard

    def end() -> None:
        site.results.live.close()
        shelf.close()

    return Application(guard, end)
