"""One experiment: its report, every block, every trial with what fio itself printed."""

from __future__ import annotations

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from iodelta.decoding import from_json
from iodelta.errors import MeasureError
from iodelta.lab.account import Account as Journal
from iodelta.lab.folder import Started
from iodelta.lab.record import RECORD, Record, read_trial
from iodelta.report.formats.html.pages import page_of
from iodelta.report.formats.render import rendered
from iodelta.report.stories.explain import explain
from iodelta.study.experiment import Account
from iodelta.trial import Trial
from iodelta.web.folders import Place, place_of
from iodelta.web.layout import paged, shown, shown_report
from iodelta.web.live import Live
from iodelta.web.negotiation import JSON, document, json_response, prefers_json
from iodelta.web.results import experiment_of, folder_of
from iodelta.web.site import led_to
from iodelta.web.starting import started
from iodelta.web.underway import Underway, course_of, progress
from iodelta.workload.model import OUTPUTS

EACH = 200
"""Trials on one page."""


class TrialLine(msgspec.Struct, frozen=True):
    """One trial of an experiment."""

    number: int
    """Part of its address: ``/experiment/ID/trial/NUMBER``."""
    cell: str
    variant: str
    block: int
    """1 is the first."""
    position: int
    """Place inside its block, 1 first."""
    attempt: int
    """0, or how often its block was repeated before."""
    state: str
    """``finished``, ``running``, or why it cannot be used."""
    seconds: float
    """Wall time; 0 while it runs."""


class Trials(msgspec.Struct, frozen=True):
    """Every trial of an experiment, in the order of time."""

    experiment: str
    """Its identifier."""
    trials: tuple[TrialLine, ...]
    schema: str = "iodelta.web-trials/1"


class TrialAnswer(msgspec.Struct, frozen=True):
    """One trial as it was read from its raw files."""

    experiment: str
    """Its identifier."""
    trial: Trial
    schema: str = "iodelta.web-trial/1"


def report(request: Request) -> Response:
    """Return the report, judged again from raw data."""
    place = place_of(request)
    if place.kind == "fleet":
        return led_to(request, f"/fleet/{place.id}", 307)
    asks = "report" in request.query_params or prefers_json(request)
    if not asks and _live(request).goes_on(place):
        known = _live(request).underway(place, folder_of(place), wait=FIRST)
        return _shown(request, "live.html", place, known)
    seen = request.app.state.site.results.of(place)
    if prefers_json(request):
        return json_response(rendered(seen.result, "json", seen.detail))
    cells = _cells(seen.result) if isinstance(seen.result, Account) else ()
    page = page_of(seen.result, seen.charts, seen.detail)
    return shown_report(request, "experiment.html", page, place=place, cells=cells)


def row(request: Request) -> Response:
    """Its line of the overview."""
    place = place_of(request)
    summary = request.app.state.site.results.summary(place)
    return shown(request, "row.html", place=place, summary=summary)


def cell(request: Request) -> Response:
    """Return every block of one cell."""
    place = place_of(request)
    account = experiment_of(request.app.state.site.results.of(place))
    cells = _cells(account)
    number = request.path_params["number"]
    if not 1 <= number <= len(cells):
        raise HTTPException(404)
    lines = list(explain(account, cells[number - 1]))
    return shown(request, "cell.html", place=place, cell=cells[number - 1], lines=lines)


def trials(request: Request) -> Response:
    """Return all trials: a page has some of them, the document every one."""
    place = place_of(request)
    journal = Journal(folder_of(place).events())
    lines = tuple(_line(started, journal) for started in journal.started.values())
    if prefers_json(request):
        return document(Trials(place.id, lines))
    page_lines, number, pages = paged(request, lines, EACH)
    return shown(
        request,
        "trials.html",
        place=place,
        lines=page_lines,
        total=len(lines),
        number=number,
        pages=pages,
    )


def trial(request: Request) -> Response:
    """Return one trial with all its numbers."""
    place = place_of(request)
    folder = folder_of(place)
    journal = Journal(folder.events())
    started = _started(request, journal)
    read = read_trial(folder, started)
    if prefers_json(request):
        return document(TrialAnswer(place.id, read))
    earlier = [number for number in journal.finished if number < started.trial]
    later = [number for number in journal.finished if number > started.trial]
    near = (max(earlier, default=None), min(later, default=None))
    line = _line(started, journal)
    return shown(
        request,
        "trial.html",
        place=place,
        trial=read,
        line=line,
        near=near,
    )


def output(request: Request) -> Response:
    """Return what fio, or the command, printed: byte for byte."""
    folder = folder_of(place_of(request))
    started = _started(request, Journal(folder.events()))
    record = from_json(folder.read_raw(started.trial, RECORD), Record)
    kind = OUTPUTS[record.run.request.tool]
    data = folder.read_raw(started.trial, kind)
    return Response(
        data, media_type=JSON if kind.endswith(".json") else "text/plain; charset=utf-8"
    )


def _cells(account: Account) -> tuple[str, ...]:
    """Cells that have verdicts, in the order of the experiment."""
    judged = {verdict.cell for verdict in account.judgement.verdicts}
    names = (planned.name for planned in account.plan.experiment.cells)
    return tuple(name for name in names if name in judged)


def _started(request: Request, journal: Journal) -> Started:
    number = request.path_params["number"]
    if number not in journal.finished or number not in journal.started:
        raise HTTPException(404)
    return journal.started[number]


def _line(started: Started, journal: Journal) -> TrialLine:
    state, seconds = "running", 0.0
    finished = journal.finished.get(started.trial)
    if finished is not None:
        state, seconds = finished.problem or "finished", finished.seconds
    return TrialLine(
        number=started.trial,
        cell=started.cell,
        variant=started.variant,
        block=started.block + 1,
        position=started.position + 1,
        attempt=started.attempt,
        state=journal.failed.get(started.trial, "") or state,
        seconds=seconds,
    )


FIRST = 2.0
"""Seconds that the page waits for the first judgement."""

SHOWN = 20
"""Comparisons that are drawn; of more those still open come first."""


def now(request: Request) -> Response:
    """Return the part of the page that changes."""
    place = place_of(request)
    known = _live(request).underway(place, folder_of(place), wait=FIRST)
    if prefers_json(request):
        if known is None:
            raise MeasureError("nothing is known of this experiment yet")
        return document(known)
    return _shown(request, "now.html", place, known)


def _shown(
    request: Request, template: str, place: Place, known: Underway | None
) -> Response:
    line, rows = "", []
    if known is not None:
        line = progress(known)
        rows = [
            (comparison, course_of(comparison, known.most, known.margin))
            for comparison in known.comparisons[:SHOWN]
        ]
    following = _live(request).following(place)
    return shown(
        request,
        template,
        place=place,
        known=known,
        rows=rows,
        said=line,
        following=following,
        **started(request, place.path),
    )


def _live(request: Request) -> Live:
    live_runs: Live = request.app.state.site.results.live
    return live_runs
