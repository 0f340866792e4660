"""Code that the commands of ``iodelta history`` share: options, opening a history, and words for nights."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.api.histories import is_url, log_of, store_class, store_of
from iodelta.cli.files import print_document
from iodelta.cli.shared_options import in_console_or_json
from iodelta.errors import IodeltaError, RequestError
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.history.answers import HistoryPoint, NightAdded
    from iodelta.history.log import Given, Log
    from iodelta.history.store import Store

HISTORY = click.option(
    "--history",
    "place",
    default="iodelta-history",
    metavar="DIRECTORY|URL",
    help="A directory (default: iodelta-history), or postgresql://USER@HOST/DATABASE.",
)
LOG = click.option(
    "--log",
    type=click.Path(path_type=Path),
    help="The log of added folders (default: decisions.jsonl in the directory; needed with a URL).",
)
FORMAT = in_console_or_json


SCANNED = 200_000
"""Points in changed series up to which adding a night scans them at once."""


def ends_said(good: HistoryPoint, bad: HistoryPoint) -> str:
    """Return the two nights around a step."""
    from iodelta.report.stories.course import ends

    return ends(good, bad)


def opened(place: str, log: Path | None, *, write: bool = False) -> tuple[Store, Log]:
    """Return the history and its log. Raises RequestError where the extra is missing, or a newer iodelta made the
    history.
    """
    kind = store_class()
    written = log_of(place, log)
    store = store_of(place, kind)
    if not is_url(place) and write:
        readable(str(Path(place).absolute()), "--history")
        store.check_place()
        try:
            Path(place).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(
                f"cannot make the history: {error.strerror}", place=place
            ) from error
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(store.close)
    if write:
        store.prepare()
    return store, written


def add_each(
    paths: tuple[Path, ...],
    given: Given,
    place: str,
    log: Path | None,
    format_: str,
    repo: str = "",
) -> None:
    """Add what is at each path, and print what became of it; a checkout ``repo`` says how its commits follow each
    other. Raises RequestError, MeasureError for the first path that
    cannot be added, saying how many were added before it; a document has those."""
    store, written = opened(place, log, write=True)
    from iodelta.history.adding import add
    from iodelta.history.answers import HistoryAddAnswer

    added: list[NightAdded] = []
    try:
        for path in paths:
            readable(str(path.absolute()), "PATH")
            added.append(add(path, given, store, written))
            if format_ == "console":
                print_added(added[-1])
    except IodeltaError as error:
        if added:
            done = f"{len(added)} of {plural(len(paths), 'path')} were added before"
            error.remedy = f"{error.remedy}. {done}" if error.remedy else done
        raise
    finally:
        if format_ == "json" and added:
            print_document(HistoryAddAnswer(tuple(added)))
    if Path(repo).is_dir() and repo:
        ordered(store, written, repo)
    scan_added(store, written)


def ordered(store: Store, written: Log, path: str) -> None:
    """Write to the log in which order the commits that were measured follow each other in a repository, also those of
    nights that do not name theirs. Raises RequestError, MeasureError."""
    from iodelta.bisect.git import Repository
    from iodelta.cli.checkout import checked_out
    from iodelta.history.commits import Order
    from iodelta.machine import LocalMachine

    name, measured = (
        str(checked_out(path)["repo"]),
        [point for point in store.nights().values() if point.commit],
    )
    entries, repository, is_known = (
        written.entries()[0],
        Repository.open(LocalMachine(), path),
        False,
    )
    for repo in (name, ""):
        own = [point.commit for point in measured if point.repo == repo]
        order = Order(entries)
        entry = order.extended(repository, repo, own) if own else None
        if entry is not None:
            written.append(entry)
        is_known |= entry is not None or any(
            order.is_known(commit, repo) for commit in own
        )
        is_known |= bool(repo and own)
    if not is_known:
        known = (
            ", ".join(sorted({point.repo for point in measured if point.repo}))
            or "none"
        )
        raise RequestError(
            f"no night measured a commit of {name}",
            place=path,
            remedy=f"repositories: {known}",
        )


def scan_added(store: Store, written: Log) -> None:
    """Scan the series that were added to, for the lists and pages that are looked at next; a large import waits for
    ``scan``."""
    from iodelta.history.kept import refresh

    behind = store.behind()
    if behind > SCANNED:
        click.echo(
            f"{behind:,} points in changed series: `iodelta history scan` looks for steps in them",
            err=True,
        )
        return
    refresh(store, written.entries()[0])


def keeper(
    place: str, log: Path | None, *, dry_run: bool = False
) -> Callable[[Iterable[Path]], None]:
    """Return what adds measured folders to the history at ``place``, opened now so that a wrong one is refused before
    anything is measured; without a place nothing is added. Raises RequestError."""
    if log is not None and not place:
        raise RequestError(
            "a log without a history",
            place="--log",
            remedy="give --history DIRECTORY|URL, too",
        )
    if not place or dry_run:
        return lambda folders: None
    store, written = opened(place, log, write=True)
    from iodelta.history.adding import add
    from iodelta.history.log import Given

    def keep(folders: Iterable[Path]) -> None:
        failed: list[IodeltaError] = []
        for folder in folders:
            try:
                print_added(add(folder, Given(), store, written), err=True)
            except IodeltaError as error:
                failed.append(error)
        scan_added(store, written)
        if failed:
            raise failed[0]

    return keep


def print_added(night: NightAdded, *, err: bool = False) -> None:
    """What became of a path, and why a series has no point of it."""
    click.echo(
        f"{night.outcome}: {inert(night.folder)}, {plural(night.points, 'point')}",
        err=err,
    )
    for series, reason in night.left_out.items():
        click.echo(f"  left out: {inert(series)}: {inert(reason)}", err=err)


def tell(line: str) -> None:
    """Print a line of an answer: wrapped below its indent in a terminal, whole in a pipe."""
    from iodelta.study.words import wrap

    parts = [line]
    if sys.stdout.isatty():
        indent = len(line) - len(line.lstrip()) + 4
        parts = wrap(line, shutil.get_terminal_size().columns, " " * indent, whole=True)
    for part in parts:
        click.echo(part)


def inert(text: object) -> str:
    """Text without control sequences of a terminal."""
    from iodelta.study.words import inert as of_text

    return of_text(str(text))


def readable(text: str, place: str) -> str:
    """Text that the log can keep. Raises RequestError for bytes of a command line that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestError(
            f"not text in UTF-8: {text!a}", place=place, remedy="write it in UTF-8"
        ) from None
    return text


def given_of(
    machine: str,
    at: str,
    describe: str,
    commit: str,
    format_: str = "",
    better: tuple[tuple[str, str], ...] = (),
    repo: str = "",
) -> Given:
    """Return what options say of results that do not say it themselves. Raises RequestError."""
    from iodelta.history.log import Given

    for text, name in (
        (machine, "--machine"),
        (describe, "--describe"),
        (commit, "--commit"),
        (repo, "--repo"),
    ):
        readable(text, name)
    if Path(repo).is_dir() and repo:
        from iodelta.cli.checkout import checked_out

        repo = str(checked_out(repo)["repo"])
    return Given(machine, moment_of(at), describe, commit, format_, better, repo)


def moment_of(text: str) -> float | None:
    """Unix seconds of a time as ISO 8601 has it; UTC where no zone is said. Raises RequestError."""
    from datetime import UTC, datetime

    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(
            f"not a time: {text!r}",
            place="--at",
            remedy="write it as 2026-11-22T02:00Z",
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
