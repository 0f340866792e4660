"""Decide: replay the looks of many comparisons at once, and find the look and the word at which each was settled.

At a look every comparison is tested twice: its typical change by signed ranks of the block log-ratios, and its total
change by the studentised ratio of sums. Both nulls come from the randomiser that ordered the blocks. The metrics of one
cell and variant share their blocks, so they are replayed with the same draws and count as one test (see
``stats.replay``). ``equivalent`` needs both changes inside the margin, and enough trials to exclude stalls (more where
some stalled); a change needs one estimand that excludes 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.sequential import Schedule, nominal_tails
from iodelta.stats.total import Arms
from iodelta.verdict.carried import made_by_carry
from iodelta.verdict.hosts import seen_over_hosts
from iodelta.verdict.looks import Seen, Tested, seen_at
from iodelta.verdict.machine import Machine, machine_of
from iodelta.verdict.model import Basis, Word
from iodelta.verdict.rare import stalls_fit, stalls_undo
from iodelta.verdict.rules import Rules
from iodelta.verdict.stalled import counted
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]


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
    """The result of the looks of one comparison. ``at`` and ``alone_at`` index the look that settled ``word`` and
    ``alone``, else the latest look, -1 before the first. ``above`` and ``below`` hold the one-sided p values of
    "worse" and "better" at each look taken, corrected for the estimands and metrics that were tested with it."""

    claim: Claim
    taken: int
    word: Word = "inconclusive"
    at: int = -1
    alone: Word = "inconclusive"
    alone_at: int = -1
    above: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)
    basis: Basis = "typical"
    """The estimand that the word rests on."""
    critical: dict[int, float] = field(default_factory=dict)
    """By look: the one-sided level of a single test to which the corrected level corresponds."""
    alone_critical: float = 0.0
    """As ``critical`` at the look that settled ``alone``, at the level that a comparison has by itself."""
    machine: dict[int, Machine] = field(default_factory=dict)
    """By look: what the machine itself added to the blocks."""
    withheld: dict[int, tuple[Word, str]] = field(default_factory=dict)
    """Looks at which carry-over could have made the word: the word, and why (see ``carried.made_by_carry``)."""
    few_trials: bool = False
    """Whether only the number of trials stands between the latest look and ``equivalent``."""

    @property
    def settled(self) -> bool:
        """Return whether a look has settled the word."""
        return self.word != "inconclusive"

    @property
    def exhausted(self) -> bool:
        """Return whether no look is left to take."""
        return self.taken == len(self.claim.plan.blocks)


def replay(
    units: Sequence[Units],
    claims: Sequence[Claim],
    rules: Rules,
    *,
    joined: bool = True,
) -> list[Trace]:
    """Return the traces of ``units``, each tested by its claim. Refused units take no look. ``joined``: metrics of one
    cell and variant are corrected for together; else each stands for itself."""
    traces = []
    for unit, claim in zip(units, claims, strict=True):
        looks = sum(blocks <= len(unit.d) for blocks in claim.plan.blocks)
        traces.append(Trace(claim, 0 if unit.refusal else looks))
    for rows, parts in _sets(units, traces, joined=joined):
        _replay_set(
            [units[row] for row in rows], [traces[row] for row in rows], rules, parts
        )
    return traces


def _sets(
    units: Sequence[Units], traces: Sequence[Trace], *, joined: bool
) -> list[tuple[list[int], int]]:
    """Rows that are replayed together, each set with how many sets its cell and variant fell into: metrics that lack
    some blocks have draws of their own, and Bonferroni's correction joins what the replay cannot."""
    sets: dict[tuple[object, ...], list[int]] = {}
    for row, (unit, trace) in enumerate(zip(units, traces, strict=True)):
        if trace.taken:
            together = (
                trace.claim.plan,
                trace.claim.alpha,
                trace.taken,
                unit.numbers,
                unit.hosts,
            )
            place = (unit.cell, unit.variant) if joined else (row,)
            sets.setdefault((*place, *together), []).append(row)
    parts: dict[tuple[object, ...], int] = {}
    for key in sets:
        parts[key[:2]] = parts.get(key[:2], 0) + 1
    return [(rows, parts[key[:2]] if joined else 1) for key, rows in sets.items()]


