"""What an I/O executes, by kernel symbol: instructions, and those that cost more than others, counted by a plugin of
qemu's TCG.

A cell runs twice in one boot, with N and with 2 N I/Os; the difference of the two counts over N is the cost of one I/O
without anything that the start of fio costs.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from iodelta.errors import MeasureError
from iodelta.tools.cache import cache

SOURCES = Path(__file__).parent
PLUGIN = ("plugin.c", "tree.c", "footprint.c")
APIS = ("1", "4", "2")
"""Versions of qemu's plugin interface to try: 1 for qemu 7, 2 to 4 for newer ones (10 refuses 1)."""

USER = "user space"
USER_END = 1 << 47
STRAY, STRAY_CLASS = 1.0, 0.01
"""Instructions per I/O, of all and of one class, below which a function is left out: start-up work that the difference
did not cancel."""

CLASSES = ("locked", "fence", "rdtsc", "indirect", "string")
"""Classes of instructions in the order of plugin.c: LOCK prefixes and exchanges with memory; lfence, mfence, sfence;
rdtsc and rdtscp; calls through a register or memory; iterations of repeated string instructions."""


class Built(msgspec.Struct, frozen=True):
    """The plugin, and the guest's program that announces phases."""

    plugin: str
    mark: str


def why_not() -> str:
    """Return why no table of functions is possible; empty if it is."""
    if shutil.which("gcc"):
        return ""
    return "gcc is not on this machine (Debian: apt-get install gcc)"


@functools.cache
def build() -> Built:
    """Compile both, once per version of the sources and of qemu's interface. Raises MeasureError."""
    sources = [SOURCES / name for name in PLUGIN]
    marks = SOURCES / "marks.c"
    place = kept("", *sources, SOURCES / "plugin.h", SOURCES / "qemu.h", marks)
    mark = place / "mark"
    compiled(
        mark,
        marks,
        *BARE,
        "-Wl,--section-start=.marks=0x7e000000",
        "-Wl,--build-id=none",
    )
    *others, last = sources
    for api in APIS:
        plugin = place / f"plugin-{api}.so"
        words = ("-shared", "-fPIC", f"-DAPI={api}")
        compiled(plugin, last, *words, *map(str, others))
        # qemu that loads it, started without a machine, ends by itself.
        command = "qemu-system-x86_64 -machine none -nodefaults -display none -accel tcg -S -monitor stdio -plugin"
        done = subprocess.run(
            [*command.split(), f"{plugin},out=/dev/null"],
            input=b"quit\n",
            capture_output=True,
            timeout=60,
            check=False,
        )
        if not done.returncode:
            return Built(str(plugin), str(mark))
    raise MeasureError(
        "this qemu does not load TCG plugins",
        place="qemu-system-x86_64",
        remedy="use a build of qemu with TCG plugins; Debian's has them",
    )


BARE = ("-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector")
"""gcc's words for a guest's program without a C library."""


def kept(kind: str, *sources: Path) -> Path:
    """Return the directory of the cache for what is compiled from these sources."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    place = cache("plugin", f"{kind}{digest.hexdigest()[:16]}")
    place.mkdir(parents=True, exist_ok=True)
    return place


def compiled(made: Path, source: Path, *words: str) -> None:
    """Compile ``source`` to ``made`` unless it is there. Raises MeasureError."""
    if made.is_file():
        return
    draft = made.with_name(f".{made.name}")
    command = ["gcc", "-O2", "-Wall", "-o", str(draft), *words, str(source)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        message = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MeasureError(
            f"gcc could not build it: {message}",
            place=made.name,
            remedy="install gcc and its C library",
        )
    # So a build that is killed does not leave half a file under this name.
    draft.replace(made)


class Symbols:
    """The kernel's functions by their addresses in the guest."""

    def __init__(self, text: str) -> None:
        names: dict[int, str] = {}
        for line in text.splitlines():
            address, _, name = line.partition(" ")
            if re.fullmatch(r"[0-9a-f]{16}", address) and int(address, 16):
                names.setdefault(int(address, 16), name)
        self._addresses = sorted(names)
        self._names = [names[address] for address in self._addresses]

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def name(self, address: int) -> str:
        """Return the function that contains an address."""
        if address < USER_END:
            return USER
        place = bisect.bisect_right(self._addresses, address) - 1
        if place < 0:
            return "unknown"
        # The compiler appends such words to parts and copies of a function.
        return re.sub(r"\.(isra|constprop|part|cold)\.?\d*.*$", "", self._names[place])


class Cost(msgspec.Struct, frozen=True):
    """One I/O of a cell, by function: what the guest executes for it."""

    instructions: dict[str, float]
    """Of every function that takes at least one."""
    classes: dict[str, dict[str, float]]
    """Class of instructions -> function -> how many; empty for counts of a plugin that knew no classes."""
    ios: int
    """I/Os by which the two runs differ."""


def per_io(counts: bytes, symbols: Symbols, ios: Mapping[int, int]) -> dict[int, Cost]:
    """Return the cost of one I/O of each cell, from what the plugin wrote; ``ios`` is N of each cell. Raises
    ValueError.
    """
    totals = _totals(counts, symbols)
    costs = {}
    for cell, count in ios.items():
        once, twice = totals.get(2 * cell + 1, {}), totals.get(2 * cell + 2, {})
        classes = {
            name: _slope(once.get(name, {}), twice.get(name, {}), count, STRAY_CLASS)
            for name in CLASSES
        }
        instructions = _slope(once.get("", {}), twice.get("", {}), count, STRAY)
        if not any(classes.values()):
            classes = {}
        costs[cell] = Cost(instructions, classes, count)
    return costs


Executed = dict[str, dict[str, int]]
"""Class of instructions, all of them under no name -> function -> executions in a phase."""


def in_kernel(costs: Mapping[str, float]) -> float:
    """Return the cost of all kernel functions together."""
    return sum(cost for name, cost in costs.items() if name != USER)


def executed(counts: bytes, symbols: Symbols) -> dict[int, dict[str, int]]:
    """Phase -> function -> instructions. Raises ValueError."""
    totals = _totals(counts, symbols)
    return {phase: columns.get("", {}) for phase, columns in totals.items()}


def _totals(counts: bytes, symbols: Symbols) -> dict[int, Executed]:
    """Phase -> what it executed."""
    totals: dict[int, Executed] = {}
    names: dict[int, str] = {}
    for line in counts.decode("ascii", "replace").splitlines():
        phase, pc, *words = line.split()
        instructions, executions, *of_classes = map(int, words)
        if len(of_classes) not in (0, len(CLASSES)):
            raise ValueError(f"{2 + len(words)} columns in {line!r}")
        address = int(pc, 16)
        name = names.get(address) or names.setdefault(address, symbols.name(address))
        columns = totals.setdefault(int(phase), {})
        numbers = zip(("", *CLASSES), (instructions, *of_classes), strict=False)
        for column, number in numbers:
            if number:
                by_function = columns.setdefault(column, {})
                by_function[name] = by_function.get(name, 0) + number * executions
    return totals


def _slope(
    once: Mapping[str, int], twice: Mapping[str, int], count: int, least: float
) -> dict[str, float]:
    """Function -> what each of ``count`` more I/Os executes, without functions below ``least``."""
    costs = {
        name: (twice.get(name, 0) - once.get(name, 0)) / count
        for name in once.keys() | twice.keys()
    }
    return {name: cost for name, cost in costs.items() if abs(cost) >= least}
