"""A load that runs during the trials of a condition: started, kept running, recorded, and reliably stopped."""

from __future__ import annotations

import bisect
import contextlib
import re
import shlex
import threading
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from iodelta.errors import IodeltaError, MachineError, MeasureError, RequestError
from iodelta.jobfile import owned
from iodelta.machine import Machine, Process
from iodelta.probe.processes import children
from iodelta.trial import Background, Finding
from iodelta.workload.fio import check_options, option_words, reads_only, target_words
from iodelta.workload.leftovers import end_carrying

LOAD = "IODELTA_LOAD"
"""Environment variable by which one load's own processes are found when it is stopped."""

AT_ONCE = 1.0
"""Seconds: a command that fails sooner than this has died at once."""

ATTEMPTS = 3
"""A load that dies at once at each of its first starts, this many times, cannot run."""

LONGEST_PAUSE = 5.0
"""Seconds between restarts of a command that keeps dying at once; it begins with 0.1 and doubles."""

FULL, HALF = 0.95, 0.5
"""The share of a trial during which the load should run; below HALF the trial does not count as one under load."""


def substitute(words: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Replace ``{target.mount}`` and similar names inside single words; the result is never passed to a shell.

    ``values`` are by name (``target.mount``). Other braces stay. Raises RequestError for an unknown ``{target...}``.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            known = ", ".join(f"{{{name}}}" for name in sorted(values)) or "none"
            raise RequestError(
                f"{match[0]} is not known here",
                place=shlex.join(words),
                remedy=f"known: {known}",
            )
        return values[match[1]]

    return tuple(re.sub(r"\{(target\.[a-z_]+)\}", value, word) for word in words)


def background_fio(
    options: Sequence[tuple[str, str | None]],
    target: str,
    *,
    directory: bool = False,
    files: str = "",
    place: str = "background",
) -> tuple[str, ...]:
    """Return the command of a fio job on ``target`` as a background load: it runs until it is stopped.

    Its options may not name another file, because the guard checks only the target. ``files`` is the pattern for file
    names in a ``directory`` (``filename_format``). Raises RequestError, with ``place``, for options it may not set.
    """
    load_options = tuple(
        option
        for option in options
        if not ((ours := owned(option[0])) and ours.harmless)
    )
    check_options(
        load_options,
        place,
        ', or make the load a command: background = "fio --rw=read ..."',
    )
    return (
        *("fio", "--output=/dev/null", "--eta=never"),
        *(("--readonly",) if reads_only(load_options) else ()),
        "--name=background",
        *target_words(target, "directory" if directory else "file", files),
        *option_words(load_options),
        *(
            "--time_based=1",
            "--runtime=365d",
            # By default fio repeats its offsets: after a restart it would find them in a cache.
            "--randrepeat=0",
            "--allow_file_create=0",
        ),
    )


class BackgroundLoad:
    """Keeps a command running from ``with`` to its end, restarting it whenever it ends.

    ``words`` is an argument list, recorded as ``shown``; its errors go to ``background.err`` in ``workdir``. The command is in a session of
    its own and carries ``env`` (the experiment's marker) besides a mark of this load. Entering raises MachineError when
    it cannot be started and MeasureError when it keeps dying at once; both name the command. Leaving ends the command
    and everything it started.
    """

    def __init__(
        self,
        machine: Machine,
        words: Sequence[str],
        *,
        workdir: str,
        env: Mapping[str, str] | None = None,
        shown: Sequence[str] = (),
    ) -> None:
        self.words = tuple(words)
        self._shown = tuple(shown) or self.words
        self._machine = machine
        self._workdir = workdir
        self._errors = f"{workdir}/background.err"
        self._token = uuid.uuid4().hex
        self._env = {**(env or {}), LOAD: self._token}
        self._stopping = threading.Event()
        self._settled = threading.Event()
        self._lock = threading.Lock()
        self._starts: list[float] = []
        self._ends: list[tuple[float, int]] = []
        self._bytes: list[tuple[float, float]] = []
        self._base = 0.0
        self._process: Process | None = None
        self._problem: IodeltaError | None = None
        self._thread = threading.Thread(
            target=self._keep, name="background", daemon=True
        )

    def __enter__(self) -> Self:
        self._machine.run(["rm", "-f", "--", self._errors])
        self._thread.start()
        try:
            self._settled.wait()
            if self._problem is not None:
                raise self._problem
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the load and everything it started. Raises MeasureError when something does not end."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        end_carrying(self._machine, LOAD, self._token)

    def account(self, window: tuple[float, float]) -> Background:
        """Return what the load did between two Unix times: the measured window of a trial.

        The rate is bytes read from and written to storage by its processes (``read_bytes`` and ``write_bytes`` of
        /proc/PID/io, sampled once a second). Cached reads and the work of kernel threads on its behalf do not count; a
        command that runs for less than a second is counted only in part. None where the kernel does not count.
        Raises MachineError when the command could not be restarted.
        """
        if self._problem is not None:
            raise self._problem
        begin, end = window
        self._sample()
        with self._lock:
            starts, ends, samples = (
                list(self._starts),
                list(self._ends),
                list(self._bytes),
            )
        lives = [
            (start, ends[i][0] if i < len(ends) else self._machine.time())
            for i, start in enumerate(starts)
        ]
        alive = sum(
            max(0.0, min(end, last) - max(begin, first)) for first, last in lives
        )
        if not samples or end <= begin:
            rate = None
        else:
            rate = max(0.0, _at(samples, end) - _at(samples, begin)) / (end - begin)
        return Background(
            command=self._shown,
            alive=min(1.0, alive / (end - begin)) if end > begin else 0.0,
            restarts=sum(begin <= start < end for start in starts[1:]),
            rate=rate,
            exit_codes=tuple(code for when, code in ends if begin <= when < end),
        )

    def _keep(self) -> None:
        """The thread: start, watch, restart."""
        failures = 0
        try:
            while not self._stopping.is_set():
                started = self._machine.time()
                code = self._live()
                if code is None:
                    return
                lived = self._machine.time() - started
                failures = failures + 1 if code and lived < AT_ONCE else 0
                # Only a load that never ran gives up. One that ran before is restarted for as long as it takes:
                # what the trials lack of it becomes a finding (``background_findings``).
                if failures == len(self._ends) == ATTEMPTS:
                    message = " ".join(self._machine.read(self._errors).split())[-300:]
                    how = (
                        f"was killed by signal {-code}"
                        if code < 0
                        else f"ended with exit code {code}"
                    )
                    self._problem = MeasureError(
                        f"the background load {how} {ATTEMPTS} times at once: {message or 'it printed nothing'}",
                        place=shlex.join(self._shown),
                        remedy="try the command by hand",
                    )
                    return
                if not failures:
                    self._settled.set()
                # A command that succeeds at once starts at most 20 times a second.
                self._stopping.wait(
                    min(LONGEST_PAUSE, 0.1 * 2**failures)
                    if failures
                    else max(0.0, 0.05 - lived)
                )
        except IodeltaError as error:
            self._problem = error
        finally:
            self._settled.set()

    def _live(self) -> int | None:
        """Return one life of the command: its exit code, or None when it was stopped."""
        process = self._machine.start(
            self.words, env=self._env, cwd=self._workdir, stderr=self._errors
        )
        started = self._machine.time()
        with self._lock:
            self._starts.append(started)
            self._base = self._bytes[-1][1] if self._bytes else 0.0
            self._process = process
        sampled = 0.0
        try:
            while (
                code := process.wait(
                    0.1 if self._machine.time() - started < AT_ONCE else 0.25
                )
            ) is None:
                now = self._machine.time()
                if self._stopping.is_set():
                    return None
                if now - started >= AT_ONCE:
                    self._settled.set()
                if now - sampled >= (1.0 if now - started >= AT_ONCE else 0.1):
                    sampled = now
                    self._sample()
            return code
        finally:
            code = process.stop(2.0)
            with self._lock:
                self._process = None
                self._ends.append((self._machine.time(), code))

    def _sample(self) -> None:
        with self._lock:
            counted = (
                None
                if self._process is None
                else _storage_bytes(self._machine, self._process.pid)
            )
            if counted is not None:
                last = self._bytes[-1][1] if self._bytes else 0.0
                # A process that leaves the tree takes its count along; bytes that were counted stay counted.
                self._bytes.append(
                    (self._machine.time(), max(last, self._base + counted))
                )


def background_findings(background: Background) -> tuple[Finding, ...]:
    """Return whether the load was there during the trial: hard when it was missing for more than half of it."""
    place = shlex.join(background.command)
    codes = ", ".join(str(code) for code in sorted(set(background.exit_codes)))
    findings = []
    if background.alive < FULL:
        findings.append(
            Finding(
                "background.absent",
                "hard" if background.alive < HALF else "warning",
                place,
                f"the background load ran during {100 * background.alive:.0f} % of the trial "
                f"(restarts: {background.restarts}; exit codes: {codes or 'none'})",
                "give it more to do, so that it runs longer than a trial",
            )
        )
    if any(background.exit_codes):
        text = f"the background load failed during the trial (exit codes {codes})"
        findings.append(
            Finding(
                "background.failing", "warning", place, text, "try the command by hand"
            )
        )
    return tuple(findings)


def _storage_bytes(machine: Machine, pid: int) -> float | None:
    """Bytes that a process tree has moved to and from storage; a parent's count includes children it has reaped."""
    total, known, todo = 0.0, False, [str(pid)]
    while todo:
        process = todo.pop()
        todo += map(str, children(machine, process))
        # It has just ended, or belongs to another user.
        with contextlib.suppress(MachineError):
            counts = dict(
                re.findall(
                    r"^(read|write)_bytes: (\d+)",
                    machine.read(f"/proc/{process}/io"),
                    re.MULTILINE,
                )
            )
            if counts:
                known = True
                total += float(counts["read"]) + float(counts["write"])
    return total if known else None


def _at(samples: Sequence[tuple[float, float]], when: float) -> float:
    """Return the cumulative count at a time, linear between samples."""
    index = bisect.bisect(samples, (when, float("inf")))
    if index == 0:
        if len(samples) == 0:
            return 0.0
        return samples[0][1]
    if index == len(samples):
        return samples[-1][1]
    (t0, b0), (t1, b1) = samples[index - 1], samples[index]
    return b0 + (b1 - b0) * (when - t0) / (t1 - t0)
