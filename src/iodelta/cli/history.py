"""``iodelta history``: experiments of many nights, and the steps between them. Commands import sqlalchemy."""

from __future__ import annotations

import math
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.api.histories import is_url, log_of, store_class, store_of
from iodelta.cli.commands import Asked, declared, group
from iodelta.cli.files import check_free, write, write_or_print
from iodelta.errors import IodeltaError, RequestError
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.history.alerts import History
    from iodelta.history.answers import Alert, Candidate, NightAdded
    from iodelta.history.courses import Course
    from iodelta.history.log import Log
    from iodelta.history.store import Store
    from iodelta.report.stories.story import Story

SCANNED = 200_000
"""Points in changed series up to which adding a night scans them at once."""

SHOWN = 8
"""Series and commits of an alert that a scan lists; ``history alert`` lists all."""

UNITS = {"d": 86400.0, "w": 7 * 86400.0, "y": 365.25 * 86400.0}

command = group(
    "history",
    "Follow results over many nights: collect experiment folders, and find the steps between them.",
    """
  iodelta history add iodelta-20260102-030405
  iodelta history show
  iodelta history scan
""",
)


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


# ----------------------------------------------------------------------------------------------- nights in and out

GIVEN = """
--machine NAME        For bundles and results of other tools: where they were measured.
--at TIME             For those: when they were measured, such as 2026-11-22T02:00Z.
--describe TEXT       For those: which build was measured, such as v6.12.
--commit COMMIT       For those: the commit of that build.
--repo PATH|NAME      For those: the repository of the commit; a checkout says how commits follow each other.
--history
--log
--format
"""


@declared(
    "add",
    "paths...",
    GIVEN,
    "  iodelta history add iodelta-20260102-030405",
    into=command,
)
def add(asked: Asked) -> None:
    """Add experiment folders or bundles, and any result that `iodelta show` reads, each as one night.

    Adding a folder twice changes nothing; a folder that has grown replaces its night. Results of other tools form
    separate series, flagged as foreign.
    """
    _add_each(asked, "", ())


@declared(
    "import",
    "paths...",
    f"""
--from bmf|perfherder|lnt|csv|parquet!
                      Format of the files.
{GIVEN}
--better MEASURE=higher|lower*
                      Which direction is better for a measure.
""",
    """
  iodelta history import results.json --from bmf --machine stor3 --at 2026-11-22T02:00Z
  iodelta history import old.csv --from csv
""",
    into=command,
)
def import_(asked: Asked) -> None:
    """Import results from other services: Bencher's metric format, Perfherder, LNT, CSV, Parquet.

    Points form separate series, flagged as foreign. A table has the columns cell, metric and value, and where
    known time, machine, variant, unit, better, error (relative standard error), build, commit and repo.
    """
    ways = []
    for text in asked.better:
        measure, _, way = text.rpartition("=")
        if not measure or way not in ("higher", "lower"):
            raise RequestError(
                f"not MEASURE=higher or MEASURE=lower: {text!r}", place="--better"
            )
        ways.append((measure, way))
    _add_each(asked, asked.from_, tuple(ways))


def _add_each(asked: Asked, format_: str, better: tuple[tuple[str, str], ...]) -> None:
    """Add what is at each path, and print what became of it; a checkout says how its commits follow each other.

    Raises RequestError, MeasureError for the first path that cannot be added, saying how many were added before it; a
    document has those."""
    for name in ("machine", "describe", "commit", "repo"):
        readable(getattr(asked, name), f"--{name}")
    repo = asked.repo
    is_checkout = bool(repo) and Path(repo).is_dir()
    if is_checkout:
        from iodelta.api.checkout import checked_out

        repo = str(checked_out(repo)["repo"])
    from iodelta.history.log import Given

    moment = moment_of(asked.at)
    store, written = opened(asked.history, asked.log, write=True)
    from iodelta.history.adding import add
    from iodelta.history.answers import HistoryAddAnswer

    given = Given(
        asked.machine, moment, asked.describe, asked.commit, format_, better, repo
    )
    added: list[NightAdded] = []
    try:
        for path in map(Path, asked.paths):
            readable(str(path.absolute()), "PATH")
            added.append(add(path, given, store, written))
            if asked.format == "console":
                print_added(added[-1])
    except IodeltaError as error:
        if added:
            done = (
                f"{len(added)} of {plural(len(asked.paths), 'path')} were added before"
            )
            error.remedy = f"{error.remedy}. {done}" if error.remedy else done
        raise
    finally:
        if added:
            asked.answer(HistoryAddAnswer(tuple(added)), ())
    if is_checkout:
        ordered(store, written, asked.repo)
    scan_added(store, written)


