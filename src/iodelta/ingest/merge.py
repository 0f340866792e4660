"""Keep a run once that a file shows several times: with status-interval, or in several formats, as a check."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, starmap, takewhile

import msgspec

from iodelta.ingest.model import Run, RunOrRefusal
from iodelta.ingest.options import known
from iodelta.trial import Direction, Finding, Latency, Quantity

_RANK = {
    "json+": 0,
    "json": 1,
    "text": 2,
    "terse5": 3,
    "terse4": 4,
    "terse3": 5,
    "terse2": 6,
}
"""Formats of whole runs, the most complete first."""


def _rank(run: Run) -> int:
    return _RANK.get(run.format, 9)


_SAME_START = 2.0
"""Seconds by which the start (printed - elapsed) may differ between reports of one run: fio counts whole seconds."""

_RAMP = 0.01
"""Most relative difference between rates because of I/Os in flight at the end of a ramp."""

_CLONES = 64
"""Most preceding reports of another format that are compared as clones of one report."""

Report = list[RunOrRefusal]


def once(reports: Sequence[Report]) -> list[RunOrRefusal]:
    """Return the entries of ``reports`` (one per document, invocation or block of records, in order), each run once."""
    # The last of cumulative reports of one run, which status-interval prints.
    final: list[Report] = []
    counts: list[int] = []
    latest: dict[str, int] = {}
    for report in reports:
        form = _format(report)
        before = latest.get(form) if form in _RANK else None
        if before is not None and _continues(final[before], report):
            final[before] = report
            counts[before] += 1
        else:
            latest[form] = len(final)
            final.append(report)
            counts.append(1)
    # Merge neighbours that show the same runs in different formats into one report, in the best format.
    reports_ = list(map(_marked, final, counts))
    merged: list[Report] = []
    for report_ in reports_:
        is_other_format = bool(merged) and _format(merged[-1]) != _format(report_)
        most = _alike(merged) if is_other_format else 0
        # Terse records of clones are separate: several reports may correspond to one.
        for count in range(most, 0, -1):
            before_ = list(chain.from_iterable(merged[-count:]))
            matches = list(_matches(before_, report_))
            fewer = min(len(_runs(before_)), len(_runs(report_)))
            if matches and len(matches) == fewer:
                # Each pair as one run, in the order of the longer report; entries without a counterpart are kept.
                pair_of: dict[int, tuple[Run, Run]] = {}
                for pair in matches:
                    pair_of |= dict.fromkeys(map(id, pair), pair)
                is_fuller = len(before_) >= len(report_)
                base, rest = (before_, report_) if is_fuller else (report_, before_)
                joined: Report = []
                for run in base:
                    pair_or_none = pair_of.get(id(run))
                    joined.append(_best(*pair_or_none) if pair_or_none else run)
                unmatched = [run for run in rest if id(run) not in pair_of]
                merged[-count:] = [(joined + unmatched)]
                break
        else:
            merged.append(report_)
    return list(chain.from_iterable(merged))


def _format(report: Report) -> str:
    formats = (run.format for run in _runs(report))
    return next(formats, "")


def _marked(report: Report, count: int) -> Report:
    """Return the last of ``count`` cumulative reports, with a note in each of its runs."""
    if count == 1:
        return report
    text = f"the last of {count} cumulative reports (status-interval) is used"
    marked: Report = []
    for run in report:
        if isinstance(run, Run):
            note = Finding("read.status-interval", "note", str(run.place), text)
            run = msgspec.structs.replace(run, findings=(*run.findings, note))
        marked.append(run)
    return marked


def _continues(earlier: Report, later: Report) -> bool:
    """Return whether ``later`` shows the same runs at a later time: counts have grown, and nothing contradicts it."""
    runs = _runs(earlier)
    twins = list(_twins(runs, later))
    return all(map(_is_later, runs, twins)) and any(map(_has_grown, runs, twins))


def _is_later(run: Run, twin: Run | None) -> bool:
    """Return whether ``twin`` can be ``run`` at a later time."""
    if twin is None or not _may_be_one(run, twin):
        return False
    have_pid = bool(run.pid and twin.pid)
    have_start = bool(run.started and twin.started)
    for old in run.directions:
        new = twin.direction(old.kind)
        if new is None or not _went_on(old, new, known=have_pid or have_start):
            return False
    return True


def _has_grown(run: Run, twin: Run | None) -> bool:
    """Return whether the run time of a direction differs between ``run`` and ``twin``, or ``run`` has no direction yet."""
    if twin is None or not run.directions:
        return True
    later = [(old, twin.direction(old.kind)) for old in run.directions]
    return any(
        new is not None and new.runtime_ms != old.runtime_ms for old, new in later
    )


def _may_be_one(run: Run, twin: Run) -> bool:
    """Return whether process, version and start allow two reports to be of one run."""
    have_pid = run.pid and twin.pid
    if have_pid and run.pid != twin.pid:
        return False
    if run.fio_version != twin.fio_version:
        return False
    if not run.started or not twin.started:
        return True
    return abs(run.started - twin.started) <= _SAME_START


def _went_on(old: Direction, new: Direction, *, known: bool) -> bool:
    """Return whether ``new`` can be ``old`` at a later time; ``known``: process or start show that the run is the same."""
    if new.ios < old.ios or new.bytes < old.bytes:
        return False
    # Before fio 3.30 the run time of a job continued after its end, except in the last report.
    is_shorter = new.runtime_ms < old.runtime_ms
    has_ended = known and (new.ios, new.bytes) == (old.ios, old.bytes)
    if is_shorter and not has_ended:
        return False
    if known and not is_shorter:  # two short runs may have begun within one second
        return _extremes_widen(old, new)
    # Whether `new` can continue `old`: extremes only move outwards, bytes grow at most five times as fast.
    if not _extremes_widen(old, new):
        return False
    if old.bytes == new.bytes:
        return all(a.mean.overlaps(b.mean) for a, b in _latencies(old, new))
    added = (new.bytes - old.bytes) * old.runtime_ms
    return added <= 5 * old.bytes * (new.runtime_ms - old.runtime_ms + 1)


def _latencies(old: Direction, new: Direction) -> list[tuple[Latency, Latency]]:
    """Return the latencies that both have."""
    before, after = old.latencies(), new.latencies()
    return [(before[name], after[name]) for name in before.keys() & after.keys()]


def _extremes_widen(old: Direction, new: Direction) -> bool:
    """Return whether minimum and maximum of the latencies only moved outwards, as within one run."""
    pairs = _latencies(old, new)
    return all(b.max.high >= a.max.low and b.min.low <= a.min.high for a, b in pairs)


def _twins(before: Sequence[Run], later: Report) -> Iterator[Run | None]:
    """For each run, the entry of ``later`` for the same job: same name, group, and place among its clones; or None."""
    left: dict[tuple[str, int | None], list[Run]] = {}
    for run in _runs(later):
        left.setdefault((run.jobname, run.group), []).append(run)
    for run in before:
        alike = left.get((run.jobname, run.group))
        yield alike.pop(0) if alike else None


def _runs(report: Report) -> list[Run]:
    """Return the entries of a report that could be read."""
    return [run for run in report if isinstance(run, Run)]


def _alike(reports: Sequence[Report]) -> int:
    """Number of reports at the end with the same format."""
    forms = [_format(report) for report in reports[-_CLONES:]]
    return len(list(takewhile(forms[-1].__eq__, reversed(forms))))


def _matches(before: Report, report: Report) -> Iterator[tuple[Run, Run]]:
    """Pairs of entries that show one job: counts and run time agree."""
    left = _runs(report)
    for run in _runs(before):
        twin = next((other for other in left if _same(run, other)), None)
        if twin is not None:
            left.remove(twin)
            yield run, twin


def _same(run: Run, other: Run) -> bool:
    """Return whether two entries of different formats show one job."""
    if (run.jobname, run.group) != (other.jobname, other.group):
        return False
    versions = {run.fio_version, other.fio_version} - {None, ""}
    formats = {run.format, *run.also}
    if len(versions) > 1 or other.format in formats:
        return False
    failed_alike = bool(run.error) and run.error == other.error
    have_io = bool(run.directions and other.directions)
    if failed_alike and not have_io:
        return True
    # Whether there are as many, of the same kinds unless one is the sum of them, and each shows the same.
    some = run.directions
    others = other.directions
    if len(some) != len(others):
        return False
    kinds = {direction.kind for direction in some}
    other_kinds = {direction.kind for direction in others}
    has_sum = "mixed" in kinds | other_kinds
    if kinds != other_kinds and not has_sum:
        return False
    return all(map(_same_direction, some, others))


def _same_direction(x: Direction, y: Direction) -> bool:
    """Return whether the counts agree as far as both formats give them, which those of two runs hardly ever do.

    With ramp_time a report contains the bytes, but not the count, of I/Os in flight at the end of the ramp. If formats
    give different ones of these, rates must be close, and latencies must agree.
    """
    have_counts = x.ios and y.ios
    if have_counts and x.ios != y.ios:
        return False
    if x.runtime_ms != y.runtime_ms:
        return False
    if x.iops.overlaps(y.iops) and x.bandwidth.overlaps(y.bandwidth):
        return True
    are_close = _close(x.iops, y.iops) and _close(x.bandwidth, y.bandwidth)
    return are_close and latencies_agree(x, y)


def _close(x: Quantity, y: Quantity) -> bool:
    return x.overlaps(y) or abs(x.value - y.value) <= _RAMP * max(x.value, y.value)


def latencies_agree(x: Direction, y: Direction) -> bool:
    """Return whether both have latencies, and these agree."""
    latencies = [(a, b) for name, a, b in shared(x, y) if name not in _RATES]
    pairs = [(a, b) for a, b in latencies if not math.isnan(a.value)]
    return bool(pairs) and all(a.overlaps(b) for a, b in pairs)


_RATES = ("iops", "bandwidth")


def over_files(runs: Sequence[Run]) -> list[Run]:
    """The runs of several files; a run that two files show in different formats is kept once, with a note."""
    unique: list[Run] = []
    places: dict[Hashable, dict[str, list[int]]] = {}
    for run in runs:
        counts = tuple((d.kind, d.runtime_ms, d.ios) for d in run.directions)
        alike = places.setdefault((run.jobname, run.group, counts), {})
        others = (numbers for form, numbers in alike.items() if form != run.format)
        twins = (
            number
            for number in chain.from_iterable(others)
            if _shown_twice(unique[number], run)
        )
        twin = next(twins, None)
        if twin is None:
            alike.setdefault(run.format, []).append(len(unique))
            unique.append(run)
        else:
            unique[twin] = _of_two_files(unique[twin], run)
    return unique


def _of_two_files(run: Run, twin: Run) -> Run:
    best, other = sorted((run, twin), key=_rank)
    text = f"the same run is in {other.place.file} as {other.format}: it counts once"
    note = Finding("read.twice", "note", str(best.place), text)
    findings = (*best.findings, note)
    return msgspec.structs.replace(_best(best, other), findings=findings)


def _shown_twice(run: Run, other: Run) -> bool:
    """Return whether two files show one run: equal counts, latencies and context switches, as no second run has."""
    are_apart = run.place.file != other.place.file and run.format != other.format
    if not are_apart or not run.directions:
        return False
    if not {run.format, other.format} <= _RANK.keys() or not _same(run, other):
        return False
    switches = {run.context_switches, other.context_switches}
    if None not in switches and len(switches) > 1:
        return False
    return all(map(latencies_agree, run.directions, other.directions))


def _best(first: Run, second: Run) -> Run:
    """Return the better format, completed from the other, with a warning if they contradict each other."""
    best, other = sorted((first, second), key=_rank)
    # Pairs of directions; empty if one run has none.
    both: list[tuple[Direction, Direction]]
    if best.directions and other.directions:
        both = list(zip(best.directions, other.directions, strict=True))
    else:
        both = []
    filled = tuple(starmap(_filled, both))
    fuller = {name: getattr(best, name) or getattr(other, name) for name in _EITHER}
    timed = best if best.ended is not None else other
    further = (form for form in other.also if form not in best.also)
    return msgspec.structs.replace(
        best,
        directions=filled or best.directions or other.directions,
        jobs=_jobs(best, other),
        pid=best.pid if best.pid is not None else other.pid,
        ended=timed.ended,
        local_time=timed.local_time,
        workload=known(best.workload, other.workload),
        also=(*best.also, other.format, *further),
        findings=_findings_of_both(best, other, both),
        **fuller,
    )


def _findings_of_both(
    best: Run, other: Run, both: Sequence[tuple[Direction, Direction]]
) -> tuple[Finding, ...]:
    """Return the findings of the better format, further ones of the other, and their contradictions."""
    rules = {finding.rule for finding in best.findings}
    further = (finding for finding in other.findings if finding.rule not in rules)
    findings = (*best.findings, *further)
    disagree = list(chain.from_iterable(starmap(_differences, both)))
    if not disagree:
        return findings
    text = f"the file also shows this run as {other.format}, where {'; '.join(disagree[:5])}"
    return (*findings, Finding("read.disagree", "warning", str(best.place), text))


_EITHER = ("fio_version", "options", "sync", "disks", "depths", "samplers")
"""Fields that are taken from the other format if the better one lacks them."""


def _jobs(best: Run, other: Run) -> int | None:
    """Number of jobs: fio prints it only in the normal report, from other formats it is derived."""
    if other.format == "text" or best.jobs is None:
        return other.jobs
    return best.jobs


def _filled(best: Direction, other: Direction) -> Direction:
    """``best`` with the counts and latencies that only ``other`` has."""
    parts: dict[str, Latency | None] = {}
    for name in ("slat", "clat", "lat"):
        mine, theirs = getattr(best, name), getattr(other, name)
        parts[name] = mine or theirs
        if (
            mine is not None and not mine.percentiles and not mine.histogram
        ) and theirs is not None:
            parts[name] = msgspec.structs.replace(mine, percentiles=theirs.percentiles)
    counted = other if other.ios and not best.ios else best
    return msgspec.structs.replace(
        best,
        ios=counted.ios,
        bytes=best.bytes or other.bytes,
        iops=counted.iops,
        **parts,
    )


def _differences(a: Direction, b: Direction) -> Iterator[str]:
    """Quantities whose intervals do not overlap. With lat_percentiles a terse record has those of lat as clat."""
    of_lat = a.lat.percentiles if a.lat is not None else {}
    for name, x, y in shared(a, b):
        measure, _, rank = name.rpartition(" p")
        swapped = of_lat.get(float(rank)) if measure == "clat" else None
        is_swapped = swapped is not None and swapped.overlaps(y)
        if not x.overlaps(y) and not is_swapped:
            yield f"{a.kind} {name} is {y.value:g} {y.unit} and not {x.value:g}"


def shared(a: Direction, b: Direction) -> Iterator[tuple[str, Quantity, Quantity]]:
    """Name and both values of every quantity in both reports of a direction: ``iops``, ``bandwidth``, ``clat mean``,
    ``clat p99.9``."""
    yield "iops", a.iops, b.iops
    yield "bandwidth", a.bandwidth, b.bandwidth
    for name in ("slat", "clat", "lat"):
        x, y = getattr(a, name), getattr(b, name)
        if x is None or y is None:
            continue
        for part in ("mean", "stddev", "min", "max"):
            yield f"{name} {part}", getattr(x, part), getattr(y, part)
        for percent, value in x.percentiles.items():
            if percent in y.percentiles:
                yield f"{name} p{percent:g}", value, y.percentiles[percent]
