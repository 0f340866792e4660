"""Simulated experiments as series and trials: what the tests of verdicts are fed with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.noise import Noise, experiments
from iodelta.trial import Direction, Latency, Quantity, Trial
from iodelta.verdict import Series, metric

Floats = NDArray[np.float64]


def series(
    baseline: Floats,
    variant: Floats,
    first: Sequence[bool] | NDArray[np.bool_] | None = None,
    *,
    cell: str = "randread",
    name: str = "read.iops",
    at: Sequence[int] | None = None,
    **more: object,
) -> Series:
    """A series whose blocks ran one after the other: block b as trials 2 ``at[b]`` and 2 ``at[b]`` + 1."""
    n = len(baseline)
    order = np.arange(n) % 2 == 0 if first is None else np.asarray(first[:n], dtype=bool)
    places = 2 * np.asarray(range(n) if at is None else at)
    return Series(
        cell=cell,
        metric=metric(name),
        baseline="old",
        variant="new",
        blocks=tuple(range(n)),
        baseline_values=tuple(baseline.tolist()),
        variant_values=tuple(variant.tolist()),
        baseline_first=tuple(order.tolist()),
        baseline_at=tuple(np.where(order, places, places + 1).tolist()),
        variant_at=tuple(np.where(order, places + 1, places).tolist()),
        **more,  # type: ignore[arg-type]
    )


def many(
    model: Noise,
    *,
    blocks: int,
    count: int,
    change: float,
    sd: float,
    seed: int,
) -> list[Series]:
    """``count`` independent cells; the variant's IOPS differ by ``change``, the log-ratio of a block has ``sd``."""
    rng = np.random.default_rng(seed)
    a, b, first = experiments(
        model, blocks=blocks, series=count, change=float(np.log1p(change)), sd=sd / np.sqrt(2), rng=rng
    )
    return [series(1e5 * a[i], 1e5 * b[i], first[i], cell=f"cell {i}") for i in range(count)]


def latency(mean: float, count: int = 100_000) -> Latency:
    """A latency in ns whose p50, p99 and p99.9 are 0.9, 4 and 10 times the mean."""

    def ns(factor: float) -> Quantity:
        return Quantity.exact(mean * factor, "ns")

    percentiles = {50.0: ns(0.9), 99.0: ns(4.0), 99.9: ns(10.0)}
    return Latency(count, ns(1.0), ns(0.5), ns(0.1), ns(50.0), percentiles)


def trial(
    number: int,
    variant: str,
    block: int,
    iops: float,
    *,
    cell: str = "randread",
    position: int = 0,
    kind: str = "read",
    ios: int = 100_000,
    **more: object,
) -> Trial:
    """A trial of 4 KiB I/Os at iodepth 32, obeying Little's law."""
    rate = Quantity.exact(iops, "IOPS")
    lat = latency(32e9 / iops if iops > 0 else 1.0, ios)
    direction = Direction(kind, ios, ios * 4096, 10_000, rate, Quantity.exact(iops * 4096, "B/s"), lat)  # type: ignore[arg-type]
    return Trial(number, cell, variant, block, position, 1, 1.7e9 + number, 10.0, (direction,), **more)  # type: ignore[arg-type]


def run(
    change: float = 0.0,
    *,
    blocks: int = 20,
    sd: float = 0.014,
    seed: int = 1,
    variants: Sequence[str] = ("old", "new"),
    cell: str = "randread",
    start: int = 0,
) -> list[Trial]:
    """The trials of one cell in randomised blocks; every variant but the first has its IOPS changed by ``change``."""
    rng = np.random.default_rng(seed)
    trials = []
    for block in range(blocks):
        for position, which in enumerate(rng.permutation(len(variants))):
            iops = 1e5 * np.exp(rng.normal(0, sd)) * (1 + (change if which else 0.0))
            number = start + block * len(variants) + position
            trials.append(trial(number, variants[which], block, float(iops), cell=cell, position=position))
    return trials
