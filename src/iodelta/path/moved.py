"""Read the output of the plugin moved.c, and name the lines that moved.

A line is named by the kernel's symbol at its address, by the CPU whose per-CPU area has it, or by the function that
allocated it; if none of these is known, by the functions that touch it.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from iodelta.errors import MeasureError
from iodelta.path.functions import USER, USER_END, Symbols

LINE = 64
"""Bytes of a cache line."""

KERNEL_IMAGE = 0xFFFFFFFF80000000
"""Where a kernel's code and data begin."""

PER_CPU = ("__per_cpu_start", "__per_cpu_end")
"""Symbols around those of a CPU's own area, which are relative to its base."""

PAGES = range(0xFFFFEA0000000000, 0xFFFFEB0000000000)
"""Where Linux keeps its ``struct page`` (Documentation/arch/x86/x86_64/mm.rst, nokaslr)."""

MAPPED = 0xFFFF888000000000
"""Where Linux maps all memory (the same, nokaslr)."""

PAGE_BYTES = 4096

SLABS = ("allocate_slab", "new_slab", "___slab_alloc")
"""Functions that take pages for objects, whose births say more."""

STRUCTS: Mapping[str, str] = {
    "wbt_init": "rq_wb",
    "blk_alloc_queue": "request_queue",
    "blk_mq_init_tags": "blk_mq_tags",
    "blk_mq_alloc_hctx": "blk_mq_hw_ctx",
    "blk_mq_init_sched": "elevator_queue",
    "elevator_alloc": "elevator_queue",
    "dd_init_sched": "deadline_data",
    "kyber_init_sched": "kyber_queue_data",
    "bfq_init_queue": "bfq_data",
    "__alloc_disk_node": "gendisk",
    "bdev_alloc_inode": "bdev_inode",
    "blk_alloc_flush_queue": "blk_flush_queue",
    "blk_stat_alloc_callback": "blk_stat_callback",
    "null_alloc_dev": "nullb_device",
    "null_add_dev": "nullb",
    "setup_queues": "nullb_queue",
    "sbitmap_init_node": "sbitmap_word",
    "alloc_empty_file": "file",
}
"""Function that allocates -> what it allocates there (Linux 6.12)."""

STRUCTS_IN_PAGES: Mapping[str, str] = {
    "blk_mq_alloc_rqs": "request",
    "blk_mq_alloc_map_and_rqs": "request",
}
"""The same of functions that take whole pages for many (the second has the first inlined)."""


class Toucher(msgspec.Struct, frozen=True):
    """Instructions at one place that touched a line."""

    pc: int
    cpu: int
    store: bool
    count: int


class Touched(msgspec.Struct, frozen=True):
    """Bytes of a line that a CPU read and wrote, a bit a byte."""

    read: int
    written: int


class MovedLine(msgspec.Struct, frozen=True):
    """A line of a phase, as the plugin counted it."""

    address: int
    moved: int
    invalidated: int
    shared: int
    """Of those that moved: a CPU touched what the other had written."""
    ios: int
    """I/Os in which it moved."""
    touched: Mapping[int, Touched]
    """By CPU."""
    touchers: tuple[Toucher, ...]


class Phase(msgspec.Struct, frozen=True):
    """One cell of a boot."""

    ios: int
    """I/Os of all CPUs."""
    moves: Mapping[int, int]
    """Lines that an I/O moved -> how many I/Os did."""
    bases: Mapping[int, int]
    """CPU -> where its own area begins, less what symbols of such areas begin with."""
    lines: tuple[MovedLine, ...]


def phases(data: bytes, place: str) -> dict[int, Phase]:
    """Everything that the plugin wrote, by phase. Raises MeasureError for what it did not write."""
    reader = _Reader()
    for line in data.decode("ascii", "replace").splitlines():
        try:
            reader.take(*line.split())
        except (ValueError, IndexError, TypeError) as error:
            raise MeasureError(
                f"not a line of the plugin: {line[:80]!r}", place=place
            ) from error
    return {number: draft.phase() for number, draft in reader.phases.items()}


class _DraftLine:
    def __init__(self, words: Sequence[str]) -> None:
        self.address = int(words[0], 16)
        self.numbers = list(map(int, words[2:6]))
        if len(self.numbers) != 4:
            raise ValueError("a line has four counts")
        self.touched: dict[int, Touched] = {}
        self.touchers: list[Toucher] = []

    def line(self) -> MovedLine:
        moved, invalidated, shared, ios = self.numbers
        touchers = tuple(self.touchers)
        return MovedLine(
            address=self.address,
            moved=moved,
            invalidated=invalidated,
            shared=shared,
            ios=ios,
            touched=self.touched,
            touchers=touchers,
        )


