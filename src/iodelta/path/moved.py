"""Read the output of the plugin moved.c, and name the lines that moved.

A line is named by the kernel's symbol at its address, by the CPU whose per-CPU area has it, or by the function that
allocated it; if none of these is known, by the functions that touch it.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Mapping, Sequence

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
    touched: dict[int, Touched]
    """By CPU."""
    touchers: list[Toucher]


class Phase(msgspec.Struct, frozen=True):
    """One cell of a boot."""

    ios: int
    """I/Os of all CPUs."""
    moves: dict[int, int]
    """Lines that an I/O moved -> how many I/Os did."""
    bases: dict[int, int]
    """CPU -> where its own area begins, less what symbols of such areas begin with."""
    lines: list[MovedLine]


def phases(data: bytes, place: str) -> dict[int, Phase]:
    """Everything that the plugin wrote (moved.c, write_phase), by phase. Raises MeasureError for what it did not
    write.
    """
    found: dict[int, Phase] = {}
    phase = Phase(0, {}, {}, [])
    for line in data.decode("ascii", "replace").splitlines():
        word, *words = line.split() or [""]
        try:
            if word == "phase":
                phase = found[int(words[0])] = Phase(int(words[1]), {}, {}, [])
            elif word == "base":
                phase.bases[int(words[0])] = int(words[1], 16)
            elif word == "ios":
                phase.moves[int(words[0])] = int(words[1])
            elif word == "line":
                moved, invalidated, shared, ios = map(int, words[2:6])
                phase.lines.append(
                    MovedLine(
                        int(words[0], 16), moved, invalidated, shared, ios, {}, []
                    )
                )
            elif word == "bytes":
                phase.lines[-1].touched[int(words[0])] = Touched(
                    int(words[1], 16), int(words[2], 16)
                )
            elif word == "place":
                pc, cpu, what, count = words
                phase.lines[-1].touchers.append(
                    Toucher(int(pc, 16), int(cpu), what == "w", int(count))
                )
            elif word == "self":
                if words[0] != words[1]:
                    raise ValueError(f"CPU {words[0]} is shown as {words[1]}")
            elif word != "going":
                raise ValueError(word)
        except (ValueError, IndexError) as error:
            raise MeasureError(
                f"not a line of the plugin: {line[:80]!r}", place=place
            ) from error
    return found


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
    """Allocations from the guest's script, by address; lines of another form, and pages for a slab, are left out."""
    allocations = []
    for line in lines:
        # A suffix of a symbol is the compiler's, such as `.part.0`.
        match = re.fullmatch(
            r"(page )?(?:0x)?([0-9a-f]{1,16}) (\d+) (\w+)(?:\.[\w.]*)?", line
        )
        if match and not match[1] and len(match[2]) == 16:
            allocations.append(Birth(int(match[2], 16), int(match[3]), match[4]))
        elif (
            match
            and match[1]
            and len(match[2]) <= 10
            and len(match[3]) <= 2
            and match[4] not in SLABS
        ):
            address = MAPPED + PAGE_BYTES * int(match[2], 16)
            allocations.append(
                Birth(address, PAGE_BYTES << int(match[3]), match[4], pages=True)
            )
    return sorted(allocations, key=lambda birth: birth.address)


class Named(msgspec.Struct, frozen=True):
    """What lies at an address."""

    name: str
    offset: int
    """Bytes from its beginning."""
    born: str = ""
    """The function that allocated it."""


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
        # Objects and pages each do not overlap.
        self._allocations = [
            [birth for birth in allocations if birth.pages == pages]
            for pages in (False, True)
        ]

    def function(self, pc: int) -> str:
        """Return the function that holds an instruction."""
        return self._code.name(pc)

    def data(self, address: int, bases: Mapping[int, int]) -> Named | None:
        """Return what lies at an address; None where nothing is known."""
        if address < USER_END:
            return Named(USER, 0)
        for allocations in self._allocations:
            index = (
                bisect.bisect_right(
                    allocations, address, key=lambda birth: birth.address
                )
                - 1
            )
            if (
                index >= 0
                and address < allocations[index].address + allocations[index].size
            ):
                birth = allocations[index]
                structs = STRUCTS_IN_PAGES if birth.pages else STRUCTS
                what = (
                    f"{birth.size >> 10} KiB" if birth.pages else f"{birth.size} bytes"
                )
                name = structs.get(birth.function, f"{what} of {birth.function}")
                return Named(name, address - birth.address, birth.function)
        for cpu, base in bases.items():
            relative = (address - base) % (1 << 64)
            if relative in self._own:
                name, offset = self._at(relative)
                if name:
                    return Named(f"CPU {cpu}'s {name}", offset)
                break
        name, offset = self._at(address)
        if name and self._addresses[-1] >= address >= KERNEL_IMAGE:
            return Named(name, offset)
        return Named("struct page", 0) if address in PAGES else None

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
    """Return a line with the names of what lies at each byte that a CPU touched, and of who touched it."""
    touched = 0
    for of_cpu in line.touched.values():
        touched |= of_cpu.read | of_cpu.written
    bytes_ = (line.address + byte for byte in range(LINE) if touched >> byte & 1)
    whole = [named for address in bytes_ if (named := names.data(address, phase.bases))]
    first = whole[0] if whole else Named("", 0)
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for toucher in line.touchers:
        counts[toucher.store][names.function(toucher.pc)] += toucher.count
    # Most frequent first.
    readers, writers = (
        sorted(by, key=lambda name: (-by[name], name))
        for by in (counts[False], counts[True])
    )
    return SharedLine(
        name=", ".join(dict.fromkeys(named.name for named in whole)),
        offset=first.offset,
        born=first.born,
        moved=line.moved / phase.ios,
        invalidated=line.invalidated / phase.ios,
        false_share=(line.moved - line.shared) / line.moved if line.moved else 0.0,
        ios=line.ios / phase.ios,
        readers=tuple(name for name in readers if name not in writers),
        writers=tuple(writers),
    )
