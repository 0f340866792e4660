"""Numbers of one latency that no set of I/Os can have: out of order, or of parts that are longer than the whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import known, parts, span
from iodelta.ingest import Run
from iodelta.trial import Direction, Latency, Quantity

SLACK = 1 / 64
"""The width of fio's widest bin: a percentile is its bin's centre, minimum and maximum are exact."""

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
        broken = next(
            filter(None, (_broken(low, other) for low, other in _pairs(latency))), ""
        )
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
    """One I/O as long as the maximum makes the mean of N at least a Nth of it."""
    for index, name, latency in _latencies(evidence):
        longest = (
            latency.max
            if known(latency.max)
            else max(_percentiles(latency), default=None, key=lambda q: q.value)
        )
        if (
            longest is None
            or not known(latency.mean)
            or latency.mean.value > 0
            or not longest.low > 0
        ):
            continue
        if not latency.count or latency.mean.high * latency.count < longest.low:
            yield Mark(
                (index,),
                f"{name}: the mean is 0, but an I/O took {span(longest.value)}",
            )


@rule(
    "latency.parts",
    "hard",
    says="completion or submission takes longer than both together",
    needs="total latency, and completion or submission latency, of the same I/Os",
    remedy="these numbers are not of the same I/Os, or not in the same unit",
)
def longer_than_whole(evidence: Evidence) -> Iterator[Mark]:
    """Total latency is submission and completion of the same I/O: it is the longer one in every rank."""
    for index, run in enumerate(evidence.runs):
        for direction in parts(run):
            for name, part in (("clat", direction.clat), ("slat", direction.slat)):
                if (
                    part is None
                    or direction.lat is None
                    or not _same_ios(name, part, direction.lat)
                ):
                    continue
                longer = _longer(part, direction.lat)
                if longer:
                    yield Mark(
                        (index,),
                        f"{_named(run, direction)}{name} is above lat: {longer}",
                    )


def _latencies(evidence: Evidence) -> Iterator[tuple[int, str, Latency]]:
    """Every latency of every run, and what to call it."""
    for index, run in enumerate(evidence.runs):
        for direction in parts(run):
            for name, latency in (
                ("lat", direction.lat),
                ("clat", direction.clat),
                ("slat", direction.slat),
            ):
                if latency is not None:
                    yield index, f"{_named(run, direction)}{name}", latency
        if run.sync is not None:
            yield index, "sync lat", run.sync


def _named(run: Run, direction: Direction) -> str:
    if len(parts(run)) > 1:
        return f"{direction.kind} "
    return ""


def _percentiles(latency: Latency) -> list[Quantity]:
    return [value for value in latency.percentiles.values() if known(value)]


def _pairs(latency: Latency) -> Iterator[tuple[Named, Named]]:
    """Numbers of which the first cannot be above the second."""
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
    """How the first is above the second, beyond rounding and bins; empty when it is not."""
    (name, low), (other_name, high) = first, other
    if low.value != low.value or high.value != high.value:
        return ""
    slack = SLACK if "p" in (name[0], other_name[0]) else 0.0
    if low.low * (1 - slack) <= high.high:
        return ""
    return f"{name} {span(low.value)} above {other_name} {span(high.value)}"


def _same_ios(name: str, part: Latency, whole: Latency) -> bool:
    """fio counts slat when an I/O begins and lat when it ends: around a ramp they are not of the same I/Os."""
    return name == "clat" or part.count == whole.count > 0


def _longer(part: Latency, whole: Latency) -> str:
    """Where a part is longer than the whole; empty where it nowhere is."""
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
