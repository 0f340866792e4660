"""One fio run: its request, its command line, and the running of it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap

import msgspec

from iodelta.errors import MachineError, MeasureError, RequestError
from iodelta.experiment import Option
from iodelta.experiment.model import option_word
from iodelta.experiment.values import size_bytes
from iodelta.jobfile import canonical, owned, runs_command
from iodelta.machine import Machine, Process
from iodelta.workload import command as any_command
from iodelta.workload import io_uring
from iodelta.workload.engines import ENGINES, READERS
from iodelta.workload.model import Ended, FioRequest, FioRun
from iodelta.workload.naming import named

OUTPUT = "fio.json"
LOG = "fio_iops.log"
STDOUT = "fio.out"
STDERR = "fio.err"

SLICE = 0.2
"""Seconds between looks at the stop request while fio runs."""

GRACE = 1.0
"""Seconds a stopped fio has to end its jobs and write its output before it is killed."""

OLDEST = (3, 16)

BOTH_HISTOGRAMS = (3, 18)
"""From here on fio keeps the histograms of total and completion latency side by side; before, of total alone."""

READS = frozenset({"read", "randread"})
"""Values of ``rw`` that write nothing."""

_EARLY = ("kb_base", "ioengine")


def command(request: FioRequest) -> list[str]:
    """Return the command line of ``request``: the user's options as they are, then ours, which win by coming last.

    Raises RequestError for an option that iodelta sets itself, one that runs commands unless allowed, a target that fio
    cannot name, and times or seeds it cannot take.
    """
    check_options(request.options, "workload", allow_commands=request.allow_commands)
    if request.runtime < 0.1 or request.ramp < 0:
        raise RequestError(
            f"a trial of {request.runtime:g} s is too short for fio",
            place="design.trial",
        )
    # Seed 0 would give every job the same numbers: init.c multiplies by it.
    if not 0 < request.seed < 1 << 63:
        raise RequestError(
            f"{request.seed} is not a valid seed for fio",
            place="design.seed",
            remedy="1 to 2^63 - 1",
        )
    size = (
        ()
        if request.size is None
        or any(canonical(given) == "size" for given, _ in request.options)
        else (f"--size={request.size}",)
    )
    return [
        *request.launcher,
        request.fio,
        f"--output={request.workdir}/{OUTPUT}",
        "--output-format=json+",
        "--eta=never",
        *(("--readonly",) if reads_only(request.options) else ()),
        "--name=iodelta",
        *target_words(request.target, request.target_kind, request.files),
        *size,
        *option_words(request.options),
        # Without time_based fio ends as soon as it has done ``size`` bytes.
        *(() if request.whole else ("--time_based=1",)),
        f"--runtime={round(request.runtime * 1000)}ms",
        f"--ramp_time={round(request.ramp * 1000)}ms",
        # Without randrepeat=0 fio < 3.36 ignores randseed for the offsets: init.c, td_fill_rand_seeds_internal.
        "--randrepeat=0",
        "--allrandrepeat=0",
        f"--randseed={request.seed}",
        # fio merges the percentiles of its jobs from all I/Os; from separate entries nobody can.
        "--group_reporting=1",
        "--lat_percentiles=1",
        f"--clat_percentiles={int(request.version >= BOTH_HISTOGRAMS)}",
        # One sample a second by fio's helper thread: no cost per I/O, which bw and lat logs without it would have.
        f"--write_iops_log={request.workdir}/{LOG.removesuffix('_iops.log')}",
        "--log_avg_msec=1000",
        "--per_job_logs=0",
        # A target that has vanished is an error, not a file to be made in /dev or laid out inside the trial.
        "--allow_file_create=0",
    ]


def command_of(request: FioRequest) -> list[str]:
    """Return the command line of ``request``, whichever tool it is for. Raises RequestError."""
    if request.tool == "command":
        return any_command.command(request)
    return command(request) if request.tool == "fio" else io_uring.command(request)


def target_words(target: str, kind: str, files: str = "") -> tuple[str, ...]:
    """fio's options for a target; ``files`` as in ``FioRequest``. Raises RequestError for a path it would misread."""
    place = "directory" if kind == "directory" else "filename"
    format_ = (f"--filename_format={files}",) if files else ()
    return (f"--{place}={named(target)}", *format_)


