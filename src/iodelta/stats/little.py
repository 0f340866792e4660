"""Little's law: I/Os in flight = IOPS x mean latency. Shows where two changes are one effect, seen twice.

In a load that keeps ``iodepth`` x jobs I/Os in flight, latency rises by exactly what IOPS fall. Only where the product
changes did two things happen (Little 1961; it holds for all distributions).
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from iodelta.stats.effect import Estimate, hodges_lehmann

Effects = Literal["one", "two", "inconclusive"]


class Together(msgspec.Struct, frozen=True):
    """Whether an IOPS change and a latency change are ``one`` effect or ``two``.

    ``excess`` is the log change of I/Os in flight: latency's rise beyond what IOPS lost; None bounds: too few blocks.
    """

    effects: Effects
    """Whether both changes are one effect or two."""
    excess: float
    """Log change of I/Os in flight: latency's rise beyond what IOPS lost."""
    low: float | None
    high: float | None
    phrase: str


def together(
    worse_iops: ArrayLike,
    worse_latency: ArrayLike,
    *,
    margin: float,
    level: float = 0.95,
) -> Together:
    """Return one effect or two, from the block log-ratios of IOPS and of mean latency, both signed so that positive is
    worse.

    One: the change of I/Os in flight lies within +-``margin``. Two: it lies wholly on one side of 0 and reaches the
    margin. Raises ValueError for blocks that do not match or are not finite.
    """
    iops, latency = (
        np.asarray(worse_iops, dtype=float),
        np.asarray(worse_latency, dtype=float),
    )
    if iops.shape != latency.shape:
        raise ValueError("IOPS and latency need the same blocks")
    change = hodges_lehmann(latency - iops, level)
    limit = math.log1p(margin)
    if -limit < change.low and change.high < limit:
        return _together(
            "one",
            change,
            "the latency change is the IOPS change seen again: as many I/Os in flight",
        )
    if change.low > 0:
        return _together(
            "two",
            change,
            "IOPS and latency moved apart: more I/Os were in flight than before",
        )
    if change.high < 0:
        return _together(
            "two",
            change,
            "IOPS and latency moved apart: fewer I/Os were in flight than before",
        )
    return _together(
        "inconclusive",
        change,
        "it is open whether the number of I/Os in flight changed too",
    )


def _together(effects: Effects, change: Estimate, phrase: str) -> Together:
    low, high = (
        end if math.isfinite(end) else None for end in (change.low, change.high)
    )
    return Together(effects, change.value, low, high, phrase)
