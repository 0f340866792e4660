"""The shift function: how far each percentile of latency moved, from the middle of the distribution to its tail.

One curve of log-quantile differences per block, one effect per percentile over the blocks (Doksum 1974; the
hierarchical form of Rousselet, Pernet and Wilcox 2017), and a band that holds for all percentiles at once. The
centre is the Hodges-Lehmann estimate, as everywhere: the band's p50 is the verdict on median latency, band aside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats import tails
from iodelta.stats.simultaneous import simultaneous
from iodelta.trial import Finding, Histogram

Floats = NDArray[np.float64]

GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


class Shift(msgspec.Struct, frozen=True):
    """How far one percentile moved: log(variant / baseline), positive is slower; a bound is None with too few blocks.

    ``resolution`` is what the counts of all blocks together can tell apart (both arms). ``pooled`` percentiles come
    from counts summed over blocks, because single runs hold too few samples; their interval stands alone and is not
    part of the simultaneous band.
    """

    p: float
    change: float
    low: float | None
    high: float | None
    resolution: float
    pooled: bool
    """Whether it comes from counts summed over blocks; its interval then stands alone."""

    @property
    def smallest(self) -> float:
        """The smallest effect this percentile could have shown: twice its resolution or half its interval."""
        half = (self.high - self.low) / 2 if self.low is not None and self.high is not None else math.inf
        return max(2 * self.resolution, half)

    @property
    def moved(self) -> bool:
        """Whether the change is reportable: interval without 0, and larger than the counts' own graininess."""
        excludes_zero = self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high
        return excludes_zero and abs(self.change) >= 2 * self.resolution


class ShiftFunction(msgspec.Struct, frozen=True):
    """The percentiles that can be compared, in rising order, and the reasons for those that cannot."""

    shifts: tuple[Shift, ...]
    """Percentiles that can be compared, in rising order."""
    refused: tuple[Finding, ...]
    """Why other percentiles cannot be compared."""
    level: float
    blocks: int


def shift_function(
    baseline: Sequence[Histogram],
    variant: Sequence[Histogram],
    *,
    grid: Sequence[float] = GRID,
    level: float = 0.95,
    seed: int,
    place: str = "",
) -> ShiftFunction:
    """The shift function of two arms measured in the same blocks: one histogram per arm and block, in the same order.

    A percentile for which some run holds fewer than 100 samples beyond it is compared on pooled counts where these
    suffice, and refused where they do not.
    """
    blocks = len(baseline)
    if blocks != len(variant):
        return _nothing("shift.unequal", f"{blocks} and {len(variant)} blocks", "compare whole blocks", level, place)
    if blocks < tails.MIN_BLOCKS:
        return ShiftFunction((), (tails.too_few_blocks(blocks, place),), level, blocks)
    arms = (baseline, variant)
    single = [p for p in grid if all(tails.refusal(run, p) is None for arm in arms for run in arm)]
    counts = [tails.tabulate(arm) for arm in arms]
    shifts: dict[float, Shift] = {}
    refused: list[Finding] = []
    if single:
        logs = [np.log(np.array([tails.quantiles(*arm, p) for p in single])) for arm in counts]
        for p, found in zip(single, simultaneous(logs[1] - logs[0], level=level, seed=seed), strict=True):
            low, high = (end if math.isfinite(end) else None for end in (found.low, found.high))
            shifts[p] = Shift(p, found.value, low, high, _resolution(arms, p), pooled=False)
    for p in grid:
        if p in shifts:
            continue
        merged = [Histogram.merged(arm) for arm in arms]
        why = next((why for total in merged if (why := tails.refusal(total, p, place=place)) is not None), None)
        if why is not None:
            refused.append(why)
            continue
        # Both arms draw the same blocks, so what a block did to both cancels.
        weights = tails.resampling_weights(blocks, seed)
        drawn = [np.log(tails.quantiles(weights @ arm[0], arm[1], arm[2], p)) for arm in counts]
        lower, upper = tails.expanded_interval(drawn[1] - drawn[0], blocks, level)
        change = math.log(merged[1].quantile(p) / merged[0].quantile(p))
        shifts[p] = Shift(p, change, float(lower), float(upper), _resolution(arms, p), pooled=True)
    return ShiftFunction(tuple(shifts[p] for p in sorted(shifts)), tuple(refused), level, blocks)


def _resolution(arms: Sequence[Sequence[Histogram]], p: float) -> float:
    known = [tails.percentile(Histogram.merged(arm), p) for arm in arms]
    return math.hypot(*(one.resolution for one in known if isinstance(one, tails.Percentile)))


def _nothing(rule: str, what: str, remedy: str, level: float, place: str) -> ShiftFunction:
    return ShiftFunction((), (Finding(rule, "warning", place, what, remedy),), level, 0)
