"""Alpha spending: looking at data more than once without more false alarms.

Spending follows Lan and DeMets 1983 with their Pocock-like function alpha ln(1 + (e - 1) t). The level of each look is
found by the recursion of Armitage, McPherson and Rowe 1969. Assumption: the statistic is Brownian motion observed at
the looks. The recursion runs for one side with half of alpha; the two-sided bounds published for alpha <= 0.1 agree to
three decimals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.special import ndtr, ndtri, stdtrit

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_FAR = 6.5
"""Beyond this many standard deviations nothing is integrated (1e-10 of the mass)."""

_TOTALS: tuple[float, ...] = tuple(np.geomspace(1e-8, 0.5, 48).tolist())
"""One-sided totals between which a sequential p value is interpolated."""


class Schedule(msgspec.Struct, frozen=True):
    """Looks at rising numbers of ``blocks``; by each the given cumulative share (0..1) of alpha may be spent."""

    blocks: tuple[int, ...]
    shares: tuple[float, ...]


def pocock_share(fraction: float) -> float:
    """Share of alpha spent by information ``fraction`` 0..1: ln(1 + (e - 1) t), Pocock-like."""
    return math.log1p((math.e - 1.0) * min(max(fraction, 0.0), 1.0))


def schedule(
    looks: tuple[int, ...],
    *,
    reserve: float = 0.0,
    extension: tuple[int, ...] = (),
    ended: tuple[int, ...] = (),
) -> Schedule:
    """Return the schedule of planned ``looks``, which spend 1 - ``reserve``, and of ``extension`` looks, which spend
    the rest.

    ``ended`` are block counts at which a run stopped undecided, for its budget: the first before the last look spends
    all that the planned looks had left, a later one all that the extension had. Of a comparison that was left waiting
    after a screen this count does depend on its own data: it waits where they speak little for a change.
    Between a run's early end and the extension no look can be taken, since no alpha is left for it.
    """
    spent: dict[int, float] = {}
    kept = 1.0 - reserve
    main = _cut(looks, [blocks for blocks in ended if blocks < looks[-1]])
    for blocks in main:
        spent[blocks] = (
            kept if blocks == main[-1] else kept * pocock_share(blocks / looks[-1])
        )
    late = tuple(blocks for blocks in extension if blocks > main[-1])
    if late and reserve > 0.0:
        rest = _cut(late, [blocks for blocks in ended if main[-1] < blocks < late[-1]])
        for blocks in rest:
            fraction = (blocks - main[-1]) / (late[-1] - main[-1])
            spent[blocks] = (
                1.0 if blocks == rest[-1] else kept + reserve * pocock_share(fraction)
            )
    return Schedule(tuple(spent), tuple(spent.values()))


def _cut(looks: tuple[int, ...], ended: Sequence[int]) -> tuple[int, ...]:
    """Looks up to the first early end, which becomes the last of them; all of them without one."""
    if not ended:
        return looks
    return (*(blocks for blocks in looks if blocks < ended[0]), ended[0])


def nominal_tails(plan: Schedule, alpha: float) -> tuple[float, ...]:
    """Return the one-sided level of each look, so that all looks together spend ``alpha`` on that side (two-sided 5 %:
    0.025).

    Source: Jennison and Turnbull, Group Sequential Methods, 1999, chapter 19.
    """
    return tuple(
        float(_tails(plan, (alpha,))[look, 0]) for look in range(len(plan.blocks))
    )


def sequential_p(plan: Schedule, tails: Floats) -> Floats:
    """Return the smallest one-sided alpha at which ``plan`` would have rejected by now (a sequential p value).

    ``tails`` has shape (comparisons, looks taken), nan where a comparison took no such look: one-sided p values.
    Valid for Holm's correction over comparisons at any time (Liu and Anderson 2008; Glimm, Maurer and Bretz 2010).
    Values are interpolated on a grid, and bounded below by 1e-8.
    """
    totals = np.log(np.asarray(_TOTALS))
    best = np.full(len(tails), 1.0)
    for look in range(tails.shape[1]):
        levels = _tails(plan, _TOTALS)[look]
        if not np.all(levels > 0.0):
            continue
        p = tails[:, look]
        seen = ~np.isnan(p)
        probabilities = np.exp(
            np.interp(
                np.log(np.maximum(p[seen], 1e-300)), np.log(levels), totals, right=0.0
            )
        )
        best[seen] = np.minimum(best[seen], probabilities)
    return best


@lru_cache(maxsize=1024)
def _tails(plan: Schedule, alphas: tuple[float, ...]) -> Floats:
    """Return one-sided nominal levels, shape (looks, alphas)."""
    steps = tuple(zip(plan.blocks, plan.shares, strict=True))
    return np.array([ndtr(-_bound(steps[: k + 1], alphas)) for k in range(len(steps))])


@lru_cache(maxsize=4096)
def _bound(steps: tuple[tuple[int, float], ...], alphas: tuple[float, ...]) -> Floats:
    """Return the z bound, per alpha, of the last of ``steps`` (blocks, cumulative share); infinite where nothing is
    spent.
    """
    (n, share), before = steps[-1], steps[:-1]
    total = np.asarray(alphas)
    if not before:
        return np.asarray(-ndtri(share * total))
    n0, share0 = before[-1]
    if n <= n0:
        raise ValueError("looks must be at rising numbers of blocks")
    spend = (share - share0) * total
    if share <= share0:
        return np.full(len(total), np.inf)
    x, mass = _below(before, alphas)
    r, s = math.sqrt(n0 / n), math.sqrt(1.0 - n0 / n)
    low, high = np.full(len(total), -_FAR), np.full(len(total), _FAR)
    for _ in range(40):
        middle = 0.5 * (low + high)
        above = np.sum(mass * ndtr((r * x - middle[:, None]) / s), axis=1) > spend
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


@lru_cache(maxsize=1024)
def _below(
    steps: tuple[tuple[int, float], ...], alphas: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """Nodes and mass of the standardised statistic at the last of ``steps`` among sequences that crossed no bound up to
    it, per alpha."""
    x, w = _nodes(_bound(steps, alphas))
    if len(steps) == 1:
        return x, w * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    x0, mass = _below(steps[:-1], alphas)
    n0, n = steps[-2][0], steps[-1][0]
    r, s = math.sqrt(n0 / n), math.sqrt(1.0 - n0 / n)
    apart = (x[:, :, None] - r * x0[:, None, :]) / s
    density = np.einsum("aij,aj->ai", np.exp(-0.5 * apart**2), mass) / (
        s * math.sqrt(2 * math.pi)
    )
    return x, w * density


def _nodes(upper: Floats) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [-far, upper] for each upper bound."""
    half = 0.5 * (np.minimum(upper, _FAR) + _FAR)[:, None]
    return half * (_NODES + 1.0) - _FAR, half * _WEIGHTS


