"""``iodelta history confirm``: both builds of an alert in one experiment."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from iodelta.cli.files import print_document
from iodelta.cli.histories import FORMAT, HISTORY, LOG, inert, opened, tell
from iodelta.cli.history_alerts import alert_lines, chosen, recorded
from iodelta.cli.own_command import allow_commands
from iodelta.cli.shared_options import may_destroy
from iodelta.cli.turn import waits
from iodelta.errors import MeasureError

if TYPE_CHECKING:
    from iodelta.history.answers import Alert
    from iodelta.history.log import Confirmed, Log
    from iodelta.history.store import Store

PUT = click.option(
    "--put",
    default="",
    metavar="COMMAND",
    help="Command that installs a build, if nights differ by what was installed; may contain {commit} and {built}.",
)
DESTROY = may_destroy
_EXAMPLES = """
\b
Examples:
  iodelta history confirm 3f2a91c4
  iodelta history confirm 3f2a91c4 --put 'apt-get install -y fio={commit}'
"""
OVER = ("complete", "budget")


class Allowed(NamedTuple):
    """The permissions of the user for the runs of a history."""

    destroy: Sequence[str]
    """Devices and files that may be overwritten."""
    commands: bool
    """Workloads of commands that do not only read."""


@click.command("confirm", epilog=_EXAMPLES)
@click.argument("name", metavar="ALERT")
@PUT
@DESTROY
@allow_commands
@waits
@HISTORY
@LOG
@FORMAT
def confirm(
    name: str,
    put: str,
    destroy: tuple[str, ...],
    allow_commands: bool,
    place: str,
    log: Path | None,
    format_: str,
) -> None:
    """Measure the last good build of an alert against the first bad one in one experiment.

    It measures the cell of the alert and its neighbours, on the same machine, with the rules of the nightly experiment.
    Builds come from the settings of the two nights (kernels, paths below {built}), from [build] of the experiment file,
    or from --put. A second call continues after a kill. Exit codes: 0 no change, 1 regression, 3 inconclusive, 4 could
    not measure.
    """
    store, written = opened(place, log)
    alert = chosen(recorded(store, written), name)
    with quiet(format_):
        line = confirmed(
            alert, store, written, put=put, allowed=Allowed(destroy, allow_commands)
        )
    now = chosen(recorded(store, written), alert.id)
    if format_ == "json":
        print_document(now)
    else:
        for text in alert_lines(now, shown=None):
            tell(text)
        if line and now.state == "confirmed":
            click.echo(f"to find the commit:\n  {inert(line)}")
    sys.exit(
        {"confirmed": int(now.experiments[-1].word == "regression"), "closed": 0}.get(
            now.state, 3
        )
    )


@contextlib.contextmanager
def quiet(format_: str) -> Iterator[None]:
    """Send the output of a run to standard error if standard output is a document."""
    if format_ != "json":
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield


def confirmed(
    alert: Alert, store: Store, written: Log, *, put: str, allowed: Allowed
) -> str:
    """Measure, or go on measuring, and write the word to the log; the command that finds the commit. Raises
    RequestError, MeasureError."""
    from iodelta.api.confirming import folder_of, nights, variants
    from iodelta.bisect.question import command_words
    from iodelta.history.confirm import bisect_line, question
    from iodelta.history.log import Confirming

    good, bad = nights(alert, store)
    words = command_words(put, "--put")
    folder = folder_of(alert, written)
    if not _is_begun(folder, written):
        written.append(Confirming(time.time(), alert.id, str(folder)))
    file = folder.with_name(f"{folder.name}.toml")
    if not folder.exists():
        builds = variants(good, bad, words, written.path.absolute().parent, say)
        write(file, question(alert, bad, *builds, good.commit))
    measure(folder, file, allowed)
    written.append(_outcome(alert, folder))
    return bisect_line(alert, good, bad, words)


def _is_begun(folder: Path, written: Log) -> bool:
    """Return whether the log already has the beginning of this confirmation."""
    from iodelta.history.log import Confirming

    entries = written.entries()[0]
    begun = (entry.folder for entry in entries if isinstance(entry, Confirming))
    return str(folder) in begun


def measure(folder: Path, file: Path, allowed: Allowed) -> None:
    """Run the experiment of ``file`` into ``folder``, or go on with it, until it is over. Raises RequestError,
    MeasureError."""
    from iodelta.cli.running import Asked
    from iodelta.cli.running import measure as run
    from iodelta.lab.account import Account
    from iodelta.lab.folder import Folder

    is_new = not folder.exists()
    place = folder if is_new else None
    asked = Asked(
        destroy=tuple(allowed.destroy),
        allow_commands=allowed.commands,
        place=place,
    )
    with contextlib.suppress(SystemExit):  # the exit code of the run is of its verdicts
        run(file if is_new else folder, asked)
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
    verdicts = [
        verdict for verdict in account.judgement.verdicts if verdict.variant == BAD
    ]
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


def say(text: str) -> None:
    """A line of progress."""
    click.echo(inert(text), err=True)
