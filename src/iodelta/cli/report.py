"""``iodelta report``: the result of a folder, or of foreign files, in any format."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from iodelta.cli.awaiting import awaited
from iodelta.cli.delivery import (
    VALUE_FORMATS,
    charts_of,
    charts_of_runs,
    deliver,
    delivered,
    scaled,
)
from iodelta.cli.files import write_or_print
from iodelta.cli.gate import Coded, Words, exit_code, gated
from iodelta.cli.groups import Grouped
from iodelta.cli.shared_options import in_formats
from iodelta.errors import RequestError, pasted
from iodelta.part import folder_at, load
from iodelta.report.stories.story import Detail
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.ingest.layouts import Layout
    from iodelta.path.judge import PathAccount
    from iodelta.report.formats.charts import Scale
    from iodelta.report.formats.charts.model import Charts
    from iodelta.report.stories.kinds import Result

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


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    path: str
    format_: str
    cell: str
    functions: bool
    bill: bool
    lines: bool
    paths: bool
    footprint: bool
    reproducer: bool
    output: Path | None
    charts: Path | None
    scale: Scale
    force: bool
    verbose: bool
    fail_on: Words | None


@click.command("report", cls=Grouped, epilog=EXAMPLES)
@click.argument("path", metavar="FOLDER")
@in_formats(VALUE_FORMATS)
@click.option(
    "--explain",
    "cell",
    default="",
    metavar="CELL",
    help="Explain the verdicts of one cell, block by block.",
)
@delivered
@scaled
@click.option(
    "--functions",
    is_flag=True,
    help="For counted instructions: show which kernel functions got longer.",
)
@click.option(
    "--bill",
    is_flag=True,
    help="For counted instructions: show locked instructions, fences, indirect calls.",
)
@click.option(
    "--lines",
    is_flag=True,
    help="For --anatomy=sharing: show every cache line that moves between CPUs.",
)
@click.option(
    "--paths",
    is_flag=True,
    help="For counted instructions with --anatomy: show which paths of calls changed.",
)
@click.option(
    "--footprint",
    is_flag=True,
    help="For counted instructions with --anatomy: show loads, stores, lines and pages of memory.",
)
@click.option(
    "--reproducer",
    is_flag=True,
    help="Print a shell script with the same trials that needs only fio.",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="Show every statement and finding, not just one screen.",
)
@gated
def command(
    path: str,
    format_: str,
    cell: str,
    functions: bool,
    bill: bool,
    lines: bool,
    paths: bool,
    footprint: bool,
    reproducer: bool,
    output: Path | None,
    charts: Path | None,
    scale: Scale,
    force: bool,
    verbose: bool,
    fail_on: Words | None,
) -> None:
    """Judge FOLDER again from its raw data and print the result, even during the run.

    Also reports results of other tools (everything that `iodelta show` reads), compared if they hold several variants,
    and folders of `iodelta bisect` and `iodelta attribute`.

    Exit codes: 0 reported, regardless of the verdict, 2 the request is wrong, 4 there is nothing to report. With
    --exit-code also 1 regression and 3 inconclusive; --fail-on chooses other words.
    """
    request = Request(
        path=path,
        format_=format_,
        cell=cell,
        functions=functions,
        bill=bill,
        lines=lines,
        paths=paths,
        footprint=footprint,
        reproducer=reproducer,
        output=output,
        charts=charts,
        scale=scale,
        force=force,
        verbose=verbose,
        fail_on=fail_on,
    )
    sys.exit(_reporter(path)(request))


def _reporter(path: str) -> Callable[[Request], int]:
    """Return what shows ``path``. Raises RequestError where nothing is."""
    folder = folder_at(Path(path))
    if folder is not None:
        report: Callable[[Request], int] = load(folder.report)
        return report
    if not Path(path).exists():
        raise RequestError(
            "there is nothing at this path",
            place=path,
            remedy="name a folder that `iodelta run` made",
        )
    return _report_foreign_results


def of_search(request: Request) -> int:
    from iodelta.cli.searching import report

    _refuse_explanation_and_script(request)
    if request.charts or request.scale != "auto":
        raise RequestError(
            "a search has no charts of values, and no charts as files",
            place=request.path,
            remedy="omit --charts and --scale",
        )
    report(
        Path(request.path),
        request.format_,
        request.output,
        force=request.force,
        fail_on=request.fail_on,
        whole=request.verbose,
    )


def of_counted_path(request: Request) -> int:
    from iodelta.lab.folder import Folder
    from iodelta.study.counted import counted

    if (
        request.cell
        or request.reproducer
        or request.charts is not None
        or request.scale != "auto"
    ):
        raise RequestError(
            "this folder contains instruction counts: "
            "--explain, --reproducer, --charts and --scale need measured times",
            place=request.path,
            remedy="use --functions, --bill, --paths and --footprint to see what changed",
        )
    account = counted(Folder.open(Path(request.path)))
    _refuse_other_counts(request, account)
    page = request.format_ == "html"  # which has room for all
    deep = page and account.anatomy == "path"
    _deliver(
        request,
        account,
        tuple,
        Detail(
            functions=page or request.functions,
            bill=page or request.bill,
            lines=page or request.lines,
            paths=deep or request.paths,
            footprint=deep or request.footprint,
            whole=request.verbose,
        ),
    )
    return _code(request, account)


def of_preparation(request: Request) -> int:
    from iodelta.lab.folder import Folder
    from iodelta.report.derived import charts_of_preparation
    from iodelta.study.preparation import prepared

    if request.cell or request.reproducer or _of_counts(request):
        raise RequestError(
            "this folder contains the preparation of a disk, which has no trials",
            place=request.path,
            remedy="omit --explain, --reproducer, --functions, --bill, --lines, --paths and --footprint",
        )
    disk = prepared(Folder.open(Path(request.path)))
    detail = Detail(folder=inert(pasted(request.path)), whole=request.verbose)
    _deliver(request, disk, lambda: charts_of_preparation(disk, request.scale), detail)
    return _code(request, disk)


def of_experiment(request: Request) -> int:
    _refuse_counts(request)
    _refuse_other_formats(request)
    if request.reproducer:
        return _write_reproducer(request)
    return _explain_cell(request) if request.cell else _report_verdicts(request)


def _report_verdicts(request: Request) -> int:
    from iodelta.bundle.packed import is_bundle, opened
    from iodelta.report.derived import charted, load

    folder = opened(Path(request.path))
    draws = request.format_ == "html" or request.charts is not None
    account, charts = charted(folder, request.scale) if draws else (load(folder), ())
    again = (
        f"iodelta reproduce {pasted(request.path)}" if is_bundle(request.path) else ""
    )
    _deliver(
        request, account, lambda: charts, Detail(whole=request.verbose, again=again)
    )
    return _code(request, account)


def _explain_cell(request: Request) -> int:
    from iodelta.bundle.packed import opened
    from iodelta.report.derived import load
    from iodelta.report.stories.explain import explain
    from iodelta.study.changed import refuse_changed

    account = load(opened(Path(request.path)))
    refuse_changed(account.findings, account.folder)
    for line in explain(account, request.cell):
        click.echo(line)
    return _code(request, account)


def _write_reproducer(request: Request) -> int:
    from iodelta.reproducer.script import reproducer_of

    script = reproducer_of(Path(request.path))
    write_or_print(request.output, script.encode(), "the script", force=request.force)
    return 0


def _report_foreign_results(request: Request) -> int:
    """Return a comparison where the results hold several variants, else a table of what they contain."""
    _refuse_explanation_and_script(request)
    _refuse_counts(request)
    layout = _read(request.path)
    detail = Detail(whole=request.verbose)
    if len(layout.variants()) > 1:
        from iodelta.study.comparison import compare

        comparison = compare([layout], [request.path])
        _deliver(
            request,
            comparison,
            lambda: charts_of(comparison, [layout], [request.path], request.scale),
            detail,
        )
        return _code(request, comparison)
    from iodelta.audit import audit
    from iodelta.study.runs import shown

    runs = shown(
        layout,
        audit(entry.run for entry in layout.entries),
        each=True,
        paths=[request.path],
    )
    _deliver(request, runs, lambda: charts_of_runs(layout, request.scale), detail)
    if request.fail_on is not None and runs.rows:
        raise RequestError(
            "these results hold only one variant, so there is no verdict",
            place=request.path,
            remedy="omit --fail-on and --exit-code; `iodelta compare` takes two sides",
        )
    return 0 if runs.rows else 4


def _code(request: Request, result: Coded) -> int:
    return exit_code(result, request.fail_on)


def _read(path: str) -> Layout:
    from iodelta.study.paths import read_one

    with awaited([path]):
        layout = read_one(path)
    if layout.entries or layout.refusals:
        return layout
    raise RequestError(
        "not an experiment folder (it has no experiment.toml), and it contains no result",
        place=path,
        remedy="give the folder that `iodelta run` printed, or results that `iodelta show` can read",
    )


def _deliver(
    request: Request, result: Result, draw: Callable[[], Charts], detail: Detail
) -> None:
    deliver(
        result,
        draw,
        request.format_,
        request.output,
        request.charts,
        force=request.force,
        detail=detail,
    )


def _refuse_explanation_and_script(request: Request) -> None:
    if request.cell or request.reproducer:
        raise RequestError(
            "only an iodelta experiment can be explained block by block or written as a script",
            place=request.path,
            remedy="give a folder that `iodelta run` made",
        )


def _of_counts(request: Request) -> bool:
    """Return whether it asks for what only counted instructions have."""
    deep = request.lines or request.paths or request.footprint
    return request.functions or request.bill or deep


def _refuse_counts(request: Request) -> None:
    if _of_counts(request):
        raise RequestError(
            "functions, bills, moved lines, paths and footprints are counted with the instruction clock only",
            place=request.path,
            remedy="run `iodelta run --machine vm --clock instructions`, and report its folder",
        )


def _refuse_other_counts(request: Request, account: PathAccount) -> None:
    """A folder holds counts of instructions, or of moved lines."""
    sharing = account.anatomy == "sharing"
    if sharing and _of_counts(request) and not request.lines:
        raise RequestError(
            "this folder contains moved cache lines, and no counts of instructions",
            place=request.path,
            remedy="use --lines; `iodelta run` without --anatomy=sharing counts functions and bills",
        )
    if request.lines and not sharing:
        raise RequestError(
            "this folder contains no moved cache lines",
            place=request.path,
            remedy="count them: `iodelta run --machine vm --clock instructions --anatomy=sharing`",
        )


def _refuse_other_formats(request: Request) -> None:
    if (request.cell or request.reproducer) and request.format_ != "console":
        raise RequestError(
            "--explain prints text and --reproducer prints a script; neither has another format",
            place="--format",
            remedy="omit --format",
        )
    if request.cell and request.output is not None:
        raise RequestError(
            "an explanation is only printed", place="--output", remedy="omit --output"
        )
