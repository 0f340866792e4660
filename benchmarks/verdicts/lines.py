"""A measure of a scenario against its bound, with exact limits of what chance may have done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit
from scipy.stats import beta, binom

from benchmarks.verdicts.measures import MEANS, VALUES, Tally
from benchmarks.verdicts.scenarios import Bound, Scenario

CHANCE = 0.05
"""One-sided level of the limits."""


@dataclass(frozen=True)
class Line:
    """One measure of one scenario against its bound. ``low`` and ``high`` are one-sided limits."""

    measure: str
    value: float
    low: float
    high: float
    count: int
    bound: Bound | None

    @property
    def beyond(self) -> bool:
        """Whether the value lies beyond its bound, by chance or not."""
        least, most = (self.bound.least, self.bound.most) if self.bound else (None, None)
        return (most is not None and self.value > most) or (least is not None and self.value < least)

    @property
    def held(self) -> str:
        """``yes`` where the limits lie inside the bound, ``FAILS`` where one lies beyond it, ``?`` where chance may
        have put the value on either side. A bound of "never" holds while it was never seen."""
        if self.bound is None:
            return ""
        if math.isnan(self.value):
            return "no data"
        least, most = self.bound.least, self.bound.most
        if most == 0.0:
            return "FAILS" if self.low > 0.0 else "yes"
        if (most is not None and self.low > most) or (least is not None and self.high < least):
            return "FAILS"
        inside = (most is None or self.high <= most) and (least is None or self.low >= least)
        return "yes" if inside else "?"


def lines_of(scenario: Scenario, tally: Tally, chance: float = CHANCE) -> list[Line]:
    """All measures of a scenario that it has a bound for or shows."""
    bounds = {bound.measure: bound for bound in scenario.bounds}
    return [_line(name, tally, bounds.get(name), chance) for name in dict.fromkeys((*bounds, *scenario.shown))]


def _line(measure: str, tally: Tally, bound: Bound | None, chance: float) -> Line:
    if measure in VALUES:
        values = tally.values.get(measure, [])
        return Line(measure, *middle(values, chance), len(values), bound)
    if measure in MEANS:
        values = tally.values.get(measure, [])
        return Line(measure, *mean(values, chance), len(values), bound)
    hits, known = tally.rates.get(measure, (0, 0))
    if not known:
        return Line(measure, math.nan, math.nan, math.nan, 0, bound)
    return Line(measure, hits / known, *limits(hits, known, chance), known, bound)


def middle(values: Sequence[float], chance: float = CHANCE) -> tuple[float, float, float]:
    """The median and its distribution-free limits, each beyond the truth with at most probability ``chance``."""
    if not values:
        return math.nan, math.nan, math.nan
    ordered = np.sort(values)
    below = int(binom.ppf(chance, len(ordered), 0.5))
    low, high = (ordered[below - 1], ordered[-below]) if below else (-math.inf, math.inf)
    return float(np.median(ordered)), float(low), float(high)


def mean(values: Sequence[float], chance: float = CHANCE) -> tuple[float, float, float]:
    """The mean and its limits by Student's t."""
    if len(values) < 2:
        return (values[0] if values else math.nan), -math.inf, math.inf
    centre, error = float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))
    reach = error * float(stdtrit(len(values) - 1, 1 - chance))
    return centre, centre - reach, centre + reach


def limits(hits: int, count: int, chance: float = CHANCE) -> tuple[float, float]:
    """Exact one-sided limits of a rate (Clopper and Pearson), each beyond the truth with probability ``chance``."""
    low = float(beta.ppf(chance, hits, count - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - chance, hits + 1, count - hits)) if hits < count else 1.0
    return low, high
