"""Deliver a report to the terminal, standard output or a file, in the requested format."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from iodelta.cli.files import (
    check_free,
    check_free_of_pictures,
    remember,
    write_or_print,
)
from iodelta.cli.files import force as force_option
from iodelta.errors import MeasureError, RequestError
from iodelta.report.stories.story import PLAIN, Detail
from iodelta.study.words import inert

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from iodelta.ingest.layouts import Layout
    from iodelta.report.formats.charts import Scale
    from iodelta.report.formats.charts.model import Charts
    from iodelta.report.stories.kinds import Result
    from iodelta.study.comparison import Comparison

FORMATS = ("console", "mail", "markdown", "html", "csv", "json")

CI_FORMATS = ("junit", "ktap", "github")
"""Formats for CI systems, of results that have verdicts."""

VERDICT_FORMATS = (*FORMATS, *CI_FORMATS)

VALUE_FORMATS = (*VERDICT_FORMATS, "bmf")
"""Formats of results that also have values of variants."""

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


def delivered(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options for the destination of a report and its charts. They are checked before anything else."""

    @functools.wraps(command)
    def checked(*, charts: Path | None, force: bool, **others: Any) -> Any:
        if charts is not None:
            check_free_of_pictures(charts, force=force)
        return command(charts=charts, force=force, **others)

    return _into_file(_charts_option(force_option(checked)))


def scaled(command: Callable[..., Any]) -> Callable[..., Any]:
    """--scale, the axis of values in charts; refused where no chart is drawn. It stands below ``delivered``."""

    @functools.wraps(command)
    def checked(
        *, scale: Scale, format_: str, charts: Path | None, **others: Any
    ) -> Any:
        if scale != "auto" and format_ != "html" and charts is None:
            raise RequestError(
                "--scale applies to charts, and none is drawn here",
                place="--scale",
                remedy="add -o page.html or --charts DIR",
            )
        return command(scale=scale, format_=format_, charts=charts, **others)

    return _scale_option(checked)


def printed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options for the destination of a report without charts."""
    return _into_file(force_option(command))


_scale_option = click.option(
    "--scale",
    type=click.Choice(["auto", "log", "linear"]),
    default="auto",
    show_default=True,
    help="Axis of values in charts; auto: logarithmic where a linear one would hide small values.",
)

_charts_option = click.option(
    "--charts",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write every chart as SVG and PNG.",
)

_output_option = click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report to FILE. The extension selects the format: .html, .md, .csv, .json, .txt (mail).",
)


def _into_file(command: Callable[..., Any]) -> Callable[..., Any]:
    """--output, which may imply the format; a file that iodelta did not write is refused."""

    @functools.wraps(command)
    def checked(
        *, format_: str, output: Path | None, force: bool, **others: Any
    ) -> Any:
        if output is not None:
            if not others.get("reproducer"):
                format_ = format_of(output, format_)
            check_free(output, force=force)
        return command(format_=format_, output=output, force=force, **others)

    return _output_option(checked)


def format_of(output: Path, format_: str) -> str:
    """Return the requested format, else the one that the file's name implies. Raises RequestError."""
    asked = (
        click.get_current_context().get_parameter_source("format_")
        is ParameterSource.COMMANDLINE
    )
    endings = {
        ending: implied for ending, implied in ENDINGS.items() if implied in _choices()
    }
    if asked and format_ == "console":
        raise RequestError(
            "the console format cannot be written to a file",
            place="--output",
            remedy="choose another --format",
        )
    implied = endings.get(output.suffix.lower(), format_)
    # Any text format may have this name.
    if asked and implied != format_ and output.suffix.lower() != ".txt":
        raise RequestError(
            f"a file with this extension holds {implied}, not {format_}",
            place=str(output),
            remedy="choose another extension, or leave out --format",
        )
    if asked:
        return format_
    if output.suffix.lower() not in endings:
        raise RequestError(
            "the extension of this file does not select a format",
            place=str(output),
            remedy=f"add --format, or use one of {', '.join(endings)}",
        )
    return endings[output.suffix.lower()]


def _choices() -> Sequence[str]:
    """Return the formats of the command that runs."""
    options = click.get_current_context().command.params
    asked = next(option for option in options if option.name == "format_")
    if not isinstance(asked.type, click.Choice):
        return ()
    return asked.type.choices


def deliver(
    result: Result,
    draw: Callable[[], Charts],
    format_: str,
    output: Path | None = None,
    charts: Path | None = None,
    *,
    force: bool = False,
    detail: Detail = PLAIN,
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
    if format_ == "html":
        from iodelta.report.formats.html.result import html_of

        data = html_of(result, draw(), detail)
    else:
        from iodelta.report.formats.render import rendered

        data = rendered(result, format_, detail)
    if format_ == "github":
        _summarize(result, detail)
    write_or_print(output, data, "the report", force=force)


def _summarize(result: Result, detail: Detail) -> None:
    """Add the report to the summary of a job of GitHub Actions, which only Markdown can be. Raises MeasureError."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    from iodelta.report.formats.render import rendered

    try:
        with open(place, "ab") as file:
            file.write(rendered(result, "markdown", detail))
    except OSError as error:
        raise MeasureError(
            f"cannot write the summary: {error.strerror}", place=place
        ) from error


def print_result(result: Result, detail: Detail = PLAIN) -> None:
    """Print it for a terminal; an experiment on one screen unless all of it is asked for."""
    if type(result).__name__ == "Account":
        from rich.console import Console

        from iodelta.report.formats import console

        console.show(Console(), result, verbose=detail.whole, again=detail.again)  # type: ignore[arg-type]
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
    for line in _pictures(result, terminal):
        terminal.print(line, soft_wrap=True, highlight=False)


def _pictures(result: Result, terminal: Console) -> Iterator[Text]:
    """Yield what a terminal draws below the numbers of a comparison or an import."""
    from iodelta.report.formats.pictures import bars_of, draws, sparks
    from iodelta.report.formats.terminal import width_of
    from iodelta.study.rows import Shown

    if not draws(terminal.file):
        return
    if isinstance(result, Shown):
        yield from sparks(result.rows, width_of(terminal))
    elif type(result).__name__ == "Comparison":
        yield from bars_of(result, width_of(terminal))  # type: ignore[arg-type]


def charts_of(
    comparison: Comparison,
    layouts: Sequence[Layout],
    paths: Sequence[str],
    scale: Scale,
    baseline: str | None = None,
) -> Charts:
    """Return the charts of a comparison."""
    from iodelta.report.formats.html import result

    return result.charts_of(comparison, layouts, paths, baseline, scale)


def charts_of_runs(layout: Layout, scale: Scale) -> Charts:
    """Return the charts of results of which nothing is compared."""
    from iodelta.report.formats.html import result

    return result.charts_of_runs(layout, scale)
