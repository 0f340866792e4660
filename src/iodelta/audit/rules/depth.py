"""Little's law: I/Os in flight = IOPS x mean latency, and no more than iodepth x jobs of them (Little 1961)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from iodelta.audit.columns import measured
from iodelta.audit.model import Evidence, Mark, Repair, rule
from iodelta.audit.numbers import all_known, count, known, latency, parts, span
from iodelta.experiment import facts
from iodelta.figures import two_digits
from iodelta.ingest import Run
from iodelta.trial import Quantity, total

BEYOND = 0.05
"""An excess over the possible I/Os in flight of more than this share, after rounding, means a wrong number."""

GAP = 0.015
"""A deficit up to this share is the time between the end of an I/O and the start of the next."""

LOST = 0.1
"""A deficit of more than this share in a table means that one of its numbers is something else."""

MIXED = frozenset({"rw", "readwrite", "randrw", "trimwrite", "randtrimwrite"})


def slots(run: Run) -> float | None:
    """Return the most I/Os that can be in flight: iodepth x jobs; None if the source does not say.

    The average over the time of the longest job, if the jobs did not all run at once.
    """
    depth = run.workload.iodepth
    # fio's default: its JSON lists every option that was given.
    by_default = depth is None and _lists_options(run)
    if run.workload.ioengine in facts.SYNCHRONOUS or by_default:
        depth = 1
    if not depth:
        return None
    jobs = max(1, run.jobs or run.workload.numjobs or 1)
    if run.concurrency and abs(run.concurrency - jobs) > GAP * jobs:
        return depth * max(1.0, run.concurrency)
    return depth * jobs


def _lists_options(run: Run) -> bool:
    return run.format in ("json", "json+") and bool(run.options)


def in_flight(run: Run) -> Quantity | None:
    """Mean I/Os in flight, with the interval that rounding allows; None if a number is missing.

    The sum over all directions if these ran at the same time: a verify phase does not.
    """
    depths = _of_directions(run)
    if not depths:
        return None
    return total(depths)


def _of_directions(run: Run) -> list[Quantity]:
    directions = parts(run)
    if run.workload.rw not in MIXED and run.format != "table":
        directions = directions[:1]
    depths = []
    for direction in directions:
        spread = latency(direction)
        if spread is None or not all_known(spread.mean, direction.iops):
            return []
        rate, taken = direction.iops, spread.mean
        value = rate.value * taken.value / 1e9
        low = rate.low * taken.low / 1e9
        high = rate.high * taken.high / 1e9
        depths.append(Quantity(value, low, high, "I/Os in flight"))
    return depths


def _depths(
    runs: Iterable[tuple[int, Run]],
) -> Iterator[tuple[int, Run, Quantity, float]]:
    """Index, run, mean I/Os in flight and the most possible; only runs where both numbers are known."""
    for index, run in runs:
        depth, most = in_flight(run), slots(run)
        if depth is not None and most is not None:
            yield index, run, depth, most


def held_back(run: Run) -> bool:
    """Return whether options keep the run from filling its depth, or it waits for its own fsync."""
    return run.sync is not None or any(map(_HOLDS_BACK.match, run.options))


_HOLDS_BACK = re.compile(
    "rate|thinktime|latency_target|iodepth_low|iodepth_batch|fsync|fdatasync"
)
"""The beginnings of options that keep a run from filling its depth."""


@rule(
    "little.impossible",
    "hard",
    says="more I/Os in flight than the depth allows",
    needs="IOPS, mean latency, iodepth and jobs",
    remedy="check units, run time, jobs and which latency this is",
)
def impossible(evidence: Evidence) -> Iterator[Mark]:
    for index, run in enumerate(evidence.runs):
        depth, most = _at_once(run), slots(run)
        if depth is None or most is None:
            continue
        if depth.low <= most * (1 + BEYOND) * (1 + _before(run)):
            continue
        text = f"IOPS x mean latency makes {count(depth.value)} I/Os in flight; iodepth x jobs allows at most {count(most)}"
        if _may_be_of_sections(run):
            text += ", unless the group holds jobs of several sections"
            yield Mark((index,), text, severity="warning")
        else:
            yield Mark((index,), text)


def _at_once(run: Run) -> Quantity | None:
    """I/Os that must have been in flight together: columns of a table may be of tests that ran one after the other."""
    if run.format == "table" and run.workload.rw not in MIXED:
        return max(_of_directions(run), key=lambda part: part.low, default=None)
    return in_flight(run)


def _may_be_of_sections(run: Run) -> bool:
    """Return whether a group may contain jobs of several sections. Its depth and JSON's numjobs are then those of one
    section, and the group may contain more jobs."""
    is_report = run.format in ("json", "json+", "text")
    if run.group is None or not is_report:
        return False
    return run.jobs != 1 or not _is_one_at_a_time(run)


def _is_one_at_a_time(run: Run) -> bool:
    """Return whether a group of one job is known to contain no other: the text counts the jobs, JSON shows when they
    ran.
    """
    if run.format == "text":
        return True
    return run.concurrency is not None and run.concurrency < 1.5


@rule(
    "little.mismatch",
    "hard",
    says="IOPS and mean latency of a row contradict each other",
    needs="a table with IOPS, mean latency, iodepth and jobs",
    remedy="take the mean from fio's 'lat' line or its lat_ns; the first line of its text is often submission latency",
)
def mismatch(evidence: Evidence) -> Iterator[Mark]:
    for index, run, depth, most in _depths(evidence.rows()):
        if _runs_empty(run) or depth.high >= most * (1 - LOST):
            continue
        share = depth.value / most
        why = "half of the run or more was a stall, or one number is wrong"
        if share < LOST:
            why = "this is probably fio's submission latency, not the total latency"
        yield Mark(
            (index,),
            f"IOPS x mean latency makes {two_digits(depth.value)} I/Os in flight of {count(most)} "
            f"({two_digits(share)} of it): {why}",
            _mended(index, run, most) if share < LOST else (),
        )


def _runs_empty(run: Run) -> bool:
    """Return whether the depth falls at the end by design: each thread of elbencho has a fixed share of the work, and
    the rates are over the time until the last thread is done."""
    return run.table == "elbencho"


def _before(run: Run) -> float:
    """Return how much longer than the measured window its I/Os may have been in flight, as a share of the window: fio
    counts the whole latency of an I/O that began in the ramp, at most the maximum."""
    if run.options.get("ramp_time", "0").strip("0 smu") == "":
        return 0.0
    reach = 0.0
    for direction in parts(run):
        taken = latency(direction)
        if taken is not None and known(taken.max) and direction.runtime_ms:
            reach = max(reach, taken.max.value / (1e6 * direction.runtime_ms))
    return reach


def _mended(index: int, run: Run, most: float) -> tuple[Repair, ...]:
    """Return a repair by Little's law: the mean latency, if one direction did all I/O."""
    if len(parts(run)) != 1:
        return ()
    iops = parts(run)[0].iops.value
    why = "mean latency is iodepth x jobs / IOPS (Little's law)"
    for title, written, meaning in measured(run):
        if meaning.stat == "mean" and meaning.scale and iops > 0:
            mended = most / iops * 1e9 / meaning.scale
            return (Repair(index, title, written, f"{mended:.3g}", why),)
    return ()


