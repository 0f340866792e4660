"""Arrange folders without the names of a known tool: cells by workload, variants by differences in names or options."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

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
"""Options that name the cell, or do not affect the result; any other option may distinguish variants."""


def workload_name(work: Workload, sizes: str = "") -> str:
    """Return the known workload in words: ``randread 4k iodepth 32 4 jobs``; ``sizes`` stands for several block sizes."""
    jobs = work.numjobs or 1
    parts = [
        work.rw,
        _size(work.bs) if work.bs else sizes,
        f"iodepth {work.iodepth}" if work.iodepth is not None else "",
        plural(jobs, "job") if jobs > 1 else "",
    ]
    return " ".join(filter(None, parts))


def run_name(run: Run) -> str:
    """Return the workload of ``run`` in words, with an option such as ``bsrange=4k-64k`` for several block sizes."""
    return workload_name(
        run.workload, spelt(run, SIZES) if run.workload.bs is None else ""
    )


def split_name(path: str) -> tuple[str, int | None]:
    """Return a path without its extension and replicate number, and that number."""
    name = _ENDING.sub("", path)
    match = _REPLICATE.search(name)
    before = name[: match.start()].rstrip("/") if match else ""
    if match is None or not before:
        return name.rstrip("-_. "), None
    return before, int(match[1])


def is_number(name: str) -> bool:
    """Return whether ``name`` is only the number of a replicate: ``3``, ``run-3``."""
    return _REPLICATE.fullmatch(name) is not None


def entries(runs: Sequence[Run], paths: Sequence[str]) -> tuple[Entry, ...]:
    """The runs arranged by workload; ``paths`` are their files, relative to the given folder."""
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
    """``split_name`` of each path; a number is a replicate's only if close numbers follow the same name (``a-1``,
    ``a-2``, but not ``fio-2.17``, ``fio-2.21``)."""
    split = {path: split_name(path) for path in dict.fromkeys(paths)}
    numbers: dict[str, set[int]] = {}
    for name, number in split.values():
        numbers.setdefault(name, set()).update([] if number is None else [number])
    counted = {
        name
        for name, present in numbers.items()
        if len(present) > 1 and max(present) - min(present) < 2 * len(present)
    }
    return [
        split[path] if split[path][0] in counted else (_ENDING.sub("", path), None)
        for path in paths
    ]


def cell_names(runs: Sequence[Run]) -> list[str]:
    """Return names by workload, with the job's name if two jobs of one file have the same workload, and with the
    options in which runs of one name still differ."""
    workloads = list(map(run_name, runs))
    jobs: dict[tuple[str, str, float | None], set[str]] = {}
    for run, cell in zip(runs, workloads, strict=True):
        jobs.setdefault((run.place.file, cell, run.ended), set()).add(run.jobname)
    several = any(len(names) > 1 for names in jobs.values())
    cells: list[str] = []
    of_cell: dict[str, list[Run]] = {}
    for run, workload in zip(runs, workloads, strict=True):
        needs_job = several or not workload
        cell = (
            " ".join(filter(None, ((run.jobname if needs_job else ""), workload)))
            or "run"
        )
        cells.append(cell)
        of_cell.setdefault(cell, []).append(run)
    options = {
        cell: differing(group, names=CELL_OPTIONS) for cell, group in of_cell.items()
    }
    return [
        f"{cell} {spelt(run, options[cell])}".strip()
        for run, cell in zip(runs, cells, strict=True)
    ]


def apart(entries: Sequence[Entry], sides: Sequence[Hashable]) -> tuple[Entry, ...]:
    """``entries`` with separate cells for runs of one side whose options differ although their names are equal. Options
    may differ between the sides of a cell: these are compared."""
    groups: dict[tuple[str, str, Hashable], list[Run]] = {}
    for entry, side in zip(entries, sides, strict=True):
        groups.setdefault((entry.cell, entry.condition, side), []).append(entry.run)
    options: dict[tuple[str, str], dict[str, None]] = {}
    for (cell, condition, _), runs in groups.items():
        names = dict.fromkeys(differing(runs)) if len(runs) > 1 else {}
        options.setdefault((cell, condition), {}).update(names)
    distinguished: list[Entry] = []
    for entry in entries:
        differ_in = list(options[entry.cell, entry.condition])
        words = spelt(entry.run, differ_in)
        cell = f"{entry.cell} {words}".strip() if differ_in else entry.cell
        distinguished.append(msgspec.structs.replace(entry, cell=cell))
    return tuple(distinguished)


def _extra(options: Mapping[str, str], names: Sequence[str]) -> str:
    return " ".join(f"{name}={options[name]}" for name in names if options.get(name))


def _variants(
    runs: Sequence[Run], names: Sequence[str], cells: Sequence[str]
) -> list[str]:
    """Variants from parts of paths that the cell does not explain, else from options that differ."""
    # The parts of `names` that vary independently of the cells; empty without any.
    words = [re.split(r"[/_]", name_) for name_ in names]
    if len(set(map(len, words))) != 1:
        by_name = [] if _explained(names, cells) else list(names)
    else:
        # One column of words for each place in the names.
        columns = list(zip(*words, strict=True))
        varying = [column for column in columns if not _explained(column, cells)]
        by_name = list(map("_".join, zip(*varying, strict=True)))
    if by_name:
        return by_name
    given = set().union(*(run.options for run in runs))
    others = given - NO_VARIANT - set(CELL_OPTIONS)
    differing = [name for name in sorted(others) if _differs(runs, name)]
    # A name of its own for each cell (4k.json, 64k.json) is not a variant.
    is_of_cell = len(set(names)) > 1 and _explained(names, cells)
    variants: list[str] = []
    for run, name in zip(runs, names, strict=True):
        otherwise = "" if is_of_cell else name
        variants.append(_extra(run.options, differing) or otherwise)
    return variants


def _differs(runs: Sequence[Run], option: str) -> bool:
    return len({run.options.get(option) for run in runs}) > 1


def _explained(parts: Sequence[str], cells: Sequence[str]) -> bool:
    """Return whether the cell determines this part of the names: it has one value per cell."""
    if len(set(parts)) == 1:
        return True
    pairs = set(zip(cells, parts, strict=True))
    return len(pairs) == len(set(cells))


def _size(count: int) -> str:
    for power, unit in ((40, "t"), (30, "g"), (20, "m"), (10, "k")):
        if count >= 1 << power and count % (1 << power) == 0:
            return f"{count >> power}{unit}"
    return str(count)
