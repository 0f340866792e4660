"""One run shown several times in one file, by status-interval or in several formats: kept once, the rest a check."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, starmap

import msgspec

from iodelta.ingest.model import Refusal, Run
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
_SAME_START = 2.0
"""Seconds by which printed - elapsed may differ between reports of one run: fio counts whole seconds."""

_RAMP = 0.01
"""Share by which rates differ at most for I/Os in flight when a ramp ended."""

_CLONES = 64
"""Reports of one format before one of another that are looked at as its clones."""

Report = list[Run | Refusal]


def once(reports: Sequence[Report]) -> list[Run | Refusal]:
    """``reports`` (one per document, invocation or block of records, in order) with each run kept once."""
    return list(chain.from_iterable(_one_format(_last(reports))))


def _last(reports: Sequence[Report]) -> list[Report]:
    """Of cumulative reports of one run, as status-interval prints them, the last."""
    kept: list[Report] = []
    counts: list[int] = []
    latest: dict[str, int] = {}
    for report in reports:
        form = _format(report)
        before = latest.get(form)
        if before is not None and form in _RANK and _continues(kept[before], report):
            kept[before] = report
            counts[before] += 1
        else:
            latest[form] = len(kept)
            kept.append(report)
            counts.append(1)
    return [_marked(report, count) for report, count in zip(kept, counts, strict=True)]


def _format(report: Report) -> str:
    return next((run.format for run in report if isinstance(run, Run)), "")


def _marked(report: Report, count: int) -> Report:
    if count == 1:
        return report
    text = f"the last of {count} cumulative reports (status-interval) is used"
    return [
        msgspec.structs.replace(
            run,
            findings=(
                *run.findings,
                Finding("read.status-interval", "note", _at(run), text),
            ),
        )
        if isinstance(run, Run)
        else run
        for run in report
    ]


def _continues(earlier: Report, later: Report) -> bool:
    """Whether ``later`` is the same run some time on: all that only grows has grown, and nothing says otherwise."""
    before = [run for run in earlier if isinstance(run, Run)]
    grown = False
    for run, twin in zip(before, _twins(before, later), strict=True):
        if twin is None or not _may_be_one(run, twin):
            return False
        known = bool((run.pid and twin.pid) or (run.started and twin.started))
        for old in run.directions:
            new = twin.direction(old.kind)
            if new is None or not _went_on(old, new, known=known):
                return False
            grown = grown or new.runtime_ms != old.runtime_ms
        grown = grown or not run.directions
    return grown


def _may_be_one(run: Run, twin: Run) -> bool:
    """Whether process, version and start do not contradict that two reports are of one run."""
    if run.pid and twin.pid and run.pid != twin.pid:
        return False
    if run.fio_version != twin.fio_version:
        return False
    if not run.started or not twin.started:
        return True
    return abs(run.started - twin.started) <= _SAME_START


def _went_on(old: Direction, new: Direction, *, known: bool) -> bool:
    """Whether ``new`` can be ``old`` some time on; ``known``: process or start say that they are of one run."""
    if new.ios < old.ios or new.bytes < old.bytes:
        return False
    # fio < 3.30: a job's time ran on after its end, but for the last.
    is_shorter = new.runtime_ms < old.runtime_ms
    if is_shorter and not (known and (new.ios, new.bytes) == (old.ios, old.bytes)):
        return False
    if known and not is_shorter:  # two short runs may have begun within one second
        return _extremes_widen(old, new)
    return _could_grow(old, new)


def _latencies(old: Direction, new: Direction) -> list[tuple[Latency, Latency]]:
    """The latencies that both have."""
    pairs = [
        (getattr(old, name), getattr(new, name)) for name in ("slat", "clat", "lat")
    ]
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def _extremes_widen(old: Direction, new: Direction) -> bool:
    """Whether the least and the greatest latency only moved outwards, as they do within a run."""
    pairs = _latencies(old, new)
    return all(b.max.high >= a.max.low and b.min.low <= a.min.high for a, b in pairs)


def _could_grow(old: Direction, new: Direction) -> bool:
    """Whether ``new`` can be ``old`` and more: extremes move outwards only, and the rest at no unheard-of rate."""
    if not _extremes_widen(old, new):
        return False
    if old.bytes == new.bytes:
        return all(a.mean.overlaps(b.mean) for a, b in _latencies(old, new))
    added = (new.bytes - old.bytes) * old.runtime_ms
    return added <= 5 * old.bytes * (new.runtime_ms - old.runtime_ms + 1)


def _twins(before: Sequence[Run], later: Report) -> Iterator[Run | None]:
    """For each run the entry of ``later`` for the same job: same name, group and place among those (clones)."""
    left: dict[tuple[str, int | None], list[Run]] = {}
    for run in later:
        if isinstance(run, Run):
            left.setdefault((run.jobname, run.group), []).append(run)
    for run in before:
        alike = left.get((run.jobname, run.group))
        yield alike.pop(0) if alike else None


def _one_format(reports: Sequence[Report]) -> list[Report]:
    """Neighbours that show the same runs in different formats as one report, in the best of them."""
    kept: list[Report] = []
    for report in reports:
        for count in range(
            _alike(kept) if kept and _format(kept[-1]) != _format(report) else 0, 0, -1
        ):
            # Terse records of clones stand apart.
            before = list(chain.from_iterable(kept[-count:]))
            matches = list(_matches(before, report))
            if matches and len(matches) == min(_runs(before), _runs(report)):
                kept[-count:] = [_joined(before, report, matches)]
                break
        else:
            kept.append(report)
    return kept


def _runs(report: Report) -> int:
    return sum(isinstance(run, Run) for run in report)


def _alike(kept: Sequence[Report]) -> int:
    """How many of the last reports are of the format of the last."""
    forms = [_format(report) for report in kept[-_CLONES:]]
    return next(
        (n for n, form in enumerate(reversed(forms)) if form != forms[-1]), len(forms)
    )


def _matches(before: Report, report: Report) -> Iterator[tuple[Run, Run]]:
    """Pairs of entries that show one job: counts and run time agree."""
    left = [run for run in report if isinstance(run, Run)]
    for run in before:
        if not isinstance(run, Run):
            continue
        twin = next((other for other in left if _same(run, other)), None)
        if twin is not None:
            left.remove(twin)
            yield run, twin


def _same(run: Run, other: Run) -> bool:
    if (run.jobname, run.group) != (other.jobname, other.group):
        return False
    versions = {run.fio_version, other.fio_version} - {None, ""}
    if len(versions) > 1:
        return False
    if other.format in run.also or other.format == run.format:
        return False
    if (
        run.error
        and run.error == other.error
        and not (run.directions and other.directions)
    ):
        return True
    return _same_directions(run.directions, other.directions)


def _same_directions(some: Sequence[Direction], others: Sequence[Direction]) -> bool:
    """Whether there are as many, of the same kinds unless one is the sum of them, and each shows the same."""
    kinds = {direction.kind for direction in some}
    other_kinds = {direction.kind for direction in others}
    if len(some) != len(others) or (
        kinds != other_kinds and "mixed" not in kinds | other_kinds
    ):
        return False
    return all(map(_same_direction, some, others))


def _same_direction(x: Direction, y: Direction) -> bool:
    """The counts agree as far as both formats give them; two runs of one job hardly ever do.

    With ramp_time a report has the bytes of I/Os that were issued before its end but not their count: where a format
    says one and another the other, rates are as close, and latencies must agree."""
    if x.runtime_ms != y.runtime_ms or (x.ios and y.ios and x.ios != y.ios):
        return False
    if x.iops.overlaps(y.iops) and x.bandwidth.overlaps(y.bandwidth):
        return True
    return (
        _close(x.iops, y.iops)
        and _close(x.bandwidth, y.bandwidth)
        and latencies_agree(x, y)
    )


def _close(x: Quantity, y: Quantity) -> bool:
    return x.overlaps(y) or abs(x.value - y.value) <= _RAMP * max(x.value, y.value)


def latencies_agree(x: Direction, y: Direction) -> bool:
    """Whether both have latencies, and the same."""
    pairs = [
        (a, b)
        for name, a, b in shared(x, y)
        if name not in ("iops", "bandwidth") and not math.isnan(a.value)
    ]
    return bool(pairs) and all(a.overlaps(b) for a, b in pairs)


def over_files(runs: Sequence[Run]) -> list[Run]:
    """``runs`` of several files with each that two of them show in different formats kept once, and said so."""
    kept: list[Run] = []
    places: dict[Hashable, list[int]] = {}
    for run in runs:
        counts = tuple((d.kind, d.runtime_ms, d.ios) for d in run.directions)
        alike = places.setdefault((run.jobname, run.group, counts), [])
        at = next((number for number in alike if _shown_twice(kept[number], run)), None)
        if at is None:
            alike.append(len(kept))
            kept.append(run)
            continue
        best, other = sorted(
            (kept[at], run), key=lambda kind: _RANK.get(kind.format, 9)
        )
        text = (
            f"the same run is in {other.place.file} as {other.format}: it counts once"
        )
        finding = Finding("read.twice", "note", _at(best), text)
        kept[at] = msgspec.structs.replace(
            _best(best, other), findings=(*best.findings, finding)
        )
    return kept


def _shown_twice(run: Run, other: Run) -> bool:
    """The same counts and latencies, and as many context switches: no second run has them all."""
    if (
        run.place.file == other.place.file
        or not run.directions
        or run.format == other.format
    ):
        return False
    if not {run.format, other.format} <= _RANK.keys() or not _same(run, other):
        return False
    switches = None not in (run.context_switches, other.context_switches)
    if switches and run.context_switches != other.context_switches:
        return False
    return all(
        latencies_agree(x, y)
        for x, y in zip(run.directions, other.directions, strict=True)
    )


def _joined(
    before: Report, report: Report, matches: Sequence[tuple[Run, Run]]
) -> Report:
    """In the order of the fuller report, each pair as one run; entries of one side alone are kept."""
    of: dict[int, tuple[Run, Run]] = {}
    for pair in matches:
        of |= dict.fromkeys(map(id, pair), pair)
    base, rest = (before, report) if len(before) >= len(report) else (report, before)
    joined: Report = [_best(*of[id(run)]) if id(run) in of else run for run in base]
    return joined + [run for run in rest if id(run) not in of]


def _best(first: Run, second: Run) -> Run:
    """The better format, with what only the other knows filled in, and where they contradict each other found."""
    best, other = sorted((first, second), key=lambda run: _RANK.get(run.format, 9))
    both = _paired(best.directions, other.directions)
    fuller = {name: getattr(best, name) or getattr(other, name) for name in _EITHER}
    return msgspec.structs.replace(
        best,
        directions=tuple(starmap(_filled, both)) or best.directions or other.directions,
        jobs=_jobs(best, other),
        pid=best.pid if best.pid is not None else other.pid,
        ended=best.ended if best.ended is not None else other.ended,
        local_time=best.local_time if best.ended is not None else other.local_time,
        workload=known(best.workload, other.workload),
        also=(
            *best.also,
            other.format,
            *(form for form in other.also if form not in best.also),
        ),
        findings=_findings_of_both(best, other, both),
        **fuller,
    )


def _paired(
    some: Sequence[Direction], others: Sequence[Direction]
) -> list[tuple[Direction, Direction]]:
    """Each with the other's; none where one has none."""
    if some and others:
        return list(zip(some, others, strict=True))
    return []


