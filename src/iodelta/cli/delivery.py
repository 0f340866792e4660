"""Deliver a report to the terminal, standard output or a file, in the requested format."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from iodelta.cli.files import remember, write_or_print
from iodelta.errors import MeasureError, RequestError
from iodelta.part import kind_of, load
from iodelta.report.stories.story import Detail
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.report.formats.charts.model import Charts
    from iodelta.report.stories.kinds import Result

ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".txt": "mail",
    ".eml": "mail",
    ".xml": "junit",
    ".ktap": "ktap",
}
"""End of a file name -> the format that it implies."""

WORDS = {
    "regression": frozenset({"regression"}),
    "improvement": frozenset({"improvement"}),
    "change": frozenset({"regression", "improvement"}),
    "inconclusive": frozenset({"inconclusive"}),
    "finding": frozenset({"finding"}),
    "nothing": frozenset[str](),
}
"""Word of ``--fail-on`` -> words of checks."""

WORSE = frozenset({"regression", "inconclusive"})
"""What a result's own exit code goes by."""


def format_of(output: Path, asked: str, choices: Sequence[str]) -> str:
    """Return the format ``asked`` for, else the one of ``choices`` that the file's name implies. Raises RequestError."""
    endings = {
        ending: implied for ending, implied in ENDINGS.items() if implied in choices
    }
    ending = output.suffix.lower()
    if asked == "console":
        raise RequestError(
            "the console format cannot be written to a file",
            place="--output",
            remedy="choose another --format",
        )
    # Any text format may have the name .txt.
    if asked and endings.get(ending, asked) != asked and ending != ".txt":
        raise RequestError(
            f"a file with this extension holds {endings[ending]}, not {asked}",
            place=str(output),
            remedy="choose another extension, or leave out --format",
        )
    if not asked and ending not in endings:
        raise RequestError(
            "the extension of this file does not select a format",
            place=str(output),
            remedy=f"add --format, or use one of {', '.join(endings)}",
        )
    return asked or endings[ending]


def deliver(
    result: Result,
    draw: Callable[[], Charts],
    format_: str,
    output: Path | None,
    charts: Path | None,
    *,
    force: bool,
    detail: Detail,
) -> None:
    """Print it, or write it to ``output``; ``charts`` is where its pictures go. Raises MeasureError, RequestError."""
    if charts is not None:
        from iodelta.report.formats.charts.specs import export

        made = export(chain.from_iterable(figures for _, figures in draw()), charts)
        for picture in made:
            remember(picture)
        click.echo(f"{len(made)} pictures in {inert(str(charts))}", err=True)
    if format_ == "console":
        print_result(result, detail)
        return
    from iodelta.report.formats.render import rendered

    if format_ == "html":
        from iodelta.report.formats.html.pages import html_of

        data = html_of(result, draw(), detail)
    else:
        data = rendered(result, format_, detail)
    # The summary of a job of GitHub Actions, which only Markdown can be.
    summary = os.environ.get("GITHUB_STEP_SUMMARY") if format_ == "github" else None
    if summary:
        try:
            with open(summary, "ab") as file:
                file.write(rendered(result, "markdown", detail))
        except OSError as error:
            raise MeasureError(
                f"cannot write the summary: {error.strerror}", place=summary
            ) from error
    write_or_print(output, data, "the report", force=force)


def print_result(result: Result, detail: Detail) -> None:
    """Print it for a terminal: the first screen of its kind, or its story, and the pictures that a terminal draws."""
    kind = kind_of(result)
    if kind.screen:
        load(kind.screen)(result, detail)
        return
    from iodelta.report.formats.terminal import lines, show
    from iodelta.report.stories.kinds import story_of

    story = story_of(result, detail)
    if not (
        sys.stdout.isatty()
        or any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    ):
        # What rich writes to a file, without the time that rich takes.
        sys.stdout.write(
            "".join(f"{line.plain}\n" for line in lines(story, whole=detail.whole))
        )
        return
    from rich.console import Console

    terminal = Console()
    show(terminal, story, whole=detail.whole)
    from iodelta.report.formats.pictures import draws
    from iodelta.report.formats.terminal import width_of

    if kind.pictures and draws(terminal.file):
        for line in load(kind.pictures)(result, width_of(terminal)):
            terminal.print(line, soft_wrap=True, highlight=False)


def exit_code(result: object, words: frozenset[str]) -> int:
    """Return the exit code of a result by ``words``: 1, 3 where they say inconclusive, 4 where nothing could be
    measured.

    Raises RequestError for other words than ``WORSE`` where the result has no verdict.
    """
    code: int = cast(Any, result).exit_code
    if code not in (0, 1, 3) or words == WORSE:
        return code
    if not words:
        return 0
    from iodelta.report.stories.checks import checks_of, code_of

    return code_of(checks_of(result), words)
