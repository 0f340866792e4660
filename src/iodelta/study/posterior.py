"""The probability of each place on the line of a search to be that of the change."""

from __future__ import annotations

import msgspec
import numpy as np

from iodelta.bisect.driver import Searched
from iodelta.bisect.model import Culprit
from iodelta.stats.bisection import Evidence

BUCKETS = 64
"""Maximum number of bars of one part of the line."""


class Bar(msgspec.Struct, frozen=True):
    """Probability that the change lies at one of the items ``first .. last``, by place."""

    first: int
    """Place of its first item on the line."""
    last: int
    """Place of its last item on the line."""
    share: float
    """Probability that the change lies here."""


def posteriors(
    replay: Searched, culprits: tuple[Culprit, ...]
) -> tuple[tuple[Bar, ...], ...]:
    """For every culprit, or for the search that goes on, the posterior over its part of the line."""
    return tuple(
        _bars(replay, first, last) for first, last in _ranges(replay, culprits)
    )


def _bars(replay: Searched, first: int, last: int) -> tuple[Bar, ...]:
    evidence = _evidence(replay, first, last)
    cuts = np.unique(
        np.linspace(0, last - first, min(BUCKETS, last - first) + 1)
        .round()
        .astype(np.int64)
    )
    shares = np.diff(evidence.posterior().at_or_below(cuts, evidence.prior))
    return tuple(
        Bar(first + int(low) + 1, first + int(high), float(share))
        for low, high, share in zip(cuts[:-1], cuts[1:], shares, strict=True)
    )


def drifts(replay: Searched, culprits: tuple[Culprit, ...]) -> bool:
    """Return whether the level drifts over time by itself, judged by the first part of the line; needs 20 runs there."""
    ranges = _ranges(replay, culprits)
    if not ranges:
        return False
    evidence = _evidence(replay, *ranges[0])
    return evidence.runs >= 20 and evidence.posterior().drifts


def _evidence(replay: Searched, first: int, last: int) -> Evidence:
    """The runs of one part of the line."""
    search = replay.search
    least, floor = search.rules.margin / 2, search.rules.exact
    return search.store.evidence(search.line, first, last, least=least, floor=floor)


def _ranges(replay: Searched, culprits: tuple[Culprit, ...]) -> list[tuple[int, int]]:
    """For every culprit the part of the line in which it is the only one; else the part that is being searched."""
    search = replay.search
    items = search.line.items
    places = [items.index((*culprit.via, culprit.item)[0]) for culprit in culprits]
    ranges = []
    for place in places:
        before = max((other for other in places if other < place), default=0)
        after = min((other for other in places if other > place), default=len(items))
        ranges.append((before, after - 1))
    if not ranges and replay.outcome is None and search.where[0] is search.line:
        ranges.append(search.where[1:])
    return ranges
