"""``iodelta history confirm`` and ``night``: both builds of an alert in one experiment; measure, add, scan and confirm."""

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

from iodelta.cli.commands import Asked, declared, words_of
from iodelta.cli.history import (
    alert_lines,
    chosen,
    code_of,
    command,
    inert,
    opened,
    ordered,
    print_added,
    recorded,
    state_said,
    tell,
)
from iodelta.cli.progress import say_line
from iodelta.errors import IodeltaError, MeasureError, RequestError

if TYPE_CHECKING:
    from iodelta.history.answers import Alert, NightAdded
    from iodelta.history.log import Confirmed, Log, NightBegun
    from iodelta.history.store import Store

OVER = ("complete", "budget")

OPTIONS = """
--put COMMAND         Command that installs a build, if nights differ by what was installed; may contain {commit} and
                      {built}.
--destroy
--allow-commands
--wait
--history
--log
--format
"""


@declared(
    "confirm",
    "name",
    OPTIONS,
    """
  iodelta history confirm 3f2a91c4
  iodelta history confirm 3f2a91c4 --put 'apt-get install -y fio={commit}'
""",
    metavar="ALERT",
    into=command,
)
def confirm(asked: Asked) -> None:
    """Measure the last good build of an alert against the first bad one in one experiment.

    It measures the cell of the alert and its neighbours, on the same machine, with the rules of the nightly experiment.
    Builds come from the settings of the two nights (kernels, paths below {built}), from [build] of the experiment file,
    or from --put. A second call continues after a kill. Exit codes: 0 no change, 1 regression, 3 inconclusive, 4 could
    not measure.
    """
    store, written = opened(asked.history, asked.log)
    found = chosen(recorded(store, written), asked.name)
    with quiet(asked):
        line = confirmed(found, store, written, asked)
    now = chosen(recorded(store, written), found.id)
    asked.answer(now, ())
    if asked.format == "console":
        for text in alert_lines(now, shown=None):
            tell(text)
        if line and now.state == "confirmed":
            click.echo(f"to find the commit:\n  {inert(line)}")
    if now.state == "confirmed":
        sys.exit(int(now.experiments[-1].word == "regression"))
    sys.exit(0 if now.state == "closed" else 3)


@contextlib.contextmanager
def quiet(asked: Asked) -> Iterator[None]:
    """Send the output of a run to standard error if standard output is a document."""
    if asked.format != "json":
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield


def confirmed(alert: Alert, store: Store, written: Log, asked: Asked) -> str:
    """Measure, or go on measuring, and write the word to the log; the command that finds the commit. Raises
    RequestError, MeasureError."""
    from iodelta.api.confirming import folder_of, nights, variants
    from iodelta.bisect.question import command_words
    from iodelta.history.confirm import bisect_line, question
    from iodelta.history.log import Confirming

    good, bad = nights(alert, store)
    words = command_words(asked.put, "--put")
    folder = folder_of(alert, written)
    begun = (one for one in written.entries()[0] if isinstance(one, Confirming))
    if str(folder) not in {one.folder for one in begun}:
        written.append(Confirming(time.time(), alert.id, str(folder)))
    file = folder.with_name(f"{folder.name}.toml")
    if not folder.exists():
        place = written.path.absolute().parent
        builds = variants(good, bad, words, place, say_line)
        write(file, question(alert, bad, *builds, good.commit))
    measure(folder, file, asked)
    written.append(_outcome(alert, folder))
    return bisect_line(alert, good, bad, words)


def measure(folder: Path, file: Path, asked: Asked) -> None:
    """Run the experiment of ``file`` into ``folder``, or go on with it, until it is over. Raises RequestError,
    MeasureError."""
    from iodelta.api.measuring import Wishes
    from iodelta.cli.run import measure as run
    from iodelta.lab.account import Account
    from iodelta.lab.folder import Folder

    is_new = not folder.exists()
    wishes = Wishes(
        destroy=asked.destroy,
        allow_commands=asked.allow_commands,
        wait=asked.wait,
        folder=folder if is_new else None,
    )
    with contextlib.suppress(SystemExit):  # the exit code of the run is of its verdicts
        run(
            file if is_new else folder,
            wishes,
            Asked(format="console", words=words_of("nothing")),
        )
    state = Account(Folder.open(folder).events()).state
    if state not in OVER:
        raise MeasureError(
            f"the run ended early: {state}",
            place=str(folder),
            remedy="the same command continues it",
        )


