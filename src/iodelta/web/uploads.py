"""What ``show``, ``audit``, ``compare`` and ``report`` say of results that somebody sent, as pages."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from iodelta.api.foreign import audited, compared
from iodelta.bundle.packed import is_own, opened
from iodelta.lab.folder import CountFolder, DiskFolder
from iodelta.report.derived import charted
from iodelta.report.formats.charts.model import Charts
from iodelta.report.formats.html.pages import charts_of, charts_of_runs, page_of
from iodelta.report.formats.render import rendered
from iodelta.report.stories.story import Detail
from iodelta.study.paths import own_systems, read_all
from iodelta.study.runs import shown as shown_runs
from iodelta.web.fields import UploadForm, parsed
from iodelta.web.layout import shown_report
from iodelta.web.negotiation import json_response, prefers_json
from iodelta.web.security import DeniedError, User, check_form
from iodelta.web.shelf import Sent, Shelf, Upload
from iodelta.web.site import led_to

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result

FILES = 5000
"""In one upload."""

AT_ONCE = 2
"""Uploads that arrive at the same time."""

MARGIN = 0.01

KEPT = 12
"""Pages whose results are kept in memory."""

_Answer = tuple["Result", Charts, Detail]

_reading = threading.Lock()
_known: OrderedDict[tuple[str, str], _Answer] = OrderedDict()


async def take(request: Request) -> Response:
    """Keep what was sent, and lead to its first page. It changes nothing but a private directory of the server's."""
    user: User = request.scope["user"]
    shelf: Shelf = request.app.state.shelf
    if shelf.arriving >= AT_ONCE:
        raise DeniedError(
            503, "others send results now; try again", headers={"Retry-After": "5"}
        )
    shelf.arriving += 1
    try:
        async with request.form(max_files=FILES, max_fields=5) as form:
            texts = {name: text for name, text in form.items() if isinstance(text, str)}
            check_form(user, request.headers, texts.get("csrf", ""))
            files = [
                Sent(item.filename, item.size or 0, item.file)
                for item in form.getlist("files")
                if isinstance(item, UploadFile) and item.filename
            ]
            names = [file.name for file in files]
            known = parsed({**texts, "files": names}, UploadForm)
            earlier = shelf.get(known.with_, user.name)
            made = await run_in_threadpool(shelf.keep, files, user.name, earlier)
    finally:
        shelf.arriving -= 1
    return led_to(request, f"/upload/{made.id}")


def first(request: Request) -> Response:
    """Return the page that says most."""
    upload = _upload(request)
    return led_to(request, f"/upload/{upload.id}/{_views(upload)[0]}")


def page(request: Request) -> Response:
    """Return one of its pages."""
    upload, what = _upload(request), request.path_params["what"]
    views = _views(upload)
    if what not in views:
        raise HTTPException(404)
    result, charts, detail = _answer(upload, what)
    if prefers_json(request):
        response = json_response(rendered(result, "json", detail))
    else:
        made = page_of(result, charts, detail)
        response = shown_report(
            request,
            "upload.html",
            made,
            upload=upload.id,
            names=upload.names,
            what=what,
            views=views,
        )
    # The response without the server's own directory, which would mean nothing to the sender.
    body = bytes(response.body)
    for number in range(len(upload.paths)):
        body = body.replace(f"{upload.directory}/{number}/".encode(), b"")
    response.body = body
    response.headers["content-length"] = str(len(body))
    return response


def _upload(request: Request) -> Upload:
    upload: Upload | None = request.app.state.shelf.get(
        request.path_params["id"], request.scope["user"].name
    )
    if upload is None:
        raise HTTPException(404)
    return upload


def _views(upload: Upload) -> tuple[str, ...]:
    """Return the pages of an upload, first the one that says most."""
    if len(upload.paths) > 1:
        return ("compare", "show", "audit")
    if is_own(upload.paths[0]):
        return ("report", "show", "audit")
    return ("show", "audit", "compare")


def _answer(upload: Upload, what: str) -> _Answer:
    """One is read at a time: it takes a processor."""
    key = upload.id, what
    with _reading:
        if key not in _known:
            _known[key] = _MAKERS[what](upload.paths)
            while len(_known) > KEPT:
                _known.popitem(last=False)
        return _known[key]


def _reported(paths: tuple[str, ...]) -> _Answer:
    folder = opened(paths[0])
    if isinstance(folder, CountFolder | DiskFolder):
        return _shown(paths)
    account, charts = charted(folder)
    return account, charts, Detail(whole=True)


def _shown(paths: tuple[str, ...]) -> _Answer:
    layout, checked = read_all(paths)
    results = shown_runs(
        layout, checked, each=True, paths=paths, systems=own_systems(paths)
    )
    return results, charts_of_runs(layout), Detail()


def _audited(paths: tuple[str, ...]) -> _Answer:
    return audited(paths), (), Detail(whole=True)


def _compared(paths: tuple[str, ...]) -> _Answer:
    comparison, layouts = compared(paths, MARGIN)
    return comparison, charts_of(comparison, layouts, paths), Detail()


_MAKERS = {"report": _reported, "show": _shown, "audit": _audited, "compare": _compared}
