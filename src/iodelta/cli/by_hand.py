"""Answers of a person on the command line, and the course of a question."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from iodelta.bisect.byhand import read
from iodelta.bisect.driver import Judged, Searched, judged, searched
from iodelta.bisect.log import Answered, SearchFolder
from iodelta.bisect.question import Question
from iodelta.cli.commands import Asked
from iodelta.errors import RequestError, pasted
from iodelta.machine import LocalMachine, Machine

WAIT = 0.2
"""Seconds between checks whether the user wants to stop."""


def replayed(
    machine: Machine, question: Question, answers: Iterable[Answered]
) -> Searched | Judged:
    """Return a search up to these answers; words have a separate kind of search. Raises MeasureError, RequestError."""
    if question.by_hand == "words":
        return judged(machine, question, answers)
    return searched(machine, question, answers)


def answer_of(path: Path, asked: Asked) -> Once | None:
    """Return the answer that follows a folder's name, checked against the search; None without one. ``undo`` becomes
    the option. Raises RequestError."""
    words, value = asked.fio, asked.value
    if not words and not value:
        return None
    folder = SearchFolder.open(path)
    question = folder.question()
    again = f"iodelta bisect {pasted(path)}"
    if not question.by_hand:
        raise RequestError(
            "this search measures automatically, and does not accept answers",
            place=str(path),
            remedy=again,
        )
    if len(words) + bool(value) > 1 or asked.undo or asked.dry_run or asked.show:
        raise RequestError("give one answer", place=str(path), remedy=f"{again} good")
    answer = value or words[0]
    if answer == "undo":
        asked.undo = 1
        return None
    at = replayed(LocalMachine(), question, folder.answers())
    if at.ask is None:
        remedy = f"to undo the last answer: {again} undo"
        raise RequestError("this search is over", place=str(path), remedy=remedy)
    read(answer, question, needed=at.ask.must or at.search.store.tested(at.ask.item))
    return Once(at.ask.item, answer)


class Once:
    """One answer from the command line, about the item that was proposed."""

    def __init__(self, item: str, answer: str) -> None:
        self._item = item
        self._answer: str | None = answer

    def line(self, item: str, proposal: Sequence[str]) -> str | None:
        """Return the answer, then None. Raises RequestError if another call has answered in the meantime."""
        text, self._answer = self._answer, None
        if text is not None and item != self._item:
            raise RequestError(
                "another call has answered meanwhile, so this answer was not kept",
                place=self._item[:12],
                remedy="see the current proposal with --dry-run",
            )
        return text


class Prompt:
    """Lines of standard input, until it ends or the user stops."""

    def __init__(self, stop: Callable[[], bool], say: Callable[[str], None]) -> None:
        self._stop, self._say = stop, say
        self._text = b""

    def line(self, item: str, proposal: Sequence[str]) -> str | None:
        """Return the next line that is not empty. Text without a line end at the end of the input is not an answer."""
        for text in proposal:
            self._say(text)
        while True:
            while b"\n" not in self._text:
                more = self._more()
                if not more:
                    return None
                self._text += more
            line, _, self._text = self._text.partition(b"\n")
            said = line.decode(errors="replace").strip()
            if said:
                return said

    def _more(self) -> bytes:
        try:
            number = sys.stdin.fileno()
        except (OSError, ValueError, AttributeError):  # closed, or no file
            return b""
        while not self._stop():
            if select.select([number], [], [], WAIT)[0]:
                return os.read(number, 4096)
        return b""
