"""Numbers: the estimates of one comparison at the look that a report shows, as log-ratios, positive = worse."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import Carry, direct_bias, drawn_in
from iodelta.stats.effect import Estimate, hodges_lehmann, tails_rows
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
    used, at, plan = len(unit.d), outcome.at, trace.claim.plan
    if not used or (
        unit.refusal is not None and unit.refusal.rule != "verdict.few-boots"
    ):
        return None
    machine = machine_of(unit, used)
    ahead, d = machine.ahead, unit.d - machine.added
    # The look of the word, and the latest: of each the estimates at its level, from the log-ratios within a speed.
    typicals, totals = [], []
    for look in sorted({at, trace.taken - 1} - {-1}) or [-1]:
        blocks, tail, added = used, rules.spendable / 2, machine.added
        if look >= 0:
            blocks, tail = plan.blocks[look], _tail(trace, outcome, rules, look)
            added = (trace.machine.get(look) or machine_of(unit, blocks)).added
        typicals.append(_typical(unit, unit.d[:blocks] - added, 1.0 - 2.0 * tail))
        if len(unit.baseline_values):
            pays = TOTAL_PAYS if unit.hosts and outcome.word != "equivalent" else 1.0
            totals.append(_total(unit, blocks, tail / pays, rules, typicals[-1]))
    level = typicals[0].level
    typical = _over_looks(_typical(unit, d, level).value, typicals, used)
    total = None
    if totals:
        arms = unit.arms(used)
        mean = total_over(arms, unit.hosts) if unit.hosts else None
        value = float(log_total(arms)[0][0] if mean is None else mean.value[0])
        total = _over_looks(value, totals, used)
    slight = SLIGHT * math.log1p(rules.margin)
    deployed = _covering(unit, d, unit.ahead, level)
    not_reached = bool(
        ahead is not None and ahead.shown and np.abs(ahead.value).max() > slight
    )
    if deployed and ahead is not None:
        # What is still to come is added block by block, so that the interval has its noise. The value is that of the
        # memory that the trials show best; where they show none, the change as measured.
        best = int(np.argmax(np.abs(ahead.value) / np.maximum(ahead.half, 1e-12)))
        value = deployed[best].value if ahead.shown else typical.value
        low, high = min(one.low for one in deployed), max(one.high for one in deployed)
        state = Estimate(value, low, high, level, deployed[0].n)
        shifted = max(typical.low - low, high - typical.high) > slight
    else:
        shifted = False
    shown = total if trace.basis == "total" and total is not None else typical
    direct = None
    if len(
        unit.direct
    ):  # a lasting debt biases it, too, so the interval covers every memory
        bias = direct_bias(unit.conditioning)[:, None] * unit.ahead
        parts = _covering(unit, unit.direct, -bias, level)
        if parts:
            low, high = min(one.low for one in parts), max(one.high for one in parts)
            direct = Estimate(parts[0].value, low, high, level, parts[0].n)
    flagged = flagged_blocks(unit)
    return Numbers(
        shown=state if not_reached and shifted else shown,
        typical=typical,
        total=total,
        direct=direct,
        deployed=state if shifted else None,
        not_reached=not_reached,
        corrected=_corrected(unit, trace, outcome),
        unflagged=_typical(unit, d, level, ~flagged)
        if flagged.any() and not flagged.all()
        else None,
        carry=machine.carry,
        onto=(machine.onto(0), machine.onto(1)),
        d=d,
        two_speeds=machine.two_speeds,
        sd=spread_of(d),
        p=_p(unit, trace, at, d, rules),
    )


def _over_looks(value: float, looks: list[Estimate], blocks: int) -> Estimate:
    """Return the estimate of all blocks in the intersection of the intervals of looks; in that of the first, which
    gave the word, where they contradict each other. An estimate outside becomes an end of it."""
    low, high = max(look.low for look in looks), min(look.high for look in looks)
    if low > high:
        low, high = looks[0].low, looks[0].high
    return Estimate(value, min(low, value), max(high, value), looks[0].level, blocks)


def _corrected(unit: Units, trace: Trace, outcome: Outcome) -> float | None:
    """Return the typical change corrected for the looks before; None where there was no look, over hosts, and where
    the noise is not known."""
    at, plan = outcome.at, trace.claim.plan
    if at < 0 or unit.hosts or trace.claim.alpha <= 0.0:
        return None
    blocks = plan.blocks[: at + 1]
    machine = trace.machine.get(at) or machine_of(unit, blocks[at])
    d = unit.d[: blocks[at]] - machine.added
    error = ERROR * spread_of(d) / math.sqrt(len(d))
    if not error > 0.0:
        return None
    levels = nominal_tails(plan, trace.claim.alpha)
    tails = [
        # A look at which the word was withheld did not stop.
        0.0 if look in trace.withheld else trace.critical.get(look, levels[look])
        for look in range(at + 1)
    ]
    z = hodges_lehmann(d, 0.5).value / error
    return median_unbiased(z, blocks, tails) * error


def _covering(unit: Units, d: Floats, added: Floats, level: float) -> list[Estimate]:
    """Return the typical change of ``d`` with what is ``added`` under each memory, from the blocks that have both."""
    if added.shape[1] < len(d) or not len(d):
        return []
    known = np.isfinite(d) & np.isfinite(added).all(axis=0)
    return (
        [_typical(unit, d + row, level, known) for row in added] if known.any() else []
    )


def flagged_blocks(unit: Units) -> NDArray[np.bool_]:
    """Return which blocks hold a trial that was flagged as disturbed."""
    pairs = zip(unit.baseline_flags, unit.variant_flags, strict=True)
    flagged = [bool(old or new) for old, new in pairs]
    return np.array(flagged or [False] * len(unit.d), dtype=bool)


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
    # What a single test pays for the others is about the same at every look.
    claimed = rules.alpha / 2 if outcome.promoted else trace.claim.alpha
    levels = nominal_tails(plan, claimed)
    return min(level, max(single * levels[look] / levels[at], 1e-9))


def _typical(
    unit: Units, d: Floats, level: float, chosen: NDArray[np.bool_] | None = None
) -> Estimate:
    """Hodges-Lehmann of all or the ``chosen`` blocks, over hosts the mean of their own; the source's resolution is part
    of the interval."""
    rows = np.arange(len(d)) if chosen is None else np.flatnonzero(chosen)
    estimate = hodges_lehmann(d[rows], level)
    if unit.hosts:
        hosts = [unit.hosts[row] for row in rows]
        mean = typical_over(d[rows], hosts)
        estimate = estimate_of(mean, estimate.value, level, len(rows))
    return _resolved(estimate, unit)


def _resolved(estimate: Estimate, unit: Units) -> Estimate:
    value, wide = estimate.value, unit.resolution
    low, high = estimate.low - wide, estimate.high + wide
    return Estimate(value, low, high, estimate.level, estimate.n)


def _total(
    unit: Units, used: int, tail: float, rules: Rules, typical: Estimate
) -> Estimate:
    arms, coins, level = unit.arms(used), unit.coins[:used], 1.0 - 2.0 * tail
    value = float(log_total(arms)[0][0])
    if unit.hosts:
        estimate = estimate_of(total_over(arms, unit.hosts), value, level, used)
    else:
        signs, exact = patterns(coins, rules.seed), len(set(coins)) <= EXACT_COINS
        estimate = Estimate(value, *bounds(arms, signs, tail, exact=exact), level, used)
    return _resolved(with_stalls(estimate, typical, unit, used), unit)


def _p(unit: Units, trace: Trace, at: int, d: Floats, rules: Rules) -> float:
    """Return the p value of the tests that decide; before the first look, of the typical change alone."""
    if 0 <= at < len(trace.above):
        return min(1.0, 2.0 * min(trace.above[at], trace.below[at]))
    if unit.hosts:
        return p_over_hosts(d, unit.hosts, unit.coins, rules.seed)
    return min(1.0, 2.0 * float(np.minimum(*tails_rows(d[None, :], 0.0))[0]))
