"""The shift function: how far each percentile of latency moved, from the middle of the distribution to its tail.

One curve of log-quantile differences per block, one effect per percentile over the blocks (Doksum 1974; the
hierarchical form of Rousselet, Pernet and Wilcox 2017), and a band that holds for all percentiles at once. The
centre is the Hodges-Lehmann estimate, as everywhere: the band's p50 is the verdict on median latency, band aside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
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
        half = (
            (self.high - self.low) / 2
            if self.low is not None and self.high is not None
            else math.inf
        )
        return max(2 * self.resolution, half)

    @property
    def moved(self) -> bool:
        """Return whether the change is reportable: interval without 0, and larger than the counts' own graininess."""
        excludes_zero = (
            self.low is not None
            and self.high is not None
            and not self.low <= 0.0 <= self.high
        )
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
    """Return the shift function of two arms measured in the same blocks: one histogram per arm and block, in the same
    order.

    A percentile for which some run holds fewer than 100 samples beyond it is compared on pooled counts where these
    suffice, and refused where they do not.
    """
    blocks = len(baseline)
    if blocks != len(variant):
        return ShiftFunction(
            (),
            (
                Finding(
                    "shift.unequal",
                    "warning",
                    place,
                    f"{blocks} and {plural(len(variant), 'block')}",
                    "compare whole blocks",
                ),
            ),
            level,
            0,
        )
    if blocks < tails.MIN_BLOCKS:
        return ShiftFunction((), (tails.too_few_blocks(blocks, place),), level, blocks)
    arms = (baseline, variant)
    single = [
        p for p in grid if _each_run_has(baseline, p) and _each_run_has(variant, p)
    ]
    tables = [tails.tabulate(arm) for arm in arms]
    shifts: dict[float, Shift] = {}
    if single:
        shifts = {
            shift.p: shift for shift in _by_run(arms, tables, single, level, seed)
        }
    refused: list[Finding] = []
    for p in grid:
        if p in shifts:
            continue
        totals = [Histogram.merged(arm) for arm in arms]
        refusals = [tails.refusal(total, p, place=place) for total in totals]
        reasons = [refusal for refusal in refusals if refusal is not None]
        if reasons:
            refused.append(reasons[0])
        else:
            shifts[p] = _pooled(arms, tables, p, level, seed)
    return ShiftFunction(
        tuple(shifts[p] for p in sorted(shifts)), tuple(refused), level, blocks
    )


Arms = tuple[Sequence[Histogram], Sequence[Histogram]]

Table = tuple[Floats, Floats, Floats]
"""What ``tails.tabulate`` returns."""


def _each_run_has(arm: Sequence[Histogram], p: float) -> bool:
    """Return whether every run of an arm has samples enough for its own percentile."""
    return all(tails.refusal(run, p) is None for run in arm)


def _by_run(
    arms: Arms, tables: Sequence[Table], grid: Sequence[float], level: float, seed: int
) -> Iterator[Shift]:
    """Yield the shift of each percentile, from the percentiles of each run, with simultaneous intervals."""
    baseline, variant = (_log_quantiles(table, grid) for table in tables)
    for p, shift_at in zip(
        grid, simultaneous(variant - baseline, level=level, seed=seed), strict=True
    ):
        low, high = (
            end if math.isfinite(end) else None for end in (shift_at.low, shift_at.high)
        )
        yield Shift(p, shift_at.value, low, high, _resolution(arms, p), pooled=False)


def _log_quantiles(table: Table, grid: Sequence[float]) -> Floats:
    logs: Floats = np.log(np.array([tails.quantiles(*table, p) for p in grid]))
    return logs


def _pooled(
    arms: Arms, tables: Sequence[Table], p: float, level: float, seed: int
) -> Shift:
    """Return the shift of one percentile, from the counts of all runs together."""
    blocks = len(arms[0])
    # Both arms draw the same blocks, so what a block did to both cancels.
    weights = tails.resampling_weights(blocks, seed)
    drawn: list[Floats] = []
    for counts, low, high in tables:
        drawn.append(np.log(tails.quantiles(weights @ counts, low, high, p)))
    lower, upper = tails.expanded_interval(drawn[1] - drawn[0], blocks, level)
    before, after = (Histogram.merged(arm).quantile(p) for arm in arms)
    return Shift(
        p,
        math.log(after / before),
        float(lower),
        float(upper),
        _resolution(arms, p),
        pooled=True,
    )


def _resolution(arms: Sequence[Sequence[Histogram]], p: float) -> float:
    known = [tails.percentile(Histogram.merged(arm), p) for arm in arms]
    return math.hypot(
        *(
            percentile.resolution
            for percentile in known
            if isinstance(percentile, tails.Percentile)
        )
    )
