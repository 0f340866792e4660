"""``python -m benchmarks.bisect.designs``: which combinations of patches to run to know single effects and pairs.

For every design: the combinations that have to be built; the error of a figure for every hundred runs, in units of one
run's noise; what is left when one patch does not apply without another, or one combination fails; and, by simulation of
two patches that cost 8 % together and nothing alone, what a sentence would say.
"""

from __future__ import annotations

import argparse
import itertools
import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.attribution import Subset, attribute, combinations, instead

Floats = NDArray[np.float64]
PATCHES = (4, 5, 6, 7, 8)
KINDS = ("alone", "on top", "pair", "whole")
RUNS = 100

GENERATORS: dict[int, tuple[tuple[int, ...], ...]] = {
    5: ((0, 1, 2, 3),),
    6: ((0, 1, 2, 3, 4),),
    7: ((0, 1, 2, 3, 4, 5),),
    8: ((0, 1, 2, 3), (0, 1, 4, 5)),
}
"""Of regular fractions of resolution V: the columns that are products of others (Box, Hunter and Hunter)."""


def everything(patches: int) -> list[Subset]:
    """All combinations."""
    return [run for size in range(patches + 1) for run in itertools.combinations(range(patches), size)]


def fraction(patches: int, words: Sequence[tuple[int, ...]]) -> list[Subset]:
    """A regular fraction."""
    found = []
    for row in itertools.product((-1, 1), repeat=patches - len(words)):
        signs = [*row, *(math.prod(row[i] for i in word) for word in words)]
        found.append(tuple(i for i, sign in enumerate(signs) if sign > 0))
    return found


def resolution_four(patches: int) -> list[Subset]:
    """Sixteen runs: single effects, averaged over the others, are clear of pairs; pairs are mixed with each other."""
    if patches == 4:
        return everything(4)
    words = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)] if patches > 5 else [(0, 1, 2, 3)]
    return fraction(patches, words[: patches - 4])


def resolution_five(patches: int) -> list[Subset]:
    """Single effects and pairs are clear of each other."""
    return fraction(patches, GENERATORS[patches]) if patches > 4 else everything(4)


def base_and_pairs(patches: int) -> list[Subset]:
    """None, singles, pairs, all."""
    return [run for run in everything(patches) if len(run) in (0, 1, 2, patches)]


def rechtschaffner(patches: int) -> list[Subset]:
    """None, all but one, pairs: as few runs as there are effects (Rechtschaffner 1967)."""
    return [run for run in everything(patches) if len(run) in (0, 2, patches - 1)]


def ours(patches: int) -> list[Subset]:
    """What iodelta runs."""
    return list(combinations(patches))


DESIGNS: dict[str, Callable[[int], list[Subset]]] = {
    "resolution IV": resolution_four,
    "resolution V": resolution_five,
    "none, singles, pairs, all": base_and_pairs,
    "Rechtschaffner": rechtschaffner,
    "**iodelta**": ours,
    "all combinations": everything,
}


def effects(patches: int, runs: Sequence[Subset]) -> Floats:
    """A column for the level, every single effect and every pair; a row for every run."""
    terms = [run for run in everything(patches) if len(run) <= 2]
    return np.array([[float(set(term) <= set(run)) for term in terms] for run in runs])


def contrasts(patches: int) -> dict[str, Floats]:
    """The figures that are reported, as differences between levels of the model."""
    full = tuple(range(patches))
    level = dict(zip(everything(patches), effects(patches, everything(patches)), strict=True))
    pairs = itertools.combinations(full, 2)
    return {
        "alone": np.array([level[i,] - level[()] for i in full]),
        "on top": np.array([level[full] - level[tuple(j for j in full if j != i)] for i in full]),
        "pair": np.array([level[i, j] - level[i,] - level[j,] + level[()] for i, j in pairs]),
        "whole": np.array([level[full] - level[()]]),
    }


def errors(patches: int, runs: Sequence[Subset]) -> dict[str, tuple[float, float]]:
    """Per kind of figure: the share that can be estimated, and of those the mean error with ``RUNS`` runs in all."""
    model = effects(patches, runs)
    inverse = np.linalg.pinv(model.T @ model)
    known = inverse @ (model.T @ model)
    found = {}
    for kind, rows in contrasts(patches).items():
        sound = np.isclose(rows @ known, rows, atol=1e-8).all(axis=1)
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, inverse, rows), 0.0) * len(runs) / RUNS)
        found[kind] = (float(sound.mean()), float(spread[sound].mean()) if sound.any() else math.nan)
    return found


