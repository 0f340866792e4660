"""Bimodality: does the machine run at two speeds, how is its time shared between them, and did a change move either."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GRID = 512
MIN_SAMPLES = 100
"""Fewer seconds than this have gaps that look like valleys: up to 10 % of skewed samples of 40."""

MIN_SHARE = 0.1
"""A mode holds at least 10 % of the seconds; less is a handful of outliers."""

VALLEY = 0.6
"""Two hills are two modes when the density between them falls to 0.6 of the lower hill."""

SEPARATION = 2.0
"""Ashman's D: mode centres at least two within-mode sds apart (Ashman, Bird and Zepf 1994)."""

MIN_VISITS = 3
"""A mode is a place the machine returns to. Fewer visits are a step or a drift, not bimodality."""


class Mode(msgspec.Struct, frozen=True):
    """One mode: ``centre`` and ``sd`` in the units of the values, ``share`` of the samples, times it was entered."""

    centre: float
    sd: float
    share: float
    visits: int


class Modes(msgspec.Struct, frozen=True):
    """The modes, slowest value first, and the ``cuts`` between them; one mode and no cut when nothing separates."""

    modes: tuple[Mode, ...]
    cuts: tuple[float, ...]

    @property
    def bimodal(self) -> bool:
        """Return whether there are two modes or more."""
        return len(self.modes) > 1


def find_modes(runs: Sequence[Floats]) -> Modes:
    """The modes of the pooled samples of ``runs`` (each in time order, e.g. log IOPS per second).

    Hills of a Gaussian kernel density (bandwidth 0.9 min(sd, IQR/1.34) n^-1/5, Silverman 1986, eq. 3.31) are merged,
    weakest valley first, until each holds ``MIN_SHARE`` of the samples, is separated by a valley and ``SEPARATION``,
    and is visited ``MIN_VISITS`` times. Not-finite samples are left out. No samples: no modes.
    """
    kept = [run[np.isfinite(run)] for run in runs]
    values = np.concatenate(kept) if kept else np.empty(0)
    if not values.size:
        return Modes((), ())
    cuts = _valleys(values) if values.size >= MIN_SAMPLES else []
    while cuts:
        worst = _weakest(kept, values, [at for at, _ in cuts])
        shallow = max(range(len(cuts)), key=lambda index: cuts[index][1])
        if cuts[shallow][1] > VALLEY:
            cuts.pop(shallow)
        elif worst is not None:
            cuts.pop(worst)
        else:
            break
    edges = [at for at, _ in cuts]
    return Modes(tuple(_describe(kept, values, edges)), tuple(edges))


def shares(run: Floats, cut: float) -> tuple[float, float, float]:
    """Share of a run's samples above ``cut``, and the means of those below and above (nan where there are none)."""
    seconds = run[np.isfinite(run)]
    if not seconds.size:
        return float("nan"), float("nan"), float("nan")
    above = seconds > cut
    below_mean = float(seconds[~above].mean()) if not above.all() else float("nan")
    above_mean = float(seconds[above].mean()) if above.any() else float("nan")
    return float(above.mean()), below_mean, above_mean


def _valleys(values: Floats) -> list[tuple[float, float]]:
    """Return every valley of the density between two hills: where, and how high against the lower of its two hills."""
    spread = _scale(values)
    if not spread > 0:
        return []
    width = 0.9 * spread * len(values) ** -0.2
    grid = np.linspace(values.min() - 3 * width, values.max() + 3 * width, GRID)
    step = grid[1] - grid[0]
    reach = np.arange(-int(4 * width / step) - 1, int(4 * width / step) + 2) * step
    counts = np.histogram(values, bins=np.append(grid - step / 2, grid[-1] + step / 2))[
        0
    ]
    density = np.convolve(
        counts.astype(float), np.exp(-0.5 * (reach / width) ** 2), mode="same"
    )
    slope = np.sign(np.diff(density))
    turns = np.flatnonzero(slope)
    signs = slope[turns]
    peaks = [
        int(turns[at + 1])
        for at in range(len(turns) - 1)
        if signs[at] > 0 > signs[at + 1]
    ]
    valleys = []
    for left, right in pairwise(peaks):
        floor = left + int(np.argmin(density[left : right + 1]))
        valleys.append(
            (
                float(grid[floor]),
                float(density[floor] / min(density[left], density[right])),
            )
        )
    return valleys


def _scale(values: Floats) -> float:
    sd = float(values.std())
    quarter = float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34
    if quarter > 0:
        return min(sd, quarter)
    return sd


def _weakest(
    runs: Sequence[Floats], values: Floats, cuts: Sequence[float]
) -> int | None:
    """Index of the first cut that does not part two true modes, or None."""
    modes = _describe(runs, values, cuts)
    for index in range(len(cuts)):
        low, high = modes[index], modes[index + 1]
        apart = abs(high.centre - low.centre) * 2**0.5
        if (
            min(low.share, high.share) < MIN_SHARE
            or min(low.visits, high.visits) < MIN_VISITS
            or apart < SEPARATION * float(np.hypot(low.sd, high.sd))
        ):
            return index
    return None


def _describe(
    runs: Sequence[Floats], values: Floats, cuts: Sequence[float]
) -> list[Mode]:
    where = np.digitize(values, cuts)
    state = np.concatenate([np.digitize(run, cuts) for run in runs])
    entered = np.flatnonzero(np.diff(state)) + 1
    starts = state[np.concatenate([[0], entered])]
    modes = []
    for mode in range(len(cuts) + 1):
        mine = values[where == mode]
        modes.append(
            Mode(
                float(mine.mean()) if mine.size else float("nan"),
                float(mine.std()) if mine.size else float("nan"),
                mine.size / values.size,
                int((starts == mode).sum()),
            )
        )
    return modes
