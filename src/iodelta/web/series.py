"""A history in pages: the matrix of all series, and one series with every night."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from statistics import median
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from iodelta.history.answers import Alert, Candidate, HistorySeries, Note
from iodelta.history.courses import Course, scale_of
from iodelta.history.placebo import against
from iodelta.history.services import OPENMETRICS, Z95
from iodelta.report.formats.charts.course import charts_of
from iodelta.report.formats.charts.model import Figure
from iodelta.report.formats.html.write import safe_json
from iodelta.report.stories.course import of_courses, valued
from iodelta.study.words import percent
from iodelta.web.histories import Histories, SeriesLine
from iodelta.web.layout import shown, templates, when
from iodelta.web.negotiation import document, prefers_json
from iodelta.web.security import DeniedError
from iodelta.web.site import Site

NEWEST = 100
"""Nights in the table of a series; ``?nights=all`` has all."""

BIGGEST = 1 << 63
"""Numbers of series are smaller."""

DRAWN = ("t", "value", "low", "high", "night", "build", "said")
"""What the script of the page needs of each point."""

PICTURED = 2000
"""Points up to which the server draws a series itself."""

TOGETHER = 6
"""Series in one graph: as many as have colours of their own."""


class Epoch(msgspec.Struct, frozen=True):
    """Another epoch of the machine."""

    t: float
    """Unix seconds of its first night."""
    differs: tuple[str, ...]
    """What differs from the one before."""


class SeriesAnswer(msgspec.Struct, frozen=True):
    """One series with what stands out in it."""

    id: str
    """Part of its address: ``/series/ID``."""
    series: HistorySeries
    by: str
    """What steps are searched in: ``ratio`` to the reference, or ``level``."""
    steps: tuple[Candidate, ...]
    """Oldest first; none is a verdict."""
    states: tuple[str, ...]
    """What is known of each step: its alert's state, name and decision."""
    epochs: tuple[Epoch, ...]
    """All but the first."""
    notes: tuple[Note, ...]
    """What people noted."""
    schema: str = "iodelta.web-series/1"


class Row(msgspec.Struct, frozen=True):
    """A line of the matrix: a cell on a machine."""

    machine: str
    cell: str
    series: dict[str, SeriesLine]
    """By the name of their column."""


def history_of(request: Request) -> Histories:
    """Return the history that is served."""
    site: Site = request.app.state.site
    if site.history is None:
        raise HTTPException(404)
    return site.history


def alert_of(request: Request) -> Alert:
    """Return the alert that the address names."""
    alert = history_of(request).alert(request.path_params["id"])
    if alert is None:
        raise HTTPException(404)
    return alert


def matrix(request: Request) -> Response:
    """Cells by variants and metrics."""
    board = history_of(request).board()
    if prefers_json(request):
        return document(board)
    words = request.query_params.get("only", "")
    wanted = [line for line in board.series if _has_all(line, words.split())]
    columns, rows = _rows(wanted)
    return shown(
        request,
        "matrix.html",
        board=board,
        columns=columns,
        rows=rows,
        only=words,
        spark=spark,
        against=against,
    )


def moment(text: str, otherwise: float) -> float:
    """Unix seconds of a time in UTC. Raises DeniedError."""
    if not text:
        return otherwise
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise DeniedError(400, "not a time; write it as 2026-11-22T02:00") from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()


def graph(request: Request) -> Response:
    """Return several series in one picture, each against its own median: words, measure, variant and range are in the
    address."""
    asked = {
        name: request.query_params.get(name, "")
        for name in ("only", "measure", "variant", "from", "to")
    }
    begin, end = moment(asked["from"], -math.inf), moment(asked["to"], math.inf)
    history = history_of(request)
    board = history.board()
    wanted = [
        line
        for line in board.series
        if _has_all(line, asked["only"].split())
        and asked["measure"] in ("", line.metric)
        and asked["variant"] in ("", line.variant)
    ]
    numbers = [int(line.id) for line in wanted[:TOGETHER]]
    drawn_series = []
    for line in history.store.lines(numbers) if numbers else ():
        rises = -1.0 if line.better == "higher" else 1.0
        by_ratio = all(point.r is not None for point in line.points)
        rows = [
            (point.t, rises * (point.r or 0.0) if by_ratio else point.y)
            for point in line.points
            if begin <= point.t <= end
        ]
        if rows:
            middle = median(value for _, value in rows)
            drawn_series.append((line, [(t, value - middle) for t, value in rows]))
    times = [t for _, rows in drawn_series for t, _ in rows] or [0.0]
    ends = [scale_of([value for _, value in rows]) for _, rows in drawn_series] or [
        (0.0, 0.0)
    ]
    low, high = min(end for end, _ in ends) - 0.005, max(end for _, end in ends) + 0.005
    first, span = min(times), max(times) - min(times) or 1.0
    curves = [
        (
            line,
            " ".join(
                f"{60 + 640 * (t - first) / span:.1f},{min(max(280 - 260 * (value - low) / (high - low), 4), 296):.1f}"
                for t, value in rows
            ),
        )
        for line, rows in drawn_series
    ]
    return shown(
        request,
        "graph.html",
        asked=asked,
        curves=curves,
        left_out=len(wanted) - len(numbers),
        measures=sorted({line.metric for line in board.series}),
        variants=sorted({line.variant for line in board.series}),
        ends=(
            percent(math.expm1(low), 0.001),
            percent(math.expm1(high), 0.001),
            first,
            max(times),
        ),
    )


def metrics(request: Request) -> Response:
    """Return the newest values for Prometheus."""
    return Response(history_of(request).metrics(), media_type=OPENMETRICS)