def _outcome(alert: Alert, folder: Path) -> Confirmed:
    """Return the log entry of a confirmation that has ended. Raises MeasureError."""
    from iodelta.history.confirm import BAD, told, word_of
    from iodelta.history.log import Confirmed
    from iodelta.lab.folder import JOURNAL, Folder
    from iodelta.lab.seal import sha256
    from iodelta.report.derived import load

    opened_folder = Folder.open(folder)
    account = load(opened_folder)
    if account.broken:
        raise MeasureError(
            f"not what was measured: {account.broken[0].explanation}", place=str(folder)
        )
    labels = account.plan.experiment.subject.labels
    verdicts = [one for one in account.judgement.verdicts if one.variant == BAD]
    return Confirmed(
        time.time(),
        alert.id,
        str(folder),
        account.plan.identifier,
        sha256(opened_folder.read(JOURNAL)),
        word_of(verdicts, labels),
        tuple(told(verdict, labels) for verdict in verdicts),
    )


def write(file: Path, text: str) -> None:
    """An experiment file. Raises MeasureError."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        remedy = "free some space or make it writable, then repeat the command"
        raise MeasureError(
            f"cannot write: {error.strerror}", place=str(file), remedy=remedy
        ) from error


@declared(
    "night",
    "file",
    f"""
{OPTIONS}
--commit REVISION     Build and measure this commit of [build] in place of the one that is checked out: a night that is
                      missing.
--no-confirm          Do not measure alerts; `iodelta history confirm` does so later.
""",
    """
  iodelta history night nightly.toml
  iodelta history night nightly.toml --history /srv/history --destroy /dev/disk/by-id/...
