"""Numbers: the estimates of one comparison at the look that a report shows, as log-ratios, positive = worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import Ahead, Carry, direct_bias, drawn_in
from iodelta.stats.effect import Estimate, hodges_lehmann, tails_rows
from iodelta.stats.hosts import places_of, smallest_t
from iodelta.stats.replay import EXACT_COINS, patterns
from iodelta.stats.sequential import nominal_tails
from iodelta.stats.size import honest
from iodelta.stats.special import ndtri
from iodelta.stats.spread import fisher_exact
from iodelta.stats.total import bounds, log_total
from iodelta.verdict.carried import SLIGHT
from iodelta.verdict.decide import Trace
from iodelta.verdict.family import Outcome
from iodelta.verdict.hosts import (
    TOTAL_PAYS,
    estimate_of,
    p_over_hosts,
    total_over,
    typical_over,
)
from iodelta.verdict.machine import machine_of
from iodelta.verdict.model import Flags
from iodelta.verdict.rare import with_stalls
from iodelta.verdict.rules import Rules
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """The estimates at the look shown. ``shown`` is the one the word rests on, at its honest size."""

    shown: Estimate
    typical: Estimate
    total: Estimate | None
    direct: Estimate | None
    deployed: Estimate | None
    """In superblocks: the change once the variant's state is reached, under every memory; None where the interval of
    the typical change holds that, too."""
    not_reached: bool
    """Whether the state is seen not to be reached."""
    unflagged: Estimate | None
    carry: Carry | None
    onto_baseline: Carry | None
    """What only the baseline's trials may suffer (or gain) from trials of the variant."""
    d: Floats
    """The log-ratios judged: within a speed, merged into batches where the guard asked for it."""
    two_speeds: bool
    sd: float
    p: float


def numbers_of(
    unit: Units, trace: Trace, outcome: Outcome, rules: Rules
) -> Numbers | None:
    """The estimates of one comparison; None where there is no value."""
    if unit.refusal is not None and unit.refusal.rule != "verdict.few-boots":
        return None
    at = outcome.at
    used = trace.claim.plan.blocks[at] if at >= 0 else len(unit.d)
    if not used:
        return None
    machine = trace.machine.get(at) or machine_of(unit, used)
    clean = unit.d[:used] - machine.added
    merged = trace.merged.get(at)
    d = np.array(merged.batches) if merged is not None and merged.clean else clean
    tail = _tail(trace, outcome, rules)
    typical = _typical(unit, d, 1.0 - 2.0 * tail)
    pays = TOTAL_PAYS if unit.hosts and outcome.word != "equivalent" else 1.0
    total = _total(unit, used, tail / pays, rules, typical)
    sd = spread_of(d)
    basis = total if trace.basis == "total" and total is not None else typical
    shown = (
        _honest(basis, unit, trace, sd, rules)
        if outcome.word in ("regression", "improvement")
        else basis
    )
    return Numbers(
        shown=shown,
        typical=typical,
        total=total,
        direct=_direct(unit, used, 1.0 - 2.0 * tail),
        deployed=_deployed(unit, clean, typical, rules),
        not_reached=_not_reached(machine.ahead, rules),
        unflagged=_unflagged(unit, clean, 1.0 - 2.0 * tail),
        carry=machine.carry,
        onto_baseline=machine.onto_baseline,
        d=d,
        two_speeds=machine.two_speeds,
        sd=sd,
        p=_p(unit, trace, at, d, rules),
    )


def _direct(unit: Units, used: int, level: float) -> Estimate | None:
    """The direct change. A lasting debt biases it, too, so the interval covers every memory."""
    if not len(unit.direct) or not unit.ahead.shape[1]:
        return None
    both = np.isfinite(unit.direct[:used]) & np.isfinite(unit.ahead[:, :used]).all(
        axis=0
    )
    bias = direct_bias(unit.conditioning)[:, None] * np.nan_to_num(unit.ahead[:, :used])
    estimates = [
        _of_some(unit, row, both, level)
        for row in np.nan_to_num(unit.direct[:used]) - bias
    ]
    return _together([estimate for estimate in estimates if estimate is not None])


def _deployed(
    unit: Units, d: Floats, typical: Estimate, rules: Rules
) -> Estimate | None:
    """The change once the state is reached. What is still to come is added block by block, so that the interval has its
    noise. None where the interval lies in that of the typical change, or nearly."""
    ahead = unit.ahead[:, : len(d)]
    if not ahead.shape[1]:
        return None
    known = np.asarray(np.isfinite(ahead).all(axis=0))
    estimates = [
        _of_some(unit, row, known, typical.level) for row in d + np.nan_to_num(ahead)
    ]
    deployed = _together([estimate for estimate in estimates if estimate is not None])
    if deployed is None or max(
        typical.low - deployed.low, deployed.high - typical.high
    ) <= _slight(rules):
        return None
    return deployed


def _not_reached(ahead: Ahead | None, rules: Rules) -> bool:
    return (
        ahead is not None
        and ahead.shown
        and float(np.abs(ahead.value).max()) > _slight(rules)
    )


def _slight(rules: Rules) -> float:
    return SLIGHT * math.log1p(rules.margin)


def _together(estimates: list[Estimate]) -> Estimate | None:
    """The first estimate, with an interval that covers those of all."""
    if not estimates:
        return None
    low, high = (
        min(estimate.low for estimate in estimates),
        max(estimate.high for estimate in estimates),
    )
    return Estimate(estimates[0].value, low, high, estimates[0].level, estimates[0].n)


