"""The same for hosts that stop early: each looks at its blocks and stops where it sees a change, or that there is none.

``python -m benchmarks.fleet.early [FLEETS] > benchmarks/fleet/early.md``

Whoever stops at a striking look has a striking value. The looks and levels are about those of an experiment; noise and
tau are those of ``benchmarks.fleet``. ``differ``: two hosts are said to differ by more than the margin of 1 %, which is
false where tau is 0.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from iodelta.verdict.agreement import HostChange, joint, own_change

LOOKS = (9, 12, 16, 22, 26, 32, 40)
EQUIVALENT_FROM = 32
NOMINAL = 0.012
MARGIN = 0.01
CASES = ((3, 0.0), (5, 0.0), (10, 0.0), (3, 0.01), (5, 0.005), (5, 0.02), (10, 0.005), (10, 0.02), (20, 0.01))


def measured(rng: np.random.Generator, name: str, truth: float) -> HostChange | None:
    """A host's change from the blocks up to the look at which it stopped."""
    d = truth + rng.uniform(0.005, 0.04) * rng.standard_normal(LOOKS[-1])
    used = next((blocks for blocks in LOOKS if _stops(d[:blocks])), LOOKS[-1])
    return own_change(name, d[:used])


def _stops(d: NDArray[np.float64]) -> bool:
    blocks, mean, error = len(d), float(d.mean()), float(d.std(ddof=1)) / len(d) ** 0.5
    changed = 2 * stdtr(blocks - 1, -abs(mean) / error) < NOMINAL
    same = blocks >= EQUIVALENT_FROM and stdtr(blocks - 1, -(MARGIN - abs(mean)) / error) < NOMINAL
    return bool(changed or same)


def line(hosts: int, spread: float, fleets: int) -> str:
    """Shares of false claims, of covered next hosts, and of fleets that are said to differ."""
    rng = np.random.default_rng([hosts, round(spread * 1e5)])
    false = covered = differ = 0
    for _ in range(fleets):
        drawn = [measured(rng, str(host), spread * rng.standard_normal()) for host in range(hosts)]
        found = joint([one for one in drawn if one is not None], MARGIN, level=0.95)
        together = found.together
        if together is not None:
            false += not together.mean.low <= 0 <= together.mean.high
            covered += together.next.low <= spread * rng.standard_normal() <= together.next.high
        differ += found.apart is not None
    shares = " | ".join(f"{100 * count / fleets:.1f} %" for count in (false, covered, differ))
    return f"| {hosts} | {100 * spread:g} % | {shares} |"


def main() -> None:
    fleets = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{fleets:,} fleets a line; intervals at 95 %; every host stops at a look of its own.\n")
    print("| hosts | tau | false claims | next host covered | differ |")
    print("|--:|--:|--:|--:|--:|")
    for hosts, spread in CASES:
        print(line(hosts, spread, fleets), flush=True)


if __name__ == "__main__":
    main()
