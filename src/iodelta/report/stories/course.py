"""A history as a story: its series with the newest values, the steps and their ranges, and the epochs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from iodelta.history.alerts import Standing
from iodelta.history.answers import Candidate, HistoryPoint, Note
from iodelta.history.courses import Course
from iodelta.history.placebo import against
from iodelta.plural import plural
from iodelta.report.stories.story import Cell, Row, Story, Table, section
from iodelta.study.words import inert, percent, quantity

MOST = 24
"""Series that get charts; those with the clearest steps, where there are more."""


def of_courses(courses: Sequence[Course], experiments: int) -> Story:
    """Return the series of a history."""
    return Story(
        question="",
        answer=headline(courses, experiments),
        lead=section("Steps", map(inert, _steps(courses))),
        tables=(_table(courses),),
        sections=(
            *section("Notes", noted(courses)),
            *section("Epochs", map(inert, _epochs(courses))),
            *section("How to read it", _method(courses)),
        ),
    )


def headline(courses: Sequence[Course], experiments: int) -> str:
    """Return how much there is, and how much of it stands out."""
    nights = "one night" if experiments == 1 else plural(experiments, "night")
    series = "one series" if len(courses) == 1 else f"{len(courses)} series"
    moved = sum(bool(course.steps) for course in courses)
    steps = sum(len(course.steps) for course in courses)
    summary = {0: "no step", 1: "one step"}.get(
        steps, f"{steps} steps in {moved} of them"
    )
    return f"{series}, {nights}: {summary}.".capitalize()


def _table(courses: Sequence[Course]) -> Table:
    heads = ("nights", "epochs", "newest", "against the reference", "steps")
    return Table(
        title="Series", first="series", heads=heads, rows=tuple(map(_row, courses))
    )


def _row(course: Course) -> Row:
    points = course.line.points
    value = ratio = "-"
    if points:
        newest = points[-1]
        value = valued(newest.y, course.line.unit)
        log = course.log_ratio(newest)
        if log is not None:
            ratio = percent(math.expm1(log), newest.r_se)
    cells = (
        str(len(points)),
        str(len(course.epochs) + 1),
        value,
        ratio,
        str(len(course.steps)),
    )
    return Row(inert(course.name), tuple(map(Cell, cells)))


def _steps(courses: Sequence[Course]) -> Iterator[str]:
    for course in courses:
        for step, notes, standing in zip(
            course.steps, course.noted, course.standings, strict=True
        ):
            text = f"{course.name}: {standing.said}: {said(step, standing)}"
            if notes:
                text += f" Noted there: {'; '.join(map(noted_said, notes))}."
            yield text


def noted(courses: Sequence[Course]) -> list[str]:
    """Return what people noted, the oldest first, each with the number that charts show."""
    notes = courses[0].notes if courses else ()
    return [
        inert(f"note {number}, {noted_said(note)}")
        for number, note in enumerate(notes, 1)
    ]


def noted_said(note: Note) -> str:
    """Return a note with its time and commit."""
    at = f"commit {note.commit[:12]}" if note.commit else ""
    if note.t is None:
        return f"{at}, which no night measured: {note.text}"
    return f"{', '.join(filter(None, (day(note.t), at)))}: {note.text}"


def said(step: Candidate, standing: Standing) -> str:
    """Return a step in a sentence: its size, its range, and how sure it is."""
    by = against(step.variant) if step.by == "ratio" else "of the level alone"
    doubt = (
        "; suspected: so few nights say little about how much nights differ"
        if step.few and not standing.is_confirmed
        else ""
    )
    doubt += "".join(f"; {word}" for word in step.doubts)
    return f"{sized(step)} {by}, {ends(step.last_good, step.first_bad)}, z {step.z:.1f}{doubt}."


def ends(good: HistoryPoint, bad: HistoryPoint) -> str:
    """Return the two nights around a step, also where commits follow each other otherwise than the nights did."""
    back = ", which was measured first" if bad.t < good.t else ""
    return f"between {night(good)} and {night(bad)}{back}"


def sized(step: Candidate) -> str:
    """Return the change of a step, and whether it is better or worse."""
    return f"{percent(step.change, step.error)} ({step.way})"


def night(point: HistoryPoint) -> str:
    """When a night was, and the build that it measured where that is known."""
    build = point.describe or point.commit[:12]
    if not build:
        return day(point.t)
    return f"{day(point.t)} ({build})"


def _epochs(courses: Sequence[Course]) -> Iterator[str]:
    """Yield each epoch once, however many series of its machine there are."""
    seen: dict[str, None] = {}
    for course in courses:
        for epoch in course.epochs:
            begins = f"{course.line.key.machine}, from {day(epoch.t)}"
            seen[f"{begins}: {'; '.join(epoch.differs)}."] = None
    yield from seen


def _method(courses: Sequence[Course]) -> Iterator[str]:
    yield (
        "A candidate is not a verdict: series without a step have one to five in 1000 nights. Measure both builds in "
        "one experiment (`iodelta history confirm ALERT`) before you act on it. Confirmed: such an experiment found it."
    )
    yield (
        "The range holds the step with a probability of 97 % if all places were as likely before. Nights of two epochs "
        "are never compared."
    )
    if len(courses) > MOST:
        yield f"Charts of the {MOST} series with the clearest steps are shown, of {len(courses)}."


def valued(log: float, unit: str) -> str:
    """Return the number of a point with its unit."""
    text = quantity(math.exp(log), unit)
    if unit in ("ns", "B/s"):
        return text
    return f"{text} {unit}".rstrip()


def day(t: float) -> str:
    """Return a night in UTC, as tables and charts name it."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(t))
