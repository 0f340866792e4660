"""What ``bisect`` and ``attribute`` share on the command line: how a thing is measured, progress, output."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import click

from iodelta.bisect.byhand import TakeBack
from iodelta.bisect.driver import (
    R,
    Replay,
    S,
    attributed,
    go,
    judged,
    new,
    searched,
    undo,
)
from iodelta.bisect.log import Answered, SearchFolder
from iodelta.bisect.model import Ask
from iodelta.bisect.question import Patches, Question
from iodelta.bisect.store import Store
from iodelta.cli.gate import WORSE, Words, exit_code
from iodelta.cli.progress import Progress
from iodelta.cli.search_question import given_options
from iodelta.cli.turn import in_turn
from iodelta.errors import RequestError, pasted
from iodelta.lab.signals import stop_on_signals
from iodelta.machine import LocalMachine, Machine
from iodelta.study.words import inert, quantity

if TYPE_CHECKING:
    from iodelta.cli.by_hand import Once
    from iodelta.study.attribution import AttributionAccount
    from iodelta.study.search import SearchAccount


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
            self._progress.step(
                "searching", share, f"{ask.stage} {inert(title)[:TITLE]}"
            )

    def answered(self, answered: Answered, title: str, store: Store) -> None:
        answer = answered.answer
        values = " ".join(
            quantity(value, self._question.unit) for value in answered.values
        )
        came = answer.word or (
            f"skipped: {answer.reason}" if answer.value is None else values
        )
        self.note(
            f"{len(store.runs) + len(store.words):>4} {answered.stage:<7} {title[:TITLE]:<{TITLE}} {came}"
        )


def open_folder(
    path: Path, fio: tuple[str, ...], options: dict[str, object]
) -> SearchFolder:
    """Return the folder of an earlier call, with what --undo takes back taken back. Raises RequestError, also when a
    question was given as well."""
    wrong = sorted(
        given_options(options) - {"plan_", "undo", "show_", "format_", "value", "rest"}
    )
    if fio or wrong:
        raise RequestError(
            "the folder already defines the question",
            place=str(path),
            remedy="to continue, only --plan, --undo, --show, --rest and --format can be given"
            + (f", not --{wrong[0].rstrip('_')}" if not fio else ""),
        )
    folder = SearchFolder.open(path)
    if given_options({"rest"}):
        folder.extend(cast(float, options["rest"]))
    if options["undo"]:
        for answered in undo(folder, cast(int, options["undo"])):
            click.echo(f"undone: {answered.item[:12]} ({answered.stage})", err=True)
    return folder


def new_folder(
    kind: str, question: Question, machine: Machine, options: dict[str, object]
) -> SearchFolder:
    """Return the folder of a new question. Raises RequestError, MeasureError."""
    place = options["folder"]
    return new(
        place if isinstance(place, Path) else fresh_name(kind), question, machine
    )


def carry_on(
    folder: SearchFolder,
    machine: Machine,
    replay: Callable[[Machine, Question, Iterable[Answered]], Replay[S, R]],
    account: Callable[
        [SearchFolder, Question, Replay[S, R]], SearchAccount | AttributionAccount
    ],
    options: dict[str, object],
) -> NoReturn:
    """Go on with a folder, or only look at it; print what it amounts to, and exit."""
    question = folder.question()
    if options["plan_"] or options["undo"] or options["show_"]:
        at = replay(machine, question, folder.answers())
    else:
        at = _gone_on(
            folder, machine, replay, cast("Once | None", options.get("answer"))
        )
    result = account(folder, question, at)
    deliver(result, options)
    if options["plan_"] or options["undo"]:
        sys.exit(0)
    sys.exit(exit_code(result, cast("Words | None", options.get("fail_on", WORSE))))


def go_on(
    folder: SearchFolder, machine: Machine, options: dict[str, object]
) -> NoReturn:
    """The same with the folder of a search: words of a person have one of their own."""
    from iodelta.study.by_words import account as of_words
    from iodelta.study.searched import account as of_search

    if folder.question().by_hand == "words":
        carry_on(folder, machine, judged, of_words, options)
    carry_on(folder, machine, searched, of_search, options)


def _gone_on(
    folder: SearchFolder,
    machine: Machine,
    replay: Callable[[Machine, Question, Iterable[Answered]], Replay[S, R]],
    answer: Once | None,
) -> Replay[S, R]:
    """Measure, or ask a person: for one ``answer`` of the command line, else at the terminal."""
    from iodelta.cli.by_hand import Prompt, take_back

    question = folder.question()
    with stop_on_signals() as stop, Progress(log=True) as progress:
        lines = Lines(folder.path, question, progress)
        person = answer or Prompt(stop, lines.note) if question.by_hand else None
        while True:
            try:
                return in_turn(
                    lambda: go(
                        folder, machine, replay, lines, stop=stop, person=person
                    ),
                    stop,
                    lines.note,
                )
            except TakeBack:
                take_back(folder, lines.note)


def report(
    path: Path,
    format_: str,
    output: Path | None,
    *,
    force: bool,
    fail_on: Words | None,
    whole: bool,
) -> NoReturn:
    """What is known of a folder, in any format; and exit, by the words in ``fail_on``."""
    folder = SearchFolder.open(path)
    options: dict[str, object] = {
        "plan_": False,
        "undo": None,
        "show_": True,
        "format_": format_,
    }
    options["fail_on"] = fail_on
    options |= {"output": output, "write_over": force, "whole": whole}
    if isinstance(folder.question().subject, Patches):
        from iodelta.study.attribution import account as of_patches

        carry_on(folder, LocalMachine(), attributed, of_patches, options)
    go_on(folder, LocalMachine(), options)


def deliver(
    account: SearchAccount | AttributionAccount, options: dict[str, object]
) -> None:
    """Print an account in the format asked for, or write it to a file."""
    from iodelta.cli import delivery
    from iodelta.report.stories.story import Detail

    detail = Detail(inert(pasted(account.folder)), whole=bool(options.get("whole")))
    format_, output = (
        str(options["format_"]),
        cast("Path | None", options.get("output")),
    )
    if options["plan_"] and format_ != "json":
        click.echo(
            f"next: {inert(account.next)}" if account.next else "nothing is left to do"
        )
    elif format_ == "console":
        delivery.print_result(account, detail)
        click.echo(f"\nFolder: {detail.folder}")
    elif format_ == "git" and account.schema == "iodelta.bisect/2":
        sys.stdout.buffer.write(account.git_log.encode())
    else:
        write_over = bool(options.get("write_over"))
        delivery.deliver(
            account, tuple, format_, output, force=write_over, detail=detail
        )


def fresh_name(kind: str) -> Path:
    """Return a folder's name that tells when it was begun."""
    return Path(time.strftime(f"iodelta-{kind}-%Y%m%d-%H%M%S"))
