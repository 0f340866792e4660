"""Two points of a history side by side: a verdict where one experiment has both, else what would give one."""

from __future__ import annotations

import math
import re

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from iodelta.errors import IodeltaError, pasted
from iodelta.history.services import Z95
from iodelta.report.formats.charts.model import ends_of
from iodelta.report.stories.course import day, valued
from iodelta.study.experiment import Account
from iodelta.study.words import interval, percent
from iodelta.verdict import Verdict
from iodelta.web.folders import Place
from iodelta.web.histories import Histories
from iodelta.web.layout import shown
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.series import history_of
from iodelta.web.site import Site, may_start


class Side(msgspec.Struct, frozen=True):
    """One point."""

    series: str
    """Part of the address of its series: ``/series/ID``."""
    experiment: str
    """Identifier of its night."""
    t: float
    """Unix seconds of that night."""
    machine: str
    cell: str
    variant: str
    metric: str
    build: str
    """The commit that was measured, or its name; empty where it is not known."""
    value: str
    """Its number, for people."""
    interval: str
    """Of 95 %, from the blocks of this night alone; empty where it is not known."""
    y: float
    """Mean logarithm of the blocks' values."""
    se: float
    """Its standard error."""
    folder: str
    """Where its experiment was when it was added."""


class Compared(msgspec.Struct, frozen=True):
    """Two points."""

    a: Side
    b: Side
    interleaved: bool
    """Whether one experiment measured both, in the same blocks."""
    word: str
    """The verdict of that experiment on the two variants; empty where there is none."""
    sentence: str
    """What can be said."""
    change: float | None
    """b over a less 1, as it was measured; null where the two are not numbers of one thing."""
    low: float | None = None
    """Of its interval: of the verdict; null where there is none."""
    high: float | None = None
    commands: tuple[str, ...] = ()
    """What measures both in one experiment, where it is known."""
    schema: str = "iodelta.web-compared/1"


def compare(request: Request) -> Response:
    """``/compare?a=SERIES-EXPERIMENT&b=SERIES-EXPERIMENT``."""
    history, site = history_of(request), request.app.state.site
    a, b = (side_of(history, request.query_params.get(name, "")) for name in ("a", "b"))
    places = [site.folders.at(side.folder) for side in (a, b)]
    is_alike = (a.machine, a.cell, a.metric) == (b.machine, b.cell, b.metric)
    change = math.expm1(b.y - a.y)
    if a.experiment == b.experiment:
        verdict = (
            _verdict(site, a, b, places[0])
            if (a.cell, a.metric) == (b.cell, b.metric)
            else None
        )
        if verdict is None:
            sentence = "One experiment measured both, but it has no verdict of one against the other."
            comparison = Compared(a, b, True, "", sentence, change)
        else:
            sentence = f"{verdict.variant} against {verdict.baseline}: {verdict.word}"
            size, low, high = ends_of(verdict.change)
            if size is not None:
                sentence += f", {percent(size, 0.0005)} ({interval(low, high)})"
            comparison = Compared(
                a, b, True, verdict.word, f"{sentence}.", size, low, high
            )
    elif not is_alike:
        sentence = "Not interleaved: these two differ in more than what was changed, and no number compares them."
        comparison = Compared(a, b, False, "", sentence, None)
    else:
        sentence = (
            f"Not interleaved: {day(a.t)} and {day(b.t)} were measured apart, so their difference contains whatever "
            "else the machine did. It is not a verdict."
        )
        # An alert whose step lies between the two nights is confirmed by measuring both of its builds.
        first, last = sorted((a.t, b.t))
        near = [
            alert.id
            for alert in history.board().alerts
            if alert.last_good is not None
            and alert.first_bad is not None
            and first <= alert.last_good.t
            and alert.first_bad.t <= last
            and a.series in {str(step.series) for step in alert.steps}
        ]
        command = f"iodelta compare {pasted(a.folder)} {pasted(b.folder)}"
        if near:
            command = f"iodelta history confirm {near[0]} {history.named}"
        comparison = Compared(a, b, False, "", sentence, change, commands=(command,))
    if prefers_json(request):
        return document(comparison)
    return shown(
        request,
        "compare.html",
        found=comparison,
        sides=tuple(zip((a, b), places, strict=True)),
        may_measure=may_start(request) and is_alike and a.experiment != b.experiment,
    )


def side_of(history: Histories, name: str) -> Side:
    """Return the point ``SERIES-EXPERIMENT`` of a history. Raises HTTPException where there is none."""
    number, _, experiment = name.partition("-")
    course = (
        history.course(int(number)) if re.fullmatch("[0-9]{1,19}", number) else None
    )
    points = (
        []
        if course is None
        else [point for point in course.line.points if point.experiment == experiment]
    )
    if course is None or not points:
        raise HTTPException(404)
    line, point = course.line, points[0]
    ends = [valued(point.y + sign * Z95 * point.se, line.unit) for sign in (-1, 1)]
    (row,) = history.store.experiments([experiment])
    return Side(
        number,
        experiment,
        point.t,
        line.key.machine,
        line.cell,
        line.variant,
        line.key.metric,
        point.describe or point.commit[:12],
        valued(point.y, line.unit),
        "" if "no-error" in point.flags else " .. ".join(ends),
        point.y,
        point.se,
        row["folder"],
    )


def _verdict(site: Site, a: Side, b: Side, place: Place | None) -> Verdict | None:
    """Return what their experiment says of the two, in either direction; none where it judged neither against the
    other."""
    try:
        account = site.results.of(place).result if place is not None else None
    except IodeltaError:
        return None
    for verdict in account.judgement.of(a.cell) if isinstance(account, Account) else ():
        if verdict.metric.name == a.metric and {verdict.baseline, verdict.variant} == {
            a.variant,
            b.variant,
        }:
            return verdict
    return None
