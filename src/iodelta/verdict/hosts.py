"""A look at an experiment over several hosts: p values and intervals of the mean of the hosts' own changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.effect import Estimate
from iodelta.stats.hosts import (
    Mean,
    Places,
    Replays,
    places_of,
    total_mean,
    total_tails,
    typical_mean,
    typical_tails,
)
from iodelta.stats.replay import EXACT_COINS, patterns
from iodelta.stats.total import Arms
from iodelta.verdict.looks import Seen, Tested

Floats = NDArray[np.float64]

TOTAL_PAYS = 4.0
"""The factor on p values of a total over hosts, where Bonferroni corrects for both estimands. The typical change gets
most of the level, because a few hosts cannot reach a p value much below it."""

Test = Callable[[float], tuple[float, float]]
"""One-sided p values of "above" and "below" a log-ratio."""


def seen_over_hosts(
    tested: Tested, hosts: Sequence[str], *, margin: float, level: float, parts: int
) -> Seen:
    """Return the p values of one look over several hosts, each metric and estimand corrected for by Bonferroni; the
    shape is that of ``looks.seen_at``. All are 1 while fewer than two hosts have enough blocks.

    ``hosts`` has one entry per block, ``margin`` is a log-ratio, ``level`` the largest level that a p value is held
    against.
    """
    statistics = len(tested.d) * (1.0 + 1.0 / TOTAL_PAYS)
    places = places_of(hosts)
    nothing = np.ones((2, len(tested.d)))
    if not places:
        return Seen(nothing, nothing.copy(), nothing.copy(), statistics, parts)
    above, below, within = nothing.copy(), nothing.copy(), nothing.copy()
    for row, width in enumerate(tested.width.tolist()):
        tests = _tests(tested, row, places, level)
        for at, (test, pays) in enumerate(zip(tests, (1.0, TOTAL_PAYS), strict=True)):
            centre = test(width)
            above[at, row] = min(1.0, statistics * parts * pays * centre[0])
            below[at, row] = min(
                1.0, statistics * parts * pays * (test(-width) if width else centre)[1]
            )
            room = margin - width
            within[at, row] = max(test(-room)[0], test(room)[1]) if room > 0 else 1.0
    return Seen(above, below, within, statistics, parts)


def _tests(tested: Tested, row: int, places: Places, level: float) -> tuple[Test, Test]:
    """Return the tests of one metric's typical and total change."""
    replays = Replays(tested.signs, tested.exact, worth=level)
    d, arms = tested.d[row], Arms(*(column[[row]] for column in tested.totals.columns))

    def typical(shift: float) -> tuple[float, float]:
        return typical_tails(d - shift, places, replays)

    def total(shift: float) -> tuple[float, float]:
        return total_tails(arms.shifted(shift), places, replays)

    return typical, total


def p_over_hosts(
    d: Floats, hosts: Sequence[str], coins: Sequence[int], seed: int
) -> float:
    """Two-sided p value of the mean typical change over hosts; 1 while fewer than two hosts have enough blocks.

    ``d``: log-ratios, one per block, positive = worse. ``hosts``, ``coins``: host and drawn order of each block.
    ``seed`` draws the orders that are replayed where there are too many for all.
    """
    places = places_of(hosts[: len(d)])
    if not places:
        return 1.0
    drawn = tuple(coins[: len(d)])
    tails = typical_tails(
        d, places, Replays(patterns(drawn, seed), len(set(drawn)) <= EXACT_COINS)
    )
    return min(1.0, 2.0 * min(tails))


def typical_over(d: Floats, hosts: Sequence[str]) -> Mean | None:
    """Return the mean of the hosts' typical changes (log-ratio); None while fewer than two hosts have enough blocks.
    ``d`` and ``hosts`` have one entry per block."""
    places = places_of(hosts[: len(d)])
    return typical_mean(d[None, :], places) if places else None


def total_over(arms: Arms, hosts: Sequence[str]) -> Mean | None:
    """Return the mean of the hosts' total changes (log-ratio); None while fewer than two hosts have enough blocks.
    ``hosts`` has one entry per block of ``arms``."""
    places = places_of(hosts[: arms.old.shape[1]])
    return total_mean(arms, places) if places else None


def estimate_of(mean: Mean | None, value: float, level: float, blocks: int) -> Estimate:
    """``mean`` with its interval; without one the ``value`` of all blocks, which has no bounds for other hosts."""
    if mean is None:
        return Estimate(value, -math.inf, math.inf, level, blocks)
    return mean.estimate(level, blocks)
