"""Real devices that try to fool the verdict, for minutes each: loop devices that the kernel throttles.

python -m benchmarks.hostile_device > benchmarks/hostile_device/results.md      (root, two CPUs, about ten minutes)

It needs a machine that does nothing else: a busy one may not serve 5000 reads a second. What is said under the same
disturbances is tested by simulation, in tests/verdict/test_hostile_noise.py.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from acceptance.stand import Stand

from benchmarks.hostile_device.devices import leaving, throttled

Work = Callable[[Stand], dict[str, Any]]
TRIAL = "2s"
LESS, SAME = (5000, 4900), (5000, 5000)


def cases(budget: str) -> dict[str, tuple[Work, str]]:
    """What is measured, and what may be said of it."""
    found: dict[str, tuple[Work, str]] = {}
    for seed in (1, 2):
        again = f", seed {seed}"
        found[f"4900 against 5000 reads/s{again}"] = (
            partial(throttled, rates=LESS, seed=seed, trial=TRIAL, budget=budget),
            "regression",
        )
    for seed in (3, 4):
        again = f", seed {seed}"
        same = partial(throttled, rates=SAME, seed=seed, trial=TRIAL, budget=budget)
        found[f"5000 against 5000 reads/s{again}"] = (same, "equivalent or inconclusive")
        stalls = partial(throttled, rates=SAME, seed=seed, stalls="1", trial=TRIAL, budget=budget)
        found[f"25 reads/s for 1 s of every tenth trial{again}"] = (stalls, "not equivalent")
    for carry_over in ("superblocks", "tested"):
        dirty = partial(leaving, seed=5, carry_over=carry_over, pages=2000, trial=TRIAL, budget=budget)
        found[f"8 MB of dirty pages left, {carry_over}"] = (dirty, "not improvement")
    trap = partial(leaving, seed=5, carry_over="none", pages=2000, trial=TRIAL, budget=budget)
    found["8 MB of dirty pages left, none: the trap"] = (trap, "anything")
    return found


def row(name: str, work: Work, allowed: str) -> str:
    """One experiment on a stand of its own."""
    with tempfile.TemporaryDirectory() as place, Stand(Path(place)) as stand:
        found = work(stand)
    typical, total, stalls = (found[name] or {} for name in ("typical", "total", "stalls"))
    stalled = f"{len(stalls.get('variant', ()))} and {len(stalls.get('baseline', ()))}"
    cells = (name, allowed, found["word"], str(found["blocks"]), _change(typical), _change(total), stalled)
    return f"| {' | '.join(cells)} |"


def _change(found: dict[str, Any]) -> str:
    if not found or found["low"] is None or found["high"] is None:
        return "-"
    return f"{100 * found['value']:+.1f} ({100 * found['low']:+.1f} to {100 * found['high']:+.1f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="3m", help="of each experiment")
    parser.add_argument("--side-by-side", type=int, default=3, help="experiments at a time")
    given = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    with ThreadPoolExecutor(given.side_by_side) as pool:
        rows = [pool.submit(row, name, work, may) for name, (work, may) in cases(given.budget).items()]
        table = [one.result() for one in rows]
    print("# Devices that try to fool the verdict\n")
    print(
        f"{time.strftime('%Y-%m-%d')}, Linux {platform.release()}, commit {commit.strip()}; margin 2 %, trials of 2 s, "
        f"budget {given.budget} each, {given.side_by_side} experiments at a time on two shared CPUs.\n"
        "Made by `python -m benchmarks.hostile_device`. Changes in %, with their intervals.\n"
    )
    print("| what the variant does | may be said | said | blocks | typical | total | stalled: variant and baseline |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(table))


if __name__ == "__main__":
    main()