def median_unbiased(z: float, blocks: Sequence[int], tails: Sequence[float]) -> float:
    """Return the drift, in standard errors at the last of these looks, at which a run that ends there with ``z`` or
    beyond is as likely as not: median-unbiased by stagewise ordering (Jennison and Turnbull 2000, chapter 8).

    ``tails`` are the one-sided levels at which a look stops; 0 for one that cannot.
    """
    if len(blocks) < 2:
        return z
    # By t: few blocks must be clearer to stop than a normal statistic, by ranks as by a mean.
    bounds = [
        min(_FAR, -float(stdtrit(n - 1, tail))) if tail > 0.0 and n > 1 else _FAR
        for n, tail in zip(blocks, tails, strict=True)
    ]
    times = np.asarray(blocks) / blocks[-1]
    nodes = [b * _NODES for b in bounds[:-1]]

    def beyond(drift: float) -> float:
        """Return the chance of an upper stop before the last look, or of ``z`` or more there."""
        x = nodes[0]
        mean = drift * math.sqrt(times[0])
        mass = (
            bounds[0]
            * _WEIGHTS
            * np.exp(-0.5 * (x - mean) ** 2)
            / math.sqrt(2 * math.pi)
        )
        total = float(ndtr(mean - bounds[0]))
        for look in range(1, len(blocks)):
            r = math.sqrt(times[look - 1] / times[look])
            s = math.sqrt(1.0 - r * r)
            step = drift * (math.sqrt(times[look]) - r * math.sqrt(times[look - 1]))
            last = look == len(blocks) - 1
            limit = z if last else bounds[look]
            total += float(mass @ ndtr((r * x + step - limit) / s))
            if not last:
                apart = (nodes[look][:, None] - r * x - step) / s
                mass = (
                    bounds[look]
                    * _WEIGHTS
                    * (np.exp(-0.5 * apart**2) @ mass)
                    / (s * math.sqrt(2 * math.pi))
                )
                x = nodes[look]
        return total

    low, high = z - 6.0, z + 6.0
    for _ in range(18):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) > 0.5 else (middle, high)
    return (low + high) / 2
