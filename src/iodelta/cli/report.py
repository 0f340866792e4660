"""``iodelta report``: what a folder or foreign results say, in the form its reader needs."""

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

from iodelta.cli.awaiting import awaited
from iodelta.cli.files import check_free, check_free_of_pictures, write
from iodelta.cli.files import force as force_option
from iodelta.errors import RequestError, pasted
from iodelta.report.stories.story import PLAIN, Detail
from iodelta.study.words import inert

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from iodelta.ingest.layouts import Layout
    from iodelta.report.cache import Charts
    from iodelta.report.stories.kinds import Told
    from iodelta.study.comparison import Comparison

FORMATS = ("console", "mail", "markdown", "html", "csv", "json")

EXAMPLES = """
\b
Examples:
  iodelta report iodelta-20260102-030405
  iodelta report iodelta-20260102-030405 --verbose
  iodelta report iodelta-20260102-030405 --format mail > report.txt
  iodelta report iodelta-20260102-030405 -o report.html
  iodelta report iodelta-20260102-030405 --charts pictures
  iodelta report iodelta-20260102-030405 --explain 'iodepth=32'
  iodelta report iodelta-20260102-030405 --reproducer -o reproduce.sh
  iodelta report iodelta-20260102-030405 --exit-code    # for a script: 1 for a regression, 3 inconclusive
  iodelta report table-from-a-mail.txt --format markdown
"""


ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".txt": "mail",
    ".eml": "mail",
}
"""How the name of a file ends -> the format it implies."""

JUDGED = (1, 3)
"""Exit codes that say what was found: a regression, or that it is inconclusive."""


def reported(exit_code: int, *, gate: bool) -> int:
    """The exit code of a report: it succeeded whatever it found, unless it is asked to be a ``gate``."""
    return 0 if exit_code in JUDGED and not gate else exit_code


def delivered(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where a report and its charts go; what cannot go there is refused before anything else."""

    @functools.wraps(command)
    def checked(*, charts: Path | None, force: bool, **others: Any) -> Any:
        if charts is not None:
            check_free_of_pictures(charts, force=force)
        return command(charts=charts, force=force, **others)

    return _into_file(_charts_option(force_option(checked)))


def printed(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where a report without charts goes."""
    return _into_file(force_option(command))


_charts_option = click.option(
    "--charts", type=click.Path(path_type=Path), metavar="DIR", help="Write every chart as SVG and PNG."
)

_output_option = click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report to FILE. The extension selects the format: .html, .md, .csv, .json, .txt (mail).",
)


def _into_file(command: Callable[..., Any]) -> Callable[..., Any]:
    """--output, which may imply the format; a file that is there already is refused."""

    @functools.wraps(command)
    def checked(*, format_: str, output: Path | None, force: bool, **others: Any) -> Any:
        if output is not None:
            if not others.get("reproducer"):
                format_ = _format_of(output, format_)
            check_free(output, force=force)
        return command(format_=format_, output=output, force=force, **others)

    return _output_option(checked)


def _format_of(output: Path, format_: str) -> str:
    """The format that was asked for, else the one that the file's name implies. Raises RequestError."""
    asked = click.get_current_context().get_parameter_source("format_") is ParameterSource.COMMANDLINE
    if asked and format_ == "console":
        raise RequestError(
            "what a terminal shows is not written to a file", place="--output", remedy="choose another --format"
        )
    if asked:
        return format_
    if output.suffix.lower() not in ENDINGS:
        raise RequestError(
            "the ending of this file's name implies no format",
            place=str(output),
            remedy=f"add --format, or let it end in {', '.join(ENDINGS)}",
        )
    return ENDINGS[output.suffix.lower()]


