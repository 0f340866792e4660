"""Numbers: the estimates of one comparison at the look that a report shows, as log-ratios, positive = worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import Ahead, Carry, direct_bias, drawn_in
from iodelta.stats.effect import Estimate, hodges_lehmann, tails_rows
from iodelta.stats.guards import fisher_exact
from iodelta.stats.replay import EXACT_COINS, patterns
from iodelta.stats.sequential import median_unbiased, nominal_tails
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

ERROR = 1.05
"""Standard error of Hodges-Lehmann over that of the mean, normal noise assumed (95 % efficiency at 9 blocks)."""


@dataclass(frozen=True)
class Numbers:
    """The estimates from all blocks measured. Intervals hold over all looks at once, so that of the look that gave the
    word holds, too, and the narrower end of both is given. ``shown`` is the estimate that the word rests on."""

    shown: Estimate
    typical: Estimate
    total: Estimate | None
    direct: Estimate | None
    deployed: Estimate | None
    """In superblocks: the change once the variant's state is reached, under every memory; None where the interval of
    the typical change holds that, too."""
    not_reached: bool
    """Whether the state is seen not to be reached."""
    corrected: float | None
    """Median-unbiased for having stopped at a look: the typical change by stagewise ordering."""
    unflagged: Estimate | None
    carry: Carry | None
    onto: tuple[Carry | None, Carry | None]
    """What only the baseline's trials, or only the variant's, may suffer (or gain) from the trial before."""
    d: Floats
    """The log-ratios judged: within a speed."""
    two_speeds: bool
    sd: float
    p: float


def numbers_of(
    unit: Units, trace: Trace, outcome: Outcome, rules: Rules
) -> Numbers | None:
    """Return the estimates of one comparison; None where there is no value."""
    used = len(unit.d)
    if not used or (
        unit.refusal is not None and unit.refusal.rule != "verdict.few-boots"
    ):
        return None
    machine = machine_of(unit, used)
    d = unit.d - machine.added
    plan = trace.claim.plan.blocks
    # The look of the word, and the latest: of each the blocks, the level and the log-ratios within a speed.
    looks = []
    for look in sorted({outcome.at, trace.taken - 1} - {-1}):
        found = trace.machine.get(look) or machine_of(unit, plan[look])
        looks.append((plan[look], _tail(trace, outcome, rules, look), found.added))
    if not looks:
        looks = [(used, rules.spendable / 2, machine.added)]
    typicals, totals = [], []
    for blocks, tail, added in looks:
        part = _typical(unit, unit.d[:blocks] - added, 1.0 - 2.0 * tail)
        pays = TOTAL_PAYS if unit.hosts and outcome.word != "equivalent" else 1.0
        typicals.append(part)
        totals.append(_total(unit, blocks, tail / pays, rules, part))
    typical = _over_looks(_typical(unit, d, typicals[0].level), typicals)
    total = None
    if totals[0] is not None:
        value = float(log_total(unit.arms(used))[0][0])
        if unit.hosts:
            value = estimate_of(
                total_over(unit.arms(used), unit.hosts), value, 0.5, used
            ).value
        total = _over_looks(
            Estimate(value, value, value, totals[0].level, used),
            [part for part in totals if part is not None],
        )
    sd = spread_of(d)
    not_reached = (
        machine.ahead is not None
        and machine.ahead.shown
        and float(np.abs(machine.ahead.value).max()) > _slight(rules)
    )
    deployed = _deployed(unit, d, machine.ahead, typical, rules)
    shown = total if trace.basis == "total" and total is not None else typical
    if not_reached and deployed is not None:
        shown = deployed
    flagged = flagged_blocks(unit, len(d))
    return Numbers(
        shown=shown,
        typical=typical,
        total=total,
        direct=_direct(unit, used, typical.level),
        deployed=deployed,
        not_reached=not_reached,
        corrected=_corrected(unit, trace, outcome, rules),
        unflagged=(
            _of_some(unit, d, ~flagged, typical.level)
            if len(flagged) == len(d) and flagged.any()
            else None
        ),
        carry=machine.carry,
        onto=(machine.onto(0), machine.onto(1)),
        d=d,
        two_speeds=machine.two_speeds,
        sd=sd,
        p=_p(unit, trace, outcome.at, d, rules),
    )


def _over_looks(whole: Estimate, looks: list[Estimate]) -> Estimate:
    """Return the estimate of all blocks in the intersection of the intervals of looks; in that of the first, which
    gave the word, where they contradict each other. An estimate outside becomes an end of it."""
    low = max(look.low for look in looks)
    high = min(look.high for look in looks)
    if low > high:
        low, high = looks[0].low, looks[0].high
    return Estimate(
        whole.value,
        min(low, whole.value),
        max(high, whole.value),
        looks[0].level,
        whole.n,
    )


def _corrected(
    unit: Units, trace: Trace, outcome: Outcome, rules: Rules
) -> float | None:
    """Return the typical change corrected for the looks before; None where there was no look, over hosts, and where
    the noise is not known."""
    at = outcome.at
    if at < 0 or unit.hosts or trace.claim.alpha <= 0.0:
        return None
    blocks = trace.claim.plan.blocks
    machine = trace.machine.get(at) or machine_of(unit, blocks[at])
    d = unit.d[: blocks[at]] - machine.added
    error = ERROR * spread_of(d) / math.sqrt(len(d))
    if not error > 0.0:
        return None
    levels = nominal_tails(trace.claim.plan, trace.claim.alpha)
    tails = [
        # A look at which the word was withheld did not stop.
        0.0 if look in trace.withheld else trace.critical.get(look, levels[look])
        for look in range(at + 1)
    ]
    return (
        median_unbiased(hodges_lehmann(d, 0.5).value / error, blocks[: at + 1], tails)
        * error
    )


def _direct(unit: Units, used: int, level: float) -> Estimate | None:
    """Return the direct change. A lasting debt biases it, too, so the interval covers every memory."""
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
    unit: Units, d: Floats, ahead: Ahead | None, typical: Estimate, rules: Rules
) -> Estimate | None:
    """The change once the state is reached. What is still to come is added block by block, so that the interval has its
    noise. None where the interval lies in that of the typical change, or nearly.

    Its value is that of the memory that the trials show best; where they show none, the change as measured.
    """
    rows = unit.ahead[:, : len(d)]
    if ahead is None or not rows.shape[1]:
        return None
    known = np.asarray(np.isfinite(rows).all(axis=0))
    parts = [
        _of_some(unit, row, known, typical.level) for row in d + np.nan_to_num(rows)
    ]
    estimates = [estimate for estimate in parts if estimate is not None]
    deployed = _together(estimates)
    if deployed is None or max(
        typical.low - deployed.low, deployed.high - typical.high
    ) <= _slight(rules):
        return None
    best = int(np.argmax(np.abs(ahead.value) / np.maximum(ahead.half, 1e-12)))
    value = estimates[best].value if ahead.shown else typical.value
    return Estimate(value, deployed.low, deployed.high, deployed.level, deployed.n)


def _slight(rules: Rules) -> float:
    return SLIGHT * math.log1p(rules.margin)


def _together(estimates: list[Estimate]) -> Estimate | None:
    """Return the first estimate, with an interval that covers those of all."""
    if not estimates:
        return None
    low, high = (
        min(estimate.low for estimate in estimates),
        max(estimate.high for estimate in estimates),
    )
    return Estimate(estimates[0].value, low, high, estimates[0].level, estimates[0].n)


def flagged_blocks(unit: Units, used: int) -> NDArray[np.bool_]:
    """Return which blocks hold a trial that was flagged as disturbed."""
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


def _tail(trace: Trace, outcome: Outcome, rules: Rules, look: int) -> float:
    """Return the one-sided level of the intervals of a look: that of the single test behind the word, so that interval
    and word agree."""
    plan, at = trace.claim.plan, outcome.at
    level = nominal_tails(plan, rules.alpha / 2)[look]
    if (
        outcome.word == "equivalent"
        or at not in trace.critical
        or trace.claim.alpha <= 0.0
    ):
        return level
    single = trace.alone_critical if outcome.promoted else trace.critical[at]
    if (
        look != at
    ):  # what a single test pays for the others is about the same at every look
        claimed = rules.alpha / 2 if outcome.promoted else trace.claim.alpha
        levels = nominal_tails(plan, claimed)
        single *= levels[look] / levels[at]
    return min(level, max(single, 1e-9))


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


def _of_some(
    unit: Units, values: Floats, chosen: NDArray[np.bool_], level: float
) -> Estimate | None:
    """Return the typical change of some blocks; None of no block."""
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
    """Return the p value of the tests that decide; before the first look, of the typical change alone."""
    if 0 <= at < len(trace.above):
        return min(1.0, 2.0 * min(trace.above[at], trace.below[at]))
    if unit.hosts:
        return p_over_hosts(d, unit.hosts, unit.coins, rules.seed)
    return min(1.0, 2.0 * float(np.minimum(*tails_rows(d[None, :], 0.0))[0]))
