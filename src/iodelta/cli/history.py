"""``iodelta history``: experiments of many nights, and the steps between them. Commands import sqlalchemy."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.api.histories import is_url, log_of, store_class
from iodelta.cli.files import print_document
from iodelta.cli.groups import Group
from iodelta.cli.histories import (
    FORMAT,
    HISTORY,
    LOG,
    add_each,
    given_of,
    inert,
    opened,
)
from iodelta.cli.history_alerts import alert, annotate, decide, recorded, scan
from iodelta.cli.history_compare import compare
from iodelta.cli.history_confirm import confirm
from iodelta.cli.history_exchange import export, import_
from iodelta.cli.history_night import night
from iodelta.cli.history_prune import prune
from iodelta.cli.history_show import show
from iodelta.errors import RequestError
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.history.points import Night

_EXAMPLES = """
\b
Examples:
  iodelta history add iodelta-20260102-030405
  iodelta history show
  iodelta history scan
"""
_PATHS = click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path)
)


@click.group("history", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Follow results over many nights: collect experiment folders, and find the steps between them."""


for subcommand in (
    scan,
    compare,
    alert,
    decide,
    annotate,
    confirm,
    night,
    show,
    import_,
    export,
    prune,
):
    command.add_command(subcommand)


@command.command(
    "add", epilog="\b\nExamples:\n  iodelta history add iodelta-20260102-030405\n"
)
@_PATHS
@HISTORY
@LOG
@FORMAT
@click.option(
    "--machine",
    default="",
    help="For bundles and results of other tools: where they were measured.",
)
@click.option(
    "--at",
    "moment",
    default="",
    metavar="TIME",
    help="For those: when they were measured, such as 2026-11-22T02:00Z.",
)
@click.option(
    "--describe", default="", help="For those: which build was measured, such as v6.12."
)
@click.option("--commit", default="", help="For those: the commit of that build.")
@click.option(
    "--repo",
    default="",
    metavar="PATH|NAME",
    help="For those: the repository of the commit; a checkout says how commits follow each other.",
)
def add(
    paths: tuple[Path, ...],
    place: str,
    log: Path | None,
    format_: str,
    machine: str,
    moment: str,
    describe: str,
    commit: str,
    repo: str,
) -> None:
    """Add experiment folders or bundles, and any result that `iodelta show` reads, each as one night.

    Adding a folder twice changes nothing; a folder that has grown replaces its night. Results of other tools form
    separate series, flagged as foreign.
    """
    given = given_of(machine, moment, describe, commit, repo=repo)
    add_each(paths, given, place, log, format_, repo)


@command.command("check", epilog="\b\nExamples:\n  iodelta history check\n")
@HISTORY
@LOG
@FORMAT
def check(place: str, log: Path | None, format_: str) -> None:
    """Compare the database with its log, with the folders it was made from, and with those of confirmations. It first
    finishes what a kill interrupted, and names it. Exit codes: 0 they agree, 4 they differ."""
    store, written = opened(place, log)
    from iodelta.history.checking import problems as found
    from iodelta.history.finishing import finish

    done = () if store.damage() else finish(store, written)
    for sentence in done:
        click.echo(inert(sentence), err=True)
    problems = list(found(store, written))
    if format_ == "json":
        from iodelta.history.answers import HistoryCheckAnswer

        print_document(HistoryCheckAnswer(tuple(problems)))
    else:
        for problem in problems or ["the database, the log and the folders agree"]:
            click.echo(inert(problem))
    sys.exit(4 if problems else 0)


@command.command("rebuild", epilog="\b\nExamples:\n  iodelta history rebuild\n")
@HISTORY
@LOG
@FORMAT
def rebuild(place: str, log: Path | None, format_: str) -> None:
    """Rebuild the database from the log and the folders. iodelta refuses while a folder is missing."""
    store_class()  # before the folders are read
    from iodelta.history.reading import logged

    written = log_of(place, log)
    folders = len({entry.folder for entry in written.added().values()})
    if not folders:
        raise RequestError(
            "the log names no folder",
            place=str(written.path),
            remedy="give the log with --log",
        )
    nights = logged(written)
    if not is_url(place):
        _fresh(Path(place), nights)
    else:
        store, _ = opened(place, log, write=True)
        store.replace_all(nights)
    from iodelta.history.finishing import finish

    store, written = opened(place, log)
    # Points that were added while the folders were read are in the old file.
    finish(store, written)
    recorded(store, written)
    if format_ == "json":
        from iodelta.history.answers import HistoryRebuildAnswer

        print_document(HistoryRebuildAnswer(folders))
    else:
        click.echo(f"rebuilt from {plural(folders, 'folder')}")


def _fresh(directory: Path, nights: Iterable[Night]) -> None:
    """Write a new file; once it is whole, it replaces the old one, damaged or not."""
    draft, database = directory / "history.db.new", directory / "history.db"
    _without(draft)
    from iodelta.history.store import url_of

    store = store_class()(url_of(draft))
    try:
        store.prepare()
        store.replace_all(nights)
    except BaseException:
        store.close()
        _without(draft)
        raise
    store.close()
    for journal in ("-wal", "-shm"):
        database.with_name(database.name + journal).unlink(missing_ok=True)
    draft.replace(database)


def _without(draft: Path) -> None:
    """Remove what is left of a file that was not finished, with its journals."""
    for leftover in draft.parent.glob(f"{draft.name}*"):
        leftover.unlink()