def flagged_blocks(unit: Units, used: int) -> NDArray[np.bool_]:
    """Which blocks hold a trial that was flagged as disturbed."""
    pairs = zip(unit.baseline_flags[:used], unit.variant_flags[:used], strict=True)
    return np.array([bool(old or new) for old, new in pairs], dtype=bool)


def flags_of(unit: Units, used: int) -> tuple[Flags, ...]:
    """By rule, how many trials of each variant were flagged."""
    old, new = unit.baseline_flags[:used], unit.variant_flags[:used]
    flags_by_rule = []
    for rule in sorted(set(chain.from_iterable((*old, *new)))):
        before, after = (
            sum(rule in flags for flags in old),
            sum(rule in flags for flags in new),
        )
        flags_by_rule.append(
            Flags(
                rule,
                before,
                after,
                len(new),
                fisher_exact(before, len(old), after, len(new)),
            )
        )
    return tuple(flags_by_rule)


def spread_of(d: Floats) -> float:
    """Standard deviation of ``d``, a rare stall drawn in; nan for one."""
    return float(drawn_in(d).std(ddof=1)) if len(d) > 1 else math.nan


def _tail(trace: Trace, outcome: Outcome, rules: Rules) -> float:
    """The one-sided level of the intervals: that of the single test behind the word, so that interval and word agree;
    before the first look all that may be spent."""
    if outcome.at < 0:
        return rules.spendable / 2
    if outcome.word == "equivalent" or outcome.at not in trace.critical:
        return nominal_tails(trace.claim.plan, rules.alpha / 2)[outcome.at]
    level = nominal_tails(trace.claim.plan, rules.alpha / 2)[outcome.at]
    single = trace.alone_critical if outcome.promoted else trace.critical[outcome.at]
    return min(level, max(single, 1e-9)) if trace.claim.alpha > 0.0 else level


def _typical(unit: Units, d: Floats, level: float) -> Estimate:
    """Hodges-Lehmann, over hosts the mean of their own; the source's resolution is part of the interval."""
    estimate = hodges_lehmann(d, level)
    if unit.hosts:
        estimate = estimate_of(
            typical_over(d, unit.hosts), estimate.value, level, len(d)
        )
    wide = unit.resolution
    return Estimate(
        estimate.value, estimate.low - wide, estimate.high + wide, level, estimate.n
    )


def _total(
    unit: Units, used: int, tail: float, rules: Rules, typical: Estimate
) -> Estimate | None:
    if len(unit.baseline_values) < used:
        return None
    arms = unit.arms(used)
    coins = unit.coins[:used]
    value = float(log_total(arms)[0][0])
    level = 1.0 - 2.0 * tail
    if unit.hosts:
        estimate = estimate_of(total_over(arms, unit.hosts), value, level, used)
    else:
        low, high = bounds(
            arms,
            patterns(coins, rules.seed),
            tail,
            exact=len(set(coins)) <= EXACT_COINS,
        )
        estimate = Estimate(value, low, high, level, used)
    estimate = with_stalls(estimate, typical, unit, used)
    wide = unit.resolution
    return Estimate(
        estimate.value, estimate.low - wide, estimate.high + wide, level, used
    )


def _honest(
    estimate: Estimate, unit: Units, trace: Trace, sd: float, rules: Rules
) -> Estimate:
    """``estimate`` at its honest size, no nearer to 0 than its interval."""
    # Assumption: normal noise, under which Hodges-Lehmann has 95 % of the mean's efficiency.
    error = 1.05 * sd / math.sqrt(estimate.n)
    if unit.hosts:
        places = places_of(unit.hosts[: estimate.n])
        error = (
            (estimate.high - estimate.low)
            / 2
            / smallest_t(len(places), (1.0 - estimate.level) / 2)
        )
    elif trace.basis == "total" and math.isfinite(estimate.high - estimate.low):
        error = (
            (estimate.high - estimate.low)
            / 2
            / max(-float(ndtri((1.0 - estimate.level) / 2)), 1e-9)
        )
    value = honest(estimate.value, error, math.log1p(rules.margin))
    if estimate.low > 0.0:
        value = max(value, min(estimate.low, estimate.value))
    elif estimate.high < 0.0:
        value = min(value, max(estimate.high, estimate.value))
    return Estimate(value, estimate.low, estimate.high, estimate.level, estimate.n)


def _unflagged(unit: Units, d: Floats, level: float) -> Estimate | None:
    flagged = flagged_blocks(unit, len(d))
    return (
        _of_some(unit, d, ~flagged, level)
        if len(flagged) == len(d) and flagged.any()
        else None
    )


def _of_some(
    unit: Units, values: Floats, chosen: NDArray[np.bool_], level: float
) -> Estimate | None:
    """The typical change of some blocks; None of no block."""
    if not chosen.any():
        return None
    estimate = hodges_lehmann(values[chosen], level)
    if not unit.hosts:
        return estimate
    hosts = [
        host for host, kept in zip(unit.hosts, chosen.tolist(), strict=False) if kept
    ]
    return estimate_of(
        typical_over(values[chosen], hosts), estimate.value, level, estimate.n
    )


def _p(unit: Units, trace: Trace, at: int, d: Floats, rules: Rules) -> float:
    """The p value of the tests that decide; before the first look, of the typical change alone."""
    if 0 <= at < len(trace.above):
        return min(1.0, 2.0 * min(trace.above[at], trace.below[at]))
    if unit.hosts:
        return p_over_hosts(d, unit.hosts, unit.coins, rules.seed)
    return min(1.0, 2.0 * float(np.minimum(*tails_rows(d[None, :], 0.0))[0]))
