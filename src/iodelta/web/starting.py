"""Start from the page: compose an experiment, see its plan, start it, end it. Nothing starts before its plan was seen.
The same of an alert, whose builds are measured again, and of two nights."""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from iodelta.api.confirming import folder_of, is_built, nights, variants
from iodelta.api.planning import looked
from iodelta.bundle.dangers import dangers, dangers_of_loads
from iodelta.errors import IodeltaError, MeasureError, RefusedError, RequestError
from iodelta.experiment import overridden, parse
from iodelta.history.confirm import measured_in, pair_question, question
from iodelta.lab.folder import JOURNAL
from iodelta.machine import LocalMachine
from iodelta.report.formats.html.pages import page_of
from iodelta.study.planned import PlanAnswer
from iodelta.web.asked import (
    COLUMNS,
    CONDITIONS,
    DEFAULTS,
    MODES,
    ROWS,
    composed,
    engines_here,
    knobs,
    places,
)
from iodelta.web.comparing import side_of
from iodelta.web.fields import ExperimentForm, PairForm, Signed, given, posted
from iodelta.web.folders import place_of
from iodelta.web.layout import shown, shown_report
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.security import DeniedError
from iodelta.web.series import alert_of, history_of
from iodelta.web.site import led_to, may_start

if TYPE_CHECKING:
    from iodelta.history.confirm import Measured

KEPT = 3600.0
"""Seconds that a plan waits."""

MOST = 200
"""Plans at once; the oldest gives way."""

FIELDS = 80
"""In the form of an experiment, at most."""

EXAMPLES = ("fio.iodepth", "fio.ioengine", "fio.bs", "fio.numjobs", "fio.hipri")
"""Options of fio in which variants often differ."""

COMMAND_LINE = "the command line can: iodelta run"


class Draft(msgspec.Struct, frozen=True):
    """A plan, and what starting it does. Planning changes nothing on the machine."""

    owner: str
    text: str
    """The experiment file."""
    answer: PlanAnswer
    back: str
    """The page that it was made on."""
    alert: str = ""
    """The alert that it confirms; empty for a plain run."""
    fields: Mapping[str, str] = {}
    """The form that it was made of; empty where it was made of nights."""
    folder: str = ""
    """Where it is measured, once it was started."""
    id: str = msgspec.field(default_factory=lambda: secrets.token_urlsafe(9))
    """Unguessable."""
    at: float = msgspec.field(default_factory=time.monotonic)


class Drafts:
    """All plans, in memory: planning again takes a second."""

    def __init__(self) -> None:
        self._drafts: OrderedDict[str, Draft] = OrderedDict()
        self.lock = threading.Lock()
        """Held while a plan is started, so that a second click does not start it twice."""

    def keep(self, draft: Draft) -> Draft:
        """Keep a plan, or what became of it."""
        self._drafts[draft.id] = draft
        while len(self._drafts) > MOST:
            self._drafts.popitem(last=False)
        return draft

    def get(self, identifier: str, owner: str) -> Draft | None:
        """Return the plan with that identifier; None if it is gone or belongs to another user."""
        draft = self._drafts.get(identifier)
        if draft is None or draft.owner != owner or time.monotonic() - draft.at > KEPT:
            return None
        return draft


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


def plan_of(text: str, command: str = COMMAND_LINE) -> tuple[str, PlanAnswer]:
    """Return the text with the seed of its plan, so that what starts is what was shown; and the plan, by the functions
    of ``iodelta run --dry-run``. Nothing is changed.

    ``command`` says what does what a page may not. Raises RequestError, RefusedError, MeasureError.
    """
    experiment = parse(text, "this experiment", numbered=False, strict=True)
    booted = experiment.boot_knobs
    if booted or experiment.clock != "wall":
        what = "from a page nothing is booted"
        raise RequestError(what, place="".join(booted[:1]), remedy=command)
    if experiment.machines:
        raise RequestError(
            f"a page starts experiments on this machine alone, not on {experiment.machines[0]}",
            remedy=command,
        )
    # Background loads that are fio jobs on the target are judged by their options.
    plain = tuple(
        replace(condition, background_fio=()) for condition in experiment.conditions
    )
    listed = (
        *dangers(replace(experiment, conditions=plain)),
        *dangers_of_loads(experiment),
    )
    if experiment.prepare is not None or listed:
        said = f"{listed[0].what}: {listed[0].why}" if listed else "it prepares a disk"
        place = listed[0].place if listed else "[prepare]"
        raise RequestError(
            f"from a page this is not started: {said}", place=place, remedy=command
        )
    plan = looked([LocalMachine()], experiment, leave_out=False)
    survey = plan.seen[0]
    if plan.refused is not None:
        raise plan.refused
    if survey.writes and not survey.scratch:
        raise RefusedError(
            "a page never overwrites anything but scratch files of iodelta's own",
            place=survey.target.path,
            remedy=command,
        )
    fixed = overridden(text, design={"seed": plan.plan.seed})
    assert fixed is not None
    return fixed, plan.answer