@rule(
    "little.gap",
    "warning",
    says="the mean of a row lacks part of each I/O's time",
    needs="a table with IOPS, mean latency, iodepth and jobs, printed finely enough",
    remedy="compare total latency (lat), not completion latency (clat), with other tools and engines",
)
def gap(evidence: Evidence) -> Iterator[Mark]:
    for index, run, depth, most in _depths(evidence.rows()):
        if _runs_empty(run) or depth.high < most * (1 - LOST):
            continue
        is_fine = depth.high - depth.low <= GAP * most
        if is_fine and depth.value < most * (1 - GAP):
            iops = sum(direction.iops.value for direction in parts(run))
            absent = span((most - depth.value) / iops * 1e9)
            text = f"{depth.value:.4g} of {count(most)} I/Os were in flight: the mean lacks {absent} of each I/O"
            text += ", as completion latency does"
            yield Mark((index,), text)


@rule(
    "depth.not-reached",
    "warning",
    says="fewer I/Os were in flight than iodepth says",
    needs="a run of fio with IOPS, mean latency, iodepth and jobs",
    remedy="use direct I/O and an asynchronous engine; look at submission latency, CPU use and limits",
)
def not_reached(evidence: Evidence) -> Iterator[Mark]:
    for index, run, depth, most in _depths(evidence.measured()):
        is_synchronous = run.workload.ioengine in facts.SYNCHRONOUS
        if is_synchronous or held_back(run):
            continue
        if most >= 2 and depth.high < most * (1 - LOST):
            text = (
                f"on average {count(depth.value)} of {count(most)} I/Os were in flight"
            )
            yield Mark((index,), text)


@rule(
    "depth.ignored",
    "warning",
    says="a synchronous engine ignores iodepth",
    needs="ioengine and iodepth",
    remedy="report it as depth 1, or use libaio or io_uring with direct=1",
)
def ignored(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        by_default = facts.DEFAULT_ENGINE if _lists_options(run) else ""
        engine, depth = run.workload.ioengine or by_default, run.workload.iodepth or 1
        if depth > 1 and engine in facts.SYNCHRONOUS:
            yield Mark(
                (index,),
                f"{engine} does one I/O at a time: iodepth={depth} had no effect",
            )


RULES = (impossible, mismatch, gap, not_reached, ignored)
