"""``iodelta report``: what a folder or foreign results say, in the form its reader needs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.awaiting import awaited
from iodelta.cli.delivery import FORMATS, charts_of, charts_of_runs, deliver, delivered, reported
from iodelta.cli.files import write_or_print
from iodelta.errors import RequestError, pasted
from iodelta.report.stories.story import Detail
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.report.cache import Charts
    from iodelta.report.stories.kinds import Told

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
    from iodelta.lab.folder import CountFolder, DiskFolder, Folder

    folder = Folder.open(Path(path)) if (Path(path) / "experiment.toml").is_file() else None
    if isinstance(folder, CountFolder):
        from iodelta.cli.counting import report as counted

        if cell or reproducer or charts is not None:
            raise RequestError(
                "this folder holds counts of instructions: --explain, --reproducer and --charts are about times",
                place=path,
                remedy="--functions says where a change sits",
            )
        counted(folder, format_, output, functions=functions, force=force, gate=gate)
    if isinstance(folder, DiskFolder):
        from iodelta.report.derived import charts_of_preparation
        from iodelta.study.preparation import prepared

        if cell or reproducer or functions:
            raise RequestError(
                "this folder holds the preparation of a disk, no trials",
                place=path,
                remedy="leave --explain, --reproducer and --functions out",
            )
        disk = prepared(folder)
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

    write_or_print(output, reproducer_of(folder).encode(), "the script", force=force)


def _folder(path: Path, cell: str, *, drawn: bool) -> tuple[Told | None, int, Callable[[], Charts]]:
    from iodelta.bundle.packed import opened
    from iodelta.report.derived import charted, load

    account, charts = charted(opened(path)) if drawn else (load(opened(path)), ())
    if not cell:
        return account, account.exit_code, lambda: charts
    from iodelta.report.stories.explain import explain
    from iodelta.study.changed import refuse_changed

    refuse_changed(account.findings, account.folder)
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
