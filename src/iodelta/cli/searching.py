"""What ``bisect`` and ``attribute`` share on the command line: how a thing is measured, progress, output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from iodelta.bisect.byhand import TakeBack
from iodelta.bisect.driver import attributed, go, judged, new, searched, undo
from iodelta.bisect.log import Answered, SearchFolder
from iodelta.bisect.model import Ask
from iodelta.bisect.question import Patches, Question
from iodelta.bisect.store import Store
from iodelta.cli.commands import Asked, fresh
from iodelta.cli.progress import Progress
from iodelta.errors import RequestError, pasted
from iodelta.lab.signals import stop_on_signals
from iodelta.machine import LocalMachine, Machine
from iodelta.study.words import inert, quantity

if TYPE_CHECKING:
    from iodelta.cli.by_hand import Once

TITLE = 44
"""Columns of an item's title in a line of progress."""


class Lines:
    """A line for every answer, and how far the search is; a person who answers needs no line of that."""

    def __init__(self, folder: Path, question: Question, progress: Progress) -> None:
        self._question, self._progress = question, progress
        kind = "attribute" if isinstance(question.subject, Patches) else "bisect"
        self.note(
            f"Ctrl-C ends it cleanly; `iodelta {kind} {pasted(folder)}` continues it."
        )

    def note(self, text: str) -> None:
        self._progress.note(inert(text))

    def tick(self, seconds: float) -> None:
        """Too often for a line."""

    def ask(self, ask: Ask, title: str, share: float | None) -> None:
        if not self._question.by_hand:
            now = f"{ask.stage} {inert(title)[:TITLE]}"
            self._progress.step("searching", share, now)

    def answered(self, answered: Answered, title: str, store: Store) -> None:
        answer, unit = answered.answer, self._question.unit
        values = " ".join(quantity(value, unit) for value in answered.values)
        came = answer.word or (
            f"skipped: {answer.reason}" if answer.value is None else values
        )
        self.note(
            f"{len(store.runs) + len(store.words):>4} {answered.stage:<7} {title[:TITLE]:<{TITLE}} {came}"
        )


def open_folder(path: Path, asked: Asked) -> SearchFolder:
    """Return the folder of an earlier call, with what --undo takes back taken back. Raises RequestError, also when a
    question was given as well."""
    given = asked.given() - {"what", "fio"}
    wrong = sorted(given - {"dry_run", "undo", "show", "format", "value", "rest"})
    if asked.fio or wrong:
        raise RequestError(
            "the folder already defines the question",
            place=str(path),
            remedy="to continue, only --dry-run, --undo, --show, --rest and --format can be given"
            + (f", not --{wrong[0]}" if not asked.fio else ""),
        )
    folder = SearchFolder.open(path)
    if "rest" in given:
        folder.extend(asked.rest)
    for answered in undo(folder, asked.undo) if asked.undo else ():
        click.echo(f"undone: {answered.item[:12]} ({answered.stage})", err=True)
    return folder


def new_folder(
    kind: str, question: Question, machine: Machine, asked: Asked
) -> SearchFolder:
    """Return the folder of a new question. Raises RequestError, MeasureError."""
    return new(asked.folder or fresh(f"iodelta-{kind}"), question, machine)


def go_on(
    folder: SearchFolder,
    machine: Machine,
    asked: Asked,
    answer: Once | None = None,
) -> NoReturn:
    """Go on with a folder, or only look at it; print what it amounts to, and exit."""
    from iodelta.study import attribution, by_words
    from iodelta.study import searched as of_search

    question = folder.question()
    replay: Callable[[Machine, Question, Iterable[Answered]], Any] = searched
    account: Callable[[SearchFolder, Question, Any], Any] = of_search.account
    if isinstance(question.subject, Patches):
        replay, account = attributed, attribution.account
    elif question.by_hand == "words":
        replay, account = judged, by_words.account
    looks = asked.dry_run or asked.undo
    if looks or asked.show:
        at = replay(machine, question, folder.answers())
    else:
        at = _gone_on(folder, machine, replay, answer, asked)
    result = account(folder, question, at)
    deliver(result, asked)
    if looks:
        sys.exit(0)
    if "words" in vars(asked):
        asked.end(result)
    sys.exit(result.exit_code)


def _gone_on(
    folder: SearchFolder,
    machine: Machine,
    replay: Callable[[Machine, Question, Iterable[Answered]], Any],
    answer: Once | None,
    asked: Asked,
) -> Any:
    """Measure, or ask a person: for one ``answer`` of the command line, else at the terminal."""
    from iodelta.cli.by_hand import Prompt

    question = folder.question()
    with stop_on_signals() as stop, Progress(log=True) as progress:
        lines = Lines(folder.path, question, progress)
        person = answer or Prompt(stop, lines.note) if question.by_hand else None
        while True:
            try:
                return asked.in_turn(
                    lambda: go(
                        folder, machine, replay, lines, stop=stop, person=person
                    ),
                    stop,
                    lines.note,
                )
            except TakeBack:
                try:
                    [taken] = undo(folder)
                except RequestError as error:
                    lines.note(error.what)
                else:
                    lines.note(f"undone: {taken.item[:12]}")


def report(path: Path, asked: Asked) -> NoReturn:
    """What is known of a folder, in any format; and exit, by the words that were asked for."""
    asked.show, asked.dry_run, asked.undo = True, False, None
    go_on(SearchFolder.open(path), LocalMachine(), asked)


def deliver(account: Any, asked: Asked) -> None:
    """Print an account in the format asked for, or write it to a file."""
    from iodelta.report.stories.story import Detail

    detail = Detail(inert(pasted(account.folder)), whole=bool(asked.verbose))
    if asked.dry_run and asked.format != "json":
        click.echo(
            f"next: {inert(account.next)}" if account.next else "nothing is left to do"
        )
    elif asked.format == "git":
        sys.stdout.buffer.write(account.git_log.encode())
    else:
        asked.deliver(account, detail=detail)
        if asked.format == "console":
            click.echo(f"\nFolder: {detail.folder}")
