"""Two points of a history side by side: a verdict where one experiment has both, else what would give one."""

from __future__ import annotations

import math
import re

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from iodelta.errors import IodeltaError, pasted
from iodelta.history.answers import Alert
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
from iodelta.web.site import may_start

Z95 = 1.959963984540054


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
    low: float | None
    """Of its interval: of the verdict; null where there is none."""
    high: float | None
    commands: tuple[str, ...]
    """What measures both in one experiment, where it is known."""
    schema: str = "iodelta.web-compared/1"


def compare(request: Request) -> Response:
    """``/compare?a=SERIES-EXPERIMENT&b=SERIES-EXPERIMENT``."""
    history = history_of(request)
    a, b = (side_of(history, request.query_params.get(name, "")) for name in ("a", "b"))
    site = request.app.state.site
    places = [site.folders.at(side.folder) for side in (a, b)]
    comparison = _compared(a, b, _verdict(request, a, b, places[0]), history)
    if prefers_json(request):
        return document(comparison)
    return shown(
        request,
        "compare.html",
        found=comparison,
        sides=tuple(zip((a, b), places, strict=True)),
        may_measure=may_start(request) and _is_apart(a, b),
    )


def _is_apart(a: Side, b: Side) -> bool:
    """Return whether two nights measured one thing apart."""
    is_same = (a.machine, a.cell, a.metric) == (b.machine, b.cell, b.metric)
    return is_same and a.experiment != b.experiment


def side_of(history: Histories, name: str) -> Side:
    """Return the point ``SERIES-EXPERIMENT`` of a history. Raises HTTPException where there is none."""
    number, _, experiment = name.partition("-")
    if not re.fullmatch("[0-9]{1,19}", number):
        raise HTTPException(404)
    course = history.course(int(number))
    if course is None:
        raise HTTPException(404)
    line = course.line
    by_experiment = {point.experiment: point for point in reversed(line.points)}
    point = by_experiment.get(experiment)
    if point is None:
        raise HTTPException(404)
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


def _verdict(request: Request, a: Side, b: Side, place: Place | None) -> Verdict | None:
    """Return what their experiment says of the two, in either direction; none where they do not share one, or where it
    judged neither against the other."""
    if place is None or (a.experiment, a.cell, a.metric) != (
        b.experiment,
        b.cell,
        b.metric,
    ):
        return None
    try:
        account = request.app.state.site.results.of(place).result
    except IodeltaError:
        return None
    if not isinstance(account, Account):
        return None
    by_pair = {
        frozenset((verdict.baseline, verdict.variant)): verdict
        for verdict in account.judgement.of(a.cell)
        if verdict.metric.name == a.metric
    }
    return by_pair.get(frozenset((a.variant, b.variant)))


def _compared(
    a: Side, b: Side, verdict: Verdict | None, history: Histories
) -> Compared:
    if verdict is not None:
        sentence = f"{verdict.variant} against {verdict.baseline}: {verdict.word}"
        size, low, high = ends_of(verdict.change)
        if size is not None:
            sentence += f", {percent(size, 0.0005)} ({interval(low, high)})"
        return Compared(a, b, True, verdict.word, f"{sentence}.", size, low, high, ())
    if a.experiment == b.experiment:
        sentence = "One experiment measured both, but it has no verdict of one against the other."
        return Compared(a, b, True, "", sentence, _change(a, b), None, None, ())
    if (a.machine, a.cell, a.metric) != (b.machine, b.cell, b.metric):
        sentence = "Not interleaved: these two differ in more than what was changed, and no number compares them."
        return Compared(a, b, False, "", sentence, None, None, None, ())
    sentence = (
        f"Not interleaved: {day(a.t)} and {day(b.t)} were measured apart, so their difference contains whatever "
        "else the machine did. It is not a verdict."
    )
    commands = tuple(_commands(a, b, history))
    return Compared(a, b, False, "", sentence, _change(a, b), None, None, commands)


def _change(a: Side, b: Side) -> float:
    return math.expm1(b.y - a.y)


def _commands(a: Side, b: Side, history: Histories) -> list[str]:
    """Return an alert whose step lies between the two nights is confirmed by measuring both of its builds."""
    first, last = sorted((a.t, b.t))
    near = [
        alert
        for alert in history.board().alerts
        if _is_between(alert, a.series, first, last)
    ]
    if near:
        return [f"iodelta history confirm {near[0].id} {history.named}"]
    return [f"iodelta compare {pasted(a.folder)} {pasted(b.folder)}"]


def _is_between(alert: Alert, series: str, first: float, last: float) -> bool:
    if alert.last_good is None or alert.first_bad is None:
        return False
    is_within = first <= alert.last_good.t and alert.first_bad.t <= last
    return is_within and series in {str(step.series) for step in alert.steps}
