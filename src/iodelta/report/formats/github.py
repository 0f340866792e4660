"""A result as annotations of GitHub Actions: workflow commands, which the runner reads from what a step prints.

A regression and what could not be measured are errors. What is not decided is a notice: it is neutral, never red.
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iodelta.report.stories.checks import Check

LEVELS = {
    "regression": "error",
    "unmeasured": "error",
    "finding": "warning",
    "improvement": "notice",
    "inconclusive": "notice",
}
"""Word of a check -> the level of its annotation; all others have none."""

MOST = 10
"""Annotations of a level that GitHub shows for a step."""


def commands(checks: Iterable[Check]) -> str:
    """Return the commands, worst first; of a level with too many the last says how many there are in all."""
    levels: dict[str, list[Check]] = {
        level: [] for level in dict.fromkeys(LEVELS.values())
    }
    for check in checks:
        if check.word in LEVELS:
            levels[LEVELS[check.word]].append(check)
    text = ""
    for level, of_level in levels.items():
        for title, message in _few(of_level):
            text += _command(level, title, message)
    return text


def _few(checks: Sequence[Check]) -> list[tuple[str, str]]:
    lines = [
        (f"{check.word}: {check.group}, {check.name}", check.says) for check in checks
    ]
    if len(lines) <= MOST:
        return lines
    return [
        *lines[: MOST - 1],
        ("and more", f"{len(lines) - MOST + 1} more are in the report"),
    ]


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(title)}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
