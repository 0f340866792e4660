"""Attribution as a course of asks: blocks over all combinations of patches, each block in an order of its own."""

from __future__ import annotations

import random

import numpy as np

from iodelta.bisect.git import Repository
from iodelta.bisect.model import Answer, Ask, Estimate, Rules
from iodelta.bisect.question import Patches
from iodelta.bisect.search import Course
from iodelta.bisect.store import Store
from iodelta.bisect.tree import Worktree
from iodelta.stats.attribution import Attribution, Subset, attribute, combinations

FEWEST = 6
"""Blocks before it is asked whether the intervals are narrow enough."""


class Attributing:
    """One attribution; ``run`` is the generator. An item is a combination: one digit per patch, 1 for on."""

    def __init__(self, patches: int, rules: Rules, blocks: int) -> None:
        self.patches = patches
        self.rules = rules
        self.store = Store()
        self.estimate: Estimate | None = None
        self.blocks: list[dict[str, float]] = []
        """The values of every complete block, by item."""
        self._most = blocks
        self._random = random.Random(rules.seed)
        self.items = tuple(item_of(run, patches) for run in combinations(patches))

    def run(self) -> Course[Attribution | None]:
        """Blocks until the shares are known to within the margin, or there were enough; None when nothing could be
        estimated."""
        while len(self.blocks) < self._most:
            order = [item for item in self.items if item not in self.store.broken]
            self._random.shuffle(order)
            block: dict[str, float] = {}
            for item in order:
                why = f"block {len(self.blocks) + 1} of at most {self._most}"
                answer: Answer = yield Ask(item, "block", why)
                self.store.add(item, answer)
                if answer.value is not None:
                    block[item] = answer.value
            if len(block) < 2:
                return None
            self.blocks.append(block)
            found = self.result()
            if found is not None and len(self.blocks) >= FEWEST:
                widths = [(share.high - share.low) / 2 for share in (*found.shares, found.whole) if share]
                if widths and max(widths) <= self.rules.margin:
                    break
        return self.result()

    def result(self) -> Attribution | None:
        """By the blocks so far; None below two."""
        sound = [item for item in self.items if item not in self.store.broken]
        blocks = [block for block in self.blocks if all(item in block for item in sound)]
        if len(blocks) < 2 or len(sound) < 2:
            return None
        values = np.array([[block[item] for item in sound] for block in blocks])
        return attribute(self.patches, [subset_of(item) for item in sound], values)


class PatchItems:
    """Combinations of patches as a tree can be brought to them."""

    def __init__(self, repository: Repository, subject: Patches) -> None:
        self.repository = repository
        self._subject = subject

    def title(self, item: str) -> str:
        """Which patches are on."""
        on = [str(n + 1) for n in subset_of(item)]
        return f"{item} (patch {' + '.join(on)})" if on else f"{item} (none)"

    def prepare(self, tree: Worktree, item: str) -> None:
        """Base, then what is on applied in order; where base has them, what is off reverted, the last one first.
        Raises Unbuildable when that does not apply."""
        tree.checkout(self._subject.base)
        on = set(subset_of(item))
        numbered = list(enumerate(self._subject.texts))
        if self._subject.revert:
            for n, text in reversed(numbered):
                if n not in on:
                    tree.apply(text, reverse=True)
        else:
            for n, text in numbered:
                if n in on:
                    tree.apply(text)


def item_of(run: Subset, patches: int) -> str:
    """A combination as digits."""
    return "".join("1" if n in run else "0" for n in range(patches))


def subset_of(item: str) -> Subset:
    """The patches that are on."""
    return tuple(n for n, digit in enumerate(item) if digit == "1")