def _may(request: Request) -> str:
    """Return the user. Raises DeniedError for one who may not start anything."""
    if not may_start(request):
        raise DeniedError(
            403,
            "to start anything the server needs `iodelta serve --write`, and you the role run",
        )
    name: str = request.scope["user"].name
    return name


def form(request: Request) -> Response:
    """Return the empty form, or the one that a plan was made of."""
    draft = request.app.state.drafts.get(
        request.query_params.get("from", ""), _may(request)
    )
    return _form(request, draft.fields if draft and draft.fields else DEFAULTS, {})


async def propose(request: Request) -> Response:
    """Make a plan of the form, or say at each field what is wrong with it."""
    asked = await posted(request, "run", ExperimentForm, FIELDS)
    fields = given(asked)
    if asked.look:
        return await run_in_threadpool(_form, request, {**fields, "look": "1"}, {})
    return await run_in_threadpool(_proposed, request, fields)


def _proposed(request: Request, fields: Mapping[str, str]) -> Response:
    own = request.app.state.site.folders.roots[0]
    form_read = composed(fields, places(LocalMachine(), own))
    problems = form_read.problems
    if not problems:
        try:
            draft = Draft(
                _may(request), *plan_of(form_read.text), "/measure", fields=fields
            )
            return _kept(request, draft)
        except IodeltaError as error:
            problems = {_field_of(error, fields): error.sentence}
    if prefers_json(request):
        return document(FormAnswer(problems), 422)
    return _form(request, fields, problems, 422)


def _kept(request: Request, draft: Draft) -> Response:
    """Keep a plan, and lead to its page."""
    request.app.state.drafts.keep(draft)
    return led_to(request, f"/measure/{draft.id}")


def _field_of(error: IodeltaError, fields: Mapping[str, str]) -> str:
    """Return the field that a message of a parser, a knob or fio is about."""
    about = {
        fields.get(f"setting-{row}", ""): f"setting-{row}" for row in range(1, ROWS + 1)
    }
    about[fields.get("target", "")] = "target"
    for row in range(1, CONDITIONS + 1):
        about[
            f"condition {fields.get(f'condition-{row}', '') or f'condition-{row}'}"
        ] = f"load-{row}"
    if error.place in about:
        return about[error.place]
    if "may write past" in error.what:
        return "size"
    return "workload" if "fio does not accept" in error.what else "form"


def _form(
    request: Request,
    fields: Mapping[str, str],
    problems: Mapping[str, str],
    status: int = 200,
) -> Response:
    machine = LocalMachine()
    offered = places(machine, request.app.state.site.folders.roots[0])
    chosen = {place.path: place for place in offered}.get(
        fields.get("target", ""), offered[0]
    )
    settings = knobs(machine, chosen)
    return shown(
        request,
        "measure.html",
        status,
        fields=defaultdict(str, fields),
        problems=problems,
        places=offered,
        chosen=chosen,
        settings=settings,
        names=[*(info.name for info in settings), *EXAMPLES],
        engines=engines_here(machine),
        modes=MODES,
        columns=range(1, COLUMNS + 1),
        rows=range(1, ROWS + 1),
        conditions=range(1, CONDITIONS + 1),
    )


def _draft(request: Request) -> Draft:
    draft: Draft | None = request.app.state.drafts.get(
        request.path_params["id"], _may(request)
    )
    if draft is None:
        raise RequestError(
            "this plan has expired",
            remedy="plan it again; a plan is kept for an hour, until the server ends",
        )
    return draft


