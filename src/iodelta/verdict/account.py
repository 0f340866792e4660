"""Account: a replayed comparison written out as a Verdict, with its numbers, its rule and its findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
from iodelta.stats.carry import LEVEL
from iodelta.stats.course import course_of
from iodelta.stats.effect import Estimate, disagree
from iodelta.stats.guards import fisher_exact, order_trend, second_place
from iodelta.stats.replay import patterns, smallest_share
from iodelta.stats.sequential import nominal_tails
from iodelta.trial import Finding
from iodelta.verdict import explain
from iodelta.verdict.decide import Trace
from iodelta.verdict.family import Job, Outcome
from iodelta.verdict.hosts import typical_over
from iodelta.verdict.model import (
    LARGEST,
    Carry,
    Change,
    Course,
    Flags,
    Look,
    Stalls,
    Verdict,
    Word,
    change_of,
    relative,
)
from iodelta.verdict.numbers import Numbers, flagged_blocks, numbers_of
from iodelta.verdict.outlook import Outlook, outlook_of
from iodelta.verdict.rules import Rules
from iodelta.verdict.stalled import counted
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]

SUSPECT = 0.001
"""Level at which an effect of the order becomes a finding."""

UNEVEN = 0.05
"""Level at which flags that fall on one arm become a finding."""

APART = 0.1
"""Variants whose mean places in run order lie further apart than this share of the run were not interleaved."""


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
    return [_account(*row, rules, row[0].unit.metric.name in means) for row in rows]


def _account(
    job: Job,
    trace: Trace,
    outcome: Outcome,
    numbers: Numbers | None,
    rules: Rules,
    means: bool,
) -> Verdict:
    unit, at, plan = job.unit, outcome.at, job.claim.plan.blocks
    used, sign = len(unit.d), -1.0 if unit.higher_is_better else 1.0
    look = None
    if at >= 0:
        level = 2.0 * nominal_tails(job.claim.plan, rules.alpha / 2)[at]
        planned = plan[at] in rules.looks or plan[at] in rules.extension
        look = Look(at, plan[at], level, at == len(plan) - 1, planned)
    findings = list(unit.all_findings)
    flags = _flags(unit)
    word, alone, step = outcome.word, trace.alone, outcome.step
    made: dict[str, Change] = {}
    carry = course = corrected = None
    outlook = Outlook()
    if numbers is not None:
        findings += _doubts(unit, at in trace.withheld, numbers, flags)
        trend = None if look is None else _not_interleaved(unit, numbers.typical)
        findings += [trend] if trend else []
        # A drift takes the word that the looks gave, and no further block can bring it back. So can blocks after the
        # look, because the row shows all blocks: a stall that equivalence does not allow, a change that all blocks
        # together no longer have.
        if trend or _contradicted(word, numbers, rules):
            word, alone, step = "inconclusive", "inconclusive", "exhausted"
        if word == "inconclusive" and look is not None and numbers.sd > 0.0:
            outlook = outlook_of(job, trace, outcome, numbers, rules)
        for name in ("shown", "typical", "total", "direct", "deployed", "unflagged"):
            estimate: Estimate | None = getattr(numbers, name)
            if estimate is not None:
                made[name] = change_of(estimate, unit.metric)
        if numbers.corrected is not None:
            corrected = relative(sign * numbers.corrected)
        if numbers.carry is not None:
            best, shown = numbers.carry.best, numbers.carry
            size = float(shown.value[best])
            adjusted = float(shown.adjusted(numbers.typical.value)[best])
            left = Estimate(size, shown.low, shown.high, LEVEL, used)
            carry = Carry(change_of(left, unit.metric), relative(sign * adjusted))
        course = _course(numbers.d, unit, rules)
    stalls = None
    if unit.singles and numbers is not None:
        every = counted(unit, used)
        stalls = Stalls(
            *(unit.stalled_by(used) or ((), ())),
            every.trials,
            every.bound,
            every.stalled,
            every.longest,
        )
    before = after = None
    if len(unit.baseline_values):
        pair = np.median(unit.baseline_values), np.median(unit.variant_values)
        if means:
            arms = unit.arms(used)
            old = arms.old.sum() / arms.old_weight.sum()
            pair = old, arms.new.sum() / arms.new_weight.sum()
            # For a rate ``arms`` are exchanged, so that a ratio above 1 is always worse (see ``Units.arms``).
            pair = pair[::-1] if unit.higher_is_better else pair
        before, after = (float(one) if np.isfinite(one) else None for one in pair)
    change, deployed = made.get("shown"), made.get("deployed")
    basis = trace.basis if "total" in made else "typical"
    apart = ""
    ratio = (
        after / before if before and after is not None else math.nan
    )  # nan is apart from nothing
    if change is not None and abs(ratio - 1.0 - change.value) > 1e-9 * max(1.0, ratio):
        apart = "total over blocks" if basis == "total" else "median of ratios"
        apart = "mean over hosts" if unit.hosts else apart
        apart = "deployed, not counted" if change == deployed else apart
    next_look = None
    if outcome.step == "continue":
        screening = job.standing == "screening"
        ahead = [rules.screen.blocks] if screening else plan
        next_look = next((n + job.offset for n in ahead if n > used), None)
    smallest = None
    if used:  # exact for ranks, else that of a replay
        draws, replayed = len(set(unit.coins)), unit.hosts or rules.order == "mirrored"
        smallest = min(1.0, 2.0 * (smallest_share(draws) if replayed else 0.5**draws))
    phrase, rule = _phrase_and_rule(
        job, trace, outcome, numbers, word, look, findings, rules, stalls
    )
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
        next_look=next_look,
        baseline_value=before,
        variant_value=after,
        central="mean" if means else "median",
        change=change,
        basis=basis,
        apart=apart,
        corrected=corrected,
        typical=made.get("typical"),
        total=made.get("total"),
        carry=carry,
        direct=made.get("direct"),
        deployed=deployed,
        stalls=stalls,
        course=course,
        flagged=int(flagged_blocks(unit).sum()),
        flags=flags,
        unflagged=made.get("unflagged"),
        two_speeds=numbers is not None and numbers.two_speeds,
        smallest_p=smallest,
        sd=numbers.sd if numbers is not None and math.isfinite(numbers.sd) else None,
        p=None if numbers is None else numbers.p,
        p_looks=outcome.p_looks,
        p_family=outcome.p_family,
        q=outcome.q,
        needed=outlook.needed,
        reachable_margin=outlook.reachable,
        open_share=outlook.open,
        rule=rule,
        would_change=explain.would_change(
            word, change, rules.margin, outlook.needed, findings
        ),
        block_numbers=unit.numbers,
        changes=tuple(np.expm1(np.minimum(sign * unit.d, LARGEST)).tolist())
        if numbers is not None
        else (),
        baseline_first=unit.baseline_first,
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


def _phrase_and_rule(
    job: Job,
    trace: Trace,
    outcome: Outcome,
    numbers: Numbers | None,
    word: Word,
    look: Look | None,
    findings: Sequence[Finding],
    rules: Rules,
    stalls: Stalls | None,
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
    phrase = reserved or _phrase(unit, trace, outcome, numbers, word, rules, stalls)
    if left := explain.left_open(word, stalls, rules.stalls):
        phrase += f"; {left}"
    total = numbers.total if trace.basis == "total" else None
    rule = explain.rule_of(
        word,
        change_of(total or numbers.typical, unit.metric),
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
    stalls: Stalls | None,
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
        typical = change_of(numbers.typical, unit.metric)
        total = change_of(numbers.total, unit.metric)
        about = (stalls, unit.variant, used)
        rate = unit.higher_is_better
        return explain.by_total(word, typical, total, *about, is_rate=rate)
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


def _doubts(
    unit: Units, withheld: bool, numbers: Numbers, flags: Sequence[Flags]
) -> list[Finding]:
    """Return what a reader must see together with the word. Carry-over is said where it is shown or ``withheld`` the
    word; that onto one arm's trials alone only where no other is shown."""
    used, first = len(unit.d), np.array(unit.baseline_first, dtype=bool)
    found: list[tuple[str, str, str]] = []
    if used >= 6 and first.any() == first.all():
        leader = unit.baseline if first.all() else unit.variant
        says = (
            f"{leader} ran first in all {plural(used, 'block')}: what running first does counts as part of the change "
            f"(of orders drawn block by block, one in {2 ** (used - 1)} is like this)"
        )
        remedy = "run more blocks, each in an independently drawn order"
        found.append(("order-fixed", says, remedy))
    elif used >= 8 and min(first.sum(), (~first).sum()) >= 3:
        size, p = second_place(unit.d, first)
        if p < SUSPECT:
            says = (
                f"the run in second place differs from the one in first place, by "
                f"{explain.percent(math.expm1(size))} (p {p:.2g}); "
                "random order keeps it out of the change, but more blocks are needed"
            )
            remedy = "reset the device's state before every run, or pause between runs"
            found.append(("period", says, remedy))
    if used == 1 and unit.unit == "blocks":
        says = "one block cannot show whether the variants differ or the machine changed between trials"
        remedy = "run more blocks; the plan says how many a verdict needs"
        found.append(("one-block", says, remedy))
    shapes = zip(
        (numbers.carry, *numbers.onto),
        (unit.variant, unit.baseline, unit.variant),
        strict=True,
    )
    shown = [(one, arm) for one, arm in shapes if one is not None and one.shown.any()]
    if numbers.carry is not None and (shown or withheld):
        carry, arm = shown[0] if shown else (numbers.carry, unit.variant)
        low, high = sorted((relative(carry.low), relative(carry.high)))
        how = "slower" if relative(float(carry.value[carry.best])) > 0 else "faster"
        says = (
            f"{arm} runs {how} right after {unit.variant} "
            f"({explain.percent(-high)} .. {explain.percent(-low)}): runs affect each other"
        )
        remedy = "use --superblocks: each variant then runs twice in a row, and the second run counts"
        found.append(("carry-over", says, remedy))
    if numbers.deployed is not None and numbers.not_reached:
        state = change_of(numbers.deployed, unit.metric)
        says = (
            f"the counted trial of {unit.variant} still differs from the uncounted ones before it: "
            f"with {unit.variant} in steady use the change may be {explain.percent(state.low)} to {explain.percent(state.high)}"
        )
        remedy = f"{explain.more_conditioning(unit.conditioning)} puts more uncounted trials before each counted one"
        found.append(("state-not-reached", says, remedy))
    for one in flags:
        if one.p < UNEVEN:  # a cost of that variant, not noise
            says = (
                f"{one.rule}: {one.variant} {unit.variant} runs, {one.baseline} {unit.baseline} runs of "
                f"{one.trials} each; a cost of that variant, or chance (p = {one.p:.2g})"
            )
            remedy = "treat it as part of the change; look at what the flagged trials have in common"
            found.append(("uneven-flags", says, remedy))
    if numbers.total is not None and disagree(numbers.typical, numbers.total):
        typical, total = (
            explain.percent(change_of(one, unit.metric).value)
            for one in (numbers.typical, numbers.total)
        )
        says = f"a typical trial changed by {typical}, all work together by {total}: rare trials make the difference"
        remedy = "look at the blocks one by one: report --explain names the trials that stalled"
        found.append(("estimands-disagree", says, remedy))
    return [
        Finding(f"verdict.{rule}", "warning", unit.place, says, remedy)
        for rule, says, remedy in found
    ]


