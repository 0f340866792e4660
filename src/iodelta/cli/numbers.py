"""``iodelta show``, ``compare`` and ``audit``: results of any origin, listed, compared, and whether they can be believed."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from iodelta.cli.awaiting import awaited
from iodelta.cli.commands import Asked, declared, shell
from iodelta.cli.files import check_free, refuse_unread, write
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.part import load
from iodelta.plural import plural
from iodelta.report.stories.story import Detail
from iodelta.study.words import inert

CHARTS = "iodelta.report.formats.html.pages"
"""Module that is loaded only where charts are drawn."""


@declared(
    "show",
    "paths...",
    """
--verbose (was --each)  Show every run (default: medians when there are more than 40 rows).
--name-pattern
--format REPORT [console]
--output
--charts
--force
--scale
--fail-on WORDS [nothing] (was --exit-code finding)
                      finding: exit with 1 if a number is impossible, or a result was not understood, for scripts.
""",
    """
  iodelta show result.json
  iodelta show results/ old.tar.gz mail.txt
  fio --output-format=json job.fio | iodelta show -
  iodelta show results/ --format csv > results.csv
  iodelta show results/ -o page.html     # every number as a chart
  iodelta show results/ --fail-on finding      # for a script: 1 if a number is impossible
""",
)
def show(asked: Asked) -> None:
    """List what PATHS contain in one table: fio results of any kind, t/io_uring, tables, archives, folders; - is
    standard input. Latency is total latency where the source has it.

    Exit codes: 0 something was read, 2 a path does not exist, 4 nothing could be read of all or of a file that PATHS
    names, or a folder of iodelta was changed after its run. With --fail-on finding also 1: a hard finding, as in
    `iodelta audit`, or numbers that were not understood.
    """
    from iodelta.study.changed import breaks
    from iodelta.study.paths import own_systems, read_all, unread
    from iodelta.study.runs import shown

    paths, pattern = asked.paths, asked.name_pattern or None
    with awaited(paths):
        layout, audited = read_all(paths, stdin=sys.stdin.buffer, pattern=pattern)
        listing = shown(
            layout,
            audited,
            each=asked.verbose or asked.format != "console",
            paths=paths,
            systems=own_systems(paths),
        )
    options = [("--name-pattern", pattern)] * bool(pattern)
    again = shell("show", *paths, *options) + " --verbose" * asked.verbose
    asked.deliver(
        listing,
        lambda: load(f"{CHARTS}:charts_of_runs")(layout, asked.scale),
        Detail(again=again),
    )
    something = bool(listing.rows or listing.devices)
    if not something and asked.format == "console":
        refuse_unread(paths, "the reasons are above" if listing.refusals else "")
    unread_files = unread(paths, listing.refusals, audited.runs)
    _say_unread(unread_files if something else ())
    if not something or unread_files or breaks(listing.findings):
        sys.exit(4)
    bad = any(finding.severity == "hard" for finding in listing.findings)
    lost = any(refusal.lost for refusal in listing.refusals)
    sys.exit(int("finding" in asked.words and (bad or lost)))


def _say_unread(paths: Iterable[str]) -> None:
    for path in paths:
        click.echo(f"iodelta: {inert(path)}: nothing here could be read", err=True)


@declared(
    "compare",
    "paths...",
    """
--baseline NAME       The side to compare with: the name of a path or variant (default: the first, or 'old', 'base'
                      ...).
--margin
--name-pattern
--format VALUES [console]
--output
--charts
--force
--scale
--verbose
--fail-on [regression,inconclusive]
""",
    """
  iodelta compare old.json new.json
  iodelta compare results-6.12/ results-6.18/
  iodelta compare results/ --name-pattern '{variant}/{cell}-{replicate}.json' --baseline none
  iodelta compare old.json new.json --format mail
  iodelta compare old/ new/ -o report.html
