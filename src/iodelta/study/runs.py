"""Runs from anywhere as rows: what ``iodelta show`` prints, and what its JSON and CSV hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile
from types import MappingProxyType

import msgspec

from iodelta.audit import Audit
from iodelta.audit.numbers import latency
from iodelta.audit.tables import cell, variant
from iodelta.experiment.order import place_of
from iodelta.grouping import grouped
from iodelta.ingest import Run
from iodelta.ingest.layouts import Entry, Layout
from iodelta.ingest.layouts.content import run_name
from iodelta.ingest.layouts.effective import spelt
from iodelta.study.devices import served
from iodelta.study.rows import (
    OWN,
    SEVERITIES,
    Number,
    OfCommand,
    Point,
    Row,
    Shown,
    number,
    percentiles_of,
    points,
    relative_spread,
)
from iodelta.trial import Direction

MANY = 40
"""More rows than this are shown as one per variant of a cell."""

MANY_NAMES = 2000
"""From this number of runs on, every name includes its job."""

Rules = dict[int, tuple[tuple[str, str], ...]]
"""Number of a run -> its findings: rule and severity."""


def shown(
    layout: Layout,
    audit: Audit,
    *,
    each: bool = False,
    paths: Sequence[str] = (),
    systems: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType({}),
) -> Shown:
    """Return the rows of ``layout``; ``audit`` is that of its runs, in the same order. More than 40 rows are shown as
    medians of each cell and variant unless ``each``."""
    rules = _rules(audit)
    runs = [entry.run for entry in layout.entries]
    if not each and _collapses(layout, runs):
        rows = _medians(layout.entries, rules)
    else:
        rows = _each(layout.entries, rules)
    place = place_of(dict.fromkeys(row.group for row in rows))
    findings = (
        *audit.findings(),
        *chain.from_iterable(run.findings for run in runs),
        *layout.findings,
    )
    return Shown(
        schema="iodelta.show/1",
        rows=tuple(sorted(rows, key=lambda row: place(row.group))),
        findings=findings,
        refusals=layout.refusals,
        runs=len(runs),
        files=len({run.place.file for run in runs}),
        paths=tuple(paths),
        devices=served(layout.device_stats),
        systems=dict(systems),
    )


def _collapses(layout: Layout, runs: Sequence[Run]) -> bool:
    """Return whether medians are shown: of many rows, and of fio's trials in a folder of iodelta."""
    # Rows of a table stay as they were posted.
    rows = sum(len(run.directions) or 1 for run in runs if run.format != "table")
    if rows > MANY:
        return True
    of_command = any(run.measured for run in runs)
    return layout.kind == OWN and not of_command


def _each(entries: Sequence[Entry], rules: Rules) -> list[Row]:
    """Return the rows of every run by itself."""
    rows: list[Row] = []
    for index, name in enumerate(_names(entries)):
        rows += _rows(entries[index].run, name, rules.get(index, ()))
    return rows


def _rules(audit: Audit) -> Rules:
    """Return the findings of each run, each once: of the rules first, then of the reader."""
    rules: defaultdict[int, dict[tuple[str, str], None]] = defaultdict(dict)
    for hit in audit.hits:
        for index in hit.runs:
            rules[index][hit.finding.rule, hit.finding.severity] = None
    for index, run in enumerate(audit.runs):
        for finding in run.findings:
            rules[index][finding.rule, finding.severity] = None
    return {index: tuple(of_run) for index, of_run in rules.items()}


def _names(entries: Sequence[Entry]) -> list[str]:
    """Return a name for each run: its file below the folder that all share, its job if the file holds several runs, or
    the variant of a table's row."""
    files = [entry.run.place.file for entry in entries]
    common = shared_folder(files)
    one_file = len(set(files)) == 1
    # The files that hold several runs; of very many runs all files, so that every name has its job.
    counts = Counter(files)
    if len(files) >= MANY_NAMES:
        with_several = set(counts)
    else:
        with_several = {file for file, count in counts.items() if count > 1}
    names = []
    for entry in entries:
        run, file = entry.run, entry.run.place.file
        short = file.removeprefix(common)
        if run.format == "table":
            name = variant(run) or f"line {run.place.line}"
        elif run.measured:
            name = f"{entry.variant} {short}"
        elif one_file:
            name = run.jobname or run.host or short
        elif file in with_several:
            name = " ".join(filter(None, (short, run.jobname)))
        else:
            name = short
        names.append(name)
    return names


def shared_folder(files: Iterable[str]) -> str:
    """Return the folder that all files lie in, with its slash; empty when there is none."""
    folders = [f"{file.rpartition('/')[0]}/" for file in files]
    if not folders or "/" in folders:
        return ""
    # In order, those between begin as the first and the last do.
    first = min(folders).split("/")[:-1]
    last = max(folders).split("/")[:-1]
    same = takewhile(lambda names: names[0] == names[1], zip(first, last, strict=False))
    return "".join(f"{name}/" for name, _ in same)


def _rows(run: Run, name: str, rules: tuple[tuple[str, str], ...]) -> list[Row]:
    """Return one row for each direction and for syncs; one without numbers where a run has neither."""
    base = _base(run, name, rules)
    if run.measured:
        numbers = {
            what: OfCommand(
                value=value.quantity.value,
                low=value.quantity.low,
                high=value.quantity.high,
                unit=value.quantity.unit,
            )
            for what, value in run.measured.items()
        }
        return [msgspec.structs.replace(base, measured=numbers)]
    rows = [_row(base, direction) for direction in run.directions]
    if run.sync is not None:
        rows.append(
            msgspec.structs.replace(
                base,
                kind="sync",
                mean=number(run.sync.mean),
                points=points(run.sync),
                latency="sync",
            )
        )
    return rows or [base]


