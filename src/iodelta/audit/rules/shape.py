"""Mean and percentiles of one distribution bound each other."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.audit.columns import measured
from iodelta.audit.model import Evidence, Mark, Repair, rule
from iodelta.audit.numbers import count, known, latency, parts, span
from iodelta.audit.rules.depth import slots
from iodelta.ingest import Run
from iodelta.trial import Direction, Latency, Quantity, bin_edges

CAP = float(bin_edges(1855)[0])
"""ns, about 17 s: fio counts every longer I/O in its last bin."""

BIN = 1 / 128
"""Half the relative width of fio's widest bin: fio prints the bin's centre, and the I/O may be faster by this share."""


def _parts(evidence: Evidence) -> Iterator[tuple[int, Run, Direction, Latency]]:
    for index, run in enumerate(evidence.runs):
        for direction in parts(run):
            for latency_ in (direction.lat, direction.clat):
                if latency_ is not None and (
                    bool(latency_.percentiles) and known(latency_.mean)
                ):
                    yield index, run, direction, latency_


def _at(latency: Latency) -> list[tuple[float, Quantity]]:
    """Percentiles between 50 and 100 that the source gives."""
    upper = [item for item in latency.percentiles.items() if 50 <= item[0] < 100]
    return sorted(item for item in upper if known(item[1]))


@rule(
    "mean.below-tail",
    "hard",
    says="the mean is lower than its slowest I/Os allow",
    needs="mean and a percentile of the same latency",
    remedy="they are not of the same latency, or not in the same unit",
)
def below_tail(evidence: Evidence) -> Iterator[Mark]:
    """Markov's inequality: 1 % of I/Os at or above p99 contribute at least p99 / 100 to the mean."""
    for index, _, _, spread in _parts(evidence):
        for p, value in _at(spread):
            least = value.low * (1 - BIN) * (1 - p / 100)
            if spread.mean.high < least:
                text = f"a p{p:g} of {span(value.value)} makes the mean at least {span(least)}"
                yield Mark((index,), f"{text}, not {span(spread.mean.value)}")
                break


@rule(
    "mean.above-percentile",
    "hard",
    says="the mean of a row is above its p99 or p99.9",
    needs="a table with mean and a percentile from p99 on",
    remedy="look for a unit that was mixed up (fio's percentiles change between nsec, usec and msec from run to run)",
)
def above_percentile(evidence: Evidence) -> Iterator[Mark]:
    """Possible only if the slowest 1 % take longer than all others together; in a table it is a mix of units."""
    yield from _above_percentile(evidence, tables=True)


@rule(
    "mean.above-maximum",
    "hard",
    says="the mean is higher than percentile and maximum allow",
    needs="mean, a percentile and the maximum of one latency",
    remedy="these numbers are not of one run; read them again from fio's own output",
)
def above_maximum(evidence: Evidence) -> Iterator[Mark]:
    for index, _, _, spread in _parts(evidence):
        if not known(spread.max):
            continue
        for p, value in _at(spread):
            if value.high >= CAP:
                break
            fast = max(value.high, spread.min.low) * p / 100 * (1 + BIN)
            most = fast + spread.max.high * (1 - p / 100)
            if spread.mean.low > most * (1 + BIN):
                text = f"with p{p:g} {span(value.value)} and a maximum of {span(spread.max.value)}"
                text += (
                    f" the mean is at most {span(most)}, not {span(spread.mean.value)}"
                )
                yield Mark((index,), text)
                break


@rule(
    "mean.made-by-stalls",
    "warning",
    says="a few stalls make the mean",
    needs="mean and p99 or p99.9 of a run",
    remedy="look at latency over time and at the median; the mean and IOPS say little about a usual I/O",
)
def made_by_stalls(evidence: Evidence) -> Iterator[Mark]:
    yield from _above_percentile(evidence, tables=False)


@rule(
    "percentile.unit",
    "hard",
    says="a percentile is far below the mean that IOPS and depth imply",
    needs="a table with IOPS, p99, iodepth and jobs",
    remedy="multiply by 1000: fio prints percentiles in nsec, usec or msec, whichever fits the run",
)
def unit(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.rows():
        most = slots(run)
        if most is None or len(parts(run)) != 1:
            continue
        (direction,) = parts(run)
        iops = direction.iops
        if not known(iops) or not iops.low > 0:
            continue
        mean = most / iops.high * 1e9  # Little's law
        # Percentiles from p99 on that are shorter than a limit in ns.
        limit = mean / 2
        spread = latency(direction)
        percentiles = _at(spread) if spread is not None else []
        tail = [item for item in percentiles if item[0] >= 99]
        below = [item for item in tail if item[1].high < limit]
        if below:
            percent, value = below[0]
            text = f"p{percent:g} is {span(value.value)}, but {count(iops.value)} IOPS at depth {count(most)} make"
            percents = list(dict(below))
            why = "percentiles in the unit of their heading, a thousand times what was written"
            repairs = []
            for title, written, meaning in measured(run):
                if meaning.stat != "percentile" or meaning.percent not in percents:
                    continue
                try:
                    mended = f"{float(written) * 1000:.10g}"
                except ValueError:
                    continue
                repairs.append(Repair(index, title, written, mended, why))
            text += f" the mean {span(mean)}: a thousandfold"
            yield Mark((index,), text, tuple(repairs))


@rule(
    "percentile.capped",
    "warning",
    says="I/Os took longer than fio can record",
    needs="percentiles or bins",
    remedy="use the maximum, or slat and clat logs, for I/Os of more than 17 s",
)
def capped(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        if bool(run.fio_version and run.fio_version[0] in "12"):
            continue
        for direction in parts(run):
            capped = [*_capped(direction.lat), *_capped(direction.clat)]
            if capped:
                text = f"from p{min(capped):g} on every I/O is in fio's last bin (17 s and longer)"
                yield Mark((index,), f"{direction.kind}: {text}")


def _capped(latency: Latency | None) -> list[float]:
    """Return the percentiles that are in fio's last bin."""
    if latency is None:
        return []
    return [p for p, value in latency.percentiles.items() if value.value >= CAP]


RULES = (below_tail, above_percentile, above_maximum, made_by_stalls, unit, capped)


def _above_percentile(evidence: Evidence, *, tables: bool) -> Iterator[Mark]:
    for index, run, _, spread in _parts(evidence):
        if (run.format == "table") != tables:
            continue
        for p, value in _at(spread):
            if p >= 99 and spread.mean.low > value.high:
                yield Mark(
                    (index,),
                    f"the mean of {span(spread.mean.value)} is above the p{p:g} of {span(value.value)}",
                )
                break
