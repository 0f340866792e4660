"""Attribution as a course of asks: blocks over all combinations of patches, each block in a random order."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import msgspec

from iodelta.bisect.asking import ALIKE, Course
from iodelta.bisect.git import Repository
from iodelta.bisect.model import Answer, Ask, Estimate, Rules, Scatter
from iodelta.bisect.question import Patches
from iodelta.bisect.rises import STALLS
from iodelta.bisect.store import Store
from iodelta.bisect.tree import Worktree
from iodelta.stats.attribution import (
    CLEAR,
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

MOST = 3
"""The search for groups ends when this multiple of the runs of the first design is used up."""


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
        """Return whether the patch may stall in a share of its runs that matters."""
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
        """The values of every block over the whole design, by item."""
        self.further: list[dict[str, float]] = []
        """The values of the blocks in between, which look for a group of patches."""
        self._most = blocks
        self._random = random.Random(rules.seed)
        self.items = tuple(item_of(run, patches) for run in combinations(patches))
        """The design, followed by the replacements of combinations that failed, and by what was run to find a group."""
        self._limit = MOST * blocks * len(self.items)

    def run(self) -> Course[Attribution | None]:
        """Ask for blocks until every figure is known to within the margin, or the maximum is reached. None if nothing
        could be estimated."""
        while len(self.blocks) < self._most:
            begun = len(self.blocks) + 1
            block = yield from self._block(
                self._steady(), f"block {begun} of at most {self._most}"
            )
            if len(block) < 2:
                return None
            self.blocks.append(block)
            if len(self.blocks) >= min(FEWEST, self._most):
                yield from self._grow(last=len(self.blocks) == self._most)
                if self._is_settled():
                    break
        return self.result()

    def _grow(self, *, last: bool) -> Course[None]:
        """Run further combinations until every effect is explained by a group of patches."""
        while (found := self.result()) is not None and (
            open_ := found.open
        ) is not None:
            if (abs(open_.size) < CLEAR * open_.error and not last) or len(
                self.store.runs
            ) > self._limit:
                return
            wanted = [item_of(run, self.patches) for run in open_.runs]
            self.items += tuple(item for item in wanted if item not in self.items)
            around = [
                item_of(found.least, self.patches),
                item_of(open_.patches, self.patches),
            ]
            on = " + ".join(str(n + 1) for n in open_.patches)
            for number in range(self._most):
                block = yield from self._block(
                    [*around, *wanted], f"which of patch {on} act together?"
                )
                if len(block) > 1:
                    self.further.append(block)
                known = [item for item in wanted if item not in self.store.broken]
                noise = open_.error * math.sqrt(len(self.blocks) / (number + 1))
                if not known or (number >= 1 and noise * CLEAR <= abs(open_.size)):
                    break

    def _steady(self) -> list[str]:
        """Return the design with what failures put in its place, and groups that have an effect with what is smaller
        by one patch: not what was only run to find them."""
        found = self.result() if len(self.blocks) > 1 else None
        groups = (
            [set(term.patches) for term in found.terms if term.named] if found else []
        )
        passing = {item for block in self.further for item in block} - {
            item for block in self.blocks[:2] for item in block
        }
        return [
            item
            for item in self.items
            if item not in passing
            or any(
                set(subset_of(item)) <= group and len(subset_of(item)) >= len(group) - 1
                for group in groups
            )
        ]

    def _is_settled(self) -> bool:
        """Return whether every figure is known to within the margin, every patch is named or costs less than that, and no
        undetected stall can change the answer."""
        attribution = self.result()
        margin = self.rules.margin
        if attribution is None or attribution.open or widest(attribution) > margin:
            return False
        guilty = set(
            chain.from_iterable(
                term.patches for term in attribution.terms if term.named
            )
        )
        for step in (*attribution.alone, *attribution.last):
            if (
                step
                and not guilty & set(step.patches)
                and max(-step.effect.low, step.effect.high) > margin
            ):
                return False
        return is_worse(attribution) or not self.may_stall

    def result(self) -> Attribution | None:
        """Return the attribution by the blocks so far; None for fewer than two."""
        broken = self.store.broken
        blocks = [
            {
                subset_of(item): value
                for item, value in block.items()
                if item not in broken
            }
            for block in (*self.blocks, *self.further)
        ]
        blocks = [block for block in blocks if len(block) > 1]
        if len(blocks) < 2:
            return None
        return attribute(
            self.patches,
            blocks,
            [subset_of(item) for item in broken],
            margin=self.rules.margin,
        )

    @property
    def may_stall(self) -> bool:
        """Return whether some patch may stall in a share of its runs that matters: intervals do not show rare stalls."""
        return any(patch.open for patch in self.stalls())

    def stalls(self) -> tuple[PatchStalls, ...]:
        """Return the runs so far that stalled, by patch."""
        values = {
            item: [value for _, value in self.store.of(item)] for item in self.items
        }
        stalled = {item: len(stalled_trials(runs)) for item, runs in values.items()}
        many = [runs for runs in values.values() if len(runs) >= ALIKE]
        repeats = len(many) >= 2 and all(len(set(runs)) <= 1 for runs in many)
        patches = []
        for patch in range(self.patches):
            on = [item for item in values if patch in subset_of(item)]
            off = [item for item in values if patch not in subset_of(item)]
            runs, stalls = (
                sum(len(values[item]) for item in on),
                sum(stalled[item] for item in on),
            )
            patches.append(
                PatchStalls(
                    runs=runs,
                    stalled=stalls,
                    others=sum(len(values[item]) for item in off),
                    others_stalled=sum(stalled[item] for item in off),
                    not_excluded=0.0
                    if self.rules.exact or repeats
                    else excluded(stalls, runs),
                )
            )
        return tuple(patches)

    def _block(self, items: Sequence[str], why: str) -> Course[dict[str, float]]:
        """Run every combination once, in random order; then the replacements of those that failed."""
        block: dict[str, float] = {}
        order = list(items)
        while order := [
            item
            for item in order
            if item not in self.store.broken and item not in block
        ]:
            self._random.shuffle(order)
            for item in order:
                answer: Answer = yield Ask(item, "block", why)
                self.store.add(item, answer)
                if answer.value is not None:
                    block[item] = answer.value
            runs = [subset_of(item) for item in self.items]
            failed = [
                subset_of(item) for item in self.items if item in self.store.broken
            ]
            order = [
                item_of(run, self.patches)
                for run in instead(runs, failed, self.patches)
            ]
            self.items += tuple(order)
        return block


def is_worse(attribution: Attribution) -> bool:
    """Return whether all patches together are shown to be worse."""
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
        """Return which patches are on."""
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
    """Return a combination as digits."""
    return "".join("1" if n in run else "0" for n in range(patches))


def subset_of(item: str) -> Subset:
    """Return the patches that are on."""
    return tuple(n for n, digit in enumerate(item) if digit == "1")
