"""Where along a line does a noisy level step up: the posterior over positions, and what to measure next.

The line has ``positions`` items, 0 the good end. A change at c (1 .. positions - 1) means that items from c on lie
higher by d. A run of item p at time t gives y = b(t) + d [c <= p] + noise. Assumptions: b is a random walk with a
diffuse start, whose step, as a share of the noise variance, is one of ``WALKS``; d has a flat prior above ``least``;
the noise is normal, and its variance has Jeffreys' prior. All of it is integrated out in closed form: a Kalman filter
whitens y and, with the same gains, the regressor of every candidate. With a walk of 0 this is the change-point model
with two unknown levels; with more, runs of items whose side is known serve as references. Candidates that no run
separates yet share their sums, so the cost of a run grows with the number of distinct items measured.
Sources: Durbin and Koopman, Time Series Analysis by State Space Methods, 2nd ed., 2.9 (diffuse start), 6.2
(regression); Lindley 1956 (expected information).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.special import log_ndtr, stdtr

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

WALKS = (0.0, 0.003, 0.02, 0.1)
"""Variance of the random walk's step between two runs, as a share of a run's own variance; equally likely."""

SURE = 0.95
"""Probability from which on a drift is reported."""

GRID = 64
"""Points of the density of a run's value, for its expected information."""

INSIDE = 8
"""A stretch of untested items is cut into this many parts of equal probability to find one worth measuring."""

_TINY = 1e-300


class Step(msgspec.Struct, frozen=True):
    """A step between two levels: size with standard error, its degrees of freedom, and the noise sd of one run."""

    size: float
    error: float
    freedom: int
    noise: float

    def tail(self, beyond: float = 0.0) -> float:
        """One-sided p value of "the step is larger than ``beyond``"."""
        return float(stdtr(self.freedom, (beyond - self.size) / max(self.error, _TINY)))

    def tail_above(self, target: float) -> float:
        """One-sided p value of "the step is smaller than ``target``"."""
        return float(stdtr(self.freedom, (self.size - target) / max(self.error, _TINY)))


class Posterior(msgspec.Struct, frozen=True):
    """Over groups of candidates that no run separates: probability, step size and its error at ``walk``.

    Group g holds the candidates ``edges[g] + 1 .. edges[g + 1]``.
    """

    edges: Whole
    share: Floats
    size: Floats
    error: Floats
    freedom: int
    walk: int
    drift: float = 0.0
    """Probability that the machine's level walks at all."""

    @property
    def drifts(self) -> bool:
        """Return whether the machine's level drifts beyond doubt; the likeliest walk is one in a third of steady
        series.
        """
        return self.drift >= SURE

    def at_or_below(self, position: Whole, prior: Floats) -> Floats:
        """Probability that the change lies at or below each position; ``prior`` as given to ``Evidence``."""
        known = np.concatenate([[0.0], np.cumsum(self.share)])
        group = np.clip(
            np.searchsorted(self.edges, position, side="right") - 1,
            0,
            len(self.share) - 1,
        )
        mass = _masses(prior)
        first, last = mass[self.edges[group]], mass[self.edges[group + 1]]
        return np.asarray(
            known[group] + self.share[group] * (mass[position] - first) / (last - first)
        )


