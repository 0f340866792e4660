"""The application: which function answers which address."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from iodelta.errors import IodeltaError, RequestError
from iodelta.web import (
    experiments,
    fleets,
    openapi,
    pages,
    pairs,
    starting,
    uploads,
    watching,
)
from iodelta.web.drafts import Drafts
from iodelta.web.fields import LoginForm, parsed
from iodelta.web.launching import Launches
from iodelta.web.layout import shown, static_file
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.security import COOKIE, SESSION, DeniedError, Guard
from iodelta.web.shelf import Shelf
from iodelta.web.site import Problem, Site
from iodelta.web.streams import Streams


class Application(NamedTuple):
    """The application, and the function to call when the server ends."""

    app: ASGIApp
    end: Callable[[], None]


def make_app(site: Site) -> Application:
    """Return the whole application with its guard."""
    routes = [
        Route("/", pages.overview),
        Route("/login", login, methods=["GET", "POST"]),
        Route("/static/{name:path}", static),
        Route("/favicon.ico", icon),
        Route("/experiment/{id}", experiments.report),
        Route("/experiment/{id}/row", experiments.row),
        Route("/experiment/{id}/now", watching.now),
        Route("/experiment/{id}/events", watching.events),
        Route("/experiment/{id}/cell/{number:int}", experiments.cell),
        Route("/experiment/{id}/trials", experiments.trials),
        Route("/experiment/{id}/trial/{number:int}", experiments.trial),
        Route("/experiment/{id}/trial/{number:int}/output", experiments.output),
        Route("/pair", pairs.pair),
        Route("/fleet/{id}", fleets.fleet),
        Route("/fleet/{id}/hosts", fleets.hosts),
        Route("/openapi.json", openapi.document_of),
    ]
    routes += [
        Route("/upload", uploads.take, methods=["POST"]),
        Route("/upload/{id}", uploads.first),
        Route("/upload/{id}/{what}", uploads.page),
    ]
    routes += [
        Route("/measure", starting.form),
        Route("/measure", starting.propose, methods=["POST"]),
        Route("/measure/{id}", starting.plan),
        Route("/measure/{id}", starting.start, methods=["POST"]),
        Route("/experiment/{id}/cancel", starting.cancel, methods=["POST"]),
    ]
    if site.history is not None:
        routes += _of_history()
    app = Starlette(
        routes=routes,
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
    app.state.streams = Streams()
    app.state.shelf = shelf = Shelf()
    app.state.drafts = Drafts()
    app.state.launches = Launches(site.folders.roots[0])
    guard = Guard(app, site.rules, _denier(app))
    app.state.guard = guard

    def end() -> None:
        app.state.streams.ending = True
        site.results.live.close()
        shelf.close()

    return Application(guard, end)


def _of_history() -> list[Route]:
    from iodelta.web import comparing, confirming, programs, series, triage
    from iodelta.web.caching import kept

    return [
        Route("/matrix", kept(series.matrix)),
        Route("/metrics", series.metrics),
        Route("/series/{number:int}", kept(series.series)),
        Route("/series/{number:int}/chart.svg", kept(series.picture)),
        Route("/compare", comparing.compare),
        Route("/compare", confirming.measure_two, methods=["POST"]),
        Route("/alert/{id}/confirm", confirming.confirm, methods=["POST"]),
        Route("/triage", kept(triage.triage)),
        Route("/history/lines", programs.lines),
        Route("/history/candidates", programs.candidates),
        Route("/history/access", programs.access),
        Route("/history/add", programs.take, methods=["POST"]),
        Route("/alert/{id}", kept(triage.alert)),
        Route("/alert/{id}/decide", triage.decide, methods=["POST"]),
        Route("/notes", triage.annotate, methods=["POST"]),
    ]


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


def _problem(request: Request, problem: Problem) -> Response:
    if prefers_json(request):
        return document(problem, problem.status)
    return shown(request, "problem.html", status=problem.status, problem=problem)


def _failed(request: Request, error: Exception) -> Response:
    """Return a folder that cannot be read is not a failure of the server."""
    assert isinstance(error, IodeltaError)
    status = 404 if isinstance(error, RequestError) else 422
    return _problem(request, Problem(status, error.what, error.remedy))


def _not_answered(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    titles = {
        404: "There is nothing at this address",
        405: "This address does not support that method",
    }
    title = titles.get(error.status_code, HTTPStatus(error.status_code).phrase)
    return _problem(request, Problem(error.status_code, title))


def _denier(app: Starlette) -> Callable[[Request, DeniedError], Response]:
    def deny(request: Request, denied: DeniedError) -> Response:
        request.scope["app"] = app
        return _denied(request, denied)

    return deny


def _denied(request: Request, denied: Exception) -> Response:
    assert isinstance(denied, DeniedError)
    if denied.status == 401 and request.method == "GET" and not prefers_json(request):
        response = _to_login(request)
    else:
        response = _problem(request, Problem(denied.status, denied.why))
    response.headers.update(denied.headers)
    return response


def _to_login(request: Request) -> Response:
    """Return a link in a mail arrives without the cookie, which browsers send only from pages of this site: such a
    page loads itself again, and then has it."""
    if request.headers.get("sec-fetch-site") == "cross-site":
        return shown(request, "again.html")
    return RedirectResponse(f"{request.app.state.site.rules.prefix}/login", 303)
