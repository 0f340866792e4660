"""Any command as the load of a trial: how it is run, and what it measured.

The command runs below a small supervisor (``supervisor.py``), in an empty directory of its own, with LC_ALL=C.
"""

from __future__ import annotations

import posixpath
import random
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError
from iodelta.experiment import Cell, Variant
from iodelta.machine import LocalMachine, Machine
from iodelta.trial import Finding, Quantity, Severity
from iodelta.workload.ending import words_of
from iodelta.workload.model import FioRequest, FioResult, FioRun
from iodelta.workload.readings import UnreadError, lines_of, read

SUPERVISOR = Path(__file__).with_name("supervisor.py")
NAME = "supervisor.py"
REPORT = "command.json"
PLACE = "command"
"""The directory in the working directory where the command runs."""

FRESH = "fresh"
"""The directory in the working directory of the copies of one trial."""

PADDING = "IODELTA_PADDING"

COPYING = 600.0
"""Seconds that a copy may take."""

MOST = 16 << 20
"""Bytes that a command may print."""

WRITES = "command.writes"
"""The rule of a command that writes although its owner says that it only reads."""

WRITES_NOT = "remove only_reads and allow it with --allow-commands, or correct the command so that it writes nothing"

UNNOTICED = 1 << 20
"""Bytes that the processes of a command may write although it only reads: caches of a language, its own output."""

SLACK = 1.05
"""A peak memory up to this many times that of the supervisor may be the supervisor's own."""


class Report(msgspec.Struct, frozen=True):
    """What the supervisor says of a command."""

    why: str
    """Why it was ended: ``timeout``, ``output``, ``stopped``, ``start``; empty where it ended itself."""
    code: int | None = None
    started: float = 0.0
    seconds: float = 0.0
    user: float = 0.0
    system: float = 0.0
    memory: int = 0
    """Bytes of the largest process."""
    floor: int = 0
    """Bytes below which no memory can be seen: the supervisor's own."""
    written: int = 0
    """Bytes that its processes wrote to disks, page cache or not."""
    printed: int = 0
    """Bytes of its output."""
    switches: int = 0
    survivors: tuple[str, ...] = ()
    """What still ran when the command had ended, and was ended."""
    stuck: tuple[str, ...] = ()
    error: str = ""


def python(machine: Machine) -> str:
    """Return the Python that runs the supervisor there. Raises MeasureError."""
    if isinstance(machine, LocalMachine):
        return sys.executable
    if (
        machine.run(
            ["python3", "-c", "import os; os.posix_spawnp, os.waitstatus_to_exitcode"]
        ).returncode
        != 0
    ):
        raise MeasureError(
            "a command as the workload needs python3 3.9 or later on that machine",
            place=machine.name,
            remedy="install python3 on that machine",
        )
    return "python3"


def install(machine: Machine, workdir: str) -> None:
    """Put the supervisor into the working directory. Raises MachineError."""
    machine.put(str(SUPERVISOR), f"{workdir}/{NAME}")


def values_of(
    cell: Cell, variant: Variant, *, target: str, trial: float, seed: int
) -> dict[str, str]:
    """Return the value of each name in braces for one trial; a variant's own parameters replace the cell's."""
    given = {"target": target, "trial": f"{trial:g}", "seed": str(seed)}
    return {
        **given,
        **{name: value or "" for name, value in (*cell.options, *variant.options)},
    }


def command(request: FioRequest) -> list[str]:
    """Return the command line of ``request``, the supervisor first."""
    report = f"{request.workdir}/{REPORT}"
    supervisor = [
        request.fio,
        "-I",
        "-S",
        f"{request.workdir}/{NAME}",
        report,
        f"{request.runtime:g}",
        str(MOST),
    ]
    return [*request.launcher, *supervisor, "--", *request.words]


def make_ready(
    machine: Machine, request: FioRequest, env: Mapping[str, str]
) -> tuple[FioRequest, str]:
    """Make the directory in which the command runs, copy what is to be placed afresh, and run the commands that reset
    the state before a trial.

    Returns the request with the words that name the copies, and the reason for a failure, or an empty text.
    """
    place = f"{request.workdir}/{PLACE}"
    machine.run(["rm", "-rf", "--", place, f"{request.workdir}/{FRESH}"])
    machine.run(["mkdir", "--", place])
    words, problem = request.words, ""
    rng = random.Random(request.seed)
    for path in request.copied:
        # Names of one length for both arms, drawn anew; cp gives new inodes and pages.
        own = f"{request.workdir}/{FRESH}/{rng.getrandbits(32):08x}"
        copy = f"{own}/{posixpath.basename(path.rstrip('/'))}"
        machine.run(["mkdir", "-p", "--", own])
        done = machine.run(["cp", "-a", "--", path, copy], timeout=COPYING)
        if done.returncode != 0:
            problem = f"copying {path} ended with exit code {done.returncode}"
        words = tuple(word.replace(path, copy) for word in words)
    if request.copied:  # the stack begins elsewhere, too (Mytkowicz et al. 2009)
        words = ("env", f"{PADDING}={'x' * rng.randrange(4096)}", *words)
    reset = run_all(machine, request.reset, place, request.runtime, env)
    return msgspec.structs.replace(request, words=words), problem or reset


