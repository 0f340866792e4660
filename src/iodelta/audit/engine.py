"""The engine: every rule over the evidence, its marks as findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iodelta.audit.model import Audit, Evidence, Hit, Rule
from iodelta.audit.rules import depth, device, ending, groups, host, order, sampling, shape, steady, units
from iodelta.ingest import Run
from iodelta.trial import Finding

RULES: tuple[Rule, ...] = (
    *ending.RULES,
    *units.RULES,
    *depth.RULES,
    *shape.RULES,
    *order.RULES,
    *device.RULES,
    *sampling.RULES,
    *host.RULES,
    *steady.RULES,
    *groups.RULES,
)
"""In the order in which findings are listed."""


def audit(runs: Iterable[Run], *, rules: Sequence[Rule] = RULES) -> Audit:
    """What ``rules`` find in runs and table rows from anywhere. Never raises for what is in them."""
    evidence = Evidence(tuple(runs))
    return Audit(evidence.runs, tuple(judge(evidence, rules)))


def judge(evidence: Evidence, rules: Sequence[Rule]) -> Iterable[Hit]:
    """The hits of ``rules``, in their order."""
    for one in rules:
        for mark in one.find(evidence):
            place = evidence.place(mark.runs[0])
            finding = Finding(one.id, mark.severity or one.severity, place, mark.explanation, one.remedy)
            yield Hit(finding, mark.runs, mark.repairs)