class Evidence:
    """The sums over all runs so far, for every group of candidates and every walk. Runs are added in time order."""

    def __init__(
        self, prior: Floats, *, least: float = 0.0, floor: float = 0.0
    ) -> None:
        """``prior``: one positive weight per candidate 1 .. positions - 1. ``least``: the smallest step there may be.
        ``floor``: the least noise sd believed in: two equal values do not prove that there is none."""
        self.prior = prior
        self.positions = len(prior) + 1
        self.runs = 0
        self._least = least
        self._floor = floor
        self._mass = _masses(prior)
        walks = len(WALKS)
        self._steps = np.asarray(WALKS)
        self._time = 0.0
        self._spread = np.zeros(walks)
        self._y = np.zeros(walks)
        self._log_f = np.zeros(walks)
        self._yy = np.zeros(walks)
        self._edges: Whole = np.array([0, self.positions - 1])
        self._x = np.zeros((3, walks, 1))
        """Per group the filtered regressor, and the sums of its square and of its product with y."""

    def add(self, position: int, value: float, time: float) -> None:
        """A run's value (logarithm, higher is worse) of the item at ``position``; ``time`` in runs, never falling."""
        index = int(np.searchsorted(self._edges, position))
        if self._edges[index] != position:
            self._edges = np.insert(self._edges, index, position)
            self._x = np.insert(self._x, index - 1, self._x[:, :, index - 1], axis=2)
        x = (self._edges[1:] <= position).astype(float)
        if not self.runs:
            self._y[:] = value
            self._x[0] = x
            self._spread[:] = 1.0
        else:
            spread = self._spread + self._steps * max(0.0, time - self._time)
            f = spread + 1.0
            gain = spread / f
            ey = value - self._y
            ex = x - self._x[0]
            self._log_f += np.log(f)
            self._yy += ey * ey / f
            self._x[1] += ex * ex / f[:, None]
            self._x[2] += ex * (ey / f)[:, None]
            self._y += gain * ey
            self._x[0] += gain[:, None] * ex
            self._spread = spread * (1.0 - gain)
        self.runs += 1
        self._time = time

    def posterior(self) -> Posterior:
        """Return the posterior over groups of candidates; the prior until runs lie on both sides and one is to spare."""
        mass = self._mass[self._edges[1:]] - self._mass[self._edges[:-1]]
        freedom = self.runs - 2
        _, xx, xy = self._x
        # With all runs on one side, a change at the candidate looks like no change.
        known = xx > 1e-9
        if freedom < 1 or not known.any():
            return Posterior(
                self._edges, mass, np.zeros(len(mass)), np.ones(len(mass)), 0, 0
            )
        xx = np.maximum(xx, 1e-9)
        size = xy / xx
        rss = np.maximum(
            self._yy[:, None] - size * xy, freedom * self._floor**2 + _TINY
        )
        error = np.sqrt(rss / freedom / xx)
        weight = -0.5 * (
            self._log_f[:, None] + np.log(xx) + freedom * np.log(rss)
        ) + np.log(mass)
        # Log P(T <= t); the normal's where the probability is too small for a double.
        t = (size - self._least) / error
        plain = stdtr(freedom, np.minimum(t, 1e8))
        weight += np.asarray(
            np.where(
                plain > 1e-290, np.log(plain + _TINY), log_ndtr(np.maximum(t, -1e3))
            )
        )
        weight = np.where(known, weight, -np.inf)
        joint = np.exp(weight - weight.max())
        joint /= joint.sum()
        walks = joint.sum(axis=1)
        walk = int(np.argmax(walks))
        return Posterior(
            self._edges,
            joint.sum(axis=0),
            size[walk],
            error[walk],
            freedom,
            walk,
            float(walks[1:].sum()),
        )

    def step(self, posterior: Posterior, position: int) -> Step:
        """Return the step, if the change is at ``position``."""
        group = int(np.searchsorted(self._edges, position)) - 1
        noise = float(
            posterior.error[group]
            * math.sqrt(max(float(self._x[1, posterior.walk, group]), _TINY))
        )
        return Step(
            float(posterior.size[group]),
            float(posterior.error[group]),
            posterior.freedom,
            noise,
        )

    def worth_asking(self, posterior: Posterior, testable: NDArray[np.bool_]) -> Whole:
        """Testable positions among which the next run is chosen: all measured ones, and of every stretch between them
        those nearest to even parts of its probability."""
        edges = {int(edge) for edge in posterior.edges if testable[edge]}
        for group in np.flatnonzero(posterior.share > 1e-4):
            first, last = posterior.edges[group] + 1, posterior.edges[group + 1]
            inside = first + np.flatnonzero(testable[first:last])
            if len(inside) > INSIDE:
                parts = np.linspace(
                    self._mass[first - 1], self._mass[last], INSIDE + 1
                )[1:-1]
                inside = inside[
                    np.clip(
                        np.searchsorted(self._mass[inside], parts), 0, len(inside) - 1
                    )
                ]
            edges.update(int(position) for position in inside)
        return np.array(sorted(edges), dtype=np.int64)

    def information(
        self, posterior: Posterior, positions: Whole, time: float
    ) -> Floats:
        """Expected information about the change, in bits, of one more run at each of ``positions``.

        By the density of the run's value under every candidate, levels and their uncertainty included: an item whose
        side is known is worth measuring while the levels, or the drift, are not.
        """
        walk, share = posterior.walk, posterior.share
        f = self._spread[walk] + self._steps[walk] * max(0.0, time - self._time) + 1.0
        xx = np.maximum(self._x[1, walk], 1e-9)
        noise = posterior.error * np.sqrt(xx)
        widen = (
            posterior.freedom / (posterior.freedom - 2)
            if posterior.freedom > 2
            else 3.0
        )
        centre, width = np.empty((2, len(share))), np.empty((2, len(share)))
        for side in (0, 1):
            off = side - self._x[0, walk]
            centre[side] = self._y[walk] + posterior.size * off
            width[side] = np.maximum(
                noise * np.sqrt(widen * (f + off * off / xx)), 1e-12
            )
        kept = share > 1e-6
        points = np.linspace(
            (centre - 4 * width)[:, kept].min(),
            (centre + 4 * width)[:, kept].max(),
            GRID,
        )
        # Entropies of mixture and parts are taken on the same grid, so that its coarseness cancels.
        z = (points - centre[:, :, None]) / width[:, :, None]
        density = np.exp(-0.5 * z * z)
        density /= density.sum(axis=2, keepdims=True) + _TINY
        entropy = -(density * np.log2(density + _TINY)).sum(axis=2) * share
        density *= share[:, None]
        group = np.clip(
            np.searchsorted(posterior.edges, positions, side="right") - 1,
            0,
            len(share) - 1,
        )
        first, last = (
            self._mass[posterior.edges[group]],
            self._mass[posterior.edges[group + 1]],
        )
        part = (self._mass[positions] - first) / (last - first)

        def split(rows: Floats) -> Floats:
            """Sum over candidates: side 1 of those at or below each position, side 0 of those above."""
            done = np.concatenate(
                [np.zeros((2, 1, rows.shape[2])), np.cumsum(rows, axis=1)], axis=1
            )
            cut = part[:, None]
            inner = cut * rows[1, group] + (1.0 - cut) * rows[0, group]
            return np.asarray(done[1, group] + inner + done[0, -1] - done[0, group + 1])

        mixture = split(density)
        whole = -(mixture * np.log2(mixture + _TINY)).sum(axis=1)
        return np.asarray(np.maximum(whole - split(entropy[:, :, None])[:, 0], 0.0))