def option_words(options: Sequence[Option]) -> tuple[str, ...]:
    """Return the options as fio's command line takes them.

    There (unlike in a job file) kb_base and the engine must come before the options they change.
    """
    ordered = sorted(options, key=lambda option: option[0] not in _EARLY)
    return tuple(starmap(option_word, ordered))


def reads_only(options: Sequence[Option]) -> bool:
    """Return whether ``rw`` only reads: then fio can run with ``--readonly``."""
    modes = [value for name, value in options if canonical(name) == "rw"]
    return not modes or (modes[-1] or "").split(":")[0] in READS


def check_options(
    options: Sequence[Option],
    place: str,
    otherwise: str = "",
    *,
    allow_commands: bool = False,
) -> None:
    """Raises RequestError for an option that iodelta sets itself, one that runs commands unless allowed, and an engine
    not known to keep to the target; ``otherwise`` is added to the remedy."""
    for name, value in options:
        ours = owned(name)
        if ours is not None:
            raise RequestError(
                f"fio option {name}: {ours.why}",
                place=place,
                remedy=f"remove {name}{otherwise}",
            )
        danger = runs_command(name, value)
        if danger and not allow_commands:
            raise RequestError(danger, place=place, remedy=f"remove {name}{otherwise}")
        sound = ENGINES | READERS if reads_only(options) else ENGINES
        if name == "ioengine" and (value or "").strip() not in sound:
            raise RequestError(
                f"ioengine={value} is not known to keep to the target",
                place=place,
                remedy=f"take one of {', '.join(sorted(sound))}{otherwise}",
            )


def _check_reach(machine: Machine, request: FioRequest) -> None:
    """Refuse to write past the end of a file as it is now. Raises RequestError."""
    if request.target_kind != "file" or request.tool == "command":
        return
    size = machine.run(["stat", "-L", "-c", "%s", "--", request.target]).text.strip()
    if size:
        check_reach(request, int(size))


def check_reach(request: FioRequest, size: int) -> None:
    """Raises RequestError for a workload that may write past the end of a file of ``size`` bytes: fio would delete it
    and lay out a new one.

    ``extend_file`` (filesetup.c) unlinks first and asks ``allow_file_create`` afterwards: measured with 3.33. Doubt
    counts as past the end. A read-only fio refuses by itself.
    """
    if not reads_only(request.options) and _reach(request, size) > size:
        if request.target_kind == "device":
            raise RequestError(
                f"the workload may write past its {size} bytes",
                place=request.target,
                remedy="leave out filesize, fill_device and zonemode; write sizes in bytes, k, m, g or %",
            )
        raise RequestError(
            f"the workload may write past its {size} bytes, and fio would recreate the file",
            place=request.target,
            remedy="let [target] size be the largest size of any cell; write sizes in bytes, k, m, g or %",
        )


def _reach(request: FioRequest, whole: int) -> float:
    """Return the end of what the workload touches in a file of ``whole`` bytes; infinite if unknown."""
    given = {canonical(name): (value or "").strip() for name, value in request.options}
    if any(
        given.get(name, "0") != "0"
        for name in ("fill_device", "file_append", "filesize", "zonemode")
    ):
        return math.inf

    def amount(name: str, default: int) -> int:
        share, percent, rest = given.get(name, str(default)).partition("%")
        if percent and not rest.strip():
            return int(share) * whole // 100
        return size_bytes(given.get(name, str(default)))

    try:
        start = amount("offset", 0) + (int(given.get("numjobs", "1")) - 1) * amount(
            "offset_increment", 0
        )
        return start + amount("size", request.size or 0)
    except ValueError:
        return math.inf


