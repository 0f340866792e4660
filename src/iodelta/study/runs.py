"""Runs from anywhere as rows: what ``iodelta show`` prints, and what its JSON and CSV hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

import msgspec

from iodelta.audit import Audit
from iodelta.audit.numbers import latency
from iodelta.audit.tables import cell, variant
from iodelta.experiment.order import place_of
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
    points,
)
from iodelta.trial import Direction, Latency, Quantity

MANY = 40
"""More rows than this are shown as one per variant of a cell."""


def shown(
    layout: Layout,
    audit: Audit,
    *,
    each: bool = False,
    paths: Sequence[str] = (),
    systems: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType({}),
) -> Shown:
    """The rows of ``layout``; ``audit`` is that of its runs, in order. More than 40 rows are shown as medians of each
    cell and variant unless ``each``."""
    rules = _rules(audit)
    runs = [entry.run for entry in layout.entries]
    collapsible = sum(len(run.directions) or 1 for run in runs if run.format != "table")
    of_fio = not any(run.measured for run in runs)
    if (collapsible > MANY or (layout.kind == OWN and of_fio)) and not each:
        rows = _medians(layout.entries, rules)
    else:
        named = enumerate(zip(runs, _names(layout.entries), strict=True))
        rows = list(
            chain.from_iterable(
                _rows(run, name, rules.get(index, ())) for index, (run, name) in named
            )
        )
    groups = dict.fromkeys(row.group for row in rows)
    place = place_of(groups)
    findings = (
        *audit.findings(),
        *chain.from_iterable(run.findings for run in runs),
        *layout.findings,
    )
    return Shown(
        "iodelta.show/1",
        tuple(sorted(rows, key=lambda row: place(row.group))),
        findings,
        layout.refusals,
        len(runs),
        len({run.place.file for run in runs}),
        tuple(paths),
        served(layout.device_stats),
        dict(systems),
    )


def _rules(audit: Audit) -> dict[int, tuple[tuple[str, str], ...]]:
    """The findings of each run: (rule, severity). One about very many runs at once is not pinned on each."""
    rules: dict[int, list[tuple[str, str]]] = {}
    for hit in audit.hits:
        for index in hit.runs:
            rules.setdefault(index, []).append((hit.finding.rule, hit.finding.severity))
    for index, run in enumerate(audit.runs):
        for finding in run.findings:
            rules.setdefault(index, []).append((finding.rule, finding.severity))
    return {index: tuple(dict.fromkeys(own)) for index, own in rules.items()}


def _names(entries: Sequence[Entry]) -> list[str]:
    """What tells the runs apart: the file below the folder all share, the job where a file holds several, the variant
    of a table's row."""
    files = [entry.run.place.file for entry in entries]
    common = shared_folder(files)
    several = (
        {file for file in files if files.count(file) > 1}
        if len(files) < 2000
        else set(files)
    )
    titles = []
    for entry in entries:
        run, file = entry.run, entry.run.place.file
        short = file.removeprefix(common)
        if run.format == "table":
            titles.append(variant(run) or f"line {run.place.line}")
        elif run.measured:
            titles.append(f"{entry.variant} {short}")
        elif len(set(files)) == 1:
            titles.append(run.jobname or run.host or short)
        else:
            titles.append(
                " ".join(
                    part
                    for part in (short, run.jobname if file in several else "")
                    if part
                )
            )
    return titles


def shared_folder(files: Iterable[str]) -> str:
    """The folder that all files lie in, with its slash; empty when there is none."""
    folders = [f"{file.rpartition('/')[0]}/" for file in files]
    first, last = (min(folders), max(folders)) if folders else ("", "")
    same = next(
        (at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b),
        min(len(first), len(last)),
    )
    if first == "/":
        return ""
    return first[: first.rfind("/", 0, same) + 1]


def _rows(run: Run, name: str, rules: tuple[tuple[str, str], ...]) -> list[Row]:
    base = Row(
        group=group_of(run),
        name=f"{name} @{run.host}" if run.host and run.host not in name else name,
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
        severity=min(
            (severity for _, severity in rules), key=SEVERITIES.index, default=""
        ),
    )
    if run.measured:
        read = {name: _of_command(one.quantity) for name, one in run.measured.items()}
        return [msgspec.structs.replace(base, measured=read)]
    rows = [_row(base, direction) for direction in run.directions]
    if run.sync is not None:
        mean, percentiles = number(run.sync.mean), points(run.sync)
        rows.append(
            msgspec.structs.replace(
                base, kind="sync", mean=mean, points=percentiles, latency="sync"
            )
        )
    return rows or [base]


def _of_command(value: Quantity) -> OfCommand:
    return OfCommand(value.value, value.low, value.high, value.unit)


def _row(base: Row, direction: Direction) -> Row:
    latency_here = latency(direction)
    return msgspec.structs.replace(
        base,
        kind=direction.kind,
        iops=number(direction.iops),
        bandwidth=number(direction.bandwidth),
        mean=number(latency_here.mean) if latency_here else None,
        points=points(_pointed(direction)),
        latency=""
        if latency_here is None
        else "lat"
        if latency_here is direction.lat
        else "clat",
        short=direction.short,
        dropped=direction.dropped,
    )