def plan(request: Request) -> Response:
    """Return the plan, before anything starts; afterwards the way to what is measured. The run appears once its folder
    is there; one that never makes it says why."""
    draft, launches = _draft(request), request.app.state.launches
    if not draft.folder and prefers_json(request):
        return document(draft.answer)
    if not draft.folder:
        return shown_report(
            request, "plan.html", page_of(draft.answer, ()), draft=draft
        )
    is_there = (Path(draft.folder) / JOURNAL).exists()
    place = request.app.state.site.folders.at(draft.folder) if is_there else None
    running, printed = launches.runs(draft.folder), launches.printed(draft.folder)
    if prefers_json(request):
        return document(
            StartedAnswer(draft.folder, place.id if place else "", printed, running)
        )
    if place is not None:
        return led_to(request, f"/experiment/{place.id}")
    status = 200 if running else 422
    return shown(
        request, "starting.html", status, draft=draft, running=running, printed=printed
    )


async def start(request: Request) -> Response:
    """Start what was planned."""
    await posted(request, "run", Signed)
    return await run_in_threadpool(_start, request)


def _start(request: Request) -> Response:
    drafts, launches = request.app.state.drafts, request.app.state.launches
    with drafts.lock:
        draft = _draft(request)
        if draft.folder:
            return led_to(request, f"/measure/{draft.id}")
        if draft.alert:
            history = history_of(request)
            alert = history.alert(draft.alert)
            if alert is None:
                raise RequestError("this alert is gone", place=draft.alert)
            folder = folder_of(alert, history.log)
            if launches.runs(str(folder)):
                raise MeasureError("it is being confirmed already", place=alert.id)
            words = ["history", "confirm", alert.id, *shlex.split(history.named)]
            launches.start(folder, words, draft.owner)
        else:
            folder = launches.new_folder()
            words = ["run", str(launches.file_of(folder)), "--folder", str(folder)]
            launches.start(folder, words, draft.owner, draft.text)
        return _kept(request, replace(draft, folder=str(folder)))


async def cancel(request: Request) -> Response:
    """End a run that the site started, as Ctrl-C does: its trials are kept, and its settings are restored."""
    await posted(request, "run", Signed)
    place = await run_in_threadpool(place_of, request)
    if not await run_in_threadpool(request.app.state.launches.cancel, place.path):
        raise DeniedError(409, "this page did not start it, or it has ended")
    return led_to(request, f"/experiment/{place.id}")


async def confirm(request: Request) -> Response:
    """Plan the confirmation of an alert."""
    await posted(request, "run", Signed)
    return await run_in_threadpool(_confirmed, request)


def _confirmed(request: Request) -> Response:
    history, alert = history_of(request), alert_of(request)
    command = (
        f"the command line can: iodelta history confirm {alert.id} {history.named}"
    )
    good, bad = nights(alert, history.store)
    _check_built((good, bad), command)
    place = history.log.path.absolute().parent
    pair = variants(good, bad, (), place, lambda text: None)
    planned = plan_of(question(alert, bad, *pair, good.commit), command)
    return _kept(
        request, Draft(_may(request), *planned, f"/alert/{alert.id}", alert=alert.id)
    )


def _check_built(both: tuple[Measured, Measured], remedy: str) -> None:
    """Raises RequestError for a build that is gone: a page does not run the command that builds it."""
    for night in both:
        if not is_built(night):
            raise RequestError(
                f"the build of {night.commit[:12] or 'this night'} is gone, and a page builds nothing",
                remedy=remedy,
            )


async def measure_two(request: Request) -> Response:
    """Plan an experiment that measures the variants of two nights in the same blocks."""
    return await run_in_threadpool(
        _planned_pair, request, await posted(request, "run", PairForm)
    )


def _planned_pair(request: Request, asked: PairForm) -> Response:
    a, b = (side_of(history_of(request), name) for name in (asked.a, asked.b))
    if (a.machine, a.cell, a.metric) != (b.machine, b.cell, b.metric):
        raise RequestError("these two differ in more than what was changed")
    first, second = (measured_in(side.folder, side.variant) for side in (a, b))
    _check_built((first, second), "measure it on the command line")
    planned = plan_of(pair_question(first, second, a.cell, a.metric))
    back = f"/compare?a={a.series}-{a.experiment}&b={b.series}-{b.experiment}"
    return _kept(request, Draft(_may(request), *planned, back))


def started(request: Request, folder: str) -> dict[str, Any]:
    """Return who started the run in a folder from a page, empty for nobody; and whether this user may end it there."""
    launches = request.app.state.launches
    launch = launches.get(folder)
    may_cancel = may_start(request) and launch is not None and launches.runs(folder)
    return {"may_cancel": may_cancel, "started_by": "" if launch is None else launch.by}
