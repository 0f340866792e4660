"""Account: a replayed comparison written out as a Verdict, with its numbers, its rule and its findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
from iodelta.stats.carry import LEVEL
from iodelta.stats.course import course_of
from iodelta.stats.effect import Estimate
from iodelta.stats.replay import patterns, smallest_share
from iodelta.stats.sequential import nominal_tails
from iodelta.trial import Finding
from iodelta.verdict import explain
from iodelta.verdict.decide import Trace
from iodelta.verdict.doubts import doubts_of
from iodelta.verdict.family import Job, Outcome
from iodelta.verdict.hosts import typical_over
from iodelta.verdict.model import (
    LARGEST,
    Carry,
    Change,
    Course,
    Look,
    Stalls,
    Verdict,
    Word,
    relative,
)
from iodelta.verdict.numbers import Numbers, flagged_blocks, flags_of, numbers_of
from iodelta.verdict.outlook import Outlook, outlook_of
from iodelta.verdict.rules import Rules
from iodelta.verdict.stalled import counted
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]


def accounts(
    jobs: Sequence[Job],
    traces: Sequence[Trace],
    outcomes: Sequence[Outcome],
    rules: Rules,
) -> list[Verdict]:
    """Return the verdicts of ``jobs``, in order. One table has one kind of central value: means where some row of it
    rests on the total, so that the row that does adds up."""
    numbers = [
        numbers_of(job.unit, trace, outcome, rules)
        for job, trace, outcome in zip(jobs, traces, outcomes, strict=True)
    ]
    means = {
        job.unit.metric.name
        for job, trace, found in zip(jobs, traces, numbers, strict=True)
        if found is not None and found.total is not None and trace.basis == "total"
    }
    rows = zip(jobs, traces, outcomes, numbers, strict=True)
    return [
        _account(*row, rules, means=row[0].unit.metric.name in means) for row in rows
    ]


class _Shown(NamedTuple):
    """The fields of a verdict that come from the numbers of a look, in the metric's own sign."""

    change: Change | None = None
    typical: Change | None = None
    total: Change | None = None
    carry: Carry | None = None
    direct: Change | None = None
    deployed: Change | None = None
    corrected: float | None = None
    stalls: Stalls | None = None
    course: Course | None = None
    unflagged: Change | None = None
    two_speeds: bool = False
    sd: float | None = None
    p: float | None = None
    changes: tuple[float, ...] = ()


