"""The decision rules of other tools, re-implemented from their published logic, one signed score each.

Values are such that larger is worse, shape (experiments, runs of one arm). A rule returns its score, positive when the
second arm looks worse, and alarms where the score's size passes the published threshold; that threshold is then also
moved until all rules raise equally many false alarms. Simplifications are said where they are made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr
from scipy.stats import rankdata

Floats = NDArray[np.float64]
Score = Callable[[Floats, Floats, np.random.Generator], Floats]

SECONDS = 30
"""Per-second samples that Firecracker takes from one fio run."""

WITHIN = 0.02
"""Spread of these seconds around their run's mean."""


@dataclass(frozen=True)
class Rule:
    """A published rule. ``order`` is how its tool runs the two arms; ``runs`` per arm as its tool has them by default
    or advises, 10 where it says nothing; ``floor`` the relative change below which it stays silent."""

    name: str
    score: Score
    threshold: float
    order: str = "AABB"
    runs: int = 10
    floor: float = 0.0
    most: int | None = None
    """Runs per arm beyond which more add nothing, because the tool looks at a window."""
    peer: bool = True
    """False for a reference that no tool of the field uses."""

    def signals(self, a: Floats, b: Floats, rng: np.random.Generator) -> NDArray[np.int8]:
        """What it says as published: 1 worse, -1 better, 0 nothing."""
        score = self.score(a, b, rng)
        change = b.mean(axis=1) / a.mean(axis=1) - 1.0
        loud = (np.abs(score) > self.threshold) & (np.abs(change) >= self.floor)
        return np.asarray(np.where(loud, np.sign(score), 0), dtype=np.int8)


def arms(values: Floats, order: str) -> tuple[Floats, Floats]:
    """The two arms of sessions in run order, shape (experiments, 2 n): all A then all B, or ABBA ABBA ..."""
    runs = values.shape[1]
    second = np.arange(runs) >= runs // 2 if order == "AABB" else np.isin(np.arange(runs) % 4, (1, 2))
    return values[:, ~second], values[:, second]


def fsperf(a: Floats, b: Floats, _: np.random.Generator) -> Floats:
    """Mean of B against mean(A) +- 1.96 sd(A): a band that never narrows (fsperf ``src/utils.py``)."""
    return np.asarray((b.mean(axis=1) - a.mean(axis=1)) / a.std(axis=1, ddof=1))


def lkp(a: Floats, b: Floats, _: np.random.Generator) -> Floats:
    """One side's minimum beyond the other's middle value and its middle beyond the other's maximum (lkp-tests
    ``lib/changed_stat.rb``); the score is by how much. Its 1 % floor is that of key metrics."""

    def beyond(low: Floats, high: Floats) -> Floats:
        return np.asarray(np.minimum(high[:, 0] - _middle(low), _middle(high) - low[:, -1]))

    return _either_way(beyond, a, b)


def lkp_gap(a: Floats, b: Floats, _: np.random.Generator) -> Floats:
    """No overlap, and a gap of more than half the difference of the middles (the same file, option ``distance``)."""

    def gap(low: Floats, high: Floats) -> Floats:
        apart = high[:, 0] - low[:, -1]
        return np.asarray(np.minimum(apart, apart - (_middle(high) - _middle(low)) / 2))

    return _either_way(gap, a, b)


def mmtests(a: Floats, b: Floats, _: np.random.Generator) -> Floats:
    """Bands of mean +- 1.96 *sample* deviations must not touch (mmtests ``Stat.pm``, ``calc_meanci``, as coded)."""
    return np.asarray((b.mean(axis=1) - a.mean(axis=1)) / (a.std(axis=1, ddof=1) + b.std(axis=1, ddof=1)))


def firecracker(a: Floats, b: Floats, rng: np.random.Generator) -> Floats:
    """Permutation test of the mean on the *pooled per-second samples* of all runs (Firecracker ``tools/ab_test.py``).

    Seconds are normal around their run's value, drawn as means and sums of squares. The permutation distribution of a
    mean over 60 samples or more is taken as normal, with the pooled variance that permuting has. Retries are left out.
    """
    size = SECONDS * (a.shape[1] + b.shape[1])
    means = [arm * (1.0 + WITHIN / np.sqrt(SECONDS) * rng.standard_normal(arm.shape)) for arm in (a, b)]
    within = sum(((arm * WITHIN) ** 2 * rng.chisquare(SECONDS - 1, arm.shape)).sum(axis=1) for arm in (a, b))
    pooled = np.concatenate(means, axis=1)
    between = SECONDS * pooled.var(axis=1) * pooled.shape[1]
    error = np.sqrt((within + between) / (size - 1) / SECONDS * (1 / a.shape[1] + 1 / b.shape[1]))
    return np.asarray((means[1].mean(axis=1) - means[0].mean(axis=1)) / error)


