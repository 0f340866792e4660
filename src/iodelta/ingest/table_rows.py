"""A row of a result table as runs: one, or one for each workload or variant that its columns' titles name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from iodelta.ingest.model import Run, Workload, unknown
from iodelta.ingest.numbers import Printed
from iodelta.ingest.options import known
from iodelta.ingest.table_cells import TIMES, cell, is_missing
from iodelta.ingest.table_headings import COMPARES, Heading, Stat, workload_words
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import facts
from iodelta.trial import Direction, Finding, Kind, Latency, Place, Quantity, Severity


def row(headings: Sequence[Heading], cells: Sequence[str], place: Place, table: str, section: str = "") -> list[Run]:
    """One row as a run, or as one for each workload or variant that its columns' titles name.

    A row with columns of numbers but none in them is a run without directions.
    """
    pairs = list(zip(headings, cells, strict=False))
    part = {"section": clean(section)} if section else {}
    labels = _cells(pairs) | part
    names = " ".join(f"{h.title} {text}" for h, text in pairs if h.column is None)
    asked = known(facts(labels, names), facts({}, f"{section} {table}"))
    owners = {_key(h.asked): h.asked for h, _ in pairs if h.asked != Workload()}
    if len(owners) == 1:  # then all columns are of it
        asked = known(next(iter(owners.values())), asked)
    measures = [h.column for h, _ in pairs if h.column is not None]
    beside = len(set(measures)) < len(measures) and len({h.owner for h, _ in pairs if h.column}) > 1
    buckets: dict[tuple[str, ...], list[tuple[Heading, str]]] = {}
    for h, text in pairs:
        if h.column is not None:
            key = (*(_key(h.asked) if len(owners) > 1 else ()), h.owner if beside else "")
            taken = [other.column for other, _ in buckets.get(key, [])]
            buckets.setdefault((*key, h.title) if h.column in taken else key, []).append((h, text))
    name = clean(next((text for h, text in pairs if h.column is None), ""))
    if not beside and len(owners) < 2:
        return [_run(own, asked, labels, name, table, place) for own in buckets.values()]
    named = {clean(h.title): clean(text) for h, text in pairs if h.column is None and not COMPARES.search(h.title)}
    runs = []
    for own in buckets.values():
        first = own[0][0]
        if len(owners) > 1:
            words = workload_words(first.title)
            of = {"workload": words} if words else {}
            runs.append(_run(own, known(first.asked, asked), of | named | _cells(own) | part, name, table, place))
        else:
            of = {"variant": first.owner}
            runs.append(_run(own, asked, named | of | _cells(own) | part, first.owner or name, table, place))
    return runs


def _cells(pairs: Iterable[tuple[Heading, str]]) -> dict[str, str]:
    return {clean(h.title): clean(text) for h, text in pairs}


def _key(asked: Workload) -> tuple[str, ...]:
    return tuple(str(getattr(asked, name)) for name in asked.__struct_fields__)


def _run(
    pairs: Sequence[tuple[Heading, str]], asked: Workload, labels: dict[str, str], name: str, table: str, place: Place
) -> Run:
    found: dict[Kind, dict[tuple[str, Stat, float], Quantity]] = {}
    findings: list[Finding] = []
    numbers = 0
    for h, text in pairs:
        if h.column is None:
            continue
        quantity, problem = quantity_of(h, text)
        if problem is not None:
            words = f"{clean(h.title)}: {clean(text)[:60]} {problem.words}"
            findings.append(Finding(problem.rule, problem.severity, f"{place.file}:{place.line}", words))
        numbers += quantity is not None
        parts = found.setdefault(h.column.kind or _kind_of(asked.rw), {})
        key = (h.column.of, h.column.stat, h.column.percent)
        unit = {"iops": "1/s", "bw": "B/s"}.get(h.column.stat, "ns")
        if quantity is not None or key not in parts:
            parts[key] = quantity or unknown(unit)
    return Run(
        place=place,
        format="table",
        jobname=name,
        jobs=asked.numjobs,
        directions=tuple(_direction(kind, parts) for kind, parts in found.items()) if numbers else (),
        workload=asked,
        labels=labels,
        table=clean(table),
        findings=tuple(findings),
    )


class Problem(NamedTuple):
    """Why a cell was not read, or not to its last digit."""

    rule: str
    severity: Severity
    words: str


_CONFLICT = Problem("read.unit-conflict", "warning", "carries another unit than its heading; either may be meant")
_NO_UNIT = Problem("read.no-unit", "note", "has no unit, nor has its heading: not read")
_DOUBTFUL = Problem(
    "read.comma", "warning", "has a comma that may stand before thousands or decimals, and nothing tells: not read"
)
_NOT_READ = Problem("read.cell", "warning", "is not a number of this measure: not read")


def quantity_of(h: Heading, text: str) -> tuple[Quantity | None, Problem | None]:
    """The number of a cell below a heading of a measure, and what is wrong with it."""
    if h.column is None or is_missing(text) or not any(letter.isdigit() for letter in text):
        return None, None
    number = cell(text, comma=h.comma)
    if number is None:
        return None, None if text.strip("*` ")[:1] in "~≈<>≤≥" else _NOT_READ
    if h.doubtful and "," in text:
        return None, _DOUBTFUL
    printed, suffix = number
    if printed.value < 0:
        return None, _NOT_READ  # a difference
    if h.column.stat == "iops":
        scale = _IOPS_SUFFIX.get(suffix.lower())
        unit_scale = (h.column.scale or 1.0) if scale == 1.0 else 1.0
        return (None, _NOT_READ) if scale is None else (printed.quantity("1/s", scale * unit_scale), None)
    if h.column.stat == "bw":
        return _bandwidth(printed, suffix, h.column.scale)
    scale = TIMES.get(suffix.lower()) if suffix else h.column.scale
    if scale is None:
        return None, _NOT_READ if suffix else _NO_UNIT
    return printed.quantity("ns", scale), None


_IOPS_SUFFIX = {"/s": 1.0}
for _prefix, _scale in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)):
    for _gap, _unit in product(("", " "), ("", "iops", "io/s", "ios/s")):
        _IOPS_SUFFIX[f"{_prefix}{_gap}{_unit}"] = _scale
_BYTE_SUFFIX = re.compile(r"([kmgt])(i?)(?:(b)(?:ytes?)?)?(/s(?:ec(?:ond)?)?|ps)?|b(?:ytes?)?/s(?:ec)?", re.I)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}


def _bandwidth(printed: Printed, suffix: str, scale: float | None) -> tuple[Quantity | None, Problem | None]:
    """``261M`` below KiB/s may be MB/s, MiB/s or thousands of KiB/s: the interval holds all three."""
    if not suffix:
        return (None, _NO_UNIT) if scale is None else (printed.quantity("B/s", scale), None)
    found = _BYTE_SUFFIX.fullmatch(suffix)
    if found is None or (found[3] == "b" and found[1] in ("M", "G", "T")):
        return None, _NOT_READ  # another measure's unit, or megabits
    power = _POWERS[found[1].lower()] if found[1] else 0
    if not power:
        return printed.quantity("B/s", 1.0), None
    decimal, binary = 1000.0**power, 1024.0**power
    own = binary if found[2] else decimal
    if scale in (None, 1.0, own):
        return printed.quantity("B/s", own), None
    if suffix == "k":
        return printed.quantity("B/s", 1000 * (scale or 1.0)), None
    return Quantity(printed.value * own, printed.low * decimal, printed.high * binary, "B/s"), _CONFLICT


def _direction(kind: Kind, parts: Mapping[tuple[str, Stat, float], Quantity]) -> Direction:
    def latency(of: str) -> Latency | None:
        mine = {(stat, percent): q for (whose, stat, percent), q in parts.items() if whose == of}
        if not mine:
            return None
        mean, stddev, low, high = (mine.get((stat, 0), unknown("ns")) for stat in ("mean", "stddev", "min", "max"))
        spread = {percent: q for (stat, percent), q in mine.items() if stat == "percentile"}
        return Latency(0, mean, stddev, low, high, dict(sorted(spread.items())))

    return Direction(
        kind=kind,
        ios=0,
        bytes=0,
        runtime_ms=0,
        iops=parts.get(("rate", "iops", 0), unknown("1/s")),
        bandwidth=parts.get(("rate", "bw", 0), unknown("B/s")),
        lat=latency("lat"),
        clat=latency("clat"),
        slat=latency("slat"),
    )


def _kind_of(rw: str | None) -> Kind:
    """The direction of numbers whose heading names none; ``mixed`` when the row does not say either."""
    kinds: dict[str, Kind] = {"read": "read", "write": "write", "trim": "trim"}
    return kinds.get((rw or "").removeprefix("rand"), "mixed")
