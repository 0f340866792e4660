"""``python -m benchmarks.bisect.rest``: what the rest of a search costs after its first culprit, and what it finds."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.bisect.__main__ import CASES, MARGIN, POSITIONS
from benchmarks.bisect.simulate import found, history, play
from iodelta.bisect.model import Rules


def row(case: int, seed: int, reps: int, rest: float) -> str:
    """One line of the table."""
    name, sizes, options, part = CASES[case]
    count = max(4, round(reps * part))
    named, shown, first, ratios = 0, 0, [], []
    for number in range(count):
        rng = np.random.default_rng([seed, case, number])
        truth = history(rng, POSITIONS, sizes, **options)
        outcome, search = play(truth, Rules(margin=MARGIN, seed=number, rest=rest), rng)
        hits = found(truth, outcome)
        ranges = [range(int(one.first[1:]), int(one.last[1:]) + 1) for one in outcome.suspects]
        named += all(hits.values())
        shown += all(hit or any(place in one for one in ranges) for place, hit in hits.items())
        if outcome.culprits:
            first.append(outcome.culprits[0].runs)
            ratios.append(len(search.store.runs) / first[-1] - 1)
    return (
        f"| {name} | {count} | {named / count:.2f} | {shown / count:.2f} | {np.mean(first):.0f} | "
        f"{np.mean(ratios):.2f} | {np.max(ratios):.2f} |"
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect.rest", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reps", type=int, default=40)
    parser.add_argument("--rest", type=float, default=1.0)
    chosen = parser.parse_args()
    print("| history | histories | all named | named or in a range | runs to the first | rest / first | at most |")
    print("|---|---|---|---|---|---|---|")
    for case, (_, sizes, _, _) in enumerate(CASES):
        if sizes:
            print(row(case, chosen.seed, chosen.reps, chosen.rest), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
