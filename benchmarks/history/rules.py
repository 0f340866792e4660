"""Rules that say "here is a step": iodelta's, and what others publish. Each sees the nights up to now and no later one.

A rule returns pairs (the night on which it was said, the first night of the new level).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from iodelta.stats import changepoints, levels

Floats = NDArray[np.float64]
Said = list[tuple[int, int, float]]
"""Night, place and direction of each."""

Rule = Callable[[Floats], Said]


def candidates(y: Floats, error: Floats, inflation: float, threshold: float) -> Said:
    """iodelta's, at a threshold."""
    found = changepoints.online(y, error, threshold=threshold, inflation=inflation)
    return [(step.found, step.at, step.size) for step in found]


def inflation_of(y: Floats, error: Floats) -> float:
    """What a placebo series of the same machine says of nights that resemble their neighbours."""
    one = np.zeros(len(y), dtype=np.intp)
    return levels.inflation(y, error, levels.between(y, error, one), one)


def fixed_threshold(y: Floats) -> Said:
    """A night more than 3 % off the mean of the 30 before it."""
    said: Said = []
    begin = 0
    for now in range(5, len(y)):
        before = y[max(begin, now - 30) : now]
        if len(before) >= 5 and abs(y[now] - before.mean()) > 0.03:
            said.append((now, now, float(y[now] - before.mean())))
            begin = now
    return said


def t_test(y: Floats) -> Said:
    """t above 7 between the last 12 nights and the 12 before, and 2 % apart: the rule of Mozilla's Perfherder, without
    its weights."""
    said: Said = []
    begin = 0
    for now in range(23, len(y)):
        if now - begin < 23:
            continue
        old, new = y[now - 23 : now - 11], y[now - 11 : now + 1]
        pooled = np.sqrt((np.var(old, ddof=1) + np.var(new, ddof=1)) / 12)
        if abs(new.mean() - old.mean()) > max(0.02, 7.0 * float(pooled)):
            said.append((now, now - 11, float(new.mean() - old.mean())))
            begin = now - 11
    return said


def otava(y: Floats) -> Said:
    """Apache Otava as it comes, over the whole series at once: its points, each as if said a night later."""
    analysis = importlib.import_module("otava.analysis")
    found, _ = analysis.compute_change_points(list(np.exp(y)), window_len=50, max_pvalue=0.001, min_magnitude=0.0)
    return [(point.index + 1, point.index, point.stats.mean_2 - point.stats.mean_1) for point in found]


def rivals() -> dict[str, Rule]:
    """Those that are here: Otava only where it is installed."""
    here: dict[str, Rule] = {"fixed threshold 3 %": fixed_threshold, "t test over 12 + 12": t_test}
    if importlib.util.find_spec("otava") is not None:
        here["otava (whole series)"] = otava
    return here
