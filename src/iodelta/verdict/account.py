"""Account: a replayed comparison written out as a Verdict, with its numbers, its rule and its findings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from iodelta.stats.effect import (
    Estimate,
    disagree,
    hodges_lehmann_rows,
    mean_t_rows,
    median_binomial,
    sign_flip_p_rows,
)
from iodelta.stats.guards import order_effect, order_trend, suspicion
from iodelta.stats.sequential import nominal_tails
from iodelta.trial import Finding
from iodelta.verdict import explain
from iodelta.verdict.decide import Trace, over_hosts
from iodelta.verdict.family import Job, Outcome
from iodelta.verdict.model import LARGEST, Change, Look, Needed, Verdict, Word, relative
from iodelta.verdict.rules import Rules
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]

SUSPECT = 0.001
"""Level at which an effect of the order becomes a finding."""

APART = 0.1
"""Variants whose mean places in run order lie further apart than this share of the run were not interleaved."""


@dataclass(frozen=True)
class Numbers:
    """The estimates of one comparison at the look shown; theta and bounds are log-ratios, positive = worse."""

    theta: Estimate
    mean: Estimate
    sd: float
    p: float


def accounts(jobs: Sequence[Job], traces: Sequence[Trace], outcomes: Sequence[Outcome], rules: Rules) -> list[Verdict]:
    """The verdicts of ``jobs``, in order."""
    numbers = _all_numbers(jobs, traces, outcomes, rules)
    return [
        _account(job, trace, outcome, found, rules)
        for job, trace, outcome, found in zip(jobs, traces, outcomes, numbers, strict=True)
    ]


def look_of(trace: Trace, at: int, rules: Rules) -> Look | None:
    """The look at index ``at`` of a trace's plan, at its two-sided level; None for -1."""
    if at < 0:
        return None
    plan = trace.claim.plan
    blocks = plan.blocks[at]
    planned = blocks in rules.looks or blocks in rules.extension
    return Look(at, blocks, 2.0 * nominal_tails(plan, rules.alpha / 2)[at], at == len(plan.blocks) - 1, planned)


def _all_numbers(
    jobs: Sequence[Job], traces: Sequence[Trace], outcomes: Sequence[Outcome], rules: Rules
) -> list[Numbers | None]:
    """Estimates of all comparisons, those with equally many units and the same level together."""
    found: list[Numbers | None] = [None] * len(jobs)
    groups: dict[tuple[int, float], list[int]] = {}
    data: dict[int, Floats] = {}
    for row, (job, trace, outcome) in enumerate(zip(jobs, traces, outcomes, strict=True)):
        if job.unit.refusal is not None and job.unit.refusal.rule != "verdict.few-boots":
            continue
        d, level = _shown(job.unit, trace, outcome.at, rules)
        if len(d):
            data[row] = d
            groups.setdefault((len(d), level), []).append(row)
    for (n, level), rows in groups.items():
        d = np.array([data[row] for row in rows])
        thetas = hodges_lehmann_rows(d, level)
        means = mean_t_rows(d, level)
        p = sign_flip_p_rows(d, rules.seed)
        sd = d.std(axis=1, ddof=1) if n > 1 else np.full(len(rows), np.nan)
        for at, row in enumerate(rows):
            theta = _estimate(thetas, at, level, n)
            if jobs[row].unit.hosts:
                theta = _over_hosts(jobs[row].unit, d[at], level) or theta
            mean = _estimate(means, at, level, n)
            found[row] = Numbers(theta, mean, float(sd[at]), float(p[at]))
    return found


def _estimate(rows: tuple[Floats, Floats, Floats], at: int, level: float, n: int) -> Estimate:
    value, low, high = rows
    return Estimate(float(value[at]), float(low[at]), float(high[at]), level, n)


def _shown(unit: Units, trace: Trace, at: int, rules: Rules) -> tuple[Floats, float]:
    """The log-ratios behind the word (merged into batches where the guard asked for it) and the interval's level."""
    if at < 0:
        return unit.d, 1.0 - rules.spendable
    look = look_of(trace, at, rules)
    level = 1.0 - (look.alpha if look else rules.spendable)
    merged = trace.merged.get(at)
    if merged is not None and merged.clean:
        return np.array(merged.batches), level
    return unit.d[: trace.claim.plan.blocks[at]], level


def _over_hosts(unit: Units, d: Floats, level: float) -> Estimate | None:
    combined = over_hosts(d, unit.hosts[: len(d)], level)
    return Estimate(combined.value, combined.low, combined.high, level, len(d)) if combined else None


