"""The CPU cost of one I/O: a longer path is visible here before it lowers IOPS, as long as a fast CPU hides it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iodelta.trial import Trial


def system_ns_per_io(trial: Trial) -> float:
    """Kernel CPU time of the load per I/O in ns, all directions together; nan where it was not measured.

    ``sys_cpu`` is a share of one CPU over the measured window, which is the longest direction's runtime.
    """
    ios = _ios(trial)
    window_ns = 1e6 * max(
        (direction.runtime_ms for direction in trial.directions), default=0
    )
    return trial.sys_cpu / 100.0 * window_ns / ios if ios and window_ns else math.nan


def is_resolved(times: Sequence[float]) -> bool:
    """Return whether the kernel times of trials mean anything: a kernel that counts them in ticks of some milliseconds
    counts 0 in a trial of few I/Os, and a median of such zeros is not a time."""
    return sum(value > 0 for value in times) > 0.75 * len(times)


def switches_per_io(trial: Trial) -> float:
    """Context switches of the load per I/O, all directions together; nan where there were no I/Os or none counted.

    A load that waits for I/O switches at least now and then, so a count of 0 means that nobody counted.
    """
    ios = _ios(trial)
    if ios and trial.context_switches > 0:
        return trial.context_switches / ios
    return math.nan


def _ios(trial: Trial) -> int:
    return sum(direction.ios for direction in trial.directions)
