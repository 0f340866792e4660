"""``iodelta history``: experiments of many nights, and the steps between them. Commands import sqlalchemy."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.groups import Group
from iodelta.errors import MeasureError, RequestError

if TYPE_CHECKING:
    from iodelta.history.answers import Candidate, HistoryPoint, HistorySeries, NightAdded
    from iodelta.history.log import Added, Log
    from iodelta.history.points import Night
    from iodelta.history.store import Line, Store

_EXAMPLES = """
\b
Examples:
  iodelta history add iodelta-20260102-030405
  iodelta history show
  iodelta history scan
"""
_HISTORY = click.option(
    "--history",
    "place",
    default="iodelta-history",
    metavar="DIRECTORY|URL",
    help="A directory (default: iodelta-history), or postgresql://USER@HOST/DATABASE.",
)
_LOG = click.option(
    "--log",
    type=click.Path(path_type=Path),
    help="The log of added folders (default: decisions.jsonl in the directory; needed with a URL).",
)
_FORMAT = click.option(
    "--format", "format_", type=click.Choice(["console", "json"]), default="console", show_default=True
)
_PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))


@click.group("history", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Follow results over many nights: collect experiment folders, and find the steps between them."""


@command.command("add", epilog="\b\nExamples:\n  iodelta history add iodelta-20260102-030405\n")
@_PATHS
@_HISTORY
@_LOG
@_FORMAT
def add(paths: tuple[Path, ...], place: str, log: Path | None, format_: str) -> None:
    """Add experiment folders or bundles. A folder that is there already is added once; one that grew is replaced."""
    from iodelta.history.answers import HistoryAddAnswer, NightAdded
    from iodelta.history.points import night_of

    store, written = _opened(place, log, write=True)
    added: list[NightAdded] = []
    for path in paths:
        night = night_of(path)
        # The log comes first: a folder that only the log knows is found by check, and rebuild adds it.
        if night.sha not in {entry.sha for entry in written.entries()[0] if entry.folder == night.folder}:
            written.append(_entry(night))
        added.append(NightAdded(str(path), store.add(night), len(night.points), dict(night.left_out)))
        if format_ == "console":
            _say_added(added[-1])
    if format_ == "json":
        _print(HistoryAddAnswer(tuple(added)))


def _say_added(night: NightAdded) -> None:
    click.echo(f"{night.outcome}: {_inert(night.folder)}, {night.points} points")
    for series, reason in night.left_out.items():
        click.echo(f"  left out: {_inert(series)}: {_inert(reason)}")


@command.command("show", epilog="\b\nExamples:\n  iodelta history show\n")
@_HISTORY
@_LOG
@_FORMAT
def show(place: str, log: Path | None, format_: str) -> None:
    """List the series with their nights, epochs and newest values."""
    store, _ = _opened(place, log)
    lines = store.lines()
    if format_ == "json":
        from iodelta.history.answers import HistoryShowAnswer

        _print(HistoryShowAnswer(len(store.experiments()), tuple(map(_series, lines))))
        return
    click.echo(f"{len(store.experiments())} experiments, {len(lines)} series")
    for line in lines:
        last = line.points[-1] if line.points else None
        epochs = len({point.epoch for point in line.points})
        words = [line.key.machine, line.cell, line.variant, line.key.metric]
        said = f"{len(line.points)} nights, {epochs} {'epoch' if epochs == 1 else 'epochs'}"
        if last is not None:
            said += f", {_day(last)}: {math.exp(last.y):.4g} {line.unit}"
            said += f", {math.expm1(last.r):+.2%} against the reference" if last.r is not None else ""
        click.echo("  " + _inert("  ".join(words)) + ": " + _inert(said))


@command.command("scan", epilog="\b\nExamples:\n  iodelta history scan\n")
@_HISTORY
@_LOG
@_FORMAT
def scan(place: str, log: Path | None, format_: str) -> None:
    """Find steps in every series, each epoch by itself.

    A step found here is a candidate, not a verdict: measure both builds in one experiment before you act on it. Exit
    codes: 0 no candidate, 3 candidates.
    """
    store, _ = _opened(place, log)
    from iodelta.history.scan import scan as scanned  # after the store, which says what is not installed

    found = scanned(store.lines())
    if format_ == "json":
        from iodelta.history.answers import HistoryScanAnswer

        _print(HistoryScanAnswer(tuple(found)))
    else:
        for candidate in found:
            click.echo(_said(candidate))
        if not found:
            click.echo("no candidate")
    sys.exit(3 if found else 0)


@command.command("check", epilog="\b\nExamples:\n  iodelta history check\n")
@_HISTORY
@_LOG
@_FORMAT
def check(place: str, log: Path | None, format_: str) -> None:
    """Compare the database with its log and with the folders it was made from. Exit codes: 0 the same, 4 not."""
    store, written = _opened(place, log)
    problems = list(_problems(store, written))
    if format_ == "json":
        from iodelta.history.answers import HistoryCheckAnswer

        _print(HistoryCheckAnswer(tuple(problems)))
    else:
        for problem in problems or ["the database, the log and the folders agree"]:
            click.echo(_inert(problem))
    sys.exit(4 if problems else 0)


