"""Confirm an alert from its page, and measure two nights in one experiment: from nights to a plan, and its start."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from iodelta.api.confirming import folder_of, is_built, nights, variants
from iodelta.errors import MeasureError, RequestError
from iodelta.history.answers import Alert
from iodelta.history.confirm import measured_in, pair_question, question
from iodelta.web.comparing import side_of
from iodelta.web.drafts import Draft, Drafts
from iodelta.web.fields import PairForm, Signed
from iodelta.web.forms import posted
from iodelta.web.histories import Histories
from iodelta.web.launching import Launches
from iodelta.web.proposing import plan_of
from iodelta.web.series import alert_of, history_of
from iodelta.web.site import led_to

if TYPE_CHECKING:
    from iodelta.history.confirm import Measured


async def confirm(request: Request) -> Response:
    """Plan the confirmation of an alert."""
    await posted(request, "run", Signed)
    draft = await run_in_threadpool(_planned, request)
    return led_to(request, f"/measure/{draft.id}")


def _planned(request: Request) -> Draft:
    history, alert = history_of(request), alert_of(request)
    command = (
        f"the command line can: iodelta history confirm {alert.id} {history.named}"
    )
    good, bad = nights(alert, history.store)
    for night in (good, bad):
        _check_built(night, command)
    place = history.log.path.absolute().parent
    pair = variants(good, bad, (), place, lambda text: None)
    text, answer = plan_of(question(alert, bad, *pair, good.commit), command=command)
    drafts: Drafts = request.app.state.drafts
    user = request.scope["user"].name
    return drafts.add(
        user, "confirm", answer, text, alert=alert.id, back=f"/alert/{alert.id}"
    )


def _check_built(night: Measured, command: str) -> None:
    """Raises RequestError for a build that is gone: a page does not run the command that builds it."""
    if not is_built(night):
        raise RequestError(
            f"the build of {night.commit[:12] or 'this night'} is gone, and a page builds nothing",
            remedy=command,
        )


def start_confirmation(request: Request, draft: Draft, launches: Launches) -> str:
    """Start ``iodelta history confirm`` for the alert of a plan; its folder."""
    history = history_of(request)
    alert = history.alert(draft.alert)
    if alert is None:
        raise RequestError("this alert is gone", place=draft.alert)
    folder = folder_of(alert, history.log)
    if launches.runs(str(folder)):
        raise MeasureError("it is being confirmed already", place=alert.id)
    words = ("history", "confirm", alert.id, *shlex.split(history.named))
    launches.start(folder, words, request.scope["user"].name)
    return str(folder)


async def measure_two(request: Request) -> Response:
    """Plan an experiment that measures the variants of two nights in the same blocks."""
    form = await posted(request, "run", PairForm)
    draft = await run_in_threadpool(_planned_pair, request, form)
    return led_to(request, f"/measure/{draft.id}")


def _planned_pair(request: Request, form: PairForm) -> Draft:
    history = history_of(request)
    a, b = (side_of(history, name) for name in (form.a, form.b))
    if (a.machine, a.cell, a.metric) != (b.machine, b.cell, b.metric):
        raise RequestError("these two differ in more than what was changed")
    first, second = (measured_in(side.folder, side.variant) for side in (a, b))
    for night in (first, second):
        _check_built(night, "measure it on the command line")
    text, answer = plan_of(pair_question(first, second, a.cell, a.metric))
    drafts: Drafts = request.app.state.drafts
    user = request.scope["user"].name
    back = f"/compare?a={a.series}-{a.experiment}&b={b.series}-{b.experiment}"
    return drafts.add(user, "run", answer, text, back=back)


def confirmation_of(request: Request, alert: Alert, history: Histories) -> str:
    """Return the address of the running experiment that confirms an alert; empty without one."""
    folder = str(folder_of(alert, history.log))
    launches: Launches = request.app.state.launches
    place = request.app.state.site.folders.at(folder)
    if place is None or not launches.runs(folder):
        return ""
    return f"/experiment/{place.id}"
