"""Alerts: those that wait for a decision, one in full, decisions and notes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from itertools import chain

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from iodelta.api.confirming import folder_of
from iodelta.history.alerts import is_asking, is_foreign
from iodelta.history.answers import Alert, HistoryScanAnswer
from iodelta.history.log import Annotated, Decided
from iodelta.report.alerts import command_and_verdict
from iodelta.report.formats.html.page import page
from iodelta.report.stories.alert import of_alert
from iodelta.web.fields import DecisionForm, NoteForm, posted
from iodelta.web.layout import shown, shown_report
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.security import DeniedError
from iodelta.web.series import alert_of, history_of, moment
from iodelta.web.site import led_to, may_start

WORDS = (
    ("investigating", "i", "somebody looks into it"),
    ("expected", "e", "the change is intended"),
    ("fixed", "f", "it was repaired"),
    ("wontfix", "w", "it stays"),
    ("noise", "n", "nothing changed"),
    ("ignored", "x", "not of interest"),
    ("new", "u", "undo the last decision"),
)
"""What can be decided, the key for it, and what it means."""


BROWSER = "in a browser"
"""Who decided, where nobody logs in."""


def triage(request: Request) -> Response:
    """Alerts that wait for a decision, then all others."""
    board, only = history_of(request).board(), request.query_params.get("only", "")
    shown_alerts = [alert for alert in board.alerts if _has_all(alert, only.split())]
    if prefers_json(request):
        return document(HistoryScanAnswer((), tuple(shown_alerts)))
    return shown(
        request,
        "triage.html",
        asking=[alert for alert in shown_alerts if is_asking(alert)],
        others=[alert for alert in shown_alerts if not is_asking(alert)],
        only=only,
        words=WORDS,
        behind=board.behind,
    )


def _has_all(alert: Alert, words: Iterable[str]) -> bool:
    """Return whether its series, state, decision, owner and bug contain all ``words``."""
    own = (alert.id, alert.kind, alert.state, alert.triage, alert.owner, alert.bug)
    text = " ".join(
        (*own, *chain.from_iterable(step.name for step in alert.steps), *alert.gone)
    )
    return all(word in text for word in words)


def alert(request: Request) -> Response:
    """Return one alert in full."""
    alert_here = alert_of(request)
    if prefers_json(request):
        return document(alert_here)
    story = of_alert(
        alert_here,
        *command_and_verdict(alert_here, history_of(request).store),
        history_of(request).named,
    )
    has_builds = (
        bool(alert_here.steps)
        and alert_here.kind != "machine"
        and not is_foreign(alert_here)
    )
    may_confirm = has_builds and may_start(request)
    confirmation = ""
    if may_confirm:
        folder = str(folder_of(alert_here, history_of(request).log))
        place = request.app.state.site.folders.at(folder)
        if place is not None and request.app.state.launches.runs(folder):
            confirmation = f"/experiment/{place.id}"
    return shown_report(
        request,
        "alert.html",
        page(story, None, ()),
        alert=alert_here,
        words=WORDS,
        may_confirm=may_confirm,
        confirmation=confirmation,
    )


async def decide(request: Request) -> Response:
    """Record what somebody decided."""
    form = await posted(request, "triage", DecisionForm)
    if form.bug and not form.bug.startswith(("https://", "http://")):
        raise DeniedError(400, "not the address of a bug report")
    who = request.scope["user"].name or BROWSER
    own = (form.word, form.why.strip(), who, form.owner.strip(), form.bug)

    def record() -> None:
        history = history_of(request)
        names = (alert_of(request).id, *form.also.split())
        if any(history.alert(name) is None for name in names):
            raise HTTPException(404)
        history.write(*(Decided(time.time(), name, *own) for name in names))

    await run_in_threadpool(record)
    if prefers_json(request):
        return document(await run_in_threadpool(alert_of, request))
    return led_to(request, _back(form.back))


async def annotate(request: Request) -> Response:
    """Record a note."""
    form = await posted(request, "triage", NoteForm)
    who = request.scope["user"].name or BROWSER
    text, commit, at = (part.strip() for part in (form.text, form.commit, form.at))
    if not text:
        raise DeniedError(400, "a note without text")
    if commit and not re.fullmatch(r"[0-9a-f]{7,64}", commit):
        raise DeniedError(400, "not the hash of a commit: 7 to 64 of 0-9 and a-f")
    if commit and at:
        raise DeniedError(400, "a note is at a time or at a commit")
    entry = Annotated(
        time.time(), text, None if commit else moment(at, time.time()), commit, who
    )
    await run_in_threadpool(history_of(request).write, entry)
    return led_to(request, _back(form.back))


def _back(back: str) -> str:
    """Return the page that the form was on; the list of alerts for any other address."""
    if re.fullmatch(r"/(triage|series/-?\d{1,20}|alert/[0-9a-f]{1,64})", back):
        return back
    return "/triage"
