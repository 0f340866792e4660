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
    claim, taken = traces[0].claim, traces[0].taken
    margin = math.log1p(rules.margin)
    each, claimed = (
        nominal_tails(claim.plan, rules.alpha / 2),
        nominal_tails(claim.plan, claim.alpha),
    )
    for look in range(taken):
        blocks = claim.plan.blocks[look]
        for unit, trace in zip(units, traces, strict=True):
            if len(unit.baseline_values) >= blocks:  # the mean over cells has no values
                trace.machine[look] = machine_of(unit, blocks)
        tested = _tested(
            units, [trace.machine.get(look) for trace in traces], blocks, rules
        )
        level = max(each[look], claimed[look])
        if hosts := units[0].hosts[:blocks]:
            seen = seen_over_hosts(
                tested, hosts, margin=margin, level=level, parts=parts
            )
        else:
            seen = seen_at(
                tested,
                margin=margin,
                level=level,
                parts=parts,
                latest=look == taken - 1,
            )
        for row, (unit, trace) in enumerate(zip(units, traces, strict=True)):
            if not trace.settled:
                _take(
                    unit,
                    trace,
                    seen,
                    row,
                    look,
                    blocks,
                    (each[look], claimed[look]),
                    rules,
                )
        if all(trace.settled for trace in traces):
            return


def _tested(
    units: Sequence[Units],
    machines: Sequence[Machine | None],
    blocks: int,
    rules: Rules,
) -> Tested:
    """Return what a look tests: the log-ratios, within a speed where the machine has two, and the totals."""
    d = np.array([unit.d[:blocks] for unit in units])
    independent = rules.order == "independent"
    for row, machine in enumerate(machines):
        if machine is None:  # the mean over cells: its typical change alone
            return Tested(d, None, units[0].coins[:blocks], independent, rules.seed)
        d[row] -= machine.added
    arms = [unit.arms(blocks) for unit in units]
    columns = zip(*(arm.columns for arm in arms), strict=True)
    totals = type(arms[0])(*map(np.concatenate, columns))
    resolution = np.array([unit.resolution for unit in units])
    return Tested(
        d, totals, units[0].coins[:blocks], independent, rules.seed, resolution
    )


def _unless_carried(
    words: tuple[tuple[Word, Basis], tuple[Word, Basis]],
    unit: Units,
    trace: Trace,
    look: int,
    blocks: int,
    rules: Rules,
) -> tuple[Word, Word]:
    """Both words, inconclusive where carry-over could have made one; the trace keeps the withheld word."""
    carried = set()
    for word, basis in dict.fromkeys(words):
        machine = trace.machine.get(look)
        why = ""
        if word != "inconclusive":
            why = made_by_carry(unit, word, basis, machine, blocks, rules)
        if why:
            trace.withheld[look] = (word, why)
            carried.add(word)
    (word, _), (alone, _) = words
    return (
        "inconclusive" if word in carried else word,
        "inconclusive" if alone in carried else alone,
    )


def _take(
    unit: Units,
    trace: Trace,
    seen: Seen,
    row: int,
    look: int,
    blocks: int,
    levels: tuple[float, float],
    rules: Rules,
) -> None:
    """One look of one comparison: its p values, and the word if it settles one."""
    each, claimed = levels
    trace.above.append(float(seen.above[:, row].min()))
    trace.below.append(float(seen.below[:, row].min()))
    trace.at = look
    word, basis, few = _word(
        unit, seen, row, blocks, claimed, trace.claim, (each, rules)
    )
    alone, alone_basis = word, basis
    if claimed != each or not (trace.claim.worse and trace.claim.better):
        alone, alone_basis, _ = _word(
            unit, seen, row, blocks, each, Claim(trace.claim.plan, each), (each, rules)
        )
    if "equivalent" in (word, alone) and not _stalls_fit(
        unit, trace, look, blocks, each, rules
    ):
        few = True
        word, alone = (
            ("inconclusive" if candidate == "equivalent" else candidate)
            for candidate in (word, alone)
        )
    trace.few_trials = few
    trace.critical[look] = seen.critical_at(claimed)
    alone_critical = seen.critical_at(each)
    word, basis = _unless_undone(word, basis, unit, trace, blocks, trace.critical[look])
    alone, alone_basis = _unless_undone(
        alone, alone_basis, unit, trace, blocks, alone_critical
    )
    words = ((word, basis), (alone, alone_basis))
    word, alone = _unless_carried(words, unit, trace, look, blocks, rules)
    if word != "inconclusive":
        trace.word, trace.basis = word, basis
    elif not trace.settled and trace.alone == "inconclusive":
        trace.basis = alone_basis
    if trace.alone == "inconclusive":
        trace.alone, trace.alone_at, trace.alone_critical = alone, look, alone_critical


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


def _stalls_fit(
    unit: Units, trace: Trace, look: int, blocks: int, tail: float, rules: Rules
) -> bool:
    """Return whether the total stays inside the margin if as many trials stall as are not excluded."""
    d = _judged(unit, trace, look, blocks)
    return d is None or stalls_fit(unit, d, blocks, tail, math.log1p(rules.margin))


def _unless_undone(
    word: Word, basis: Basis, unit: Units, trace: Trace, blocks: int, tail: float
) -> tuple[Word, Basis]:
    """Return a change, or inconclusive where stalls of the favoured arm are not excluded and could undo the change in
    total: the interval that is shown for the total reaches as far.

    This applies to a change of the total and to an improvement of a typical trial, because a variant that stalls does
    less work. A regression of a typical trial stands even where the baseline stalled.
    """
    if word != "improvement" and (word, basis) != ("regression", "total"):
        return word, basis
    d = _judged(unit, trace, trace.at, blocks)
    undone = d is not None and stalls_undo(
        unit, d, blocks, tail, worse=word == "regression"
    )
    return ("inconclusive", "total") if undone else (word, basis)


def _judged(unit: Units, trace: Trace, look: int, blocks: int) -> Floats | None:
    """Return the log-ratios judged at a look, within a speed; None where the units have no values of their own."""
    machine = trace.machine.get(look)
    return None if machine is None else unit.d[:blocks] - machine.added