@command.command("rebuild", epilog="\b\nExamples:\n  iodelta history rebuild\n")
@_HISTORY
@_LOG
@_FORMAT
def rebuild(place: str, log: Path | None, format_: str) -> None:
    """Rebuild the database from the log and the folders. iodelta refuses while a folder is missing."""
    from iodelta.history.points import night_of

    _store_class()  # before the folders are read
    written = _log(place, log)
    nights = [night_of(Path(folder)) for folder in written.folders().values()]
    if not nights:
        raise RequestError("the log names no folder", place=str(written.path), remedy="give the log with --log")
    if not _is_url(place):
        _fresh(Path(place), nights)
    else:
        store, _ = _opened(place, log, write=True)
        store.replace_all(nights)
    if format_ == "json":
        from iodelta.history.answers import HistoryRebuildAnswer

        _print(HistoryRebuildAnswer(len(nights)))
    else:
        click.echo(f"rebuilt from {len(nights)} folder{'' if len(nights) == 1 else 's'}")


def _print(answer: object) -> None:
    from iodelta.report.documents import written

    sys.stdout.buffer.write(written(answer))


def _series(line: Line) -> HistorySeries:
    from iodelta.history.answers import HistorySeries

    return HistorySeries(
        line.key.machine,
        line.cell,
        line.variant,
        line.key.metric,
        line.unit,
        line.better,
        line.points,
    )


def _fresh(directory: Path, nights: list[Night]) -> None:
    """Write a new file; once it is whole, it replaces the old one, damaged or not."""
    draft, database = directory / "history.db.new", directory / "history.db"
    for leftover in directory.glob("history.db.new*"):
        leftover.unlink()
    store = _store_class()(f"sqlite:///{draft}")
    store.prepare()
    store.replace_all(nights)
    store.close()
    for journal in ("-wal", "-shm"):
        database.with_name(database.name + journal).unlink(missing_ok=True)
    draft.replace(database)


def _problems(store: Store, written: Log) -> list[str]:
    from iodelta.history.points import night_of

    entries, torn = written.entries()
    damage = store.damage()
    problems = [f"damaged: {damage}"] if damage else []
    problems += [f"{written.path}:{number}: not a whole line" for number in torn]
    logged = {entry.identifier: entry for entry in entries}
    known = {row["id"]: row for row in store.experiments()}
    problems += [f"not in the database: {logged[name].folder}" for name in logged.keys() - known.keys()]
    for name, row in known.items():
        if name not in logged:
            problems.append(f"not in the log: {row['folder']}")
        try:
            if night_of(Path(row["folder"])).sha != row["sha"]:
                problems.append(f"changed since it was added: {row['folder']}")
        except (RequestError, MeasureError) as error:
            problems.append(f"cannot be read: {row['folder']}: {error.what}")
    return problems


def _said(candidate: Candidate) -> str:
    way = "worse" if candidate.size > 0.0 else "better"
    by = "against the reference" if candidate.by == "ratio" else "of the level alone"
    doubt = f"; suspected: {candidate.nights} nights say little of how nights differ" if candidate.few else ""
    words = [candidate.machine, candidate.cell, candidate.variant, candidate.metric]
    between = f"between {_night(candidate.last_good)} and {_night(candidate.first_bad)}"
    size = f"{abs(math.expm1(candidate.size)):.2%} {way} {by}"
    return _inert(f"candidate: {'  '.join(words)}: {size}, {between}, z {candidate.z:.1f}{doubt}")


def _night(point: HistoryPoint) -> str:
    build = point.describe or point.commit[:12]
    return f"{_day(point)} ({build})" if build else _day(point)


def _day(point: HistoryPoint) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(point.t))


def _is_url(place: str) -> bool:
    return "://" in place


def _log(place: str, log: Path | None) -> Log:
    from iodelta.history.log import Log

    if log is None and _is_url(place):
        raise RequestError("a history on a server keeps its log in a file", place="--log", remedy="give --log FILE")
    return Log(log or Path(place) / "decisions.jsonl")


def _opened(place: str, log: Path | None, *, write: bool = False) -> tuple[Store, Log]:
    """The history and its log. Raises RequestError where the extra is missing, or a newer iodelta made the history."""
    kind = _store_class()
    written = _log(place, log)
    if not _is_url(place) and write:
        try:
            Path(place).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(f"cannot make the history: {error.strerror}", place=place) from error
    store = _store(place, kind)
    if write:
        store.prepare()
    return store, written


def _store_class() -> type[Store]:
    """Raises RequestError where the extra is not installed."""
    try:
        from iodelta.history.store import Store
    except ModuleNotFoundError as error:
        raise RequestError(
            f"a history needs {error.name}", remedy="install iodelta with it: pip install 'iodelta[history]'"
        ) from error
    return Store


def _store(place: str, kind: type[Store]) -> Store:
    if not _is_url(place):
        return kind(f"sqlite:///{Path(place) / 'history.db'}")
    scheme, _, rest = place.partition("://")
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise RequestError(f"{scheme!r} is not a database that a history can be in", place="--history",
                           remedy="give a directory, or postgresql://USER@HOST/DATABASE")  # fmt: skip
    return kind(f"postgresql+psycopg://{rest}")


def _entry(night: Night) -> Added:
    from iodelta.history.log import Added

    return Added(time.time(), night.identifier, night.sha, night.folder)


def _inert(text: object) -> str:
    from iodelta.study.words import inert

    return inert(str(text))
