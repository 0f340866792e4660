"""Little's law: I/Os in flight = IOPS x mean latency. Shows one effect that is seen twice, and impossible numbers.

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
from iodelta.trial import Direction, Finding, Quantity, Trial

Effects = Literal["one", "two", "inconclusive"]

SLACK = 0.02
"""How far the product may miss the depth: fio counts the I/Os of the first and last moment on one side only."""


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


def in_flight(trial: Trial) -> Quantity | Finding:
    """Mean I/Os in flight over a trial: IOPS x mean total latency, summed over directions, with rounding's interval."""
    parts = [_of(direction) for direction in trial.directions if direction.ios]
    known = [part for part in parts if part is not None]
    if not parts or len(known) < len(parts):
        return Finding(
            "little.unknown",
            "note",
            f"trial {trial.number}",
            "a mean latency or an I/O rate is missing" if parts else "no I/O was done",
            "keep total latency (lat or slat and clat) in the results",
        )
    low, high = sum(part.low for part in known), sum(part.high for part in known)
    return Quantity(sum(part.value for part in known), low, high, "I/Os in flight")


def check(trial: Trial, depth: int) -> Finding | None:
    """Whether ``trial`` had ``depth`` (iodepth x jobs) I/Os in flight within rounding; else the finding that says so.

    More is impossible: a unit, a runtime or a latency is wrong. Fewer means that the engine ignores iodepth, the load
    could not submit fast enough, or a rate limit held it back: then depth is not what was varied.
    """
    flight = in_flight(trial)
    if isinstance(flight, Finding):
        return flight
    place = f"trial {trial.number}"
    if flight.low > depth * (1 + SLACK):
        return Finding(
            "little.impossible",
            "hard",
            place,
            f"IOPS x latency makes {flight.value:.4g} I/Os in flight, but at most {depth} can have been",
            "check units, runtime and which latency this is; do not use these numbers",
        )
    if flight.high < depth * (1 - SLACK):
        return Finding(
            "little.below-depth",
            "warning",
            place,
            f"only {flight.value:.4g} of {depth} I/Os were in flight on average",
            "use an asynchronous engine with direct I/O; look at submission latency, CPU use and rate limits",
        )
    return None


def together(
    worse_iops: ArrayLike,
    worse_latency: ArrayLike,
    *,
    margin: float,
    level: float = 0.95,
) -> Together:
    """One effect or two, from the block log-ratios of IOPS and of mean latency, both signed so that positive is worse.

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


def _of(direction: Direction) -> Quantity | None:
    """I/Os in flight of one direction: total latency, or submission and completion latency together."""
    if direction.lat is not None:
        latency = [direction.lat]
    elif direction.clat is not None and direction.slat is not None:
        latency = [direction.slat, direction.clat]
    else:
        return None
    rate = direction.iops
    value = rate.value * sum(part.mean.value for part in latency) / 1e9
    low = rate.low * sum(part.mean.low for part in latency) / 1e9
    high = rate.high * sum(part.mean.high for part in latency) / 1e9
    is_known = all(
        map(math.isfinite, (value, low, high, rate.value, rate.low, rate.high))
    )
    if not is_known:
        return None
    return Quantity(value, low, high, "I/Os in flight")
