"""Hosts as units: the mean of their own changes, because more blocks do not average away differences between hosts.

A host's change is one value, however many blocks it made, and a t test of these values holds its level at the levels
used here whatever spread each has (Ibragimov and Muller 2010, after Bakirov and Szekely 2005). Hosts that happen to
agree must not claim more than their blocks do, so the error is at least that of the blocks. Under "no change anywhere"
the null is known exactly, too: every block's order was one draw, so its arms may be swapped. A p value is the larger of
the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.effect import Estimate
from iodelta.stats.replay import share_of
from iodelta.stats.special import stdtr, stdtrit
from iodelta.stats.total import Arms, log_total

Floats = NDArray[np.float64]
Places = Sequence[NDArray[np.intp]]

FEWEST_BLOCKS = 4
"""Blocks a host must have made before its own change counts."""

TRIM = 0.25
"""Share of a host's blocks trimmed at either end for its typical change, at least one block (Yuen 1974): a stall is
not typical."""

TINY = 1e-12


@dataclass(frozen=True)
class Replays:
    """The patterns of the blocks' draws, whether they are all there are, and the p value of the t test above which
    none is replayed: it settles nothing."""

    signs: Floats
    exact: bool
    worth: float = 1.0


@dataclass(frozen=True)
class Mean:
    """Per row the mean of the hosts' own log-ratios, its error on ``spare`` degrees of freedom, and the part of that
    error which more blocks make smaller."""

    value: Floats
    error: Floats
    within: Floats
    spare: int

    @property
    def t(self) -> Floats:
        """Return the mean over its error; 0 where there is none."""
        return np.asarray(np.nan_to_num(self.value / self.error, nan=0.0))

    def estimate(self, level: float, blocks: int) -> Estimate:
        """Return the mean of the first row with its t interval."""
        value, half = (
            float(self.value[0]),
            -float(stdtrit(self.spare, (1.0 - level) / 2)) * float(self.error[0]),
        )
        return Estimate(value, value - half, value + half, level, blocks)


def places_of(hosts: Sequence[str]) -> list[NDArray[np.intp]]:
    """Return the blocks of each host that has enough of them, from the host of every block; none where fewer than two
    have.
    """
    names = np.array(hosts)
    own = [np.flatnonzero(names == name) for name in dict.fromkeys(hosts)]
    counted = [rows for rows in own if len(rows) >= FEWEST_BLOCKS]
    if len(counted) > 1:
        return counted
    return []


def typical_mean(d: Floats, places: Places) -> Mean:
    """The mean over hosts of the trimmed means of their log-ratios; ``d`` has one row per comparison or replay."""
    return _mean([trimmed(d[:, rows]) for rows in places])


def total_mean(arms: Arms, places: Places) -> Mean:
    """Return the mean over hosts of the log-ratios of their totals."""
    totals = []
    for rows in places:
        of_host = Arms(*(column[:, rows] for column in arms.columns))
        totals.append(log_total(of_host))
    return _mean(totals)


def typical_tails(d: Floats, places: Places, replays: Replays) -> tuple[float, float]:
    """Return one-sided p values of "above 0" and "below 0" of one comparison's mean typical change."""
    return _tails(
        typical_mean(d[None, :], places),
        lambda: typical_mean(replays.signs * d, places).t,
        replays,
    )


def total_tails(arms: Arms, places: Places, replays: Replays) -> tuple[float, float]:
    """Return the same for the total change; ``arms`` have one row."""
    return _tails(
        total_mean(arms, places),
        lambda: total_mean(swapped(arms, replays.signs), places).t,
        replays,
    )


def swapped(arms: Arms, signs: Floats) -> Arms:
    """Return one comparison's arms, swapped in the blocks where a pattern has -1: a row per pattern."""
    kept = signs > 0
    old, new, old_weight, new_weight = arms.columns
    return Arms(
        np.where(kept, old, new),
        np.where(kept, new, old),
        np.where(kept, old_weight, new_weight),
        np.where(kept, new_weight, old_weight),
    )


def smallest_t(hosts: int, level: float) -> float:
    """Standard errors from 0 that the mean of so many hosts must be at a one-sided ``level``."""
    return -float(stdtrit(hosts - 1, level))


def _tails(
    seen: Mean, replay: Callable[[], Floats], replays: Replays
) -> tuple[float, float]:
    t = float(seen.t[0])
    above, below = float(stdtr(seen.spare, -t)), float(stdtr(seen.spare, t))
    if min(above, below) > replays.worth:
        return above, below
    replayed, at = replay()[:, None], np.array([t])
    return (
        max(above, float(share_of(replayed, at, exact=replays.exact)[0])),
        max(below, float(share_of(-replayed, -at, exact=replays.exact)[0])),
    )


def _mean(own: Sequence[tuple[Floats, Floats]]) -> Mean:
    """Return the mean of the hosts' values, each with its own error."""
    values, errors = (
        np.array([value for value, _ in own]),
        np.array([error for _, error in own]),
    )
    count = len(values)
    between = values.std(axis=0, ddof=1) / np.sqrt(count)
    within = np.sqrt(np.sum(errors**2, axis=0)) / count
    return Mean(
        values.mean(axis=0),
        np.maximum(np.maximum(between, within), TINY),
        within,
        count - 1,
    )


def kept(blocks: int) -> int:
    """Blocks that are left when those at either end are trimmed."""
    return blocks - 2 * _cut(blocks)


def trimmed(d: Floats) -> tuple[Floats, Floats]:
    """Per row the trimmed mean, and its standard error from the winsorised values, with ``kept`` - 1 degrees of
    freedom."""
    n = d.shape[1]
    cut = _cut(n)
    ordered = np.sort(d, axis=1)
    drawn_in = np.clip(ordered, ordered[:, [cut]], ordered[:, [n - 1 - cut]])
    error = drawn_in.std(axis=1, ddof=1) / ((1.0 - 2.0 * cut / n) * np.sqrt(n))
    return ordered[:, cut : n - cut].mean(axis=1), error


def _cut(blocks: int) -> int:
    return max(1, int(TRIM * blocks))
