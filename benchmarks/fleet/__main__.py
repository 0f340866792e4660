"""False claims and cover of what hosts say together, on simulated fleets of known truth, beside the usual interval.

``python -m benchmarks.fleet [FLEETS] > benchmarks/fleet/agreement.md``

A host's true change is normal about 0 with standard deviation tau; it measures it in 8 to 39 blocks whose noise is 0.5
to 4 %, and knows its error from these blocks alone. A false claim is an interval of the mean that excludes 0; the next
host is covered where its true change lies in the prediction interval.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import stdtrit

from iodelta.stats.agreement import LEVEL, agree

Floats = NDArray[np.float64]

HOSTS = (3, 4, 5, 8, 12, 20)
SPREADS = (0.0, 0.0025, 0.005, 0.01, 0.02)


class Said(NamedTuple):
    """Both intervals of one method: of the mean, and of the next host."""

    mean: tuple[float, float]
    next: tuple[float, float]


def ours(values: Floats, errors: Floats) -> Said:
    found = agree(values, errors)
    return Said((found.mean.low, found.mean.high), (found.next.low, found.next.high))


def usual(values: Floats, errors: Floats) -> Said:
    """Paule and Mandel's tau, the modified error of Hartung and Knapp, t with hosts - 1 degrees of freedom."""
    hosts, variances = len(values), errors**2

    def misfit(tau2: float) -> float:
        weights = 1 / (variances + tau2)
        mean = weights @ values / weights.sum()
        return float(weights @ (values - mean) ** 2) - (hosts - 1)

    most = 100 * float(np.var(values)) + float(variances.max())
    tau2 = brentq(misfit, 0, most) if misfit(0) > 0 else 0.0
    weights = 1 / (variances + tau2)
    mean, t = float(weights @ values / weights.sum()), float(stdtrit(hosts - 1, (1 + LEVEL) / 2))
    error2 = max(1.0, 1 + misfit(tau2) / (hosts - 1)) / float(weights.sum())
    half, reach = t * np.sqrt(error2), t * np.sqrt(tau2 + error2)
    return Said((mean - half, mean + half), (mean - reach, mean + reach))


def rates(method: Callable[[Floats, Floats], Said], hosts: int, spread: float, fleets: int) -> tuple[float, float]:
    """Shares of false claims and of next hosts that are covered."""
    rng = np.random.default_rng([hosts, round(spread * 1e5)])
    false = covered = 0
    for _ in range(fleets):
        blocks = rng.integers(8, 40, hosts)
        error = rng.uniform(0.005, 0.04, hosts) / np.sqrt(blocks)
        values = spread * rng.standard_normal(hosts) + error * rng.standard_normal(hosts)
        said = method(values, error * np.sqrt(rng.chisquare(blocks - 1) / (blocks - 1)))
        false += not said.mean[0] <= 0 <= said.mean[1]
        covered += said.next[0] <= spread * rng.standard_normal() <= said.next[1]
    return false / fleets, covered / fleets


def main() -> None:
    fleets = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{fleets:,} fleets a line; intervals at {100 * LEVEL:g} %.\n")
    print("| hosts | tau | false claims | next host covered | usual: false claims | usual: covered |")
    print("|--:|--:|--:|--:|--:|--:|")
    for hosts in HOSTS:
        for spread in SPREADS:
            shares = (*rates(ours, hosts, spread, fleets), *rates(usual, hosts, spread, fleets))
            cells = " | ".join(f"{100 * share:.1f} %" for share in shares)
            print(f"| {hosts} | {100 * spread:g} % | {cells} |", flush=True)


if __name__ == "__main__":
    main()
