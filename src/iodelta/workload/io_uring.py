"""fio's ``t/io_uring``: its command line, and its output as what a trial measured.

Facts are from ``t/io_uring.c`` at its tags (fio 3.13 to 3.42): a line a second with the count since the last, not
divided by the second that was measured; no average; ``Maximum IOPS`` is the best line. The first line holds the
warm-up, and of ``-r N`` the last second is not printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import io_uring as options
from iodelta.experiment.values import size_bytes
from iodelta.machine import LocalMachine, Machine
from iodelta.probe.sysfs import attribute
from iodelta.trial import Direction, Finding, Quantity
from iodelta.workload.ending import ending, finding
from iodelta.workload.io_uring_lines import ERRORS, RATE, TROUBLE, Second, mean
from iodelta.workload.model import FioRequest, FioResult, FioRun

NOT_POLLED = (
    "t/io_uring polls, and this device has no poll queues: set hipri = 0 in [workload]"
)
"""Why a run failed or would fail."""

REFUSING = (6, 11)
"""Linux from which a polled I/O fails on a device without poll queues (block/blk-core.c); before, it was not polled."""


def program(machine: Machine, tool: str, workdir: str = "") -> str:
    """Return the path on the machine of the ``t/io_uring`` that an experiment's ``tool`` names, or of the one that was
    built.

    On another machine the built one, which is static, is copied into ``workdir``; without a ``workdir`` nothing is
    copied, and the result is only a name to show. Raises MeasureError, RequestError.
    """
    if tool != options.IO_URING:
        return tool
    from iodelta.tools.fio import REMEDY, built_fio

    built = built_fio()
    if built is None:
        raise MeasureError(
            "needs t/io_uring",
            place="[workload] tool",
            remedy=f"{REMEDY}; or give its path as tool",
        )
    if isinstance(machine, LocalMachine):
        return str(built.io_uring)
    there = f"{workdir}/io_uring"
    if workdir:
        machine.put(str(built.io_uring), there)
        machine.run(["chmod", "700", "--", there])
    return there


def usage(machine: Machine, path: str) -> frozenset[str]:
    """Return the letters of the switches that this ``t/io_uring`` has. Raises MeasureError when it is another program."""
    from iodelta.tools.fio import REMEDY

    done = machine.run([path], timeout=10)
    letters = frozenset(
        re.findall(
            r"^ -([A-Za-z]) <",
            done.text + done.stderr.decode(errors="replace"),
            re.MULTILINE,
        )
    )
    if not {"d", "b", "n"} <= letters:
        raise MeasureError(
            "is not t/io_uring: it does not name its options", place=path, remedy=REMEDY
        )
    if "r" not in letters:
        raise MeasureError(
            "this t/io_uring cannot end by itself (no -r)",
            place=path,
            remedy=f"fio 3.29 or later; {REMEDY}",
        )
    return letters


def is_polling(own: Mapping[str, str | None]) -> bool:
    """Return whether a cell with these options polls, as ``t/io_uring`` does by default."""
    return own.get("ioengine") == "io_uring" and own.get("hipri") != "0"


def cannot_poll(machine: Machine, disk: str) -> bool:
    """Return whether the kernel there refuses to poll a disk, given by its kernel name. Nothing is sent to the disk."""
    release = attribute(machine, "/proc/sys/kernel/osrelease") or ""
    version = re.match(r"(\d+)\.(\d+)", release)
    if version is None or (int(version[1]), int(version[2])) < REFUSING:
        return False
    return attribute(machine, f"/sys/block/{disk}/queue/io_poll") == "0"


def command(request: FioRequest) -> list[str]:
    """Return the command line of ``request``. Raises RequestError for what ``t/io_uring`` cannot do."""
    if request.size is not None and request.target_kind == "device":
        raise RequestError(
            "t/io_uring reads all of a device",
            place="[target] size",
            remedy="leave size out, or give a partition",
        )
    if request.target_kind == "directory":
        raise RequestError(
            "t/io_uring reads a device or a file",
            place=request.target,
            remedy="name one as [target]",
        )
    words: list[str] = []
    for name, value in request.options:
        try:
            words += options.switches(name, value)
        except ValueError as error:
            raise RequestError(f"{name}: {error}", place="workload") from error
    return [
        *request.launcher,
        request.fio,
        *words,
        f"-r{options.seconds(request.ramp, request.runtime)}",
        request.target,
    ]


def _dropped(request: FioRequest) -> int:
    """Lines at the beginning that are ramp, and the first at least."""
    return max(1, math.ceil(request.ramp))


def _counted(request: FioRequest) -> int:
    return math.ceil(request.runtime)


def read_output(run: FioRun) -> FioResult:
    """Read back a run of ``t/io_uring``. Never raises for bad output: every problem is in ``findings``.

    Hard findings: ``fio.failed``, ``fio.stopped``, ``fio.timeout``, ``fio.no-io``, ``fio.short``, ``uring.errors``,
    ``uring.disagree``.
    """
    request = run.request
    text = (
        run.output.decode(errors="replace") + "\n" + run.stderr.decode(errors="replace")
    )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    rows = [Second(match) for line in lines if (match := RATE.search(line))]
    counted = rows[_dropped(request) :][: _counted(request)]
    findings = [*ending(run, lines)] or _problems(run, lines, len(counted))
    if not counted:
        return FioResult(findings=tuple(findings))
    block = size_bytes(dict(request.options).get("bs") or "4k")
    fits = [second.fits(block) for second in counted]
    if None in fits:
        explanation = f"IOPS and BW contradict each other for blocks of {block} bytes"
        findings.append(finding(run, "uring.disagree", "hard", explanation))
    rates = [fit or second.iops for fit, second in zip(fits, counted, strict=True)]
    iops = mean(rates)
    bandwidth = Quantity(iops.value * block, iops.low * block, iops.high * block, "B/s")
    ios = round(sum(rate.value for rate in rates))
    begun = run.started + _dropped(request)
    return FioResult(
        directions=(
            Direction("read", ios, ios * block, 1000 * len(rates), iops, bandwidth),
        ),
        series={"read.iops": tuple(rate.value for rate in rates)},
        window=(begun, begun + len(rates)),
        findings=tuple(findings),
    )


def windows(
    runs: Sequence[FioRun], starts: Sequence[float]
) -> tuple[list[tuple[float, float]], ...]:
    """When the counted seconds were, by the clock of ``starts``: two estimates, or none when no second counted.

    The tool starts up to a second late on a slow machine, so one estimate reckons from the run's start and one from its
    end (the last second does not count). A finding must hold by both.
    """
    early, late = list[tuple[float, float]](), list[tuple[float, float]]()
    for run, start in zip(runs, starts, strict=True):
        window = read_output(run).window
        if window is not None:
            length, end = window[1] - window[0], start + run.seconds - 1
            early.append(
                (start + window[0] - run.started, start + window[1] - run.started)
            )
            late.append((end - length, end))
    if not early:
        return ()
    return early, late


def _problems(run: FioRun, lines: Sequence[str], counted: int) -> list[Finding]:
    """Return what is wrong with the output of a run that ended well."""
    trouble = [line for line in lines if TROUBLE.search(line)]
    if not counted:
        words = (
            "; ".join(dict.fromkeys(trouble[:2]))
            or "; ".join(lines[-1:])
            or "it printed nothing"
        )
        if any("unexpected ret=-95" in line or "polled IO" in line for line in trouble):
            remedy = "set hipri = 0 to do without polling, or give the nvme module poll_queues=N"
            return [
                finding(run, "fio.no-io", "hard", f"{NOT_POLLED} ({words})", remedy)
            ]
        why = f"t/io_uring printed no rate: {words}"
        return [finding(run, "fio.no-io", "hard", why)]
    errors = sum(int(match[2]) for line in lines if (match := ERRORS.match(line)))
    if errors or trouble:
        words = f"{errors} I/Os failed" if errors else trouble[0]
        return [finding(run, "uring.errors", "hard", words)]
    if counted < _counted(run.request):
        return [
            finding(
                run,
                "fio.short",
                "hard",
                f"{counted} of {_counted(run.request)} seconds were measured",
            )
        ]
    return []
