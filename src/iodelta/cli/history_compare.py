"""``iodelta history compare``: two revisions over all series."""

from __future__ import annotations

import math
from pathlib import Path

import click

from iodelta.cli.files import print_document
from iodelta.cli.histories import FORMAT, HISTORY, LOG, inert, opened
from iodelta.errors import RequestError

_EXAMPLES = """
\b
Examples:
  iodelta history compare v6.11 v6.12
  iodelta history compare 0f3c5e21d8aa 4f2a1c9b77de --only read.iops
"""


@click.command("compare", epilog=_EXAMPLES)
@click.argument("old")
@click.argument("new")
@click.option(
    "--only",
    multiple=True,
    metavar="TEXT",
    help="Only series with TEXT in their names.",
)
@HISTORY
@LOG
@FORMAT
def compare(
    old: str,
    new: str,
    only: tuple[str, ...],
    place: str,
    log: Path | None,
    format_: str,
) -> None:
    """Compare two builds in every series that measured both, by commit or name; the clearest change comes first.

    The builds were measured in different nights, so a change is a candidate and not a verdict: `iodelta history
    confirm` or `iodelta run` measures both in one experiment.
    """
    store, _ = opened(place, log)
    from iodelta.history.answers import HistoryCompareAnswer
    from iodelta.history.revisions import compared
    from iodelta.study.words import percent

    rows = compared(store, old, new, only)
    if not rows:
        raise RequestError(
            "no series measured both",
            place=f"{old} {new}",
            remedy="`iodelta history show` lists nights with their builds",
        )
    if format_ == "json":
        print_document(HistoryCompareAnswer(old, new, tuple(rows)))
        return
    clear = [row for row in rows if abs(row.z) >= 3.5]
    click.echo(
        f"{len(rows)} series measured both; {len(clear)} differ clearly (z of 3.5 or more)"
    )
    width = max(len(row.name) for row in rows)
    for row in rows:
        change = percent(math.expm1(row.change), row.error)
        click.echo(
            f"  {inert(row.name):<{width}}  {change:>9}  z {row.z:+.1f}{'  worse' * (row.worse and abs(row.z) >= 3.5)}"
        )
