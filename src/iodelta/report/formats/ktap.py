"""A result in KTAP, version 1, as the kernel's selftests print theirs: a line for each statement.

https://docs.kernel.org/dev-tools/ktap.html
"""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.report.stories.checks import Check

DIRECTIVES = {
    "inconclusive": "SKIP",
    "unresolved": "SKIP",
    "finding": "SKIP",
    "unmeasured": "ERROR",
}
"""Word of a check -> the directive behind its name."""

FAILED = ("regression", "unmeasured")


def ktap(question: str, checks: Sequence[Check]) -> str:
    """Return the version, the question, the plan, then each check with its sentence above it."""
    lines = ["KTAP version 1"]
    lines += [f"# {question}"] if question else []
    lines.append(f"1..{len(checks)}")
    for number, check in enumerate(checks, 1):
        lines += _lines(number, check)
    return "\n".join(lines) + "\n"


def _lines(number: int, check: Check) -> tuple[str, ...]:
    result = "not ok" if check.word in FAILED else "ok"
    directive = DIRECTIVES.get(check.word)
    last = f" # {directive} {check.word}" if directive else ""
    # A # begins a directive.
    name = f"{check.group}: {check.name}".replace("#", "\\x23")
    return (f"# {check.says}", f"{result} {number} {name}{last}")
