"""Boots as units: more runs inside one boot do not average away the difference between boots.

With a boot-to-boot sd of 0.3-1.5 % and 1 % run noise, runs as units give 23-76 % false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

MIN_BOOTS = 5
MOST_RUNS = 4


def boot_means(
    values: ArrayLike, boots: Sequence[str]
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Boots in first-seen order and the mean of ``values`` (logs, as a rule) within each. Raises ValueError when
    lengths differ."""
    data = np.asarray(values, dtype=float)
    if len(data) != len(boots):
        raise ValueError("boot_means needs one boot per value")
    names = tuple(dict.fromkeys(boots))
    index = {name: at for at, name in enumerate(names)}
    which = np.array([index[boot] for boot in boots], dtype=np.intp)
    return names, np.bincount(which, weights=data, minlength=len(names)) / np.bincount(
        which, minlength=len(names)
    )


def runs_per_boot(
    boot_cost: float, run_cost: float, run_sd: float, boot_sd: float
) -> int:
    """Runs k to make in each boot, 1 to 4: sqrt(boot cost / run cost) x run sd / boot sd (Kalibera and Jones 2013)."""
    if run_cost <= 0.0 or boot_sd <= 0.0:
        return MOST_RUNS
    return min(
        MOST_RUNS,
        max(1, round(math.sqrt(max(boot_cost, 0.0) / run_cost) * run_sd / boot_sd)),
    )
