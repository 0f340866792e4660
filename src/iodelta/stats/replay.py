"""The null of a test, made by replaying the randomiser that ordered the trials.

Assumption: the recorded orders were drawn at random. Where every block has its own draw, each block's difference is
equally likely to have the other sign if the variants are alike: all 2^n sign patterns are equally likely. Where several
blocks share one draw (the mirrored pairs of older folders), their signs flip together. All statistics of a block are
replayed with the same draws, so that metrics that move together are tested once, not once each (min-P, Westfall and
Young 1993).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Signs = NDArray[np.int8]

EXACT_COINS = 12
"""Up to so many draws all patterns are replayed."""

DRAWS = 4096
"""Patterns replayed beyond that, drawn from the recorded seed; with each goes its mirror image."""

KEPT_BLOCKS = 100
"""Patterns of more blocks, which few looks have, are drawn anew each time: a run that is followed asks for others after
every block, and those that are kept take 4 KiB a block."""


def smallest_share(draws: int) -> float:
    """Return the smallest one-sided p value that a replay of so many draws can give."""
    return 0.5**draws if draws <= EXACT_COINS else 1.0 / (DRAWS + 1)


def _replayed(coins: tuple[int, ...], seed: int) -> Signs:
    names, index = np.unique(np.asarray(coins), return_inverse=True)
    # Rows of +-1, shape (patterns, count); row i and row -1 - i are mirror images.
    count = len(names)
    if count <= EXACT_COINS:
        bits = (np.arange(1 << count)[:, None] >> np.arange(count)) & 1
    else:
        half = np.random.default_rng(seed).integers(0, 2, size=(DRAWS // 2, count))
        bits = np.concatenate([half, 1 - half[::-1]])
    return np.ascontiguousarray(np.asarray(1 - 2 * bits, dtype=np.int8)[:, index])


kept_replays = lru_cache(maxsize=32)(_replayed)


def patterns(coins: tuple[int, ...], seed: int) -> Floats:
    """Return the sign of every block under each replay of the randomiser, shape (patterns, blocks), read-only.

    ``coins`` gives each block the number of the draw that ordered it. Row i and row -1 - i are mirror images.
    """
    replay = kept_replays if len(coins) <= KEPT_BLOCKS else _replayed
    signs = replay(coins, seed).astype(np.float64)
    signs.setflags(write=False)
    return signs


def shares(replayed: Floats, tolerance: float = 1e-9) -> Floats:
    """Per pattern and column of ``replayed``, shape (patterns, statistics): the share of patterns with a value at least
    as large. It is the p value that this pattern would have had."""
    count = len(replayed)
    ratios = np.empty_like(replayed)
    for column in range(replayed.shape[1]):
        values = replayed[:, column]
        ordered = np.sort(values)
        slack = tolerance * np.maximum(np.abs(values), 1e-300)
        ratios[:, column] = (
            1.0 - np.searchsorted(ordered, values - slack, side="left") / count
        )
    return ratios


def share_of(
    replayed: Floats, seen: Floats, *, exact: bool, tolerance: float = 1e-9
) -> Floats:
    """Per column the p value of ``seen``: the share of patterns with a value at least as large, the one that was run
    counted among them where the patterns are drawn."""
    slack = tolerance * np.maximum(np.abs(seen), 1e-300)
    hits = np.count_nonzero(replayed >= seen - slack, axis=0)
    return np.asarray(
        hits / len(replayed) if exact else (hits + 1.0) / (len(replayed) + 1.0)
    )


def joint(smallest: Floats, p: Floats, *, statistics: float, exact: bool) -> Floats:
    """``p`` corrected for having been the smallest of several: the share of patterns whose ``smallest`` p value is as
    small, but no more than Bonferroni's ``statistics`` times p."""
    ordered = np.sort(smallest)
    hits = np.searchsorted(ordered, p * (1 + 1e-9), side="right")
    replayed = hits / len(ordered) if exact else (hits + 1.0) / (len(ordered) + 1.0)
    return np.minimum(np.minimum(1.0, statistics * p), np.maximum(p, replayed))


def critical(
    smallest: Floats, level: float, *, statistics: float, exact: bool
) -> float:
    """Return the largest p value of a single statistic that is still within ``level`` when corrected as in ``joint``."""
    ordered = np.sort(smallest)
    count = len(ordered)
    allowed = (
        math.floor(level * count * (1 + 1e-9))
        if exact
        else math.floor(level * (count + 1) * (1 + 1e-9)) - 1
    )
    # Every p value below that of the first replay beyond the allowed number is still within the level.
    read = float(ordered[allowed]) * (1 - 1e-6) if 0 <= allowed < count else 0.0
    return max(level / statistics, min(level, read))