@click.command("report", epilog=EXAMPLES)
@click.argument("path", metavar="FOLDER")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="console", show_default=True)
@click.option("--explain", "cell", default="", metavar="CELL", help="Explain the verdicts of one cell, block by block.")
@delivered
@click.option("--functions", is_flag=True, help="For counted instructions: show which kernel functions got longer.")
@click.option("--reproducer", is_flag=True, help="Print a shell script with the same trials that needs only fio.")
@click.option("--verbose", is_flag=True, help="Show every statement and finding, not one screen.")
@click.option("--exit-code", "gate", is_flag=True, help="Exit with the code of the verdict, for scripts.")
def command(
    path: str,
    format_: str,
    cell: str,
    functions: bool,
    reproducer: bool,
    output: Path | None,
    charts: Path | None,
    force: bool,
    verbose: bool,
    gate: bool,
) -> None:
    """Judge FOLDER again from its raw data and print the result, even during the run.

    Also reports results of other tools (everything that `iodelta show` reads), compared if they hold several variants,
    and folders of `iodelta bisect` and `iodelta attribute`.

    Exit codes: 0 reported, regardless of the verdict, 2 the request is wrong, 4 there is nothing to report. With
    --exit-code also 1 regression and 3 inconclusive.
    """
    from iodelta.bundle.packed import is_bundle

    own = (Path(path) / "experiment.toml").is_file() or is_bundle(path)
    if not own and not Path(path).exists():
        raise RequestError("there is nothing at this path", place=path, remedy="name a folder that `iodelta run` made")
    if (cell or reproducer) and not own:
        raise RequestError(
            "only iodelta's own experiments can be explained block by block or written as a script",
            place=path,
            remedy="give a folder that `iodelta run` made",
        )
    if not own and (Path(path) / "question.json").is_file():  # of a bisection or attribution
        from iodelta.cli.searching import report

        if charts:
            raise RequestError("a search has no charts as files", place=path, remedy="leave --charts out")
        report(Path(path), format_, output, force=force, gate=gate)
    from iodelta.lab.folder import Folder

    if (Path(path) / "experiment.toml").is_file() and Folder(Path(path)).counts_instructions():
        from iodelta.cli.counting import report as counted

        if cell or reproducer or charts is not None:
            raise RequestError(
                "this folder holds counts of instructions: --explain, --reproducer and --charts are about times",
                place=path,
                remedy="--functions says where a change sits",
            )
        counted(Folder(Path(path)), format_, output, functions=functions, force=force, gate=gate)
    if (Path(path) / "experiment.toml").is_file() and Folder(Path(path)).prepares():
        from iodelta.report.derived import charts_of_preparation
        from iodelta.study.preparation import prepared

        if cell or reproducer or functions:
            raise RequestError(
                "this folder holds the preparation of a disk, no trials",
                place=path,
                remedy="leave --explain, --reproducer and --functions out",
            )
        disk = prepared(Folder(Path(path)))
        detail = Detail(folder=inert(pasted(path)), whole=verbose)
        deliver(disk, lambda: charts_of_preparation(disk), format_, output, charts, force=force, detail=detail)
        sys.exit(reported(disk.exit_code, gate=gate))
    if functions:
        raise RequestError(
            "functions are counted with the instruction clock only",
            place=path,
            remedy="iodelta run --machine vm --clock instructions makes such a folder",
        )
    if (cell or reproducer) and format_ != "console":
        raise RequestError(
            "an explanation is text and a reproducer is a script: they have no other format",
            place="--format",
            remedy="leave --format out",
        )
    if cell and output is not None:
        raise RequestError("an explanation is printed", place="--output", remedy="leave --output out")
    if reproducer:
        _reproducer(Path(path), output, force=force)
        return
    drawn = format_ == "html" or charts is not None
    told, exit_code, draw = _folder(Path(path), cell, drawn=drawn) if own else _foreign(path)
    if told is not None:
        again = f"iodelta reproduce {pasted(path)}" if is_bundle(path) else ""
        deliver(told, draw, format_, output, charts, force=force, detail=Detail(whole=verbose, again=again))
    sys.exit(reported(exit_code, gate=gate))


def _reproducer(folder: Path, output: Path | None, *, force: bool) -> None:
    from iodelta.reproducer.script import reproducer_of

    script = reproducer_of(folder)
    if output is None:
        sys.stdout.write(script)
        return
    write(output, script.encode(), "the script", force=force)


