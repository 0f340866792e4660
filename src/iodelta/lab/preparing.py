"""Prepare a disk: purge, fill, rounds until it is steady. Every step is in the journal before it begins, its raw output
on disk before the journal calls it done; so a kill costs the step in flight, and the same call goes on from there."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import msgspec
from msgspec.structs import replace

from iodelta.decoding import converted, from_json
from iodelta.errors import (
    IodeltaError,
    MachineError,
    MeasureError,
    RequestError,
    pasted,
)
from iodelta.experiment import Experiment, Option, Prepare
from iodelta.experiment.prepare import workload_of
from iodelta.lab import purge
from iodelta.lab.account import Account
from iodelta.lab.diskstate import Known, Prepared, counted, forget, remember
from iodelta.lab.folder import Folder, Preparing, Settled, StepBegun, StepDone, now
from iodelta.lab.guard import WritePermit
from iodelta.lab.progress import Control
from iodelta.machine import Machine, throw_away
from iodelta.probe.identity import same_device
from iodelta.probe.sysfs import boot_id
from iodelta.probe.topology import Target
from iodelta.stats.rounds import RANGE, SLOPE, Window, last_window
from iodelta.trial import Direction
from iodelta.workload.fio import check_reach
from iodelta.workload.fio import run as run_fio
from iodelta.workload.model import FioRequest, FioRun
from iodelta.workload.result import read_run

FILL_BLOCK = 128 << 10
"""Bytes of one write in sequence."""

SMALLEST = 1 << 20
"""Bytes that a disk must have to be prepared."""

SEGMENT = 1 << 30
SEGMENTS = 64
"""A fill has at most SEGMENTS parts of at least SEGMENT bytes each, so that a kill costs no more than one part."""

REST = 60.0
"""Seconds without I/O after which a disk may have tidied itself up: rounds after that begin a new window."""

ASSUMED = 500 << 20
"""Bytes per second of writes in sequence, for plans of a disk that was never timed."""

FILL: tuple[Option, ...] = (
    ("rw", "write"),
    ("bs", str(FILL_BLOCK)),
    ("ioengine", "libaio"),
    ("iodepth", "32"),
    ("direct", "1"),
)

Kind = Literal["purge", "fill", "round"]
State = Literal["running", "steady", "not steady"]


class Step(msgspec.Struct, frozen=True):
    """One step, about to be made. Bytes."""

    kind: Kind
    offset: int = 0
    """Where a part of a fill begins."""
    size: int = 0
    """How much it writes."""


class Round(msgspec.Struct, frozen=True):
    """One finished round."""

    number: int
    """Of the step, by which its raw files are found."""
    started: float
    """Unix seconds."""
    seconds: float
    """Seconds from the start of fio to its end."""
    iops: float
    """All its directions together."""
    written: int
    """Bytes."""


def parts_of_fill(size: int, fill: float) -> tuple[Step, ...]:
    """Return the parts in which ``size`` bytes are written ``fill`` times, in order; each pass begins anew."""
    blocks = size // FILL_BLOCK
    each = max(SEGMENT // FILL_BLOCK, math.ceil(blocks / SEGMENTS))
    steps = []
    for passed in range(math.ceil(fill)):
        end = math.ceil(blocks * min(1.0, fill - passed))
        for start in range(0, end, each):
            steps.append(
                Step("fill", start * FILL_BLOCK, min(each, end - start) * FILL_BLOCK)
            )
    return tuple(steps)


def next_step(prepare: Prepare, size: int, done: Sequence[Kind]) -> Step:
    """Return what follows the steps that are done; after all others a round."""
    counts = Counter(done)
    if prepare.purge != "none" and not counts["purge"]:
        return Step("purge")
    parts = parts_of_fill(size, prepare.fill)
    return parts[counts["fill"]] if counts["fill"] < len(parts) else Step("round")


def unbroken(rounds: Sequence[Round]) -> Sequence[Round]:
    """Return the last rounds between which the disk did not rest."""
    start = 0
    for at, (before, after) in enumerate(pairwise(rounds), 1):
        if after.started - (before.started + before.seconds) > REST:
            start = at
    return rounds[start:]


def least_written(prepare: Prepare, size: int) -> float:
    """Bytes that rounds must have written before a window counts: the spare area, and what the fill left unwritten."""
    return size * (prepare.spare + max(0.0, 1.0 - prepare.fill))


def window_of(rounds: Sequence[Round]) -> Window | None:
    """Return the last five rounds, unless the disk rested between them. Places are those among all ``rounds``."""
    recent = unbroken(rounds)
    window = last_window([measured.iops for measured in recent])
    if not window:
        return None
    return replace(window, first=window.first + len(rounds) - len(recent))


def state_of(
    prepare: Prepare, size: int, rounds: Sequence[Round], given_up: int = 0
) -> State:
    """Return whether the disk is steady after these rounds; ``given_up`` of them were made when it was given up before."""
    window = window_of(rounds)
    # Only bytes written before the window count: five rounds may themselves use up the spare area, all of them as fast
    # as on a new disk.
    if (
        window is not None
        and window.steady
        and overwritten(rounds[: window.first]) >= least_written(prepare, size)
    ):
        return "steady"
    tried = min(len(unbroken(rounds)), len(rounds) - given_up)
    return "not steady" if tried >= prepare.limit else "running"


def overwritten(rounds: Sequence[Round]) -> int:
    """Bytes that the rounds have written."""
    return sum(measured.written for measured in rounds)


OUTPUT, RECORD = "fio.json", "record"

LONGEST = 7 * 86400.0
"""Seconds after which a part of a fill counts as failed."""

EXPECTED = frozenset({"fio.short", "fio.long"})
"""Findings about every run that ends by bytes and not by time; they do not count here."""


@dataclass(frozen=True)
class Disk:
    """What is prepared, and how. Bytes."""

    machine: Machine
    target: Target
    size: int
    prepare: Prepare
    workload: tuple[Option, ...]
    """fio options of the rounds."""
    fio: tuple[int, int]
    """fio's version."""

    def request(
        self, options: tuple[Option, ...], workdir: str, **more: object
    ) -> FioRequest:
        """Return the request to fio."""
        made = FioRequest(
            options=options,
            target=self.target.real_path,
            target_kind="device" if self.target.kind == "block" else "file",
            runtime=self.prepare.round,
            ramp=0.0,
            seed=1,
            workdir=workdir,
            size=self.size,
            version=self.fio,
        )
        return replace(made, **more)

    @property
    def how(self) -> str:
        """Return the preparation in a line of words."""
        parts = (
            [] if self.prepare.purge == "none" else [f"purge by {self.prepare.purge}"]
        )
        if self.prepare.fill:
            parts.append(f"{self.prepare.fill:g} x its size in sequence, 128k writes")
        options = " ".join(
            name if value is None else f"{name}={value}"
            for name, value in self.workload
        )
        return "; ".join([*parts, f"rounds of {self.prepare.round:g} s ({options})"])


