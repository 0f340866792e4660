"""The noise every rule is run on: the six models of ``benchmarks.noise`` and A/A series recorded from real runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.noise import MODELS, Noise

Floats = NDArray[np.float64]

RECORDED = Path(__file__).parent / "recorded"
SESSION = 40
"""Runs of one session: drifts and jumps have their stated size within each, as in the specification's table 3.1."""

SHORTEST = 40
"""A recorded series shorter than one session shows too little of a machine."""


def models(folder: Path = RECORDED) -> dict[str, Noise]:
    """All noise models by name, ``recorded`` among them when ``folder`` holds series."""
    found = dict(MODELS)
    series = recorded_series(folder)
    if series:
        found["recorded"] = replayed(list(series.values()))
    return found


def recorded_series(folder: Path) -> dict[str, Floats]:
    """The recorded A/A series by file name: logarithms, in units of their own sd. See README.md for the format.

    Raises ValueError, naming the file, for one that is not of this format.
    """
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            values = np.array(json.loads(path.read_text())["values"], dtype=float)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not a recorded series: {error}") from error
        if values.ndim != 1 or len(values) < SHORTEST or not (np.isfinite(values) & (values > 0)).all():
            raise ValueError(f"{path}: needs {SHORTEST} finite values above zero, in run order")
        logs = np.log(values)
        if not logs.std() > 0:
            raise ValueError(f"{path}: the values never differ")
        found[path.name] = (logs - logs.mean()) / logs.std()
    return found


def replayed(recordings: list[Floats]) -> Noise:
    """Stretches of recorded runs, each from a random place of a random recording, joined end to start where it ends."""

    def noise(runs: int, series: int, rng: np.random.Generator) -> Floats:
        found = np.empty((series, runs))
        for row in range(series):
            recording = recordings[rng.integers(len(recordings))]
            start = int(rng.integers(len(recording)))
            found[row] = np.take(recording, np.arange(start, start + runs), mode="wrap")
        return found

    return noise


def in_sessions(model: Noise) -> Noise:
    """``model`` as a sequence of sessions of ``SESSION`` runs: more runs do not make a drift any gentler."""

    def noise(runs: int, series: int, rng: np.random.Generator) -> Floats:
        count = -(-runs // SESSION)
        return np.hstack([model(SESSION, series, rng) for _ in range(count)])[:, :runs]

    return noise
