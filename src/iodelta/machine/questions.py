"""Questions to a machine that one round trip answers together: the code for them, and the parsing of the answers."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import cast

from iodelta.errors import MachineError
from iodelta.machine.base import Completed
from iodelta.machine.channel import Reply
from iodelta.machine.spelling import between, command, listing, spelt

SEPARATOR = "/proc/sys/kernel/random/boot_id"
"""A file whose random text separates the files of one ``cat``."""

Question = tuple[str, ...]
"""``("read", PATH)``, ``("glob", PATTERN)`` or ``("run", WORD, ...)``."""
Answer = bytes | MachineError | list[str] | Completed


class Block(threading.local):
    """The questions that the present ``together`` block of a thread expects, those asked, and the known answers."""

    def __init__(self) -> None:
        self.begin(None, ())

    def begin(
        self, name: tuple[str, ...] | None, expected: tuple[Question, ...]
    ) -> None:
        self.name = name
        self.expected = expected
        self.asked: dict[Question, None] = {}
        self.known: dict[Question, Answer] = {}

    def ahead(self, question: Question) -> tuple[Question, ...]:
        """Return the questions to ask along with one: all expected ones, else all files of the glob that listed it."""
        if question in self.expected:
            return self.expected
        for known, answer in self.known.items():
            if (
                question[0] == "read"
                and known[0] == "glob"
                and question[1] in cast(list[str], answer)
            ):
                return tuple(("read", path) for path in cast(list[str], answer))
        return (question,)


def codes_of(
    files: Sequence[str], patterns: Sequence[str], runs: Sequence[Question]
) -> list[str]:
    """Code that answers all files, then all patterns, then each program."""
    codes = []
    if files:
        codes.append(
            f"LC_ALL=C cat -- {spelt(between(files, SEPARATOR))} </dev/null; iodelta_end $?"
        )
    if patterns:
        codes.append(f"{''.join(map(listing, patterns))} iodelta_end 0")
    return [*codes, *map(code_of, runs)]


def code_of(question: Question) -> str:
    """Return the code of a program to run, with its environment."""
    words = question[1:]
    at = words.index("")
    return command(words[at + 1 :], env=dict(word.split("=", 1) for word in words[:at]))


def matches_of(patterns: Sequence[str], reply: Reply) -> dict[Question, Answer]:
    """Return the matches of each pattern; in the answer an empty path ends those of a pattern."""
    paths = iter(reply.stdout.split(b"\0"))
    answers: dict[Question, Answer] = {}
    for pattern in patterns:
        answers["glob", pattern] = sorted(
            os.fsdecode(path) for path in iter(paths.__next__, b"")
        )
    return answers