class Cost(msgspec.Struct, frozen=True):
    """What a preparation takes. Bytes and seconds."""

    how: str
    """The preparation in a line of words."""
    fill_bytes: int
    """Bytes written in sequence."""
    fill_seconds: float
    """About how long that takes."""
    timed: bool
    """Whether that rests on an earlier preparation of this disk; else on a guess."""
    rounds_seconds: float
    """Seconds of all rounds, at the most."""


def cost_of(disk: Disk, state: Known | None) -> Cost:
    """Return what the preparation takes, by what is known of the disk. Raises RequestError where it cannot be made."""
    unpreparable(disk)
    rate = state.prepared.rate if state and state.prepared else 0.0
    fill, rounds = (
        disk.prepare.fill * disk.size / (rate or ASSUMED),
        disk.prepare.limit * disk.prepare.round,
    )
    written = sum(part.size for part in parts_of_fill(disk.size, disk.prepare.fill))
    return Cost(disk.how, written, fill, rate > 0, rounds)


def disk_of(
    machine: Machine,
    experiment: Experiment,
    target: Target,
    size: int | None,
    version: tuple[int, int],
) -> Disk:
    """Return what an experiment asks to be prepared; ``size`` is that of its survey."""
    return Disk(
        machine,
        target,
        size or target.size_bytes,
        experiment.prepare or Prepare(),
        workload_of(experiment),
        version,
    )


