"""What an audit amounts to, as data: what the rules, the readers and the claims came to; and the rules themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from iodelta.audit import RULES, Audit, Repair
from iodelta.audit.claims import Checked
from iodelta.audit.model import Hit
from iodelta.ingest import Refusal, Run
from iodelta.trial import Finding, Severity


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

    @property
    def exit_code(self) -> int:
        """0, 1 for a hard finding or a false claim, 4 when there was nothing to judge."""
        found = [*(hit.finding for hit in self.hits), *self.findings]
        found += [finding for claim in self.claims if (finding := claim.finding()) is not None]
        if any(finding.severity == "hard" for finding in found):
            return 1
        return 0 if self.runs or self.findings or self.trials else 4


def audited(
    audit: Audit,
    claims: Sequence[Checked],
    statements: Sequence[Finding],
    refusals: Sequence[Refusal],
    trials: int = 0,
) -> Audited:
    """What the rules, the readers, the claims and the prose (or own trials) came to."""
    return Audited(
        "iodelta.audit/1",
        audit.runs,
        audit.hits,
        tuple(sorted(audit.failed())),
        (*statements, *(finding for run in audit.runs for finding in run.findings)),
        tuple(claims),
        audit.repairs(),
        tuple(refusals),
        trials,
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
    """Every rule, as data."""
    return RulesAnswer(tuple(AuditRule(one.id, one.severity, one.says, one.needs, one.remedy) for one in RULES))
