"""A machine's noise and its consequences: false-alarm bounds, the smallest visible change, noise by source."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from iodelta.stats.carry import drawn_in
from iodelta.stats.effect import log_ratios
from iodelta.stats.special import bdtrc, betaincinv, nctdtr, stdtrit

Floats = NDArray[np.float64]

FITS = 4
"""Fits of a line, each to values whose outliers from the previous line are drawn in."""


class Noise(msgspec.Struct, frozen=True):
    """Sources of noise in one A/A stream, as sd of the logarithm of one run: inside a block (what pairing leaves),
    from block to block (what pairing removes), and ``drift`` over the whole stream with its sign.
    ``block_sd`` is the sd of a block's log-ratio, ``pairing`` what unpaired analysis would pay: a factor on blocks."""

    within: float
    between: float
    drift: float
    block_sd: float
    """Standard deviation of a block's log-ratio."""
    pairing: float
    """How many times as many blocks an unpaired analysis would take."""
    blocks: int


def false_alarm_bound(alarms: int, comparisons: int, confidence: float = 0.95) -> float:
    """Return one-sided Clopper-Pearson upper bound of the false-alarm rate after ``alarms`` in ``comparisons`` A/A
    comparisons: 59 clean ones bound it below 5 %. Raises ValueError for impossible counts."""
    if not 0 <= alarms <= comparisons or comparisons < 1:
        raise ValueError(
            "alarms lie between 0 and the number of comparisons, which is at least 1"
        )
    if alarms == comparisons:
        return 1.0
    return float(betaincinv(alarms + 1, comparisons - alarms, confidence))


def alarms_beyond(
    alarms: int, comparisons: int, nominal: float, alpha: float = 0.05
) -> bool:
    """Return whether more A/A comparisons were called a change than a true rate of ``nominal`` explains (one-sided
    binomial test at ``alpha``). Raises ValueError for impossible counts."""
    if not 0 <= alarms <= comparisons:
        raise ValueError("alarms lie between 0 and the number of comparisons")
    return alarms > 0 and float(bdtrc(alarms - 1, comparisons, nominal)) <= alpha


def power_of(change: float, sd: float, blocks: int, alpha: float = 0.05) -> float:
    """Chance that a two-sided paired t test at ``alpha`` sees a log-ratio of ``change`` at block sd ``sd``. The
    signed-rank test needs about 5 % more blocks under normal noise and fewer under heavy tails."""
    if blocks < 2:
        return 0.0
    if sd <= 0.0:
        return 1.0 if change else alpha
    critical = float(stdtrit(blocks - 1, 1.0 - alpha / 2))
    shift = abs(change) / sd * math.sqrt(blocks)
    seen = (
        1.0
        - float(nctdtr(blocks - 1, shift, critical))
        + float(nctdtr(blocks - 1, shift, -critical))
    )
    if not math.isfinite(seen):
        return 1.0
    return min(1.0, max(0.0, seen))


def smallest_change(
    blocks: int, sd: float, *, power: float = 0.9, alpha: float = 0.05
) -> float | None:
    """Smallest log-ratio that ``blocks`` blocks show with ``power``; None below two blocks."""
    if blocks < 2:
        return None
    if sd <= 0.0:
        return 0.0
    low, high = 0.0, sd
    while power_of(high, sd, blocks, alpha) < power:
        high *= 2.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (
            (low, middle)
            if power_of(middle, sd, blocks, alpha) >= power
            else (middle, high)
        )
    return high


def noise_sources(first: ArrayLike, second: ArrayLike) -> Noise:
    """Noise by source from an A/A stream: the values (> 0) of the first and the second run of each block, in run
    order. Raises ValueError with fewer than 4 blocks.

    Between-block variance is that of block means after a straight line is taken out, less half the within-block
    variance, floored at 0. A rare stall is drawn in: it costs the verdict's rank test one rank, whatever its size, but
    would dominate a standard deviation or a line.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    d = drawn_in(log_ratios(a, b, higher_is_better=False))
    n = len(d)
    if n < 4:
        raise ValueError("noise by source needs 4 blocks or more")
    block_sd = float(d.std(ddof=1))
    within2 = block_sd**2 / 2
    means = 0.5 * (np.log(a) + np.log(b))
    slope, left = _line(means)
    between2 = max(0.0, float(left @ left) / (n - 2) - within2 / 2)
    drift = slope * (n - 1)
    unpaired = within2 + between2 + drift**2 / 12
    pairing = unpaired / within2 if within2 > 0.0 else math.inf
    return Noise(math.sqrt(within2), math.sqrt(between2), drift, block_sd, pairing, n)


def _line(values: Floats) -> tuple[float, Floats]:
    """Return the slope of a straight line through ``values``, and what is left of them; values far from it are drawn
    in.
    """
    t = np.arange(len(values)) - (len(values) - 1) / 2
    near = drawn_in(values)
    for _ in range(FITS):
        slope = float(t @ near / (t @ t))
        line = near.mean() + slope * t
        near = line + drawn_in(values - line)
    return slope, np.asarray(near - line)
