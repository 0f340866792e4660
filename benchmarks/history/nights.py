"""Simulated nights of one machine: what the session does to every measurement, and the errors that blocks leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float64]
Session = Callable[[int, np.random.Generator], Floats]

BLOCK = 0.014
"""sd of one block's log-ratio: run-to-run noise of 1 %."""

SESSION = 0.01
"""sd of what one night adds to every measurement of it."""

LEAST, MOST = 8, 24
"""Blocks of a night."""


@dataclass(frozen=True)
class Series:
    """``y``: the level of the measured build; ``r``: its ratio to the reference arm in the same blocks."""

    y: Floats
    y_error: Floats
    r: Floats
    r_error: Floats


def autoregression(phi: float) -> Session:
    """A bad night is followed by another."""

    def session(points: int, rng: np.random.Generator) -> Floats:
        shocks = rng.standard_normal(points + 200) * np.sqrt(1 - phi**2)
        return np.asarray(lfilter([1.0], [1.0, -phi], shocks)[200:])

    return session


def outliers(points: int, rng: np.random.Generator) -> Floats:
    """White, and one night in thirty is off by six sd."""
    odd = rng.random(points) < 1 / 30
    return np.asarray(rng.standard_normal(points) + odd * rng.choice([-6.0, 6.0], points))


def bimodal(points: int, rng: np.random.Generator) -> Floats:
    """Two modes that stick for ten nights and carry 70 % of the variance."""
    modes = 1.0 - 2.0 * (np.cumsum(rng.random(points) < 0.1) % 2)
    return np.asarray(np.sqrt(0.7) * modes + np.sqrt(0.3) * rng.standard_normal(points))


def drift(points: int, rng: np.random.Generator) -> Floats:
    """White on a line that moves by two sd in 500 nights."""
    return np.asarray(rng.standard_normal(points) + rng.choice([-2.0, 2.0]) * np.arange(points) / 500)


SESSIONS: dict[str, Session] = {
    "white": autoregression(0.0),
    "AR 0.3": autoregression(0.3),
    "AR 0.6": autoregression(0.6),
    "AR 0.9": autoregression(0.9),
    "outliers": outliers,
    "bimodal": bimodal,
    "drift": drift,
}


def series(session: Session, points: int, rng: np.random.Generator, *, step: float = 0.0, at: int = 0) -> Series:
    """Nights of one series; from night ``at`` on the measured build is slower by ``step``."""
    blocks = rng.integers(LEAST, MOST + 1, points)
    error = BLOCK / np.sqrt(2 * blocks)  # of one arm's mean; the reference arm's is as large
    own, reference = error * rng.standard_normal(points), error * rng.standard_normal(points)
    shared = SESSION * session(points, rng)
    change = step * (np.arange(points) >= at)
    return Series(shared + own + change, error, own - reference + change, error * np.sqrt(2.0))
