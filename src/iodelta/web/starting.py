"""Start from the page: compose an experiment, see its plan, start it, end it. Nothing starts before its plan was seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from iodelta.errors import IodeltaError, RequestError
from iodelta.lab.folder import JOURNAL
from iodelta.machine import LocalMachine
from iodelta.report.formats.html.result import page_of
from iodelta.web.asked import COLUMNS, DEFAULTS, MODES, ROWS, composed
from iodelta.web.confirming import start_confirmation
from iodelta.web.drafts import Draft, Drafts
from iodelta.web.fields import ExperimentForm, Signed, given
from iodelta.web.folders import place_of
from iodelta.web.forms import posted
from iodelta.web.held import ROWS as CONDITIONS
from iodelta.web.launching import Launches
from iodelta.web.layout import shown, shown_report
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.offers import Place, engines_here, knobs, places
from iodelta.web.proposing import plan_of
from iodelta.web.security import DeniedError
from iodelta.web.site import Site, led_to, may_start

FIELDS = 80
"""In the form of an experiment, at most."""

EXAMPLES = ("fio.iodepth", "fio.ioengine", "fio.bs", "fio.numjobs", "fio.hipri")
"""Options of fio in which variants often differ."""


class FormAnswer(msgspec.Struct, frozen=True):
    """Why there is no plan."""

    problems: dict[str, str]
    """Field -> what is wrong with it."""
    schema: str = "iodelta.web-form/1"


class StartedAnswer(msgspec.Struct, frozen=True):
    """An experiment that was started, or is about to."""

    folder: str
    """Where it is measured."""
    experiment: str
    """Part of its address; empty until the folder is there."""
    printed: str
    """The end of what it printed."""
    running: bool
    schema: str = "iodelta.web-started/1"


def own_place(request: Request) -> Path:
    """Return the directory in which experiments are started."""
    site: Site = request.app.state.site
    return site.folders.roots[0]


def form(request: Request) -> Response:
    """Return the empty form, or the one that a plan was made of."""
    _may(request)
    identifier = request.query_params.get("from", "")
    draft = _drafts(request).get(identifier, request.scope["user"].name)
    fields = draft.fields if draft else {}
    return _form(request, fields or DEFAULTS, {})


async def propose(request: Request) -> Response:
    """Make a plan of the form, or say at each field what is wrong with it."""
    asked = await posted(request, "run", ExperimentForm, FIELDS)
    fields = given(asked)
    if asked.look:
        shown_again = {**fields, "look": "1"}
        return await run_in_threadpool(_form, request, shown_again, {})
    return await run_in_threadpool(_proposed, request, fields)


def _proposed(request: Request, fields: Mapping[str, str]) -> Response:
    form_read = composed(fields, places(LocalMachine(), own_place(request)))
    if form_read.problems:
        return _refused(request, fields, form_read.problems)
    try:
        text, answer = plan_of(form_read.text)
    except IodeltaError as error:
        return _refused(request, fields, {_field_of(error, fields): error.sentence})
    user = request.scope["user"].name
    draft = _drafts(request).add(
        user, "run", answer, text, back="/measure", fields=fields
    )
    return led_to(request, f"/measure/{draft.id}")


def _refused(
    request: Request, fields: Mapping[str, str], problems: dict[str, str]
) -> Response:
    """Return what is wrong with the fields: a document, or the form with a message at each field."""
    if prefers_json(request):
        return document(FormAnswer(problems), 422)
    return _form(request, fields, problems, 422)


def _field_of(error: IodeltaError, fields: Mapping[str, str]) -> str:
    """Return the field that a message of a parser, a knob or fio is about."""
    rows = {
        fields.get(f"setting-{number}", ""): number for number in range(1, ROWS + 1)
    }
    if error.place in rows:
        return f"setting-{rows[error.place]}"
    if error.place == fields.get("target"):
        return "target"
    loads = {
        f"condition {fields.get(f'condition-{row}', '') or f'condition-{row}'}": row
        for row in range(1, CONDITIONS + 1)
    }
    if error.place in loads:
        return f"load-{loads[error.place]}"
    if "may write past" in error.what:
        return "size"
    if "fio does not accept" in error.what:
        return "workload"
    return "form"


def _form(
    request: Request,
    fields: Mapping[str, str],
    problems: Mapping[str, str],
    status: int = 200,
) -> Response:
    machine = LocalMachine()
    offered = places(machine, own_place(request))
    chosen = _chosen(offered, fields)
    settings = knobs(machine, chosen)
    names = [info.name for info in settings]
    context: dict[str, Any] = {
        "fields": defaultdict(str, fields),
        "problems": problems,
        "places": offered,
        "chosen": chosen,
        "settings": settings,
        "names": [*names, *EXAMPLES],
        "engines": engines_here(machine),
        "modes": MODES,
        "columns": range(1, COLUMNS + 1),
        "rows": range(1, ROWS + 1),
        "conditions": range(1, CONDITIONS + 1),
    }
    return shown(request, "measure.html", status, **context)


def _chosen(offered: tuple[Place, ...], fields: Mapping[str, str]) -> Place:
    by_path = {place.path: place for place in offered}
    return by_path.get(fields.get("target", ""), offered[0])


def plan(request: Request) -> Response:
    """Return the plan, before anything starts; afterwards the way to what is measured."""
    _may(request)
    draft = _draft(request)
    if draft.folder:
        return _begun(request, draft)
    if prefers_json(request):
        return document(draft.answer)
    return shown_report(request, "plan.html", page_of(draft.answer, ()), draft=draft)


def _begun(request: Request, draft: Draft) -> Response:
    """The run appears once its folder is there; one that never makes it says why."""
    site: Site = request.app.state.site
    launches = _launches(request)
    is_there = (Path(draft.folder) / JOURNAL).exists()
    place = site.folders.at(draft.folder) if is_there else None
    running = launches.runs(draft.folder)
    if prefers_json(request):
        printed = launches.printed(draft.folder)
        identifier = "" if place is None else place.id
        return document(StartedAnswer(draft.folder, identifier, printed, running))
    if place is not None:
        return led_to(request, f"/experiment/{place.id}")
    return shown(
        request,
        "starting.html",
        200 if running else 422,
        draft=draft,
        running=running,
        printed=launches.printed(draft.folder),
    )


async def start(request: Request) -> Response:
    """Start what was planned."""
    await posted(request, "run", Signed)
    draft = await run_in_threadpool(_start, request)
    return led_to(request, f"/measure/{draft.id}")


def _start(request: Request) -> Draft:
    drafts, launches = _drafts(request), _launches(request)
    user = request.scope["user"].name
    with drafts.lock:
        draft = _draft(request)
        if draft.folder:
            return draft
        if draft.kind == "confirm":
            folder = start_confirmation(request, draft, launches)
        else:
            new = launches.new_folder()
            words = ("run", str(launches.file_of(new)), "--folder", str(new))
            launches.start(new, words, user, draft.text)
            folder = str(new)
        return drafts.started(draft, folder)


async def cancel(request: Request) -> Response:
    """End a run that the site started, as Ctrl-C does: its trials are kept, and its settings are restored."""
    await posted(request, "run", Signed)
    place = await run_in_threadpool(place_of, request)
    if not await run_in_threadpool(_launches(request).cancel, place.path):
        raise DeniedError(409, "this page did not start it, or it has ended")
    return led_to(request, f"/experiment/{place.id}")


def may_cancel(request: Request, folder: str) -> bool:
    """Return whether this user may end the run in a folder from its page."""
    launches = _launches(request)
    return (
        may_start(request)
        and launches.get(folder) is not None
        and launches.runs(folder)
    )


def started_by(request: Request, folder: str) -> str:
    """Return the user who started it from a page; empty if it was not, or if this server has no logins."""
    launch = _launches(request).get(folder)
    return "" if launch is None else launch.by


def _may(request: Request) -> None:
    if not may_start(request):
        raise DeniedError(
            403,
            "to start anything the server needs `iodelta serve --write`, and you the role run",
        )


def _draft(request: Request) -> Draft:
    draft = _drafts(request).get(request.path_params["id"], request.scope["user"].name)
    if draft is None:
        raise RequestError(
            "this plan has expired",
            remedy="plan it again; a plan is kept for an hour, until the server ends",
        )
    return draft


def _drafts(request: Request) -> Drafts:
    drafts: Drafts = request.app.state.drafts
    return drafts


def _launches(request: Request) -> Launches:
    launches: Launches = request.app.state.launches
    return launches
