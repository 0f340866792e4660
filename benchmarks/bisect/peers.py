"""How others search a history, by their published logic, on values instead of exit codes. All favoured: they are told
the level half way between good and bad, which nobody knows beforehand, and never meet an unbuildable commit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

Run = Callable[[int], float]
"""Measures the commit at a position."""


def git_bisect_run(positions: int, run: Run, middle: float, repeats: int = 1) -> tuple[int, int]:
    """``git bisect run`` with the mean of ``repeats`` runs as its test: the culprit it names, and runs."""
    good, bad, runs = 0, positions - 1, 0
    while bad - good > 1:
        at = (good + bad) // 2
        runs += repeats
        if np.mean([run(at) for _ in range(repeats)]) > middle:
            bad = at
        else:
            good = at
    return bad, runs


NEW, OLD = (0.9, 0.1), (0.05, 0.95)
"""git_bayesect's Beta priors of failing with and without the culprit (its release 1.2)."""


def bayesect(positions: int, run: Run, middle: float, stop: float, most: int) -> tuple[int, int]:
    """git_bayesect: Beta-Bernoulli with both failure rates unknown and integrated out, next the commit with the least
    expected entropy, until one commit has ``stop`` or after ``most`` runs."""
    failed, total = np.zeros(positions), np.zeros(positions)
    runs = 0
    while True:
        # Of every candidate c: failures and runs at or above c (with the culprit), and below.
        fails, seen = failed.sum(), total.sum()
        fails_below = np.cumsum(failed) - failed
        seen_below = np.cumsum(total) - total
        f1, n1 = fails - fails_below, seen - seen_below
        weight = betaln(NEW[0] + f1, NEW[1] + n1 - f1) + betaln(OLD[0] + fails_below, OLD[1] + seen_below - fails_below)
        weight[0] = -np.inf  # good is known to be good
        share = np.exp(weight - weight.max())
        share /= share.sum()
        if share.max() >= stop or runs >= most:
            return int(np.argmax(share)), runs
        with_culprit = (NEW[0] + f1) / (sum(NEW) + n1)
        without = (OLD[0] + fails_below) / (sum(OLD) + seen_below)
        expected = sum(
            _entropy(share * hit, share * miss)
            for hit, miss in ((with_culprit, without), (1 - with_culprit, 1 - without))
        )
        at = int(np.argmin(expected))
        runs += 1
        failed[at] += run(at) > middle
        total[at] += 1


def _entropy(hit: NDArray[np.float64], miss: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability times entropy after one outcome, for every commit run: ``hit`` weighs candidates at or below it,
    ``miss`` those above."""

    def summed(below: NDArray[np.float64], above: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.cumsum(below) + above.sum() - np.cumsum(above))

    whole = summed(hit, miss)
    logs = summed(*(np.where(w > 0, w * np.log2(np.maximum(w, 1e-300)), 0.0) for w in (hit, miss)))
    return np.asarray(whole * np.log2(np.maximum(whole, 1e-300)) - logs)
