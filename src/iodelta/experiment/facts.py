"""What makes a measurement another one than asked, known before it runs: one table for plan, audit and web form.

Each rule looks at fio's options as one trial gets them, at the target, or at the design, and yields facts. A fact that
is ``refused`` ends the request; any other is said in the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from iodelta.experiment.model import Experiment, Option
from iodelta.experiment.values import size_bytes
from iodelta.jobfile import canonical

SYNCHRONOUS = frozenset(
    "sync psync vsync pvsync pvsync2 mmap falloc null splice ftruncate filecreate filestat filedelete filerename".split()
)
"""Engines that do one I/O at a time at any iodepth (FIO_SYNCIO in fio's engines/; null completes at once)."""

DEFAULT_ENGINE = "psync"
"""fio's default on Linux."""


class Fact(msgspec.Struct, frozen=True):
    """One thing that the plan knows. Options of fio stand in braces: ``{iodepth=1}``."""

    rule: str
    option: str
    """The option that says otherwise."""
    what: str
    remedy: str
    refused: bool = True


def spelled(text: str, *, as_options: bool) -> str:
    """Return the text with ``{iodepth=1}`` as a word of a command line, or as a line of an experiment file."""
    form = r"--\1=\2" if as_options else r'\1 = "\2"'
    return re.sub(r"\{(\w+)=([^}]*)\}", form, text)


def given(*options: Option) -> dict[str, str]:
    """Options by fio's first names; a flag without a value is "1", and of several the last one counts."""
    return {canonical(name): "1" if value is None else value for name, value in options}


def number(text: str | None, default: int) -> int:
    """Return an option's number; ``default`` where it is not given or not a number."""
    return int(text) if text and text.isdigit() else default


def block_sizes(options: Mapping[str, str]) -> tuple[int, ...]:
    """Return every block size in bytes that the options name; empty where they name one that fio alone understands."""
    text = options.get("bssplit") or options.get("bsrange") or options.get("bs") or "4k"
    words = [re.sub(r"/\d*$", "", word) for word in re.split(r"[,:-]", text)]
    try:
        return tuple(size_bytes(word) for word in words if word)
    except ValueError:
        return ()


def is_direct(options: Mapping[str, str]) -> bool:
    """Return whether the page cache is left out."""
    return options.get("direct", "0") == "1" or options.get("buffered") == "0"


def of_workload(options: Mapping[str, str]) -> Iterator[Fact]:
    """Facts about the fio options of one trial, by their first names."""
    depth, engine = (
        number(options.get("iodepth"), 1),
        options.get("ioengine", DEFAULT_ENGINE),
    )
    default = "" if "ioengine" in options else ", fio's default,"
    if depth > 1 and engine in SYNCHRONOUS:
        yield Fact(
            "depth.synchronous",
            "iodepth",
            f"iodepth={depth} would measure depth 1: ioengine={engine}{default} does one I/O at a time",
            "add {ioengine=libaio} or {ioengine=io_uring}, or ask for {iodepth=1}",
        )
    elif depth > 1 and engine == "libaio" and not is_direct(options):
        yield Fact(
            "depth.buffered",
            "iodepth",
            f"libaio without direct=1 waits for each I/O, so iodepth={depth} will measure about depth 1",
            "add {direct=1}, or use {ioengine=io_uring}",
            refused=False,
        )
    sizes = block_sizes(options)
    if sizes and 0 in sizes:
        yield Fact(
            "block.empty",
            "bs",
            "a block of 0 bytes reads and writes nothing",
            "use {bs=4k}",
        )
    if "size" in options and re.fullmatch(r"0+[kmgt]?", options["size"].lower()):
        yield Fact(
            "target.empty",
            "size",
            "size is 0, so there is nothing to measure",
            "use {size=1g}",
        )


def of_target(
    options: Mapping[str, str], sector: int, used: int, memory: int
) -> Iterator[Fact]:
    """Facts about a trial's options on its target: its sector, the bytes used of it, and the machine's memory.

    Each in bytes; 0 where it is not known.
    """
    sizes = block_sizes(options)
    if sizes and sector and is_direct(options):
        odd = next((size for size in sizes if size % sector), 0)
        if odd:
            yield Fact(
                "block.sector",
                "bs",
                f"direct I/O of {odd} bytes is impossible: the sector of the target has {sector} bytes",
                f"use {{bs={sector}}} or a multiple of it, or {{direct=0}} to go through the page cache",
            )
    if sizes and used and max(sizes) > used:
        yield Fact(
            "block.too-large",
            "bs",
            f"a block of {max(sizes)} bytes does not fit into {used} bytes",
            "use a smaller {bs=4k} or a larger --size",
        )
    cached = options.get("ioengine") != "mmap" and not is_direct(options)
    if cached and options.get("rw", "read").partition(":")[0] in (
        "read",
        "randread",
        "rw",
        "readwrite",
        "randrw",
    ):
        where = "the page cache may serve these reads"
        if used and memory and used <= memory:
            where = f"the target ({used >> 20} MiB) fits into memory ({memory >> 30} GiB), so the page cache serves reads"
        yield Fact(
            "plan.page-cache",
            "direct",
            f"direct=1 is not set: {where}",
            "add {direct=1} to measure the device",
            refused=False,
        )


def same_settings(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Pairs of variants between which no setting differs; the placebo is meant to be the same."""
    seen: dict[object, str] = {}
    for variant in experiment.variants:
        if variant.role or (experiment.design.placebo and variant.name == "placebo"):
            continue
        cells = [
            tuple(sorted(given(*cell.options, *variant.options).items()))
            for cell in experiment.cells
        ]
        key = (tuple(sorted(variant.knobs.items())), tuple(cells))
        if key in seen:
            yield seen[key], variant.name
        seen.setdefault(key, variant.name)


def each_trial(experiment: Experiment) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Cell, variant and fio options of every kind of trial whose load fio makes."""
    for cell in experiment.cells:
        if cell.command is None and not cell.option("tool"):
            for variant in experiment.variants:
                yield cell.name, variant.name, given(*cell.options, *variant.options)