""",
    metavar="BASE [NEW]...",
)
def compare(asked: Asked) -> None:
    """Compare results from any source: BASE with each NEW, or the variants in one folder.

    Six or more interleaved pairs of runs give a verdict if their order varies like a random one; in a fixed order they
    give an interval. Replicates that were not interleaved give an interval and the risk of their order. Single runs
    give the difference and its resolution. Everything else that differs between the sides is listed.

    Exit codes: 0 nothing worse, 1 regression, 2 the request is wrong, 3 inconclusive or no verdict, 4 nothing in
    common.
    """
    from iodelta.ingest.reading import single_threaded

    single_threaded()
    from iodelta.api.foreign import compared
    from iodelta.bundle.packed import is_own

    paths, baseline = asked.paths, asked.baseline or None
    share = asked.share_of("margin", "1%")
    if len(paths) == 1 and is_own(paths[0]):
        raise RequestError(
            "this experiment already has verdicts",
            place=paths[0],
            remedy=f"`iodelta report {pasted(paths[0])}` shows them",
        )
    with awaited(paths):
        comparison, layouts = compared(
            paths,
            share,
            baseline,
            stdin=sys.stdin.buffer,
            pattern=asked.name_pattern or None,
        )
    asked.deliver(
        comparison,
        lambda: load(f"{CHARTS}:charts_of")(
            comparison, layouts, paths, baseline, asked.scale
        ),
    )
    if comparison.exit_code == MeasureError.exit_code and asked.format == "console":
        # "No cell in common" alone would suggest a different workload.
        empty = [
            (path, side)
            for path, side in zip(paths, layouts, strict=True)
            if not (side.entries or side.logs or side.device_stats)
        ]
        if empty:
            refused = any(side.refusals for _, side in empty)
            refuse_unread(
                (path for path, _ in empty),
                "`iodelta show` gives the reasons" if refused else "",
            )
    asked.end(comparison)


@declared(
    "audit",
    "[paths...]",
    """
--claims PATH         Sentences about the tables to check, separated by ; (or a file: @claims.txt).
--repair FILE         Write the corrected tables to FILE, with every change marked.
--output
--force
--verbose (was --all)  List every place, not only examples.
--rules               List the rules and exit.
--name-pattern
--format REPORT [console]
""",
    """
  iodelta audit results/
  iodelta audit blog-table.md --repair mended.md
  iodelta audit table.txt --claims 'queue has the highest IOPS in QD1; pid is 25 % below queue in SeqRead'
  iodelta audit mail.txt --claims '20 % and 30 % make more than 40 %'
  iodelta audit results/ -o audit.html
  iodelta audit --rules
""",
)
def audit(asked: Asked) -> None:
    """Find impossible, inconsistent and unsafe numbers in PATHS: fio results, tables, prose, archives, iodelta's own
    folders; - is standard input.

    Exit codes: 0 no hard finding, 1 a hard finding or a false claim, 2 the request is wrong, 4 nothing to check, or a
    file of PATHS could not be read (a folder may hold other things).
    """
    if asked.rules:
        from iodelta.study.audited import rules_answer

        asked.deliver(rules_answer())
        return
    if not asked.paths:
        raise RequestError(
            "there is nothing to audit",
            place="audit",
            remedy="name files or folders; - is standard input",
        )
    from iodelta.api.foreign import audited

    if asked.repair is not None:
        check_free(asked.repair, force=asked.force)
    with awaited(asked.paths):
        report = audited(
            asked.paths,
            asked.claims,
            stdin=sys.stdin.buffer,
            pattern=asked.name_pattern or None,
        )
    if asked.repair is not None:
        from iodelta.report.formats.markdown import mended

        text = mended(report).encode("utf-8", "backslashreplace")
        said = "nothing here can be mended exactly"
        if text:
            write(asked.repair, text, "the mended tables", force=asked.force)
            said = f"{plural(len(report.repairs), 'cell')} mended, each marked: {inert(str(asked.repair))}"
        click.echo(said, err=True)
    asked.deliver(report)
    _say_unread(report.unread if report.runs else ())
    sys.exit(report.exit_code)