def _account(job: Job, trace: Trace, outcome: Outcome, numbers: Numbers | None, rules: Rules) -> Verdict:
    unit = job.unit
    look = look_of(trace, outcome.at, rules)
    used = look.blocks if look else len(unit.d)
    findings = [*unit.findings, *([unit.refusal] if unit.refusal else [])]
    word, alone, step = outcome.word, trace.alone, outcome.step
    if numbers is not None:
        found, withheld = _order_findings(unit, used, numbers, look is not None)
        findings += found + _shape_findings(unit, trace, outcome.at, numbers, used)
        if withheld:
            word, alone, step = "inconclusive", "inconclusive", "exhausted"
    change = _change(numbers.theta, unit) if numbers else None
    needed = reachable = None
    if numbers is not None and word == "inconclusive" and numbers.sd > 0.0:
        needed, reachable = _needed(job, numbers, used, rules)
    phrase, rule = _said(job, trace, outcome, numbers, word, look, findings, rules)
    sign = -1.0 if unit.higher_is_better else 1.0
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
        baseline_value=_median(unit.baseline_values[:used]),
        variant_value=_median(unit.variant_values[:used]),
        change=change,
        mean=_change(numbers.mean, unit) if numbers else None,
        sd=numbers.sd if numbers and math.isfinite(numbers.sd) else None,
        p=numbers.p if numbers else None,
        p_looks=outcome.p_looks,
        p_family=outcome.p_family,
        q=outcome.q,
        needed=needed,
        reachable_margin=reachable,
        rule=rule,
        would_change=explain.would_change(word, change, rules.margin, needed, findings),
        block_numbers=unit.numbers[:used],
        changes=tuple(np.expm1(np.minimum(sign * unit.d[:used], LARGEST)).tolist()) if numbers else (),
        baseline_first=unit.baseline_first[:used],
        findings=tuple(findings),
    )


def _change(estimate: Estimate, unit: Units) -> Change:
    """exp(theta) - 1 in the metric's own sign, bounds that are infinite as None."""
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


def _needed(job: Job, numbers: Numbers, used: int, rules: Rules) -> tuple[Needed | None, float | None]:
    """Blocks needed, n (h / h_target)^2 with its 20-80 % range from the chi-square uncertainty of the variance, and
    the margin that the planned blocks reach when that is beyond them.

    A change is shown at h = |theta|, at the family's level; equivalence at h = margin - |theta|; what is sooner counts.
    """
    theta, n, margin = abs(numbers.theta.value), numbers.theta.n, math.log1p(rules.margin)
    if n < 2:
        return None, None
    half = (numbers.theta.high - numbers.theta.low) / 2
    if not math.isfinite(half):
        half = float(-ndtri((1.0 - numbers.theta.level) / 2)) * numbers.sd / math.sqrt(n)
    stricter = float(ndtri(job.claim.alpha) / ndtri(rules.alpha / 2)) if job.claim.alpha > 0.0 else math.inf
    target = max(theta / stricter, margin - theta)
    if target <= margin / 100:  # a claim that is not made here, or a hair's breadth from both answers
        return None, None
    blocks = used * (half / target) ** 2
    # The true variance lies below s^2 (n-1) / chi2(0.8) with 20 % and below s^2 (n-1) / chi2(0.2) with 80 %.
    low, high = ((n - 1) / float(chdtri(n - 1, upper)) for upper in (0.2, 0.8))
    least = len(job.unit.d) + 1
    counts = (max(least, math.ceil(min(blocks * factor, 1e9))) + job.offset for factor in (1.0, low, high))
    needed = Needed(*counts)
    plan = job.claim.plan.blocks
    last = plan[-1] if plan else rules.looks[-1]
    if needed.blocks <= last + job.offset:
        return needed, None
    return needed, relative(half * math.sqrt(used / max(last, used)) + theta)


def _next_look(job: Job, outcome: Outcome, rules: Rules) -> int | None:
    if outcome.step != "continue":
        return None
    if job.standing == "screening":
        return rules.screen.blocks if len(job.unit.d) < rules.screen.blocks else None
    later = [n for n in job.claim.plan.blocks if n > len(job.unit.d)]
    return later[0] + job.offset if later else None


def _median(values: Floats) -> float | None:
    return statistics.median(finite) if (finite := [x for x in values.tolist() if math.isfinite(x)]) else None


def _order_findings(unit: Units, used: int, numbers: Numbers, judged: bool) -> tuple[list[Finding], bool]:
    """Findings about the order of the trials, and whether they forbid a verdict: where the variants were not
    interleaved, a drift that could make up half of the change does."""
    first = np.array(unit.baseline_first[:used], dtype=bool)
    found: list[Finding] = []
    if used >= 6 and (first.all() or not first.any()):
        leader = unit.baseline if first.all() else unit.variant
        found.append(
            Finding(
                "verdict.order-fixed",
                "warning",
                unit.place,
                f"{leader} ran first in every block: what the first run leaves behind counts as part of the change",
                "draw the order at random in each block; where it was, chance did this, and more blocks end it",
            )
        )
    else:
        found += _period(unit, used, first)
    old_at, new_at = unit.baseline_at[:used], unit.variant_at[:used]
    if not judged or len(unit.baseline_values) < used:
        return found, False
    span = max(old_at.max(), new_at.max()) - min(old_at.min(), new_at.min())
    if abs(float(new_at.mean() - old_at.mean())) <= APART * span:
        return found, False
    trend = order_trend(
        np.concatenate([unit.baseline_values[:used], unit.variant_values[:used]]),
        np.concatenate([old_at, new_at]),
        np.repeat([False, True], used),
    )
    if trend is not None and not trend.could_explain(numbers.theta.value):
        return found, False
    size = "" if trend is None else f" of up to {explain.percent(relative(abs(trend.explained) + trend.spread))}"
    found.append(
        Finding(
            "verdict.order-trend",
            "hard",
            unit.place,
            f"the variants did not run interleaved, and a drift over time{size} cannot be told from the change",
            "run both variants in each block, in random order",
        )
    )
    return found, True


