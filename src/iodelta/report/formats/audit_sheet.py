"""An audit as CSV: a row per finding, claim and file that was not read; and its rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iodelta.report.formats.spreadsheet import csv_text, records_text

if TYPE_CHECKING:
    from iodelta.audit.claims import Checked
    from iodelta.ingest import Refusal
    from iodelta.study.audited import Audited, RulesAnswer
    from iodelta.trial import Finding

AUDITED = tuple(
    "kind severity rule place explanation remedy mended repeat schema".split()
)
"""Kind: rule, reader, claim or not read; mended is how many cells have a repair."""


def of_audit(audited: Audited) -> str:
    """Return one row per finding, claim and file that was not read."""
    of_all = {
        "mended": 0,
        "repeat": audited.again,
        "schema": "iodelta.audit.csv/1",
    }
    return records_text(AUDITED, (of_all | row for row in _audited(audited)))


def _audited(audited: Audited) -> Iterator[dict[str, object]]:
    for hit in audited.hits:
        yield {"kind": "rule", **_finding(hit.finding), "mended": len(hit.repairs)}
    for finding in audited.findings:
        yield {"kind": "reader", **_finding(finding)}
    for claim in audited.claims:
        yield {"kind": "claim", **_claim(claim)}
    for refusal in audited.refusals:
        yield {"kind": "not read", **_refusal(refusal)}


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "severity": finding.severity,
        "rule": finding.rule,
        "place": finding.place,
        "explanation": finding.explanation,
        "remedy": finding.remedy,
    }


def _claim(claim: Checked) -> dict[str, object]:
    finding = claim.finding()
    if finding is not None:
        return _finding(finding)
    return {
        "severity": "",
        "rule": "claim.holds",
        "place": claim.sentence,
        "explanation": claim.explanation,
        "remedy": "",
    }


def _refusal(refusal: Refusal) -> dict[str, object]:
    return {
        "severity": "",
        "rule": "",
        "place": f"{refusal.place.file}:{refusal.place.line}",
        "explanation": refusal.reason,
        "remedy": "",
    }


RULES = ("rule", "severity", "says", "needs", "remedy", "schema")


def of_rules(answer: RulesAnswer) -> str:
    """Return one row per rule."""
    schema = "iodelta.audit-rules.csv/1"
    rows = (
        (rule.id, rule.severity, rule.says, rule.needs, rule.remedy, schema)
        for rule in answer.rules
    )
    return csv_text(RULES, rows)