def _account(
    job: Job,
    trace: Trace,
    outcome: Outcome,
    numbers: Numbers | None,
    rules: Rules,
    *,
    means: bool,
) -> Verdict:
    unit = job.unit
    # The look at index ``at`` of a trace's plan, at its two-sided level; None for -1.
    if outcome.at < 0:
        look = None
    else:
        plan = trace.claim.plan
        blocks = plan.blocks[outcome.at]
        planned = blocks in rules.looks or blocks in rules.extension
        look = Look(
            outcome.at,
            blocks,
            2.0 * nominal_tails(plan, rules.alpha / 2)[outcome.at],
            outcome.at == len(plan.blocks) - 1,
            planned,
        )
    used = len(unit.d)
    findings = list(unit.all_findings)
    word, alone, step = outcome.word, trace.alone, outcome.step
    if numbers is not None:
        doubts, forbidden = doubts_of(
            unit, trace, outcome.at, numbers, used, judged=look is not None
        )
        findings += doubts
        # A doubt takes the word that the looks gave; no further block can bring it back.
        if forbidden:
            word, alone, step = "inconclusive", "inconclusive", "exhausted"
        # Blocks after the look can take a word back, because the row shows all blocks: a stall that equivalence does
        # not allow, a change that all blocks together no longer have.
        if _contradicted(word, numbers, rules):
            word, alone, step = "inconclusive", "inconclusive", "exhausted"
    outlook = Outlook()
    if (
        numbers is not None
        and word == "inconclusive"
        and look is not None
        and numbers.sd > 0.0
    ):
        outlook = outlook_of(job, trace, outcome, numbers, rules)
    shown = _Shown() if numbers is None else _shown(numbers, unit, used, rules)
    phrase, rule = _phrase_and_rule(
        job, trace, outcome, numbers, word, look, findings, rules
    )
    basis = "typical" if shown.total is None else trace.basis
    before, after = _levels(unit, used, means=means)
    return Verdict(
        cell=unit.cell,
        metric=unit.metric,
        baseline=unit.baseline,
        variant=unit.variant,
        word=word,
        phrase=phrase,
        alone=alone,
        step=step,
        blocks=used,
        look=look,
        next_look=_next_look(job, outcome, rules),
        baseline_value=before,
        variant_value=after,
        central="mean" if means else "median",
        change=shown.change,
        basis=basis,
        apart=_apart(before, after, shown, unit, basis, means=means),
        corrected=shown.corrected,
        typical=shown.typical,
        total=shown.total,
        carry=shown.carry,
        direct=shown.direct,
        deployed=shown.deployed,
        stalls=shown.stalls,
        course=shown.course,
        flagged=(int(flagged_blocks(unit, used).sum()) if unit.baseline_flags else 0),
        flags=flags_of(unit, used),
        unflagged=shown.unflagged,
        two_speeds=shown.two_speeds,
        smallest_p=_smallest_p(unit, used, rules),
        sd=shown.sd,
        p=shown.p,
        p_looks=outcome.p_looks,
        p_family=outcome.p_family,
        q=outcome.q,
        needed=outlook.needed,
        reachable_margin=outlook.reachable,
        open_share=outlook.open,
        rule=rule,
        would_change=explain.would_change(
            word, shown.change, rules.margin, outlook.needed, findings
        ),
        block_numbers=unit.numbers[:used],
        changes=shown.changes,
        baseline_first=unit.baseline_first[:used],
        findings=tuple(findings),
        idle=unit.idle_by(used),
    )


def _contradicted(word: Word, numbers: Numbers, rules: Rules) -> bool:
    """Return whether the interval of all blocks contradicts a word; 1e-9: an end may equal the bound."""
    if word == "equivalent":
        total = numbers.total or numbers.typical
        return max(-total.low, total.high) > math.log1p(rules.margin) + 1e-9
    if word == "regression":
        return numbers.shown.low <= -1e-9
    return word == "improvement" and numbers.shown.high >= 1e-9


def _shown(numbers: Numbers, unit: Units, used: int, rules: Rules) -> _Shown:
    sign = -1.0 if unit.higher_is_better else 1.0
    corrected = numbers.corrected
    return _Shown(
        change=_change(numbers.shown, unit),
        typical=_change(numbers.typical, unit),
        total=_change_or_none(numbers.total, unit),
        carry=_carry(numbers, unit),
        direct=_change_or_none(numbers.direct, unit),
        deployed=_change_or_none(numbers.deployed, unit),
        corrected=None if corrected is None else relative(sign * corrected),
        stalls=_stalls(unit, used),
        course=_course(numbers.d, unit, rules),
        unflagged=_change_or_none(numbers.unflagged, unit),
        two_speeds=numbers.two_speeds,
        sd=numbers.sd if math.isfinite(numbers.sd) else None,
        p=numbers.p,
        changes=tuple(np.expm1(np.minimum(sign * unit.d[:used], LARGEST)).tolist()),
    )


def _course(d: Floats, unit: Units, rules: Rules) -> Course | None:
    """Return the course of one machine's change; a host's own change is no course."""
    if unit.hosts:
        return None
    course = course_of(d, patterns(unit.coins, rules.seed))
    if course is None or abs(course.inside - course.outside) < math.log1p(rules.margin):
        return None
    sign = -1.0 if unit.higher_is_better else 1.0
    turn = course.last + 1 if course.first == 0 else course.first
    return Course(
        unit.numbers[course.first],
        unit.numbers[course.last],
        course.first == 0,
        course.last == len(d) - 1,
        relative(sign * course.inside),
        relative(sign * course.outside),
        course.p,
        unit.started[turn] if turn < len(unit.started) else None,
    )


