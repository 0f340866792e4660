"""The part of the difference between the ends that the named culprits do not explain."""

from __future__ import annotations

import math

import msgspec

from iodelta.bisect.model import Effect, Rules
from iodelta.bisect.search import Search, stretches
from iodelta.stats.special import stdtrit


class Remainder(msgspec.Struct, frozen=True):
    """The difference between the ends, and what is left of it. Logarithms, positive is worse."""

    whole: Effect
    left: Effect
    """``whole`` without the steps of all culprits."""
    rises: tuple[tuple[str, str], ...]
    """The stretches between culprits, by their ends, in which the level is seen to rise; both ends where it is not
    known in which. Empty unless something that matters is left for certain."""
    possible: bool
    """Whether a step as large as the margin is not excluded."""


def remainder(search: Search) -> Remainder | None:
    """Return the difference between the ends, and what the named culprits leave of it, as log-ratios; None if nothing
    was named, or the ends were not both measured.

    Half widths of the intervals are combined as root sum of squares, which assumes that the errors of culprits are
    independent.
    """
    line, culprits = search.line, search.culprits
    whole = _step(search, line.items[0], line.items[-1])
    if whole is None or not culprits:
        return None
    size = whole.size - sum(culprit.effect.size for culprit in culprits)
    halves = [_half(whole), *(_half(culprit.effect) for culprit in culprits)]
    left = _around(size, math.hypot(*halves))
    rises: list[tuple[str, str]] = []
    if _matters(left, search.rules):
        for first, last in stretches(line, culprits):
            step = _step(search, line.items[first], line.items[last])
            if step is not None and _matters(step, search.rules):
                rises.append((line.items[first], line.items[last]))
        rises = rises or [(line.items[0], line.items[-1])]
    return Remainder(whole, left, tuple(rises), left.high >= search.rules.margin)


def _matters(effect: Effect, rules: Rules) -> bool:
    """Return whether it is certainly more than nothing, and as large as what is looked for."""
    return effect.low > 0 and effect.size >= rules.margin / 2


def _step(search: Search, low: str, high: str) -> Effect | None:
    step = search.store.step([low], [high])
    if step is None:
        return None
    if search.rules.exact:
        return _around(step.size, search.rules.exact)
    if step.freedom < 2:
        return None
    return _around(step.size, step.error * float(stdtrit(step.freedom, 0.975)))


def _half(effect: Effect) -> float:
    return (effect.high - effect.low) / 2


def _around(size: float, half: float) -> Effect:
    return Effect(size, size - half, size + half)
