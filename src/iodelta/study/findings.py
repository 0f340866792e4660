"""Findings put together: one for each rule and severity, hard ones first."""

from __future__ import annotations

from collections.abc import Iterable

from iodelta.trial import Finding


def grouped(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """Return the first finding of each rule and severity, with how many there are; hard ones first."""
    counts: dict[tuple[str, str], tuple[Finding, int]] = {}
    for finding in findings:
        key = (finding.rule, finding.severity)
        first, count = counts.get(key, (finding, 0))
        counts[key] = (first, count + 1)
    rank = {"hard": 0, "warning": 1, "note": 2}
    return sorted(counts.values(), key=lambda item: rank[item[0].severity])
