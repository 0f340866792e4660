"""``iodelta history show``: the series of a history for a terminal, a program or a browser."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.delivery import format_of
from iodelta.cli.files import check_free, write_or_print
from iodelta.cli.files import force as force_option
from iodelta.cli.histories import HISTORY, LOG, inert, opened, tell
from iodelta.cli.shared_options import in_formats
from iodelta.plural import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iodelta.history.courses import Course
    from iodelta.history.log import Entry
    from iodelta.history.store import Store

FORMATS = ("console", "json", "html", "markdown", "mail")

_EXAMPLES = """
\b
Examples:
  iodelta history show
  iodelta history show --only stor3 --only read.iops
  iodelta history show -o page.html
"""


@click.command("show", epilog=_EXAMPLES)
@HISTORY
@LOG
@click.option(
    "--only",
    multiple=True,
    metavar="TEXT",
    help="Only series with TEXT in their machine, cell, variant or metric.",
)
@in_formats(FORMATS)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to FILE. The extension selects the format: .html, .md, .json, .txt (mail).",
)
@force_option
def show(
    place: str,
    log: Path | None,
    only: tuple[str, ...],
    format_: str,
    output: Path | None,
    force: bool,
) -> None:
    """Show every series with its nights, epochs and steps: bars in a terminal, charts in a page (--format html).

    Below the bars ~ marks the nights among which a step is, ^ the first night surely after it, ! a single night beyond
    the scale, * the first night after a note, and | another epoch of the machine.
    """
    if output is not None:
        format_ = format_of(output, format_)
        check_free(output, force=force)
    store, written = opened(place, log)
    entries = written.entries()[0]
    if format_ == "json":
        write_or_print(output, _document(store, only, entries), "the page", force=force)
        return
    from iodelta.history.alerts import alerts_of
    from iodelta.history.courses import courses
    from iodelta.history.kept import refresh

    kept, _ = refresh(store, entries)
    found = alerts_of(kept, entries, store.nights())
    shown = courses(store, found.alerts, kept, only, entries)
    if format_ == "console":
        _print(shown, len(store.experiments()))
        return
    write_or_print(output, _rendered(shown, store, format_), "the page", force=force)


def _document(store: Store, only: tuple[str, ...], entries: Sequence[Entry]) -> bytes:
    from iodelta.history.answers import HistorySeries, HistoryShowAnswer
    from iodelta.history.commits import Order
    from iodelta.history.courses import is_wanted
    from iodelta.history.notes import placed
    from iodelta.report.documents import written

    whole = store.lines()
    lines = [line for line in whole if is_wanted(line, only)]
    series = [
        HistorySeries(
            one.key.machine,
            one.cell,
            one.variant,
            one.key.metric,
            one.unit,
            one.better,
            one.points,
        )
        for one in lines
    ]
    return written(
        HistoryShowAnswer(
            len(store.experiments()),
            tuple(series),
            placed(entries, store.nights().values(), Order(entries)),
        )
    )


def _rendered(lines: list[Course], store: Store, format_: str) -> bytes:
    from iodelta.report.stories.course import of_courses

    story = of_courses(lines, len(store.experiments()))
    if format_ == "html":
        from iodelta.report.formats.charts.course import charts_of
        from iodelta.report.formats.html.page import page
        from iodelta.report.formats.html.write import report

        return report(page(story, None, charts_of(lines)))
    if format_ == "mail":
        from iodelta.report.formats.mail import mail

        return mail(story).encode("ascii")
    from iodelta.report.formats.markdown import markdown

    return markdown(story).encode("utf-8", "backslashreplace")


def _print(lines: list[Course], experiments: int) -> None:
    from iodelta.report.formats.pictures import BARS, draws
    from iodelta.report.formats.spark import PLAIN, spark
    from iodelta.report.stories.course import day, noted, noted_said, said

    bars = BARS if draws(sys.stdout) else PLAIN
    click.echo(f"{len(lines)} series, {plural(experiments, 'night')}")
    for course in lines:
        tell(f"  {inert(course.name)}: {inert(_newest(course))}")
        for line in spark(course, bars) if sys.stdout.isatty() else ():
            if line.strip():
                click.echo(f"    {line}")
        for epoch in course.epochs:
            tell(
                f"    another epoch from {day(epoch.t)}: {inert('; '.join(epoch.differs))}"
            )
        for step, notes, standing in zip(
            course.steps, course.noted, course.standings, strict=True
        ):
            tell(f"    {inert(f'{standing.said}: {said(step, standing)}')}")
            for note in notes:
                tell(f"      noted there: {inert(noted_said(note))}")
    for line in noted(lines):
        tell(f"  {line}")


def _newest(course: Course) -> str:
    points = course.line.points
    text = f"{plural(len(points), 'night')}, {plural(len(course.epochs) + 1, 'epoch')}"
    if not points:
        return text
    from iodelta.history.placebo import against
    from iodelta.report.stories.course import day as night
    from iodelta.report.stories.course import valued
    from iodelta.study.words import percent

    last = points[-1]
    log = course.log_ratio(last)
    ratio = (
        f", {percent(math.expm1(log), last.r_se)} {against(course.line.variant)}"
        if log is not None
        else ""
    )
    return f"{text}, {night(last.t)}: {valued(last.y, course.line.unit)}{ratio}"
