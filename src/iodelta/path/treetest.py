"""The self-test, with the installed qemu, of the plugin that follows calls and memory: a firmware of known content."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from iodelta.errors import MeasureError
from iodelta.path.footprint import MEASURES
from iodelta.path.functions import SOURCES, build, compiled
from iodelta.path.sharing_build import FIRMWARE, emulated
from iodelta.vm.boot import QEMU

ROUNDS = {1: 50, 2: 100}
"""Calls of the firmware's function in each phase; each also calls another."""

EACH = {
    "instructions": 10,
    "loads": 4,
    "stores": 5,
    "data_lines": 5,
    "written_lines": 4,
    "data_pages": 2,
    "code_lines": 3,
    "code_pages": 2,
    "locked": 1,
    "fence": 1,
}
"""What a call executes and touches until the next one (treetest.S); of all other classes it executes none."""

WORK, INNER = "f2000", "f2040"
"""Addresses of the function that is called, and of the one that it calls."""


@functools.cache
def check_anatomy() -> None:
    """Raise MeasureError if this qemu does not show the plugin what a guest calls and touches."""
    built = build()
    place = Path(built.plugin).parent
    firmware = place / "treetest.bin"
    compiled(firmware, SOURCES / "treetest.S", *FIRMWARE)
    why = broken(Path(built.plugin), firmware)
    if why:
        raise MeasureError(
            f"no anatomy: the self-test of the plugin failed: {why}",
            place=QEMU,
            remedy="use another version of qemu (7.2 passes), or omit --anatomy: functions and bills need less",
        )


def broken(plugin: Path, firmware: Path) -> str:
    """Return what is wrong with the plugin under this qemu; empty when it counts what the firmware does."""
    options = "out=counts,tree=tree,epochs=epochs,marks=0xf4000,floor=0xf0000"
    files, said = emulated(firmware, 1, f"{plugin},{options}", ["tree", "epochs"])
    if not all(files):
        return said
    return next(_wrong(*files), "")


def _wrong(tree: str, epochs: str) -> Iterator[str]:
    """Where the plugin's files are not what the firmware does."""
    entries, callers, returns = {}, {}, {}
    for kind, *words in map(str.split, tree.splitlines()):
        if kind == "n":
            entries[words[0]] = words[3]
            callers[words[3]] = words[1]
        elif kind == "r":
            returns[int(words[0])] = (int(words[1]), int(words[2]))
    if entries.get(callers.get(INNER, "")) != WORK:
        yield "not which function calls which"
    by_phase: defaultdict[int, list[list[int]]] = defaultdict(list)
    for line in epochs.splitlines():
        phase, *numbers = map(int, line.split())
        by_phase[phase].append(numbers[: len(MEASURES)])
    for phase, rounds in ROUNDS.items():
        counted, orphans = returns.get(phase, (0, 0))
        if (counted, orphans) != (2 * rounds + 1, 0):
            yield f"{counted} returns, {orphans} of them of no call, where {2 * rounds + 1} are"
    for phase, rounds in ROUNDS.items():
        if len(by_phase[phase]) != rounds - 1:
            yield f"{len(by_phase[phase]) + 1} calls of a function where {rounds} are"
        for name, value in chain.from_iterable(
            zip(MEASURES, each, strict=True) for each in by_phase[phase]
        ):
            if value != EACH.get(name, 0):
                yield f"{value} {name.replace('_', ' ')} where {EACH.get(name, 0)} are"
