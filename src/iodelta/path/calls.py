"""The call tree of an I/O: what the kernel executes for it, and through which calls (tree.c).

A path is a tuple of names, a root first: `kernel` below system calls and kernel threads, `interrupts`, `user space`.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping

import msgspec

from iodelta.path.functions import USER, Symbols, executed

KERNEL, INTERRUPTS = "kernel", "interrupts"
ROOTS = {1: (USER,), 2: (KERNEL,), 3: (INTERRUPTS,)}
"""Nodes that the plugin begins with (enum root in tree.c)."""

ORPHANS = 0.005
"""Largest share of returns that match no call; with more there is no tree. Measured: 0.2 %."""

EXACT = 1e-9
"""Largest relative difference between a function's instructions on all paths and those counted without paths."""

Path = tuple[str, ...]


class Calls(msgspec.Struct, frozen=True):
    """What an I/O of a cell executes itself on each path, in instructions."""

    paths: dict[Path, float]
    orphans: float
    """Share of the returns that returned to no call."""
    refused: str = ""
    """Why the tree is not to be believed; empty when it is."""


def per_io(
    tree: bytes, counts: bytes, symbols: Symbols, ios: Mapping[int, int]
) -> dict[int, Calls]:
    """Return the calls of one I/O of each cell; ``counts`` is what the same boot counted without paths, ``ios`` N of
    each cell. Raises ValueError for what the plugin did not write."""
    phases, returned = _read(tree, symbols)
    flat = executed(counts, symbols)
    found = {}
    for cell, count in ios.items():
        # What one I/O adds: a cell's second phase has twice as many I/Os as its first.
        numbers = (2 * cell + 1, 2 * cell + 2)
        first, second = (phases[number] for number in numbers)
        added = {
            path: (second.get(path, 0) - first.get(path, 0)) / count
            for path in sorted(first.keys() | second.keys())
        }
        wrong: list[str] = []
        for number in numbers:
            summed: defaultdict[str, int] = defaultdict(int)
            for path, instructions in phases[number].items():
                summed[path[-1]] += instructions
            without = flat.get(number, {})
            wrong += [
                f"{name} has {summed[name]:,} instructions on all paths and {without.get(name, 0):,} without"
                for name in sorted(summed.keys() | without.keys())
                if abs(summed[name] - without.get(name, 0))
                > EXACT * max(summed[name], 1)
            ]
        returns, orphans = (
            sum(column)
            for column in zip(*(returned[number] for number in numbers), strict=True)
        )
        # Without returns it is unknown whether the plugin followed calls.
        share = orphans / returns if returns else 1.0
        if share > ORPHANS:
            wrong.append(f"{100 * share:.2f} % of all returns belong to no call")
        paths = {path: value for path, value in added.items() if value}
        found[cell] = Calls(paths, share, wrong[0] if wrong else "")
    return found


def _within(path: Path, name: str) -> Path:
    """Return the path of code of a function in a call at ``path``: a function that is reached by a jump, not by a
    call, is below the one that jumped."""
    return path if path[-1] == name else (*path, name)


def _read(
    tree: bytes, symbols: Symbols
) -> tuple[defaultdict[int, defaultdict[Path, int]], defaultdict[int, tuple[int, int]]]:
    """Return the instructions by phase and path, and each phase's returns with the orphans among them."""
    phases: defaultdict[int, defaultdict[Path, int]] = defaultdict(
        lambda: defaultdict(int)
    )
    returned: defaultdict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    nodes: dict[int, Path] = dict(ROOTS)
    blocks: dict[int, tuple[str, int]] = {}
    name = functools.cache(lambda address: symbols.name(int(address, 16)))
    for line in tree.decode("ascii", "replace").splitlines():
        kind, *words = line.split(" ")
        try:
            if kind == "n":
                nodes[int(words[0])] = (
                    *_within(nodes[int(words[1])], name(words[2])),
                    name(words[3]),
                )
            elif kind == "b":
                blocks[int(words[0])] = (name(words[1]), int(words[2]))
            elif kind == "c":
                phase, node, block, executions = map(int, words)
                function, instructions = blocks[block]
                phases[phase][_within(nodes[node], function)] += (
                    instructions * executions
                )
            elif kind == "r":
                phase, returns, orphans = map(int, words)
                returned[phase] = (returns, orphans)
            else:
                raise ValueError(f"no line of a tree begins with {kind!r}")
        except (KeyError, IndexError) as error:
            raise ValueError(f"{line!r} refers to nothing") from error
    return phases, returned
