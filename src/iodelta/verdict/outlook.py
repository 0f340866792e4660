"""Outlook: how many blocks an open comparison will probably need, by replaying the looks to come.

What the blocks so far show alone says what comes: the true effect and spread are drawn from it, and the future is
normal. The share that a range holds is that on average over the changes that the looks so far leave possible. At any one
true change it holds more or less, since all blocks so far err together: no range made of nine blocks can do better.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import drawn_in, own_change
from iodelta.stats.effect import (
    hodges_lehmann,
    not_above_rows,
    not_below_rows,
    rank_cut,
)
from iodelta.stats.sequential import nominal_tails
from iodelta.stats.special import stdtrit
from iodelta.stats.stalls import trials_needed
from iodelta.verdict.carried import SHOWN_WITHOUT
from iodelta.verdict.decide import Trace, replay
from iodelta.verdict.family import Job, Outcome
from iodelta.verdict.hosts import typical_over
from iodelta.verdict.model import Needed, relative
from iodelta.verdict.numbers import Numbers
from iodelta.verdict.rare import asked_by_stalls, calm_blocks, taken_by_stalls
from iodelta.verdict.rules import Rules
from iodelta.verdict.stalled import counted

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

FEWEST_CALM = 5
"""Fewest blocks without a stall from which the noise of the blocks to come is estimated."""

PARTED = 1.5
"""The cost of testing two estimands that a stall makes differ, as a factor of p: 1.02 to 1.7 in simulations of 16
blocks. Without a stall they move together and cost nothing, and nine blocks have too few patterns to show it."""

DRAWS = 1000
"""Futures replayed."""

RANKED = 32
"""Blocks up to which futures are tested by ranks, which few blocks hold back; more by a t test, which comes to the
same."""

LARGEST = 2.0
"""Standard deviations of the largest of some thirty normal values: so far from the others a stall is in a t test, which
stands for the ranks of more blocks."""

CENTRAL = 0.6
"""Share of futures that a projected range should hold."""


LARGEST_MARGIN = math.log1p(0.99)
"""A margin of all there is settles nothing."""


class Outlook(NamedTuple):
    """What an open comparison needs: blocks, else the margin that the planned blocks reach; and the share of replays in
    which no planned look decides."""

    needed: Needed | None = None
    reachable: float | None = None
    open: float | None = None


def outlook_of(
    job: Job, trace: Trace, outcome: Outcome, numbers: Numbers, rules: Rules
) -> Outlook:
    """Return how many blocks an answer will probably take, and the margin that the planned blocks can settle where that
    is not known; None where it is not known either, or is the one asked for."""
    unit, plan, n = job.unit, job.claim.plan, len(numbers.d)
    mean = typical_over(numbers.d, unit.hosts) if unit.hosts else None
    if unit.hosts and (mean is None or mean.error[0] > mean.within[0]):
        return Outlook()  # more hosts would settle it, not more blocks
    margin, typical = math.log1p(rules.margin), numbers.typical
    # The margin that the farthest end of both intervals will be inside, rounded up as it is shown.
    both = [one for one in (typical, numbers.total) if one is not None]
    size = max(abs(one.value) for one in both)
    far = max(max(-one.low, one.high) for one in both) - size
    last, reachable = max((plan.blocks or rules.looks)[-1], n), None
    if margin < (reach := size + far * math.sqrt(n / last)) < LARGEST_MARGIN:
        step = 0.01 if relative(reach) >= 0.1 else 0.001
        reachable = math.ceil(relative(reach) / step - 1e-9) * step
    if reachable is not None and last == n:
        # No advice that a replay of the same trials contradicts.
        wider = msgspec.structs.replace(rules, margin=min(reachable, 0.999))
        if replay([unit], [job.claim], wider)[0].word == "inconclusive":
            reachable = None
    calm = np.ones(n, dtype=bool) if unit.hosts else calm_blocks(unit, n)
    if calm.sum() < FEWEST_CALM:
        calm = np.ones(n, dtype=bool)
    d, value = drawn_in(numbers.d), typical.value
    if not calm.all():  # a stall has its sign and the largest rank
        d = np.where(calm, d, numbers.d)
        value = hodges_lehmann(d[calm], 0.5).value
    if mean is not None and numbers.sd > 0.0:
        # Differences between hosts are not noise of their blocks.
        scale = float(mean.within[0]) * math.sqrt(n) / numbers.sd
        d = float(d.mean()) + (d - d.mean()) * scale
    known, later = int(calm.sum()), [b for b in plan.blocks if b > n]
    sd = float(np.std(d[calm], ddof=1)) if known >= 3 else 0.0
    if not sd > 0.0 or not later:
        return Outlook(None, reachable)
    stopped = _stopped(job, trace, outcome, numbers, rules, (d, value, sd, calm))
    # The shortest run of looks around the median whose share of futures is nearest to the central share; "never" comes
    # after the last look.
    ends: list[float] = [*later, math.inf]
    mass = [float((stopped == end).mean()) for end in ends]
    middle = ends.index(float(np.quantile(stopped, 0.5, method="lower")))
    low, high = min(
        product(range(middle + 1), range(middle, len(ends))),
        key=lambda run: (
            round(abs(sum(mass[run[0] : run[1] + 1]) - CENTRAL), 9),
            run[1] - run[0],
        ),
    )
    if math.isinf(ends[low]):
        return Outlook(None, reachable, mass[-1])
    share = sum(mass[low : high + 1])
    median, first, most = (
        None if math.isinf(ends[at]) else round(ends[at]) + job.offset
        for at in (middle, low, high)
    )
    return Outlook(Needed(median, first or 0, most, share), None, mass[-1])


def _stopped(
    job: Job,
    trace: Trace,
    outcome: Outcome,
    numbers: Numbers,
    rules: Rules,
    seen: tuple[Floats, float, float, Bools],
) -> Floats:
    """Return the blocks at which each future is decided; infinite for "at no planned look".

    ``seen``: the log-ratios so far, the change they show, and the spread of those blocks in which no trial stalled: the
    noise to come is theirs. A carry-over that the change is held against is taken off in every future, and comes to be
    known better there, too: the one under the memory that leaves most open; for an improvement also what the baseline's
    trials alone may suffer.
    """
    (d, value, sd, calm), unit, plan = seen, job.unit, job.claim.plan
    n, known, margin = len(d), int(calm.sum()), math.log1p(rules.margin)
    claimed = nominal_tails(plan, job.claim.alpha)
    each = nominal_tails(plan, rules.alpha / 2)
    single = trace.critical.get(outcome.at, 0.0) / max(claimed[outcome.at], 1e-12)
    if not calm.all():
        single = min(single, 1.0 / PARTED)
    count = counted(unit, n)
    needed = trials_needed(rules.stalls, stalled=count.stalled) * max(1, count.longest)
    least = math.ceil(needed * n / max(count.trials, 1))
    off, error, wider, noticed, asked_of = 0.0, 0.0, 1.0, 1.0, 0.0
    if numbers.carry is not None and rules.carry == "tested":
        carry, alone = numbers.carry, numbers.onto[0]
        errors = np.abs(carry.share) * carry.error
        at = int(np.argmax(errors))
        off, error = float(carry.share[at] * carry.value[at]), float(errors[at])
        noticed, asked_of = carry.quantile, SHOWN_WITHOUT
        widest = error if alone is None else float(np.abs(alone.share * alone.error)[0])
        wider = max(1.0, widest / max(error, 1e-12))
    mean = typical_over(numbers.d, unit.hosts) if unit.hosts else None
    rng = np.random.default_rng(rules.seed)
    spread = sd * np.sqrt((known - 1) / rng.chisquare(known - 1, DRAWS))
    effect = value + spread / np.sqrt(known) * rng.standard_normal(DRAWS)
    # Assumption: most machines carry nothing over, so the estimate is shrunk half way to 0.
    owed = off / 2 + error / math.sqrt(2) * rng.standard_normal(DRAWS)
    owing = np.full(DRAWS, off * n)
    values = np.repeat(d[None, :], DRAWS, axis=0)
    near = np.where(calm, d, np.clip(d, value - LARGEST * sd, value + LARGEST * sd))
    total, squares = np.full(DRAWS, near.sum()), np.full(DRAWS, np.sum(near**2))
    stopped, done = np.full(DRAWS, np.inf), n
    for look, blocks in enumerate(plan.blocks):
        fresh = blocks - done
        if blocks <= n:
            continue
        if blocks <= RANKED:
            new = effect[:, None] + spread[:, None] * rng.standard_normal(
                (DRAWS, fresh)
            )
            values, added = np.hstack([values, new]), new.sum(axis=1)
            around = np.sum((new - new.mean(axis=1, keepdims=True)) ** 2, axis=1)
        else:
            noise = rng.standard_normal(DRAWS)
            added = effect * fresh + spread * np.sqrt(fresh) * noise
            around = spread**2 * rng.chisquare(max(fresh - 1, 1), DRAWS) * (fresh > 1)
        total, squares, done = (
            total + added,
            squares + around + added * added / fresh,
            blocks,
        )
        centre = total / blocks
        variance = np.maximum(squares / blocks - centre**2, 1e-300)
        errors = np.sqrt(variance / max(blocks - 1, 1))
        ranked = mean is None and values.shape[1] == blocks
        spare = max(1, blocks - 1 if mean is None else mean.spare)

        futures = (values if ranked else None, centre, errors, blocks, spare)
        owing += owed * fresh + error * math.sqrt(n * fresh) * rng.standard_normal(
            DRAWS
        )
        carried, unsure = owing / blocks, error * math.sqrt(n / blocks)
        left, shown = centre - carried, np.abs(carried) > noticed * unsure
        own = own_change(centre, errors, carried, np.full(DRAWS, unsure), blocks)
        asked = asked_of * np.hypot(errors, wider * unsure)
        better = (left < -asked) & ~(shown & (carried < 0.0))
        tail, by_stalls = claimed[look] * single, asked_by_stalls(unit, n, blocks)
        decided = (_above(futures, 0.0, tail) & own) | (
            _above(futures, -by_stalls, tail, -1.0) & better
        )
        room = margin - taken_by_stalls(unit, n, blocks, each[look])
        if blocks >= least and room > 0.0:
            inside = _above(futures, -room, each[look]) & _above(
                futures, room, each[look], -1.0
            )
            decided |= (np.abs(left) <= margin) & ~shown & inside
        stopped[decided & np.isinf(stopped)] = blocks
    return stopped


def _above(
    futures: tuple[Floats | None, Floats, Floats, int, int],
    mu: float,
    tail: float,
    side: float = 1.0,
) -> Bools:
    """Return where a change above ``mu`` is shown, or below it (``side`` -1): by ranks of the values, or by a t test."""
    values, centre, errors, blocks, spare = futures
    if values is not None:
        against = not_above_rows if side > 0 else not_below_rows
        return np.asarray(against(values, mu) < rank_cut(blocks, tail))
    far = -float(stdtrit(spare, max(tail, 1e-12))) * errors
    return np.asarray(side * (centre - mu) >= far)
