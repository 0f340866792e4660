"""Convert a row of a result table to runs: one, or one per workload or variant in the titles of columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product, starmap
from typing import NamedTuple

from iodelta.ingest.model import Run, Workload, unknown
from iodelta.ingest.numbers import Printed
from iodelta.ingest.options import known
from iodelta.ingest.table_cells import cell, is_missing
from iodelta.ingest.table_columns import Stat
from iodelta.ingest.table_headings import COMPARES, Heading, names_rows, workload_words
from iodelta.ingest.vocabulary import TIMES, english
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import facts
from iodelta.trial import Direction, Finding, Kind, Latency, Place, Quantity, Severity

Pair = tuple[Heading, str]
"""A cell and its heading."""

_CHOICE = re.compile(
    r"polic(?:y|ies)\b|\balgorithm|\bscheduler|\bbalanc|\bstrategy", re.I
)
"""Titles of columns without workloads: the policy ``rr`` is round-robin, the job ``rr`` random reads."""
_UNITS = {"iops": "1/s", "bw": "B/s"}
"""Unit of a statistic; ns for all others."""


def row(
    headings: Sequence[Heading],
    cells: Sequence[str],
    place: Place,
    table: str,
    section: str = "",
) -> list[Run]:
    """Return one row as a run, or as one for each workload or variant that its columns' titles name.

    A row with columns of numbers but none in them is a run without directions.
    """
    return _Row(list(zip(headings, cells, strict=False)), place, table, section).runs()


class _Row:
    """A row: the workload in its names, and the workloads or variants of its numbers."""

    def __init__(
        self, pairs: list[Pair], place: Place, table: str, section: str
    ) -> None:
        self._place = place
        self._table = table
        self._section = {"section": clean(section)} if section else {}
        self._names = [(h, text) for h, text in pairs if h.column is None]
        self._numbers = [(h, text) for h, text in pairs if h.column is not None]
        self._labels = _cells(pairs) | self._section
        workloads = (h.asked for h, _ in pairs)
        self._workloads = {
            _key(asked): asked for asked in workloads if asked != Workload()
        }
        """The workloads in titles."""
        measures = {h.column for h, _ in self._numbers}
        owners = {h.owner for h, _ in self._numbers}
        self._has_variants = len(measures) < len(self._numbers) and len(owners) > 1
        """Whether a measure has a column for each variant."""
        self._asked = self._workload(section)

    def _workload(self, section: str) -> Workload:
        """Return the workload of the row, from its names, then from its section, its table and the titles of its
        columns.
        """
        named = [
            (h.title, text) for h, text in self._names if not _CHOICE.search(h.title)
        ]
        words = " ".join(f"{title} {text}" for title, text in named)
        asked = known(facts(self._labels, words), facts({}, f"{section} {self._table}"))
        if len(self._workloads) == 1:  # then all columns are of it
            (of_titles,) = self._workloads.values()
            return known(of_titles, asked)
        return asked

    def runs(self) -> list[Run]:
        names = (text for h, text in self._names if names_rows(h.title))
        name = clean(next(names, ""))
        make = self._of_all
        if len(self._workloads) > 1:
            make = self._of_workload
        elif self._has_variants:
            make = self._of_variant
        return [make(group, name) for group in self._groups()]

    def _groups(self) -> list[list[Pair]]:
        """Return the columns of each run: those of a workload or variant, and each measure once."""
        has_workloads = len(self._workloads) > 1
        groups: dict[tuple[str, ...], list[Pair]] = {}
        for h, text in self._numbers:
            workload = _key(h.asked) if has_workloads else ()
            owner = h.owner if self._has_variants else ""
            key = (*workload, owner)
            measures = [other.column for other, _ in groups.get(key, [])]
            if h.column in measures:
                key = (*key, h.title)
            groups.setdefault(key, []).append((h, text))
        return list(groups.values())

    def _of_all(self, group: list[Pair], name: str) -> Run:
        return self._run(group, self._asked, self._labels, name)

    def _of_workload(self, group: list[Pair], name: str) -> Run:
        first = group[0][0]
        words = workload_words(first.title)
        workload = {"workload": words} if words else {}
        labels = workload | self._named() | _cells(group) | self._section
        return self._run(group, known(first.asked, self._asked), labels, name)

    def _of_variant(self, group: list[Pair], name: str) -> Run:
        variant = group[0][0].owner
        labels = self._named() | {"variant": variant} | _cells(group) | self._section
        return self._run(group, self._asked, labels, variant or name)

    def _named(self) -> dict[str, str]:
        return _cells(
            (h, text) for h, text in self._names if not COMPARES.search(h.title)
        )

    def _run(
        self, pairs: Sequence[Pair], asked: Workload, labels: dict[str, str], name: str
    ) -> Run:
        quantities: dict[Kind, dict[tuple[str, Stat, float], Quantity]] = {}
        findings: list[Finding] = []
        numbers = 0
        for h, text in pairs:
            if h.column is None:
                continue
            quantity, problem = quantity_of(h, text)
            parts = quantities.setdefault(h.column.kind or _kind_of(asked.rw), {})
            key = (h.column.of, h.column.stat, h.column.percent)
            if quantity is not None and _is_apart(quantity, parts.get(key)):
                quantity, problem = unknown(quantity.unit), _TWO_VALUES
            if problem is not None:
                words = f"{clean(h.title)}: {clean(text)[:60]} {problem.words}"
                findings.append(
                    Finding(problem.rule, problem.severity, str(self._place), words)
                )
            numbers += quantity is not None
            if quantity is not None or key not in parts:
                parts[key] = quantity or unknown(_UNITS.get(h.column.stat, "ns"))
        directions = tuple(starmap(_direction, quantities.items()))
        return Run(
            place=self._place,
            format="table",
            jobname=name,
            jobs=asked.numjobs,
            directions=directions if numbers else (),
            workload=asked,
            labels=labels,
            table=clean(self._table),
            findings=tuple(findings),
        )


def _is_apart(first: Quantity, other: Quantity | None) -> bool:
    """Return whether two numbers of one measure differ by more than rounding; an unknown number agrees with all."""
    return other is not None and (first.low > other.high or other.low > first.high)


def _cells(pairs: Iterable[Pair]) -> dict[str, str]:
    return {clean(h.title): clean(text) for h, text in pairs}


def _key(asked: Workload) -> tuple[str, ...]:
    return tuple(str(getattr(asked, name)) for name in asked.__struct_fields__)


class Problem(NamedTuple):
    """Why a cell was not read, or only with a wider interval."""

    rule: str
    severity: Severity
    words: str


_CONFLICT = Problem(
    "read.unit-conflict",
    "warning",
    "has a different unit than its heading; either may be meant",
)
_NO_UNIT = Problem(
    "read.no-unit", "note", "has no unit, and neither does its heading: not read"
)
_DOUBTFUL = Problem(
    "read.comma",
    "warning",
    "has a {mark} that may separate thousands or decimals: not read",
)
_TWO_VALUES = Problem(
    "read.cell",
    "warning",
    "differs from another column of the same measure: neither is read",
)
_NOT_READ = Problem("read.cell", "warning", "is not a number of this measure: not read")


def quantity_of(h: Heading, text: str) -> tuple[Quantity | None, Problem | None]:
    """Return the number of a cell under a heading, and the problem with it."""
    has_digit = any(map(str.isdigit, text))
    if h.column is None or not has_digit or is_missing(text):
        return None, None
    number = cell(text, comma=h.comma)
    if number is None:
        return None, None if _APPROXIMATE.match(text) else _NOT_READ
    mark = _MARK.search(text) if h.doubtful else None
    if mark is not None:
        words = _DOUBTFUL.words.format(mark=_MARKS[mark[0]])
        return None, _DOUBTFUL._replace(words=words)
    printed, suffix = number
    suffix = english(suffix)
    if printed.value < 0:
        return None, _NOT_READ  # a difference
    read = {"iops": _iops, "bw": _bandwidth}.get(h.column.stat, _time)
    return read(printed, suffix, h.column.scale)


_APPROXIMATE = re.compile(r"[*` ]*[~≈<>≤≥]")


_MARK = re.compile(r"(?<=\d)[.,](?=\d)")


_MARKS = {",": "comma", ".": "point"}


def _iops(
    printed: Printed, suffix: str, scale: float | None
) -> tuple[Quantity | None, Problem | None]:
    factor = _IOPS_SUFFIX.get(suffix.lower())
    if factor is None:
        return None, _NOT_READ
    if factor == 1.0:  # the cell has no prefix: that of the title holds
        factor = scale or 1.0
    return printed.quantity("1/s", factor), None


def _time(
    printed: Printed, suffix: str, scale: float | None
) -> tuple[Quantity | None, Problem | None]:
    if suffix:
        scale = TIMES.get(suffix.lower())
    if scale is None:
        return None, _NOT_READ if suffix else _NO_UNIT
    return printed.quantity("ns", scale), None


_IOPS_SUFFIX = {"/s": 1.0}
for _prefix, _scale in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)):
    for _gap, _unit in product(("", " "), ("", "iops", "io/s", "ios/s")):
        _IOPS_SUFFIX[f"{_prefix}{_gap}{_unit}"] = _scale
_BYTE_SUFFIX = re.compile(
    r"([kmgt])(i?)(?:(b)(?:ytes?)?)?(/s(?:ec(?:ond)?)?|ps)?|b(?:ytes?)?/s(?:ec)?", re.I
)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}


def _bandwidth(
    printed: Printed, suffix: str, scale: float | None
) -> tuple[Quantity | None, Problem | None]:
    """``261M`` below KiB/s may be MB/s, MiB/s or thousands of KiB/s: the interval holds all three."""
    if not suffix:
        if scale is None:
            return None, _NO_UNIT
        return printed.quantity("B/s", scale), None
    match = _BYTE_SUFFIX.fullmatch(suffix)
    if match is None or (match[3] == "b" and match[1] in ("M", "G", "T")):
        return None, _NOT_READ
    if not match[1]:
        return printed.quantity("B/s", 1.0), None
    power = _POWERS[match[1].lower()]
    decimal, binary = 1000.0**power, 1024.0**power
    factor = binary if match[2] else decimal
    if scale in (None, 1.0, factor):
        return printed.quantity("B/s", factor), None
    if suffix == "k":
        return printed.quantity("B/s", 1000 * (scale or 1.0)), None
    low, high = printed.low * decimal, printed.high * binary
    return Quantity(printed.value * factor, low, high, "B/s"), _CONFLICT


def _direction(
    kind: Kind, parts: Mapping[tuple[str, Stat, float], Quantity]
) -> Direction:
    return Direction(
        kind=kind,
        ios=0,
        bytes=0,
        runtime_ms=0,
        iops=parts.get(("rate", "iops", 0), unknown("1/s")),
        bandwidth=parts.get(("rate", "bw", 0), unknown("B/s")),
        lat=_latency("lat", parts),
        clat=_latency("clat", parts),
        slat=_latency("slat", parts),
    )


def _latency(
    whose: str, parts: Mapping[tuple[str, Stat, float], Quantity]
) -> Latency | None:
    """Return the latency ``whose`` statistics are among ``parts``; None without any."""
    spread: dict[float, Quantity] = {}
    stats: dict[Stat, Quantity] = {}
    for (of, stat, percent), quantity in parts.items():
        if of != whose:
            continue
        if stat == "percentile":
            spread[percent] = quantity
        else:
            stats[stat] = quantity
    if not spread and not stats:
        return None
    mean, stddev, low, high = (stats.get(stat, unknown("ns")) for stat in _STATS)
    return Latency(0, mean, stddev, low, high, dict(sorted(spread.items())))


_STATS: tuple[Stat, ...] = ("mean", "stddev", "min", "max")


def _kind_of(rw: str | None) -> Kind:
    """Return the direction of numbers whose heading names none, from the workload; ``mixed`` if unknown."""
    kinds: dict[str, Kind] = {"read": "read", "write": "write", "trim": "trim"}
    return kinds.get((rw or "").removeprefix("rand"), "mixed")
