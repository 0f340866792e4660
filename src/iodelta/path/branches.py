"""The difference of two call trees: each path once, with the instructions of both sides.

Siblings of one name are the same branch. A function that was renamed, or inlined into its caller, would appear twice,
once for each side. So two siblings that each appear on one side only become one branch if they share most of what they
call; and if the caller itself calls most of a function's callees on the other side, the function becomes part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import msgspec

from iodelta.path.calls import INTERRUPTS, KERNEL, Calls, Path

SHARED = 0.5
"""Least share of two siblings' instructions in functions that both call, for the two to be one branch."""

LEAST = 1.0
"""Instructions per I/O of both sides below which a branch is added to its small siblings."""

SMALL = "(small ones)"
"""The name of that sum."""


class Branch(msgspec.Struct, frozen=True):
    """A function on its path: instructions per I/O of it and of all that it calls, and its own."""

    name: str
    """``old -> new`` where a branch has another name on either side; ``caller + inlined`` where only one side calls."""
    baseline: float
    value: float
    own_baseline: float
    """Without what it calls, as ``own_value``."""
    own_value: float
    """Of the function itself, under the variant."""
    children: tuple[Branch, ...] = ()
    """The largest first."""

    @property
    def change(self) -> float:
        """Instructions more, with all that it calls."""
        return self.value - self.baseline

    @property
    def width(self) -> float:
        """Return the larger side."""
        return max(self.baseline, self.value)


class CallTree(msgspec.Struct, frozen=True):
    """Where a cell's change sits, path by path."""

    cell: str
    variant: str
    roots: tuple[Branch, ...]
    """The kernel's part, and interrupts; none where the tree is refused."""
    orphans: tuple[float, float]
    """Shares of the returns to no call, of baseline and variant."""
    refused: str = ""
    """Why there is no tree."""


def call_tree(cell: str, variant: str, sides: Sequence[Calls]) -> CallTree:
    """Return the difference of a cell's calls under baseline and variant."""
    before, after = sides
    orphans = (before.orphans, after.orphans)
    for side, name in ((before, "the baseline"), (after, variant)):
        if side.refused:
            return CallTree(cell, variant, (), orphans, f"{name}: {side.refused}")
    pair = [_plant(side.paths) for side in sides]
    roots = (
        _merged(root, *(tree.children.get(root, _Node()) for tree in pair))
        for root in (KERNEL, INTERRUPTS)
    )
    return CallTree(cell, variant, tuple(roots), orphans)


class _Node:
    """A function in the tree of one side, with its own instructions and those of all functions below it by name."""

    def __init__(self) -> None:
        self.own = 0.0
        self.children: dict[str, _Node] = {}
        self.by_name: Counter[str] = Counter()

    @property
    def whole(self) -> float:
        return self.own + sum(child.whole for child in self.children.values())


def _plant(paths: Mapping[Path, float]) -> _Node:
    root = _Node()
    for path, own in paths.items():
        node = root
        for name in path:
            node = node.children.setdefault(name, _Node())
            node.by_name[path[-1]] += own  # type: ignore[assignment]
        node.own += own
    return root


def _merged(name: str, before: _Node, after: _Node) -> Branch:
    """Return one branch of both trees; its children that are too small to be shown are added up."""
    for part in (*_inlined(before, after), *_inlined(after, before)):
        name = f"{name} + {part}"
    branches = [_merged(label, *pair) for label, pair in _pairs(before, after)]
    branches.sort(key=lambda branch: (-branch.width, branch.name))
    large = [branch for branch in branches if branch.width >= LEAST]
    small = branches[len(large) :]
    if len(small) == 1:
        large = branches
    elif small:
        sums = (
            sum(branch.baseline for branch in small),
            sum(branch.value for branch in small),
        )
        large.append(Branch(SMALL, *sums, *sums))
    return Branch(name, before.whole, after.whole, before.own, after.own, tuple(large))


def _pairs(before: _Node, after: _Node) -> Iterator[tuple[str, tuple[_Node, _Node]]]:
    """Yield the children of both, matched by name or by what they share; then those of one side only."""
    old, new = before.children, after.children
    for name in old.keys() & new.keys():
        yield name, (old[name], new[name])
    gone = {name: old[name] for name in old.keys() - new.keys()}
    come = {name: new[name] for name in new.keys() - old.keys()}
    for was, now in _alike(gone, come):
        yield f"{was} -> {now}", (gone.pop(was), come.pop(now))
    for name, node in gone.items():
        yield name, (node, _Node())
    for name, node in come.items():
        yield name, (_Node(), node)


def _inlined(whole: _Node, other: _Node) -> Iterator[str]:
    """Yield names of functions that ``other`` lacks although it calls most of their callees: they become part of
    ``whole``."""
    for name in sorted(whole.children.keys() - other.children.keys()):
        node = whole.children[name]
        lifted = node.children.keys() & (other.children.keys() - whole.children.keys())
        shared = sum(node.children[callee].whole for callee in lifted)
        if shared < SHARED * node.whole or not lifted:
            continue
        del whole.children[name]
        whole.own += node.own
        for callee, child in node.children.items():
            _join(whole.children.setdefault(callee, _Node()), child)
        yield name
        yield from _inlined(whole, other)
        return


def _join(node: _Node, other: _Node) -> None:
    """Add everything of ``other`` to ``node``."""
    node.own += other.own
    node.by_name.update(other.by_name)
    for name, child in other.children.items():
        _join(node.children.setdefault(name, _Node()), child)


def _alike(
    left: Mapping[str, _Node], right: Mapping[str, _Node]
) -> list[tuple[str, str]]:
    """Pairs of names that count as one function, most similar first; each name once."""
    pairs = product(sorted(left), sorted(right))
    scores = [
        (-_likeness(old, left[old], new, right[new]), old, new) for old, new in pairs
    ]
    taken: set[str] = set()
    chosen = []
    for share, old, new in sorted(scores):
        if -share >= SHARED and not taken & {old, new}:
            taken |= {old, new}
            chosen.append((old, new))
    return chosen


def _likeness(old: str, left: _Node, new: str, right: _Node) -> float:
    """Return the share of two functions that is common; from ``SHARED`` on they count as one that was renamed. One name
    may also be the other with more words before or after it: kmem_cache_alloc, kmem_cache_alloc_noprof."""
    calls = []
    for name, node in ((old, left), (new, right)):
        by_name: dict[str, float] = {**node.by_name}
        by_name[name] = by_name.get(name, 0.0) - node.own
        calls.append(by_name)
    share = _common(calls[0], calls[1])
    if share >= SHARED:
        # The instructions of the functions themselves have two names, so they are counted as shared.
        share = _common({**calls[0], "": left.own}, {**calls[1], "": right.own})
    smaller, larger = sorted((left.whole, right.whole))
    shorter, longer = sorted((old.strip("_"), new.strip("_")), key=len)
    extends = longer.startswith(f"{shorter}_") or longer.endswith(f"_{shorter}")
    return (
        SHARED if share < SHARED and extends and smaller >= SHARED * larger else share
    )


def _common(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return the share of instructions that both execute, function by function, in those of the larger one."""
    names = a.keys() | b.keys()
    both = sum(min(a.get(name, 0.0), b.get(name, 0.0)) for name in names)
    either = sum(max(a.get(name, 0.0), b.get(name, 0.0)) for name in names)
    return both / either if either > 0 else 0.0
