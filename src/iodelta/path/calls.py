"""The call tree of an I/O: what the kernel executes for it, and through which calls (tree.c).

A path is a tuple of names, a root first: `kernel` below system calls and kernel threads, `interrupts`, `user space`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

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


class _Phases(msgspec.Struct):
    paths: defaultdict[int, defaultdict[Path, int]]
    returns: dict[int, tuple[int, int]]
    """Phase -> returns, and orphans among them."""


def per_io(
    tree: bytes, counts: bytes, symbols: Symbols, ios: Mapping[int, int]
) -> dict[int, Calls]:
    """Return the calls of one I/O of each cell; ``counts`` is what the same boot counted without paths, ``ios`` N of
    each cell. Raises ValueError for what the plugin did not write."""
    phases = _read(tree, symbols)
    flat = executed(counts, symbols)
    return {cell: _slope(cell, count, phases, flat) for cell, count in ios.items()}


def _slope(
    cell: int, ios: int, phases: _Phases, flat: Mapping[int, Mapping[str, int]]
) -> Calls:
    """Return what one I/O adds: the difference between a cell's second phase, with twice as many I/Os, and its first."""
    numbers = (2 * cell + 1, 2 * cell + 2)
    first, second = (phases.paths[number] for number in numbers)
    added = {
        path: (second.get(path, 0) - first.get(path, 0)) / ios
        for path in sorted(first.keys() | second.keys())
    }
    wrong: list[str] = []
    returns = orphans = 0
    for number in numbers:
        wrong += _differences(phases.paths[number], flat.get(number, {}))
        counted, of_no_call = phases.returns.get(number, (0, 0))
        returns += counted
        orphans += of_no_call
    # Without returns it is unknown whether the plugin followed calls.
    share = orphans / returns if returns else 1.0
    if share > ORPHANS:
        wrong.append(f"{100 * share:.2f} % of all returns belong to no call")
    paths = {path: value for path, value in added.items() if value}
    return Calls(paths, share, wrong[0] if wrong else "")


def _differences(paths: Mapping[Path, int], flat: Mapping[str, int]) -> Iterator[str]:
    """Functions whose instructions on all paths differ from those counted without paths, in sentences."""
    summed: defaultdict[str, int] = defaultdict(int)
    for path, number in paths.items():
        summed[path[-1]] += number
    for name in sorted(summed.keys() | flat.keys()):
        if abs(summed[name] - flat.get(name, 0)) > EXACT * max(summed[name], 1):
            yield f"{name} has {summed[name]:,} instructions on all paths and {flat.get(name, 0):,} without"


class _Reader:
    """The plugin's lines, turned into paths."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._names: dict[int, str] = {}
        self._nodes: dict[int, Path] = dict(ROOTS)
        self._blocks: dict[int, tuple[str, int]] = {}
        self.phases = _Phases(defaultdict(lambda: defaultdict(int)), {})

    def read(self, kind: str, words: list[str]) -> None:
        if kind == "n":
            number, parent = int(words[0]), int(words[1])
            caller, entry = self._name(words[2]), self._name(words[3])
            self._nodes[number] = (*_within(self._nodes[parent], caller), entry)
        elif kind == "b":
            self._blocks[int(words[0])] = (self._name(words[1]), int(words[2]))
        elif kind == "c":
            phase, node, block, executions = map(int, words)
            name, instructions = self._blocks[block]
            path = _within(self._nodes[node], name)
            self.phases.paths[phase][path] += instructions * executions
        elif kind == "r":
            phase, returns, orphans = map(int, words)
            self.phases.returns[phase] = (returns, orphans)
        else:
            raise ValueError(f"no line of a tree begins with {kind!r}")

    def _name(self, address: str) -> str:
        number = int(address, 16)
        if number not in self._names:
            self._names[number] = self._symbols.name(number)
        return self._names[number]


def _within(path: Path, name: str) -> Path:
    """Return the path of code of a function in a call at ``path``: a function that is reached by a jump, not by a
    call, is below the one that jumped."""
    return path if path[-1] == name else (*path, name)


def _read(tree: bytes, symbols: Symbols) -> _Phases:
    reader = _Reader(symbols)
    for line in tree.decode("ascii", "replace").splitlines():
        kind, *words = line.split(" ")
        try:
            reader.read(kind, words)
        except (KeyError, IndexError) as error:
            raise ValueError(f"{line!r} refers to nothing") from error
    return reader.phases
