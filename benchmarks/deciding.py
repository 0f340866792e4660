"""``python -m benchmarks.deciding``: how long 1000 cells of 80 blocks take to be decided, every planned look replayed.

Two ways in: from the series of each cell and metric (a number per trial, as history and import hold them), and from
Trial objects whose 99th percentile is read from a histogram of 140 bins. CPU seconds of one core, median and range.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable

import numpy as np

from iodelta.trial import Direction, Histogram, Latency, Quantity, Trial
from iodelta.verdict import Rules, judge_all, judge_series, metrics_for, series_of

BINS = tuple(range(500, 640))
COUNTS = tuple(int(5 + 1e5 * np.exp(-(((at - 20) / 25.0) ** 2))) for at in range(140))


def trials_of(cells: int, blocks: int, seed: int) -> list[Trial]:
    """Randomised blocks of two variants, block sd 2 %; every tenth cell is 2 % slower under the second."""
    rng = np.random.default_rng(seed)
    found = []
    for cell in range(cells):
        for block in range(blocks):
            for position, which in enumerate(rng.permutation(2)):
                iops = 1e5 * float(np.exp(rng.normal(0, 0.014))) * (0.98 if which and cell % 10 == 0 else 1.0)
                number = (cell * blocks + block) * 2 + position
                found.append(_trial(number, f"cell {cell}", ("old", "new")[which], block, position, iops))
    return found


def _trial(number: int, cell: str, variant: str, block: int, position: int, iops: float) -> Trial:
    mean = 32e9 / iops
    histogram = Histogram(BINS, COUNTS)
    exact = Quantity.exact
    mean_ns, spread, least, most = (exact(mean * part, "ns") for part in (1, 0.5, 0.1, 50))
    lat = Latency(histogram.total, mean_ns, spread, least, most, histogram=histogram)
    rates = exact(iops, "IOPS"), exact(iops * 4096, "B/s")
    done = Direction("read", 100_000, 409_600_000, 10_000, *rates, lat)
    return Trial(number, cell, variant, block, position, 1, 1.7e9 + number, 10.0, (done,))


def timed(what: Callable[[], object], repeats: int) -> str:
    """Median and range of CPU seconds."""
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        what()
        seconds.append(time.process_time() - begin)
    return f"{statistics.median(seconds):5.2f} s   {min(seconds):.2f} .. {max(seconds):.2f} s"


def main() -> None:
    """Print both figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=80)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    trials = trials_of(given.cells, given.blocks, given.seed)
    metrics = metrics_for(["read"])
    rules = Rules(metrics=metrics, comparisons=given.cells * len(metrics))
    by_cell: dict[str, list[Trial]] = {}
    for trial in trials:
        by_cell.setdefault(trial.cell, []).append(trial)
    series = [series_of(own, one, "old", "new") for own in by_cell.values() for one in metrics]
    gc.freeze()
    print(f"{given.cells} cells x {given.blocks} blocks x {len(metrics)} metrics, {len(trials)} trials")
    print("from series ", timed(lambda: judge_series(series, rules), given.repeats))
    print("from trials ", timed(lambda: judge_all(trials, rules, baseline="old"), given.repeats))


if __name__ == "__main__":
    main()
