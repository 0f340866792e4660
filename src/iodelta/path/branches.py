"""The difference of two call trees: each path once, with the instructions of both sides.

Siblings of one name are the same branch. A function that was renamed, or inlined into its caller, would appear twice,
once for each side. So two siblings that each appear on one side only become one branch if they share most of what they
call; and if the caller itself calls most of a function's callees on the other side, the function becomes part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
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


def call_tree(cell: str, variant: str, sides: tuple[Calls, Calls]) -> CallTree:
    """Return the difference of a cell's calls under baseline and variant."""
    orphans = (sides[0].orphans, sides[1].orphans)
    for side, name in zip(sides, ("the baseline", variant), strict=True):
        if side.refused:
            return CallTree(
                cell=cell,
                variant=variant,
                roots=(),
                orphans=orphans,
                refused=f"{name}: {side.refused}",
            )
    pair = (_plant(sides[0].paths), _plant(sides[1].paths))
    roots = [
        _merged(root, *(tree.children.get(root, _Node()) for tree in pair))
        for root in (KERNEL, INTERRUPTS)
    ]
    return CallTree(cell=cell, variant=variant, roots=tuple(roots), orphans=orphans)


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
        large.append(_summed(small))
    return Branch(
        name=name,
        baseline=before.whole,
        value=after.whole,
        own_baseline=before.own,
        own_value=after.own,
        children=tuple(large),
    )


def _summed(small: list[Branch]) -> Branch:
    baseline = sum(branch.baseline for branch in small)
    value = sum(branch.value for branch in small)
    return Branch(
        name=SMALL,
        baseline=baseline,
        value=value,
        own_baseline=baseline,
        own_value=value,
    )


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
        (_likeness((old, left[old]), (new, right[new])), old, new) for old, new in pairs
    ]
    scores.sort(key=lambda score: (-score[0], score[1], score[2]))
    taken: set[str] = set()
    chosen = []
    for share, old, new in scores:
        if share >= SHARED and not taken & {old, new}:
            taken |= {old, new}
            chosen.append((old, new))
    return chosen


def _likeness(a: tuple[str, _Node], b: tuple[str, _Node]) -> float:
    """Return the share of two functions that is common; from ``SHARED`` on they count as one that was renamed."""
    (old, left), (new, right) = a, b
    calls = [_calls(name, node) for name, node in (a, b)]
    share = _common(calls[0], calls[1])
    if share >= SHARED:
        # The instructions of the functions themselves have two names, so they are counted as shared.
        share = _common({**calls[0], "": left.own}, {**calls[1], "": right.own})
    smaller, larger = sorted((left.whole, right.whole))
    if share < SHARED and _extends(old, new) and smaller >= SHARED * larger:
        return SHARED
    return share


def _calls(name: str, node: _Node) -> dict[str, float]:
    """Return what a function's callees execute, by name."""
    calls: dict[str, float] = {**node.by_name}
    calls[name] = calls.get(name, 0.0) - node.own
    return calls


def _extends(old: str, new: str) -> bool:
    """Return whether one name is the other with more words before or after it: kmem_cache_alloc,
    kmem_cache_alloc_noprof.
    """
    shorter, longer = sorted((old.strip("_"), new.strip("_")), key=len)
    return longer.startswith(f"{shorter}_") or longer.endswith(f"_{shorter}")


def _common(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return the share of instructions that both execute, function by function, in those of the larger one."""
    names = a.keys() | b.keys()
    both = sum(min(a.get(name, 0.0), b.get(name, 0.0)) for name in names)
    either = sum(max(a.get(name, 0.0), b.get(name, 0.0)) for name in names)
    return both / either if either > 0 else 0.0
