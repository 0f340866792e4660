"""The self-test of the plugin that follows calls and memory, with the qemu that is here: a firmware of known content."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from iodelta.errors import MeasureError
from iodelta.path.footprint import MEASURES
from iodelta.path.functions import SOURCES, build
from iodelta.path.sharing_build import FIRMWARE, compiled, emulated
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
    """Raises MeasureError where this qemu does not show the plugin what a guest calls and touches."""
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
    """What is wrong with the plugin under this qemu; empty when it counts what the firmware does."""
    options = "out=counts,tree=tree,epochs=epochs,marks=0xf4000,floor=0xf0000"
    files, said = emulated(firmware, 1, f"{plugin},{options}", ["tree", "epochs"])
    if not all(files):
        return said
    return next(_wrong(*files), "")


def _wrong(tree: str, epochs: str) -> Iterator[str]:
    """Where the plugin's files are not what the firmware does."""
    yield from _wrong_calls(tree)
    rows = [tuple(map(int, line.split())) for line in epochs.splitlines()]
    for phase, rounds in ROUNDS.items():
        kernel = [row[1 : len(MEASURES) + 1] for row in rows if row[0] == phase]
        if len(kernel) != rounds - 1:
            yield f"{len(kernel) + 1} calls of a function where {rounds} are"
        for row in kernel:
            for name, value in zip(MEASURES, row, strict=True):
                if value != EACH.get(name, 0):
                    yield f"{value} {name.replace('_', ' ')} where {EACH.get(name, 0)} are"


def _wrong_calls(tree: str) -> Iterator[str]:
    lines = [line.split() for line in tree.splitlines()]
    nodes = {words[1]: (words[2], words[4]) for words in lines if words[0] == "n"}
    callers = {
        entry: nodes.get(parent, ("", ""))[1] for parent, entry in nodes.values()
    }
    if callers.get(INNER) != WORK:
        yield "not which function calls which"
    returns = {
        int(words[1]): (int(words[2]), int(words[3]))
        for words in lines
        if words[0] == "r"
    }
    for phase, rounds in ROUNDS.items():
        expected = (2 * rounds + 1, 0)
        if returns.get(phase) != expected:
            counted, orphans = returns.get(phase, (0, 0))
            yield f"{counted} returns, {orphans} of them of no call, where {expected[0]} are"
