"""A folder or bundle that is not what was measured: which findings say so, and the error of who will not read it."""

from __future__ import annotations

from collections.abc import Iterable

from iodelta.errors import MeasureError
from iodelta.trial import Finding


def breaks(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings by which a folder is not what was measured."""
    return tuple(
        finding
        for finding in findings
        if finding.severity == "hard" and finding.rule.startswith("folder.")
    )


def refuse_changed(findings: Iterable[Finding], place: str) -> None:
    """Raises MeasureError when the folder or bundle at ``place`` is not what was measured."""
    for finding in breaks(findings):
        where = f"{place}: {finding.place}"
        raise MeasureError(
            f"not what was measured: {finding.explanation}",
            place=where,
            remedy=finding.remedy,
        )
