"""``iodelta compare``: what two sets of results show about each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.awaiting import awaited
from iodelta.cli.delivery import VALUE_FORMATS, charts_of, deliver, delivered, scaled
from iodelta.cli.files import refuse_unread
from iodelta.cli.gate import Words, exit_code, fails
from iodelta.cli.shared_options import in_formats, names_files
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.report.stories.story import Detail

if TYPE_CHECKING:
    from iodelta.ingest.layouts import Layout
    from iodelta.report.formats.charts import Scale

EXAMPLES = """
\b
Examples:
  iodelta compare old.json new.json
  iodelta compare results-6.12/ results-6.18/
  iodelta compare results/ --name-pattern '{variant}/{cell}-{replicate}.json' --baseline none
  iodelta compare old.json new.json --format mail
  iodelta compare old/ new/ -o report.html
"""


@click.command("compare", epilog=EXAMPLES)
@click.argument("paths", nargs=-1, required=True, metavar="BASE [NEW]...")
@click.option(
    "--baseline",
    help="The side to compare with: the name of a path or variant (default: the first, or 'old', 'base' ...).",
)
@click.option(
    "--margin",
    default="1%",
    show_default=True,
    help="The smallest change that matters to you.",
)
@names_files
@in_formats(VALUE_FORMATS)
@delivered
@scaled
@click.option("--verbose", is_flag=True, help="Show everything, not just one screen.")
@fails
def command(
    paths: tuple[str, ...],
    baseline: str | None,
    margin: str,
    name_pattern: str | None,
    format_: str,
    output: Path | None,
    charts: Path | None,
    scale: Scale,
    force: bool,
    verbose: bool,
    fail_on: Words,
) -> None:
    """Compare results from any source: BASE with each NEW, or the variants in one folder.

    Six or more interleaved pairs of runs give a verdict if their order varies like a random one; in a fixed order they
    give an interval. Replicates that were not interleaved give an interval and the risk of their order. Single runs
    give the difference and its resolution. Everything else that differs between the sides is listed.

    Exit codes: 0 nothing worse, 1 regression, 2 the request is wrong, 3 inconclusive or no verdict, 4 nothing in
    common.
    """
    from iodelta.ingest.reading import single_threaded

    single_threaded()
    from iodelta.api.foreign import compared, share_of
    from iodelta.bundle.packed import is_own

    share = share_of(margin, "--margin")
    if len(paths) == 1 and is_own(paths[0]):
        raise RequestError(
            "this experiment already has verdicts",
            place=paths[0],
            remedy=f"`iodelta report {pasted(paths[0])}` shows them",
        )
    with awaited(paths):
        comparison, layouts = compared(
            paths, share, baseline, stdin=sys.stdin.buffer, pattern=name_pattern
        )
    deliver(
        comparison,
        lambda: charts_of(comparison, layouts, paths, scale, baseline),
        format_,
        output,
        charts,
        force=force,
        detail=Detail(whole=verbose),
    )
    if comparison.exit_code == MeasureError.exit_code and format_ == "console":
        _refuse_empty_sides(paths, layouts)
    sys.exit(exit_code(comparison, fail_on))


def _refuse_empty_sides(paths: Sequence[str], layouts: Sequence[Layout]) -> None:
    """Name the side without results: "no cell in common" alone would suggest a different workload."""
    sides = zip(paths, layouts, strict=True)
    unread = [
        (path, side)
        for path, side in sides
        if not (side.entries or side.logs or side.device_stats)
    ]
    if unread:
        refused = any(side.refusals for _, side in unread)
        refuse_unread(
            (path for path, _ in unread),
            "`iodelta show` gives the reasons" if refused else "",
        )
