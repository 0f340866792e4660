"""All runs of a search and their costs, shared by every range that is searched."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from iodelta.bisect.model import Answer, Line, Run, Word
from iodelta.stats.bisection import Evidence, Step, step_between
from iodelta.stats.stalls import LEAST

NEAR = 5.0
"""Distance in items over which an untestable item makes its neighbours doubtful."""

DOUBT = 0.7

FAR = 5.0
"""Robust sd from the median of its item at which a run is winsorised; of normal noise one run in two million."""

FEW = 9
NORMAL_MEDIAN = 0.6745


class Store:
    """Runs in the order of time, items that cannot be tested, and seconds spent."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.broken: dict[str, str] = {}
        self.words: list[tuple[str, Word]] = []
        """A person's words about items, in order."""
        self.seconds = 0.0
        self._builds: list[float] = []
        self._durations: list[float] = []
        self._kept: set[str] = set()
        self._values: dict[str, list[tuple[float, float]]] = {}
        self.clipped: dict[int, float] = {}
        """Time of a run far from the others of its item -> the value it counts with."""

    def add(self, item: str, answer: Answer) -> None:
        """Record the answer to an ask."""
        self.seconds += answer.build + answer.run
        if answer.build:
            self._builds.append(answer.build)
        if answer.kept:
            self._kept.add(item)
        if answer.word:
            self.words.append((item, answer.word))
            return
        if answer.value is None:
            self.broken[item] = answer.reason
            return
        self._durations.append(answer.run)
        run = Run(len(self.runs), item, answer.value)
        self.runs.append(run)
        self._values.setdefault(item, []).append((run.time, run.value))
        self._clip()

    def of(self, item: str) -> list[tuple[float, float]]:
        """(time, value) of an item's runs."""
        return self._values.get(item, [])

    def tested(self, item: str) -> bool:
        """Return whether an item was run, or a person has answered about it."""
        return bool(self.of(item)) or item in dict(self.words)

    def step(self, low: Sequence[str], high: Sequence[str]) -> Step | None:
        """The step from some items to others by all their runs; None while they have too few."""
        return step_between(self._counted_runs(low), self._counted_runs(high))

    def _counted_runs(self, items: Sequence[str]) -> list[tuple[float, float]]:
        return list(map(self._counted, chain.from_iterable(map(self.of, items))))

    def evidence(
        self, line: Line, first: int, last: int, *, least: float, floor: float
    ) -> Evidence:
        """Everything known about ``line`` between two of its positions, for a search there."""
        evidence = Evidence(
            np.asarray(line.prior[first:last], dtype=float), least=least, floor=floor
        )
        places = {
            item: place for place, item in enumerate(line.items[first : last + 1])
        }
        for run in self.runs:
            if (place := places.get(run.item)) is not None:
                evidence.add(place, self._counted((run.time, run.value))[1], run.time)
        return evidence

    def _counted(self, run: tuple[float, float]) -> tuple[float, float]:
        return run[0], self.clipped.get(int(run[0]), run[1])

    def _clip(self) -> None:
        """Winsorise: a run counts with at most ``FAR`` robust sd from its item's median. One run of fio that was
        starved of CPU must not outweigh ten others; none is left out."""
        medians = {}
        for item, runs in self._values.items():
            if len(runs) >= 3:
                medians[item] = float(np.median([value for _, value in runs]))
        off = {
            run.time: run.value - medians[run.item]
            for run in self.runs
            if run.item in medians
        }
        self.clipped = {}
        if len(off) < FEW:
            return
        reach = FAR * float(np.median(np.abs(list(off.values())))) / NORMAL_MEDIAN
        for time, distance in off.items():
            if abs(distance) > reach > 0.0:
                run = self.runs[time]
                self.clipped[time] = medians[run.item] + math.copysign(reach, distance)

    def stalled(self) -> dict[str, int]:
        """Item -> how many of its runs stalled: they are worse than the item's other runs by so much that they were
        winsorised. Steps and pairs only show typical runs."""
        stalls: Counter[str] = Counter()
        for time in sorted(self.clipped):
            run = self.runs[time]
            median = float(np.median([value for _, value in self.of(run.item)]))
            if run.value - median > LEAST:
                stalls[run.item] += 1
        return dict(stalls)

    def testable(self, items: Sequence[str]) -> NDArray[np.bool_]:
        """Return which of the items are not known to be broken."""
        return np.array([item not in self.broken for item in items])

    def price(self, items: Sequence[str], places: Sequence[int]) -> NDArray[np.float64]:
        """Expected seconds of a run of each of ``items[place]``, divided by the probability that it can be tested."""
        run = float(np.mean(self._durations)) if self._durations else 1.0
        build = float(np.mean(self._builds)) if self._builds else 0.0
        bad = np.array(
            [place for place, item in enumerate(items) if item in self.broken]
        )
        prices = []
        for place in places:
            item = items[place]
            sound = 1.0
            if item not in self._values and len(bad):
                sound = 1.0 - DOUBT * math.exp(
                    -float(np.abs(bad - place).min() - 1) / NEAR
                )
            prices.append((run + (0.0 if item in self._kept else build)) / sound)
        return np.asarray(prices)
