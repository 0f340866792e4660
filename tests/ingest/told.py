"""What was read of a text: its runs, or a line for each run and for each refusal."""

from __future__ import annotations

from iodelta.audit.tables import variant
from iodelta.ingest import Run, read_bytes
from iodelta.ingest.report import read_text
from iodelta.trial import Direction


def runs_of(data: bytes | str) -> list[Run]:
    """The runs in ``data``, in which is nothing else."""
    found = read_text(data.encode() if isinstance(data, str) else data, "x")
    assert all(isinstance(item, Run) for item in found), found
    return [item for item in found if isinstance(item, Run)]


def told(text: str, name: str = "x") -> str:
    """Line and name of each run, what it was asked to do, its numbers and its findings; then what was refused."""
    found = read_bytes(text.encode(), name)
    lines = [f"{run.place.line} {named(run)}:{asked(run)}{''.join(map(numbers, run.directions))}" for run in found.runs]
    rules = ["".join(f" !{finding.rule}" for finding in run.findings) for run in found.runs]
    lines = [line + rule for line, rule in zip(lines, rules, strict=True)]
    refused = [f"{one.place.line} refused: {why(one.reason)}" for one in found.refusals]
    return "\n".join([*lines, *refused])


def named(run: Run) -> str:
    """What a run is called, another word for the variant that it is taken for, and the section that it stands in."""
    of = variant(run) or run.labels.get("column", "")
    name = run.jobname if of in ("", run.jobname) else f"{run.jobname}/{of}"
    return name + "".join(
        f" [{run.labels[label]}]" for label in ("section", "setting", "stated") if label in run.labels
    )


def why(reason: str) -> str:
    """The part of a reason that is of this text alone."""
    if reason.startswith("no fio report"):
        return "no result" + ", and how to mend it" * ("put a" in reason)
    return reason.partition(": a title must")[0].partition(", because")[0].partition(", and whose")[0].partition(";")[0]


def asked(run: Run) -> str:
    """Direction, block size, depth and jobs, as far as they are known."""
    w = run.workload
    jobs = w.numjobs or (run.format != "table" and run.jobs)
    known = [w.rw, w.bs and f"{w.bs}B", w.iodepth and f"qd{w.iodepth}", jobs and f"jobs{jobs}"]
    return "".join(f" {word}" for word in known if word)


def numbers(direction: Direction) -> str:
    """Each number that is known: rates in 1/s and MB/s, times in us."""
    values = {"iops": direction.iops.value, "MB/s": direction.bandwidth.value / 1e6}
    for name, latency in direction.latencies().items():
        parts = {"mean": latency.mean, "min": latency.min, "max": latency.max}
        parts |= {f"p{percent:g}": quantity for percent, quantity in latency.percentiles.items()}
        values |= {f"{name} {part}": quantity.value / 1e3 for part, quantity in parts.items()}
    runtime = f" {direction.runtime_ms}ms" if direction.runtime_ms else ""
    return f" | {direction.kind}{runtime}" + "".join(
        f" {name}={value:.9g}" for name, value in values.items() if value == value
    )
