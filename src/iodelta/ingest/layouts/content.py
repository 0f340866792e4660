"""Folders that bear no known tool's names: cells from what the runs were asked to do, variants from what differs."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from iodelta.ingest.layouts.effective import CELL_OPTIONS, SIZES, differing, spelt
from iodelta.ingest.layouts.model import Entry
from iodelta.ingest.model import Run, Workload
from iodelta.plural import plural

_REPLICATE = re.compile(
    r"[-_. ]?(?:(?:run|sample|iter(?:ation)?|rep(?:licate)?|try|loop)[-_. ]?)?(?<!\d)(\d{1,4})$",
    re.IGNORECASE,
)
_ENDING = re.compile(
    r"(?:\.(?:json|txt|log|out|fio|terse|csv|md|gz|xz|zst|bz2))+$", re.IGNORECASE
)

NO_VARIANT = frozenset(
    "name rw readwrite bs blocksize iodepth numjobs output output-format filename directory write_bw_log write_lat_log "
    "write_iops_log write_hist_log runtime ramp_time randseed description log_avg_msec log_hist_msec".split()
)
"""Options that name the cell, or differ for no reason that bears on the result; any other may be the variant."""


def workload_name(work: Workload, sizes: str = "") -> str:
    """``randread 4k iodepth 32 4 jobs``: what a run was asked to do, as far as it is known; ``sizes`` are those of its
    blocks where they have several."""
    parts = [
        work.rw or "",
        _size(work.bs) if work.bs else sizes,
        f"iodepth {work.iodepth}" if work.iodepth is not None else "",
        plural(work.numjobs, "job") if work.numjobs and work.numjobs > 1 else "",
    ]
    return " ".join(part for part in parts if part)


def run_name(run: Run) -> str:
    """What ``run`` was asked to do; with ``bsrange=4k-64k`` or the like where its blocks have several sizes."""
    return workload_name(
        run.workload, spelt(run, SIZES) if run.workload.bs is None else ""
    )


def split_name(path: str) -> tuple[str, int | None]:
    """A path without its ending and without the number of the replicate, and that number."""
    name = _ENDING.sub("", path)
    match = _REPLICATE.search(name)
    before = name[: match.start()].rstrip("/") if match else ""
    if match is None or not before:
        return name.rstrip("-_. "), None
    return before, int(match[1])


def is_number(name: str) -> bool:
    """Whether ``name`` says only the how-manieth replicate it is: ``3``, ``run-3``."""
    return _REPLICATE.fullmatch(name) is not None


def entries(runs: Sequence[Run], paths: Sequence[str]) -> tuple[Entry, ...]:
    """The runs by what they were asked to do; ``paths`` are their files, relative to the folder given."""
    cells = cell_names(runs)
    named = _numbered_names(paths)
    variants = _variants(runs, [name for name, _ in named], cells)
    arranged = [
        Entry(run, cell, variant, replicate=number if number is not None else 0)
        for run, cell, variant, (_, number) in zip(
            runs, cells, variants, named, strict=True
        )
    ]
    return apart(arranged, variants)


def _numbered_names(paths: Sequence[str]) -> list[tuple[str, int | None]]:
    """``split_name`` of each; a number is that of a replicate only where others near it have the same name before it
    (``a-1``, ``a-2``, but not ``fio-2.17``, ``fio-2.21``)."""
    split = {path: split_name(path) for path in dict.fromkeys(paths)}
    numbers: dict[str, set[int | None]] = {}
    for name, number in split.values():
        numbers.setdefault(name, set()).add(number)
    counted = {name for name, of_name in numbers.items() if _dense(of_name - {None})}
    return [
        split[path] if split[path][0] in counted else (_ENDING.sub("", path), None)
        for path in paths
    ]


def _dense(numbers: AbstractSet[int | None]) -> bool:
    present = [number for number in numbers if number is not None]
    return len(present) > 1 and max(present) - min(present) < 2 * len(present)


def cell_names(runs: Sequence[Run]) -> list[str]:
    """By workload, with the job's name where two jobs of one file would be the same cell, and with the options in which
    runs of the same workload still differ."""
    plain = [run_name(run) for run in runs]
    jobs: dict[tuple[str, str, float | None], set[str]] = {}
    for run, cell in zip(runs, plain, strict=True):
        jobs.setdefault((run.place.file, cell, run.ended), set()).add(run.jobname)
    several = any(len(names) > 1 for names in jobs.values())
    plain = [
        _with_job(cell, run.jobname if several or not cell else "")
        for run, cell in zip(runs, plain, strict=True)
    ]
    of_cell: dict[str, list[Run]] = {}
    for run, cell in zip(runs, plain, strict=True):
        of_cell.setdefault(cell, []).append(run)
    options = {
        cell: differing(own, names=CELL_OPTIONS) for cell, own in of_cell.items()
    }
    return [
        f"{cell} {spelt(run, options[cell])}".strip()
        for run, cell in zip(runs, plain, strict=True)
    ]


def _with_job(cell: str, jobname: str) -> str:
    return " ".join(filter(None, (jobname, cell))) or "run"


def apart(entries: Sequence[Entry], sides: Sequence[Hashable]) -> tuple[Entry, ...]:
    """``entries`` with cells of their own for runs of one side that differ in what they were asked to do, though names
    say the same. Sides of one cell may differ: that is what is compared."""
    groups: dict[tuple[str, str, Hashable], list[Run]] = {}
    for entry, side in zip(entries, sides, strict=True):
        groups.setdefault((entry.cell, entry.condition, side), []).append(entry.run)
    options: dict[tuple[str, str], dict[str, None]] = {}
    for (cell, condition, _), runs in groups.items():
        if len(runs) > 1:
            options.setdefault((cell, condition), {}).update(
                dict.fromkeys(differing(runs))
            )
    told_apart: list[Entry] = []
    for entry in entries:
        names = list(options.get((entry.cell, entry.condition), ()))
        cell = (
            f"{entry.cell} {spelt(entry.run, names)}".strip() if names else entry.cell
        )
        told_apart.append(msgspec.structs.replace(entry, cell=cell))
    return tuple(told_apart)


def _extra(options: Mapping[str, str], names: Sequence[str]) -> str:
    return " ".join(f"{name}={options[name]}" for name in names if options.get(name))


def _variants(
    runs: Sequence[Run], names: Sequence[str], cells: Sequence[str]
) -> list[str]:
    """From folders and file names what the cell does not explain; else from options that differ."""
    words = [re.split(r"[/_]", name) for name in names]
    if len(set(map(len, words))) == 1:
        # One column of words for each place in the names.
        columns = [
            column
            for column in zip(*words, strict=True)
            if not _explained(column, cells)
        ]
        varying = [column for column in columns if len(set(column)) > 1]
        if varying:
            return ["_".join(parts) for parts in zip(*varying, strict=True)]
    elif not _explained(names, cells):
        return list(names)
    options = (
        set().union(*(run.options for run in runs)) - NO_VARIANT - set(CELL_OPTIONS)
    )
    differing = [name for name in sorted(options) if _differs(runs, name)]
    # A name of its own for each cell (4k.json, 64k.json) is not a variant.
    if len(set(names)) > 1 and _explained(names, cells):
        names = [""] * len(runs)
    return [
        _extra(run.options, differing) or name
        for run, name in zip(runs, names, strict=True)
    ]


def _differs(runs: Sequence[Run], option: str) -> bool:
    return len({run.options.get(option) for run in runs}) > 1


def _explained(parts: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether a part of the names follows from the cell: one value for each cell, several in all."""
    if len(set(parts)) == 1:
        return True
    found: dict[str, set[str]] = {}
    for part, cell in zip(parts, cells, strict=True):
        found.setdefault(cell, set()).add(part)
    return all(len(values) == 1 for values in found.values())


def _size(count: int) -> str:
    for power, unit in ((40, "t"), (30, "g"), (20, "m"), (10, "k")):
        if count >= 1 << power and count % (1 << power) == 0:
            return f"{count >> power}{unit}"
    return str(count)
