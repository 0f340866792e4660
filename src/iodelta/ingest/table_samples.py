"""Merge the rows of a table that a monitor recorded one after another, samples of one run, into one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, compress
from operator import attrgetter
from typing import NamedTuple

import msgspec

from iodelta.ingest import table_clock
from iodelta.ingest.model import Run, unknown
from iodelta.ingest.table_cells import plain
from iodelta.ingest.table_clock import Spread
from iodelta.ingest.table_headings import Heading, names_other, names_rows
from iodelta.ingest.table_levels import Row
from iodelta.ingest.wording import clean
from iodelta.plural import plural
from iodelta.trial import Direction, Finding, Latency, Quantity


class Series(NamedTuple):
    """The rows of a table with times, grouped by their other names: the samples of one run per group."""

    at: int
    """The column of the clock."""
    title: str
    spread: Spread
    groups: list[list[Row]]


def series(headings: Sequence[Heading], rows: Sequence[Row]) -> Series | None:
    """Return the ``rows`` of a table as series over time; None without a column of times."""
    clocks = (
        at
        for at, h in enumerate(headings)
        if (h.column is None and table_clock.is_clock(h.title))
    )
    at = next(clocks, None)
    if at is None:
        return None
    places = [
        place
        for place, h in enumerate(headings)
        if (
            h.column is None
            and not h.refused
            and names_rows(h.title)
            and not names_other(h.title)
        )
    ]
    names = [place for place in places if place != at]
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        _, cells, section = row
        key = (section, *(cells[place] for place in names))
        groups.setdefault(key, []).append(row)
    title = headings[at].title
    times = [_column(group, at) for group in groups.values()]
    spread = table_clock.spread(title, times)
    return Series(at, clean(title), spread, list(groups.values()))


def _column(rows: Sequence[Row], at: int) -> list[str]:
    return [cells[at] for _, cells, _ in rows]


def without(at: int, row: Row) -> Row:
    """Return a row without its cell ``at``."""
    index, cells, section = row
    return index, [*cells[:at], *cells[at + 1 :]], section


def merged(samples: Sequence[Run], title: str) -> Run:
    """Return the ``samples`` of one run, in the order of the clock ``title``, as that run.

    A rate is the mean over samples, a latency the mean over the I/Os that the rate counts. A number that one sample
    lacks is unknown: a stall may be what is missing.
    """
    first = samples[0]
    shared = set(first.labels.items()).intersection(
        *(run.labels.items() for run in samples)
    )
    labels = {key: text for key, text in first.labels.items() if (key, text) in shared}
    directions = tuple(
        _direction(list(parts), len(samples)) for parts in _by_kind(samples).values()
    )
    words = f"{plural(len(samples), 'row')} over {plain(title)!r} are taken as samples of one run: rates are their means"
    directions_ = chain.from_iterable(run_.directions for run_ in samples)
    latencies = [*chain.from_iterable(d.latencies().values() for d in directions_)]
    lost = []
    if any(latency.percentiles for latency in latencies):
        lost.append("percentiles")
    if any(not math.isnan(latency.stddev.value) for latency in latencies):
        lost.append("standard deviations")
    if lost:
        words = f"{words}; the {' and '.join(lost)} of samples do not make those of the run: not read"
    finding = Finding("read.samples", "note", str(first.place), words)
    findings = chain.from_iterable(run.findings for run in samples)
    return msgspec.structs.replace(
        first, directions=directions, labels=labels, findings=(finding, *findings)
    )


def _by_kind(samples: Sequence[Run]) -> Mapping[str, list[Direction]]:
    directions: dict[str, list[Direction]] = {}
    for run in samples:
        for direction in run.directions:
            directions.setdefault(direction.kind, []).append(direction)
    return directions


def _direction(parts: Sequence[Direction], samples: int) -> Direction:
    """Return one direction over all samples; its numbers are unknown if one of the ``samples`` lacks it."""
    if len(parts) < samples:
        nothing = {
            "iops": unknown("1/s"),
            "bandwidth": unknown("B/s"),
            "lat": None,
            "clat": None,
            "slat": None,
        }
        return msgspec.structs.replace(parts[0], **nothing)
    rates = [part.iops.value for part in parts]
    counted = not any(map(math.isnan, rates)) and sum(rates) > 0
    weights = rates if counted else [1.0] * len(parts)
    even = [1.0] * len(parts)
    return Direction(
        kind=parts[0].kind,
        ios=0,
        bytes=0,
        runtime_ms=0,
        iops=_mean([part.iops for part in parts], even),
        bandwidth=_mean([part.bandwidth for part in parts], even),
        lat=_latency([part.lat for part in parts], weights),
        clat=_latency([part.clat for part in parts], weights),
        slat=_latency([part.slat for part in parts], weights),
    )


def _mean(values: Sequence[Quantity], weights: Sequence[float]) -> Quantity:
    """Return the mean of ``values``; unknown if one is."""
    if any(math.isnan(value.value) for value in values):
        return unknown(values[0].unit)
    total = sum(weights)
    value, low, high = (
        _weighted(map(attrgetter(name), values), weights) / total
        for name in ("value", "low", "high")
    )
    return Quantity(value, low, high, values[0].unit)


def _weighted(values: Iterable[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))


def _latency(
    given: Sequence[Latency | None], weights: Sequence[float]
) -> Latency | None:
    """Return the latency over the samples with I/O; None without any."""
    busy = [weight > 0 for weight in weights]
    of_busy = list(compress(given, busy))
    latencies = [latency for latency in of_busy if latency is not None]
    if not latencies:
        return None
    nothing = unknown("ns")
    if len(latencies) < len(of_busy):
        return Latency(0, nothing, nothing, nothing, nothing)
    means = [latency.mean for latency in latencies]
    mean = _mean(means, list(compress(weights, busy)))
    low = _end([latency.min for latency in latencies], min)
    high = _end([latency.max for latency in latencies], max)
    return Latency(0, mean, nothing, low, high)


def _end(
    values: Sequence[Quantity], choose: Callable[[Iterable[float]], float]
) -> Quantity:
    """Return the least or the greatest of ``values``; unknown if one is."""
    numbers = [value.value for value in values]
    if any(map(math.isnan, numbers)):
        return unknown("ns")
    return values[numbers.index(choose(numbers))]
