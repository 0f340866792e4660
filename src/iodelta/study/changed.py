"""A folder or bundle that was changed after the measurement: the findings that say so, and the error to raise."""

from __future__ import annotations

from collections.abc import Iterable

from iodelta.errors import MeasureError
from iodelta.trial import Finding


def breaks(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that say that a folder was changed."""
    return tuple(
        finding
        for finding in findings
        if finding.severity == "hard" and finding.rule.startswith("folder.")
    )


def refuse_changed(findings: Iterable[Finding], place: str) -> None:
    """Raise MeasureError if the folder or bundle at ``place`` was changed."""
    for finding in breaks(findings):
        where = f"{place}: {finding.place}"
        raise MeasureError(
            f"not what was measured: {finding.explanation}",
            place=where,
            remedy=finding.remedy,
        )