def benchstat(a: Floats, b: Floats, _: np.random.Generator) -> Floats:
    """Mann-Whitney U at 5 % (golang/perf ``benchmath``), as its normal deviate with continuity correction."""
    n, m = a.shape[1], b.shape[1]
    ranks = rankdata(np.concatenate([a, b], axis=1), axis=1)
    u = ranks[:, n:].sum(axis=1) - m * (m + 1) / 2 - n * m / 2
    deviate = np.maximum(np.abs(u) - 0.5, 0.0) / np.sqrt(n * m * (n + m + 1) / 12)
    return np.asarray(np.sign(u) * deviate)


def welch(a: Floats, b: Floats, _: np.random.Generator) -> Floats:
    """Welch's t test, as the normal deviate of its p value."""
    one, other = a.var(axis=1, ddof=1) / a.shape[1], b.var(axis=1, ddof=1) / b.shape[1]
    t = (b.mean(axis=1) - a.mean(axis=1)) / np.sqrt(one + other)
    freedom = (one + other) ** 2 / (one**2 / (a.shape[1] - 1) + other**2 / (b.shape[1] - 1))
    return _deviate(t, freedom)


def otava(a: Floats, b: Floats, _: np.random.Generator) -> Floats:
    """Best energy split of the history "all A, then all B", then Student's t of its two sides with population
    deviations and no correction for having chosen the split (otava ``analysis.py``), as the deviate of its p value.

    Only the first, strongest split. A split elsewhere than within 5 runs of the change is an alarm but no right
    answer: its score is given the sign of "better".
    """
    history = np.concatenate([a, b], axis=1)
    count = history.shape[1]
    sums = np.abs(history[:, :, None] - history[:, None, :]).cumsum(axis=1).cumsum(axis=2)
    at = np.arange(2, count - 1)
    left = sums[:, at - 1, at - 1]
    cross = sums[:, at - 1, -1] - left
    right = sums[:, -1, -1][:, None] - left - 2 * cross
    n, m = at, count - at
    energy = n * m / count * (2 * cross / (n * m) - left / n**2 - right / m**2)
    best = np.argmax(energy, axis=1)
    split = at[best]
    before = np.arange(count) < split[:, None]
    one = np.where(before, history, np.nan)
    other = np.where(before, np.nan, history)
    pooled = (np.nanvar(one, axis=1) * (split - 1) + np.nanvar(other, axis=1) * (count - split - 1)) / (count - 2)
    t = (np.nanmean(other, axis=1) - np.nanmean(one, axis=1)) / np.sqrt(pooled * (1 / split + 1 / (count - split)))
    deviate = _deviate(t, np.full(len(t), count - 2.0))
    return np.where(np.abs(split - a.shape[1]) <= 5, deviate, -np.abs(deviate))


RULES = (
    Rule("fsperf band", fsperf, 1.96),
    Rule("lkp default", lkp, 1.0, floor=0.01),
    Rule("lkp gap", lkp_gap, 1.0, floor=0.01),
    Rule("mmtests", mmtests, 1.96),
    Rule("Firecracker", firecracker, 2.576, runs=1, floor=0.05),
    Rule("benchstat U", benchstat, 1.96),
    Rule("Welch t", welch, 1.96),
    Rule("otava split", otava, 3.291, most=25),
    Rule("Welch t, ABBA", welch, 1.96, order="ABBA", peer=False),
)


def _middle(ordered: Floats) -> Floats:
    return np.asarray(ordered[:, ordered.shape[1] // 2])


def _either_way(apart: Callable[[Floats, Floats], Floats], a: Floats, b: Floats) -> Floats:
    """1 + the larger distance of "b above a" and "a above b" relative to a's middle, with the sign of that side: above
    1 one arm is apart from the other, and below it the distance still ranks experiments for a moved threshold."""
    low, high = np.sort(a, axis=1), np.sort(b, axis=1)
    worse, better = apart(low, high), apart(high, low)
    return np.asarray(np.where(worse >= better, 1, -1) * (1.0 + np.maximum(worse, better) / _middle(low)))


def _deviate(t: Floats, freedom: Floats) -> Floats:
    """The normal deviate with the same two-sided p value as t."""
    tail = stdtr(freedom, -np.abs(t))
    return np.asarray(np.sign(t) * -ndtri(np.maximum(tail, 1e-300)))
