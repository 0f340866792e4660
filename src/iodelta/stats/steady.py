"""Is the measured window of one run steady: a start to cut off, and a slope over what is left. Diagnostics only.

Both variants of a block lose the same seconds (the fixed ramp); a run found not steady has its whole block repeated.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

BATCH = 5


class Steadiness(msgspec.Struct, frozen=True):
    """``cut`` values of the start that MSER-5 would drop (None: more than half, no steady part was found), and the
    relative change over the window along the line of least squares."""

    cut: int | None
    slope: float
    steady: bool
    why: str


def mser5(series: ArrayLike) -> int | None:
    """Values to drop from the start by MSER-5, a multiple of 5; None when it would be more than half, 0 when the
    series is shorter than 10. Source: White, Cobb and Spratt 2000."""
    data = np.asarray(series, dtype=float)
    batches = len(data) // BATCH
    if batches < 2:
        return 0
    means = data[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    kept = np.arange(batches, 0, -1)
    sums = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum(((means - means.mean()) ** 2)[::-1])[::-1]
    shift = sums - kept * means.mean()
    scores = np.maximum(squares - shift**2 / kept, 0.0) / kept**2
    # The last few batches always look steady; half of them is the furthest that can be dropped.
    best = int(np.argmin(scores[: max(1, batches - BATCH + 1)]))
    if best > batches / 2:
        return None
    return best * BATCH


def window_slope(series: ArrayLike) -> float:
    """Relative change from the start to the end of the window along the line of least squares; 0 for fewer than 2
    values or a mean of 0."""
    data = np.asarray(series, dtype=float)
    n = len(data)
    mean = float(data.mean()) if n else 0.0
    if n < 2 or mean == 0.0:
        return 0.0
    t = np.arange(n) - (n - 1) / 2
    return float(t @ data / (t @ t)) * (n - 1) / mean


def steadiness(series: ArrayLike, *, ramp: int, margin: float) -> Steadiness:
    """Return whether one run's per-second ``series``, its ``ramp`` first seconds included, was steady after the ramp.

    Not steady: MSER-5 cuts more than the ramp and what it cuts differs from the rest, or the value moves over the
    window along a slope; each by more than half the ``margin`` and by more than its own noise explains (2 standard
    errors: MSER-5 by itself cuts something off most flat runs).
    """
    data = np.asarray(series, dtype=float)
    cut = mser5(data)
    window = data[ramp:]
    slope = window_slope(window)
    late = len(data) // 2 if cut is None else cut
    if late > ramp and _differ(data[ramp:late], data[late:], margin / 2):
        settled = "never settles" if cut is None else f"settles only after {cut} s"
        return Steadiness(
            cut, slope, False, f"the run {settled}, with a ramp of {ramp} s"
        )
    if abs(slope) > max(margin / 2, 2 * _slope_error(window)):
        why = f"the value moves by {100 * slope:+.1f} % over the window, more than half the margin"
        return Steadiness(cut, slope, False, why)
    return Steadiness(cut, slope, True, "")


def _differ(first: Floats, other: Floats, margin: float) -> bool:
    """Return whether two stretches differ by more than ``margin``, relative, and 2 standard errors; a stretch of one
    second takes the other's spread."""
    if not len(first) or len(other) < 2 or other.mean() == 0.0:
        return False
    gap = abs(float(first.mean() - other.mean()))
    noise = float(other.var(ddof=1)) * (1 / len(first) + 1 / len(other))
    return gap > margin * abs(float(other.mean())) and gap > 2 * float(np.sqrt(noise))


def _slope_error(window: Floats) -> float:
    """Standard error of ``window_slope``."""
    n = len(window)
    mean = float(window.mean()) if n else 0.0
    if n < 3 or mean == 0.0:
        return 0.0
    t = np.arange(n) - (n - 1) / 2
    line = float(t @ window / (t @ t))
    left = window - mean - line * t
    return float(np.sqrt(left @ left / (n - 2) / (t @ t))) * (n - 1) / abs(mean)
