"""``iodelta report``: the result of a folder, or of foreign files, in any format."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from iodelta import part
from iodelta.cli.awaiting import awaited
from iodelta.cli.commands import Asked, declared
from iodelta.cli.files import write_or_print
from iodelta.cli.numbers import CHARTS
from iodelta.errors import RequestError, pasted
from iodelta.report.stories.story import Detail
from iodelta.study.words import inert

EXAMPLES = """
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

COUNTS = ("functions", "bill", "lines", "paths", "footprint")
"""Options about counted instructions and moved cache lines."""


@declared(
    "report",
    "path",
    """
--format VALUES [console]
--explain CELL        Explain the verdicts of one cell, block by block.
--output
--charts
--force
--scale
--functions           For counted instructions: show which kernel functions got longer.
--bill                For counted instructions: show locked instructions, fences, indirect calls.
--lines               For --anatomy=sharing: show every cache line that moves between CPUs.
--paths               For counted instructions with --anatomy: show which paths of calls changed.
--footprint           For counted instructions with --anatomy: show loads, stores, lines and pages of memory.
--reproducer          Print a shell script with the same trials that needs only fio.
--verbose
--fail-on [nothing]
--exit-code
""",
    EXAMPLES,
    metavar="FOLDER",
)
def command(asked: Asked) -> None:
    """Judge FOLDER again from its raw data and print the result, even during the run.

    Also reports results of other tools (everything that `iodelta show` reads), compared if they hold several variants,
    and folders of `iodelta bisect` and `iodelta attribute`.

    Exit codes: 0 reported, regardless of the verdict, 2 the request is wrong, 4 there is nothing to report. With
    --exit-code also 1 regression and 3 inconclusive; --fail-on chooses other words.
    """
    folder = part.folder_at(Path(asked.path))
    report: Callable[[Asked], None] = _foreign
    if folder is not None:
        report = part.load(folder.report)
    elif not Path(asked.path).exists():
        raise RequestError(
            "there is nothing at this path",
            place=asked.path,
            remedy="name a folder that `iodelta run` made",
        )
    report(asked)


def refuse(asked: Asked, *names: str, what: str, remedy: str) -> None:
    """Raise RequestError for an option that this kind of folder does not have."""
    if any(getattr(asked, name) for name in names) or (
        "charts" in names and asked.scale != "auto"
    ):
        raise RequestError(what, place=asked.path, remedy=remedy)


def of_search(asked: Asked) -> None:
    from iodelta.cli.searching import report

    _refuse_explanation_and_script(asked)
    refuse(
        asked,
        "charts",
        what="a search has no charts of values, and no charts as files",
        remedy="omit --charts and --scale",
    )
    report(Path(asked.path), asked)


def of_counted_path(asked: Asked) -> None:
    from iodelta.lab.folder import Folder
    from iodelta.study.counted import counted

    refuse(
        asked,
        *("explain", "reproducer", "charts"),
        what="this folder contains instruction counts: "
        "--explain, --reproducer, --charts and --scale need measured times",
        remedy="use --functions, --bill, --paths and --footprint to see what changed",
    )
    account = counted(Folder.open(Path(asked.path)))
    # A folder holds counts of instructions, or of moved lines.
    if account.anatomy != "sharing":
        refuse(
            asked,
            "lines",
            what="this folder contains no moved cache lines",
            remedy="count them: `iodelta run --machine vm --clock instructions --anatomy=sharing`",
        )
    elif not asked.lines:
        refuse(
            asked,
            *COUNTS,
            what="this folder contains moved cache lines, and no counts of instructions",
            remedy="use --lines; `iodelta run` without --anatomy=sharing counts functions and bills",
        )
    page = asked.format == "html"  # which has room for all
    deep = page and account.anatomy == "path"
    asked.deliver(
        account,
        detail=Detail(
            functions=page or asked.functions,
            bill=page or asked.bill,
            lines=page or asked.lines,
            paths=deep or asked.paths,
            footprint=deep or asked.footprint,
            whole=asked.verbose,
        ),
    )
    asked.end(account)