def kept(patches: int, runs: Sequence[Subset], sound: Callable[[Subset], bool], *, repaired: bool) -> float:
    """Share of the figures left when only ``sound`` combinations can be run, of those that all of them would leave."""
    left = list(runs)
    while repaired and (more := instead(left, [run for run in left if not sound(run)], patches)):
        left += more
    most = errors(patches, [run for run in everything(patches) if sound(run)])
    least = errors(patches, [run for run in left if sound(run)])
    counts = [len(rows) for rows in contrasts(patches).values()]
    possible = sum(share * count for (share, _), count in zip(most.values(), counts, strict=True))
    return sum(share * count for (share, _), count in zip(least.values(), counts, strict=True)) / possible


def needing(run: Subset) -> bool:
    """Patch 3 does not apply without patch 2."""
    return 2 not in run or 1 in run


def table(patches: int) -> Iterator[str]:
    """One line for every design."""
    for name, design in DESIGNS.items():
        runs = design(patches)
        if len(runs) == 2**patches and name in ("resolution IV", "resolution V"):
            continue
        found = errors(patches, runs)
        cells = [f"{error:.2f}" if share == 1.0 else "-" for share, error in found.values()]
        rank = int(np.linalg.matrix_rank(effects(patches, runs)))
        whole = name == "**iodelta**"
        one = np.mean([kept(patches, runs, partial(operator.ne, lost), repaired=False) for lost in runs])
        needs = kept(patches, runs, needing, repaired=whole)
        yield (
            f"| {patches} | {name} | {len(runs)} | {len(runs) - rank} | {' | '.join(cells)} | {one:.0%} | {needs:.0%} |"
        )


def simulated(patches: int, seed: int, count: int) -> Iterator[str]:
    """Patches 2 and 4 cost 8 % together and nothing alone, 2 % of noise, about 240 runs: who is named?"""
    cost = -math.log(0.92)

    def level(run: Subset) -> float:
        return cost * (1 in run and 3 in run)

    for name, runs in (("iodelta", ours(patches)), ("averages over resolution IV", resolution_four(patches))):
        blocks = max(3, round(240 / len(runs)))
        together = single = 0
        for number in range(count):
            rng = np.random.default_rng([seed, patches, number])
            values = np.array([level(run) for run in runs]) + 0.02 * rng.standard_normal((blocks, len(runs)))
            if name == "iodelta":
                found = attribute(patches, runs, values, margin=0.01)
                real = {term.patches for term in found.terms if term.named}
            else:
                real = averages(patches, runs, values)
            together += real == {(1, 3)}
            single += any(len(term) == 1 for term in real)
        shares = f"{together / count:.2f} | {single / count:.2f}"
        yield f"| {patches} | {name} | {len(runs)} | {blocks * len(runs)} | {shares} |"


def averages(patches: int, runs: Sequence[Subset], values: Floats) -> set[Subset]:
    """Which single effects differ from nothing when averages over the other patches are taken for them: t tests after
    Bonferroni at 5 %."""
    from scipy.stats import ttest_1samp

    found: set[Subset] = set()
    for i in range(patches):
        on = np.array([1.0 if i in run else -1.0 for run in runs])
        effect = values @ on * 2 / len(runs)
        if ttest_1samp(effect, 0.0).pvalue * patches <= 0.05 and abs(effect.mean()) >= 0.01:
            found.add((i,))
    return found


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect.designs", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reps", type=int, default=200)
    chosen = parser.parse_args()
    print("| patches | design | combinations | spare | alone | on top | pair | whole | one fails | 3 needs 2 |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for patches in PATCHES:
        for row in table(patches):
            print(row, flush=True)
    print()
    print("| patches | figures | combinations | runs | 2 with 4 and nothing else | a single patch is blamed |")
    print("|---|---|---|---|---|---|")
    for patches in PATCHES:
        for row in simulated(patches, chosen.seed, chosen.reps):
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