def _base(run: Run, name: str, rules: tuple[tuple[str, str], ...]) -> Row:
    """Return what all rows of a run have in common."""
    on_another_host = run.host and run.host not in name
    severities = [severity for _, severity in rules]
    return Row(
        group=group_of(run),
        name=f"{name} @{run.host}" if on_another_host else name,
        rw=run.workload.rw,
        bs=run.workload.bs,
        iodepth=run.workload.iodepth,
        jobs=run.jobs or run.workload.numjobs,
        ioengine=run.workload.ioengine,
        direct=run.workload.direct,
        fio_version=run.fio_version,
        format=run.format,
        file=run.place.file,
        line=run.place.line,
        error=run.error,
        rules=tuple(rule for rule, _ in rules),
        severity=min(severities, key=SEVERITIES.index, default=""),
    )


def _row(base: Row, direction: Direction) -> Row:
    total = latency(direction)
    family = ""
    if total is not None:
        family = "lat" if total is direction.lat else "clat"
    return msgspec.structs.replace(
        base,
        kind=direction.kind,
        iops=number(direction.iops),
        bandwidth=number(direction.bandwidth),
        mean=number(total.mean) if total else None,
        points=points(percentiles_of(direction)),
        latency=family,
        short=direction.short,
        dropped=direction.dropped,
    )


def group_of(run: Run) -> str:
    """Return what the rows of one group share: workload, engine and version; or the table and its cell."""
    if run.format == "table":
        return ": ".join(filter(None, (run.table, ", ".join(cell(run))))) or "table"
    work = run.workload
    direct = {True: "direct", False: "buffered", None: ""}[work.direct]
    # How many jobs a run had, where its workload does not say it already.
    of_workload = run.workload.numjobs or 1
    of_run = run.jobs or 1
    parts = (
        run_name(run) or run.jobname,
        (f"{of_run} jobs" if of_workload <= 1 and of_run != 1 else ""),
        work.ioengine or "",
        direct,
        spelt(run, ("fsync", "fdatasync", "sync")),
        _tool(run),
    )
    return ", ".join(filter(None, parts))


def _tool(run: Run) -> str:
    if run.fio_version:
        return f"fio {run.fio_version}"
    return "t/io_uring" if run.format == "io_uring" else ""


def _medians(entries: Sequence[Entry], rules: Rules) -> list[Row]:
    """Return one row per direction, variant and cell."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for index, entry in enumerate(entries):
        # The cell, then what else its runs have in common. What both say is said once.
        title = run_name(entry.run) or entry.run.jobname
        cell, rest = entry.cell, group_of(entry.run)
        if cell.startswith(title) or cell.endswith(f" {title}"):
            rest = rest.removeprefix(title).lstrip(", ")
        elif _in_order(cell.split(), title.split()):
            cell = ""
        group = ", ".join(filter(None, (cell, entry.condition, rest)))
        for row in _rows(entry.run, "", rules.get(index, ())):
            key = (entry.cell, group, entry.variant, row.kind)
            groups.setdefault(key, []).append(row)
    return [_median(group, name, rows) for (_, group, name, _), rows in groups.items()]


def _in_order(words: Sequence[str], text: Sequence[str]) -> bool:
    """Return whether ``text`` has all ``words`` in this order."""
    rest = iter(text)
    return all(word in rest for word in words)


def _median(group: str, name: str, rows: Sequence[Row]) -> Row:
    """Return the medians of rows of one cell, variant and direction; what went wrong in any of them."""
    first = msgspec.structs.replace(rows[0], group=group, name=name or rows[0].name)
    if len(rows) == 1:
        return first
    rules = chain.from_iterable(row.rules for row in rows)
    # The median of each percentile that a row has.
    points = chain.from_iterable(row.points for row in rows)
    by_percent = grouped(points, lambda point: point.percent)
    return msgspec.structs.replace(
        first,
        runs=len(rows),
        spread=relative_spread([row.iops for row in rows if row.iops]),
        iops=_middle([row.iops for row in rows]),
        bandwidth=_middle([row.bandwidth for row in rows]),
        mean=_middle([row.mean for row in rows]),
        measured=_middle_measured(rows),
        points=tuple(map(_middle_point, by_percent.values())),
        error=max(row.error for row in rows),
        short=sum(row.short for row in rows),
        dropped=sum(row.dropped for row in rows),
        rules=tuple(dict.fromkeys(rules)),
        severity=min((row.severity for row in rows), key=SEVERITIES.index),
    )


def _middle_measured(rows: Sequence[Row]) -> dict[str, OfCommand]:
    """Return the median of each number of a command, over the runs that have it."""
    names = dict.fromkeys(chain.from_iterable(row.measured for row in rows))
    medians = {}
    for name in names:
        of_runs = list(filter(None, (row.measured.get(name) for row in rows)))
        medians[name] = OfCommand(*_ends(of_runs), of_runs[0].unit)
    return medians


def _median_of(values: Iterable[float]) -> float:
    # Slow to import: it needs fractions and random numbers.
    from statistics import median

    return median(values)


def _middle(numbers: Iterable[Number | None]) -> Number | None:
    known = list(filter(None, numbers))
    if not known:
        return None
    return Number(*_ends(known))


def _middle_point(of_runs: Sequence[Point]) -> Point:
    counts = [point.beyond for point in of_runs if point.beyond is not None]
    return Point(of_runs[0].percent, *_ends(of_runs), min(counts, default=None))


def _ends(
    numbers: Sequence[Number] | Sequence[OfCommand] | Sequence[Point],
) -> tuple[float, float, float]:
    """Return the medians of values, of lower and of upper ends."""
    return (
        _median_of(number.value for number in numbers),
        _median_of(number.low for number in numbers),
        _median_of(number.high for number in numbers),
    )
