"""Carry-over: what a trial leaves behind for the trials after it (dirty pages, an SSD's debt, a warm cache).

Assumption: a trial of the variant adds ``c`` to the next trial, ``rho c`` to the one after that, and so on; rho is the
memory. The effect on a trial is then ``c`` times its exposure, the decayed count of the variant's trials before it.
With one draw per block, exposures are random whatever the noise, so ``c`` is visible in two places: in the difference
of a block, through the difference of its two exposures, and in the mean of a block against those of its neighbours,
through the mean of the two. A memory of several trials is hardly visible in the first and well visible in the second.
The change itself is biased by c / 2 under every memory, in favour of the arm that does the damage (Jones and Kenward,
Design and Analysis of Cross-Over Trials, chapter 2, for a memory of one trial).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.special import stdtrit

Floats = NDArray[np.float64]

MEMORIES = (0.0, 0.5, 0.8)
"""Shares of a debt that are left after each further trial: it lasts the next trial only, about two trials, or about
five. Any other memory is close to one of these."""

LEVEL = 0.95
"""Level, at every look, at which the intervals of all memories hold together."""

FAR = 4.0
"""Robust standard deviations beyond which a value is drawn in: one stall must not pass for a carry-over."""

FEWEST = 6
"""Blocks below which no carry-over is estimated."""

NEIGHBOURS = 3
"""Blocks before and after a block whose mean is its level: a drift must not pass for a carry-over."""

LAGS = 4
"""Blocks over which the products of exposure and noise may be correlated."""

CLEAR = 20.0
"""A change is its own where that makes the blocks more likely than a carry-over that made all of it, by a
log-likelihood of this value over their number: odds of 9 to 1 after 9 blocks, 2.5 after 22, 1.3 after 80. Few blocks
show little of a carry-over; after many, only a change that still leans to it is in doubt."""

LEANS = 0.7
"""A carry-over within this many standard errors of 0 does not count against a change: where almost nothing is known
about it, it would withhold every change."""

LATEST = 4
"""The last trials of a variant in a row that show where its state is heading; earlier ones hold short-lived effects."""

NORMAL_MAD = 1.4826
NORMAL_MEAN = 1.2533
"""Ratios of a normal distribution's standard deviation to its median absolute deviation, and to its mean one."""


