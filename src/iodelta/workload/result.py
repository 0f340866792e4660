"""What a fio run measured, and whether the run counts at all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from iodelta.jobfile import canonical
from iodelta.trial import Direction, Finding, Kind, Quantity, Severity
from iodelta.workload import command, io_uring
from iodelta.workload.ending import ending, finding, words_of
from iodelta.workload.fio_json import (
    FioJob,
    documents,
    merged,
    read_document,
)
from iodelta.workload.model import FioRequest, FioResult, FioRun

SHORT = 0.98
"""A run that measured less than this share of the requested time is not a trial."""

INCOMPLETE = 0.001
"""More short or dropped I/Os than this share make a run unusable; a single one is a warning."""

LOGGED: tuple[Kind, ...] = ("read", "write", "trim")
"""Directions by their number in fio's logs."""

LESSER: tuple[Severity, ...] = ("warning", "note")
"""First words of messages that do not end a run."""


def read_run(run: FioRun) -> FioResult:
    """Read back ``run``. Never raises for what fio did or printed: every problem is in ``findings``.

    Hard findings: ``fio.failed``, ``fio.stopped``, ``fio.timeout``, ``fio.cut``, ``fio.short``, ``fio.no-ramp``,
    ``fio.no-io``, ``fio.direction-missing``, ``fio.incomplete-ios``, ``fio.past-end``; lesser ones: ``fio.long``,
    ``fio.warning``, ``fio.note``. Of ``t/io_uring`` and of commands see the ``read_output`` of their modules.
    """
    if run.request.tool == "command":
        return command.read_output(run)
    if run.request.tool != "fio":
        return io_uring.read_output(run)
    texts, around = documents(run.output)
    lines = (around + "\n" + run.stderr.decode(errors="replace")).splitlines()
    messages = [line.strip() for line in lines if line.strip()]
    findings = ending(run, messages)
    try:
        document = read_document(texts[-1]) if texts else None
    except ValueError as error:
        document = None
        findings.append(finding(run, "fio.cut", "hard", str(error)))
    if document is None or not document.jobs:
        if not findings:
            findings.append(
                finding(
                    run, "fio.cut", "hard", f"fio wrote no result: {words_of(messages)}"
                )
            )
        return FioResult(findings=tuple(findings))
    job = merged(document.jobs)
    if not findings:
        if not job.error:
            job = msgspec.structs.replace(
                job, directions=(*job.directions, *_idle(run, job))
            )
        findings += _problems(run, job, messages)
    findings += _messages(run, messages)
    # Fio prints its result about 25 ms after the last I/O (measured with 3.33): the window ends there.
    if document.printed is None or not job.directions:
        window = None
    else:
        window = (
            document.printed - max(d.runtime_ms for d in job.directions) / 1000,
            document.printed,
        )
    return FioResult(
        directions=job.directions,
        sync=job.sync,
        usr_cpu=job.usr_cpu,
        sys_cpu=job.sys_cpu,
        context_switches=job.context_switches,
        series=per_second(run.log.decode(errors="replace"), job.directions),
        window=window,
        fio_version=document.version,
        counters=document.counters,
        findings=tuple(findings),
    )


