"""Recommend: the variant that is never much worse than the best, over all cells, in one sentence that the numbers
support."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from iodelta.trial import Finding
from iodelta.verdict.ranking import CellRanking, rank, sequential_level
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Series

VACUOUS = 0.5
"""A variant that may lose this much is not recommended, unless another is shown to lose more."""


class Regret(msgspec.Struct, frozen=True):
    """What choosing ``variant`` may cost in its worst cell: the share lost against the best variant of the cell.

    ``largest`` is the greatest estimate, in cell ``where``; ``bound`` the greatest upper bound over all cells (None:
    a cell gives none); ``sure`` the greatest lower bound, 0 where no loss is shown. ``loses_to`` are the variants
    shown to be better in some cell.
    """

    variant: str
    largest: float
    """The greatest estimate of a loss, a share."""
    where: str
    """Cell of that loss; empty when nothing is lost."""
    bound: float | None
    """Greatest upper bound of the loss over all cells, a share; None: a cell gives none."""
    sure: float
    """Greatest lower bound of the loss, a share; 0 where no loss is shown."""
    loses_to: tuple[str, ...]
    """Variants shown to be better in some cell."""


class Recommendation(msgspec.Struct, frozen=True):
    """``variants`` is the one to choose, several that no cell distinguishes, or none; ``sentence`` gives the reason.

    ``level`` is the confidence of the bounds in the sentence: of any one variant's in its worst cell.
    """

    variants: tuple[str, ...]
    sentence: str
    regrets: tuple[Regret, ...]
    """What each variant may cost where it does worst."""
    rankings: tuple[CellRanking, ...]
    """The ranking of each cell."""
    level: float
    weighted: bool
    """Whether cells were given weights."""
    findings: tuple[Finding, ...] = ()


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
    claims = tuple(rank(series, rules, level=strict) for series in cells if series)
    findings = tuple(
        dict.fromkeys(chain.from_iterable(ranking.findings for ranking in rankings))
    )
    usable = [
        (one, claim)
        for one, claim in zip(rankings, claims, strict=True)
        if one.variants
    ]
    tallies = _tally(usable, weights or {})
    regrets = tuple(tally.regret() for tally in tallies.values())
    chosen, sentence = _choose(
        tallies, _where(usable, planned), forbidden, rules.margin
    )
    if weights:
        sentence += f" Weights: {', '.join(f'{weight:g} for {cell}' for cell, weight in weights.items())}; else 1."
    return Recommendation(
        chosen,
        sentence,
        regrets,
        rankings,
        level,
        bool(weights),
        (*forbidden, *findings),
    )


@dataclass
class _Tally:
    """One variant's losses over the cells."""

    variant: str
    largest: float = 0.0
    where: str = ""
    bound: float = 0.0
    weighted: float = 0.0
    sure: float = 0.0
    losses: dict[str, float] = field(default_factory=dict)
    """Variants shown to be better somewhere, and the weighted loss shown against each."""

    def add(
        self, ranking: CellRanking, claim: CellRanking, label: str, weight: float
    ) -> None:
        """Count one cell."""
        if self.variant not in ranking.variants:
            self.bound = self.weighted = math.inf
            return
        for other in ranking.variants:
            if other == self.variant:
                continue
            estimate, _, high = ranking.worse(self.variant, other)
            if estimate > self.largest:
                self.largest, self.where = estimate, label
            self.bound = max(self.bound, high)
            self.weighted = max(self.weighted, weight * high if weight else 0.0)
            low = claim.worse(self.variant, other)[1]
            if low > 0:
                self.sure = max(self.sure, low)
                self.losses[other] = max(self.losses.get(other, 0.0), weight * low)

    def regret(self) -> Regret:
        """As reported."""
        bound = self.bound if math.isfinite(self.bound) else None
        return Regret(
            self.variant, self.largest, self.where, bound, self.sure, tuple(self.losses)
        )


def _tally(
    usable: Sequence[tuple[CellRanking, CellRanking]], weights: Mapping[str, float]
) -> dict[str, _Tally]:
    names = dict.fromkeys(
        chain.from_iterable(ranking.variants for ranking, _ in usable)
    )
    tallies = {name: _Tally(name) for name in names}
    several = len({ranking.metric.name for ranking, _ in usable}) > 1
    for ranking, claim in usable:
        label = f"{ranking.cell} ({ranking.metric.name})" if several else ranking.cell
        for tally in tallies.values():
            tally.add(ranking, claim, label, weights.get(ranking.cell, 1.0))
    return tallies


def _where(usable: Sequence[tuple[CellRanking, CellRanking]], planned: int) -> str:
    """Return what the sentence is about; ``measured`` where more cells were planned than can be ranked."""
    several = len({ranking.metric.name for ranking, _ in usable}) > 1
    some = "measured " if len({ranking.cell for ranking, _ in usable}) < planned else ""
    if len(usable) > 1:
        return f"any of {len(usable)} {some}{'comparisons' if several else 'cells'}"
    return f"the one {some}cell"


