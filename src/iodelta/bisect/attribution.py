"""Attribution as a course of asks: blocks over all combinations of patches, each block in a random order."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Container, Mapping
from itertools import chain

import msgspec
import numpy as np

from iodelta.bisect.asking import ALIKE, Course
from iodelta.bisect.git import Repository
from iodelta.bisect.model import Answer, Ask, Estimate, Rules, Scatter
from iodelta.bisect.question import Patches
from iodelta.bisect.rises import STALLS
from iodelta.bisect.store import Store
from iodelta.bisect.tree import Worktree
from iodelta.stats.attribution import (
    Attribution,
    Subset,
    attribute,
    combinations,
    instead,
)
from iodelta.stats.stalls import excluded, stalled_trials, trials_needed

FEWEST = 6
"""Blocks before the first check whether the intervals are narrow enough."""

DEFAULT_BLOCKS = 12
"""Default maximum number of blocks, if they exclude stalls."""


class PatchStalls(msgspec.Struct, frozen=True):
    """Runs with one patch on and with it off, and how many of each stalled."""

    runs: int
    """Runs of all combinations in which the patch is on."""
    stalled: int
    """How many of them stalled."""
    others: int
    """Runs of the other combinations."""
    others_stalled: int
    """How many of those stalled."""
    not_excluded: float
    """The share of stalls that the runs with the patch do not exclude; 0 where a measure repeats exactly."""

    @property
    def open(self) -> bool:
        """Whether the patch may stall in a share of its runs that matters."""
        return self.not_excluded > STALLS + 1e-9


def blocks_for(patches: int, stalled: int = 0) -> int:
    """Blocks after which the runs with a patch on, ``stalled`` of them with a stall, exclude stalls in a tenth."""
    # How often each patch is on; every patch is in some combination.
    counts = Counter(chain.from_iterable(combinations(patches)))
    runs = min(counts.values())
    return math.ceil(trials_needed(STALLS, stalled=stalled) / runs)


class Attributing:
    """One attribution; ``run`` is the generator. An item is a combination: one digit per patch, 1 for on."""

    def __init__(self, patches: int, rules: Rules, blocks: int) -> None:
        self.patches = patches
        self.rules = rules
        self.store = Store()
        self.estimate: Estimate | None = None
        self.scatter: Scatter | None = None
        self.assumed = 0.0
        self.blocks: list[dict[str, float]] = []
        """The values of every complete block, by item."""
        self._most = blocks
        self._random = random.Random(rules.seed)
        self.items = tuple(item_of(run, patches) for run in combinations(patches))
        """The design, followed by the replacements of combinations that failed."""

    def run(self) -> Course[Attribution | None]:
        """Ask for blocks until every figure is known to within the margin, or the maximum is reached. None if nothing
        could be estimated."""
        while len(self.blocks) < self._most:
            block = yield from self._block()
            if len(block) < 2:
                return None
            self.blocks.append(block)
            if len(self.blocks) >= FEWEST and self._is_settled():
                break
        return self.result()

    def _is_settled(self) -> bool:
        """Whether every figure is known to within the margin, and no undetected stall can change the answer."""
        attribution = self.result()
        if attribution is None or widest(attribution) > self.rules.margin:
            return False
        return is_worse(attribution) or not self.may_stall

    def result(self) -> Attribution | None:
        """The attribution by the blocks so far; None for fewer than two."""
        sound = [item for item in self.items if item not in self.store.broken]
        blocks = [block for block in self.blocks if block.keys() >= set(sound)]
        if len(blocks) < 2 or len(sound) < 2:
            return None
        values = np.array([list(map(block.__getitem__, sound)) for block in blocks])
        return attribute(
            self.patches,
            [subset_of(item) for item in sound],
            values,
            margin=self.rules.margin,
        )

    @property
    def may_stall(self) -> bool:
        """Whether some patch may stall in a share of its runs that matters: intervals do not show rare stalls."""
        return any(patch.open for patch in self.stalls())

    def stalls(self) -> tuple[PatchStalls, ...]:
        """By patch, the runs so far that stalled."""
        values: dict[str, list[float]] = {}
        for item in self.items:
            values[item] = [value for _, value in self.store.of(item)]
        stalled = {item: len(stalled_trials(runs)) for item, runs in values.items()}
        exact = bool(self.rules.exact) or _repeat(values.values())
        return tuple(
            _stalls_of(patch, values, stalled, exact=exact)
            for patch in range(self.patches)
        )

    def _block(self) -> Course[dict[str, float]]:
        """Every combination once, in random order; then the replacements of those that failed."""
        block: dict[str, float] = {}
        order = self._open(block)
        while order:
            for item in order:
                why = f"block {len(self.blocks) + 1} of at most {self._most}"
                answer: Answer = yield Ask(item, "block", why)
                self.store.add(item, answer)
                if answer.value is not None:
                    block[item] = answer.value
            runs = [subset_of(item) for item in self.items]
            failed = [
                subset_of(item) for item in self.items if item in self.store.broken
            ]
            self.items += tuple(
                item_of(run, self.patches)
                for run in instead(runs, failed, self.patches)
            )
            order = self._open(block)
        return block

    def _open(self, block: Container[str]) -> list[str]:
        order = [
            item
            for item in self.items
            if item not in self.store.broken and item not in block
        ]
        self._random.shuffle(order)
        return order


def _repeat(runs: Collection[list[float]]) -> bool:
    """Whether all runs of every combination are equal, and there are enough of them to believe it."""
    many = [values for values in runs if len(values) >= ALIKE]
    return len(many) >= 2 and all(len(set(values)) <= 1 for values in runs)


def _stalls_of(
    patch: int,
    values: Mapping[str, list[float]],
    stalled: Mapping[str, int],
    *,
    exact: bool,
) -> PatchStalls:
    on = [item for item in values if patch in subset_of(item)]
    off = [item for item in values if patch not in subset_of(item)]
    runs = sum(len(values[item]) for item in on)
    stalls = sum(stalled[item] for item in on)
    return PatchStalls(
        runs=runs,
        stalled=stalls,
        others=sum(len(values[item]) for item in off),
        others_stalled=sum(stalled[item] for item in off),
        not_excluded=0.0 if exact else excluded(stalls, runs),
    )


def is_worse(attribution: Attribution) -> bool:
    """Whether all patches together are shown to be worse."""
    return attribution.whole is not None and attribution.whole.low > 0


def widest(attribution: Attribution) -> float:
    """Half the width of the widest interval among the figures of single patches and of all together."""
    steps = filter(None, (*attribution.alone, *attribution.last))
    figures = [step.effect for step in steps]
    if attribution.whole:
        figures.append(attribution.whole)
    return max(((each.high - each.low) / 2 for each in figures), default=math.inf)


class PatchItems:
    """Combinations of patches, and how to bring a worktree to one."""

    def __init__(self, repository: Repository, subject: Patches) -> None:
        self.repository = repository
        self._subject = subject

    def title(self, item: str) -> str:
        """Which patches are on."""
        on = [str(n + 1) for n in subset_of(item)]
        return f"{item} (patch {' + '.join(on)})" if on else f"{item} (none)"

    def prepare(self, tree: Worktree, item: str) -> None:
        """Check out the base and apply the patches that are on, in order; if the base contains them, revert those that
        are off, the last one first. Raises Unbuildable if a patch does not apply."""
        tree.checkout(self._subject.base)
        on = set(subset_of(item))
        revert = self._subject.revert
        for number, text in sorted(enumerate(self._subject.texts), reverse=revert):
            if (number in on) != revert:
                tree.apply(text, reverse=revert)


def item_of(run: Subset, patches: int) -> str:
    """A combination as digits."""
    return "".join("1" if n in run else "0" for n in range(patches))


def subset_of(item: str) -> Subset:
    """The patches that are on."""
    return tuple(n for n, digit in enumerate(item) if digit == "1")
