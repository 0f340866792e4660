"""``--fail-on`` and ``--exit-code``: the words of a result for which a command does not exit with 0."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

import click

from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result

Words = frozenset[str]

WORSE: Words = frozenset({"regression", "inconclusive"})
"""What ``--exit-code`` stands for, and what a command that measures goes by unless it is told otherwise."""

WORDS = {
    "regression": frozenset({"regression"}),
    "improvement": frozenset({"improvement"}),
    "change": frozenset({"regression", "improvement"}),
    "inconclusive": frozenset({"inconclusive"}),
    "finding": frozenset({"finding"}),
    "nothing": frozenset[str](),
}
"""Word of the option -> words of checks."""


class Coded(Protocol):
    """A result with its exit code for ``WORSE``."""

    @property
    def exit_code(self) -> int: ...


def fails(command: Callable[..., Any]) -> Callable[..., Any]:
    """--fail-on of a command that measures or compares: a regression, or that none can be ruled out, unless it says
    otherwise."""

    @functools.wraps(command)
    def checked(*, fail_on: str | None, **others: Any) -> Any:
        return command(fail_on=WORSE if fail_on is None else _parsed(fail_on), **others)

    return _fail_on("regression,inconclusive")(checked)


def gated(command: Callable[..., Any]) -> Callable[..., Any]:
    """--fail-on and --exit-code of a command that reports: None where neither is given."""

    @functools.wraps(command)
    def checked(*, fail_on: str | None, gate: bool, **others: Any) -> Any:
        if gate and fail_on is not None:
            raise RequestError(
                "--exit-code is short for --fail-on regression,inconclusive",
                remedy="give one of both options",
            )
        words = WORSE if gate else None
        return command(fail_on=words if fail_on is None else _parsed(fail_on), **others)

    return _fail_on("nothing")(_exit_code_option(checked))


def exit_code(result: Coded, words: Words | None) -> int:
    """Return the exit code of a result by ``words``: 1, 3 where they say inconclusive, 4 where nothing could be
    measured.

    Raises RequestError for other words than ``WORSE`` where the result has no verdict.
    """
    code = result.exit_code
    if code not in (0, 1, 3) or words == WORSE:
        return code
    if not words:
        return 0
    from iodelta.report.stories.checks import checks_of, code_of

    return code_of(checks_of(cast("Result", result)), words)


def _parsed(text: str) -> Words:
    words: set[str] = set()
    for word in text.split(","):
        if word.strip() not in WORDS:
            raise RequestError(
                f"not a word of a verdict: {word.strip()!r}",
                place="--fail-on",
                remedy=f"use {', '.join(WORDS)}",
            )
        words |= WORDS[word.strip()]
    return frozenset(words)


def _fail_on(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--fail-on",
        metavar="WORDS",
        help=f"Exit with 1 for these words, 3 for inconclusive: {', '.join(WORDS)} (default: {default}).",
    )


_exit_code_option = click.option(
    "--exit-code",
    "gate",
    is_flag=True,
    help="For scripts: the same as --fail-on regression,inconclusive.",
)
