"""Where on the line of a search the change probably lies."""

from __future__ import annotations

import msgspec
import numpy as np

from iodelta.bisect.driver import Searched
from iodelta.bisect.model import Culprit

BUCKETS = 64
"""Bars of one part of the line, at most."""


class Bar(msgspec.Struct, frozen=True):
    """Probability that the change lies at one of the items ``first .. last``, by place."""

    first: int
    """Place of its first item on the line."""
    last: int
    """Place of its last item on the line."""
    share: float
    """Probability that the change lies here."""


def posteriors(
    at: Searched, culprits: tuple[Culprit, ...]
) -> tuple[tuple[Bar, ...], ...]:
    """For every culprit, or for the search that goes on, the posterior over its part of the line."""
    return tuple(_bars(at, first, last) for first, last in _ranges(at, culprits))


def _bars(at: Searched, first: int, last: int) -> tuple[Bar, ...]:
    search = at.search
    least = search.rules.margin / 2
    evidence = search.store.evidence(
        search.line, first, last, least=least, floor=search.rules.exact
    )
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


def drifts(at: Searched, culprits: tuple[Culprit, ...]) -> bool:
    """Whether the level walks over time by itself, by the first part of the line that says something."""
    ranges = _ranges(at, culprits)
    if not ranges:
        return False
    search = at.search
    least = search.rules.margin / 2
    evidence = search.store.evidence(
        search.line, *ranges[0], least=least, floor=search.rules.exact
    )
    return evidence.runs >= 20 and evidence.posterior().drifts


def _ranges(at: Searched, culprits: tuple[Culprit, ...]) -> list[tuple[int, int]]:
    """For every culprit the part of the line in which it is the only one; else the part that is searched now."""
    search = at.search
    places = [
        search.line.items.index((*culprit.via, culprit.item)[0]) for culprit in culprits
    ]
    ranges = []
    for place in places:
        before = max((p for p in places if p < place), default=0)
        after = min(
            (p - 1 for p in places if p > place), default=len(search.line.items) - 1
        )
        ranges.append((before, after))
    if not ranges and at.outcome is None and search.where[0] is search.line:
        ranges.append(search.where[1:])
    return ranges
