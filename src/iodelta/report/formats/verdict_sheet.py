"""Verdicts of an experiment as CSV: a row per cell, variant and metric, each with what it takes to read it alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iodelta.report.formats.spreadsheet import records_text

if TYPE_CHECKING:
    from iodelta.study.experiment import Account
    from iodelta.verdict import Verdict
    from iodelta.verdict.model import Change

COLUMNS = tuple(
    """
    cell condition metric unit better baseline variant verdict phrase blocks
    baseline_median variant_median change low high level smallest_change total_change sd
    p p_looks p_family q blocks_needed best findings
    question margin order looks seed decided_in_advance calibration state repeat schema
    central basis estimand apart corrected typical_change direct_change carry_over carry_low carry_high
    adjusted_change stalled stalls_not_excluded flagged_blocks unflagged_change
    two_speeds smallest_p
    """.split()
)
"""Shares are fractions: a change of -0.02 is 2 % less."""


def of_account(account: Account) -> str:
    """Return one row per cell, variant and metric."""
    return records_text(COLUMNS, _records(account))


def _records(account: Account) -> Iterator[dict[str, object]]:
    conditions = {cell.name: cell.condition for cell in account.plan.experiment.cells}
    best = {(entry.cell, entry.metric): entry.variants for entry in account.best}
    findings = (*account.findings, *account.judgement.findings)
    everywhere = [finding.rule for finding in findings]
    of_all = _of_all(account)
    for verdict in account.judgement.verdicts:
        own = [finding.rule for finding in verdict.findings]
        marked = best.get((verdict.cell, verdict.metric.name), ())
        yield {
            **of_all,
            **_answer(verdict),
            **_evidence(verdict),
            "condition": conditions.get(verdict.cell, ""),
            "best": " ".join(marked),
            "findings": " ".join(dict.fromkeys([*own, *everywhere])),
        }


def _of_all(account: Account) -> dict[str, object]:
    """Return what is the same in every row: the question, the plan, and how to do it again."""
    from iodelta.report.stories.calibration import quoted

    plan = account.plan
    return {
        "question": plan.experiment.question,
        "margin": plan.rules.margin,
        "order": "randomised blocks",
        "looks": " ".join(map(str, plan.rules.looks)),
        "seed": plan.seed,
        "decided_in_advance": "order, rules, looks, margin, level",
        "calibration": " ".join(map(quoted, account.calibrations[:1]))
        or "not calibrated",
        "state": account.state,
        "repeat": account.again.run if account.again else "",
        "schema": "iodelta.verdicts.csv/2",
    }


def _answer(verdict: Verdict) -> dict[str, object]:
    """Return the word, and the numbers that it rests on; empty where unknown."""
    change = verdict.change
    low, high = (change.low, change.high) if change else (None, None)
    half = (high - low) / 2 if low is not None and high is not None else None
    return {
        "cell": verdict.cell,
        "metric": verdict.metric.name,
        "unit": verdict.metric.unit,
        "better": verdict.metric.better,
        "baseline": verdict.baseline,
        "variant": verdict.variant,
        "verdict": verdict.word,
        "phrase": verdict.phrase,
        "blocks": verdict.blocks,
        "baseline_median": verdict.baseline_value,
        "variant_median": verdict.variant_value,
        "change": change.value if change else None,
        "low": low,
        "high": high,
        "level": change.level if change else None,
        "smallest_change": half,
    }


def _evidence(verdict: Verdict) -> dict[str, object]:
    """Return what stands behind the word, as numbers; empty where unknown."""
    needed, carry, stalls = verdict.needed, verdict.carry, verdict.stalls
    after = carry.change if carry else None
    return {
        "total_change": _value(verdict.total),
        "sd": verdict.sd,
        "p": verdict.p,
        "p_looks": verdict.p_looks,
        "p_family": verdict.p_family,
        "q": verdict.q,
        "blocks_needed": needed.blocks if needed else None,
        "central": verdict.central,
        "basis": verdict.basis,
        "estimand": verdict.estimand,
        "apart": verdict.apart,
        "corrected": verdict.corrected,
        "typical_change": _value(verdict.typical),
        "direct_change": _value(verdict.direct),
        "carry_over": _value(after),
        "carry_low": after.low if after else None,
        "carry_high": after.high if after else None,
        "adjusted_change": carry.adjusted if carry else None,
        "stalled": " ".join(map(str, stalls.variant)) if stalls else None,
        "stalls_not_excluded": stalls.not_excluded if stalls else None,
        "flagged_blocks": verdict.flagged,
        "unflagged_change": _value(verdict.unflagged),
        "two_speeds": int(verdict.two_speeds),
        "smallest_p": verdict.smallest_p,
    }


def _value(change: Change | None) -> float | None:
    return change.value if change else None
