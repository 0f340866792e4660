"""The bench makes one trial: set the knobs, read the counters, run fio, read them again, keep the record."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec
from msgspec.structs import replace

from iodelta.errors import LostError, MeasureError, RequestError, pasted
from iodelta.experiment import Cell, Condition, Variant
from iodelta.experiment.command import only_reads
from iodelta.experiment.io_uring import TOOL
from iodelta.experiment.model import mirrored
from iodelta.knob import Knob, Saved, turn
from iodelta.knob.base import attachment
from iodelta.lab.commands import OnlyReads, check_reads, kept_of
from iodelta.lab.diskstate import state_known, written_since
from iodelta.lab.folder import Folder, Started
from iodelta.lab.guard import WritePermit
from iodelta.lab.plan import Plan
from iodelta.lab.quality import noise
from iodelta.lab.record import RECORD, Record, assemble
from iodelta.lab.requests import Requests
from iodelta.machine import Machine
from iodelta.probe.caches import cache_findings, emulation_findings
from iodelta.probe.counters import Counters, Snapshot
from iodelta.probe.mirrors import Mirrors
from iodelta.probe.topology import Target, resolve, status
from iodelta.trial import Background, Finding, Trial
from iodelta.workload import command, io_uring
from iodelta.workload.background import (
    BackgroundLoad,
    background_findings,
    background_fio,
    substitute,
)
from iodelta.workload.fio import reads_only, run
from iodelta.workload.model import OUTPUTS, FioRequest, FioResult, FioRun
from iodelta.workload.pooled import pooled
from iodelta.workload.result import read_run


def background_words(
    condition: Condition, target: Target, files: str = ""
) -> tuple[str, ...]:
    """Return the command of a condition's background load on ``target``; empty without a load. ``files`` is the
    pattern for file names if the target is a directory. Raises RequestError."""
    if condition.background_fio:
        return background_fio(
            condition.background_fio,
            target.real_path,
            directory=target.kind == "directory",
            files=files,
            place=f"condition {condition.name}",
        )
    values = {
        "target.path": target.real_path,
        "target.mount": target.mount,
        "target.device": target.device or "",
    }
    return substitute(
        condition.background, {name: value for name, value in values.items() if value}
    )


def lone_device(
    cell: Cell, variant: Variant, condition: Condition, target: Target
) -> str | None:
    """Return the device whose I/O during a trial should be fio's alone; None where others do I/O, too.

    None for buffered I/O, a background load, a mirror and several devices; for writes to a filesystem, which adds its
    own; and for ``t/io_uring``, which also reads in seconds that it does not count.
    """
    given = dict((*cell.options, *variant.options))
    direct = given.get("direct", "0") in ("1", None)
    reads = reads_only(tuple(given.items()))
    if cell.command is not None:
        return None
    loaded = bool(
        condition.background
        or condition.background_fio
        or mirrored(variant.knobs)
        or cell.option(TOOL)
    )
    if (
        not direct
        or loaded
        or len(target.devices) != 1
        or not (reads or target.kind == "block")
    ):
        return None
    return target.device


@dataclass(frozen=True)
class Settings:
    """The knobs that the experiment sets."""

    knobs: Mapping[str, Knob]
    saved: Mapping[str, Saved]
    """Their originals."""
    of_values: Mapping[str, Mapping[str, tuple[Finding, ...]]]
    """Knob -> value -> findings about that value on this machine."""
    placement: Mapping[str, tuple[Finding, ...]]
    """Variant -> findings about the CPUs that it binds its tasks to."""

    def findings(self, condition: Condition, variant: Variant) -> tuple[Finding, ...]:
        """Findings about the settings of a variant under a condition."""
        given = {**condition.knobs, **variant.knobs}.items()
        findings = chain.from_iterable(
            self.of_values.get(name, {}).get(value, ()) for name, value in given
        )
        return (*self.placement.get(variant.name, ()), *findings)


@dataclass(frozen=True)
class Load:
    """What the runs of one trial's load left."""

    runs: Sequence[FioRun]
    """One after the other; only the last may not have finished."""
    starts: Sequence[float]
    """When each process began; ``time.monotonic()``."""
    before: Snapshot
    after: Snapshot


