"""Simulated histories for a search: known culprits, noise, drift, items that cannot be built."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from iodelta.bisect.model import Answer, Ask, Line, Outcome, Rules
from iodelta.bisect.search import Search


class History(msgspec.Struct, frozen=True):
    """``steps``: position -> change of the level there, in noise sd. ``walk``: the drift's step from run to run."""

    positions: int
    steps: dict[int, float]
    broken: frozenset[int] = frozenset()
    walk: float = 0.0

    @property
    def line(self) -> Line:
        return Line(tuple(f"c{place}" for place in range(self.positions)), (1.0,) * (self.positions - 1))


def history(
    rng: np.random.Generator, positions: int, sizes: tuple[float, ...], *, broken: float = 0.0, walk: float = 0.0
) -> History:
    """Culprits of these sizes at random places, and a share of items ``broken`` in clumps of five on average."""
    places = sorted(rng.choice(np.arange(1, positions), len(sizes), replace=False).tolist())
    bad: set[int] = set()
    while len(bad) < broken * positions:
        start, length = int(rng.integers(1, positions - 1)), int(rng.geometric(0.2))
        bad.update(range(start, min(start + length, positions - 1)))
    return History(positions, dict(zip(places, sizes, strict=True)), frozenset(bad), walk)


def play(truth: History, rules: Rules, rng: np.random.Generator, *, build: float = 0.0) -> tuple[Outcome, Search]:
    """Run a search on a simulated history to its end."""
    search = Search(truth.line, rules)
    level = np.zeros(truth.positions)
    for place, size in truth.steps.items():
        level[place:] += size
    course = search.run()
    drift = 0.0
    kept: set[str] = set()
    try:
        ask: Ask = next(course)
        while True:
            place = int(ask.item[1:])
            cost = 0.0 if ask.item in kept else build
            kept.add(ask.item)
            if place in truth.broken:
                ask = course.send(Answer(None, "does not build", cost, 0.0))
                continue
            drift += truth.walk * rng.standard_normal()
            value = float(level[place] + drift + rng.standard_normal())
            ask = course.send(Answer(value, "", cost, 1.0, kept=True))
    except StopIteration as end:
        outcome: Outcome = end.value
    return outcome, search


def found(truth: History, outcome: Outcome) -> Mapping[int, bool]:
    """True culprit -> whether it lies among the suspects of a confirmed one."""
    named = [set(culprit.suspects) for culprit in outcome.culprits]
    return {place: any(f"c{place}" in suspects for suspects in named) for place in truth.steps}
