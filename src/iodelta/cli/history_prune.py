"""``iodelta history prune``: take old nights out of a history."""

from __future__ import annotations

import re
import time
from pathlib import Path

import click

from iodelta.cli.files import print_document
from iodelta.cli.histories import FORMAT, HISTORY, LOG, inert, opened
from iodelta.errors import RequestError
from iodelta.plural import plural

DAY = 86400.0
_UNITS = {"d": DAY, "w": 7 * DAY, "y": 365.25 * DAY}

_EXAMPLES = """
\b
Examples:
  iodelta history prune --older-than 2y --dry-run
  iodelta history prune --keep 500
  iodelta history prune --gone
"""


@click.command("prune", epilog=_EXAMPLES)
@HISTORY
@LOG
@FORMAT
@click.option(
    "--older-than",
    "age",
    default="",
    metavar="AGE",
    help="Nights that are older than this: 90d, 26w, 2y.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="All nights except the newest this many of each machine.",
)
@click.option("--gone", is_flag=True, help="Nights whose folder no longer exists.")
@click.option(
    "--dry-run", is_flag=True, help="Only list the nights that would be removed."
)
def prune(
    place: str,
    log: Path | None,
    format_: str,
    age: str,
    keep: int | None,
    gone: bool,
    dry_run: bool,
) -> None:
    """Remove nights from the history, and list each one. Folders are never deleted; the log keeps the decision, and
    `iodelta history add` of the folder brings a night back."""
    if not age and keep is None and not gone:
        raise RequestError(
            "nothing is chosen",
            place="iodelta history prune",
            remedy="add --older-than, --keep or --gone",
        )
    before = time.time() - _seconds(age) if age else None
    store, written = opened(place, log)
    from iodelta.history.answers import HistoryPruneAnswer
    from iodelta.history.finishing import finish
    from iodelta.history.pruning import chosen
    from iodelta.history.pruning import prune as take_out

    if not dry_run:
        finish(store, written)
    nights = chosen(store, before=before, keep=keep, gone=gone)
    if nights and not dry_run:
        take_out(nights, store, written)
    if format_ == "json":
        print_document(HistoryPruneAnswer(nights, not dry_run))
        return
    for night in nights:
        moment = time.strftime("%Y-%m-%d %H:%M", time.gmtime(night.t))
        click.echo(
            f"  {moment}  {inert(night.machine)}  {inert(night.folder)}: {night.reason}"
        )
    state = "would be removed" if dry_run else "removed; their folders are unchanged"
    click.echo(f"{plural(len(nights), 'night')} {state}")


def _seconds(age: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([dwy])", age.strip())
    if match is None:
        raise RequestError(
            f"not an age: {age!r}",
            place="--older-than",
            remedy="write it as 90d, 26w or 2y",
        )
    return float(match[1]) * _UNITS[match[2]]