def per_second(
    log: str, directions: tuple[Direction, ...]
) -> dict[str, tuple[float, ...]]:
    """``read.iops`` and so on: I/Os per second in each whole second, summed over the jobs.

    fio writes a row per job, direction and second (milliseconds, value, direction 0 1 2), but none for a second without
    I/O and often none for the last second, which is left out unless every job has written it. A run of one second has
    no series: no earlier second shows how many jobs there are.
    """
    rows: dict[int, dict[int, list[float]]] = {}
    for line in log.splitlines():
        match = re.match(r"(\d+), (\d+), ([012]),", line)
        if match:
            second = max(1, round(int(match[1]) / 1000))
            rows.setdefault(int(match[3]), {}).setdefault(second, []).append(
                float(match[2])
            )
    lengths = {direction.kind: direction.runtime_ms // 1000 for direction in directions}
    series = {}
    for number, kind in enumerate(LOGGED):
        values = _whole_seconds(rows.get(number, {}), lengths.get(kind, 0))
        if values:
            series[f"{kind}.iops"] = values
    return series


def _whole_seconds(
    rows: Mapping[int, Sequence[float]], length: int
) -> tuple[float, ...]:
    """I/Os of each of ``length`` seconds, by the rows of all jobs; without the last one unless every job wrote it."""
    if not rows or length < 2:
        return ()
    jobs = max(map(len, rows.values()))
    if len(rows.get(length, ())) < jobs:
        length -= 1
    return tuple(sum(rows.get(second, ())) for second in range(1, length + 1))


def _messages(run: FioRun, lines: Sequence[str]) -> list[Finding]:
    """fio's warnings and notes, as findings of that severity."""
    findings = []
    for severity in LESSER:
        for line in lines:
            if line.startswith(f"{severity}: "):
                findings.append(finding(run, f"fio.{severity}", severity, line))
    return findings


def _problems(run: FioRun, job: FioJob, messages: Sequence[str]) -> list[Finding]:
    """Return what is wrong with the result of a fio that ended well."""
    useless = _useless(run, job, messages)
    if useless:
        return [useless]
    findings: list[Finding] = []
    missing = sorted(
        _expected(run.request) - {direction.kind for direction in job.directions}
    )
    if missing:
        findings.append(
            finding(
                run,
                "fio.direction-missing",
                "hard",
                f"no {' and no '.join(missing)} was done",
            )
        )
    requested = run.request.runtime * 1000
    longest = max(direction.runtime_ms for direction in job.directions)
    if longest < SHORT * requested:
        text = f"fio measured {longest / 1000:g} s of {run.request.runtime:g} s and ended by itself"
        remedy = "a limit such as io_size, number_ios or loops ends it; leave it out or shorten [design] trial"
        wrong_length = [finding(run, "fio.short", "hard", text, remedy)]
    else:
        if longest > requested / SHORT + 100:
            text = f"fio measured {longest / 1000:g} s instead of {run.request.runtime:g} s: some I/O or thinktime ran over"
            wrong_length = [
                finding(
                    run,
                    "fio.long",
                    "warning",
                    text,
                    "rates are over the real time; look for stalls",
                )
            ]
        else:
            wrong_length = []
    return findings + wrong_length + _ramp_counted(run, job) + _incomplete(run, job)


def _useless(run: FioRun, job: FioJob, messages: Sequence[str]) -> Finding | None:
    """Return why the whole result says nothing about the target, if so."""
    if job.error:
        return finding(
            run,
            "fio.failed",
            "hard",
            f"fio reports error {job.error}: {words_of(messages)}",
        )
    killed = [
        line
        for line in messages
        if "terminating on signal" in line or "got signal=" in line
    ]
    if killed:
        return finding(
            run, "fio.failed", "hard", f"part of fio was ended by a signal: {killed[0]}"
        )
    if any("refusing extend" in line for line in messages):
        # libaio and io_uring count reads past the end as I/Os of no bytes: a fast result about nothing.
        text = "the file is smaller than size: fio read past its end"
        return finding(
            run,
            "fio.past-end",
            "hard",
            text,
            "let [target] size be the largest size of any cell",
        )
    if not job.directions:
        return finding(
            run, "fio.no-io", "hard", f"fio did no I/O: {words_of(messages)}"
        )
    return None


def _ramp_counted(run: FioRun, job: FioJob) -> list[Finding]:
    """Return a finding when the run was too short for its ramp plus what it measured: with a rate, fio may end in its
    ramp.
    """
    ramp, longest = (
        run.request.ramp,
        max(direction.runtime_ms for direction in job.directions) / 1000,
    )
    if run.seconds >= SHORT * (ramp + longest):
        return []
    text = f"fio ended after {run.seconds:.1f} s, so its numbers include its ramp of {ramp:g} s"
    remedy = "with a rate fio ends when [design] trial is over, even in its ramp: make the ramp shorter than the trial"
    return [finding(run, "fio.no-ramp", "hard", text, remedy)]


def _incomplete(run: FioRun, job: FioJob) -> list[Finding]:
    findings = []
    for direction in job.directions:
        bad = direction.short + direction.dropped
        if bad:
            severity: Severity = (
                "hard" if bad > INCOMPLETE * direction.ios else "warning"
            )
            text = f"{direction.short} short and {direction.dropped} dropped of {direction.ios} {direction.kind}s"
            remedy = "is the target's size a multiple of bs?"
            findings.append(finding(run, "fio.incomplete-ios", severity, text, remedy))
    return findings


def _idle(run: FioRun, job: FioJob) -> tuple[Direction, ...]:
    """Directions without I/O in a run of full length. They get a rate of 0: a stall is the worst result, not a failure,
    and a failed trial would be repeated."""
    if run.seconds < SHORT * (run.request.ramp + run.request.runtime):
        return ()
    missing = sorted(_expected(run.request) - {done.kind for done in job.directions})
    asked = round(1000 * run.request.runtime)
    iops, bandwidth = Quantity.exact(0.0, "IOPS"), Quantity.exact(0.0, "B/s")
    return tuple(Direction(kind, 0, 0, asked, iops, bandwidth) for kind in missing)


def _expected(request: FioRequest) -> set[Kind]:
    """Return the directions that this workload must have done."""
    given = {canonical(name): value or "" for name, value in request.options}
    mode = given.get("rw", "read").split(":")[0].removeprefix("rand")
    expected: dict[str, set[Kind]] = {
        "read": {"read"},
        "write": {"write"},
        "trim": {"trim"},
        "rw": {"read", "write"},
        "readwrite": {"read", "write"},
        "trimwrite": {"trim", "write"},
    }
    kinds = expected.get(mode, set())
    if kinds == {"read", "write"}:
        mix = given.get("rwmixread", "")
        if "rwmixwrite" in given:
            mix = {"0": "100", "100": "0"}.get(given["rwmixwrite"], "")
        return {"100": {"read"}, "0": {"write"}}.get(mix, kinds)  # type: ignore[return-value]
    return kinds
