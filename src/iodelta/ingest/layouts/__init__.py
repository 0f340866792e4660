"""Arrange a folder as an experiment: the cell, variant and order of each run."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import BinaryIO

import msgspec

from iodelta.ingest.layouts import content, naming
from iodelta.ingest.layouts.fsperf import is_database, read_database
from iodelta.ingest.layouts.model import Entry, Layout, Spot
from iodelta.ingest.layouts.order import Ordered, order_finding, order_of
from iodelta.ingest.layouts.parts import clones, logs_joined, together
from iodelta.ingest.merge import over_files
from iodelta.ingest.model import Imported, Refusal
from iodelta.ingest.reading import read
from iodelta.trial import Place

__all__ = [
    "Entry",
    "Layout",
    "Ordered",
    "arrange",
    "order_finding",
    "order_of",
    "read_layout",
]


def read_layout(
    path: str | os.PathLike[str],
    *,
    stdin: BinaryIO | None = None,
    pattern: str | None = None,
) -> Layout:
    """Read ``path`` (a file, folder, archive, fsperf database, or ``-``) as an experiment.

    Raises RequestError for a path that does not exist or a pattern that cannot be read.
    """
    if str(path) != "-" and is_database(Path(path)):
        return read_database(Path(path))
    return arrange(read([path], stdin=stdin), path, pattern=pattern)


def arrange(
    imported: Imported, root: str | os.PathLike[str], *, pattern: str | None = None
) -> Layout:
    """The runs in ``imported`` by cell and variant: by ``pattern``, else by the names of a known tool, else by their
    workloads.

    ``root`` is the path that was read; only names below it count. fio's logs are omitted if there are reports of the
    same runs; otherwise the logs of one job are one run. Tables in other files than the reports are omitted too.
    """
    imported = _without_tables(imported)
    reports = [run for run in imported.runs if run.format not in ("log", "hist-log")]
    # The runs without members of an archive that is also unpacked next to it.
    runs_ = reports or logs_joined(imported.runs)
    files = {run_.place.file for run_ in runs_}
    runs = clones(
        over_files([run_ for run_ in runs_ if not _is_unpacked(run_.place.file, files)])
    )
    logs = tuple(run for run in imported.runs if run.lines)
    paths = [_below(run.place.file, root) for run in runs]
    entries = content.entries(runs, paths)
    named = naming.pattern(pattern) if pattern else naming.recognised(paths)
    kind = "content"
    if named is not None:
        kind = named.kind
        # The entries whose names show cell and variant, arranged by these.
        pairs = zip(entries, list(map(named.spot, paths)), strict=True)
        rows = [(entry, spot) for entry, spot in pairs if spot is not None]
        # Only the best of several copies of one file.
        ranks: dict[Hashable, int] = {}
        for _, spot_ in rows:
            ranks[_file(spot_)] = max(spot_.rank, ranks.get(_file(spot_), 0))
        whole = _whole(
            [
                (entry_, spot_)
                for entry_, spot_ in rows
                if spot_.rank == ranks[_file(spot_)]
            ]
        )
        variants = [spot.variant for _, spot in whole]
        apart = content.apart([entry for entry, _ in whole], variants)
        entries = _numbered(zip(apart, (spot for _, spot in whole), strict=True))
    return Layout(kind, entries, imported.device_stats, imported.refusals, logs=logs)


def _without_tables(imported: Imported) -> Imported:
    """Omit tables from files without reports or logs if other files have these: three lines in a file of notes are not
    a side of a comparison. A refusal names each omitted file."""
    reports = {run.place.file for run in imported.runs if run.format != "table"}
    files = dict.fromkeys(run.place.file for run in imported.runs)
    ignored = [file for file in files if file not in reports]
    if not reports or not ignored:
        return imported
    words = "its table is ignored, because other files here contain fio's results: name this file to read it"
    return msgspec.structs.replace(
        imported,
        runs=tuple(run for run in imported.runs if run.place.file in reports),
        refusals=(
            *imported.refusals,
            *(Refusal(Place(file), words) for file in ignored),
        ),
    )


_ARCHIVE = re.compile(r"\.(?:tar(?:\.\w{2,3})?|t[gxb]z|zip)!(?:\./)?")

Row = tuple[Entry, Spot]


def _file(spot: Spot) -> Hashable:
    return (spot.variant, spot.cell, spot.condition, spot.replicate, spot.part)


def _whole(rows: Sequence[Row]) -> list[Row]:
    """Merge parts of one run (volumes, clients), and add the job to the cell's name if a file contains several."""
    jobs: dict[Hashable, set[str]] = {}
    groups: dict[Hashable, list[Row]] = {}
    for number, (entry, spot) in enumerate(rows):
        jobs.setdefault(_file(spot), set()).add(entry.run.jobname)
        run_of = (spot.variant, spot.cell, spot.condition, spot.replicate)
        groups.setdefault(run_of if spot.part else number, []).append((entry, spot))
    whole: list[Row] = []
    for group in groups.values():
        entry, spot = group[0]
        several = not spot.part and len(jobs[_file(spot)]) > 1
        job = entry.run.jobname if several else ""
        cell = " ".join(filter(None, (spot.cell or entry.cell, job)))
        run = together([part.run for part, _ in group])
        whole.append((Entry(run, cell, spot.variant, spot.condition), spot))
    return whole


def _numbered(rows: Iterable[Row]) -> tuple[Entry, ...]:
    """Return the entries with replicate numbers, from names or by counting."""
    counts: dict[Hashable, int] = {}
    numbered = []
    for entry, spot in rows:
        key = (entry.cell, entry.variant, entry.condition)
        counts[key] = counts.get(key, -1) + 1
        number = spot.replicate if spot.replicate is not None else counts[key]
        numbered.append(msgspec.structs.replace(entry, replicate=number))
    return tuple(numbered)


def _is_unpacked(file: str, files: AbstractSet[str]) -> bool:
    """Return whether a member of an archive is also one of the ``files``."""
    path = _ARCHIVE.sub("/", file)
    return path != file and path in files


def _below(file: str, root: str | os.PathLike[str]) -> str:
    """Return the path of a file relative to ``root``, with archives as folders; the name if ``root`` is the file
    itself.
    """
    path = re.sub("!(?:\\./)?", "/", file)
    top = str(Path(root))
    if path == top:
        return os.path.basename(path)
    if path.startswith((f"{top}/", f"{top}!")) or top == ".":
        return path.removeprefix(top).lstrip("/")
    return path
