"""A result as JUnit XML: a regression is a failure, what was not measured an error, what is not decided skipped."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby
from xml.sax.saxutils import quoteattr

from iodelta.report.stories.checks import Check

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
