"""Ranking: all variants of one cell compared with each other at once, and the set of those that may be the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.effect import Estimate
from iodelta.stats.sequential import nominal_tails, schedule
from iodelta.stats.simultaneous import simultaneous
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric
from iodelta.verdict.model import Change, relative
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Series
from iodelta.verdict.series_units import units_of

Floats = NDArray[np.float64]


class Pair(msgspec.Struct, frozen=True):
    """Two variants of a cell. ``change`` is the metric's relative change from ``ahead`` to ``behind``, the one with
    the worse estimate; ``distinct`` whether its simultaneous interval excludes 0."""

    ahead: str
    behind: str
    change: Change
    distinct: bool


class CellRanking(msgspec.Struct, frozen=True):
    """One cell's variants, the best estimate first; ``best`` are those that no other is shown to beat.

    ``pairs`` hold together at ``level``. Without two variants to compare ``variants`` is empty and a finding says why.
    """

    cell: str
    metric: Metric
    variants: tuple[str, ...]
    best: tuple[str, ...]
    pairs: tuple[Pair, ...]
    """Pairs of variants; they hold together at ``level``."""
    blocks: int
    level: float
    findings: tuple[Finding, ...] = ()

    def worse(self, variant: str, than: str) -> tuple[float, float, float]:
        """By what share ``variant`` is worse ``than`` another, with bounds: (estimate, low, high); 0.02 is 2 %.

        Raises KeyError for a variant that is not ranked here.
        """
        for pair in self.pairs:
            if {pair.ahead, pair.behind} == {variant, than}:
                low = (
                    -math.inf
                    if pair.change.low is None or pair.change.low <= -1.0
                    else math.log1p(pair.change.low)
                )
                high = (
                    math.inf
                    if pair.change.high is None
                    else math.log1p(pair.change.high)
                )
                ends = math.log1p(pair.change.value), low, high
                if pair.behind != variant:
                    ends = -ends[0], -ends[2], -ends[1]
                return _as_loss(*ends, self.metric)
        raise KeyError(f"{variant} and {than} are not compared in cell {self.cell}")


def sequential_level(rules: Rules) -> float:
    """Return the level at which intervals hold at whichever look an experiment ended: 1 - the smallest alpha of its
    looks.
    """
    return 1.0 - 2.0 * min(
        nominal_tails(schedule(rules.looks, reserve=rules.reserve), rules.alpha / 2)
    )


def _no_blocks(place: str) -> Finding:
    return Finding(
        "ranking.no-blocks",
        "warning",
        place,
        "no block holds a usable value of every variant: nothing can be ranked",
        "run all variants in the same blocks",
    )


def rank(
    series: Sequence[Series], rules: Rules, *, level: float | None = None
) -> CellRanking:
    """Return the ranking of one cell by one metric, from its series: every variant against the same baseline.

    Only blocks (or boots) complete for all ranked variants count; a variant that cannot be judged is left out with
    its finding. ``level`` is that of all pairs together; by default one that holds at whichever look the run ended.
    Raises ValueError when the series are not of one cell, metric and baseline.
    """
    if len({(pairs.cell, pairs.metric, pairs.baseline) for pairs in series}) != 1:
        raise ValueError(
            "a ranking needs the series of one cell, one metric and one baseline"
        )
    level = sequential_level(rules) if level is None else level
    units = [units_of(pairs, rules) for pairs in series]
    usable = [unit for unit in units if unit.refusal is None]
    findings = tuple(
        dict.fromkeys(chain.from_iterable(unit.all_findings for unit in units))
    )
    shared = (
        set.intersection(*(set(unit.numbers) for unit in usable)) if usable else set()
    )
    cell, metric = series[0].cell, series[0].metric
    if not shared:
        nothing = _no_blocks(f"cell {cell}, {metric.name}")
        return CellRanking(cell, metric, (), (), (), 0, level, (*findings, nothing))
    names = [series[0].baseline, *(unit.variant for unit in usable)]
    columns = [unit.d[np.isin(unit.numbers, list(shared))] for unit in usable]
    badness = np.array([np.zeros(len(shared)), *columns])
    return _rank(cell, metric, names, badness, level, rules.seed, findings)


def _rank(
    cell: str,
    metric: Metric,
    names: Sequence[str],
    badness: Floats,
    level: float,
    seed: int,
    findings: tuple[Finding, ...],
) -> CellRanking:
    """``badness`` has shape (variants, blocks): log values, positive is worse, up to a constant per block."""
    order = np.argsort(np.median(badness, axis=1), kind="stable")
    places = list(combinations(range(len(order)), 2))
    d = np.array(
        [badness[order[behind]] - badness[order[ahead]] for ahead, behind in places]
    )
    pairs = []
    beaten = set()
    for (first, second), estimate in zip(
        places, simultaneous(d, level=level, seed=seed), strict=True
    ):
        ahead, behind = names[order[first]], names[order[second]]
        if estimate.value < 0:
            ahead, behind = behind, ahead
            estimate = Estimate(
                -estimate.value,
                -estimate.high,
                -estimate.low,
                estimate.level,
                estimate.n,
            )
        distinct = estimate.low > 0 or estimate.high < 0
        if distinct:
            beaten.add(behind)
        pairs.append(Pair(ahead, behind, _as_change(estimate, metric), distinct))
    ranked = tuple(names[at] for at in order)
    best = tuple(name for name in ranked if name not in beaten)
    return CellRanking(
        cell, metric, ranked, best, tuple(pairs), badness.shape[1], level, findings
    )


def _as_change(worse: Estimate, metric: Metric) -> Change:
    """Return a log-ratio that is positive when worse, as relative change of the metric itself."""
    if metric.better == "higher":
        worse = Estimate(-worse.value, -worse.high, -worse.low, worse.level, worse.n)
    low, high = (
        relative(end) if math.isfinite(end) else None for end in (worse.low, worse.high)
    )
    return Change(relative(worse.value), low, high, worse.level)


def _as_loss(
    value: float, low: float, high: float, metric: Metric
) -> tuple[float, float, float]:
    """Log changes of a metric as shares lost: IOPS 22 % lower, or latency 22 % higher, is a loss of 0.22."""
    if metric.better == "higher":
        return -relative(value), -relative(high), -relative(low)
    return relative(value), relative(low), relative(high)
