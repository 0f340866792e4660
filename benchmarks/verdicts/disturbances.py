"""What disturbs a machine: log rates of trials in run order, all arms alike. Written from the description of each
disturbance, without the engine: what is known of the truth must not come from what is tested."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Disturbance = Callable[[np.random.Generator, int], Floats]
"""From a generator and a number of trials to their log rates."""

CALM = 0.01
"""Trial-to-trial sd under disturbances that have a shape of their own."""

LOADED = 0.2
"""Trial-to-trial sd on a machine that others use."""

SLOWEST = 0.05
"""A trial does at least this share of the usual work, however long the tail of its noise."""


def normal(cv: float) -> Disturbance:
    """Log-normal trials."""
    return lambda rng, trials: cv * rng.standard_normal(trials)


def heavy_tails(cv: float) -> Disturbance:
    """Student's t with 3 degrees of freedom, of standard deviation ``cv``."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        return np.asarray(np.log(np.maximum(SLOWEST, 1 + cv * rng.standard_t(3, trials) / math.sqrt(3))))

    return rates


def contaminated(cv: float, share: float) -> Disturbance:
    """Normal trials, a ``share`` of them with Cauchy noise."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        wild = np.where(rng.random(trials) < share, rng.standard_cauchy(trials), rng.standard_normal(trials))
        return np.asarray(np.log(np.clip(1 + cv * wild, SLOWEST, 1 / SLOWEST)))

    return rates


def drift(size: float) -> Disturbance:
    """A straight fall (or rise) by ``size`` in all."""
    return lambda rng, trials: np.log1p(size * np.arange(trials) / max(1, trials - 1)) + _calm(rng, trials)


def warm_up(size: float, trials_to_settle: float) -> Disturbance:
    """Rates that start lower by ``size`` and settle exponentially."""
    return lambda rng, trials: np.log1p(-size * np.exp(-np.arange(trials) / trials_to_settle)) + _calm(rng, trials)


def autoregressive(phi: float, sd: float) -> Disturbance:
    """AR(1), stationary from the first trial on, of standard deviation ``sd`` in all."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        shocks = rng.standard_normal(trials)
        found = np.empty(trials)
        level = shocks[0]
        for at in range(trials):
            level = level if at == 0 else phi * level + math.sqrt(1 - phi * phi) * shocks[at]
            found[at] = level
        return sd * found

    return rates


def moving_average(sd: float) -> Disturbance:
    """MA(1): half of what disturbs a trial disturbs the next one too."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        shocks = rng.standard_normal(trials + 1)
        return np.asarray(sd * (shocks[1:] + shocks[:-1]) / math.sqrt(2))

    return rates


def pink(sd: float) -> Disturbance:
    """1/f noise: a spectrum that falls with the frequency, over four times the length of the run."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        size = 4 * trials
        frequency = np.fft.rfftfreq(size)
        weight = np.zeros(len(frequency))
        weight[1:] = 1 / np.sqrt(frequency[1:])
        phases = rng.standard_normal(len(frequency)) + 1j * rng.standard_normal(len(frequency))
        whole = np.fft.irfft(weight * phases, size)
        return np.asarray(sd * whole[:trials] / whole.std())

    return rates


def two_modes(apart: float) -> Disturbance:
    """Two speeds ``apart``; before every trial the machine switches with probability 1/2."""
    return lambda rng, trials: np.log1p(-apart) * (rng.random(trials) < 0.5) + _calm(rng, trials)


def throttled(depth: float) -> Disturbance:
    """From some trial of the last half on, everything is slower by ``depth``."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        start = rng.integers(trials // 2, trials)
        return np.asarray(np.log1p(-depth) * (np.arange(trials) >= start) + _calm(rng, trials))

    return rates


def periodic(depth: float, period: float, length: float) -> Disturbance:
    """Garbage collection: every ``period`` trials, for ``length`` trials, the device loses ``depth``. The phase is
    random; a trial loses by the share of it that lies in a collection."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        edges = np.arange(trials + 1) + period * rng.random()
        turns = np.floor(edges / period)
        busy = turns * length + np.minimum(edges - turns * period, length)
        return np.asarray(np.log1p(-depth * np.diff(busy)) + _calm(rng, trials))

    return rates


def whole_trials(depth: float, period: int, length: int) -> Disturbance:
    """As ``periodic``, in step with the trials: whole trials are slow."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        slow = (np.arange(trials) + rng.integers(period)) % period < length
        return np.asarray(np.log1p(-depth) * slow + _calm(rng, trials))

    return rates


def bursts(depth: float, share: float) -> Disturbance:
    """Bursts of two trials that lose ``depth``, each begun with probability ``share``."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        begun = rng.random(trials + 1) < share
        return np.asarray(np.log1p(-depth) * (begun[1:] | begun[:-1]) + _calm(rng, trials))

    return rates


def loaded(depth: float, trials_long: float, trials_apart: float) -> Disturbance:
    """Load of others that comes and goes, for ``trials_long`` trials on average, ``trials_apart`` after the last one:
    while it lasts, each trial loses by a factor of its own, exp of an exponential of mean ``depth``."""

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        busy = np.zeros(trials, dtype=bool)
        at = int(rng.geometric(1 / trials_apart)) - 1
        while at < trials:
            end = at + int(rng.geometric(1 / trials_long))
            busy[at:end] = True
            at = end + int(rng.geometric(1 / trials_apart))
        return np.asarray(LOADED * rng.standard_normal(trials) - busy * rng.exponential(depth, trials))

    return rates


def growing(first: float, last: float) -> Disturbance:
    """Log-normal trials whose standard deviation grows from ``first`` to ``last``, by the same factor every trial."""
    return lambda rng, trials: np.geomspace(first, last, trials) * rng.standard_normal(trials)


def recorded(path: Path) -> Disturbance:
    """Trials of a real machine on which nothing was changed, as they were measured: a stretch from a random place,
    joined end to start where the recording ends."""
    logs = np.log(np.array(json.loads(path.read_text())["values"], dtype=float))
    logs -= logs.mean()

    def rates(rng: np.random.Generator, trials: int) -> Floats:
        start = int(rng.integers(len(logs)))
        return np.take(logs, np.arange(start, start + trials), mode="wrap")

    return rates


def _calm(rng: np.random.Generator, trials: int) -> Floats:
    return np.asarray(CALM * rng.standard_normal(trials))