""",
    into=command,
)
def night(asked: Asked) -> None:
    """Measure one night: run FILE, add its folder, scan, and confirm each alert that waits for it.

    With [build] in FILE, the commit that is checked out in its repo is built first. A second call continues after a
    kill; otherwise it begins the next night. An alert is shown whole in its first night; later nights name it in a
    line, and say what its confirmation needs from you. Exit codes: 0 nothing waits for you, 1 a regression is
    confirmed, 2 the request is wrong, 3 candidates or inconclusive, 4 could not measure.
    """
    from iodelta.experiment import load
    from iodelta.experiment.build import parse_build
    from iodelta.history.answers import HistoryNightAnswer
    from iodelta.history.confirm import refuse
    from iodelta.history.log import NightBegun, NightEnded

    file = asked.file
    load(file)  # a mistake is named in this file, before a night begins
    store, written = opened(asked.history, asked.log, write=True)
    repo = parse_build(_data(file).get("build", {}), refuse).repo
    waiting: list[str] = []
    failed: list[str] = []
    with _alone(written), quiet(asked):
        wanted = _commit(file, repo, asked.commit)
        begun = _unfinished(file, written, wanted) or _begin(file, written, wanted)
        added = _measured(begun, file, asked, store, written)
        if repo:
            ordered(store, written, repo)
        if not asked.no_confirm:
            waiting, failed = _confirmed(store, written, asked)
        entries = written.entries()[0]
        ended = {entry.folder for entry in entries if isinstance(entry, NightEnded)}
        for entry in entries:
            if isinstance(entry, NightBegun) and entry.folder not in ended:
                written.append(NightEnded(time.time(), entry.folder))
    alerts = recorded(store, written).alerts
    asked.answer(HistoryNightAnswer(added, alerts, tuple(waiting), tuple(failed)), ())
    if asked.format == "console":
        _show(alerts, begun.at, waiting, failed)
    sys.exit(4 if failed else code_of(alerts))


def _measured(
    begun: NightBegun, file: Path, asked: Asked, store: Store, written: Log
) -> NightAdded:
    """Return the folder of this night in the history."""
    from iodelta.history.adding import add
    from iodelta.history.log import Given

    folder = Path(begun.folder)
    text = folder.with_name(f"{folder.name}.toml")
    if not folder.exists():
        write(text, _resolved(file, begun.commit, written.path.absolute().parent))
    measure(folder, text, asked)
    added = add(folder, Given(), store, written)
    print_added(added, err=True)
    return added


def _confirmed(store: Store, written: Log, asked: Asked) -> tuple[list[str], list[str]]:
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
        say_line(f"confirming alert {alert.id}")
        try:
            line = confirmed(alert, store, written, asked)
        except IodeltaError as error:
            needs_user = isinstance(error, RequestError) and not isinstance(
                error, BusyError
            )
            (waiting if needs_user else failed).append(
                f"alert {alert.id}: {error.sentence}"
            )
            continue
        if line:
            say_line(f"to find the commit of {alert.id}: {line}")
    return waiting, failed


def _show(
    alerts: Sequence[Alert], since: float, waiting: Sequence[str], failed: Sequence[str]
) -> None:
    """Print alerts that are new ``since`` this night began in full, the others in one line each."""
    from iodelta.history.alerts import is_asking

    asking = [one for one in alerts if is_asking(one)]
    for alert in asking:
        moments = (alert.opened, *(experiment.at for experiment in alert.experiments))
        known = time.strftime("%Y-%m-%d", time.gmtime(alert.opened))
        state = f"{inert(state_said(alert))}, known since {known}"
        short = (
            f"alert {alert.id}: {state}; `iodelta history alert {alert.id}` shows it"
        )
        is_new = max(moments) >= since
        for line in alert_lines(alert, shown=8) if is_new else [short]:
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
        say_line(
            f"not continued: {last.folder} was begun with commit {last.commit[:12]}"
        )
        return None
    say_line(f"continuing the night in {last.folder}")
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


def _commit(file: Path, repo: str, revision: str) -> str:
    """Return the revision, or else the commit that is checked out where [build] says; empty without a repository."""
    from iodelta.api.checkout import checked_out
    from iodelta.bisect.git import Repository
    from iodelta.machine import LocalMachine

    if repo and revision:
        return Repository.open(LocalMachine(), repo).resolve(revision, "--commit")
    if revision:
        raise RequestError(
            "nothing says how a commit is built",
            place="--commit",
            remedy=f"add [build] with repo to {file}",
        )
    return str(checked_out(repo)["commit"]) if repo else ""


def _data(file: Path) -> dict[str, Any]:
    from iodelta.experiment.command import placed
    from iodelta.experiment.source import text_of, toml_data

    return toml_data(placed(text_of(file), file.parent), str(file))


def _resolved(file: Path, commit: str, place: Path) -> str:
    """Return the text of the night's experiment: built, its places filled in, its commit recorded. Raises RequestError."""
    from iodelta.api.checkout import checked_out
    from iodelta.experiment import toml_text
    from iodelta.experiment.build import filled, parse_build
    from iodelta.history.builds import kept_build
    from iodelta.history.confirm import refuse
    from iodelta.history.points import BUILT
    from iodelta.lab.signals import stop_on_signals
    from iodelta.machine import LocalMachine

    data = _data(file)
    build = parse_build(data.get("build", {}), refuse)
    workload = data.get("workload", {})
    if "job_file" in workload:
        workload["job_file"] = str(file.absolute().parent / workload["job_file"])
    if not build.repo:
        return toml_text(data)
    subject = {**checked_out(build.repo), **data.get("subject", {}), "commit": commit}
    values = {"commit": commit}
    if build.command:
        with stop_on_signals() as stop:
            kept = kept_build(
                LocalMachine(), build, commit, place, stop=stop, say=say_line
            )
        values[BUILT] = str(kept)
        subject["labels"] = {**subject.get("labels", {}), BUILT: str(kept)}
    variants = filled(data.get("variant", {}), values)
    return toml_text({**data, "variant": variants, "subject": subject})


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
            raise RequestError(
                "another night of this history is running",
                place=str(place),
                remedy="wait for it, or end it",
            ) from error
        yield
