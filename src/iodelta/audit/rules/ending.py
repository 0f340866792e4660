"""How a run ended: errors, incomplete I/Os, too early or too late."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import parts
from iodelta.ingest import Run
from iodelta.trial import Severity

INCOMPLETE = 0.001
"""If more than this share of I/Os is short or dropped, the numbers are unusable."""

EARLY = 0.98
"""A run that lasted less than this share of the requested time ended early."""


@rule(
    "run.error",
    "hard",
    says="fio reports an error",
    needs="a run of fio",
    remedy="see the lines fio wrote before its result, and repeat the run",
)
def error(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        if run.error:
            yield Mark((index,), f"error {run.error}")


@rule(
    "run.no-io",
    "hard",
    says="the run did no I/O",
    needs="a run of fio",
    remedy="see the lines fio wrote before its result",
)
def no_io(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        has_results = bool(parts(run) or run.series or run.measured)
        if not has_results and not run.error and _asks_for_io(run):
            yield Mark((index,), "no direction has any I/O")


def _asks_for_io(run: Run) -> bool:
    is_idle = run.workload.ioengine in ("cpuio", "exec")
    return not is_idle and run.options.get("create_only", "0") == "0"


@rule(
    "run.incomplete-ios",
    "hard",
    says="I/Os were short or dropped",
    needs="counts of short and dropped I/Os",
    remedy="is the target's size a multiple of the block size, and is it large enough?",
)
def incomplete(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        for direction in parts(run):
            bad = direction.short + direction.dropped
            if bad:
                is_much = bad > INCOMPLETE * max(direction.ios, 1)
                severity: Severity = "hard" if is_much else "warning"
                text = f"{direction.short} short and {direction.dropped} dropped of {direction.ios} {direction.kind}s"
                yield Mark((index,), text, severity=severity)


@rule(
    "run.early-end",
    "warning",
    says="the run ended before its time",
    needs="runtime asked for and run time",
    remedy="was it interrupted? With time_based all runs take equally long",
)
def early(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        asked, took = _asked(evidence, index), _took(run)
        ends_when_steady = not _STEADY.isdisjoint(run.options)
        if ends_when_steady or not 0 < took < EARLY * asked:
            continue
        text = f"it measured {took:g} of {asked:g} s"
        if _finished(run):
            text += ": all of the given size was done"
            yield Mark((index,), text, severity="note")
        else:
            yield Mark((index,), text)


_STEADY = frozenset(("ss", "steadystate"))
"""Options with which fio ends a run as soon as it is steady."""


def _finished(run: Run) -> bool:
    """Return whether the run completed its ``size``."""
    size = run.workload.size
    if size is None or "time_based" in run.options:
        return False
    moved = sum(direction.bytes for direction in parts(run))
    return moved >= 0.98 * size * max(1, run.jobs or 1)


@rule(
    "run.late-end",
    "warning",
    says="the run went on beyond its time",
    needs="runtime asked for and run time",
    remedy="some I/O took very long; look at the maximum latency and for stalls",
)
def late(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        asked, took = _asked(evidence, index), _took(run)
        if asked and took > asked / EARLY + 0.1:
            yield Mark((index,), f"it measured {took:g} s instead of {asked:g} s")


def _asked(evidence: Evidence, index: int) -> float:
    """Seconds requested; for several runs in one boot, which count their rates separately, the sum over the runs."""
    counted = evidence.counters[index] if evidence.counters else ()
    runs = sum(name.startswith("run.") and name.endswith(".iops") for name in counted)
    return (evidence.runs[index].workload.runtime or 0.0) * max(1, runs)


def _took(run: Run) -> float:
    return max((direction.runtime_ms for direction in parts(run)), default=0) / 1000


RULES = (error, no_io, incomplete, early, late)