def fio_version(machine: Machine, fio: str = "fio") -> tuple[int, int]:
    """Major and minor version, (3, 33). Raises MeasureError when fio is missing or older than 3.16."""
    try:
        text = machine.run([fio, "--version"], timeout=30).text.strip()
    except MachineError as error:
        if "ENOENT" not in error.what:
            raise
        raise MeasureError(
            f"{fio} not found",
            place="" if machine.name == "local" else machine.name,
            remedy="apt install fio. `iodelta doctor` lists all that is missing.",
        ) from error
    match = re.match(r"fio-(\d+)\.(\d+)", text)
    if match is None:
        raise MeasureError(
            f"{fio} --version says {text!r}", place=machine.name, remedy="is it fio?"
        )
    version = int(match[1]), int(match[2])
    if version < OLDEST:
        raise MeasureError(
            f"{text} is too old for iodelta",
            place=machine.name,
            remedy="iodelta needs fio 3.16 or later",
        )
    return version


def run(
    machine: Machine,
    request: FioRequest,
    *,
    opened: str = "",
    stop: Callable[[], bool] = lambda: False,
    on_tick: Callable[[float], None] = lambda seconds: None,
    on_start: Callable[[int], None] = lambda pid: None,
    env: Mapping[str, str] | None = None,
    allowance: float = 60.0,
) -> FioRun:
    """Run fio to its end and keep all its output. ``opened`` is a path of the same target that it gets in its place.

    ``stop`` is called five times a second; once it is true fio gets SIGTERM, SIGKILL after a second, and the result
    says ``stopped``. ``on_start`` gets its pid, ``on_tick`` is called once a second with the seconds since the start. A
    run over ramp + runtime + ``allowance`` seconds is ended and says ``timed out``. A fio that fails is a result, not
    an exception; raises RequestError as ``command`` does and for writes past the end of a file, MachineError when fio
    cannot be started.
    """
    args = command_of(request)
    opening = msgspec.structs.replace(request, target=opened or request.target)
    _check_reach(machine, opening)
    log = any_command.REPORT if request.tool == "command" else LOG
    paths = [f"{request.workdir}/{name}" for name in (OUTPUT, STDOUT, STDERR, log)]
    machine.run(["rm", "-f", "--", *paths])  # fio appends to logs
    place = (
        f"{request.workdir}/{any_command.PLACE}"
        if request.tool == "command"
        else request.workdir
    )
    started, begun = machine.time(), time.monotonic()
    process = machine.start(
        command_of(opening),
        env={"LC_ALL": "C", **(env or {})},
        cwd=place,
        stdout=paths[1],
        stderr=paths[2],
    )
    try:
        on_start(process.pid)
        code, ended = _wait(
            process, begun, request.ramp + request.runtime + allowance, stop, on_tick
        )
    except BaseException:
        process.stop(GRACE)
        raise
    seconds = time.monotonic() - begun
    # The bytes of each file, empty where fio made none.
    contents = []
    with machine.together("fio"):
        for path in paths:
            try:
                contents.append(machine.read_bytes(path))
            except MachineError:
                contents.append(b"")
    output, stdout, stderr, log_text = contents
    return FioRun(
        request=request,
        args=tuple(args),
        exit_code=code,
        ended=ended,
        started=started,
        seconds=seconds,
        output=output if request.tool == "fio" else stdout,
        stdout=stdout if request.tool == "fio" else b"",
        stderr=stderr,
        log=log_text,
    )


def _wait(
    process: Process,
    begun: float,
    limit: float,
    stop: Callable[[], bool],
    on_tick: Callable[[float], None],
) -> tuple[int, Ended]:
    ticks = 0
    while True:
        code = process.wait(SLICE)
        if code is not None:
            return code, "finished"
        elapsed = time.monotonic() - begun
        if elapsed > limit:
            return process.stop(GRACE), "timed out"
        if stop():
            return process.stop(GRACE), "stopped"
        if elapsed >= ticks + 1:
            ticks = int(elapsed)
            on_tick(elapsed)
