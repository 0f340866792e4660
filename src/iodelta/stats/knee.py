"""The saturation knee of a depth sweep: the iodepth beyond which more depth adds latency but no IOPS."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
from iodelta.stats.tails import (
    MIN_BLOCKS,
    expanded_interval,
    resampling_weights,
    too_few_blocks,
)
from iodelta.trial import Finding

Floats = NDArray[np.float64]

MIN_DEPTHS = 4
"""A rise, a bend and a plateau need four depths to differ from a straight line."""

STEPS = 48
"""Candidate knees per doubling of depth: 1.5 % apart."""

SHARPNESS = np.array([1.0, 1.4, 2.0, 3.0, 5.0, 12.0])
"""How abruptly IOPS stop growing: 1 is a single server with random arrivals, 12 a corner."""


class Knee(msgspec.Struct, frozen=True):
    """Where IOPS stop following iodepth. ``depth`` in I/Os in flight with interval; ``plateau`` in IOPS beyond it.

    ``slope`` is that of log IOPS over log depth below the knee: 1 where every added I/O finds an idle device.
    """

    depth: float
    low: float
    high: float
    plateau: float
    """IOPS beyond the knee."""
    slope: float
    """Slope of log IOPS over log depth below the knee; 1: every added I/O finds an idle device."""
    blocks: int


class KneeShift(msgspec.Struct, frozen=True):
    """How far the knee moved: ratio of the variant's knee to the baseline's, with interval."""

    ratio: float
    """The variant's knee over the baseline's."""
    low: float
    high: float
    blocks: int

    @property
    def moved(self) -> bool:
        """Return whether the interval excludes an unmoved knee."""
        return self.low > 1.0 or self.high < 1.0


def find_knee(
    depths: Sequence[float],
    iops: Floats,
    *,
    level: float = 0.95,
    seed: int,
    place: str = "",
) -> Knee | Finding:
    """Return the knee of one variant. ``iops`` has shape (blocks, depths): each block holds the whole sweep.

    The knee is where the two asymptotes of a closed queueing network meet (Denning and Buzen 1978): IOPS that grow
    with depth below it, a plateau above, and a fitted corner of any sharpness between. The interval resamples blocks.
    """
    order, refused = _check(depths, iops, place)
    if refused is not None:
        return refused
    logs = np.log(iops[:, order])
    bend = _Bend(np.asarray(depths, float)[order])
    knee, slope, plateau = bend.fit(logs.mean(axis=0, keepdims=True))
    if slope[0] <= 0 or not bend.x[0] < knee[0] < bend.x[-1]:
        return _no_knee(bend, knee[0], slope[0], place)
    interval = np.exp(expanded_interval(_bootstrap(bend, logs, seed), len(logs), level))
    return Knee(
        float(np.exp(knee[0])),
        float(interval[0]),
        float(interval[1]),
        float(np.exp(plateau[0])),
        float(slope[0]),
        len(logs),
    )


def knee_shift(
    depths: Sequence[float],
    baseline: Floats,
    variant: Floats,
    *,
    level: float = 0.95,
    seed: int,
    place: str = "",
) -> KneeShift | Finding:
    """Return whether the knee moved between two variants measured in the same blocks: shapes (blocks, depths) both."""
    if baseline.shape != variant.shape:
        return Finding(
            "knee.unequal",
            "warning",
            place,
            f"the sweeps have {baseline.shape[0]} and {plural(variant.shape[0], 'block')} of whole sweeps",
            "compare the blocks in which both variants ran every depth",
        )
    ends: list[Knee] = []
    for arm in (baseline, variant):
        end = find_knee(depths, arm, level=level, seed=seed, place=place)
        if isinstance(end, Finding):
            return end
        ends.append(end)
    order = np.argsort(np.asarray(depths, float))
    bend = _Bend(np.asarray(depths, float)[order])
    # Both arms draw the same blocks, so what a block did to both cancels.
    before, after = (
        _bootstrap(bend, np.log(arm[:, order]), seed) for arm in (baseline, variant)
    )
    interval = np.exp(expanded_interval(after - before, len(baseline), level))
    ratio = ends[1].depth / ends[0].depth
    return KneeShift(ratio, float(interval[0]), float(interval[1]), len(baseline))


class _Bend:
    """Least squares of ``a + slope * bend(depth; knee, sharpness)`` over a grid, for many curves at once.

    The bend is ``log x - log(1 + x^q) / q`` with ``x = depth / knee``: slope 1 far below the knee, flat far above,
    asymptotes that meet at the knee, and a corner that is the sharper the larger q.
    """

    def __init__(self, depths: Floats) -> None:
        self.x = np.log(depths)
        count = max(int((self.x[-1] - self.x[0]) / math.log(2) * STEPS), 2) + 1
        self.grid = np.linspace(self.x[0], self.x[-1], count)
        self.knees = np.repeat(self.grid, len(SHARPNESS))
        sharp = np.tile(SHARPNESS, count)[:, None]
        away = self.x - self.knees[:, None]
        bend = away - np.logaddexp(0.0, sharp * away) / sharp
        self.centre = bend.mean(axis=1)
        bend = bend - self.centre[:, None]
        self.norm = np.sqrt((bend**2).sum(axis=1))
        self.unit = bend / self.norm[:, None]

    def fit(self, curves: Floats) -> tuple[Floats, Floats, Floats]:
        """Log knee, slope and log plateau of each row of ``curves`` (log IOPS): the best fit among those that rise."""
        middle = curves.mean(axis=1)
        explained = (curves - middle[:, None]) @ self.unit.T
        best = np.argmax(explained, axis=1)
        slope = explained[np.arange(len(curves)), best] / self.norm[best]
        return self.knees[best], slope, middle - slope * self.centre[best]


def _bootstrap(bend: _Bend, logs: Floats, seed: int) -> Floats:
    return bend.fit(resampling_weights(len(logs), seed) @ logs / len(logs))[0]


def _check(
    depths: Sequence[float], iops: Floats, place: str
) -> tuple[NDArray[np.intp], Finding | None]:
    order = np.argsort(np.asarray(depths, float))
    refused = None
    if iops.ndim != 2 or iops.shape[1] != len(depths):
        refused = Finding(
            "knee.unequal",
            "warning",
            place,
            "the sweep and its depths differ in length",
            "",
        )
    elif len(set(depths)) < MIN_DEPTHS or min(depths) <= 0:
        refused = Finding(
            "knee.too-few-depths",
            "warning",
            place,
            f"{len(set(depths))} depths show no knee; {MIN_DEPTHS} different ones are needed",
            "sweep iodepth in doublings, from 1 until IOPS stop growing",
        )
    elif len(iops) < MIN_BLOCKS:
        refused = too_few_blocks(len(iops), place)
    elif not (np.isfinite(iops).all() and (iops > 0).all()):
        refused = Finding(
            "knee.not-positive",
            "warning",
            place,
            "the sweep has missing, zero or negative IOPS",
            "repeat the blocks that failed",
        )
    return order, refused


def _no_knee(bend: _Bend, knee: float, slope: float, place: str) -> Finding:
    shallowest, deepest = (f"{math.exp(end):.4g}" for end in (bend.x[0], bend.x[-1]))
    if slope <= 0 or knee <= bend.x[0]:
        what = f"IOPS do not rise with iodepth from {shallowest} on: saturated at the first depth, or depth ignored"
        remedy = "begin at iodepth 1, with an asynchronous engine"
    else:
        what, remedy = (
            f"IOPS still rise at iodepth {deepest}: the knee is beyond",
            f"go deeper than {deepest}",
        )
    return Finding("knee.outside", "note", place, what, remedy)
