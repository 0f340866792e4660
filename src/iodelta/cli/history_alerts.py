"""``iodelta history scan | alert | decide | annotate``: steps in series, and your decisions about them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.api.histories import store_class
from iodelta.cli.files import print_document
from iodelta.cli.histories import (
    FORMAT,
    HISTORY,
    LOG,
    ends_said,
    inert,
    moment_of,
    opened,
    ordered,
    readable,
    tell,
)
from iodelta.cli.shared_options import in_formats
from iodelta.errors import RequestError
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.history.alerts import History
    from iodelta.history.answers import Alert, Candidate
    from iodelta.history.log import Log
    from iodelta.history.store import Store

SHOWN = 8
"""Series and commits of an alert that a scan lists; ``history alert`` lists all."""

WORDS = ("new", "investigating", "expected", "fixed", "wontfix", "noise", "ignored")

_DECIDE = """
\b
Examples:
  iodelta history decide 3f2a91c4 expected --why "fixes data loss"
  iodelta history decide 3f2a91c4 77b0e1d2 investigating --owner ada --bug https://bugs.example.org/17
"""

_ALERT = click.argument("name", metavar="ALERT")


@click.command("scan", epilog="\b\nExamples:\n  iodelta history scan\n")
@click.option(
    "--repo",
    default="",
    metavar="PATH",
    help="Order nights by the commits of this git repository.",
)
@HISTORY
@LOG
@FORMAT
@click.option(
    "--lake",
    default="",
    metavar="DIRECTORY|s3://...",
    help="Scan an exported lake in place of the history; nothing is recorded.",
)
@click.option(
    "--engine",
    default="",
    metavar="dask://HOST:PORT",
    help="Let workers of a Dask cluster scan the lake.",
)
def scan(
    repo: str, place: str, log: Path | None, format_: str, lake: str, engine: str
) -> None:
    """Find steps in every series, within each epoch, and group those that one change may have caused.

    A candidate is not a verdict: `iodelta history confirm` measures both builds in one experiment. Exit codes: 0
    nothing waits for you, 1 a regression is confirmed, 3 candidates.
    """
    if engine and not lake:
        raise RequestError(
            "workers scan a lake", place="--engine", remedy="name it with --lake"
        )
    if lake:
        store_class()  # says what is not installed
        from iodelta.history.lake import scan_lake

        past = scan_lake(lake, engine)
    else:
        store, written = opened(place, log)
        if repo:
            ordered(store, written, repo)
        past = recorded(store, written)
    if format_ == "json":
        from iodelta.history.answers import HistoryScanAnswer

        print_document(HistoryScanAnswer(past.candidates, past.alerts))
    else:
        _show(past)
    sys.exit(code_of(past.alerts))


@click.command(
    "alert", epilog="\b\nExamples:\n  iodelta history alert 3f2a91c4 --format mail\n"
)
@_ALERT
@HISTORY
@LOG
@in_formats(["console", "mail", "markdown", "json"])
def alert(name: str, place: str, log: Path | None, format_: str) -> None:
    """Show an alert in full: its series, commits, measurements and decisions."""
    store, written = opened(place, log)
    chosen_alert = chosen(recorded(store, written), name)
    if format_ == "json":
        print_document(chosen_alert)
    elif format_ == "console":
        for line in alert_lines(chosen_alert, shown=None):
            tell(line)
    else:
        _tell(chosen_alert, store, format_)


def _tell(found: Alert, store: Store, format_: str) -> None:
    """The alert as a mail, or as Markdown."""
    from iodelta.report.alerts import command_and_verdict
    from iodelta.report.formats.mail import mail
    from iodelta.report.formats.markdown import markdown
    from iodelta.report.stories.alert import of_alert

    story = of_alert(found, *command_and_verdict(found, store))
    click.echo(mail(story) if format_ == "mail" else markdown(story), nl=False)


@click.command("decide", epilog=_DECIDE)
@click.argument("names", metavar="ALERT...", nargs=-1, required=True)
@click.argument("word", metavar="WORD", type=click.Choice(WORDS))
@click.option("--why", default="", help="The reason, in a sentence.")
@click.option("--owner", default="", metavar="NAME", help="Who looks after it.")
@click.option("--bug", default="", metavar="URL", help="Its bug report.")
@HISTORY
@LOG
@FORMAT
def decide(
    names: tuple[str, ...],
    word: str,
    why: str,
    owner: str,
    bug: str,
    place: str,
    log: Path | None,
    format_: str,
) -> None:
    """Record your decision on one alert or several.

    WORD is investigating, expected, fixed, wontfix, noise or ignored; new withdraws an earlier decision.
    """
    if bug and not bug.startswith(("https://", "http://")):
        raise RequestError(
            f"not the address of a bug report: {bug!r}",
            place="--bug",
            remedy="begin it with https://",
        )
    store, written = opened(place, log)
    found = recorded(store, written)
    wanted = [chosen(found, name).id for name in names]
    from iodelta.history.log import Decided

    texts = [
        readable(text, option)
        for text, option in ((why, "--why"), (owner, "--owner"), (bug, "--bug"))
    ]
    written.append(
        *(
            Decided(time.time(), name, word, texts[0], "", *texts[1:])
            for name in dict.fromkeys(wanted)
        )
    )
    now = recorded(store, written)
    for name in dict.fromkeys(wanted):
        alert = chosen(now, name)
        if format_ == "json":
            print_document(alert)
        else:
            click.echo(f"{alert.id}: {inert(state_said(alert))}")


@click.command(
    "annotate",
    epilog='\b\nExamples:\n  iodelta history annotate "new firmware" --at 2026-11-22T03:00\n',
)
@click.argument("text")
@click.option(
    "--at",
    "when",
    default="",
    metavar="TIME",
    help="When, in UTC, such as 2026-11-22T03:00.",
)
@click.option("--commit", default="", help="The commit.")
@HISTORY
@LOG
@FORMAT
def annotate(
    text: str, when: str, commit: str, place: str, log: Path | None, format_: str
) -> None:
    """Note what happened at a time (default: now) or at a commit."""
    import re

    from iodelta.history.log import Annotated

    _, written = opened(place, log)
    if not readable(text, "TEXT").strip():
        raise RequestError(
            "a note without text", place="TEXT", remedy="say what happened"
        )
    if when and commit:
        raise RequestError(
            "a note is at a time or at a commit",
            place="--at",
            remedy="omit one of them",
        )
    if commit and not re.fullmatch(r"[0-9a-f]{7,64}", commit):
        raise RequestError(
            "not the hash of a commit: 7 to 64 of 0-9 and a-f", place="--commit"
        )
    moment = moment_of(when)
    t = None if commit else time.time() if moment is None else moment
    written.append(Annotated(time.time(), text, t, commit))
    if format_ == "json":
        from iodelta.history.answers import HistoryNoteAnswer

        print_document(HistoryNoteAnswer(text, t, commit))
    else:
        click.echo("noted")


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
    what = (
        f"{len(named)} alerts begin with {name!r}"
        if named
        else f"not an alert: {name!r}"
    )
    raise RequestError(
        what,
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


def _show(found: History) -> None:
    from iodelta.history.alerts import is_asking

    asking = [one for one in found.alerts if is_asking(one)]
    for one in asking:
        for line in alert_lines(one, shown=SHOWN):
            tell(line)
    if not asking:
        click.echo("no candidate")
    others = len(found.alerts) - len(asking)
    if others:
        click.echo(
            f"{others} alert{'s' * (others > 1)} closed, decided or over: `iodelta history alert ID` shows one"
        )
        for one in [one for one in found.alerts if one not in asking]:
            click.echo(f"  {one.id}: {inert(state_said(one))}")


def alert_lines(alert: Alert, *, shown: int | None) -> list[str]:
    """Return an alert in lines; of long lists the first so many."""
    from iodelta.report.stories.course import noted_said

    lines = [f"alert {alert.id}: {state_said(alert)}"]
    if alert.last_good and alert.first_bad:
        lines[0] += f", {ends_said(alert.last_good, alert.first_bad)}"
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
    lines += commits[:shown] + (
        [f"    and {len(commits) - shown} more"]
        if shown and len(commits) > shown
        else []
    )
    for experiment in alert.experiments:
        lines.append(f"  measured: {experiment.word} ({experiment.folder})")
        lines += [f"    {verdict}" for verdict in experiment.verdicts[:shown]]
    lines.append(f"  {false_alarms_said(alert)}")
    return [inert(line) for line in lines]


def state_said(alert: Alert) -> str:
    """Kind, state and what a person decided."""
    kind = {"step": "", "machine": " of the machine: an unchanged build moved"}.get(
        alert.kind, f" ({alert.kind})"
    )
    decided = (
        ""
        if alert.triage == "new"
        else f", {alert.triage}" + (f": {alert.why}" if alert.why else "")
    )
    about = "".join(
        f", {word}"
        for word in (alert.owner and f"owner {alert.owner}", alert.bug)
        if word
    )
    return f"{alert.state}{kind}{decided}{about}"


def step_said(candidate: Candidate, *, is_confirmed: bool = False) -> str:
    """Return a series and its step."""
    from iodelta.history.placebo import against

    by = against(candidate.variant) if candidate.by == "ratio" else "of the level alone"
    doubt = (
        "; suspected: too few nights without a change to tell how much nights differ"
        if candidate.few and not is_confirmed
        else ""
    )
    words = "  ".join(filter(None, candidate.name))
    between = ends_said(candidate.last_good, candidate.first_bad)
    from iodelta.study.words import percent

    change = f"{percent(candidate.change, candidate.error)} ({candidate.way})"
    doubt += "".join(f"; {word}" for word in candidate.doubts)
    return f"{words}: {change} {by}, {between}, z {candidate.z:.1f}{doubt}"


def false_alarms_said(alert: Alert) -> str:
    """Return how often the rule of an alert is wrong: expected, and as counted on this machine."""
    alarms = alert.false_alarms
    measured = f"{alarms.placebo_candidates} candidates in {plural(alarms.placebo_points, 'point')}"
    text = (
        f"{measured} of the machine's own series without a change"
        if alarms.placebo_points
        else "no placebo series"
    )
    own = f"this series: {plural(alarms.series_candidates, 'candidate')} in {plural(alarms.series_points, 'night')}"
    return f"false alarms: {alarms.per_1000:g} expected in 1000 points ({alarms.rule}); {own}; measured: {text}"