def _flags(unit: Units) -> tuple[Flags, ...]:
    """By rule, how many trials of each variant were flagged."""
    old, new = unit.baseline_flags, unit.variant_flags
    flags = []
    for rule in sorted(set(chain.from_iterable((*old, *new)))):
        before, after = (sum(rule in one for one in arm) for arm in (old, new))
        p = fisher_exact(before, len(old), after, len(new))
        flags.append(Flags(rule, before, after, len(new), p))
    return tuple(flags)


def _not_interleaved(unit: Units, typical: Estimate) -> Finding | None:
    """Where the variants were not interleaved, a drift that could make up half of the change forbids a verdict."""
    used, old_at, new_at = len(unit.d), unit.baseline_at, unit.variant_at
    values = np.concatenate([unit.baseline_values, unit.variant_values])
    if (
        len(unit.baseline_values) < used
        or not (np.isfinite(values) & (values > 0)).all()
    ):
        return None
    # Whether each block ended before the next began, so that the variants took turns. Always true of one block.
    first, last = np.minimum(old_at, new_at), np.maximum(old_at, new_at)
    if bool((last[:-1] < first[1:]).all()):
        return None
    span = max(old_at.max(), new_at.max()) - min(old_at.min(), new_at.min())
    if abs(float(new_at.mean() - old_at.mean())) <= APART * span:
        return None
    trend = order_trend(
        values, np.concatenate([old_at, new_at]), np.repeat([False, True], used)
    )
    if trend is not None and not trend.could_explain(typical.value):
        return None
    size = (
        ""
        if trend is None
        else f" of up to {explain.percent(math.expm1(abs(trend.explained) + trend.spread))}"
    )
    return Finding(
        "verdict.order-trend",
        "hard",
        unit.place,
        f"the variants did not run interleaved, and a drift over time{size} cannot be separated from the change",
        "run both variants in each block, in random order",
    )
