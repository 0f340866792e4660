"""Recommend: all variants of a cell compared with each other at once, and the variant that is never much worse than the
best, over all cells, in one sentence that the numbers support."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, product

import msgspec
import numpy as np

from iodelta.stats.sequential import nominal_tails, schedule
from iodelta.stats.simultaneous import simultaneous
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric
from iodelta.verdict.model import relative
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Series
from iodelta.verdict.series_units import units_of

VACUOUS = 0.5
"""A variant that may lose this much is not recommended, unless another is shown to lose more."""


class CellRanking(msgspec.Struct, frozen=True):
    """One cell's variants, the best estimate first; ``best`` are those that no other is shown to beat.

    ``losses``: variant -> other -> by what share it is worse, (estimate, low, high); they hold together at ``level``.
    Without two variants to compare ``variants`` is empty and a finding says why.
    """

    cell: str
    metric: Metric
    variants: tuple[str, ...]
    best: tuple[str, ...]
    losses: Mapping[str, Mapping[str, tuple[float, float, float]]]
    level: float
    findings: tuple[Finding, ...] = ()


@dataclass
class Regret:
    """What choosing ``variant`` may cost in its worst cell: the share lost against the best variant of the cell."""

    variant: str
    largest: float = 0.0
    """The greatest estimate."""
    where: str = ""
    """Cell of that loss; empty when nothing is lost."""
    bound: float = 0.0
    """Greatest upper bound over all cells; infinite where a cell gives none."""
    weighted: float = 0.0
    """The same, each cell with its weight."""
    sure: float = 0.0
    """Greatest lower bound; 0 where no loss is shown."""
    losses: dict[str, float] = field(default_factory=dict)
    """Variants shown to be better somewhere, and the weighted loss shown against each."""


class Recommendation(msgspec.Struct, frozen=True):
    """``variants`` is the one to choose, several that no cell distinguishes, or none; ``sentence`` gives the reason."""

    variants: tuple[str, ...]
    sentence: str
    regrets: tuple[Regret, ...]
    """What each variant may cost where it does worst."""
    rankings: tuple[CellRanking, ...]
    """The ranking of each cell."""
    weighted: bool
    """Whether cells were given weights."""
    findings: tuple[Finding, ...] = ()


def sequential_level(rules: Rules) -> float:
    """Return the level at which intervals hold at whichever look an experiment ended: 1 - the smallest alpha of its
    looks.
    """
    looks = schedule(rules.looks, reserve=rules.reserve)
    return 1.0 - 2.0 * min(nominal_tails(looks, rules.alpha / 2))


def rank(
    series: Sequence[Series], rules: Rules, *, level: float | None = None
) -> CellRanking:
    """Return the ranking of one cell by one metric, from its series: every variant against the same baseline.

    Only blocks (or boots) complete for all ranked variants count; a variant that cannot be judged is left out with
    its finding. ``level`` is that of all pairs together; by default one that holds at whichever look the run ended.
    Raises ValueError when the series are not of one cell, metric and baseline.
    """
    if len({(pairs.cell, pairs.metric, pairs.baseline) for pairs in series}) != 1:
        what = "a ranking needs the series of one cell, one metric and one baseline"
        raise ValueError(what)
    level = sequential_level(rules) if level is None else level
    units = [units_of(pairs, rules) for pairs in series]
    usable = [unit for unit in units if unit.refusal is None]
    doubts = dict.fromkeys(chain.from_iterable(unit.all_findings for unit in units))
    shared = set.intersection(*(set(unit.numbers) for unit in usable)) if usable else ()
    cell, metric = series[0].cell, series[0].metric
    if not shared:
        why = "no block holds a usable value of every variant: nothing can be ranked"
        remedy, place = (
            "run all variants in the same blocks",
            f"cell {cell}, {metric.name}",
        )
        none = Finding("ranking.no-blocks", "warning", place, why, remedy)
        return CellRanking(cell, metric, (), (), {}, level, (*doubts, none))
    names = [series[0].baseline, *(unit.variant for unit in usable)]
    columns = [unit.d[np.isin(unit.numbers, list(shared))] for unit in usable]
    # Log values, positive is worse, up to a constant per block; the baseline is 0.
    badness = np.array([np.zeros(len(shared)), *columns])
    order = np.argsort(np.median(badness, axis=1), kind="stable").tolist()
    places = list(combinations(order, 2))
    d = np.array([badness[behind] - badness[ahead] for ahead, behind in places])
    losses: dict[str, dict[str, tuple[float, float, float]]] = {}
    beaten = set()
    # IOPS 22 % lower, or latency 22 % higher, is a loss of 0.22.
    sign = -1.0 if metric.better == "higher" else 1.0
    for pair, one in zip(
        places, simultaneous(d, level=level, seed=rules.seed), strict=True
    ):
        ahead, behind = (names[at] for at in pair)
        ends = (one.value, one.low, one.high)
        back = (-one.value, -one.high, -one.low)
        for key, logs in (((behind, ahead), ends), ((ahead, behind), back)):
            value, low, high = (sign * relative(sign * log) for log in logs)
            losses.setdefault(key[0], {})[key[1]] = (value, low, high)
            if logs[1] > 0:
                beaten.add(key[0])
    ranked = tuple(names[at] for at in order)
    best = tuple(name for name in ranked if name not in beaten)
    return CellRanking(cell, metric, ranked, best, losses, level, tuple(doubts))


def recommend(
    cells: Sequence[Sequence[Series]],
    rules: Rules,
    *,
    weights: Mapping[str, float] | None = None,
    forbidden: Sequence[Finding] = (),
    level: float | None = None,
    planned: int = 0,
) -> Recommendation:
    """Return the variant with the smallest largest regret (minimax regret, Savage 1951) over ``cells``.

    Each entry holds the series of one cell and metric, every variant against the same baseline. ``weights`` per cell
    (default 1) scale a cell's losses in the choice, not in the sentence. Any finding in ``forbidden``, an order trend
    or an A/A placebo that shows a change, forbids to name a winner. Losses claimed for the others hold for all cells
    at once (Bonferroni over cells, max-T within); the bound on the winner needs no such correction, because it fails
    only if it fails in the one cell where the truth is worst (Berger 1982). ``planned`` is the number of cells that the
    experiment was to measure.
    """
    level = sequential_level(rules) if level is None else level
    strict = 1.0 - (1.0 - level) / max(len(cells), 1)
    rankings = tuple(rank(series, rules, level=level) for series in cells if series)
    claims = [rank(series, rules, level=strict) for series in cells if series]
    usable = [both for both in zip(rankings, claims, strict=True) if both[0].variants]
    several = len({ranking.metric.name for ranking, _ in usable}) > 1
    names = dict.fromkeys(chain.from_iterable(one.variants for one, _ in usable))
    regrets = {name: Regret(name) for name in names}
    for (ranking, claim), regret in product(usable, regrets.values()):
        if regret.variant not in ranking.variants:
            regret.bound = regret.weighted = math.inf
            continue
        weight = (weights or {}).get(ranking.cell, 1.0)
        for other in ranking.variants:
            if other == regret.variant:
                continue
            estimate, _, high = ranking.losses[regret.variant][other]
            if estimate > regret.largest:
                where = f"{ranking.cell} ({ranking.metric.name})"
                regret.largest, regret.where = (
                    estimate,
                    where if several else ranking.cell,
                )
            regret.bound = max(regret.bound, high)
            regret.weighted = max(regret.weighted, weight * high if weight else 0.0)
            low = claim.losses[regret.variant][other][1]
            if low > 0:
                regret.sure = max(regret.sure, low)
                shown = max(regret.losses.get(other, 0.0), weight * low)
                regret.losses[other] = shown
    some = "measured " if len({one.cell for one, _ in usable}) < planned else ""
    where = f"the one {some}cell"
    if len(usable) > 1:
        where = f"any of {len(usable)} {some}{'comparisons' if several else 'cells'}"
    chosen, sentence = _choose([*regrets.values()], where, forbidden, rules.margin)
    if weights:
        sentence += f" Weights: {', '.join(f'{weight:g} for {cell}' for cell, weight in weights.items())}; else 1."
    if not chosen:
        sentence = f"No winner yet: {sentence}"
    doubts = dict.fromkeys(chain.from_iterable(one.findings for one in rankings))
    return Recommendation(
        chosen,
        sentence,
        tuple(regrets.values()),
        rankings,
        bool(weights),
        (*forbidden, *doubts),
    )


def _choose(
    regrets: Sequence[Regret], where: str, forbidden: Sequence[Finding], margin: float
) -> tuple[tuple[str, ...], str]:
    """Return the variants to choose, and the sentence, or none and why; ``where`` is ``any of 12 cells``."""
    if forbidden:
        return (), f"{forbidden[0].explanation}."
    if not regrets:
        return (), "no cell could be ranked."
    ordered = sorted(regrets, key=lambda one: (one.weighted, one.largest))
    everywhere, best = where.replace("any of", "all"), ordered[0]
    if not any(one.losses for one in ordered):
        cost = max(one.bound for one in ordered)
        both = " and ".join(one.variant for one in ordered)
        names = both if len(ordered) == 2 else f"all {len(ordered)} variants"
        most = f"; choosing any costs at most {_percent(cost)}"
        return (), f"{names} are within noise in {everywhere}{most * (cost < VACUOUS)}."
    if not math.isfinite(best.bound):
        return (), f"{best.variant} could still be slower by any amount in one cell."
    if best.bound > max(VACUOUS, *(one.sure for one in ordered)):
        return (
            (),
            f"{best.variant} could still be {_percent(best.bound)} worse in one cell.",
        )
    # Bounds that differ by less than the margin may differ by chance, so a variant without a shown loss comes first.
    close = [one for one in ordered if one.weighted <= best.weighted + margin]
    first = next((one for one in close if not one.losses), best)
    level = [
        one
        for one in close
        if first.variant not in one.losses and one.variant not in first.losses
    ]
    tied = {one.variant for one in level}
    chosen = [
        first,
        *(one for one in level if one is not first and tied.isdisjoint(one.losses)),
    ]
    behind = [one for one in ordered if one not in chosen]
    rivals = [
        one
        for one in behind
        if one.variant in first.losses
        and max(one.losses.values(), default=0.0) <= first.weighted
    ]
    if rivals:
        losses = ", ".join(map(_loss, (first, *rivals)))
        return (), f"none is good everywhere ({losses}); choose by workload."
    variants = tuple(one.variant for one in chosen)
    names = " or ".join(filter(None, (", ".join(variants[:-1]), variants[-1])))
    bound = max(one.bound for one in chosen)
    how = f"never more than {_percent(bound)} worse than the best in {where}"
    if bound <= 0 or not math.isfinite(bound):
        never = f"not shown to lose anywhere in {where}"
        how = f"the best in {everywhere}" if bound <= 0 else never
    worst = max(behind, key=lambda one: (one.sure > 0, one.largest))
    least = f" (at least {_percent(worst.sure, down=True)})" if worst.sure else ""
    return variants, f"{names} is {how}; {_loss(worst)}{least}."


def _loss(regret: Regret) -> str:
    """Return what a variant loses where it does worst."""
    if regret.sure:
        where = f"{_percent(regret.largest)} in {regret.where}"
        return f"{regret.variant} loses up to {where}"
    bound = regret.bound
    most = f"up to {_percent(bound)}" if math.isfinite(bound) else "anything"
    return f"{regret.variant} may lose {most}, not shown"


def _percent(share: float, *, down: bool = False) -> str:
    """Return a share as ``3.1 %``: rounded so that "at most" and "at least" stay true."""
    tenths = 1000.0 * share
    return f"{(math.floor(tenths) if down else math.ceil(tenths - 1e-9)) / 10:.1f} %"