@dataclass(frozen=True)
class Carry:
    """Per memory: ``value`` is the log-ratio by which a trial right after the variant is worse than one after the
    baseline, ``error`` its standard error, ``share`` the part of it that lies in the change (about -1/2). The half
    width of its interval is ``quantile`` such errors."""

    value: Floats
    error: Floats
    share: Floats
    quantile: float = 1.0

    @property
    def half(self) -> Floats:
        """Return the half width of its interval."""
        return np.asarray(self.quantile * self.error)

    @property
    def known(self) -> bool:
        """Return whether the orders determine it at all."""
        return bool(np.isfinite(self.half).all())

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Under which memories the interval excludes 0."""
        return np.asarray(np.abs(self.value) > self.half)

    @property
    def best(self) -> int:
        """Return the memory that shows it best; that of one trial where none shows it."""
        if not self.shown.any():
            return 0
        return int(np.argmax(np.abs(self.value) / np.maximum(self.half, 1e-12)))

    @property
    def low(self) -> float:
        """Return the lower end of the intervals of all memories."""
        return float(np.min(self.value - self.half))

    @property
    def high(self) -> float:
        """Their upper end."""
        return float(np.max(self.value + self.half))

    def adjusted(self, change: float) -> Floats:
        """Return the change without the part that the carry-over added, under each memory."""
        return np.asarray(change - self.share * self.value)


@dataclass(frozen=True)
class Levels:
    """The mean of every block, positive = worse; per memory the mean exposure of its two trials; and how many trials
    ran before it, infinitely many where what the first trial found does not matter."""

    level: Floats
    exposure: Floats
    before: Floats


def carry_over(
    d: Floats,
    contrast: Floats,
    share: Floats,
    levels: Levels | None = None,
    *,
    clean: bool = False,
) -> Carry:
    """Return the carry-over in the differences ``d`` of blocks in run order, positive = worse, and in their ``levels``.

    ``contrast`` has, per memory (all of ``MEMORIES`` or the first ones) and block, the difference of the exposures of the variant's and the baseline's trial;
    ``share`` is its mean over all hosts. Both estimates are weighted by their precision; without levels the first
    stands alone. The machine's state before the first trial is not known, so what decays from there is projected out.
    ``clean``: stalls in ``d`` are drawn in already.
    """
    n = len(d)
    if n < FEWEST or np.any(np.ptp(contrast, axis=1) < 1e-9):
        return Carry(np.zeros(len(share)), np.full(len(share), np.inf), share)
    value, variance = _slope(d if clean else drawn_in(d), contrast)
    if levels is not None:
        memory = np.array(MEMORIES[: len(share)])
        start = _detrended(memory[:, None] ** levels.before)
        rows = _without(_detrended(levels.level)[None, :], start)
        y = np.array([drawn_in(row) for row in rows])
        other, wide = _slope(y, _without(_detrended(levels.exposure), start), lags=LAGS)
        weight = variance / np.maximum(variance + wide, 1e-30)
        value = value + weight * (other - value)
        variance = (1.0 - weight) * variance
    quantile = _t_quantile(n - 2, 1.0 - (1.0 - LEVEL) / 2 / len(share))
    return Carry(value, np.sqrt(variance), share, quantile)


def own_change(
    change: Floats, noise: Floats | float, carried: Floats, error: Floats, blocks: int
) -> NDArray[np.bool_]:
    """Where a ``change``, known to ``noise``, is the variant's own and not made by what is ``carried``, known to
    ``error``; both positive in the direction of the change.

    If carry-over made all of it, both estimate the same number; if the change is the variant's own, the carried part is
    0. Compared are the likelihoods of these two differences, by Student's t.
    """
    apart = np.maximum(change - carried, 0.0) / np.maximum(
        np.hypot(noise, error), 1e-12
    )
    seen = np.maximum(carried, 0.0) / np.maximum(error, 1e-12)
    spare = max(blocks - 2, 1)
    likelier = (
        (spare + 1) / 2 * (np.log1p(apart**2 / spare) - np.log1p(seen**2 / spare))
    )
    return np.asarray((likelier >= CLEAR / blocks) | (seen <= LEANS))


@dataclass(frozen=True)
class Ahead:
    """Per memory what is still to come of the variant's state after its counted trial, less what is of the baseline's:
    0 where both states are reached. Log-ratio, positive = worse."""

    value: Floats
    half: Floats

    @property
    def shown(self) -> bool:
        """Return whether the interval under some memory excludes 0: the state is not reached."""
        return bool((np.abs(self.value) > self.half).any())

    def deployed(self, change: float) -> Floats:
        """The change once the state is reached, under each memory."""
        return np.asarray(change + self.value)


def ahead_of(rows: Floats) -> Ahead | None:
    """Return what is still to come, from its values in single blocks, one row for each memory; t intervals that hold
    together. None for few blocks."""
    n = rows.shape[1]
    if n < FEWEST:
        return None
    d = np.array([drawn_in(row) for row in rows])
    value, error = d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(n)
    # After one or two uncounted trials all memories read the same two trials: one interval, not one each.
    different = len(np.unique(np.round(value[error > 0] / error[error > 0], 6)))
    quantile = _t_quantile(n - 1, 1.0 - (1.0 - LEVEL) / 2 / max(1, different))
    return Ahead(value, quantile * error)


def approach(uncounted: int) -> Floats:
    """Weights, one row for each memory, of a variant's last trials in a row, the counted one last: their sum is what is
    still to come after it.

    What is missing of a state shrinks by the memory from trial to trial, so least squares on its powers tell how much
    is. Of more than two trials the first after the switch is left out: what lasts one trial is not on its way.
    """
    trials = min(LATEST, max(2, uncounted))
    weights = np.zeros((len(MEMORIES), trials))
    for row, memory in enumerate(MEMORIES):
        if memory > 0.0:
            missing = memory ** np.arange(1.0 - trials, 1.0)
            missing -= missing.mean()
            weights[row] = -missing / np.sum(missing**2)
    return weights


def direct_bias(uncounted: int) -> Floats:
    """Per memory what carry-over puts into the difference of the two trials in the middle of a superblock, as a
    multiple of what is still to come. Both follow the same arm, the second at a distance of one trial more from what
    was before."""
    memory = np.array(MEMORIES)
    return np.asarray(-(1.0 - memory) / (3.0 - memory ** (uncounted + 1)))


def _t_quantile(freedom: int, probability: float) -> float:
    return float(stdtrit(freedom, probability))


def drawn_in(values: Floats) -> Floats:
    """``values`` with those far from the median clipped (winsorised) to ``FAR`` robust standard deviations."""
    middle = np.median(values)
    away = np.abs(values - middle)
    # If more than half are equal their median deviation is 0; then the mean deviation is the scale (Iglewicz 1993).
    reach = FAR * (NORMAL_MAD * np.median(away) or NORMAL_MEAN * away.mean())
    return np.asarray(np.clip(values, middle - reach, middle + reach))


def _slope(y: Floats, x: Floats, lags: int = 0) -> tuple[Floats, Floats]:
    """Least squares of ``y``, or of each of its rows, on each row of ``x``, and the variances of the slopes: from the
    autocovariances of both up to ``lags`` (Bartlett 1935). Assumption: noise and random exposures are independent."""
    y, x = (rows - rows.mean(axis=-1, keepdims=True) for rows in (y, x))
    power = np.maximum(np.sum(x * x, axis=1), 1e-12)
    value = np.sum(x * y, axis=1) / power
    left = y - value[:, None] * x
    spread = np.sum(left * left, axis=1)
    together = power * spread
    for lag in range(1, lags + 1):
        pairs = np.sum(x[:, lag:] * x[:, :-lag], axis=1) * np.sum(
            left[:, lag:] * left[:, :-lag], axis=1
        )
        together = together + 2 * pairs
    together = np.maximum(together, power * spread / 2)
    return value, together / power**2 / (x.shape[1] - 2 - 2 * (lags > 0))


def _without(rows: Floats, nuisance: Floats) -> Floats:
    """``rows`` without their projections on those of ``nuisance``."""
    part = np.sum(rows * nuisance, axis=1, keepdims=True) / np.maximum(
        np.sum(nuisance**2, axis=1, keepdims=True), 1e-12
    )
    return np.asarray(rows - part * nuisance)


def _detrended(values: Floats) -> Floats:
    """Block by block what differs from the mean of the neighbourhood."""
    n = values.shape[-1]
    sums = np.cumsum(
        np.concatenate([np.zeros((*values.shape[:-1], 1)), values], axis=-1), axis=-1
    )
    at = np.arange(n)
    first, last = np.maximum(at - NEIGHBOURS, 0), np.minimum(at + NEIGHBOURS + 1, n)
    return np.asarray(values - (sums[..., last] - sums[..., first]) / (last - first))


def exposures(left: Sequence[float]) -> Floats:
    """Per memory the exposures of trials in run order; ``left`` is 1 for a trial of the variant, 0 for one of the
    baseline, 1/2 for any other. Before the first they are in the middle: a start from 0 would pass for a trend."""
    debts = np.empty((len(MEMORIES), len(left)))
    for row, memory in enumerate(MEMORIES):
        now = 0.5 / (1.0 - memory)
        for at, exposure in enumerate(left):
            debts[row, at] = now
            now = memory * now + exposure
    return debts


def exposures_of(baseline_first: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Exposures of the baseline's and the variant's trials in blocks that follow each other without other trials
    between them, from their orders alone; shape (memories, blocks)."""
    n = len(baseline_first)
    arms = np.column_stack([~baseline_first, baseline_first]).ravel()
    debts = exposures(arms.astype(float).tolist()).reshape(len(MEMORIES), n, 2)
    early, late = debts[:, :, 0], debts[:, :, 1]
    return np.where(baseline_first, early, late), np.where(baseline_first, late, early)