def run_all(
    machine: Machine,
    commands: Sequence[tuple[str, ...]],
    place: str,
    timeout: float,
    env: Mapping[str, str],
) -> str:
    """Run commands one after the other; the reason why one failed, or an empty text."""
    for words in commands:
        done = machine.run(
            words, timeout=timeout, env={"LC_ALL": "C", **env}, cwd=place
        )
        if done.timed_out:
            return f"{shlex.join(words)} was still running after {timeout:g} s and was ended"
        if done.returncode != 0:
            message = words_of(lines_of(done.stdout, done.stderr))
            return (
                f"{shlex.join(words)} ended with exit code {done.returncode}: {message}"
            )
    return ""


def not_run(request: FioRequest, now: float, problem: str) -> FioRun:
    """Return a run that did not happen, because its reset failed."""
    return FioRun(
        request=request,
        args=request.words,
        exit_code=0,
        ended="finished",
        started=now,
        seconds=0.0,
        output=b"",
        stdout=b"",
        stderr=b"",
        log=b"",
        before=problem,
    )


def read_output(run: FioRun) -> FioResult:
    """Read back a run of a command. Never raises for bad output: every problem is in ``findings``.

    Hard findings: ``command.reset``, ``command.failed``, ``command.stopped``, ``command.timeout``, ``command.output``,
    ``command.metric``, ``command.writes``; a warning: ``command.survivors``.
    """
    if run.before:
        return FioResult(
            findings=(
                _finding(
                    run, "command.reset", "hard", f"the reset failed: {run.before}"
                ),
            )
        )
    try:
        report = from_json(run.log, Report)
    except msgspec.MsgspecError:
        report = Report("stopped" if run.ended == "stopped" else "lost")
    # A finding when its processes wrote although its owner says that it only reads.
    # Output is a write, too, and a page that is written back while the output still grows is counted each time.
    if not run.request.only_reads or report.written <= UNNOTICED + 4 * report.printed:
        findings = []
    else:
        findings = [
            _finding(
                run,
                WRITES,
                "hard",
                f"its processes wrote {report.written / 1e6:.1f} MB to disks",
                WRITES_NOT,
            )
        ]
    problem = _problem(run, report)
    if problem:
        return FioResult(findings=(problem, *findings))
    if report.survivors:
        count, names = len(report.survivors), ", ".join(dict.fromkeys(report.survivors))
        text = f"{count} of its processes were still running after it ended, and were ended: {names}"
        findings.append(
            _finding(
                run,
                "command.survivors",
                "warning",
                text,
                "let the command wait for what it starts",
            )
        )
    # Wall time, CPU time and peak memory.
    cpu = 1e9 * (report.user + report.system)
    quantities = {
        "wall": Quantity.exact(1e9 * report.seconds, "ns"),
        "cpu": Quantity.exact(cpu, "ns"),
    }
    if report.memory > SLACK * report.floor:
        quantities["memory"] = Quantity.exact(float(report.memory), "B")
    measured = quantities
    for measure in run.request.measures:
        if measure.name == "memory":
            findings += _unseen_memory(run, report)
            continue
        if measure.name in measured:
            continue
        try:
            measured[measure.name] = read(measure, run.output, run.stderr)
        except UnreadError as error:
            findings.append(
                _finding(run, "command.metric", "hard", f"{measure.name}: {error}")
            )
    return FioResult(
        measured=measured,
        usr_cpu=100 * report.user / report.seconds if report.seconds else float("nan"),
        sys_cpu=100 * report.system / report.seconds
        if report.seconds
        else float("nan"),
        context_switches=report.switches,
        window=(report.started, report.started + report.seconds),
        findings=tuple(findings),
    )


def _unseen_memory(run: FioRun, report: Report) -> list[Finding]:
    if report.memory > SLACK * report.floor:
        return []
    text = f"memory: the peak is at most {report.memory / 1e6:.0f} MB; a smaller peak cannot be measured"
    return [
        _finding(
            run, "command.metric", "hard", text, "leave memory out of [design] metrics"
        )
    ]


def _problem(run: FioRun, report: Report) -> Finding | None:
    """Return why the run has no result, if so."""
    lines = lines_of(run.output, run.stderr)
    if report.stuck:
        text = f"processes do not end even after SIGKILL: {', '.join(report.stuck)}"
        return _finding(
            run, "command.failed", "hard", text, "look at dmesg and at the device"
        )
    if report.why == "stopped" or run.ended == "stopped":
        return _finding(
            run, "command.stopped", "hard", "the run was stopped before its end"
        )
    if report.why == "timeout" or run.ended == "timed out":
        text = f"it was still running after {run.request.runtime:g} s and was ended with every process it started"
        return _finding(
            run,
            "command.timeout",
            "hard",
            text,
            "raise [workload] timeout, or give it less to do",
        )
    if report.why == "output":
        text = f"it printed more than {MOST >> 20} MiB and was ended"
        return _finding(run, "command.output", "hard", text, "let it print less")
    if report.why == "start":
        remedy = "is it installed? It runs in an empty directory: use an absolute path, or {here}/NAME"
        return _finding(
            run,
            "command.failed",
            "hard",
            f"cannot start {run.request.words[0]}: {report.error}",
            remedy,
        )
    if report.why or report.code is None:
        return _finding(
            run, "command.failed", "hard", f"its supervisor failed: {words_of(lines)}"
        )
    if report.code < 0:
        return _finding(
            run, "command.failed", "hard", f"it was killed by signal {-report.code}"
        )
    if report.code:
        return _finding(
            run,
            "command.failed",
            "hard",
            f"it ended with exit code {report.code}: {words_of(lines)}",
        )
    return None


def _finding(
    run: FioRun, rule: str, severity: Severity, text: str, remedy: str = ""
) -> Finding:
    line = shlex.join(run.request.words)
    return Finding(rule, severity, line, text, remedy or f"see what it says to: {line}")