def _pointed(direction: Direction) -> Latency | None:
    """The latency that has percentiles: fio gives those of clat unless asked otherwise."""
    own = (direction.lat, direction.clat)
    return next(
        (
            one
            for one in own
            if one is not None and (one.percentiles or one.histogram is not None)
        ),
        None,
    )


def group_of(run: Run) -> str:
    """What rows have in common that stand together: workload, engine, version; or the table and its cell."""
    if run.format == "table":
        return (
            ": ".join(part for part in (run.table, ", ".join(cell(run))) if part)
            or "table"
        )
    work = run.workload
    direct = {True: "direct", False: "buffered", None: ""}[work.direct]
    tool = (
        f"fio {run.fio_version}"
        if run.fio_version
        else "t/io_uring"
        if run.format == "io_uring"
        else ""
    )
    jobs = "" if (work.numjobs or 1) > 1 or (run.jobs or 1) == 1 else f"{run.jobs} jobs"
    synced = spelt(run, ("fsync", "fdatasync", "sync"))
    parts = (
        run_name(run) or run.jobname,
        jobs,
        work.ioengine or "",
        direct,
        synced,
        tool,
    )
    return ", ".join(part for part in parts if part)


def _medians(
    entries: Sequence[Entry], rules: dict[int, tuple[tuple[str, str], ...]]
) -> list[Row]:
    """One row per direction, variant and cell."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for index, entry in enumerate(entries):
        group = _group_of(entry)
        for row in _rows(entry.run, "", rules.get(index, ())):
            groups.setdefault((entry.cell, group, entry.variant, row.kind), []).append(
                row
            )
    return [_median(group, name, own) for (_, group, name, _), own in groups.items()]


def _group_of(entry: Entry) -> str:
    """The cell, then what else its runs have in common. What both say is said once."""
    title = run_name(entry.run) or entry.run.jobname
    cell, rest = entry.cell, group_of(entry.run)
    words = iter(title.split())
    if cell.startswith(title) or cell.endswith(f" {title}"):
        rest = rest.removeprefix(title).lstrip(", ")
    elif all(word in words for word in cell.split()):
        cell = ""
    return ", ".join(part for part in (cell, entry.condition, rest) if part)


def _median(group: str, name: str, rows: Sequence[Row]) -> Row:
    if len(rows) == 1:
        return msgspec.structs.replace(rows[0], group=group, name=name or rows[0].name)
    return msgspec.structs.replace(
        rows[0],
        group=group,
        name=name or rows[0].name,
        runs=len(rows),
        spread=_spread([row.iops.value for row in rows if row.iops]),
        iops=_middle([row.iops for row in rows]),
        bandwidth=_middle([row.bandwidth for row in rows]),
        mean=_middle([row.mean for row in rows]),
        measured=_middle_measured(rows),
        points=tuple(_middle_points(rows)),
        error=max(row.error for row in rows),
        short=sum(row.short for row in rows),
        dropped=sum(row.dropped for row in rows),
        rules=tuple(dict.fromkeys(chain.from_iterable(row.rules for row in rows))),
        severity=min((row.severity for row in rows), key=SEVERITIES.index),
    )


def _spread(rates: Sequence[float]) -> float | None:
    """The standard deviation of the rates over their mean; None where that says nothing."""
    mean = sum(rates) / len(rates) if rates else 0.0
    if not mean or len(rates) < 2:
        return None
    return (
        math.sqrt(sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1)) / mean
    )


def _middle_points(rows: Sequence[Row]) -> Iterator[Point]:
    """The median of each percentile that a row has."""
    points = chain.from_iterable(row.points for row in rows)
    for percent in dict.fromkeys(point.percent for point in points):
        of_rows = (row.point(percent) for row in rows)
        yield _middle_point([point for point in of_rows if point])


def _middle_measured(rows: Sequence[Row]) -> dict[str, OfCommand]:
    """The median of each number of a command, over the runs that have it."""
    values: dict[str, list[OfCommand]] = {}
    for name, value in chain.from_iterable(row.measured.items() for row in rows):
        values.setdefault(name, []).append(value)
    return {name: OfCommand(*_ends(own), own[0].unit) for name, own in values.items()}


def _median_of(values: Iterable[float]) -> float:
    from statistics import median  # with the fractions and random numbers that it needs

    return median(values)


def _middle(numbers: Iterable[Number | None]) -> Number | None:
    own = [value for value in numbers if value is not None]
    if not own:
        return None
    return Number(*_ends(own))


def _middle_point(own: Sequence[Point]) -> Point:
    beyond = [point.beyond for point in own if point.beyond is not None]
    return Point(own[0].percent, *_ends(own), min(beyond) if beyond else None)


def _ends(
    own: Sequence[Number] | Sequence[OfCommand] | Sequence[Point],
) -> tuple[float, float, float]:
    """The medians of values, of lower and of upper ends."""
    return (
        _median_of(n.value for n in own),
        _median_of(n.low for n in own),
        _median_of(n.high for n in own),
    )