def unpreparable(disk: Disk) -> None:
    """Raises RequestError for what cannot be prepared here."""
    if throw_away(disk.machine):
        remedy = "prepare the disk that the guest is given, on the machine that has it"
        raise RequestError(
            "the disks of a guest exist only as long as the guest",
            place="[prepare]",
            remedy=remedy,
        )
    if disk.target.kind == "directory":
        raise RequestError(
            "is a directory: only a block device or a file of its own has a state to prepare",
            place=disk.target.path,
            remedy="name the device, or leave [prepare] out",
        )
    if disk.size < SMALLEST:
        raise RequestError(
            f"has {disk.size} bytes, which is too small to prepare",
            place=disk.target.path,
        )
    check_reach(disk.request(disk.workload, ""), disk.target.size_bytes)
    why = purge.unable(disk.machine, disk.target, disk.prepare, disk.size)
    if why:
        remedy = 'choose another purge, or "none"'
        raise RequestError(
            f"cannot be purged: {why}", place=disk.target.path, remedy=remedy
        )


class UnsteadyError(IodeltaError):
    """A disk did not become steady within the limit of rounds: nothing was measured. Exit 3, inconclusive."""

    exit_code: ClassVar[int] = 3


class Preparation:
    """One session of the preparation of one disk, in a folder that is held for writing."""

    def __init__(
        self,
        disk: Disk,
        folder: Folder,
        control: Control,
        *,
        place: str,
        env: Mapping[str, str],
        permit: WritePermit | None,
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._control = control
        self._place = place
        self._env = env
        self._permit = permit
        self._name = disk.machine.name
        self._account = Account(folder.events())
        self._rounds = list(rounds_of(folder, self._account, self._name))

    def run(self) -> State:
        """Go on until the disk is steady, the limit is reached, or somebody stops it (``running``).

        Raises MeasureError for a step that failed, RefusedError, RequestError for another disk than before.
        """
        settled = self._account.settled.get(self._name)
        if settled is not None and settled.steady:
            return "steady"
        self._begin()
        given_up = settled.rounds if settled else 0
        while (
            state := self._state(given_up)
        ) == "running" and not self._control.stop():
            self._step(next_step(self._disk.prepare, self._disk.size, self._kinds()))
        if state != "running":
            self._settle(state)
        return state

    def _begin(self) -> None:
        disk = self._disk
        for before in self._account.preparing:
            if before.machine == self._name and not _same(before, disk.target):
                raise RequestError(
                    "is not the disk whose preparation began",
                    place=disk.target.path,
                    remedy="reconnect that disk under this path, or begin in a new folder",
                )
        target = msgspec.to_builtins(disk.target)
        boot = boot_id(disk.machine)
        self._append(
            Preparing(
                now(), boot, os.getpid(), target, disk.size, disk.workload, self._name
            )
        )
        # Before the first write: after a kill the old state must not be on record.
        forget(disk.machine, disk.target)

    def _state(self, given_up: int) -> State:
        if not self._rounds:
            return "running"
        return state_of(self._disk.prepare, self._disk.size, self._rounds, given_up)

    def _kinds(self) -> list[Kind]:
        return [
            step.step
            for step in self._account.steps.values()
            if step.machine == self._name
        ]

    def _step(self, step: Step) -> None:
        """One step, with its lines in the journal; a step that was stopped has only the first line."""
        if self._permit is not None:
            self._permit.recheck()
        number = max(self._account.steps, default=0) + 1
        self._append(StepBegun(now(), number, step.kind, self._name))
        if step.kind == "purge":
            self._purge(number)
            return
        made = self._fio(step)
        if made.ended == "stopped":
            return
        rate, written = _measured(made, self._disk.target.path, self._folder)
        record = replace(made, output=b"")
        self._folder.write_raw(
            step_name(number),
            {OUTPUT: made.output, RECORD: msgspec.json.encode(record)},
        )
        self._append(
            StepDone(
                now(),
                number,
                step.kind,
                made.started,
                made.seconds,
                written,
                self._name,
            )
        )
        if step.kind == "round":
            self._rounds.append(
                Round(number, made.started, made.seconds, rate, written)
            )
            # The last round in a sentence, with the range and slope of the last five
            window, last = window_of(self._rounds), self._rounds[-1]
            text = f"round {len(self._rounds)}: {last.iops:,.0f} IOPS"
            if window is not None:
                over = f"range {100 * window.range:.0f} % ({100 * RANGE:.0f} % allowed)"
                text += f"; the last five: {over}, slope {round(100 * window.slope):+d} % ({100 * SLOPE:.0f} % allowed)"
            self._control.watcher.note(
                f"{text}; {100 * overwritten(self._rounds) / self._disk.size:.0f} % of the size written by complete rounds"
            )

    def _purge(self, number: int) -> None:
        disk = self._disk
        self._control.watcher.preparing(
            f"purging {disk.target.path} by {disk.prepare.purge}", 0.0
        )
        started, begun = now(), time.monotonic()
        done = purge.run(disk.machine, disk.target, disk.prepare, disk.size)
        self._folder.write_raw(step_name(number), {RECORD: msgspec.json.encode(done)})
        self._append(
            StepDone(
                now(), number, "purge", started, time.monotonic() - begun, 0, self._name
            )
        )

    def _fio(self, step: Step) -> FioRun:
        """Run fio for a step, and report how far all steps of its kind are."""
        disk, made = self._disk, self._kinds().count(step.kind)
        if step.kind == "round":
            request = disk.request(disk.workload, self._place, seed=made + 1)
            what = f"rounds on {disk.target.path} until it is steady, {disk.prepare.limit} at most"
            before, in_step, whole = (
                made * disk.prepare.round,
                disk.prepare.round,
                disk.prepare.limit * disk.prepare.round,
            )
        else:
            parts = [
                float(part.size) for part in parts_of_fill(disk.size, disk.prepare.fill)
            ]
            options = (*FILL, ("offset", str(step.offset)))
            request = disk.request(
                options, self._place, size=step.size, whole=True, runtime=LONGEST
            )
            what = f"writing {disk.target.path} in sequence, {disk.prepare.fill:g} x its size"
            before, in_step, whole = sum(parts[:made]), float(step.size), sum(parts)
        start = counted(disk.machine, disk.target) if step.kind == "fill" else None

        def tick(seconds: float) -> None:
            moved = seconds if step.kind == "round" else self._moved(start)
            self._control.watcher.preparing(
                what, min(1.0, (before + min(in_step, moved)) / whole)
            )

        tick(0.0)
        return run_fio(
            disk.machine,
            request,
            opened=self._permit.opened if self._permit else "",
            stop=self._control.stop,
            on_tick=tick,
            env=self._env,
        )

    def _moved(self, start: int | None) -> float:
        """Bytes written to the device since ``start``, for the progress of a part."""
        reached = counted(self._disk.machine, self._disk.target)
        if start is not None and reached is not None:
            return float(reached - start)
        return 0.0

    def _settle(self, state: State) -> None:
        disk, steady = self._disk, state == "steady"
        self._append(Settled(now(), steady, len(self._rounds), self._name))
        if disk.target.kind != "block":
            return
        fills = [
            step
            for step in self._account.steps.values()
            if step.step == "fill" and step.machine == self._name
        ]
        took = sum(fill.seconds for fill in fills)
        rate = sum(fill.written for fill in fills) / took if took else 0.0
        prepared = Prepared(
            disk.target.identity,
            now(),
            steady,
            disk.how,
            disk.size,
            len(self._rounds),
            rate,
            str(self._folder.path.absolute()),
            boot_id(disk.machine),
            counted(disk.machine, disk.target),
        )
        try:
            remember(disk.machine, disk.target, prepared)
        except MachineError as error:
            self._control.watcher.note(
                f"the state of {disk.target.path} was not recorded for later runs: {error.sentence}"
            )

    def _append(self, event: Preparing | StepBegun | StepDone | Settled) -> None:
        self._folder.append(event)
        self._account.add(event)


def prepared_first(preparation: Preparation, disk: Disk, folder: Folder) -> None:
    """Prepare the disk of an experiment before its first trial.

    Raises UnsteadyError, and MeasureError when it was stopped; what was made is kept.
    """
    state, path = preparation.run(), pasted(folder.path)
    if state == "running":
        remedy = f"finished steps are kept; `iodelta run {path}` continues it"
        raise MeasureError(
            "stopped while the disk was prepared", place=disk.target.path, remedy=remedy
        )
    if state == "not steady":
        raise UnsteadyError(
            f"the disk did not become steady within {disk.prepare.limit} rounds; nothing was measured",
            place=disk.target.path,
            remedy=f"`iodelta run {path}` makes as many further rounds; `iodelta report {path}` shows the earlier ones",
        )


def rounds_of(folder: Folder, account: Account, machine: str) -> tuple[Round, ...]:
    """Return the finished rounds of a machine's disk, read from their raw files. Raises MeasureError."""
    rounds = []
    for number, step in sorted(account.steps.items()):
        if step.step == "round" and step.machine == machine:
            rate = sum(direction.iops.value for direction in read_step(folder, number))
            rounds.append(Round(number, step.started, step.seconds, rate, step.written))
    return tuple(rounds)


def read_step(folder: Folder, number: int) -> tuple[Direction, ...]:
    """Return what fio measured in a step. Raises MeasureError for a file that is missing or damaged."""
    try:
        record = from_json(folder.read_raw(step_name(number), RECORD), FioRun)
    except msgspec.MsgspecError as error:
        raise MeasureError(f"damaged: {error}", place=f"step {number}") from error
    output = folder.read_raw(step_name(number), OUTPUT)
    return read_run(replace(record, output=output)).directions


def step_name(number: int) -> str:
    """Return what the raw files of a step of a preparation are called, in place of a trial's number."""
    return f"step-{number:06d}"


def _measured(made: FioRun, place: str, folder: Folder) -> tuple[float, int]:
    """IOPS and bytes written of a run. Raises MeasureError for one that failed."""
    result = read_run(made)
    bad = [
        finding
        for finding in result.findings
        if finding.severity == "hard"
        and not (made.request.whole and finding.rule in EXPECTED)
    ]
    if bad or made.exit_code:
        reason = bad[0].explanation if bad else f"fio ended with {made.exit_code}"
        remedy = f"finished steps are kept; `{again(folder)}` continues it"
        raise MeasureError(
            f"a step of the preparation failed: {reason}", place=place, remedy=remedy
        )
    written = sum(
        direction.bytes for direction in result.directions if direction.kind == "write"
    )
    if made.request.whole and written < (made.request.size or 0) - FILL_BLOCK:
        raise MeasureError(
            f"fio wrote {written} of {made.request.size} bytes", place=place
        )
    return sum(direction.iops.value for direction in result.directions), written


def again(folder: Folder) -> str:
    """Return the command that continues a folder."""
    return f"{folder.again} {pasted(folder.path)}"


def _same(before: Preparing, target: Target) -> bool:
    """Return whether a disk is the one that was prepared. A disk without a lasting name cannot be recognised after a
    reboot.
    """
    earlier = converted(before.target, Target)
    if target.kind != "block":
        return (earlier.real_path, earlier.size_bytes) == (
            target.real_path,
            target.size_bytes,
        )
    return same_device(earlier.identity, target.identity)
