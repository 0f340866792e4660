"""``iodelta history night``: measure, add, scan and confirm, in one command for cron or a timer."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iodelta.cli.files import print_document
from iodelta.cli.histories import (
    FORMAT,
    HISTORY,
    LOG,
    inert,
    opened,
    ordered,
    print_added,
    tell,
)
from iodelta.cli.history_alerts import (
    alert_lines,
    code_of,
    recorded,
    state_said,
)
from iodelta.cli.history_confirm import (
    DESTROY,
    PUT,
    Allowed,
    confirmed,
    measure,
    quiet,
    write,
)
from iodelta.cli.own_command import allow_commands
from iodelta.cli.progress import say_line
from iodelta.cli.turn import waits
from iodelta.errors import IodeltaError, MeasureError, RequestError

if TYPE_CHECKING:
    from iodelta.experiment.build import Build
    from iodelta.history.answers import Alert, NightAdded
    from iodelta.history.log import Log, NightBegun
    from iodelta.history.store import Store

_EXAMPLES = """
\b
Examples:
  iodelta history night nightly.toml
  iodelta history night nightly.toml --history /srv/history --destroy /dev/disk/by-id/...
"""


@click.command("night", epilog=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@PUT
@DESTROY
@allow_commands
@click.option(
    "--commit",
    default="",
    metavar="REVISION",
    help="Build and measure this commit of [build] in place of the one that is checked out: a night that is missing.",
)
@click.option(
    "--no-confirm",
    is_flag=True,
    help="Do not measure alerts; `iodelta history confirm` does so later.",
)
@waits
@HISTORY
@LOG
@FORMAT
def night(
    file: Path,
    put: str,
    destroy: tuple[str, ...],
    allow_commands: bool,
    commit: str,
    no_confirm: bool,
    place: str,
    log: Path | None,
    format_: str,
) -> None:
    """Measure one night: run FILE, add its folder, scan, and confirm each alert that waits for it.

    With [build] in FILE, the commit that is checked out in its repo is built first. A second call continues after a
    kill; otherwise it begins the next night. An alert is shown whole in its first night; later nights name it in a
    line, and say what its confirmation needs from you. Exit codes: 0 nothing waits for you, 1 a regression is
    confirmed, 2 the request is wrong, 3 candidates or inconclusive, 4 could not measure.
    """
    from iodelta.experiment import load
    from iodelta.history.answers import HistoryNightAnswer

    load(file)  # a mistake is named in this file, before a night begins
    store, written = opened(place, log, write=True)
    allowed = Allowed(destroy, allow_commands)
    with _alone(written), quiet(format_):
        wanted = _commit(file, commit)
        begun = _unfinished(file, written, wanted) or _begin(file, written, wanted)
        added = _measured(begun, file, allowed, store, written)
        repo = _build_of(file).repo
        if repo:
            ordered(store, written, repo)
        waiting, failed = (
            ((), ()) if no_confirm else _confirmed(store, written, put, allowed)
        )
        _end(written)
    history = recorded(store, written)
    if format_ == "json":
        print_document(
            HistoryNightAnswer(added, history.alerts, tuple(waiting), tuple(failed))
        )
    else:
        _show(history.alerts, begun.at, waiting, failed)
    sys.exit(4 if failed else code_of(history.alerts))


def _measured(
    begun: NightBegun, file: Path, allowed: Allowed, store: Store, written: Log
) -> NightAdded:
    """Return the folder of this night in the history."""
    from iodelta.history.adding import add
    from iodelta.history.log import Given

    folder = Path(begun.folder)
    text = folder.with_name(f"{folder.name}.toml")
    if not folder.exists():
        write(text, _resolved(file, begun.commit, written.path.absolute().parent))
    measure(folder, text, allowed)
    added = add(folder, Given(), store, written)
    print_added(added, err=True)
    return added


def _confirmed(
    store: Store, written: Log, put: str, allowed: Allowed
) -> tuple[Sequence[str], Sequence[str]]:
    """Confirm what waits for it. Returns what needs something of the user first, and what could not be measured and is
    tried again in the next night."""
    from iodelta.history.alerts import is_asking
    from iodelta.lab.turns import BusyError

    waiting: list[str] = []
    failed: list[str] = []
    for alert in recorded(store, written).alerts:
        waits_for_it = is_asking(alert) and alert.state in ("candidate", "inconclusive")
        if not waits_for_it or alert.kind == "machine" or not alert.steps:
            continue
        click.echo(f"confirming alert {alert.id}", err=True)
        try:
            line = confirmed(alert, store, written, put=put, allowed=allowed)
        except IodeltaError as error:
            needs_user = isinstance(error, RequestError) and not isinstance(
                error, BusyError
            )
            (waiting if needs_user else failed).append(
                f"alert {alert.id}: {error.sentence}"
            )
            continue
        if line:
            click.echo(f"to find the commit of {alert.id}: {inert(line)}", err=True)
    return waiting, failed


def _show(
    alerts: Sequence[Alert], since: float, waiting: Sequence[str], failed: Sequence[str]
) -> None:
    """Print alerts that are new ``since`` this night began in full, the others in one line each."""
    from iodelta.history.alerts import is_asking

    asking = [one for one in alerts if is_asking(one)]
    for alert in asking:
        is_new = (
            max(alert.opened, *(experiment.at for experiment in alert.experiments), 0.0)
            >= since
        )
        for line in alert_lines(alert, shown=8) if is_new else [_short(alert)]:
            tell(line)
    for line in waiting:
        click.echo(f"waits for a confirmation: {inert(line)}")
        click.echo(
            "  `iodelta history confirm ALERT` measures both builds; `iodelta history decide ALERT` ends the wait"
        )
    for line in failed:
        click.echo(f"could not measure: {inert(line)}")
    if not asking:
        click.echo("nothing waits for you")


def _short(alert: Alert) -> str:
    """Return an alert of an earlier night."""
    since = time.strftime("%Y-%m-%d", time.gmtime(alert.opened))
    state = f"{inert(state_said(alert))}, known since {since}"
    return f"alert {alert.id}: {state}; `iodelta history alert {alert.id}` shows it"


def _unfinished(file: Path, written: Log, commit: str) -> NightBegun | None:
    """Return a night of this file that has no end yet, unless another commit was checked out since: then it stays as
    far as it came."""
    from iodelta.history.log import NightBegun, NightEnded

    last: NightBegun | None = None
    for entry in written.entries()[0]:
        if isinstance(entry, NightBegun) and entry.file == str(file.absolute()):
            last = entry
        elif (
            isinstance(entry, NightEnded)
            and last is not None
            and entry.folder == last.folder
        ):
            last = None
    if last is None:
        return None
    if last.commit != commit:
        click.echo(
            f"not continued: {inert(last.folder)} was begun with commit {last.commit[:12]}",
            err=True,
        )
        return None
    click.echo(f"continuing the night in {inert(last.folder)}", err=True)
    return last


def _begin(file: Path, written: Log, commit: str) -> NightBegun:
    from iodelta.history.log import NightBegun

    runs = written.path.absolute().parent / "runs"
    stem, number = f"{file.stem}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}", 1
    known = {
        entry.folder for entry in written.entries()[0] if isinstance(entry, NightBegun)
    }
    folder = runs / stem
    while folder.exists() or str(folder) in known:
        number += 1
        folder = runs / f"{stem}-{number}"
    begun = NightBegun(time.time(), str(file.absolute()), str(folder), commit)
    written.append(begun)
    return begun


def _end(written: Log) -> None:
    """Mark every open night as ended."""
    from iodelta.history.log import NightBegun, NightEnded

    entries = written.entries()[0]
    ended = {entry.folder for entry in entries if isinstance(entry, NightEnded)}
    for entry in entries:
        if isinstance(entry, NightBegun) and entry.folder not in ended:
            written.append(NightEnded(time.time(), entry.folder))


def _commit(file: Path, revision: str) -> str:
    """Return the revision, or else the commit that is checked out where [build] says; empty without a repository."""
    from iodelta.bisect.git import Repository
    from iodelta.cli.checkout import checked_out
    from iodelta.machine import LocalMachine

    repo = _build_of(file).repo
    if not repo:
        if revision:
            raise RequestError(
                "nothing says how a commit is built",
                place="--commit",
                remedy=f"add [build] with repo to {file}",
            )
        return ""
    if revision:
        return Repository.open(LocalMachine(), repo).resolve(revision, "--commit")
    return str(checked_out(repo)["commit"])


def _build_of(file: Path) -> Build:
    from iodelta.experiment.build import parse_build
    from iodelta.history.confirm import refuse

    return parse_build(_data(file).get("build", {}), refuse)


def _data(file: Path) -> dict[str, Any]:
    from iodelta.experiment.command import placed
    from iodelta.experiment.source import text_of, toml_data

    return toml_data(placed(text_of(file), file.parent), str(file))


def _resolved(file: Path, commit: str, place: Path) -> str:
    """Return the text of the night's experiment: built, its places filled in, its commit recorded. Raises RequestError."""
    from iodelta.cli.checkout import checked_out
    from iodelta.experiment import toml_text
    from iodelta.experiment.build import filled
    from iodelta.history.builds import kept_build
    from iodelta.history.points import BUILT
    from iodelta.lab.signals import stop_on_signals
    from iodelta.machine import LocalMachine

    data, build = _data(file), _build_of(file)
    if "job_file" in data.get("workload", {}):
        data["workload"]["job_file"] = str(
            file.absolute().parent / data["workload"]["job_file"]
        )
    if not build.repo:
        return toml_text(data)
    subject = {**checked_out(build.repo), **data.get("subject", {}), "commit": commit}
    values = {"commit": commit}
    if build.command:
        with stop_on_signals() as stop:
            kept = kept_build(
                LocalMachine(),
                build,
                commit,
                place,
                stop=stop,
                say=say_line,
            )
        values[BUILT] = str(kept)
        subject["labels"] = {**subject.get("labels", {}), BUILT: str(kept)}
    return toml_text(
        {**data, "variant": filled(data.get("variant", {}), values), "subject": subject}
    )


@contextlib.contextmanager
def _alone(written: Log) -> Iterator[None]:
    """One night at a time in a history. Raises RequestError, MeasureError."""
    place = written.path.absolute().parent / "night.lock"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise MeasureError(
            f"cannot write: {error.strerror}",
            place=str(place),
            remedy="make it writable",
        ) from error
    with contextlib.closing(os.fdopen(handle)) as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            remedy = "wait for it, or end it"
            raise RequestError(
                "another night of this history is running",
                place=str(place),
                remedy=remedy,
            ) from error
        yield
