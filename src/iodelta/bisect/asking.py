"""The state of a search: its answers so far, what they show about a range, and the runs that are left. No I/O."""

from __future__ import annotations

import math
import random
from collections.abc import Generator
from typing import TypeVar

import msgspec
import numpy as np

from iodelta.bisect.model import (
    Answer,
    Ask,
    Culprit,
    Estimate,
    Gap,
    Line,
    Rules,
    Run,
    Scatter,
    Stage,
    Suspect,
)
from iodelta.bisect.store import Store
from iodelta.stats.bisection import Evidence, Step, capacity

LATER = 0.25
"""Other steps are searched for down to this share of the largest one. In simulated histories, 0.5 found a second
culprit half as large in six of ten; 0.25 found it in nine of ten (69 of 76), with a third more runs in all."""

SECOND = 2e-5
"""One-sided level at which a second step counts as real, so that the range is narrowed to the first."""

SPARED = 18
"""Runs that are reserved for the test of a further culprit."""

ALIKE = 3
"""Number of equal runs of each of two items after which a measure counts as one that repeats exactly."""

ASSUMED = math.log1p(0.001)
"""The exactness that is then assumed: that of ``--clock instructions``."""

T = TypeVar("T")
Course = Generator[Ask, Answer, T]


class Scattered(Exception):  # noqa: N818  # control flow, not an error
    """Runs of one item differ too much for a measure that repeats exactly."""


class Asking:
    """The state of a search over a line: everything that is known follows from the answers."""

    def __init__(self, line: Line, rules: Rules) -> None:
        self.line = line
        self.rules = rules
        self.store = Store()
        self.estimate: Estimate | None = None
        self.culprits: list[Culprit] = []
        self.suspects: list[Suspect] = []
        self.gaps: list[Gap] = []
        self.where: tuple[Line, int, int] = (line, 0, len(line.items) - 1)
        """The range that is being searched."""
        self.rounds: list[tuple[Run, Run]] = []
        """Rounds of one run of good and one of bad, in an order drawn for each round."""
        self.scatter: Scatter | None = None
        self.assumed = 0.0
        """Above 0: the measure is assumed to repeat to within this, because its first runs were equal."""
        self._random = random.Random(rules.seed)
        self._least = rules.margin / 2
        self._rest = rules.rest

    @property
    def used_up(self) -> bool:
        """Return whether no runs are left for culprits after the first, or only one was to be found."""
        return not self.rules.several or self._left() <= self._spared

    @property
    def _spared(self) -> int:
        """Runs that the test of a further culprit needs."""
        return 2 * self._exact_pairs if self.rules.exact else SPARED

    @property
    def _exact_pairs(self) -> int:
        """Pairs by which a measure that repeats shows a culprit. Rounded values can be equal by chance, so a measure
        that was not promised to repeat takes as many pairs as it took equal runs to assume it."""
        return ALIKE if self.assumed else 1

    def _target(self) -> float:
        """Return the smallest rise that is searched for."""
        sizes = [culprit.effect.size for culprit in self.culprits]
        return max(self.rules.margin, LATER * max(sizes, default=0.0))

    def _left(self) -> int:
        """Runs that are left: after the first culprit, those that it took times ``rest``."""
        most = self.rules.most_runs
        if self.culprits:
            most = min(most, int(self.culprits[0].runs * (1.0 + self._rest)))
        return max(0, most - len(self.store.runs))

    def _ask(
        self, item: str, stage: Stage, why: str, *, must: bool = False
    ) -> Course[None]:
        answer = yield Ask(item, stage, why, must)
        self.store.add(item, answer)
        values = [value for _, value in self.store.of(item)]
        apart = max(values, default=0.0) - min(values, default=0.0)
        if self.rules.exact and apart > self.rules.exact * (1 + 1e-9):
            self.scatter = Scatter(item, apart, self.rules.exact)
            raise Scattered
        if not self.rules.exact and self.scatter is None and self._repeats():
            self.assumed = min(ASSUMED, self.rules.margin / 4)
            self.rules = msgspec.structs.replace(self.rules, exact=self.assumed)

    def _repeats(self) -> bool:
        """Return whether all runs of every item so far are equal, and two items have enough of them to believe it."""
        believable = 0
        for item in {run.item for run in self.store.runs}:
            values = [value for _, value in self.store.of(item)]
            if len(set(values)) != 1:
                return False
            believable += len(values) >= ALIKE
        return believable >= 2

    def _pair(self, parent: str, item: str, stage: Stage, why: str) -> Course[float]:
        """Run both anew, in random order; return the difference."""
        order = [parent, item]
        self._random.shuffle(order)
        for of_pair in order:
            yield from self._ask(of_pair, stage, why, must=True)
        return self.store.of(item)[-1][1] - self.store.of(parent)[-1][1]

    def _evidence(self, line: Line, first: int, last: int) -> Evidence:
        return self.store.evidence(
            line, first, last, least=self._least, floor=self.rules.exact
        )

    def _clear_step(
        self, line: Line, first: int, last: int, level: float = SECOND
    ) -> tuple[float, int, int] | None:
        """Return the p value of the step that the runs between two places show, and the measured places around it;
        None if they show none at this level."""
        if last <= first:
            return None
        part = self._evidence(line, first, last)
        if part.runs < 4:
            return None
        posterior = part.posterior()
        group = int(np.argmax(posterior.share))
        below, above = int(posterior.edges[group]), int(posterior.edges[group + 1])
        step = part.step(posterior, above)
        if not step.freedom or step.size < self._least or self._tail(step) >= level:
            return None
        return self._tail(step), first + below, first + above

    def _tail(self, step: Step) -> float:
        if self.rules.exact:
            return 0.0 if step.size > 2 * self.rules.exact else 1.0
        return step.tail()

    def _gap(self, line: Line, first: int, last: int) -> None:
        """Note that no rise was found, and the largest one that is not excluded."""
        good, bad = line.items[first], line.items[last]
        step = self.store.step([good], [bad])
        if step is None:
            return
        largest = step.size + 2 * step.error
        # The measure cannot show smaller steps.
        if abs(largest) < 2 * self.rules.exact:
            largest = 2 * self.rules.exact
        improves = largest < -self._least
        self.gaps.append(Gap(good, bad, step.size, largest, improves))

    def _ratio(self, step: Step) -> float:
        """Step over noise, from a cautious size: a step that passed the gate is probably overestimated."""
        size = max(step.size - step.error, self._least)
        noise = max(step.noise, self.rules.exact, 1e-9)
        return min(size / noise, 20.0)

    def _test_runs(self, step: Step) -> int:
        """Runs that the test of a culprit takes."""
        if self.rules.exact:
            return 2 * self._exact_pairs
        return math.ceil(2 * max(8.0, 20 / self._ratio(step) ** 2))

    def _expected(self, items: int, step: Step) -> tuple[int, int]:
        """Runs that a search among ``items`` candidates takes: one to three times the lower bound, log2(items) over the
        information in a run, plus the pairs of the test."""
        floor = math.log2(items + 1) / max(capacity(self._ratio(step)), 1e-3)
        pairs = self._test_runs(step)
        return math.ceil(floor + pairs), math.ceil(3 * floor + pairs)
