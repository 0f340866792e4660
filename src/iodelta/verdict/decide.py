"""Decide: replay the looks of many comparisons at once and find where, and with which word, each was settled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from iodelta.stats.boots import Combined, random_effects
from iodelta.stats.effect import tails_rows
from iodelta.stats.guards import Merged, lag1_rows, merge_until_clean
from iodelta.stats.sequential import Schedule, nominal_tails
from iodelta.verdict.model import Word
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]
Tails = Callable[[Floats, float], tuple[Floats, Floats]]

GUARD = 0.01
"""Level of the lag-1 guard."""

MIN_PER_HOST = 4
"""Blocks a host must have before its own effect and spread count."""


@dataclass(frozen=True)
class Claim:
    """How one comparison is tested: its looks, the one-sided alpha of a change in each direction it may claim, and
    whether it may."""

    plan: Schedule
    alpha: float
    worse: bool = True
    better: bool = True


@dataclass
class Trace:
    """What the looks of one comparison led to. ``at`` and ``alone_at`` index the look that settled ``word`` and
    ``alone``, or are the latest look, -1 before the first. ``above`` and ``below`` hold the one-sided p values of
    "worse" and "better" at each look taken."""

    claim: Claim
    taken: int
    word: Word = "inconclusive"
    at: int = -1
    alone: Word = "inconclusive"
    alone_at: int = -1
    above: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)
    merged: dict[int, Merged] = field(default_factory=dict)
    """Looks at which neighbouring blocks resembled each other, and what merging made of them."""

    @property
    def settled(self) -> bool:
        """Whether a look has settled the word."""
        return self.word != "inconclusive"

    @property
    def exhausted(self) -> bool:
        """Whether no look is left to take."""
        return self.taken == len(self.claim.plan.blocks)


def replay(units: Sequence[Units], claims: Sequence[Claim], *, margin: float, alpha: float) -> list[Trace]:
    """The traces of ``units``, each tested by its claim; ``margin`` is a log-ratio, ``alpha`` the one-sided level of
    every statement about one comparison by itself. Refused units take no look."""
    traces = [
        Trace(claim, 0 if unit.refusal else sum(n <= len(unit.d) for n in claim.plan.blocks))
        for unit, claim in zip(units, claims, strict=True)
    ]
    groups: dict[tuple[Schedule, int, float], list[int]] = {}
    for row, (unit, trace) in enumerate(zip(units, traces, strict=True)):
        if trace.taken and unit.hosts:
            _replay_group([unit], [trace], margin, alpha, host_tails(unit.hosts))
        elif trace.taken:
            groups.setdefault((trace.claim.plan, trace.taken, trace.claim.alpha), []).append(row)
    for rows in groups.values():
        _replay_group([units[row] for row in rows], [traces[row] for row in rows], margin, alpha, tails_rows)
    return traces


def _replay_group(units: list[Units], traces: list[Trace], margin: float, alpha: float, tails: Tails) -> None:
    """Looks of comparisons that share plan, looks taken and claim level, all rows of a look at once."""
    claim, taken = traces[0].claim, traces[0].taken
    each, claimed = nominal_tails(claim.plan, alpha), nominal_tails(claim.plan, claim.alpha)
    d = np.array([unit.d[: claim.plan.blocks[taken - 1]] for unit in units])
    open_rows = np.arange(len(units))
    for look in range(taken):
        part = d[open_rows, : claim.plan.blocks[look]]
        seen = _seen(part, margin, tails)
        words, alone = _words(seen, each[look], claimed[look], [traces[row].claim for row in open_rows])
        if tails is tails_rows:
            check = np.array([bool(a or b) for a, b in zip(words, alone, strict=True)]) | (look == taken - 1)
            _guard(part, check, seen, [traces[row] for row in open_rows], look, margin)
            words, alone = _words(seen, each[look], claimed[look], [traces[row].claim for row in open_rows])
        for at, row in enumerate(open_rows):
            trace = traces[row]
            trace.above.append(float(seen[at, 0]))
            trace.below.append(float(seen[at, 1]))
            trace.at = look
            if words[at]:
                trace.word = words[at] or "inconclusive"
            if trace.alone == "inconclusive":
                trace.alone, trace.alone_at = alone[at] or "inconclusive", look
        open_rows = np.array([row for row in open_rows if not traces[row].settled], dtype=np.intp)
        if not len(open_rows):
            return


def _seen(part: Floats, margin: float, tails: Tails) -> Floats:
    """One-sided p values per row: worse, better, not better by the margin, not worse by the margin."""
    above, below = tails(part, 0.0)
    return np.column_stack([above, below, tails(part, -margin)[0], tails(part, margin)[1]])


def _words(
    seen: Floats, each: float, claimed: float, claims: Sequence[Claim]
) -> tuple[list[Word | None], list[Word | None]]:
    """Per row the word the look settles, in the family and by itself; None where it settles nothing."""
    hit = seen <= each * (1 + 1e-9)
    within = hit[:, 2] & hit[:, 3]
    strong = seen[:, :2] <= claimed * (1 + 1e-9)
    words: list[Word | None] = []
    alone: list[Word | None] = []
    for row, claim in enumerate(claims):
        if within[row]:
            words.append("equivalent")
            alone.append("equivalent")
            continue
        alone.append("regression" if hit[row, 0] else "improvement" if hit[row, 1] else None)
        worse, better = claim.worse and strong[row, 0], claim.better and strong[row, 1]
        words.append("regression" if worse else "improvement" if better else None)
    return words, alone


def _guard(part: Floats, check: NDArray[np.bool_], seen: Floats, traces: list[Trace], look: int, margin: float) -> None:
    """Where neighbouring blocks resemble each other, take the p values from batches of blocks instead; where no
    batching helps, nothing is settled at this look."""
    rows = np.flatnonzero(check)
    if not len(rows):
        return
    for row in rows[lag1_rows(part[rows])[1] < GUARD]:
        merged = merge_until_clean(part[row], level=GUARD)
        traces[row].merged[look] = merged
        seen[row] = _seen(np.array([merged.batches]), margin, tails_rows)[0] if merged.clean else 1.0


def over_hosts(d: Floats, hosts: Sequence[str], level: float = 0.95) -> Combined | None:
    """Random-effects mean of the hosts' own mean effects; None unless two hosts have 4 blocks and some spread."""
    effects, variances = [], []
    for host in dict.fromkeys(hosts):
        own = d[[name == host for name in hosts]]
        if len(own) >= MIN_PER_HOST and np.ptp(own) > 0.0:
            effects.append(float(own.mean()))
            variances.append(float(own.var(ddof=1)) / len(own))
    return random_effects(effects, variances, level) if len(effects) > 1 else None


def host_tails(hosts: Sequence[str]) -> Tails:
    """One-sided p values of the random-effects mean over ``hosts`` (one name per block), for a single row."""

    def tails(part: Floats, mu: float) -> tuple[Floats, Floats]:
        combined = over_hosts(part[0], hosts[: part.shape[1]])
        if combined is None or not math.isfinite(combined.error):
            return np.ones(1), np.ones(1)
        t = (combined.value - mu) / combined.error
        return np.array([stdtr(combined.spare, -t)]), np.array([stdtr(combined.spare, t)])

    return tails