def _period(unit: Units, used: int, first: NDArray[np.bool_]) -> list[Finding]:
    """Period and carry-over effects, looked at closely only where a quick test sees something."""
    d = unit.d[:used]
    if used < 8 or min(np.count_nonzero(first), np.count_nonzero(~first)) < 3:
        return []
    if suspicion(d, first) < 2.5:
        return []
    order = order_effect(d, first)
    found = []
    for name, size, p, text in (
        ("period", order.period, order.period_p, "the run in second place differs from the one in first place"),
        ("carry-over", order.carry, order.carry_p, f"a run straight after one of {unit.variant} differs"),
    ):
        if size is not None and p is not None and p < SUSPECT:
            found.append(
                Finding(
                    f"verdict.{name}",
                    "warning",
                    unit.place,
                    f"{text}, by {explain.percent(relative(size))} (p {p:.2g}); "
                    "random order keeps the verdict valid but the blocks needed grow",
                    "reset the device's state before every run, or pause between runs",
                )
            )
    return found


def _shape_findings(unit: Units, trace: Trace, at: int, numbers: Numbers, used: int) -> list[Finding]:
    found = []
    merged = trace.merged.get(at)
    if merged is not None:
        how = (
            f"judged on batches of {merged.size} blocks"
            if merged.clean
            else "and batches of blocks still do: nothing can be decided"
        )
        found.append(
            Finding(
                "verdict.correlated" if merged.clean else "verdict.unstable",
                "note" if merged.clean else "warning",
                unit.place,
                f"neighbouring blocks resemble each other (lag-1 {merged.lag1:.2f}, p {merged.p:.2g}), {how}",
                "find what changes slowly on this machine: temperature, other load, a filling device",
            )
        )
    if math.isfinite(numbers.theta.low) and not unit.hosts and disagree(numbers.theta, numbers.mean):
        mean, theta = (explain.percent(_change(centre, unit).value) for centre in (numbers.mean, numbers.theta))
        median = _change(median_binomial(unit.d[:used], numbers.theta.level), unit)
        found.append(
            Finding(
                "verdict.centres-disagree",
                "warning",
                unit.place,
                f"the plain mean says {mean}, the Hodges-Lehmann estimate {theta}: outliers or a change of shape; "
                f"the median, which bears both, says {explain.percent(median.value)} {explain.interval(median)}",
                "look at the blocks one by one",
            )
        )
    return found


def _said(
    job: Job,
    trace: Trace,
    outcome: Outcome,
    numbers: Numbers | None,
    word: Word,
    look: Look | None,
    findings: Sequence[Finding],
    rules: Rules,
) -> tuple[str, str]:
    """The phrase, and the rule that fired."""
    unit = job.unit
    hard = next((finding for finding in findings if finding.severity == "hard"), unit.refusal)
    if hard is not None:
        return f"no verdict: {hard.explanation}", hard.rule
    if numbers is None or look is None:
        return _so_far(job, rules), "no look was taken"
    merged = trace.merged.get(outcome.at)
    phrase = explain.phrase_of(word, numbers.theta.low, numbers.theta.high, math.log1p(rules.margin))
    if merged is not None and not merged.clean:
        phrase = "unstable machine: neighbouring blocks resemble each other"
    elif word == "inconclusive" and job.standing == "dropped":
        phrase = f"set aside by the screen: no sign of a change in {rules.screen.blocks} blocks"
    elif word == "inconclusive" and trace.alone in ("regression", "improvement"):
        phrase = f"a {trace.alone} by itself, but not after correction for the family of comparisons"
    rule = explain.rule_of(
        word, _change(numbers.theta, unit), rules.margin, look, len(job.claim.plan.blocks), unit.unit
    )
    if outcome.p_family is not None and rules.family != "each":
        rule += f"; p over looks {outcome.p_looks:.2g}, {outcome.p_family:.2g} after Holm's correction"
    return phrase, rule


def _so_far(job: Job, rules: Rules) -> str:
    """Before the first look: how far it is."""
    done, unit, plan = len(job.unit.d), job.unit.unit, job.claim.plan.blocks
    if job.standing == "screening":
        of = rules.screen.blocks
        return f"stage 1 of the screen: {min(done, of)} of {of} {unit}"
    fresh = "fresh " if job.offset else ""
    first = f"the first look is at {plan[0]}" if plan else "no look is left"
    return f"{done} {fresh}{unit} so far; {first}"