def of_preparation(asked: Asked) -> None:
    from iodelta.lab.folder import Folder
    from iodelta.report.derived import charts_of_preparation
    from iodelta.study.preparation import prepared

    refuse(
        asked,
        *("explain", "reproducer", *COUNTS),
        what="this folder contains the preparation of a disk, which has no trials",
        remedy="omit --explain, --reproducer, --functions, --bill, --lines, --paths and --footprint",
    )
    disk = prepared(Folder.open(Path(asked.path)))
    detail = Detail(folder=inert(pasted(asked.path)), whole=asked.verbose)
    asked.deliver(disk, lambda: charts_of_preparation(disk, asked.scale), detail)
    asked.end(disk)


def of_experiment(asked: Asked) -> None:
    """Show the verdicts, explain those of one cell, or write the script."""
    from iodelta.bundle.packed import is_bundle, opened
    from iodelta.report.derived import charted, load

    _refuse_counts(asked)
    path = Path(asked.path)
    if (asked.explain or asked.reproducer) and asked.format != "console":
        raise RequestError(
            "--explain prints text and --reproducer prints a script; neither has another format",
            place="--format",
            remedy="omit --format",
        )
    if asked.explain and asked.output is not None:
        raise RequestError(
            "an explanation is only printed", place="--output", remedy="omit --output"
        )
    if asked.reproducer:
        from iodelta.reproducer.script import reproducer_of

        script = reproducer_of(path).encode()
        write_or_print(asked.output, script, "the script", force=asked.force)
        sys.exit(0)
    if asked.explain:
        from iodelta.report.stories.explain import explain
        from iodelta.study.changed import refuse_changed

        account = load(opened(path))
        refuse_changed(account.findings, account.folder)
        for line in explain(account, asked.explain):
            click.echo(line)
        asked.end(account)
    folder = opened(path)
    draws = asked.format == "html" or asked.charts is not None
    account, charts = charted(folder, asked.scale) if draws else (load(folder), ())
    again = f"iodelta reproduce {pasted(path)}" if is_bundle(path) else ""
    asked.deliver(account, lambda: charts, Detail(whole=asked.verbose, again=again))
    asked.end(account)


def _foreign(asked: Asked) -> None:
    """Compare the results of another tool where they hold several variants, else list what they contain."""
    from iodelta.study.paths import read_one

    _refuse_explanation_and_script(asked)
    _refuse_counts(asked)
    with awaited([asked.path]):
        layout = read_one(asked.path)
    if not (layout.entries or layout.refusals):
        raise RequestError(
            "not an experiment folder (it has no experiment.toml), and it contains no result",
            place=asked.path,
            remedy="give the folder that `iodelta run` printed, or results that `iodelta show` can read",
        )
    if len(layout.variants()) > 1:
        from iodelta.study.comparison import compare

        made = compare([layout], [asked.path])
        asked.deliver(
            made,
            lambda: part.load(f"{CHARTS}:charts_of")(
                made, [layout], [asked.path], None, asked.scale
            ),
        )
        asked.end(made)
    from iodelta.audit import audit
    from iodelta.study.runs import shown

    found = audit(entry.run for entry in layout.entries)
    runs = shown(layout, found, each=True, paths=[asked.path])
    asked.deliver(
        runs, lambda: part.load(f"{CHARTS}:charts_of_runs")(layout, asked.scale)
    )
    if runs.rows and asked.given("fail_on", "exit_code"):
        raise RequestError(
            "these results hold only one variant, so there is no verdict",
            place=asked.path,
            remedy="omit --fail-on and --exit-code; `iodelta compare` takes two sides",
        )
    sys.exit(0 if runs.rows else 4)


def _refuse_explanation_and_script(asked: Asked) -> None:
    refuse(
        asked,
        *("explain", "reproducer"),
        what="only an iodelta experiment can be explained block by block or written as a script",
        remedy="give a folder that `iodelta run` made",
    )


def _refuse_counts(asked: Asked) -> None:
    refuse(
        asked,
        *COUNTS,
        what="functions, bills, moved lines, paths and footprints are counted with the instruction clock only",
        remedy="run `iodelta run --machine vm --clock instructions`, and report its folder",
    )
