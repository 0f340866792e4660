"""``iodelta show``: what is in these results, whatever they are."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from iodelta.cli.awaiting import awaited
from iodelta.cli.delivery import FORMATS, charts_of_runs, deliver, delivered, scaled
from iodelta.cli.files import refuse_unread
from iodelta.cli.shared_options import in_formats, names_files
from iodelta.errors import pasted
from iodelta.report.stories.story import Detail

if TYPE_CHECKING:
    from iodelta.report.formats.charts import Scale

EXAMPLES = """
\b
Examples:
  iodelta show result.json
  iodelta show results/ old.tar.gz mail.txt
  fio --output-format=json job.fio | iodelta show -
  iodelta show results/ --format csv > results.csv
  iodelta show results/ -o page.html     # every number as a chart
  iodelta show results/ --exit-code      # for a script: 1 if a number is impossible
"""


@click.command("show", epilog=EXAMPLES)
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--each",
    is_flag=True,
    help="Show every run (default: medians when there are more than 40 rows).",
)
@names_files
@in_formats(FORMATS)
@delivered
@scaled
@click.option(
    "--exit-code",
    "gate",
    is_flag=True,
    help="Exit with 1 if a number is impossible, or a result was not understood, for scripts.",
)
def command(
    paths: tuple[str, ...],
    each: bool,
    name_pattern: str | None,
    format_: str,
    output: Path | None,
    charts: Path | None,
    scale: Scale,
    force: bool,
    gate: bool,
) -> None:
    """List what PATHS contain in one table: fio results of any kind, t/io_uring, tables, archives, folders; - is
    standard input. Latency is total latency where the source has it.

    Exit codes: 0 something was read, 2 a path does not exist, 4 nothing could be read of all or of a file that PATHS
    names, or a folder of iodelta was changed after its run. With --exit-code also 1: a hard finding, as in `iodelta audit`, or numbers that were not
    understood.
    """
    from iodelta.study.changed import breaks
    from iodelta.study.paths import own_systems, read_all, unread
    from iodelta.study.runs import shown
    from iodelta.study.words import inert

    with awaited(paths):
        layout, audited = read_all(paths, stdin=sys.stdin.buffer, pattern=name_pattern)
        listing = shown(
            layout,
            audited,
            each=each or format_ != "console",
            paths=paths,
            systems=own_systems(paths),
        )
    detail = Detail(again=_again(paths, name_pattern, each=each))
    deliver(
        listing,
        lambda: charts_of_runs(layout, scale),
        format_,
        output,
        charts,
        force=force,
        detail=detail,
    )
    something = bool(listing.rows or listing.devices)
    if not something and format_ == "console":
        refuse_unread(paths, "the reasons are above" if listing.refusals else "")
    unread_files = unread(paths, listing.refusals, audited.runs)
    for path in unread_files if something else ():
        click.echo(f"iodelta: {inert(path)}: nothing here could be read", err=True)
    if not something or unread_files or breaks(listing.findings):
        sys.exit(4)
    bad = any(finding.severity == "hard" for finding in listing.findings)
    lost = any(refusal.lost for refusal in listing.refusals)
    sys.exit(int(gate and (bad or lost)))


def _again(paths: tuple[str, ...], pattern: str | None, *, each: bool) -> str:
    """Return the command that shows it again."""
    options = (["--name-pattern", pattern] if pattern else []) + (
        ["--each"] if each else []
    )
    return " ".join(["iodelta show", *map(pasted, paths), *map(quote, options)])
