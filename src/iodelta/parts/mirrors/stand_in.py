"""The mirror in place of fio: it takes the command line of a trial, and writes the files that fio would write.

``python -m iodelta.parts.mirrors.stand_in POLICY MEMBER... -- fio OPTIONS``. The knob ``mirror.read_policy`` puts
this in front of fio's command, so that a trial of the mirror is a trial like any other.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from iodelta.errors import IodeltaError, RequestError
from iodelta.experiment.values import seconds, size_bytes
from iodelta.knob.mirror import MODES, PERMITTED, check_options, options_of
from iodelta.lab.guard import check_write
from iodelta.machine import LocalMachine
from iodelta.parts.mirrors.mirror import MirrorRun, Request, run
from iodelta.parts.mirrors.simulate import Tally
from iodelta.probe.topology import resolve
from iodelta.trial import bin_edges

VERSION = "fio-3.33"
"""The layout of the output; that the mirror made it is in its ``mirror`` entry."""

SAMPLES = 100
"""Number of samples of the I/Os in flight on each member in a run."""

PERCENTILES = (
    1,
    5,
    10,
    20,
    30,
    40,
    50,
    60,
    70,
    80,
    90,
    95,
    99,
    99.5,
    99.9,
    99.95,
    99.99,
)


def main(words: Sequence[str]) -> int:
    """Run the mirror; return exit code 0, or 1 with the reason on standard error in fio's format."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stopped)
    try:
        mine, given = _split(words)
        options = options_of(given)
        request = _request(mine, options)
        if request.read_percent < 100 and "readonly" in options:
            raise RequestError(
                "the workload writes, and fio runs read-only", place="mirror"
            )
        done = _permitted(
            request, os.path.realpath(options.get("filename", "").replace("\\:", ":"))
        )
    except IodeltaError as error:
        sys.stderr.write(f"mirror: error: {error}\n")
        return 1
    document = json.dumps(document_of(done, request, time.time()), indent=1)
    Path(options.get("output", "/dev/stdout")).write_text(
        document + "\n", encoding="utf-8"
    )
    if "write_iops_log" in options:
        _write_log(Path(options["write_iops_log"] + "_iops.log"), done)
    for finding in done.findings:
        kind = "error" if finding.severity == "hard" else finding.severity
        sys.stderr.write(
            f"{kind}: {finding.place}: {finding.explanation} ({finding.rule})\n"
        )
    return 0 if done.usable else 1


def document_of(done: MirrorRun, request: Request, now: float) -> dict[str, Any]:
    """fio's JSON+ of a group of jobs, with an entry ``mirror`` for what fio has no place for."""
    runtime = round(done.seconds * 1000)
    return {
        "fio version": VERSION,
        "timestamp": int(now),
        "timestamp_ms": round(now * 1000),
        "jobs": [
            {
                "jobname": "iodelta",
                "groupid": 0,
                "error": 0,
                "elapsed": round(request.ramp + done.seconds) + 1,
                "job options": {
                    "policy": request.policy,
                    "iodepth": str(request.iodepth),
                },
                "read": _direction(done.read, runtime),
                "write": _direction(done.write, runtime),
                "job_runtime": runtime,
                "usr_cpu": done.usr_cpu,
                "sys_cpu": done.sys_cpu,
                "ctx": done.context_switches,
            }
        ],
        "mirror": {
            "policy": request.policy,
            "pids": list(done.pids),
            "retried": done.retried,
            "members": [
                {
                    "path": member.path,
                    "reads": member.reads,
                    "writes": member.writes,
                    "mean_ns": member.mean,
                    "age": member.age,
                    "ignored": member.ignored,
                    "checkpoints": member.checkpoints,
                }
                for member in done.members
            ],
            "trace": [list(sample) for sample in done.trace],
        },
    }


def _permitted(request: Request, held: str) -> MirrorRun:
    """Return the run; for ``held`` the session has a permit, as for what it names; for any other member one is taken
    now.
    """
    machine = LocalMachine()
    permitted = {held, *json.loads(os.environ.get(PERMITTED, "[]"))}
    targets = (
        [resolve(machine, member) for member in request.members]
        if request.read_percent < 100
        else []
    )
    with contextlib.ExitStack() as permits:
        for target in targets:
            if target.real_path not in permitted:
                permits.enter_context(check_write(machine, target, size=request.size))
        return run(request, guarded=[held, *(target.real_path for target in targets)])


def _direction(tally: Tally, runtime: int) -> dict[str, Any]:
    rate = 1000 / runtime if runtime and tally.ios else 0.0
    histogram = tally.histogram
    latency: dict[str, Any] = {
        "min": tally.min,
        "max": tally.max,
        "mean": tally.mean,
        "stddev": tally.stddev,
        "N": tally.ios,
    }
    if tally.ios:
        latency["percentile"] = {
            f"{p:.6f}": round(histogram.quantile(p / 100)) for p in PERCENTILES
        }
        edges = ((bin_edges(index), count) for index, count in tally.bins.items())
        latency["bins"] = {
            str(low + (high - low) // 2 if high - low > 1 else low): n
            for (low, high), n in edges
        }
    return {
        "io_bytes": tally.bytes,
        "io_kbytes": tally.bytes >> 10,
        "bw_bytes": round(tally.bytes * rate),
        "bw": round(tally.bytes * rate / 1024),
        "iops": tally.ios * rate,
        "runtime": runtime if tally.ios else 0,
        "total_ios": tally.ios,
        "short_ios": 0,
        "drop_ios": 0,
        "lat_ns": latency,
    }


def _write_log(path: Path, done: MirrorRun) -> None:
    """fio's per-second IOPS log: milliseconds, value, direction, block size, offset, priority."""
    lines = []
    for second, counts in enumerate(done.per_second, start=1):
        lines += [
            f"{second * 1000}, {count}, {kind}, 0, 0, 0\n"
            for kind, count in enumerate(counts)
            if count
        ]
    path.write_text("".join(lines), encoding="ascii")


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the mirror's own words, and fio's options."""
    if "--" not in words or len(words) < 4:
        raise RequestError("wants POLICY MEMBER... -- fio OPTIONS", place="mirror")
    cut = list(words).index("--")
    return list(words[:cut]), [
        word for word in words[cut + 2 :] if word.startswith("--")
    ]


def _request(mine: Sequence[str], options: dict[str, str]) -> Request:
    check_options(options)
    is_random, reads = MODES[options.get("rw", "read")]
    if reads == 50:
        reads = (
            100 - int(options["rwmixwrite"])
            if "rwmixwrite" in options
            else int(options.get("rwmixread", "50"))
        )
    try:
        return Request(
            members=tuple(mine[1:]),
            policy=mine[0],
            random=is_random,
            length=size_bytes(options.get("bs", "4k")),
            iodepth=int(options.get("iodepth", "1")),
            jobs=int(options.get("numjobs", "1")),
            read_percent=reads,
            size=size_bytes(options["size"]) if "size" in options else None,
            seed=int(options.get("randseed", "1")),
            ramp=seconds(options.get("ramp_time", "0")),
            seconds=seconds(options.get("runtime", "5")),
            trace=seconds(options.get("runtime", "5")) / SAMPLES,
            direct=options.get("direct", "0") != "0",
        )
    except ValueError as error:
        raise RequestError(
            f"a value that the mirror cannot read: {error}", place="mirror"
        ) from error


def _stopped(number: int, frame: object) -> NoReturn:
    sys.stderr.write(f"mirror: terminating on signal {number}\n")
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