def _has_all(line: SeriesLine, words: Iterable[str]) -> bool:
    name = _name(line)
    return all(word in name for word in words)


def _name(line: SeriesLine) -> str:
    return " ".join((line.machine, line.cell, line.variant, line.metric))


def _rows(lines: Iterable[SeriesLine]) -> tuple[list[str], list[Row]]:
    """Return names of columns, and rows; two series of one name differ in their options, the newer one stands."""
    ordered = sorted(lines, key=lambda line: (line.machine, line.cell, line.newest))
    columns = sorted({_column(line) for line in ordered})
    rows = []
    for (machine, cell), alike in groupby(
        ordered, key=lambda line: (line.machine, line.cell)
    ):
        rows.append(Row(machine, cell, {_column(line): line for line in alike}))
    return columns, rows


def _column(line: SeriesLine) -> str:
    return f"{line.variant} {line.metric}"


def spark(values: Sequence[float], width: float = 120.0, height: float = 24.0) -> str:
    """Return the points of a line through ``values``, as the attribute of a drawing has them."""
    if not values:
        return ""
    low, high = min(values), max(values)
    room = (high - low) or 1.0
    step = width / max(len(values) - 1, 1)
    heights = [
        height - 2 - (height - 4) * (value - low) / room if high > low else height / 2
        for value in values
    ]
    return " ".join(f"{at * step:.1f},{y:.1f}" for at, y in enumerate(heights))


def course_of(request: Request) -> Course:
    """Return the series that the address names."""
    number = request.path_params["number"]
    course = history_of(request).course(number) if number < BIGGEST else None
    if course is None:
        raise HTTPException(404)
    return course


def series(request: Request) -> Response:
    """Return one series: drawn, in words, night by night."""
    course = course_of(request)
    if prefers_json(request):
        return document(answer(course))
    ((_, figures),) = charts_of([course])
    points = course.line.points[::-1]
    shown_points = (
        points if request.query_params.get("nights") == "all" else points[:NEWEST]
    )
    table = dict(
        zip([point.experiment for point in points], _table(figures)[::-1], strict=True)
    )
    site: Site = request.app.state.site
    rows = history_of(request).store.experiments(
        [point.experiment for point in shown_points]
    )
    folders = {row["id"]: row["folder"] for row in rows}
    places = {
        point.experiment: site.folders.at(folders[point.experiment])
        for point in shown_points
    }
    story = of_courses([course], len(points))
    return shown(
        request,
        "series.html",
        course=course,
        figures=figures,
        data=safe_json([_drawn(figure, course) for figure in figures]),
        story=story,
        points=shown_points,
        more=len(points) - len(shown_points),
        table=table,
        heads=figures[-1].head[1:],
        places=places,
        number=course.line.key.number,
        pictured=len(points) <= PICTURED,
    )


def _table(figures: Sequence[Figure]) -> Sequence[Sequence[str]]:
    return figures[-1].table


def _drawn(figure: Figure, course: Course) -> dict[str, Any]:
    """Return a figure for the script of the page."""
    shown_points = [
        point
        for point in course.line.points
        if not figure.name.endswith("ratio") or point.r is not None
    ]
    columns = {name: [row[name] for row in figure.rows] for name in DRAWN}
    return {
        "name": re.sub(r"^course-\d+-", "", figure.name),
        "y": figure.texts["y"],
        "points": {
            **columns,
            "experiment": [point.experiment for point in shown_points],
        },
        **{name: figure.extra[name] for name in ("steps", "flats", "epochs", "notes")},
    }


def answer(course: Course) -> SeriesAnswer:
    """Return the series as a document."""
    line = course.line
    history_series = HistorySeries(
        line.key.machine,
        line.cell,
        line.variant,
        line.key.metric,
        line.unit,
        line.better,
        line.points,
    )
    epochs = tuple(Epoch(epoch.t, epoch.differs) for epoch in course.epochs)
    states = tuple(standing.said for standing in course.standings)
    return SeriesAnswer(
        str(line.key.number),
        history_series,
        course.by,
        course.steps,
        states,
        epochs,
        course.notes,
    )


def picture(request: Request) -> Response:
    """Return the chart as the server draws it, for readers without JavaScript."""
    return Response(drawn(course_of(request)), media_type="image/svg+xml")


def drawn(course: Course) -> str:
    """Return the newest nights of a series as a small picture: points with their intervals of 95 %, the range of each
    step, and where epochs begin."""
    rows = []
    for point in course.line.points[-PICTURED:]:
        value = course.shown(point)
        error = point.r_se if course.by == "ratio" else point.se
        if value is not None:
            rows.append((point.t, value, Z95 * (error or 0.0)))
    low, high = scale_of([value for _, value, _ in rows])
    room = 0.1 * (high - low) or 0.01
    low, high = low - room, high + room
    first = rows[0][0] if rows else 0.0
    last = max(rows[-1][0], first + 1.0) if rows else 1.0

    def x(t: float) -> str:
        return f"{60 + 640 * (t - first) / (last - first):.1f}"

    def y(value: float) -> str:
        return f"{min(max(180 - 160 * (value - low) / (high - low), 4), 196):.1f}"

    if course.by == "ratio":
        ends = [percent(math.expm1(end), 0.001) for end in (low, high)]
    else:
        ends = [valued(end, course.line.unit) for end in (low, high)]
    text: str = (
        templates()
        .get_template("chart.svg")
        .render(
            x=x,
            y=y,
            rows=rows,
            first=first,
            last=last,
            ends=ends,
            spans=[
                sorted((step.last_good.t, step.first_bad.t)) for step in course.steps
            ],
            epochs=[epoch.t for epoch in course.epochs],
            name=course.name,
            when=when,
        )
    )
    return text