def _findings_of_both(
    best: Run, other: Run, both: Sequence[tuple[Direction, Direction]]
) -> tuple[Finding, ...]:
    """Those of the better format, what only the other has, and where they contradict each other."""
    rules = {finding.rule for finding in best.findings}
    findings = (
        *best.findings,
        *(finding for finding in other.findings if finding.rule not in rules),
    )
    disagree = list(chain.from_iterable(starmap(_differences, both)))
    if not disagree:
        return findings
    text = f"the file also shows this run as {other.format}, where {'; '.join(disagree[:5])}"
    return (*findings, Finding("read.disagree", "warning", _at(best), text))


_EITHER = ("fio_version", "options", "sync", "disks", "depths", "samplers")
"""What is taken from the other format where the better one has none."""


def _jobs(best: Run, other: Run) -> int | None:
    """The normal report counts the jobs of a group; elsewhere their number is worked out."""
    if other.format == "text" or best.jobs is None:
        return other.jobs
    return best.jobs


def _lacks_percentiles(latency: Latency | None) -> bool:
    return latency is not None and not latency.percentiles and not latency.histogram


def _filled(best: Direction, other: Direction) -> Direction:
    """Counts and latencies that only ``other`` has."""
    parts: dict[str, Latency | None] = {}
    for name in ("slat", "clat", "lat"):
        mine, theirs = getattr(best, name), getattr(other, name)
        parts[name] = mine or theirs
        if _lacks_percentiles(mine) and theirs is not None:
            parts[name] = msgspec.structs.replace(mine, percentiles=theirs.percentiles)
    return msgspec.structs.replace(
        best,
        ios=best.ios or other.ios,
        bytes=best.bytes or other.bytes,
        iops=other.iops if other.ios and not best.ios else best.iops,
        **parts,
    )


def _differences(a: Direction, b: Direction) -> Iterator[str]:
    """Quantities whose intervals do not meet. With lat_percentiles a terse record has those of lat in clat's place."""
    swapped = a.lat.percentiles if a.lat is not None else {}
    for name, x, y in shared(a, b):
        percent = float(name.rpartition(" p")[2]) if name.startswith("clat p") else 0.0
        if not x.overlaps(y) and not (
            percent in swapped and swapped[percent].overlaps(y)
        ):
            yield f"{a.kind} {name} is {y.value:g} {y.unit} and not {x.value:g}"


def shared(a: Direction, b: Direction) -> Iterator[tuple[str, Quantity, Quantity]]:
    """Name and both values of every quantity that two accounts of one direction give."""
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


def _at(run: Run) -> str:
    return f"{run.place.file}:{run.place.line}"
