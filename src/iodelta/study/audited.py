"""The result of an audit as data: findings of rules and readers, checked claims; and the rules themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Literal

import msgspec

from iodelta.audit import Audit, Repair, rules
from iodelta.audit.claims import Checked
from iodelta.audit.model import Hit, Rule
from iodelta.grouping import grouped
from iodelta.ingest import Refusal, Run
from iodelta.trial import Finding, Severity

NONE: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType({})

RANK = ("hard", "warning", "note")


def rule_named(name: str) -> Rule:
    """Return the rule that a finding refers to."""
    return next(rule for rule in rules() if rule.id == name)


class Audited(msgspec.Struct, frozen=True):
    """Everything ``iodelta audit`` has to say: ``hits`` index ``runs``, ``findings`` are of readers and statements."""

    schema: str
    runs: tuple[Run, ...]
    """Everything that was read."""
    hits: tuple[Hit, ...]
    """What the rules found, with the runs it is about."""
    failed: tuple[int, ...]
    """Runs with a hard finding, by their place in ``runs``."""
    findings: tuple[Finding, ...]
    """Those of readers and of statements."""
    claims: tuple[Checked, ...]
    """What became of each claim; empty without claims."""
    repairs: tuple[Repair, ...]
    refusals: tuple[Refusal, ...]
    trials: int = 0
    """Of iodelta's own experiments, whose findings are among ``findings``."""
    system: tuple[tuple[str, str], ...] = ()
    """What the machine was, where one of iodelta's own experiments recorded it: name and value."""
    again: str = ""
    """The command that audits the same."""
    systems: dict[str, tuple[tuple[str, str], ...]] = {}
    """Path -> what the machine was, of each of iodelta's own experiments."""
    unread: tuple[str, ...] = ()
    """Files that were named, and of which nothing could be read."""

    @property
    def rows(self) -> int:
        """Return how many runs are rows of a table that somebody made."""
        return sum(run.format == "table" for run in self.runs)

    @property
    def bad(self) -> int:
        """Return how many runs fail a hard rule, or hard findings of iodelta's own trials."""
        if self.failed or not self.trials:
            return len(self.failed)
        return sum(finding.severity == "hard" for finding in self.findings)

    def by_table(self) -> dict[str, tuple[int, int]]:
        """Title of each table -> its rows, and how many of them fail."""
        counts: dict[str, tuple[int, int]] = {}
        failed = set(self.failed)
        for index, run in enumerate(self.runs):
            if run.format == "table":
                rows, failing = counts.get(run.table, (0, 0))
                counts[run.table] = (rows + 1, failing + (index in failed))
        return counts

    def by_rule(self) -> list[list[Hit]]:
        """Return the hits of each rule and severity, hard ones first, else in the order of their first hit."""
        rules = list(dict.fromkeys(hit.finding.rule for hit in self.hits))

        def place(hit: Hit) -> tuple[int, int]:
            finding = hit.finding
            return RANK.index(finding.severity), rules.index(finding.rule)

        groups = grouped(self.hits, place)
        return [groups[key] for key in sorted(groups)]

    @property
    def exit_code(self) -> int:
        """0, 1 for a hard finding or a false claim, 4 when a file that was named, or all, could not be judged."""
        of_claims = filter(None, (claim.finding() for claim in self.claims))
        of_rules = (hit.finding for hit in self.hits)
        findings = (*of_rules, *self.findings, *of_claims)
        if any(finding.severity == "hard" for finding in findings):
            return 1
        something = self.runs or self.findings or self.trials
        return 0 if something and not self.unread else 4


def audited(
    audit: Audit,
    claims: Sequence[Checked],
    statements: Sequence[Finding],
    refusals: Sequence[Refusal],
    trials: int = 0,
    systems: Mapping[str, tuple[tuple[str, str], ...]] = NONE,
    again: str = "",
    unread: tuple[str, ...] = (),
) -> Audited:
    """Return the result of the rules, the readers, the claims and the prose (or of iodelta's own trials)."""
    system: tuple[tuple[str, str], ...] = ()
    if len(systems) == 1 and not audit.runs:
        [system] = systems.values()
    return Audited(
        schema="iodelta.audit/1",
        runs=audit.runs,
        hits=audit.hits,
        failed=tuple(sorted(audit.failed())),
        findings=(
            *statements,
            *chain.from_iterable(run.findings for run in audit.runs),
        ),
        claims=tuple(claims),
        repairs=audit.repairs(),
        refusals=tuple(refusals),
        trials=trials,
        system=system,
        again=again,
        systems=dict(systems),
        unread=unread,
    )


class AuditRule(msgspec.Struct, frozen=True):
    """One rule of the audit."""

    id: str
    """The name by which findings refer to it."""
    severity: Severity
    says: str
    """What it says is wrong."""
    needs: str
    """What a result must hold for the rule to judge it."""
    remedy: str


class RulesAnswer(msgspec.Struct, frozen=True):
    """The rules of the audit."""

    rules: tuple[AuditRule, ...]
    """All of them, in the order in which they are tried."""
    schema: Literal["iodelta.audit-rules/1"] = "iodelta.audit-rules/1"


def rules_answer() -> RulesAnswer:
    """Return every rule, as data."""
    return RulesAnswer(tuple(map(_rule_answer, rules())))


def _rule_answer(rule: Rule) -> AuditRule:
    return AuditRule(
        id=rule.id,
        severity=rule.severity,
        says=rule.says,
        needs=rule.needs,
        remedy=rule.remedy,
    )