def _replay_set(
    units: list[Units], traces: list[Trace], rules: Rules, parts: int
) -> None:
    """All looks of metrics that share blocks, plan and claim."""
    claim, taken, margin = traces[0].claim, traces[0].taken, math.log1p(rules.margin)
    each = nominal_tails(claim.plan, rules.alpha / 2)
    claimed = nominal_tails(claim.plan, claim.alpha)
    for look, blocks in enumerate(claim.plan.blocks[:taken]):
        # The log-ratios, within a speed where the machine has two, and the totals.
        d, arms = [], []
        for unit, trace in zip(units, traces, strict=True):
            trace.machine[look] = machine_of(unit, blocks)
            d.append(unit.d[:blocks] - trace.machine[look].added)
            arms.append(unit.arms(blocks).columns)
        tested = Tested(
            np.array(d),
            Arms(*map(np.concatenate, zip(*arms, strict=True))),
            units[0].coins[:blocks],
            rules.order == "independent",
            rules.seed,
            np.array([unit.resolution for unit in units]),
        )
        level, hosts = max(each[look], claimed[look]), units[0].hosts[:blocks]
        if hosts:
            seen = seen_over_hosts(
                tested, hosts, margin=margin, level=level, parts=parts
            )
        else:
            last = look == taken - 1
            seen = seen_at(tested, margin=margin, level=level, parts=parts, latest=last)
        for row, (unit, trace) in enumerate(zip(units, traces, strict=True)):
            if not trace.settled:
                levels = (each[look], claimed[look])
                _take(unit, trace, seen, row, look, tested.d[row], levels, rules)
        if all(trace.settled for trace in traces):
            return


def _take(
    unit: Units,
    trace: Trace,
    seen: Seen,
    row: int,
    look: int,
    d: Floats,
    levels: tuple[float, float],
    rules: Rules,
) -> None:
    """One look of one comparison: its p values, and the word if it settles one. Of two words the first is that of its
    claim, the second the one that it would have alone."""
    blocks, (each, claimed) = len(d), levels
    trace.above.append(float(seen.above[:, row].min()))
    trace.below.append(float(seen.below[:, row].min()))
    trace.at = look
    claims = [(claimed, trace.claim), (each, Claim(trace.claim.plan, each))]
    if claimed == each and trace.claim.worse and trace.claim.better:
        claims = claims[:1]
    found = [_word(unit, seen, row, blocks, *one, (each, rules)) for one in claims]
    trace.few_trials = found[0][2]
    margin, words = math.log1p(rules.margin), []
    for (word, basis, _), (level, _) in zip(found, claims, strict=True):
        tail = seen.critical_at(level)
        if word == "equivalent" and not stalls_fit(unit, d, blocks, each, margin):
            # As many stalls as are not excluded would move the total out of the margin.
            word, trace.few_trials = "inconclusive", True
        # Stalls of the favoured arm that are not excluded could undo a change of the total, and an improvement of a
        # typical trial, because a variant that stalls does less work. A regression of a typical trial stands even where
        # the baseline stalled.
        if (word == "improvement" or (word, basis) == ("regression", "total")) and (
            stalls_undo(unit, d, blocks, tail, worse=word == "regression")
        ):
            word, basis = "inconclusive", "total"
        why = ""
        if word != "inconclusive":
            machine = trace.machine[look]
            why = made_by_carry(unit, word, basis, machine, blocks, rules)
        if why:
            trace.withheld[look] = (word, why)
            word = "inconclusive"
        words.append((word, basis, tail))
    (word, basis, trace.critical[look]), (alone, alone_basis, tail) = (
        words[0],
        words[-1],
    )
    if word != "inconclusive":
        trace.word, trace.basis = word, basis
    elif not trace.settled and trace.alone == "inconclusive":
        trace.basis = alone_basis
    if trace.alone == "inconclusive":
        trace.alone, trace.alone_at, trace.alone_critical = alone, look, tail


def _word(
    unit: Units,
    seen: Seen,
    row: int,
    blocks: int,
    level: float,
    claim: Claim,
    each: tuple[float, Rules],
) -> tuple[Word, Basis, bool]:
    """Return the word of one look, the estimand it rests on, and whether only trials are missing for ``equivalent``.

    An estimand inside the margin claims no change, however sure its sign is.
    """
    # 1e-9: exact p values can equal the level, and must count in spite of rounding.
    limit, rules = each[0] * (1 + 1e-9), each[1]
    inside = (seen.within[:, row] <= limit).tolist()
    if all(inside):
        enough = counted(unit, blocks).enough_for(rules.stalls)
        return ("equivalent" if enough else "inconclusive"), "typical", not enough
    names: tuple[Basis, Basis] = ("typical", "total")
    words: tuple[tuple[Word, bool, Floats], ...] = (
        ("regression", claim.worse, seen.above[:, row]),
        ("improvement", claim.better, seen.below[:, row]),
    )
    for word, may, p in words:
        shown = [
            at
            for at in range(len(p))
            if may and not inside[at] and p[at] <= level * (1 + 1e-9)
        ]
        if shown:
            return word, names[shown[0]], False
    return "inconclusive", "typical", False
