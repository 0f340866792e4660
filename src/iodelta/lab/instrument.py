"""Runs of a load under an instrument, after all trials. They are not trials, and none counts.

An instrument slows what it observes, so it never observes a measured trial. Its results, or the reason why there are
none, are kept in the folder (``instruments.json``) and reported after the verdicts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from iodelta.errors import IodeltaError, LostError, MachineError
from iodelta.experiment import Cell, Variant
from iodelta.lab.folder import Folder, Kept, now
from iodelta.lab.plan import Plan
from iodelta.probe import profile, stages
from iodelta.probe.profile import Profile
from iodelta.probe.stages import TRACEFS, Stage
from iodelta.workload.model import FioRun
from iodelta.workload.result import read_run

if TYPE_CHECKING:
    from iodelta.lab.bench import Bench
    from iodelta.lab.progress import Control
    from iodelta.machine import Machine

FILE = "instruments.json"

SEED = 1


class Looked(msgspec.Struct, frozen=True):
    """One variant of one cell under all instruments."""

    cell: str
    """The cell's name."""
    variant: str
    """The variant's name."""
    counts: dict[str, float | None] = {}
    """Event -> count for one I/O; None where this machine cannot count it."""
    profile: Profile | None = None
    """Functions of the kernel; null without perf."""
    stages: tuple[Stage, ...] = ()
    """Of the block layer; empty where they were not traced."""


class Instruments(msgspec.Struct, frozen=True):
    """What instruments saw, in runs of their own."""

    looked: tuple[Looked, ...] = ()
    """Every variant of every cell that could be seen."""
    missing: dict[str, str] = {}
    """Instrument -> why it could not look."""


def look_closer(
    machine: Machine, bench: Bench, plan: Plan, folder: Folder, control: Control
) -> None:
    """Run every variant of every cell once under each instrument that the experiment asks for, and write it down.

    What fails is a reason in the file; only a lost machine is an error. Does nothing when it was done before.
    """
    wanted = plan.experiment.instruments
    if not wanted or folder.has(FILE):
        return
    # The instruments that cannot be used here, with the reason
    reasons = {"perf": profile.missing, "block": stages.missing}
    why = {name: reasons[name](machine) for name in wanted}
    missing = {name: reason for name, reason in why.items() if reason}
    use = [name for name in wanted if name not in missing]
    looked = []
    look = _Look(machine, bench, plan, folder, use, control.stop)
    cases = list(product(plan.experiment.cells, plan.experiment.variants))
    for number, (cell, variant) in enumerate(cases if use else []):
        control.watcher.preparing(
            f"instruments: {cell.name}, {variant.name}", number / len(cases)
        )
        if control.stop():
            missing["all"] = "stopped by the user before every cell was done"
            break
        try:
            looked.append(look(cell, variant))
        except LostError:
            raise
        except IodeltaError as error:
            missing[f"{cell.name}, {variant.name}"] = error.sentence
    folder.write_struct(FILE, Instruments(tuple(looked), missing))
    folder.append(Kept(now()))


@dataclass(frozen=True)
class _Look:
    """One look at a variant of a cell, with every instrument of ``use``."""

    machine: Machine
    bench: Bench
    plan: Plan
    folder: Folder
    use: Sequence[str]
    stop: Callable[[], bool]

    def __call__(self, cell: Cell, variant: Variant) -> Looked:
        looked = Looked(cell.name, variant.name)
        if "perf" in self.use:
            from iodelta.lab.workdir import workdir

            with workdir(self.machine) as place:
                done = self.bench.unmeasured(
                    cell,
                    variant,
                    SEED,
                    profile.stat_words(f"{place}/stat"),
                    stop=self.stop,
                )
                ios = _ios(done)
                counts = profile.counts(self.machine.read(f"{place}/stat"))
                shares = {
                    name: None if count is None else count / ios
                    for name, count in counts.items()
                }
                done = self.bench.unmeasured(
                    cell,
                    variant,
                    SEED,
                    profile.record_words(f"{place}/data"),
                    stop=self.stop,
                )
                seen = profile.profile(self.machine, f"{place}/data", _ios(done))
            looked = replace(looked, counts=shares, profile=seen)
        if "block" in self.use:
            with _instance(
                self.machine, self.bench, self.plan, self.folder
            ) as instance:
                stages.begin(self.machine, instance, self.bench.target.disks)
                self.bench.unmeasured(cell, variant, SEED, (), stop=self.stop)
                looked = replace(looked, stages=stages.end(self.machine, instance))
        return looked


def _ios(done: FioRun) -> int:
    """Return all I/Os of a run. Raises MachineError when there were none."""
    result = read_run(done)
    total = sum(direction.ios for direction in result.directions)
    if not total:
        reasons = "; ".join(
            finding.explanation
            for finding in result.findings
            if finding.severity == "hard"
        )
        raise MachineError(
            f"no I/O under the instrument: {reasons or 'fio did none'}",
            place=done.args[0],
        )
    return total


@contextlib.contextmanager
def _instance(
    machine: Machine, bench: Bench, plan: Plan, folder: Folder
) -> Iterator[str]:
    """A tracing instance of our own; its removal is in an undo log before it is made, as for any setting."""
    from iodelta.lab.undo import undo_by, undo_log

    instance = f"{TRACEFS}/instances/iodelta-{plan.identifier}"
    with undo_log(machine, f"{plan.identifier}-instrument", folder.path) as log:
        if not stages.mounted(machine):
            log.keep(
                lambda: [
                    undo_by(machine, bench.target, ["sh", "-c", UNMOUNT, "sh", TRACEFS])
                ]
            )
            _done(machine, "mount", "-t", "tracefs", "tracefs", TRACEFS)
        log.keep(
            lambda: [
                undo_by(machine, bench.target, ["sh", "-c", REMOVE, "sh", instance])
            ]
        )
        _done(machine, "mkdir", "--", instance)
        yield instance


UNMOUNT = '! grep -q " $1 tracefs " /proc/self/mounts || umount -- "$1"'
REMOVE = '[ ! -d "$1" ] || rmdir -- "$1"'
"""Constants for sh: what they are about comes as an argument."""


def _done(machine: Machine, *words: str) -> None:
    done = machine.run(words, timeout=60)
    if done.returncode != 0:
        raise MachineError(
            f"{words[0]}: {done.stderr.decode(errors='replace').strip()}",
            place=words[-1],
        )


def seen(folder: Folder) -> Instruments | None:
    """Return what instruments saw in this folder's experiment; None when nothing was asked for, or not yet."""
    if not folder.has(FILE):
        return None
    return folder.read_struct(FILE, Instruments)