def step_between(
    low: Sequence[tuple[float, float]], high: Sequence[tuple[float, float]]
) -> Step | None:
    """The step from one item's runs to another's, as (time, value), drift taken out; None below three runs in all, or
    with one side empty."""
    if not low or not high or len(low) + len(high) < 3:
        return None
    evidence = Evidence(np.ones(1), least=-math.inf)
    for time, position, value in sorted(
        [(t, 0, v) for t, v in low] + [(t, 1, v) for t, v in high]
    ):
        evidence.add(position, value, time)
    return evidence.step(evidence.posterior(), 1)


def pooled(
    posterior: Posterior, prior: Floats, testable: NDArray[np.bool_]
) -> list[tuple[int, int, float]]:
    """Candidates that no testable item can separate, as (first, last, probability), in order.

    ``testable`` has one entry per position; item c separates the candidates c and c + 1.
    """
    cuts = np.concatenate([[0], 1 + np.flatnonzero(testable[1:-1]), [len(prior)]])
    share = np.diff(posterior.at_or_below(cuts, prior))
    return [
        (int(a) + 1, int(b), float(p))
        for a, b, p in zip(cuts[:-1], cuts[1:], share, strict=True)
    ]


def capacity(ratio: float) -> float:
    """Bits of information in one run about which of two known levels it came from, ``ratio`` noise sd apart."""
    points = np.linspace(-8.0, 8.0 + ratio, 2001)
    low, high = np.exp(-0.5 * points**2), np.exp(-0.5 * (points - ratio) ** 2)
    both = low + high
    width = (points[1] - points[0]) / math.sqrt(2 * math.pi)
    part = 0.5 * (
        low * np.log2(2 * low / both + _TINY) + high * np.log2(2 * high / both + _TINY)
    )
    return float(part.sum() * width)


def even_odds(
    positions: int, favoured: Iterable[int] = (), weight: float = 3.0
) -> Floats:
    """Equal prior weights for candidates 1 .. positions - 1, but ``weight`` (at most 20) for the favoured ones."""
    odds = np.ones(positions - 1)
    odds[[c - 1 for c in favoured if 1 <= c < positions]] = min(weight, 20.0)
    return odds


def _masses(prior: Floats) -> Floats:
    """Prior probability that the change lies at or below each position."""
    return np.asarray(np.concatenate([[0.0], np.cumsum(prior)]) / prior.sum())