class _DraftPhase:
    def __init__(self, ios: int) -> None:
        self.ios = ios
        self.moves: dict[int, int] = {}
        self.bases: dict[int, int] = {}
        self.lines: list[_DraftLine] = []

    def phase(self) -> Phase:
        lines = tuple(line.line() for line in self.lines)
        return Phase(ios=self.ios, moves=self.moves, bases=self.bases, lines=lines)


class _Reader:
    """Line after line of the plugin's file (moved.c, write_phase)."""

    def __init__(self) -> None:
        self.phases: dict[int, _DraftPhase] = {}
        self._phase = _DraftPhase(0)

    def take(self, word: str, *words: str) -> None:
        """One line. Raises ValueError, IndexError or TypeError."""
        if word == "phase":
            self._phase = self.phases[int(words[0])] = _DraftPhase(int(words[1]))
        elif word == "base":
            self._phase.bases[int(words[0])] = int(words[1], 16)
        elif word == "ios":
            self._phase.moves[int(words[0])] = int(words[1])
        elif word == "line":
            self._phase.lines.append(_DraftLine(words))
        elif word == "bytes":
            touched = Touched(int(words[1], 16), int(words[2], 16))
            self._phase.lines[-1].touched[int(words[0])] = touched
        elif word == "place":
            self._phase.lines[-1].touchers.append(_toucher(words))
        elif word == "self":
            _check_cpu(words)
        elif word != "going":
            raise ValueError(word)


def _toucher(words: Sequence[str]) -> Toucher:
    pc, cpu, what, count = words
    return Toucher(pc=int(pc, 16), cpu=int(cpu), store=what == "w", count=int(count))


def _check_cpu(words: Sequence[str]) -> None:
    """Raise ValueError if qemu gave the plugin the wrong number of a CPU."""
    if words[0] != words[1]:
        raise ValueError(f"CPU {words[0]} is shown as {words[1]}")


class Birth(msgspec.Struct, frozen=True):
    """An object of the kernel's slabs, or pages."""

    address: int
    size: int
    """Bytes."""
    function: str
    """Which asked for it."""
    pages: bool = False
    """Whether it was whole pages that were asked for."""


def births(lines: Sequence[str]) -> list[Birth]:
    """Allocations from the guest's script, by address; lines of another form are left out."""
    allocations = [*map(_object, lines), *map(_pages, lines)]
    return sorted(filter(None, allocations), key=lambda birth: birth.address)


def _object(line: str) -> Birth | None:
    """Return the object that a line of the guest's script is about."""
    match = re.fullmatch(r"([0-9a-f]{16}) (\d+) ([\w.]+)", line)
    if not match:
        return None
    return Birth(int(match[1], 16), int(match[2]), _function(match[3]))


def _pages(line: str) -> Birth | None:
    """Return the pages that a line of the guest's script is about, unless they are for a slab."""
    match = re.fullmatch(r"page (?:0x)?([0-9a-f]{1,10}) (\d{1,2}) ([\w.]+)", line)
    if not match or _function(match[3]) in SLABS:
        return None
    address = MAPPED + PAGE_BYTES * int(match[1], 16)
    size = PAGE_BYTES << int(match[2])
    return Birth(address, size, _function(match[3]), pages=True)


def _function(symbol: str) -> str:
    """Return the function of a symbol, without the compiler's suffixes such as `.part.0`."""
    return re.sub(r"\..*", "", symbol)


class Named(msgspec.Struct, frozen=True):
    """What lies at an address."""

    name: str
    offset: int
    """Bytes from its beginning."""
    born: str = ""
    """The function that allocated it."""


class _Placed:
    """Allocations by address; they do not overlap."""

    def __init__(self, allocations: Sequence[Birth]) -> None:
        self._allocations = allocations
        self._begins = [birth.address for birth in allocations]

    def of(self, address: int) -> Birth | None:
        """Return the allocation that contains an address."""
        index = bisect.bisect_right(self._begins, address) - 1
        if index < 0:
            return None
        birth = self._allocations[index]
        return birth if address < birth.address + birth.size else None