class Bench:
    """One machine, one target, ready to make trials of one experiment."""

    def __init__(
        self,
        machine: Machine,
        plan: Plan,
        folder: Folder,
        requests: Requests,
        settings: Settings,
        *,
        permit: WritePermit | None,
        env: Mapping[str, str],
    ) -> None:
        self._machine = machine
        self._plan = plan
        self._experiment = plan.experiment
        self._folder = folder
        self.target = target = requests.target
        self._requests = requests
        self._settings = settings
        self._permit = permit
        self._env = env
        with machine.together("bench"):
            self._counters = Counters(machine, target)
            self._mirrors = Mirrors(machine, target)
            self._standing = (
                *cache_findings(machine, target),
                *emulation_findings(machine),
            )
            self._attached = self._attachments()
            self._reads = (
                OnlyReads(machine, target) if only_reads(plan.experiment) else None
            )
            self._disk = state_known(machine, target) if permit is not None else None

    def check_target(self) -> None:
        """Raises MeasureError when the target has vanished or become another device since the run began."""
        try:
            with self._machine.together("target"):
                now = resolve(self._machine, self.target.path).identity
        except RequestError:
            raise self._vanished() from None
        # Without by-id links: some name the contents (lvm-pv-uuid-...), which a write workload changes.
        before, after = (
            replace(identity, by_id=()) for identity in (self.target.identity, now)
        )
        if before != after:
            raise self._vanished()

    def _attachments(self) -> tuple[str, ...]:
        """Return what distinguishes a disk or a file from one that takes its place: cheap enough to read before each
        trial.
        """
        if self.target.kind == "block":
            return tuple(attachment(self._machine, disk) for disk in self.target.disks)
        stat = status(self._machine, self.target.real_path)
        if not stat:
            return ()
        return (f"{stat.devno} {stat.inode}",)

    def _vanished(self) -> MeasureError:
        return MeasureError(
            "the target has vanished, or is a different device now",
            place=self.target.path,
            remedy=f"bring it back, then `iodelta run {pasted(self._folder.path)}` continues it",
        )

    def background(self, condition: Condition) -> BackgroundLoad:
        """Return the condition's background load, to be entered. Raises RequestError for a placeholder it cannot fill."""
        files = self._plan.experiment.target.files
        opened = replace(
            self.target, real_path=self._requests.opened or self.target.real_path
        )
        return BackgroundLoad(
            self._machine,
            background_words(condition, opened, files),
            shown=background_words(condition, self.target, files),
            workdir=self._requests.workdir,
            env=self._env,
        )

    def trial(
        self,
        identity: Started,
        cell: Cell,
        variant: Variant,
        background: BackgroundLoad | None,
        *,
        stop: Callable[[], bool],
        on_tick: Callable[[float], None],
        runs: int = 1,
    ) -> Trial | None:
        """Make one trial and put its raw record on disk; None when ``stop`` ended it.

        With several ``runs`` of the load, one after the other, the trial is their mean.

        Raises KnobError, RefusedError, MeasureError."""
        condition = self._experiment.condition(cell.condition)
        launcher = self._turned(condition, variant, stop)
        requests = [
            self._requests.of(
                cell, variant, seed=identity.seed + number, launcher=launcher
            )
            for number in range(runs)
        ]
        load = self._loaded(cell, requests, stop, on_tick)
        first, *more = load.runs
        if load.runs[-1].ended == "stopped":
            return None
        result = pooled([read_run(done) for done in load.runs])
        account, of_background = self._account_of(background, first, result)
        copies = {} if mirrored(variant.knobs) else self._mirrors.account()
        findings = (
            *of_background,
            *self._settings.findings(condition, variant),
            *self._standing,
            *self._mirrors.findings(copies),
            *self._writes(load),
        )
        counters, moved = self._counted(cell, load, result)
        record = Record(
            run=replace(first, output=b""),
            counters={
                **counters,
                **copies,
                **written_since(
                    self._disk, target=self.target, counters=load.before.counters
                ),
            },
            background=account,
            findings=findings,
            more=tuple(more),
            **kept_of(first, result),
        )
        trial = assemble(identity, record, result)
        disturbed = noise(
            trial,
            self._plan.quality,
            margin=self._experiment.margin,
            device=lone_device(cell, variant, condition, self.target),
            moved=moved if self._experiment.design.ramp else trial.counters,
        )
        record = replace(record, findings=(*record.findings, *disturbed))
        self._folder.write_raw(
            identity.trial,
            {
                OUTPUTS[first.request.tool]: first.output,
                RECORD: msgspec.json.encode(record),
            },
        )
        trial = replace(
            trial, findings=(*record.findings, *trial.findings[len(findings) :])
        )
        check_reads(trial.findings)
        return trial

    def _loaded(
        self,
        cell: Cell,
        requests: Sequence[FioRequest],
        stop: Callable[[], bool],
        on_tick: Callable[[float], None],
    ) -> Load:
        """Run a trial's load, once for each request until one does not finish, between two readings of the counters."""
        pids: list[int] = []
        starts: list[float] = []

        def start(pid: int) -> None:
            pids[:] = [pid]
            starts.append(time.monotonic())

        def tick(seconds: float) -> None:
            self._counters.sample()
            # fio does not count its ramp, and t/io_uring neither its first nor its last second: notes cut them out.
            if cell.option(TOOL) or self._experiment.design.ramp:
                self._counters.note()
            self._mirrors.sample(*pids)
            on_tick(seconds)

        problem = ""
        if cell.command is not None:
            ready, problem = command.make_ready(self._machine, requests[0], self._env)
            requests = [ready, *requests[1:]]
        if self._reads is not None:
            self._reads.look()
        before = self._counters.snapshot()
        runs: list[FioRun] = []
        for request in requests:
            if problem:
                done = command.not_run(request, self._machine.time(), problem)
            else:
                done = run(
                    self._machine,
                    request,
                    opened=self._requests.opened,
                    stop=stop,
                    on_start=start,
                    on_tick=tick,
                    env=self._env,
                )
            runs.append(done)
            if done.ended != "finished":
                break
        return Load(runs, starts, before, self._counters.snapshot())

    def _counted(
        self, cell: Cell, load: Load, result: FioResult
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the counters' changes during the load, and those since fio began to count.

        ``t/io_uring`` does not say when it counts. Its counters are those of the seconds that it probably counted; the
        whole run's are kept as ``whole.NAME``, and the second mapping is empty."""
        whole = self._counters.difference(load.before, load.after)
        windows = io_uring.windows(load.runs, load.starts) if cell.option(TOOL) else ()
        if not windows:
            # When fio began to count, by the clock of `starts`; infinite where it did not say, or ran several times
            if result.window is None or len(load.runs) > 1:
                begun = math.inf
            else:
                begun = load.starts[0] + result.window[0] - load.runs[0].started
            return whole, self._counters.since(begun, load.after)
        counted = self._counters.within(windows, load.before, load.after)
        kept = {f"whole.{name}": whole[name] for name in counted if name in whole}
        return {**whole, **counted, **kept}, {}

    def _writes(self, load: Load) -> tuple[Finding, ...]:
        """Findings about writes during a load that only reads."""
        if self._reads is None:
            return ()
        return self._reads.findings(self._counters.difference(load.before, load.after))

    def unmeasured(
        self,
        cell: Cell,
        variant: Variant,
        seed: int,
        words: tuple[str, ...],
        *,
        stop: Callable[[], bool],
    ) -> FioRun:
        """Run the load of a trial below an instrument, given by ``words``. It is not a trial and is not kept. Raises as
        ``trial``."""
        launcher = self._turned(
            self._experiment.condition(cell.condition), variant, stop
        )
        return run(
            self._machine,
            self._requests.of(cell, variant, seed=seed, launcher=(*words, *launcher)),
            opened=self._requests.opened,
            stop=stop,
            env=self._env,
        )

    def _turned(
        self, condition: Condition, variant: Variant, stop: Callable[[], bool]
    ) -> tuple[str, ...]:
        """Set the variant's knobs and check that the target is still the same; returns words to put before the load."""
        settings = {**condition.knobs, **variant.knobs}
        with self._machine.together("turn", condition.name, variant.name):
            if self._attachments() != self._attached:
                raise self._vanished()
            launcher = turn(self._settings.knobs, self._settings.saved, settings)
        if self._permit is not None:
            self._permit.recheck()
        if settings:
            pause(self._experiment.design.settle, stop)
        return launcher

    def _account_of(
        self, background: BackgroundLoad | None, done: FioRun, result: FioResult
    ) -> tuple[Background | None, tuple[Finding, ...]]:
        """Return what the background load did during a run, and the findings about it."""
        if background is None:
            return None, ()
        window = result.window or (
            done.started + self._experiment.design.ramp,
            done.started + done.seconds,
        )
        try:
            account = background.account(window)
        except LostError:
            raise
        except MeasureError as error:
            return None, (
                Finding(
                    "background.gone",
                    "hard",
                    " ".join(background.words),
                    f"the background load is gone: {error.what}",
                ),
            )
        return account, background_findings(account)


def pause(seconds: float, stop: Callable[[], bool]) -> None:
    """Wait, but return early once ``stop`` is true."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not stop():
        time.sleep(min(left, 0.1))
