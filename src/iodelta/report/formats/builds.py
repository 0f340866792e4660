"""A result as a build reads it: JUnit XML, annotations of GitHub, KTAP, and Bencher's metric format.

A regression fails, what was not measured is an error, and what is not decided is skipped or a notice: never red.
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
https://docs.kernel.org/dev-tools/ktap.html
https://bencher.dev/docs/reference/bencher-metric-format/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import msgspec

from iodelta.errors import RequestError
from iodelta.part import kind_of, load
from iodelta.report.stories.checks import Check
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.path.judge import PathAccount
    from iodelta.report.stories.kinds import Result
    from iodelta.study.comparison import Comparison
    from iodelta.study.experiment import Account

ELEMENTS = {
    "regression": "failure",
    "unmeasured": "error",
    "inconclusive": "skipped",
    "unresolved": "skipped",
    "finding": "skipped",
}
"""Word of a check -> the element inside its test case; all others passed."""


def junit(question: str, checks: Iterable[Check]) -> str:
    """Return a suite for each cell, a case for each statement. No time is given: it would be that of the whole
    experiment.
    """
    suites = [
        (group, tuple(cases))
        for group, cases in groupby(checks, key=lambda check: check.group)
    ]
    every = list(chain.from_iterable(cases for _, cases in suites))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{_counts(question or 'iodelta', every)}>",
    ]
    for group, cases in suites:
        lines.append(f"  <testsuite{_counts(group, cases)}>")
        lines += chain.from_iterable(map(_case, cases))
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _counts(name: str, checks: Iterable[Check]) -> str:
    elements = [ELEMENTS.get(check.word, "") for check in checks]
    numbers = {
        "tests": len(elements),
        "failures": elements.count("failure"),
        "errors": elements.count("error"),
        "skipped": elements.count("skipped"),
    }
    return f" name={_quoted(name)}" + "".join(
        f' {key}="{number}"' for key, number in numbers.items()
    )


def _case(check: Check) -> list[str]:
    head = f"    <testcase classname={_quoted(check.group)} name={_quoted(check.name)}>"
    element = ELEMENTS.get(check.word)
    if element is None:
        return [
            head,
            f"      <system-out>{_text(check.says)}</system-out>",
            "    </testcase>",
        ]
    # GitLab and Jenkins show the text of a failure, and the attribute of what is skipped.
    kind = "" if element == "skipped" else f' type="{check.word}"'
    inner = f"      <{element} message={_quoted(check.says)}{kind}>{_text(check.says)}</{element}>"
    return [head, inner, "    </testcase>"]


def _quoted(text: str) -> str:
    return quoteattr(text)


def _text(text: str) -> str:
    # ">" is replaced because of "]]>", which must not stand in text.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


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


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value of one measure, with its interval."""

    value: float
    lower_value: float | None = None
    upper_value: float | None = None


Named = tuple[str, str, str, Measured]
"""Cell, variant, measure, value."""


def bmf(result: Result) -> bytes:
    """Return the document. Raises RequestError for a result without values of variants."""
    place = kind_of(result).values
    if not place:
        raise RequestError(
            "this result has no values of variants, which Bencher needs",
            remedy="choose another format",
        )
    results: dict[str, dict[str, Measured]] = {}
    for cell, variant, measure, measured in load(place)(result):
        results.setdefault(f"{inert(cell)} / {inert(variant)}", {})[measure] = measured
    return msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"


def of_account(account: Account) -> Iterator[Named]:
    for verdict in account.judgement.verdicts:
        measure = inert(verdict.metric.name)
        if verdict.baseline_value is not None:
            yield (
                verdict.cell,
                verdict.baseline,
                measure,
                Measured(verdict.baseline_value),
            )
        if verdict.variant_value is not None:
            yield (
                verdict.cell,
                verdict.variant,
                measure,
                Measured(verdict.variant_value),
            )
        if verdict.change is not None:
            yield (
                verdict.cell,
                verdict.variant,
                f"{measure} change (%)",
                _percent(*_ends(verdict.change)),
            )


def of_comparison(comparison: Comparison) -> Iterator[Named]:
    for row in comparison.compared:
        measure = inert(row.metric)
        for side, value in zip(
            (comparison.baseline, row.variant), row.values, strict=True
        ):
            yield row.cell, side, measure, Measured(value)
        if row.change is not None:
            yield (
                row.cell,
                row.variant,
                f"{measure} change (%)",
                _percent(*_ends(row.change)),
            )


def _ends(change: Any) -> tuple[float, float | None, float | None]:
    return change.value, change.low, change.high


def _percent(value: float, low: float | None, high: float | None) -> Measured:
    bounds = (
        None if bound is None or abs(bound) == float("inf") else 100 * bound
        for bound in (low, high)
    )
    return Measured(100 * value, *bounds)


def of_path(account: PathAccount) -> Iterator[Named]:
    for count in account.counts:
        yield (
            count.cell,
            count.variant,
            f"{count.kind} instructions",
            Measured(count.median),
        )
    for cell in account.sharing.cells:
        yield cell.cell, cell.variant, "moved lines", Measured(cell.median)