def deliver(
    told: Told,
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
        from iodelta.report.formats.charts.export import export

        made = export(chain.from_iterable(figures for _, figures in draw()), charts)
        click.echo(f"{len(made)} pictures in {inert(str(charts))}", err=True)
    if format_ == "console":
        tell(told, detail)
        return
    if format_ == "html":
        from iodelta.report.formats.html.told import html_of

        data = html_of(told, draw(), detail)
    else:
        from iodelta.report.formats.render import rendered

        data = rendered(told, format_, detail)
    if output is None:
        sys.stdout.buffer.write(data)
        return
    write(output, data, "the report", force=force)


def tell(told: Told, detail: Detail = PLAIN) -> None:
    """Print it for a terminal; an experiment on one screen unless all of it is asked for."""
    if type(told).__name__ == "Account":
        from rich.console import Console

        from iodelta.report.formats import console

        console.show(Console(), told, verbose=detail.whole, again=detail.again)  # type: ignore[arg-type]
        return
    from iodelta.report.formats.terminal import lines, show
    from iodelta.report.stories.kinds import story_of

    story = story_of(told, detail)
    if not (sys.stdout.isatty() or any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))):
        # What rich writes to a file, without the time that rich takes.
        sys.stdout.write("".join(f"{line.plain}\n" for line in lines(story, whole=detail.whole)))
        return
    from rich.console import Console

    terminal = Console()
    show(terminal, story, whole=detail.whole)
    for line in _pictures(told, terminal):
        terminal.print(line, soft_wrap=True, highlight=False)


def _pictures(told: Told, terminal: Console) -> Iterator[Text]:
    """What a terminal draws below the numbers of a comparison or an import."""
    from iodelta.report.formats.pictures import bars_of, draws, sparks
    from iodelta.report.formats.terminal import width_of
    from iodelta.study.runs import Shown

    if not draws(terminal.file):
        return
    if isinstance(told, Shown):
        yield from sparks(told.rows, width_of(terminal))
    elif type(told).__name__ == "Comparison":
        yield from bars_of(told, width_of(terminal))  # type: ignore[arg-type]


def _folder(path: Path, cell: str, *, drawn: bool) -> tuple[Told | None, int, Callable[[], Charts]]:
    from iodelta.bundle.packed import opened
    from iodelta.report.derived import charted, load

    account, charts = charted(opened(path)) if drawn else (load(opened(path)), ())
    if not cell:
        return account, account.exit_code, lambda: charts
    from iodelta.report.stories.explain import explain

    for line in explain(account, cell):
        click.echo(line)
    return None, account.exit_code, lambda: charts


def _foreign(path: str) -> tuple[Told, int, Callable[[], Charts]]:
    """An import: a comparison of its variants, else what is in it."""
    from iodelta.audit import audit
    from iodelta.study.comparison import compare
    from iodelta.study.paths import read_one
    from iodelta.study.runs import shown

    with awaited([path]):
        layout = read_one(path)
    if not layout.entries and not layout.refusals:
        raise RequestError(
            "not an experiment folder (it has no experiment.toml), and it contains no result",
            place=path,
            remedy="give the folder that `iodelta run` printed, or results that `iodelta show` can read",
        )
    if len(layout.variants()) > 1:
        found = compare([layout], [path])
        return found, found.exit_code, lambda: charts_of(found, [layout], [path])
    rows = shown(layout, audit(entry.run for entry in layout.entries), each=True, paths=[path])
    return rows, 0 if rows.rows else 4, lambda: charts_of_runs(layout)


def charts_of(
    found: Comparison, layouts: Sequence[Layout], paths: Sequence[str], baseline: str | None = None
) -> Charts:
    """The charts of a comparison."""
    from iodelta.report.formats.html import told

    return told.charts_of(found, layouts, paths, baseline)


def charts_of_runs(layout: Layout) -> Charts:
    """The charts of results of which nothing is compared."""
    from iodelta.report.formats.html import told

    return told.charts_of_runs(layout)
