"""Convert rows of a result table to runs: one each, one per workload or variant in the titles, or one for samples."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, pairwise, product
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from iodelta.ingest.model import Run, Workload, unknown
from iodelta.ingest.options import known
from iodelta.ingest.table_cells import cell, is_missing, plain
from iodelta.ingest.table_grids import Row
from iodelta.ingest.table_titles import COMPARES, Heading, Stat, parse, workload_words
from iodelta.ingest.vocabulary import TIMES, english
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import facts
from iodelta.plural import plural
from iodelta.trial import Direction, Finding, Kind, Latency, Place, Quantity, Severity

Pair = tuple[Heading, str]
"""A cell and its heading."""
Parts = Mapping[tuple[str, Stat, float], Quantity]
"""The numbers of one direction by measure (``rate``, ``lat`` ...), statistic and percentile."""

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
    pairs = list(zip(headings, cells, strict=False))
    names = [(h, text) for h, text in pairs if h.column is None]
    numbers = [(h, text) for h, text in pairs if h.column is not None]
    of_section = {"section": clean(section)} if section else {}
    labels = _labels(pairs) | of_section
    in_titles = {_key(h.asked): h.asked for h, _ in pairs if h.asked != Workload()}
    has_workloads = len(in_titles) > 1
    measures = {h.column for h, _ in numbers}
    has_owners = len({h.owner for h, _ in numbers}) > 1
    # A measure has a column for each variant.
    has_variants = has_owners and len(measures) < len(numbers)
    # The workload of the row: from the titles of its columns if they agree, its names, its section and its table.
    worded = [(h.title, text) for h, text in names if not _CHOICE.search(h.title)]
    words = " ".join(f"{title} {text}" for title, text in worded)
    asked = known(facts(labels, words), facts({}, f"{section} {table}"))
    if len(in_titles) == 1:
        (of_titles,) = in_titles.values()
        asked = known(of_titles, asked)
    name = clean(next((text for h, text in names if parse(h.title).names_rows), ""))
    groups: dict[tuple[str, ...], list[Pair]] = {}
    for h, text in numbers:
        key = _key(h.asked) if has_workloads else ()
        key = (*key, h.owner if has_variants else "")
        if h.column in [other.column for other, _ in groups.get(key, [])]:
            key = (*key, h.title)
        groups.setdefault(key, []).append((h, text))
    own = _labels((h, text) for h, text in names if not COMPARES.search(h.title))
    runs: list[Run] = []
    for group in groups.values():
        first = group[0][0]
        whose, of_group, named = asked, labels, name
        if has_workloads:
            words = workload_words(first.title)
            of_group = {"workload": words} if words else {}
            of_group = of_group | own | _labels(group) | of_section
            whose = known(first.asked, asked)
        elif has_variants:
            of_group = own | {"variant": first.owner} | _labels(group) | of_section
            named = first.owner or name
        directions, findings = _directions(group, whose.rw, place)
        runs.append(
            Run(
                place=place,
                format="table",
                jobname=named,
                jobs=whose.numjobs,
                directions=directions,
                workload=whose,
                labels=of_group,
                table=clean(table),
                findings=findings,
            )
        )
    return runs


def _labels(pairs: Iterable[Pair]) -> dict[str, str]:
    return {clean(h.title): clean(text) for h, text in pairs}


def _key(asked: Workload) -> tuple[str, ...]:
    return tuple(str(getattr(asked, name)) for name in asked.__struct_fields__)


def _directions(
    pairs: Sequence[Pair], rw: str | None, place: Place
) -> tuple[tuple[Direction, ...], tuple[Finding, ...]]:
    """Return the numbers of ``pairs`` by direction, which the workload tells if their titles do not; none if no cell
    has a number."""
    alone: dict[str, Kind] = {"read": "read", "write": "write", "trim": "trim"}
    otherwise = alone.get((rw or "").removeprefix("rand"), "mixed")
    quantities: dict[Kind, dict[tuple[str, Stat, float], Quantity]] = {}
    findings: list[Finding] = []
    numbers = 0
    for h, text in pairs:
        if h.column is None:
            continue
        quantity, problem = quantity_of(h, text)
        parts = quantities.setdefault(h.column.kind or otherwise, {})
        key = (h.column.of, h.column.stat, h.column.percent)
        other = parts.get(key)
        # An unknown number agrees with all.
        if quantity and other and not quantity.overlaps(other):
            quantity, problem = unknown(quantity.unit), _TWO_VALUES
        if problem is not None:
            words = f"{clean(h.title)}: {clean(text)[:60]} {problem.words}"
            findings.append(Finding(*problem[:2], str(place), words))
        numbers += quantity is not None
        if quantity is not None or key not in parts:
            parts[key] = quantity or unknown(_UNITS.get(h.column.stat, "ns"))
    directions = tuple(direction(*item) for item in quantities.items())
    return directions if numbers else (), tuple(findings)


class _Problem(NamedTuple):
    """Why a cell was not read, or only with a wider interval."""

    rule: str
    severity: Severity
    words: str


_CONFLICT = _Problem(
    "read.unit-conflict",
    "warning",
    "has a different unit than its heading; either may be meant",
)
_NO_UNIT = _Problem(
    "read.no-unit", "note", "has no unit, and neither does its heading: not read"
)
_DOUBTFUL = _Problem(
    "read.comma",
    "warning",
    "has a {} that may separate thousands or decimals: not read",
)
_TWO_VALUES = _Problem(
    "read.cell",
    "warning",
    "differs from another column of the same measure: neither is read",
)
_NOT_READ = _Problem(
    "read.cell", "warning", "is not a number of this measure: not read"
)
_APPROXIMATE = re.compile(r"[*` ]*[~≈<>≤≥]")
_MARK = re.compile(r"(?<=\d)[.,](?=\d)")
_IOPS_SUFFIX = {"/s": 1.0} | {
    f"{prefix}{gap}{unit}": scale
    for prefix, scale in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9))
    for gap, unit in product(("", " "), ("", "iops", "io/s", "ios/s"))
}
_BYTE_SUFFIX = re.compile(
    r"([kmgt])(i?)(?:(b)(?:ytes?)?)?(/s(?:ec(?:ond)?)?|ps)?|b(?:ytes?)?/s(?:ec)?", re.I
)


def quantity_of(h: Heading, text: str) -> tuple[Quantity | None, _Problem | None]:
    """Return the number of a cell under a heading, and the problem with it."""
    if h.column is None or not any(map(str.isdigit, text)) or is_missing(text):
        return None, None
    number = cell(text, comma=h.comma)
    if number is None:
        return None, None if _APPROXIMATE.match(text) else _NOT_READ
    mark = _MARK.search(text) if h.doubtful else None
    if mark is not None:
        words = _DOUBTFUL.words.format({",": "comma", ".": "point"}[mark[0]])
        return None, _DOUBTFUL._replace(words=words)
    printed, suffix = number
    suffix, scale = english(suffix), h.column.scale
    if printed.value < 0:
        return None, _NOT_READ  # a difference
    if h.column.stat == "iops":
        factor = _IOPS_SUFFIX.get(suffix.lower())
        if factor is None:
            return None, _NOT_READ
        # If the cell has no prefix, that of the title holds.
        factor = (scale or 1.0) if factor == 1.0 else factor
        return printed.quantity("1/s", factor), None
    unit = _UNITS.get(h.column.stat, "ns")
    if suffix and unit == "ns":
        scale = TIMES.get(suffix.lower())
    if not suffix or unit == "ns":
        if scale is None:
            return None, _NOT_READ if suffix else _NO_UNIT
        return printed.quantity(unit, scale), None
    match = _BYTE_SUFFIX.fullmatch(suffix)
    # ``Mb/s`` are bits.
    if match is None or (match[3] == "b" and match[1] in ("M", "G", "T")):
        return None, _NOT_READ
    if not match[1]:
        return printed.quantity(unit, 1.0), None
    power = " kmgt".index(match[1].lower())
    decimal, binary = 1000.0**power, 1024.0**power
    factor = binary if match[2] else decimal
    if scale in (None, 1.0, factor):
        return printed.quantity(unit, factor), None
    if suffix == "k":
        return printed.quantity(unit, 1000 * (scale or 1.0)), None
    # ``261M`` below KiB/s may be MB/s, MiB/s or thousands of KiB/s: the interval holds all three.
    low, high = printed.low * decimal, printed.high * binary
    return Quantity(printed.value * factor, low, high, unit), _CONFLICT


def direction(kind: Kind, parts: Parts) -> Direction:
    """Return a direction with these numbers; its counts are unknown."""
    latencies: dict[str, Latency] = {}
    for whose in ("lat", "clat", "slat"):
        own = {key[1:]: value for key, value in parts.items() if key[0] == whose}
        spread = {rank: own[stat, rank] for stat, rank in sorted(own) if rank}
        mean, stddev, low, high = (own.get((stat, 0), unknown("ns")) for stat in _STATS)
        if own:
            latencies[whose] = Latency(0, mean, stddev, low, high, spread)
    iops = parts.get(("rate", "iops", 0), unknown("1/s"))
    bandwidth = parts.get(("rate", "bw", 0), unknown("B/s"))
    lat, clat, slat = map(latencies.get, ("lat", "clat", "slat"))
    return Direction(kind, 0, 0, 0, iops, bandwidth, lat, clat, slat)


_STATS: tuple[Stat, ...] = ("mean", "stddev", "min", "max")
_CLOCK_UNITS = {
    **TIMES,
    **dict.fromkeys(("min", "mins", "minutes"), 60e9),
    **dict.fromkeys(("h", "hours"), 3600e9),
}
"""Nanoseconds of a unit."""
_CLOCK = re.compile(
    r"(?:(?:wall|clock|elapsed|relative|rel|unix|epoch|log|sample|since start)[ _-]?)?"
    r"(?:time(?:[ _-]?stamp)?|timestamp|date(?:[ _/-]?time)?|clock|epoch|elapsed|secs?|seconds?|minutes|zeit|ts"
    r"|t(?=[ _]?[(\[]))"
    rf"(?:[ _]?[(\[]?(?:(?P<unit>{'|'.join(sorted(_CLOCK_UNITS, key=len, reverse=True))})|utc|local|gmt)[)\]]?)?",
    re.I,
)
"""Titles of points in time. ``runtime`` and ``time to`` something are durations."""
_COUNTED = re.compile(r"(\d{1,20}(?:[.,]\d{1,9})?)\s?(?:s|sec|ms|min|h)?")
_OF_DAY = re.compile(r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2}(?:[.,]\d{1,9})?)")
_EPOCH = 1e8
"""Seconds, three years: a larger number is a date since 1970, not the duration of a run."""
_DAY = 86400.0
_LEAST = 3
"""Fewest rows of a series."""
_MANY = 8
"""Rows in rising order that are not due to chance."""
_EVEN = (0.5, 1.5)
"""Bounds of the time between two samples, as factors of the median: a late sample makes the next step short."""
_SAMPLED = 10.0
"""Seconds: rows with time stamps this close are samples. Runs take longer; samples may, too."""

Spread = Literal["runs", "samples", "unclear"]
"""The meaning of rows by their times: separate runs, samples of one run, or unclear."""


class Series(NamedTuple):
    """The rows of a table with times, grouped by their other names: the samples of one run per group."""

    at: int
    """The column of the clock."""
    title: str
    spread: Spread
    groups: list[list[Row]]


def series(headings: Sequence[Heading], rows: Sequence[Row]) -> Series | None:
    """Return the ``rows`` of a table as series over time; None without a column of times."""
    names: list[int] = []
    at, clock = -1, None
    for place, h in enumerate(headings):
        match = _CLOCK.fullmatch(plain(h.title)) if h.column is None else None
        meant = parse(h.title)
        if match is not None and clock is None:
            at, clock = place, match
        elif (
            h.column is None and not h.refused and meant.names_rows and not meant.other
        ):
            names.append(place)
    if clock is None:
        return None
    groups: dict[tuple[str, ...], list[Row]] = {}
    for each in rows:
        _, cells, section = each
        key = (section, *(cells[place] for place in names))
        groups.setdefault(key, []).append(each)
    spreads = {
        _spread(clock["unit"], [cells[at] for _, cells, _ in group])
        for group in groups.values()
        if len(group) > 1
    }
    spread: Spread = "samples"
    if not spreads or "runs" in spreads:
        spread = "runs"
    elif "unclear" in spreads:
        spread = "unclear"
    return Series(at, clean(headings[at].title), spread, list(groups.values()))


def _spread(unit: str | None, cells: Sequence[str]) -> Spread:
    read = (_moment(unit, plain(text)) for text in cells)
    moments = [moment for moment in read if moment is not None]
    if len(cells) < _LEAST or len(moments) < len(cells):
        return "runs"
    steps = []
    for (first, _, _), (other, _, wraps) in pairwise(moments):
        step = other - first
        steps.append(step + _DAY if step < -_DAY / 2 and wraps else step)
    usual = median(steps)
    if min(steps) <= 0 or usual >= _DAY:
        return "runs"
    least, most = (factor * usual for factor in _EVEN)
    is_even = least <= min(steps) and max(steps) <= most
    begin, is_stamp, _ = moments[0]
    if is_stamp and begin > usual:
        if usual > _SAMPLED:
            return "unclear" if is_even else "runs"
    # Durations of runs may also rise by chance, but are similar.
    elif moments[-1][0] < 2 * begin and len(moments) < _MANY:
        return "runs"
    return "samples" if is_even else "unclear"


def _moment(unit: str | None, text: str) -> tuple[float, bool, bool] | None:
    """Return the time in a cell in seconds, whether it is a time of day or a date, and whether it restarts at midnight;
    None without one."""
    number, clock = _COUNTED.fullmatch(text), _OF_DAY.fullmatch(text)
    if number is not None:
        # In the unit of the title; without one, in the unit in which it can be a date.
        count = float(number[1].replace(",", "."))
        dates = (1.0 / size for size in (1e9, 1e6, 1e3) if count / size >= _EPOCH)
        scale = _CLOCK_UNITS[unit.lower()] / 1e9 if unit else next(dates, 1.0)
        return count * scale, count * scale >= _EPOCH, False
    if clock is not None:
        # ``10:30`` is a time of day. ``0:01`` after ``0:00`` counts from the start either way.
        parts = (float((part or "0").replace(",", ".")) for part in clock.groups())
        hours, minutes, seconds = parts
        whole = 3600.0 * hours + 60.0 * minutes + seconds
        return whole if clock[1] else 60.0 * whole, True, True
    try:
        stamp = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None
    if stamp.tzinfo is None:
        stamp = stamp.replace(tzinfo=UTC)
    return stamp.timestamp(), True, False


def merged(samples: Sequence[Run], title: str) -> Run:
    """Return the ``samples`` of one run, in the order of the clock ``title``, as that run.

    A rate is the mean over samples, a latency the mean over the I/Os that the rate counts. A number that one sample
    lacks is unknown: a stall may be what is missing.
    """
    first = samples[0]
    of_all = [run.labels.items() for run in samples]
    labels = {
        key: text for key, text in of_all[0] if all((key, text) in of for of in of_all)
    }
    by_kind: dict[Kind, list[Direction]] = {}
    for each in chain.from_iterable(run.directions for run in samples):
        by_kind.setdefault(each.kind, []).append(each)
    words = f"{plural(len(samples), 'row')} over {plain(title)!r} are taken as samples of one run: rates are their means"
    latencies = [
        latency
        for each in chain.from_iterable(by_kind.values())
        for latency in each.latencies().values()
    ]
    lost = ["percentiles"] if any(latency.percentiles for latency in latencies) else []
    if any(not math.isnan(latency.stddev.value) for latency in latencies):
        lost.append("standard deviations")
    if lost:
        words = f"{words}; the {' and '.join(lost)} of samples do not make those of the run: not read"
    finding = Finding("read.samples", "note", str(first.place), words)
    findings = chain.from_iterable(run.findings for run in samples)
    return msgspec.structs.replace(
        first,
        directions=tuple(_of_samples(of, len(samples)) for of in by_kind.values()),
        labels=labels,
        findings=(finding, *findings),
    )


def _of_samples(parts: Sequence[Direction], samples: int) -> Direction:
    """Return one direction over all samples; its numbers are unknown if one of the ``samples`` lacks it."""
    if len(parts) < samples:
        return direction(parts[0].kind, {})
    rates = [part.iops.value for part in parts]
    even = [1.0] * len(parts)
    counted = not any(map(math.isnan, rates)) and sum(rates) > 0
    weights = rates if counted else even
    numbers: dict[tuple[str, Stat, float], Quantity] = {
        ("rate", "iops", 0): _mean([part.iops for part in parts], even),
        ("rate", "bw", 0): _mean([part.bandwidth for part in parts], even),
    }
    for whose in ("lat", "clat", "slat"):
        busy = [
            (part.latencies().get(whose), weight)
            for part, weight in zip(parts, weights, strict=True)
            if weight > 0
        ]
        given = [latency for latency, _ in busy if latency is not None]
        if given and len(given) < len(busy):
            numbers[whose, "mean", 0] = unknown("ns")
        elif given:
            of_io = [weight for _, weight in busy]
            numbers[whose, "mean", 0] = _mean([of.mean for of in given], of_io)
            lows, highs = [of.min for of in given], [of.max for of in given]
            numbers[whose, "min", 0] = min(lows, key=_value)
            numbers[whose, "max", 0] = max(highs, key=_value)
            for stat, values in (("min", lows), ("max", highs)):
                if any(math.isnan(value.value) for value in values):
                    numbers[whose, stat, 0] = unknown("ns")  # type: ignore[index]
    return direction(parts[0].kind, numbers)


def _value(quantity: Quantity) -> float:
    return quantity.value


def _mean(values: Sequence[Quantity], weights: Sequence[float]) -> Quantity:
    """Return the mean of ``values``; unknown if one is."""
    if any(math.isnan(value.value) for value in values):
        return unknown(values[0].unit)
    value, low, high = (
        sum(
            getattr(each, name) * weight
            for each, weight in zip(values, weights, strict=True)
        )
        / sum(weights)
        for name in ("value", "low", "high")
    )
    return Quantity(value, low, high, values[0].unit)
