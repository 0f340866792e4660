"""fio's messages around its report, and what they mean for the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from iodelta.ingest.wording import clean
from iodelta.trial import Finding, Severity

_REMARKS: tuple[tuple[str, re.Pattern[str], Severity, str], ...] = (
    (
        "fio.signal",
        re.compile(r"terminating on signal \d+|got signal=\d+"),
        "warning",
        "it was stopped early",
    ),
    (
        "fio.depth-ignored",
        re.compile(r"note: both iodepth >= 1 and synch"),
        "note",
        "the requested depth had no effect",
    ),
    (
        "fio.past-end",
        re.compile(r"refusing extend"),
        "warning",
        "the file was smaller than size",
    ),
    (
        "fio.no-io",
        re.compile(r"No I/O performed by"),
        "warning",
        "it did no I/O, so there is no latency",
    ),
    (
        "fio.error",
        re.compile(r"^fio: .{0,300}\b(?:err|error)="),
        "warning",
        "a job failed",
    ),
    (
        "fio.lost-disk-stats",
        re.compile(r"clock not CPU consistent|clock setup failed"),
        "note",
        "another clock was used",
    ),
)


def remarks(messages: Iterable[str], place: str) -> tuple[Finding, ...]:
    """Findings from the lines around a report, each rule once, with fio's words."""
    findings: dict[str, Finding] = {}
    for line in messages:
        for rule, pattern, severity, meaning in _REMARKS:
            if rule not in findings and pattern.search(line[:1000]):
                findings[rule] = Finding(
                    rule, severity, place, f"{meaning}: {clean(line.strip()[:200])}"
                )
    return tuple(findings.values())