def _apart(
    before: float | None,
    after: float | None,
    shown: _Shown,
    unit: Units,
    basis: str,
    *,
    means: bool,
) -> str:
    """Return why the change is not the ratio of the two values, in three words; empty where it is."""
    if not before or after is None or shown.change is None:
        return ""
    if abs(after / before - 1.0 - shown.change.value) <= 1e-9 * max(
        1.0, after / before
    ):
        return ""
    if shown.change == shown.deployed:
        return "deployed, not counted"
    if unit.hosts:
        return "mean over hosts"
    return "total over blocks" if basis == "total" else "median of ratios"


def _change(estimate: Estimate, unit: Units) -> Change:
    """exp(theta) - 1 in the metric's own sign; infinite bounds become None."""
    low, high = estimate.low, estimate.high
    value = estimate.value
    if unit.higher_is_better:
        value, low, high = -value, -high, -low
    return Change(
        relative(value),
        relative(low) if math.isfinite(low) else None,
        relative(high) if math.isfinite(high) else None,
        estimate.level,
    )


def _change_or_none(estimate: Estimate | None, unit: Units) -> Change | None:
    return None if estimate is None else _change(estimate, unit)


def _carry(numbers: Numbers, unit: Units) -> Carry | None:
    if numbers.carry is None:
        return None
    carry, best = numbers.carry, numbers.carry.best
    adjusted = float(carry.adjusted(numbers.typical.value)[best])
    estimate = Estimate(
        float(carry.value[best]), carry.low, carry.high, LEVEL, len(numbers.d)
    )
    return Carry(
        _change(estimate, unit),
        relative(-adjusted if unit.higher_is_better else adjusted),
    )


def _stalls(unit: Units, used: int) -> Stalls | None:
    """Return the stalled trials of both arms; None where there are no values of single trials."""
    if not unit.singles:
        return None
    in_cell, everywhere = unit.stalled_by(used) or ((), ()), counted(unit, used)
    return Stalls(
        *in_cell,
        everywhere.trials,
        everywhere.bound,
        everywhere.stalled,
        everywhere.longest,
    )


def _smallest_p(unit: Units, used: int, rules: Rules) -> float | None:
    """Return the smallest p value that the draws behind the units allow: exact for ranks, else that of a replay."""
    if not used:
        return None
    draws = len(set(unit.coins[:used]))
    replayed = bool(unit.hosts) or rules.order == "mirrored"
    return min(1.0, 2.0 * (smallest_share(draws) if replayed else 0.5**draws))


def _levels(
    unit: Units, used: int, *, means: bool
) -> tuple[float | None, float | None]:
    """Both variants' values for the row: medians over blocks, or the means behind a total."""
    old, new = unit.baseline_values[:used], unit.variant_values[:used]
    if not len(old):
        return None, None
    if not means:
        return _finite(np.median(old)), _finite(np.median(new))
    arms = unit.arms(used)
    # For a rate ``arms`` are exchanged, so that a ratio above 1 is always worse (see ``Units.arms``).
    of_arms = (
        (arms.new.mean(), arms.old.mean())
        if unit.higher_is_better
        else (
            arms.old.sum() / arms.old_weight.sum(),
            arms.new.sum() / arms.new_weight.sum(),
        )
    )
    return _finite(of_arms[0]), _finite(of_arms[1])