def _choose(
    tallies: Mapping[str, _Tally],
    where: str,
    forbidden: Sequence[Finding],
    margin: float,
) -> tuple[tuple[str, ...], str]:
    """Return the variants to choose, and the sentence; ``where`` is ``any of 12 cells``."""
    if forbidden:
        return _none(f"{forbidden[0].explanation}.")
    if not tallies:
        return _none("no cell could be ranked.")
    ordered = sorted(
        tallies.values(), key=lambda tally: (tally.weighted, tally.largest)
    )
    if why := _no_winner(ordered, where):
        return _none(why)
    first, tied = _winners(ordered, margin)
    chosen = (first, *tied)
    behind = [tally for tally in ordered if tally not in chosen]
    rivals = [
        tally
        for tally in behind
        if tally.variant in first.losses and _shown(tally) <= first.weighted
    ]
    if rivals:
        losses = ", ".join(map(_loss, (first, *rivals)))
        return _none(f"none is good everywhere ({losses}); choose by workload.")
    return tuple(tally.variant for tally in chosen), _sentence(chosen, behind, where)


def _none(why: str) -> tuple[tuple[str, ...], str]:
    return (), f"No winner yet: {why}"


def _no_winner(ordered: Sequence[_Tally], where: str) -> str:
    """Return why none can be recommended, by the bounds of their losses; empty where one can."""
    if not any(tally.losses for tally in ordered):
        cost = max(tally.bound for tally in ordered)
        names = (
            " and ".join(tally.variant for tally in ordered)
            if len(ordered) == 2
            else f"all {len(ordered)} variants"
        )
        tail = (
            f"; choosing any costs at most {_percent(cost)}" if cost < VACUOUS else ""
        )
        return f"{names} are within noise in {where.replace('any of', 'all')}{tail}."
    least = ordered[0].bound
    if not math.isfinite(least):
        return f"{ordered[0].variant} could still be slower by any amount in one cell."
    if least > max(VACUOUS, *(tally.sure for tally in ordered)):
        return (
            f"{ordered[0].variant} could still be {_percent(least)} worse in one cell."
        )
    return ""


def _winners(ordered: Sequence[_Tally], margin: float) -> tuple[_Tally, list[_Tally]]:
    """Return the first choice, and those that are level with it."""
    # Bounds that differ by less than the margin may differ by chance, so a variant without a shown loss comes first.
    close = [
        tally for tally in ordered if tally.weighted <= ordered[0].weighted + margin
    ]
    first = next((tally for tally in close if not tally.losses), ordered[0])
    return first, _level_with(
        first, [tally for tally in close if not _differ(first, tally)]
    )


def _level_with(first: _Tally, tied: Sequence[_Tally]) -> list[_Tally]:
    """Return those of ``tied`` that lose to none of them."""
    variants = {tally.variant for tally in tied}
    return [
        tally
        for tally in tied
        if tally is not first and variants.isdisjoint(tally.losses)
    ]


def _differ(first: _Tally, other: _Tally) -> bool:
    """Return whether either was shown to lose to the other."""
    return first.variant in other.losses or other.variant in first.losses


def _shown(tally: _Tally) -> float:
    """Return the greatest weighted loss that is shown."""
    return max(tally.losses.values(), default=0.0)


def _sentence(chosen: Sequence[_Tally], behind: Sequence[_Tally], where: str) -> str:
    first = ", ".join(tally.variant for tally in chosen[:-1])
    names = f"{first} or {chosen[-1].variant}" if first else chosen[-1].variant
    bound = max(tally.bound for tally in chosen)
    loss = _loss(
        max(behind, key=lambda tally: (tally.sure > 0, tally.largest)), least=True
    )
    if bound <= 0:
        return f"{names} is the best in {where.replace('any of', 'all')}; {loss}."
    if not math.isfinite(bound):
        return f"{names} is not shown to lose anywhere in {where}; {loss}."
    return f"{names} is never more than {_percent(bound)} worse than the best in {where}; {loss}."


def _loss(tally: _Tally, *, least: bool = False) -> str:
    """Return what a variant loses where it does worst; ``least``: and how much of it is shown."""
    if not tally.sure:
        most = (
            f"lose up to {_percent(tally.bound)}"
            if math.isfinite(tally.bound)
            else "lose anything"
        )
        return f"{tally.variant} may {most}, not shown"
    loss = f"{tally.variant} loses up to {_percent(tally.largest)} in {tally.where}"
    return f"{loss} (at least {_percent(tally.sure, down=True)})" if least else loss


def _percent(share: float, *, down: bool = False) -> str:
    """Return a share as ``3.1 %``: rounded so that "at most" and "at least" stay true."""
    tenths = 1000.0 * share
    return f"{(math.floor(tenths) if down else math.ceil(tenths - 1e-9)) / 10:.1f} %"
