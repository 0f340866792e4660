"""Outlook: how many blocks an open comparison will probably need, by replaying the looks to come."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import drawn_in
from iodelta.stats.effect import hodges_lehmann
from iodelta.stats.hosts import Mean
from iodelta.stats.sequential import nominal_tails
from iodelta.stats.size import Doubt, Hurdles, Projection, projection
from iodelta.stats.stalls import trials_needed
from iodelta.verdict.carried import SHOWN_WITHOUT
from iodelta.verdict.decide import Trace
from iodelta.verdict.family import Job, Outcome
from iodelta.verdict.hosts import typical_over
from iodelta.verdict.model import Needed, relative
from iodelta.verdict.numbers import Numbers
from iodelta.verdict.rare import asked_by_stalls, calm_blocks, taken_by_stalls
from iodelta.verdict.rules import Rules
from iodelta.verdict.stalled import counted
from iodelta.verdict.units import Units

FEWEST_CALM = 5
"""Fewest blocks without a stall from which the noise of the blocks to come is estimated."""

PARTED = 1.5
"""The cost of testing two estimands that a stall makes differ, as a factor of p: 1.02 to 1.7 in simulations of 16
blocks. Without a stall they move together and cost nothing, and nine blocks have too few patterns to show it."""


class Outlook(NamedTuple):
    """What an open comparison needs: blocks, else the margin that the planned blocks reach; and the share of replays in
    which no planned look decides."""

    needed: Needed | None = None
    reachable: float | None = None
    open: float | None = None


def outlook_of(
    job: Job, trace: Trace, outcome: Outcome, numbers: Numbers, rules: Rules
) -> Outlook:
    """Return how many blocks an answer will probably take, by replaying the looks to come."""
    mean = typical_over(numbers.d, job.unit.hosts) if job.unit.hosts else None
    if job.unit.hosts and (mean is None or mean.error[0] > mean.within[0]):
        return Outlook()  # more hosts would settle it, not more blocks
    used = len(numbers.d)
    projected = _projected(job, trace, outcome, numbers, mean, rules)
    left = projected.open if projected is not None else None
    if projected is None or not math.isfinite(projected.low):
        return Outlook(None, _reachable(job, numbers, used, rules), left)

    def blocks(units: float) -> int:
        return round(units) + job.offset

    middle = None if math.isinf(projected.median) else blocks(projected.median)
    high = None if math.isinf(projected.high) else blocks(projected.high)
    return Outlook(
        Needed(middle, blocks(projected.low), high, projected.share), None, left
    )


def _projected(
    job: Job,
    trace: Trace,
    outcome: Outcome,
    numbers: Numbers,
    mean: Mean | None,
    rules: Rules,
) -> Projection | None:
    """Return the replayed looks to come."""
    plan, used = job.claim.plan, len(numbers.d)
    later = [look for look, blocks in enumerate(plan.blocks) if blocks > used]
    single = trace.critical.get(outcome.at, 0.0) / max(
        nominal_tails(plan, job.claim.alpha)[outcome.at], 1e-12
    )
    calm = _calm(job.unit, numbers, used)
    if calm is not None:
        single = min(single, 1.0 / PARTED)
    claimed, each = (
        nominal_tails(plan, job.claim.alpha),
        nominal_tails(plan, rules.alpha / 2),
    )
    seen = counted(job.unit, used)
    ahead = [plan.blocks[look] for look in later]
    needed = trials_needed(rules.stalls, stalled=seen.stalled) * max(1, seen.longest)
    least = math.ceil(needed * used / max(seen.trials, 1))
    hurdles = Hurdles(
        tuple(claimed[look] * single for look in later),
        tuple(each[look] for look in later),
        math.log1p(rules.margin),
        least,
        () if mean is None else (mean.spare,) * len(later),
        tuple(
            taken_by_stalls(job.unit, used, plan.blocks[look], each[look])
            for look in later
        ),
        tuple(asked_by_stalls(job.unit, used, plan.blocks[look]) for look in later),
    )
    d, value = drawn_in(numbers.d), numbers.typical.value
    if calm is not None:  # a stall has its sign and the largest rank
        d = np.where(calm, d, numbers.d)
        value = hodges_lehmann(d[calm], 0.5).value
    if (
        mean is not None and numbers.sd > 0.0
    ):  # differences between hosts are not noise of their blocks
        d = (
            float(d.mean())
            + (d - d.mean()) * float(mean.within[0]) * math.sqrt(used) / numbers.sd
        )
    # The carry-over that a change is held against in plain blocks: under the memory that leaves most open; for
    # an improvement also what the baseline's trials alone may suffer.
    carry = numbers.carry
    if carry is None or rules.carry != "tested":
        doubt = None
    else:
        errors = np.abs(carry.share) * carry.error
        at = int(np.argmax(errors))
        share, error = float(carry.share[at]), float(errors[at])
        alone = numbers.onto[0]
        widest = error if alone is None else float(np.abs(alone.share * alone.error)[0])
        doubt = Doubt(
            share * float(carry.value[at]),
            error,
            SHOWN_WITHOUT,
            carry.quantile,
            max(1.0, widest / max(error, 1e-12)),
        )
    return projection(value, d, ahead, hurdles, seed=rules.seed, doubt=doubt, calm=calm)


def _calm(unit: Units, numbers: Numbers, used: int) -> NDArray[np.bool_] | None:
    """Return the blocks without a stall, where some had one: they give the noise of the blocks to come."""
    if unit.hosts:
        return None
    calm = calm_blocks(unit, used)
    return None if calm.all() or calm.sum() < FEWEST_CALM else calm


def _reachable(job: Job, numbers: Numbers, used: int, rules: Rules) -> float | None:
    """Return the margin that the planned blocks can settle; None where it is not known, or is the one asked for."""
    half = (numbers.typical.high - numbers.typical.low) / 2
    if not math.isfinite(half):
        return None
    planned = job.claim.plan.blocks
    last = planned[-1] if planned else rules.looks[-1]
    reach = half * math.sqrt(used / max(last, used)) + abs(numbers.typical.value)
    return relative(reach) if reach > math.log1p(rules.margin) else None
