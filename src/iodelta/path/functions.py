"""Which function got longer: instructions per I/O by kernel symbol, counted by a plugin of qemu's TCG.

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
APIS = ("1", "4", "2")
"""Versions of qemu's plugin interface to try: 1 for qemu 7, 2 to 4 for newer ones (10 refuses 1)."""

USER = "user space"
USER_END = 1 << 47
STRAY = 1.0
"""Instructions per I/O below which a function is left out: start-up work that the difference did not cancel."""


class Built(msgspec.Struct, frozen=True):
    """The plugin, and the guest's program that announces phases."""

    plugin: str
    mark: str


def why_not() -> str:
    """Why there can be no table of functions; empty when there can."""
    return "" if shutil.which("gcc") else "gcc is not on this machine (Debian: apt-get install gcc)"


@functools.cache
def build() -> Built:
    """Compile both, once per version of the sources and of qemu's interface. Raises MeasureError."""
    sources = [SOURCES / "plugin.c", SOURCES / "marks.c"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    place = cache("plugin", digest)
    place.mkdir(parents=True, exist_ok=True)
    mark = place / "mark"
    layout = ("-Wl,--section-start=.marks=0x7e000000", "-Wl,--build-id=none")
    _compile(mark, "-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector", *layout, str(sources[1]))
    for api in APIS:
        plugin = place / f"plugin-{api}.so"
        _compile(plugin, "-shared", "-fPIC", f"-DAPI={api}", str(sources[0]))
        if _accepted(plugin):
            return Built(str(plugin), str(mark))
    raise MeasureError("this qemu takes no TCG plugin", place="qemu-system-x86_64", remedy="another build of qemu does")


def _compile(made: Path, *words: str) -> None:
    if made.is_file():
        return
    draft = made.with_name(f".{made.name}")
    done = subprocess.run(
        ["gcc", "-O2", "-Wall", "-o", str(draft), *words], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MeasureError(f"gcc could not build it: {said}", place=made.name, remedy="install gcc and its C library")
    draft.replace(made)


def _accepted(plugin: Path) -> bool:
    """Whether qemu loads it: started without a machine it ends by itself."""
    words = ["qemu-system-x86_64", "-machine", "none", "-nodefaults", "-display", "none", "-accel", "tcg", "-S"]
    words += ["-plugin", f"{plugin},out=/dev/null", "-monitor", "stdio"]
    done = subprocess.run(words, input=b"quit\n", capture_output=True, timeout=60, check=False)
    return done.returncode == 0


class Symbols:
    """Guest addresses by name."""

    def __init__(self, text: str) -> None:
        found: dict[int, str] = {}
        for line in text.splitlines():
            address, _, name = line.partition(" ")
            if re.fullmatch(r"[0-9a-f]{16}", address) and int(address, 16):
                found.setdefault(int(address, 16), name)
        self._addresses = sorted(found)
        self._names = [found[address] for address in self._addresses]

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def name(self, address: int) -> str:
        """The function that contains an address."""
        if address < USER_END:
            return USER
        at = bisect.bisect_right(self._addresses, address) - 1
        return re.sub(r"\.(isra|constprop|part|cold)\.?\d*.*$", "", self._names[at]) if at >= 0 else "unknown"


def per_io(counts: bytes, symbols: Symbols, ios: Mapping[int, int]) -> dict[int, dict[str, float]]:
    """Cell -> function -> instructions per I/O, from what the plugin wrote; ``ios`` is N of each cell."""
    totals: dict[int, dict[str, int]] = {}
    names: dict[int, str] = {}
    for line in counts.decode("ascii", "replace").splitlines():
        phase, pc, instructions, executions = line.split()
        address = int(pc, 16)
        name = names.get(address) or names.setdefault(address, symbols.name(address))
        own = totals.setdefault(int(phase), {})
        own[name] = own.get(name, 0) + int(instructions) * int(executions)
    found = {}
    for cell, count in ios.items():
        once, twice = totals.get(2 * cell + 1, {}), totals.get(2 * cell + 2, {})
        costs = {name: (twice.get(name, 0) - once.get(name, 0)) / count for name in once.keys() | twice.keys()}
        found[cell] = {name: cost for name, cost in costs.items() if abs(cost) >= STRAY}
    return found
