"""What a search has asked for so far, what that shows of a range, and how many runs are left. No I/O."""

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
"""Share of the largest step found down to which others are looked for. At a half, a second culprit half as large was
found in six simulated histories of ten, at a quarter in nine (69 of 76), for a third more runs in all."""

SECOND = 2e-5
"""One-sided level at which a second step is taken for real, so that the range is narrowed to the first."""

SPARED = 18
"""Runs that a search for a further culprit leaves for its test."""

ALIKE = 3
"""Equal runs of each of two items by which a measure is taken to repeat exactly, as a count does."""

ASSUMED = math.log1p(0.001)
"""To within how much it then is: what ``--clock instructions`` has too."""

T = TypeVar("T")
Course = Generator[Ask, Answer, T]


class Scattered(Exception):  # noqa: N818  # what was promised of the measure does not hold
    """Runs of one item lie too far apart for an exact measure."""


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
        """The range that is being looked into."""
        self.rounds: list[tuple[Run, Run]] = []
        """Runs of good and bad that were made together, in an order drawn for each round."""
        self.scatter: Scatter | None = None
        self.assumed = 0.0
        """Above 0: the measure is taken to repeat to within this, as its first runs were equal."""
        self._random = random.Random(rules.seed)
        self._least = rules.margin / 2
        self._rest = rules.rest

    @property
    def used_up(self) -> bool:
        """Whether the runs that others than the first culprit may take are used up, or none were to be made."""
        return not self.rules.several or self._left() <= (
            2 * self._exact_pairs if self.rules.exact else SPARED
        )

    @property
    def _exact_pairs(self) -> int:
        """Pairs by which a measure that repeats shows a culprit. Rounded values are equal by chance now and then, so
        one that was only seen to repeat gives as many as it was seen."""
        return ALIKE if self.assumed else 1

    def _target(self) -> float:
        """The smallest rise that is looked for."""
        return max(self.rules.margin, LATER * max(self._found(), default=0.0))

    def _left(self) -> int:
        """Runs that may still be made: after the first culprit as many as it took, times ``rest``."""
        most = self.rules.most_runs
        if self.culprits:
            most = min(most, int(self.culprits[0].runs * (1.0 + self._rest)))
        return max(0, most - len(self.store.runs))

    def _found(self) -> list[float]:
        return [culprit.effect.size for culprit in self.culprits]

    def _ask(
        self, item: str, stage: Stage, why: str, *, must: bool = False
    ) -> Course[None]:
        answer = yield Ask(item, stage, why, must)
        self.store.add(item, answer)
        values = [value for _, value in self.store.of(item)]
        if (
            self.rules.exact
            and values
            and max(values) - min(values) > self.rules.exact * (1 + 1e-9)
        ):
            self.scatter = Scatter(item, max(values) - min(values), self.rules.exact)
            raise Scattered
        if not self.rules.exact and self.scatter is None and self._repeats():
            self.assumed = min(ASSUMED, self.rules.margin / 4)
            self.rules = msgspec.structs.replace(self.rules, exact=self.assumed)

    def _repeats(self) -> bool:
        """Whether all runs so far of every item are equal, and those of two items are enough to believe it."""
        believable = 0
        for item in {run.item for run in self.store.runs}:
            values = [value for _, value in self.store.of(item)]
            if len(set(values)) != 1:
                return False
            believable += len(values) >= ALIKE
        return believable >= 2

    def _pair(self, parent: str, item: str, stage: Stage, why: str) -> Course[float]:
        """A fresh run of both, in random order: the difference."""
        order = [parent, item]
        self._random.shuffle(order)
        for one in order:
            yield from self._ask(one, stage, why, must=True)
        return self.store.of(item)[-1][1] - self.store.of(parent)[-1][1]

    def _evidence(self, line: Line, first: int, last: int) -> Evidence:
        return self.store.evidence(
            line, first, last, least=self._least, floor=self.rules.exact
        )

    def _clear_step(
        self, line: Line, first: int, last: int, level: float = SECOND
    ) -> tuple[float, int, int] | None:
        """The tail by which the runs between two places show a step, and the measured places around it; None when they
        show none at this level."""
        if last <= first or (part := self._evidence(line, first, last)).runs < 4:
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
        """Note that no rise was found, and what is left possible."""
        step = self.store.step([line.items[first]], [line.items[last]])
        if step is not None:
            largest = step.size + 2 * step.error
            if abs(largest) < 2 * self.rules.exact:  # smaller steps are not seen
                largest = 2 * self.rules.exact
            self.gaps.append(
                Gap(
                    line.items[first],
                    line.items[last],
                    step.size,
                    largest,
                    largest < -self._least,
                )
            )

    def _ratio(self, step: Step) -> float:
        """Step over noise; what got through the gate is likely to be overestimated."""
        return min(
            max(step.size - step.error, self._least)
            / max(step.noise, self.rules.exact, 1e-9),
            20.0,
        )

    def _test_runs(self, step: Step) -> int:
        """Runs that the test of a culprit takes."""
        return (
            2 * self._exact_pairs
            if self.rules.exact
            else math.ceil(2 * max(8.0, 20 / self._ratio(step) ** 2))
        )

    def _expected(self, items: int, step: Step) -> tuple[int, int]:
        """Runs that a search among so many candidates takes: once to three times the floor log2(items) over the
        information in a run, and the pairs of the test."""
        floor = math.log2(items + 1) / max(capacity(self._ratio(step)), 1e-3)
        pairs = self._test_runs(step)
        return math.ceil(floor + pairs), math.ceil(3 * floor + pairs)