class Names:
    """Names of a guest's data and code."""

    def __init__(self, symbols: str, allocations: Sequence[Birth]) -> None:
        text: list[str] = []
        data: dict[int, str] = {}
        bounds = {PER_CPU[0]: 0, PER_CPU[1]: 0}
        for line in symbols.splitlines():
            match = re.fullmatch(r"([0-9a-f]{16}) (\w) (\S+).*", line)
            if match is None:
                continue
            address, kind, name = match.groups()
            if kind in "tTwW":
                text.append(f"{address} {name}")
            elif name in bounds:
                bounds[name] = int(address, 16)
            else:
                data.setdefault(int(address, 16), name)
        self._code = Symbols("\n".join(text))
        self._own = range(*bounds.values())
        self._addresses = sorted(data)
        self._names = [data[address] for address in self._addresses]
        self._objects = _Placed([birth for birth in allocations if not birth.pages])
        self._pages = _Placed([birth for birth in allocations if birth.pages])

    def function(self, pc: int) -> str:
        """Return the function that holds an instruction."""
        return self._code.name(pc)

    def data(self, address: int, bases: Mapping[int, int]) -> Named | None:
        """Return what lies at an address; None where nothing is known."""
        if address < USER_END:
            return Named(USER, 0)
        return (
            self._born(address)
            or self._of_cpu(address, bases)
            or self._symbol(address)
            or (Named("struct page", 0) if address in PAGES else None)
        )

    def _born(self, address: int) -> Named | None:
        birth = self._objects.of(address) or self._pages.of(address)
        if birth is None:
            return None
        structs = STRUCTS_IN_PAGES if birth.pages else STRUCTS
        what = f"{birth.size >> 10} KiB" if birth.pages else f"{birth.size} bytes"
        name = structs.get(birth.function, f"{what} of {birth.function}")
        return Named(name, address - birth.address, birth.function)

    def _of_cpu(self, address: int, bases: Mapping[int, int]) -> Named | None:
        for cpu, base in bases.items():
            relative = (address - base) % (1 << 64)
            if relative in self._own:
                name, offset = self._at(relative)
                return Named(f"CPU {cpu}'s {name}", offset) if name else None
        return None

    def _symbol(self, address: int) -> Named | None:
        name, offset = self._at(address)
        known = name and self._addresses[-1] >= address >= KERNEL_IMAGE
        return Named(name, offset) if known else None

    def _at(self, address: int) -> tuple[str, int]:
        """Return the last symbol at or before an address, and the distance from it; an empty name if there is none."""
        index = bisect.bisect_right(self._addresses, address) - 1
        if index < 0:
            return "", 0
        return self._names[index], address - self._addresses[index]


class SharedLine(msgspec.Struct, frozen=True):
    """A cache line that moves between CPUs, per I/O."""

    name: str
    """What lies in it: symbols or structures, in the order of their bytes; empty where that is not known."""
    offset: int
    """Of the first byte that is touched, from the beginning of what is named first."""
    born: str
    """The function that allocated it; empty where that is not known."""
    moved: float
    """Times that a CPU took it over after another had written to it."""
    invalidated: float
    """Times that a CPU's write took the copy from another."""
    false_share: float
    """Share of the moves after which the CPU touched no byte that the other had written."""
    ios: float
    """Share of all I/Os in which it moved."""
    readers: tuple[str, ...]
    """Functions that read it and do not write to it, those that do so most first."""
    writers: tuple[str, ...]
    """Functions that write to it."""


def shared_line(line: MovedLine, phase: Phase, names: Names) -> SharedLine:
    """Return a line with its name."""
    whole = list(_named_bytes(line, phase, names))
    first = whole[0] if whole else Named("", 0)
    writers = _functions(line.touchers, names, store=True)
    readers = _functions(line.touchers, names, store=False)
    return SharedLine(
        name=", ".join(dict.fromkeys(named.name for named in whole)),
        offset=first.offset,
        born=first.born,
        moved=line.moved / phase.ios,
        invalidated=line.invalidated / phase.ios,
        false_share=(line.moved - line.shared) / line.moved if line.moved else 0.0,
        ios=line.ios / phase.ios,
        readers=tuple(name for name in readers if name not in writers),
        writers=writers,
    )


def _named_bytes(line: MovedLine, phase: Phase, names: Names) -> Iterator[Named]:
    """Yield what lies at each byte that a CPU touched."""
    touched = 0
    for of_cpu in line.touched.values():
        touched |= of_cpu.read | of_cpu.written
    for byte in range(LINE):
        if touched >> byte & 1:
            named = names.data(line.address + byte, phase.bases)
            if named:
                yield named


def _functions(
    touchers: Sequence[Toucher], names: Names, *, store: bool
) -> tuple[str, ...]:
    """Return the functions that store to a line, or load from it, most frequent first."""
    counts: Counter[str] = Counter()
    for toucher in touchers:
        if toucher.store == store:
            counts[names.function(toucher.pc)] += toucher.count
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))
