"""Rare stalls: which trials of an arm stalled, and which share of stalls the trials exclude.

n trials without a stall exclude, at 95 %, stalls in more than about 3 / n of all trials, but not less (the rule of
three; Hanley and Lippman-Hand 1983). That holds for single stalls. Stalls that come in runs are as many fewer episodes:
n trials are n / L chances for a run of L, so the share of trials that they leave open is about L times as large.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iodelta.stats.special import betainc, betaincinv

WINDOW = 11
"""Trials of an arm, in run order, with whose median a trial is compared: a drift must not pass for a stall."""

FAR = 6.0
"""Robust standard deviations below that median from which a trial counts as stalled..."""

LEAST = 0.05
"""...and at least this log-ratio."""

NORMAL_MAD = 1.4826


CONFIDENCE = 0.95
AFTER_A_STALL = 0.01
"""Once a trial stalled a run goes on until its trials exclude the share after all, and these later chances add up. With
bounds of 95 %, one of the usual looks excludes by mistake that 10 % of trials stall in 7.8 % of runs, and that 30 % do
in 11.7 %. With this error over the number of stalls, so 99 % after one and 99.5 % after two, whoever looks after each
of any number of trials excludes them by mistake in less than 6 % of runs; with 99 % throughout it is 8 % in 300
trials and 11 % in 1400."""


def confidence_of(stalled: int) -> float:
    """Return the level of a bound of stalls during a run."""
    if not stalled:
        return CONFIDENCE
    return 1.0 - AFTER_A_STALL / stalled


def trials_needed(share: float, *, stalled: int = 0) -> int:
    """Fewest trials that, ``stalled`` of them with a stall, exclude stalls in ``share`` of trials: for 10 % 29 without
    a stall, 64 with one."""
    without = math.ceil(math.log(1.0 - CONFIDENCE) / math.log1p(-share) - 1e-9)
    if not stalled:
        return without

    def enough(trials: int) -> bool:
        return trials > stalled and betainc(
            stalled + 1, trials - stalled, share
        ) >= confidence_of(stalled)

    # From few trials on: the more there are, the longer one look takes.
    most = without
    while not enough(most):
        most *= 2
    return bisect_left(range(most), True, key=enough)


def excluded(stalled: int, trials: int, confidence: float | None = None) -> float:
    """Return the upper bound of the share of stalled trials (Clopper-Pearson, one-sided); 1 without trials. Where the
    number of trials was fixed beforehand, ``confidence`` may be 95 % whether any stalled or not."""
    if trials < 1 or stalled >= trials:
        return 1.0
    level = confidence_of(stalled) if confidence is None else confidence
    return float(betaincinv(stalled + 1, trials - stalled, level))


def episodes(stalled: Iterable[float], trials: Sequence[float]) -> tuple[int, int]:
    """Return how many episodes the stalled ones of an arm's ``trials`` (in run order) make, and the longest of them,
    in trials: a stall directly after a stall of the same arm continues it."""
    lost = set(stalled)
    runs = [len(list(run)) for hit, run in groupby(trials, lost.__contains__) if hit]
    return len(runs), max(runs, default=0)


def stalled_trials(worse: ArrayLike) -> tuple[int, ...]:
    """Places of the trials of one arm that stalled. ``worse`` has one value per trial in run order, the larger the
    worse: a log latency, or minus a log rate."""
    values = np.asarray(worse, dtype=float)
    if len(values) < 5:
        return ()
    half = WINDOW // 2
    padded = (
        np.pad(values, half, mode="reflect", reflect_type="even")
        if len(values) > half
        else values
    )
    if len(padded) == len(values):
        centre = np.full(len(values), np.median(values))
    else:
        centre = np.median(
            np.lib.stride_tricks.sliding_window_view(padded, WINDOW), axis=1
        )
    above = values - centre
    limit = max(LEAST, FAR * NORMAL_MAD * float(np.median(np.abs(above))))
    return tuple(int(place) for place in np.flatnonzero(above > limit))


def likelier_by_arm(
    stalled: NDArray[np.bool_], variant: NDArray[np.bool_], after: NDArray[np.bool_]
) -> float:
    """Return the log-likelihood ratio of two explanations of which trials ``stalled``: by the arm that a trial belongs
    to (``variant`` or not), against by the arm of the trial before it (``after`` the variant or not).

    Where a trial of the baseline makes the next one stall, most of the variant's trials would stall and few of the
    baseline's, since arms mostly take turns; but the baseline's trials that follow one of their own would stall, too.
    """
    return _likelihood(stalled, variant) - _likelihood(stalled, after)


def _likelihood(stalled: NDArray[np.bool_], groups: NDArray[np.bool_]) -> float:
    """Return the largest log-likelihood under a chance of its own for each of two groups."""
    total = 0.0
    for chosen in (stalled[groups], stalled[~groups]):
        for times in (int(np.count_nonzero(chosen)), int(np.count_nonzero(~chosen))):
            total += times * math.log(times / len(chosen)) if times else 0.0
    return total
