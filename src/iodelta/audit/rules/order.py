"""Latencies that no set of I/Os can have: statistics out of order, or a part longer than the whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, starmap
from operator import attrgetter

from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import all_known, known, parts, span
from iodelta.audit.rules.sampling import version
from iodelta.ingest import Run
from iodelta.trial import Direction, Latency, Quantity

SLACK = 1 / 64
"""The relative width of fio's widest bin: fio prints a percentile as the centre of its bin, extremes exactly."""

Named = tuple[str, Quantity]


@rule(
    "latency.order",
    "hard",
    says="minimum, mean, percentiles and maximum of a latency are out of order",
    needs="two of them of the same latency",
    remedy="read them again from fio's own output: a number is in the wrong place or in another unit",
)
def out_of_order(evidence: Evidence) -> Iterator[Mark]:
    for index, name, latency in _latencies(evidence):
        broken = next(filter(None, starmap(_broken, _pairs(latency))), "")
        if broken:
            yield Mark((index,), f"{name}: {broken}")


@rule(
    "mean.zero",
    "hard",
    says="a mean of 0 although I/Os took time",
    needs="mean and maximum, or a percentile, of the same latency",
    remedy="the mean was lost in processing: read it again from fio's own output",
)
def zero_mean(evidence: Evidence) -> Iterator[Mark]:
    """Yield one I/O as long as the maximum makes the mean of N I/Os at least maximum / N."""
    for index, name, latency in _latencies(evidence):
        # The maximum, or the highest percentile where there is no maximum; None without either.
        percentiles = filter(known, latency.percentiles.values())
        longest = max(percentiles, default=None, key=attrgetter("value"))
        longest = latency.max if known(latency.max) else longest
        is_zero = known(latency.mean) and latency.mean.value <= 0
        if not is_zero or longest is None or not longest.low > 0:
            continue
        if not latency.count or latency.mean.high * latency.count < longest.low:
            text = f"{name}: the mean is 0, but an I/O took {span(longest.value)}"
            yield Mark((index,), text)


@rule(
    "latency.parts",
    "hard",
    says="completion or submission takes longer than both together",
    needs="total latency, and completion or submission latency, of the same I/Os",
    remedy="these numbers are not of the same I/Os, or not in the same unit",
)
def longer_than_whole(evidence: Evidence) -> Iterator[Mark]:
    """Total latency is the sum of submission and completion of the same I/O, so it is longer in every rank."""
    for index, run in enumerate(evidence.runs):
        for direction in parts(run):
            latencies = direction.latencies()
            whole = latencies.pop("lat", None)
            if whole is None:
                continue
            text = _sum(run, latencies.get("slat"), latencies.get("clat"), whole)
            if text:
                yield Mark((index,), f"{_named(run, direction)}{text}")
                continue
            for name, part in latencies.items():
                longer = (
                    _longer(part, whole)
                    if (name == "clat" or part.count == whole.count > 0)
                    else ""
                )
                if longer:
                    text = f"{_named(run, direction)}{name} is above lat: {longer}"
                    yield Mark((index,), text)


def _latencies(evidence: Evidence) -> Iterator[tuple[int, str, Latency]]:
    """Index of the run, name and value of every latency."""
    for index, run in enumerate(evidence.runs):
        for direction in parts(run):
            for name, latency in direction.latencies().items():
                yield index, f"{_named(run, direction)}{name}", latency
        if run.sync is not None:
            yield index, "sync lat", run.sync


def _named(run: Run, direction: Direction) -> str:
    if len(parts(run)) > 1:
        return f"{direction.kind} "
    return ""


def _pairs(latency: Latency) -> Iterator[tuple[Named, Named]]:
    """Pairs of statistics in which the first cannot be above the second."""
    least, mean, most = (
        ("minimum", latency.min),
        ("mean", latency.mean),
        ("maximum", latency.max),
    )
    spread = [(f"p{p:g}", value) for p, value in sorted(latency.percentiles.items())]
    yield least, most
    yield least, mean
    yield mean, most
    for percentile in spread:
        yield least, percentile
        yield percentile, most
    yield from pairwise(spread)


def _broken(first: Named, other: Named) -> str:
    """Return the contradiction if the first is above the second by more than rounding and bins allow; empty without
    one.
    """
    (name, low), (other_name, high) = first, other
    if low.value != low.value or high.value != high.value:
        return ""
    slack = SLACK if "p" in (name[0], other_name[0]) else 0.0
    if low.low * (1 - slack) <= high.high:
        return ""
    return f"{name} {span(low.value)} above {other_name} {span(high.value)}"


def _sum(run: Run, slat: Latency | None, clat: Latency | None, lat: Latency) -> str:
    """Return why means of submission and completion do not add up to the total; empty if they do, or are of other I/Os."""
    if slat is None or clat is None or not slat.count == clat.count == lat.count:
        return ""
    if not all_known(slat.mean, clat.mean, lat.mean) or run.options.get(
        "ramp_time", "0"
    ).strip("0 smu"):
        return ""
    # fio before 2.99 cut each latency to a microsecond.
    spare = 100 if version(run) >= (2, 99) else 2000
    low, high = slat.mean.low + clat.mean.low, slat.mean.high + clat.mean.high
    if (
        low <= lat.mean.high * (1 + PARTS) + spare
        and high >= lat.mean.low * (1 - PARTS) - spare
    ):
        return ""
    parts_ = f"slat {span(slat.mean.value)} + clat {span(clat.mean.value)}"
    return f"{parts_} make {span(slat.mean.value + clat.mean.value)}, but lat is {span(lat.mean.value)}"


PARTS = 0.03
"""Share by which submission and completion together may miss the total."""


def _longer(part: Latency, whole: Latency) -> str:
    """Return the statistic in which a part is longer than the whole; empty without one."""
    pairs = [
        ("minimum", part.min, whole.min),
        ("mean", part.mean, whole.mean),
        ("maximum", part.max, whole.max),
    ]
    pairs += [
        (f"p{p:g}", value, whole.percentiles[p])
        for p, value in part.percentiles.items()
        if p in whole.percentiles
    ]
    for name, short, other in pairs:
        if short.low * (1 - SLACK) > other.high:
            return f"{name} {span(short.value)} against {span(other.value)}"
    return ""


RULES = (out_of_order, zero_mean, longer_than_whole)
