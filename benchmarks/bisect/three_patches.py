"""``python -m benchmarks.bisect.three_patches``: a regression of three patches taken apart, many times over.

The case is a mail of January 2010 about fio's mmap randread under CFQ: "bisect is very unstable. The related patches
are many instead of just one"; one costs "about less than 20 %", the rest "is complicated". Planted: patch 1 costs 20 %
by itself; patches 2 and 3 cost 22 %, but only together.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator

import numpy as np

from iodelta.bisect.attribution import Attributing, subset_of
from iodelta.bisect.model import Answer, Rules
from iodelta.stats.attribution import Attribution, Subset

ALONE, TOGETHER = -math.log(0.80), -math.log(0.78)
SHARES = (ALONE, TOGETHER / 2, TOGETHER / 2)
"""Shapley's, of the truth: logarithms, higher is worse."""

BLOCKS = 12
NAMED: frozenset[Subset] = frozenset({(0,), (1, 2)})


def level(on: Subset) -> float:
    """What a combination of patches costs."""
    return ALONE * (0 in on) + TOGETHER * ({1, 2} <= set(on))


def replayed(noise: float, rng: np.random.Generator, seed: int) -> Attribution:
    """One attribution to its end."""
    course = Attributing(3, Rules(seed=seed), BLOCKS).run()
    try:
        ask = next(course)
        while True:
            ask = course.send(Answer(level(subset_of(ask.item)) + noise * rng.standard_normal()))
    except StopIteration as end:
        found: Attribution = end.value
        return found


def rows(seed: int, count: int) -> Iterator[str]:
    """One line of the table for every noise."""
    for noise in (0.01, 0.02, 0.05):
        named, covered, shares, widths, runs = 0, 0, [], [], 0
        for number in range(count):
            found = replayed(noise, np.random.default_rng([seed, number, round(1000 * noise)]), number)
            real = {term.patches for term in found.terms if term.named}
            named += real == NAMED
            runs += 8 * found.blocks
            for share, truth in zip(found.shares, SHARES, strict=True):
                if share is not None:
                    covered += share.low <= truth <= share.high
                    widths.append((share.high - share.low) / 2)
            shares.append([-math.expm1(-share.value) for share in found.shares if share is not None])
        mean = ", ".join(f"{100 * value:.1f}" for value in np.mean(shares, axis=0))
        yield (
            f"| {noise:.0%} | {count} | {named / count:.2f} | {mean} | {100 * float(np.mean(widths)):.1f} | "
            f"{covered / (3 * count):.3f} | {runs / count:.0f} |"
        )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect.three_patches", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reps", type=int, default=200)
    chosen = parser.parse_args()
    print("| noise of a run | replays | named exactly | shares, % | half an interval, % | holds the truth | runs |")
    print("|---|---|---|---|---|---|---|")
    for row in rows(chosen.seed, chosen.reps):
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
