"""``python -m benchmarks.bisect.patches``: regressions of planted patches taken apart, many times over.

The case of the reports is a mail of January 2010 about fio's mmap randread under CFQ: "bisect is very unstable. The
related patches are many instead of just one". A replay is right if exactly the planted patches and groups are named.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from iodelta.bisect.attribution import Attributing, subset_of
from iodelta.bisect.model import Answer, Rules
from iodelta.stats.attribution import Attribution

COST = 0.08


class Case(NamedTuple):
    """What is planted: the effect of a group by its patches (from 0), and which combinations apply."""

    name: str
    planted: dict[frozenset[int], float]
    applies: Callable[[frozenset[int]], bool] = lambda on: True


def cases(patches: int) -> Iterator[Case]:
    """Yield the classes of regressions that so many patches can have."""

    def groups(*costs: set[int], gains: tuple[set[int], ...] = ()) -> dict[frozenset[int], float]:
        return {frozenset(group): COST for group in costs} | {frozenset(group): -COST for group in gains}

    last = patches - 1
    yield Case("nothing", groups())
    yield Case("one", groups({0}))
    yield Case("a pair", groups({0, last}))
    yield Case("a fix", groups(gains=({1},)))
    yield Case("a fix hidden by a cost", groups({0}, gains=({1},)))
    yield Case("either of two", groups({0}, {1}, gains=({0, 1},)))
    yield Case("a fix of what another costs", groups({0}, gains=({0, 1},)))
    if patches > 2:
        yield Case("a triple", groups({0, 1, last}))
        yield Case("one and a pair", groups({0}, {1, 2}))
        yield Case("a pair, fixed by a third", groups({0, 1}, gains=({0, 1, 2},)))
        yield Case("one that needs an innocent one", groups({1, 2}), lambda on: 2 not in on or 1 in on)
        yield Case("one, and two that need each other", groups({0}), lambda on: (1 in on) == (2 in on))
        yield Case("a series", groups(set(range(last))), lambda on: on == set(range(len(on))))
    if patches > 3:
        yield Case("two pairs", groups({0, 1}, {2, 3}))
        yield Case("a pair and a pair that fixes", groups({0, 1}, gains=({2, 3},)))
        yield Case("four together", groups({0, 1, 2, 3}))


def replayed(patches: int, case: Case, noise: float, seed: int) -> tuple[Attribution, Attributing]:
    """Follow one attribution to its end."""
    rng, attributing = np.random.default_rng([seed, patches]), Attributing(patches, Rules(seed=seed), 12)
    course = attributing.run()
    try:
        ask = next(course)
        while True:
            on = frozenset(subset_of(ask.item))
            level = sum(size for group, size in case.planted.items() if group <= on)
            drift = 0.02 * math.sin(len(attributing.store.runs) / 37)
            value = level + drift + noise * float(rng.standard_normal())
            ask = course.send(Answer(value) if case.applies(on) else Answer(None, "does not apply"))
    except StopIteration as end:
        found: Attribution = end.value
        return found, attributing


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect.patches", description=__doc__)
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--patches", type=int, nargs="*", default=[2, 3, 4, 5, 6, 8, 12])
    chosen = parser.parse_args()
    print(
        "| patches | planted | right | an innocent one accused | runs | combinations, most |\n|--:|---|--:|--:|--:|--:|"
    )
    for patches in chosen.patches:
        for case in cases(patches):
            right = accused = runs = most = 0
            guilty = set(itertools.chain.from_iterable(case.planted))
            for seed in range(chosen.reps):
                found, attributing = replayed(patches, case, chosen.noise, seed)
                named = {frozenset(term.patches) for term in found.terms if term.named}
                right += named == set(case.planted)
                accused += not set(itertools.chain.from_iterable(named)) <= guilty
                runs += len(attributing.store.runs)
                most = max(most, len(attributing.items))
            counts = f"{right} of {chosen.reps} | {accused} | {runs / chosen.reps:.0f} | {most}"
            print(f"| {patches} | {case.name} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