def _finite(value: np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None


def _next_look(job: Job, outcome: Outcome, rules: Rules) -> int | None:
    if outcome.step != "continue":
        return None
    if job.standing == "screening":
        return rules.screen.blocks if len(job.unit.d) < rules.screen.blocks else None
    later = [n for n in job.claim.plan.blocks if n > len(job.unit.d)]
    return later[0] + job.offset if later else None


def _phrase_and_rule(
    job: Job,
    trace: Trace,
    outcome: Outcome,
    numbers: Numbers | None,
    word: Word,
    look: Look | None,
    findings: Sequence[Finding],
    rules: Rules,
) -> tuple[str, str]:
    """Return the phrase, and the rule that fired."""
    unit = job.unit
    hard = next(
        (finding for finding in findings if finding.severity == "hard"), unit.refusal
    )
    if hard is not None:
        return f"no verdict: {hard.explanation}", hard.rule
    if numbers is None or look is None:
        return _so_far(job, rules), "no look was taken"
    reserved = _reserved(job, trace, outcome, word, rules)
    phrase = reserved or _phrase(unit, trace, outcome, numbers, word, rules)
    stalls = counted(unit, len(unit.d)) if unit.singles else None
    if left := explain.left_open(word, stalls, rules.stalls):
        phrase += f"; {left}"
    total = numbers.total if trace.basis == "total" else None
    rule = explain.rule_of(
        word,
        _change(total or numbers.typical, unit),
        rules.margin,
        look,
        len(job.claim.plan.blocks),
        unit.unit,
    )
    if outcome.p_family is not None and rules.family != "each":
        rule += f"; p over looks {outcome.p_looks:.2g}, {outcome.p_family:.2g} after Holm's correction"
    return phrase, rule


def _reserved(
    job: Job, trace: Trace, outcome: Outcome, word: Word, rules: Rules
) -> str:
    """Return why the word is not the one that the numbers alone suggest; empty where it is."""
    if word != "inconclusive":
        return ""
    if outcome.word != "inconclusive":
        looked = plural(trace.claim.plan.blocks[outcome.at], "block")
        return f"{outcome.word} after {looked}, but not over all {len(job.unit.d)}: the word is taken back"
    if job.standing == "dropped":
        return f"set aside by the screen: no sign of a change in {plural(rules.screen.blocks, 'block')}"
    if outcome.at not in trace.withheld and trace.alone in (
        "regression",
        "improvement",
    ):
        return f"a {trace.alone} by itself, but not after correction for the family of comparisons"
    return ""


def _phrase(
    unit: Units,
    trace: Trace,
    outcome: Outcome,
    numbers: Numbers,
    word: Word,
    rules: Rules,
) -> str:
    """Return what the look shows, in words."""
    margin, used = math.log1p(rules.margin), len(unit.d)
    withheld = trace.withheld.get(outcome.at)
    if word == "inconclusive" and withheld is not None:
        return explain.withheld(*withheld, unit.variant, unit.conditioning)
    if word == "inconclusive" and trace.few_trials:
        count = counted(unit, used)
        if not count.enough_for(rules.stalls):
            return explain.few_trials(count, rules.stalls)
        more, fewer = unit.stalled_by(used) or ((), ())
        if len(fewer) > len(more):
            return explain.stalls_reach(unit.baseline, len(fewer), used)
        return explain.stalls_reach(unit.variant, len(more), used)
    if word == "inconclusive" and unit.hosts:
        return explain.hosts(typical_over(numbers.d, unit.hosts), len(set(unit.hosts)))
    if word == "equivalent":
        return explain.equivalent(
            numbers.typical.low,
            numbers.typical.high,
            rules.margin,
            counted(unit, used),
        )
    if trace.basis == "total" and numbers.total is not None:
        stalls = _stalls(unit, used)
        typical = _change(numbers.typical, unit)
        return explain.by_total(
            word,
            typical,
            _change(numbers.total, unit),
            stalls,
            unit.variant,
            used,
            is_rate=unit.higher_is_better,
        )
    return explain.phrase_of(word, numbers.typical.low, numbers.typical.high, margin)


def _so_far(job: Job, rules: Rules) -> str:
    """Return the progress before the first look."""
    done, unit, plan = len(job.unit.d), job.unit.unit, job.claim.plan.blocks
    if job.standing == "screening":
        of = rules.screen.blocks
        return f"stage 1 of the screen: {min(done, of)} of {of} {unit}"
    fresh = "fresh " if job.offset else ""
    first = f"the first look is at {plan[0]}" if plan else "no look is left"
    return f"{done} {fresh}{unit} so far; {first}"
