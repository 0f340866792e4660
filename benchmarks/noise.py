"""Run-to-run noise as storage machines show it: the six models that verdicts are held to, in units of their sd.

Each takes the number of runs, of independent series and a generator, and returns an array (series, runs): what is
added to the logarithm of a run's value, in run order. Used by the benchmarks and by tests.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float64]
Noise = Callable[[int, int, np.random.Generator], Floats]

AR = 0.6
DRIFT = 2.0
JUMP = 1.5
MODE_SHARE = 0.7
SWITCH = 0.1


def white(runs: int, series: int, rng: np.random.Generator) -> Floats:
    """Independent normal noise."""
    return rng.standard_normal((series, runs))


def autocorrelated(runs: int, series: int, rng: np.random.Generator) -> Floats:
    """First-order autoregression with coefficient 0.6: a bad minute is followed by another."""
    shocks = rng.standard_normal((series, runs)) * np.sqrt(1 - AR**2)
    shocks[:, 0] /= np.sqrt(1 - AR**2)
    return np.asarray(lfilter([1.0], [1.0, -AR], shocks, axis=1))


def linear_drift(runs: int, series: int, rng: np.random.Generator) -> Floats:
    """White noise on a line that moves by 2 sd in all, up or down: a device that fills or a room that warms."""
    direction = rng.choice([-1.0, 1.0], size=(series, 1))
    return white(runs, series, rng) + direction * np.linspace(0.0, DRIFT, runs)


def random_walk(runs: int, series: int, rng: np.random.Generator) -> Floats:
    """White noise on a random walk whose end has sd 2."""
    steps = rng.standard_normal((series, runs)) * (DRIFT / np.sqrt(runs))
    return np.asarray(white(runs, series, rng) + np.cumsum(steps, axis=1))


def one_jump(runs: int, series: int, rng: np.random.Generator) -> Floats:
    """White noise with one jump of 1.5 sd, up or down, somewhere: another tenant arrives."""
    at = rng.integers(1, max(2, runs), size=(series, 1))
    size = rng.choice([-JUMP, JUMP], size=(series, 1))
    return np.asarray(white(runs, series, rng) + size * (np.arange(runs) >= at))


def bimodal(runs: int, series: int, rng: np.random.Generator) -> Floats:
    """Two modes that stick (switching once in ten runs) and carry 70 % of the variance: a cache or queue that falls
    one way or the other. Long-run variance 6.6 times the variance."""
    switches = np.cumsum(rng.random((series, runs)) < SWITCH, axis=1)
    start = rng.integers(0, 2, size=(series, 1))
    modes = 1.0 - 2.0 * ((switches + start) % 2)
    return np.asarray(np.sqrt(MODE_SHARE) * modes + np.sqrt(1 - MODE_SHARE) * white(runs, series, rng))


MODELS: dict[str, Noise] = {
    "white": white,
    "autocorrelated": autocorrelated,
    "linear drift": linear_drift,
    "random walk": random_walk,
    "one jump": one_jump,
    "sticky bimodal": bimodal,
}


def orientations(blocks: int, series: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether the baseline runs first in each block: coin-flipped AB or BA for the first of two blocks, the other way
    round in the second (ABBA or BAAB). Shape (series, blocks)."""
    coins = rng.random((series, (blocks + 1) // 2)) < 0.5
    return np.asarray(np.stack([coins, ~coins], axis=2).reshape(series, -1)[:, :blocks])


def experiments(
    model: Noise,
    *,
    blocks: int,
    series: int,
    change: float,
    sd: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Values (baseline, variant), both (series, blocks) around 1, and which ran first, of simulated experiments in
    randomised blocks: the variant's logarithm is higher by ``change``, one run's noise has ``sd``."""
    first = orientations(blocks, series, rng)
    noise = (sd * model(2 * blocks, series, rng)).reshape(series, blocks, 2)
    baseline = np.where(first, noise[:, :, 0], noise[:, :, 1])
    variant = np.where(first, noise[:, :, 1], noise[:, :, 0]) + change
    return np.exp(baseline), np.exp(variant), first