def print_added(night: NightAdded, *, err: bool = False) -> None:
    """What became of a path, and why a series has no point of it."""
    click.echo(
        f"{night.outcome}: {inert(night.folder)}, {plural(night.points, 'point')}",
        err=err,
    )
    for series, reason in night.left_out.items():
        click.echo(f"  left out: {inert(series)}: {inert(reason)}", err=err)


def ordered(store: Store, written: Log, path: str) -> None:
    """Write to the log in which order the commits that were measured follow each other in a repository, also those of
    nights that do not name theirs. Raises RequestError, MeasureError."""
    from iodelta.api.checkout import checked_out
    from iodelta.bisect.git import Repository
    from iodelta.history.commits import Order
    from iodelta.machine import LocalMachine

    name = str(checked_out(path)["repo"])
    measured = [point for point in store.nights().values() if point.commit]
    entries = written.entries()[0]
    repository, is_known = Repository.open(LocalMachine(), path), False
    for repo in (name, ""):
        own = [point.commit for point in measured if point.repo == repo]
        order = Order(entries)
        entry = order.extended(repository, repo, own) if own else None
        if entry is not None:
            written.append(entry)
        is_known |= entry is not None or bool(repo and own)
        is_known |= any(order.is_known(commit, repo) for commit in own)
    if not is_known:
        known = ", ".join(sorted({point.repo for point in measured if point.repo}))
        raise RequestError(
            f"no night measured a commit of {name}",
            place=path,
            remedy=f"repositories: {known or 'none'}",
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


@declared(
    "export",
    "[target]",
    """
--history
--log
--to csv|json|parquet|delta|bmf|kcidb|lnt|openmetrics|perfherder!
                      What is written.
--origin NAME [iodelta]
                      For kcidb: what KernelCI calls you.
--machine NAME        Only the series of this machine.
--force
""",
    """
  iodelta history export --to csv > history.csv
  iodelta history export history.parquet --to parquet
  iodelta history export --to kcidb --origin mylab > report.json
  iodelta history export --to lnt --machine stor3 > report.json
  iodelta history export s3://bucket/history --to delta
""",
    into=command,
)
def export(asked: Asked) -> None:
    """Export the history for other tools and services.

    As CSV, JSON or Parquet all points are exported, for Bencher (bmf), KernelCI (kcidb), LNT, Perfherder or Prometheus
    (openmetrics) the newest values, and everything to a Delta lake (a directory or s3://BUCKET/PATH; AWS_* variables
    say how to reach it).

    An export to a lake appends the missing experiments, at most 1000 per commit, and compacts the table, which is
    partitioned by month and machine.
    """
    kind, target, machine = asked.to, asked.target, asked.machine
    if kind == "delta" and machine:
        raise RequestError(
            "a lake holds all machines: it is partitioned by them", place="--machine"
        )
    if kind == "delta" and not target:
        raise RequestError(
            "a lake needs a target",
            place="export --to delta",
            remedy="name a directory or s3://BUCKET/PATH",
        )
    if kind == "kcidb":
        from iodelta.history.services import ORIGIN

        if not ORIGIN.fullmatch(asked.origin):
            raise RequestError(
                f"not an origin of KernelCI: {asked.origin!r}",
                place="--origin",
                remedy="small letters, digits and _ alone",
            )
    if target and kind != "delta":
        check_free(Path(target), force=asked.force)
    store, written = opened(asked.history, asked.log)
    if kind == "delta":
        from iodelta.history.lake import export as to_lake

        done = to_lake(store, target, entries=written.entries()[0])
        click.echo(
            f"{inert(done.target)}: {plural(done.appended, 'experiment')} appended, {done.deleted} deleted"
        )
        return
    data = _exported(store, kind, asked.origin, machine)
    if target:
        write(Path(target), data, "the export", force=asked.force)
    else:
        sys.stdout.buffer.write(data)


def _exported(store: Store, kind: str, origin: str, machine: str) -> bytes:
    import io

    from iodelta.history import services
    from iodelta.history.exchange import HistoryExportAnswer, frame, rows
    from iodelta.history.scan import unscanned
    from iodelta.report.documents import written

    lines = [line for line in store.lines(machine=machine) if line.points]
    if machine and not lines:
        raise RequestError(f"no series of {machine!r}", place="--machine")
    if kind in ("csv", "parquet"):
        buffer, table = io.BytesIO(), frame(lines)
        table.write_csv(buffer) if kind == "csv" else table.write_parquet(buffer)
        return buffer.getvalue()
    if kind == "openmetrics":
        return services.openmetrics(map(unscanned, lines)).encode()
    if kind in ("perfherder", "lnt"):
        made = services.perfherder if kind == "perfherder" else services.lnt
        document, left_out = made(lines)
        for sentence in left_out:
            click.echo(f"left out: {inert(sentence)}", err=True)
        return written(document)
    documents: dict[str, Callable[[], object]] = {
        "json": lambda: HistoryExportAnswer(tuple(rows(lines))),
        "bmf": lambda: services.bmf(lines),
        "kcidb": lambda: services.kcidb(lines, origin),
    }
    return written(documents[kind]())


@declared(
    "prune",
    "",
    """
--history
--log
--format
--older-than AGE      Nights that are older than this: 90d, 26w, 2y.
--keep NUMBER:1..     All nights except the newest this many of each machine.
--gone                Nights whose folder no longer exists.
--dry-run             Only list the nights that would be removed.
""",
    """
  iodelta history prune --older-than 2y --dry-run
  iodelta history prune --keep 500
  iodelta history prune --gone
""",
    into=command,
)
def prune(asked: Asked) -> None:
    """Remove nights from the history, and list each one. Folders are never deleted; the log keeps the decision, and
    `iodelta history add` of the folder brings a night back."""
    age = asked.older_than
    if not age and asked.keep is None and not asked.gone:
        raise RequestError(
            "nothing is chosen",
            place="iodelta history prune",
            remedy="add --older-than, --keep or --gone",
        )
    before = None
    if age:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([dwy])", age.strip())
        if match is None:
            raise RequestError(
                f"not an age: {age!r}",
                place="--older-than",
                remedy="write it as 90d, 26w or 2y",
            )
        before = time.time() - float(match[1]) * UNITS[match[2]]
    store, written = opened(asked.history, asked.log)
    from iodelta.history import pruning
    from iodelta.history.answers import HistoryPruneAnswer
    from iodelta.history.finishing import finish

    if not asked.dry_run:
        finish(store, written)
    nights = pruning.chosen(store, before=before, keep=asked.keep, gone=asked.gone)
    if nights and not asked.dry_run:
        pruning.prune(nights, store, written)
    lines = [
        f"  {time.strftime('%Y-%m-%d %H:%M', time.gmtime(night.t))}  {inert(night.machine)}  "
        f"{inert(night.folder)}: {night.reason}"
        for night in nights
    ]
    state = (
        "would be removed" if asked.dry_run else "removed; their folders are unchanged"
    )
    asked.answer(
        HistoryPruneAnswer(nights, not asked.dry_run),
        [*lines, f"{plural(len(nights), 'night')} {state}"],
    )


@declared(
    "check",
    "",
    "--history\n--log\n--format",
    "  iodelta history check",
    into=command,
)
def check(asked: Asked) -> None:
    """Compare the database with its log, with the folders it was made from, and with those of confirmations. It first
    finishes what a kill interrupted, and names it. Exit codes: 0 they agree, 4 they differ."""
    store, written = opened(asked.history, asked.log)
    from iodelta.history.answers import HistoryCheckAnswer
    from iodelta.history.checking import problems as found
    from iodelta.history.finishing import finish

    for sentence in () if store.damage() else finish(store, written):
        click.echo(inert(sentence), err=True)
    problems = tuple(found(store, written))
    lines = problems or ("the database, the log and the folders agree",)
    asked.answer(HistoryCheckAnswer(problems), map(inert, lines))
    sys.exit(4 if problems else 0)


@declared(
    "rebuild",
    "",
    "--history\n--log\n--format",
    "  iodelta history rebuild",
    into=command,
)
def rebuild(asked: Asked) -> None:
    """Rebuild the database from the log and the folders. iodelta refuses while a folder is missing."""
    store_class()  # what the database needs is missing before the folders are read
    from iodelta.history.adding import rebuild_file
    from iodelta.history.answers import HistoryRebuildAnswer
    from iodelta.history.finishing import finish
    from iodelta.history.reading import logged

    written = log_of(asked.history, asked.log)
    folders = len({entry.folder for entry in written.added().values()})
    if not folders:
        raise RequestError(
            "the log names no folder",
            place=str(written.path),
            remedy="give the log with --log",
        )
    nights = logged(written)
    if is_url(asked.history):
        store, _ = opened(asked.history, asked.log, write=True)
        store.replace_all(nights)
    else:
        rebuild_file(Path(asked.history), nights)
    store, written = opened(asked.history, asked.log)
    # Points that were added while the folders were read are in the old file.
    finish(store, written)
    recorded(store, written)
    said = f"rebuilt from {plural(folders, 'folder')}"
    asked.answer(HistoryRebuildAnswer(folders), [said])


# ------------------------------------------------------------------------------------------------- series and steps


@declared(
    "show",
    "",
    """
--history
--log
--only
--format console|json|html|markdown|mail [console]
--output
--force
""",
    """
  iodelta history show
  iodelta history show --only stor3 --only read.iops
  iodelta history show -o page.html
""",
    into=command,
)
def show(asked: Asked) -> None:
    """Show every series with its nights, epochs and steps: bars in a terminal, charts in a page (--format html).

    Below the bars ~ marks the nights among which a step is, ^ the first night surely after it, ! a single night beyond
    the scale, * the first night after a note, and | another epoch of the machine.
    """
    store, written = opened(asked.history, asked.log)
    entries, count = written.entries()[0], len(store.experiments())
    from iodelta.history import courses

    if asked.format == "json":
        from iodelta.history.answers import HistorySeries, HistoryShowAnswer
        from iodelta.history.commits import Order
        from iodelta.history.notes import placed
        from iodelta.report.documents import written as document

        series = tuple(
            HistorySeries(
                one.key.machine,
                one.cell,
                one.variant,
                one.key.metric,
                one.unit,
                one.better,
                one.points,
            )
            for one in store.lines()
            if courses.is_wanted(one, asked.only)
        )
        notes = placed(entries, store.nights().values(), Order(entries))
        data = document(HistoryShowAnswer(count, series, notes))
        write_or_print(asked.output, data, "the page", force=asked.force)
        return
    from iodelta.history.alerts import alerts_of
    from iodelta.history.kept import refresh

    kept, _ = refresh(store, entries)
    found = alerts_of(kept, entries, store.nights())
    shown = courses.courses(store, found.alerts, kept, asked.only, entries)
    if asked.format == "console":
        for line in _series(shown, count):
            tell(line) if line.strip() else None
        return
    from iodelta.report.stories.course import of_courses

    story = of_courses(shown, count)
    if asked.format == "html":
        from iodelta.report.formats.charts.course import charts_of
        from iodelta.report.formats.html.page import page
        from iodelta.report.formats.html.write import report

        data = report(page(story, None, charts_of(shown)))
    else:
        data = _text(story, asked.format)
    write_or_print(asked.output, data, "the page", force=asked.force)


def _text(story: Story, format_: str) -> bytes:
    """Return a story as a mail, or as Markdown."""
    if format_ == "mail":
        from iodelta.report.formats.mail import mail

        return mail(story).encode("ascii")
    from iodelta.report.formats.markdown import markdown

    return markdown(story).encode("utf-8", "backslashreplace")


def _series(lines: list[Course], nights: int) -> Iterator[str]:
    """Yield every series: its newest night, its bars, its epochs and steps."""
    from iodelta.history.placebo import against
    from iodelta.report.formats.pictures import BARS, draws
    from iodelta.report.formats.spark import PLAIN, spark
    from iodelta.report.stories.course import day, noted, noted_said, said, valued
    from iodelta.study.words import percent

    bars = BARS if draws(sys.stdout) else PLAIN
    yield f"{len(lines)} series, {plural(nights, 'night')}"
    for course in lines:
        points = course.line.points
        text = f"  {course.name}: {plural(len(points), 'night')}, {plural(len(course.epochs) + 1, 'epoch')}"
        if points:
            last, log = points[-1], course.log_ratio(points[-1])
            text += f", {day(last.t)}: {valued(last.y, course.line.unit)}"
            if log is not None:
                change = percent(math.expm1(log), last.r_se)
                text += f", {change} {against(course.line.variant)}"
        yield inert(text)
        if sys.stdout.isatty():
            yield from (f"    {line}" for line in spark(course, bars))
        for epoch in course.epochs:
            differs = inert("; ".join(epoch.differs))
            yield f"    another epoch from {day(epoch.t)}: {differs}"
        for step, notes, standing in zip(
            course.steps, course.noted, course.standings, strict=True
        ):
            yield inert(f"    {standing.said}: {said(step, standing)}")
            yield from (
                f"      noted there: {inert(noted_said(note))}" for note in notes
            )
    yield from (f"  {line}" for line in noted(lines))


@declared(
    "compare",
    "old new",
    "--only\n--history\n--log\n--format",
    """
  iodelta history compare v6.11 v6.12
  iodelta history compare 0f3c5e21d8aa 4f2a1c9b77de --only read.iops
""",
    into=command,
)
def compare(asked: Asked) -> None:
    """Compare two builds in every series that measured both, by commit or name; the clearest change comes first.

    The builds were measured in different nights, so a change is a candidate and not a verdict: `iodelta history
    confirm` or `iodelta run` measures both in one experiment.
    """
    store, _ = opened(asked.history, asked.log)
    from iodelta.history.answers import HistoryCompareAnswer
    from iodelta.history.revisions import compared
    from iodelta.study.words import percent

    rows = compared(store, asked.old, asked.new, asked.only)
    if not rows:
        raise RequestError(
            "no series measured both",
            place=f"{asked.old} {asked.new}",
            remedy="`iodelta history show` lists nights with their builds",
        )
    width = max(len(row.name) for row in rows)
    clear = sum(abs(row.z) >= 3.5 for row in rows)
    lines = [
        f"{len(rows)} series measured both; {clear} differ clearly (z of 3.5 or more)"
    ]
    for row in rows:
        change = percent(math.expm1(row.change), row.error)
        worse = "  worse" * (row.worse and abs(row.z) >= 3.5)
        name = f"{inert(row.name):<{width}}"
        lines.append(f"  {name}  {change:>9}  z {row.z:+.1f}{worse}")
    asked.answer(HistoryCompareAnswer(asked.old, asked.new, tuple(rows)), lines)


@declared(
    "scan",
    "",
    """
--repo PATH           Order nights by the commits of this git repository.
--history
--log
--format
--lake DIRECTORY|s3://...
                      Scan an exported lake in place of the history; nothing is recorded.
--engine dask://HOST:PORT
                      Let workers of a Dask cluster scan the lake.
""",
    "  iodelta history scan",
    into=command,
)
def scan(asked: Asked) -> None:
    """Find steps in every series, within each epoch, and group those that one change may have caused.

    A candidate is not a verdict: `iodelta history confirm` measures both builds in one experiment. Exit codes: 0
    nothing waits for you, 1 a regression is confirmed, 3 candidates.
    """
    if asked.engine and not asked.lake:
        raise RequestError(
            "workers scan a lake", place="--engine", remedy="name it with --lake"
        )
    if asked.lake:
        store_class()  # says what is not installed
        from iodelta.history.lake import scan_lake

        past = scan_lake(asked.lake, asked.engine)
    else:
        store, written = opened(asked.history, asked.log)
        if asked.repo:
            ordered(store, written, asked.repo)
        past = recorded(store, written)
    from iodelta.history.alerts import is_asking
    from iodelta.history.answers import HistoryScanAnswer

    asked.answer(HistoryScanAnswer(past.candidates, past.alerts), ())
    if asked.format == "console":
        asking = [one for one in past.alerts if is_asking(one)]
        for one in asking:
            for line in alert_lines(one, shown=SHOWN):
                tell(line)
        if not asking:
            click.echo("no candidate")
        others = [one for one in past.alerts if one not in asking]
        if others:
            click.echo(
                f"{plural(len(others), 'alert')} closed, decided or over: `iodelta history alert ID` shows one"
            )
        for one in others:
            click.echo(f"  {one.id}: {inert(state_said(one))}")
    sys.exit(code_of(past.alerts))


@declared(
    "alert",
    "name",
    "--history\n--log\n--format console|mail|markdown|json [console]",
    "  iodelta history alert 3f2a91c4 --format mail",
    metavar="ALERT",
    into=command,
)
def alert(asked: Asked) -> None:
    """Show an alert in full: its series, commits, measurements and decisions."""
    store, written = opened(asked.history, asked.log)
    found = chosen(recorded(store, written), asked.name)
    if asked.format in ("mail", "markdown"):
        from iodelta.report.alerts import command_and_verdict
        from iodelta.report.stories.alert import of_alert

        story = of_alert(found, *command_and_verdict(found, store))
        sys.stdout.buffer.write(_text(story, asked.format))
        return
    asked.answer(found, ())
    for line in alert_lines(found, shown=None) if asked.format == "console" else ():
        tell(line)


@declared(
    "decide",
    "names... word",
    """
--why TEXT            The reason, in a sentence.
--owner NAME          Who looks after it.
--bug URL             Its bug report.
--history
--log
--format
""",
    """
  iodelta history decide 3f2a91c4 expected --why "fixes data loss"
  iodelta history decide 3f2a91c4 77b0e1d2 investigating --owner ada --bug https://bugs.example.org/17
""",
    metavar="ALERT...",
    into=command,
)
def decide(asked: Asked) -> None:
    """Record your decision on one alert or several.

    WORD is investigating, expected, fixed, wontfix, noise or ignored; new withdraws an earlier decision.
    """
    words = "new investigating expected fixed wontfix noise ignored".split()
    if asked.word not in words:
        raise RequestError(
            f"not a decision: {asked.word!r}",
            place="WORD",
            remedy=f"use {', '.join(words)}",
        )
    if asked.bug and not asked.bug.startswith(("https://", "http://")):
        raise RequestError(
            f"not the address of a bug report: {asked.bug!r}",
            place="--bug",
            remedy="begin it with https://",
        )
    store, written = opened(asked.history, asked.log)
    found = recorded(store, written)
    wanted = dict.fromkeys(chosen(found, name).id for name in asked.names)
    from iodelta.history.log import Decided

    why, owner, bug = (
        readable(getattr(asked, name), f"--{name}") for name in ("why", "owner", "bug")
    )
    now = time.time()
    written.append(
        *(Decided(now, name, asked.word, why, "", owner, bug) for name in wanted)
    )
    after = recorded(store, written)
    for name in wanted:
        one = chosen(after, name)
        asked.answer(one, [f"{one.id}: {inert(state_said(one))}"])


@declared(
    "annotate",
    "text",
    """
--at TIME             When, in UTC, such as 2026-11-22T03:00.
--commit COMMIT       The commit.
--history
--log
--format
""",
    '  iodelta history annotate "new firmware" --at 2026-11-22T03:00',
    into=command,
)
def annotate(asked: Asked) -> None:
    """Note what happened at a time (default: now) or at a commit."""
    from iodelta.history.answers import HistoryNoteAnswer
    from iodelta.history.log import Annotated

    text, commit = asked.text, asked.commit
    _, written = opened(asked.history, asked.log)
    if not readable(text, "TEXT").strip():
        raise RequestError(
            "a note without text", place="TEXT", remedy="say what happened"
        )
    if asked.at and commit:
        raise RequestError(
            "a note is at a time or at a commit",
            place="--at",
            remedy="omit one of them",
        )
    if commit and not re.fullmatch(r"[0-9a-f]{7,64}", commit):
        raise RequestError(
            "not the hash of a commit: 7 to 64 of 0-9 and a-f", place="--commit"
        )
    moment = moment_of(asked.at)
    t = None if commit else time.time() if moment is None else moment
    written.append(Annotated(time.time(), text, t, commit))
    asked.answer(HistoryNoteAnswer(text, t, commit), ["noted"])


def recorded(store: Store, written: Log) -> History:
    """Return all alerts, new ones written to the log and all to the database. Where these cannot be written, that is
    said and the alerts are shown all the same."""
    from iodelta.history.kept import told

    found, _, failed = told(store, written)
    if failed is not None:
        click.echo(f"alerts were not recorded: {inert(failed.sentence)}", err=True)
    return found


def chosen(found: History, name: str) -> Alert:
    """Return the alert with this identifier or its first characters. Raises RequestError."""
    named = [one for one in found.alerts if name and one.id.startswith(name)]
    if len(named) == 1:
        return named[0]
    known = ", ".join(one.id for one in found.alerts[:SHOWN]) or "none"
    several = f"{len(named)} alerts begin with {name!r}"
    raise RequestError(
        several if named else f"not an alert: {name!r}",
        place="ALERT",
        remedy=f"alerts: {known}; `iodelta history scan` lists them",
    )


def code_of(alerts: tuple[Alert, ...]) -> int:
    """1 for a confirmed regression without a decision, 3 for an alert that is not measured yet, else 0."""
    from iodelta.history.alerts import is_asking

    asking = [one for one in alerts if is_asking(one)]
    if any(
        one.state == "confirmed" and one.experiments[-1].word == "regression"
        for one in asking
    ):
        return 1
    return 3 if any(one.state in ("candidate", "inconclusive") for one in asking) else 0


def alert_lines(alert: Alert, *, shown: int | None) -> list[str]:
    """Return an alert in lines; of long lists the first so many."""
    from iodelta.report.stories.course import ends, noted_said

    lines = [f"alert {alert.id}: {state_said(alert)}"]
    if alert.last_good and alert.first_bad:
        lines[0] += f", {ends(alert.last_good, alert.first_bad)}"
    is_confirmed = alert.state == "confirmed"
    lines += [
        f"  {step_said(step, is_confirmed=is_confirmed)}"
        for step in alert.steps[:shown]
    ]
    if shown is not None and len(alert.steps) > shown:
        lines.append(f"  and {len(alert.steps) - shown} more series")
    lines += [f"  {name}: the step is gone" for name in alert.gone[:shown]]
    lines += [f"  noted: {noted_said(note)}" for note in alert.notes]
    commits = [
        f"    {commit.sha[:12]} {commit.subject} ({commit.author})"
        for commit in alert.commits
    ]
    lines.append(f"  commits: {alert.range_word or f'{len(commits)}, oldest first'}")
    lines += commits[:shown]
    if shown and len(commits) > shown:
        lines.append(f"    and {len(commits) - shown} more")
    for experiment in alert.experiments:
        lines.append(f"  measured: {experiment.word} ({experiment.folder})")
        lines += [f"    {verdict}" for verdict in experiment.verdicts[:shown]]
    lines.append(f"  {false_alarms_said(alert)}")
    return [inert(line) for line in lines]


KINDS = {"step": "", "machine": " of the machine: an unchanged build moved"}


def state_said(alert: Alert) -> str:
    """Kind, state and what a person decided."""
    words = [f"{alert.state}{KINDS.get(alert.kind, f' ({alert.kind})')}"]
    if alert.triage != "new":
        words.append(f"{alert.triage}{f': {alert.why}' * bool(alert.why)}")
    words += [f"owner {alert.owner}" * bool(alert.owner), alert.bug]
    return ", ".join(filter(None, words))


def step_said(candidate: Candidate, *, is_confirmed: bool = False) -> str:
    """Return a series and its step."""
    from iodelta.history.placebo import against
    from iodelta.report.stories.course import ends
    from iodelta.study.words import percent

    by = against(candidate.variant) if candidate.by == "ratio" else "of the level alone"
    few = "suspected: too few nights without a change to tell how much nights differ"
    doubts = [few] * (candidate.few and not is_confirmed) + [*candidate.doubts]
    words = "  ".join(filter(None, candidate.name))
    between = ends(candidate.last_good, candidate.first_bad)
    change = f"{percent(candidate.change, candidate.error)} ({candidate.way})"
    said = f"{words}: {change} {by}, {between}, z {candidate.z:.1f}"
    return "; ".join([said, *doubts])


def false_alarms_said(alert: Alert) -> str:
    """Return how often the rule of an alert is wrong: expected, and as counted on this machine."""
    alarms = alert.false_alarms
    measured = f"{alarms.placebo_candidates} candidates in {plural(alarms.placebo_points, 'point')}"
    text = (
        f"{measured} of the machine's own series without a change"
        if alarms.placebo_points
        else "no placebo series"
    )
    own = f"this series: {alarms.of_series}"
    return f"false alarms: {alarms.per_1000:g} expected in 1000 points ({alarms.rule}); {own}; measured: {text}"
