"""The value of a kernel: instructions per I/O of its cell, counted in one boot of a throw-away guest (path mode).

What does not boot, panics, hangs or cannot make the target is that kernel's own failure; a count repeats exactly.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from iodelta.bisect.commands import Stopped
from iodelta.bisect.log import ENVIRONMENT, OUTPUT, SearchFolder
from iodelta.bisect.measure import Reading, cell_experiment, with_knobs
from iodelta.bisect.question import Question
from iodelta.bisect.tree import Unbuildable
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import Experiment
from iodelta.machine import Machine
from iodelta.path.functions import CLASSES, Symbols, in_kernel, per_io
from iodelta.path.output import Output, read
from iodelta.path.plan import PathPlan, Purpose, make_plan
from iodelta.path.run import started
from iodelta.trial import Kind
from iodelta.vm import guest

EXACT = 0.001
"""Share to within which two kernels with the same path agree: irrelevant changes of layout move a median of several
thousand instructions by up to eight."""

UNIT = "instructions"
PATHS: dict[str, Kind] = {
    f"{kind}.instructions": kind for kind in ("read", "write", "trim")
}
"""Metric -> direction: the median over all I/Os of one boot."""

CHARGES = {f"bill.{kind}": kind for kind in CLASSES if kind != "string"}
"""Metric -> class of instructions: what the kernel executes for an I/O, a mean over the I/Os of one boot."""

CHARGE_EXACT = 0.02
"""As ``EXACT``, for a charge: ticks of the timer move some twenty locked instructions by less than a tenth."""

LEAST = 0.25
"""A charge below this counts as this: searches compare by ratios, and an I/O may have none."""


class Counted:
    """One boot of the item's kernel for every value."""

    def __init__(
        self, machine: Machine, question: Question, path: Path, stop: Callable[[], bool]
    ) -> None:
        self._machine, self._question, self._path, self._stop = (
            machine,
            question,
            path,
            stop,
        )
        self._experiment = cell_experiment(question.experiment)

    def read(self, item: str, visit: int, values: Mapping[str, str]) -> Reading:
        begun = time.monotonic()
        plan = make_plan(with_knobs(self._experiment, self._question.knobs, values))
        self._record(plan)
        metric, place = self._question.metric, f"boot of visit {visit}"
        charged = metric in CHARGES
        if charged and plan.functions:
            raise MeasureError(
                plan.functions,
                place=metric,
                remedy="or search by the length of the path",
            )
        printed, counts = self._boot(plan, visit, "functions" if charged else "exact")
        output = read(printed, place)
        if output.cells[0].reason:
            raise Unbuildable(output.cells[0].reason)
        value = (
            charge(CHARGES[metric], output, counts, place)
            if charged
            else median(PATHS[metric], output)
        )
        return Reading(value, time.monotonic() - begun)

    def close(self) -> None:
        """A guest does not outlive its visit."""

    def _boot(
        self, plan: PathPlan, visit: int, purpose: Purpose
    ) -> tuple[bytes, bytes]:
        """What the guest said, and what the plugin counted; its console is kept beside the outputs of commands."""
        boot = next(boot for boot in plan.boots if boot.purpose == purpose)
        with (
            tempfile.TemporaryDirectory(prefix="iodelta-vm-") as work,
            started(plan, boot, Path(work)) as running,
        ):
            while (ended := running.poll()) is None:
                if self._stop():
                    raise Stopped
                time.sleep(0.05)
            for name, data in (("console", running.console), ("guest", running.output)):
                (self._path / OUTPUT / f"{visit:05d}.{name}").write_bytes(data)
            if ended.problem:
                raise Unbuildable(ended.problem)
            counts = Path(work, "counts")
            return running.output, counts.read_bytes() if counts.is_file() else b""

    def _record(self, plan: PathPlan) -> None:
        """The machine that is measured: the guest."""
        folder = SearchFolder(self._path)
        if folder.environment():
            return
        version = self._machine.run(
            [guest.find_program("fio"), "--version"]
        ).text.strip()
        folder.write(ENVIRONMENT, environment(plan, version))


def median(kind: Kind, output: Output) -> float:
    """Instructions of the middle I/O of the first cell. Raises Unbuildable where none went that way."""
    counts = output.cells[0].latencies.get(kind)
    if counts is None:
        raise Unbuildable(f"no I/O was a {kind}")
    return counts.median


def charge(kind: str, output: Output, counts: bytes, place: str) -> float:
    """Instructions of a class that the kernel executes for an I/O of the first cell. Raises MeasureError."""
    try:
        cost = per_io(
            counts, Symbols(output.symbols), {0: output.cells[0].ios(place) // 2}
        )[0]
    except ValueError as error:
        raise MeasureError(f"the counts are damaged: {error}", place=place) from error
    return max(in_kernel(cost.classes.get(kind, {})), LEAST)


def environment(plan: PathPlan, fio: str) -> dict[str, dict[str, str]]:
    """The guest in the shape of a recorded environment."""
    arm = plan.arms[0]
    return {
        "host": {
            "product": f"{plan.qemu}; its clock counts instructions",
            "virtual": "yes",
        },
        "kernel": {"release": arm.kernel.release, "command_line": arm.cmdline},
        "cpu": {
            "model": "qemu64, emulated",
            "sockets": "1",
            "cores": "1",
            "threads": "1",
        },
        "memory": {"MemTotal": f"{arm.memory << 10} kB"},
        "fio": {"version": fio},
        "target": {
            "path": plan.experiment.target.path or "null_blk",
            "kind": "made in the guest",
        },
    }


def metric_of(experiment: Experiment, name: str) -> str:
    """The metric asked for, else that of the cell's direction. Raises RequestError for one that is not counted."""
    rw = (
        experiment.cells[0].option("rw")
        or experiment.cells[0].option("readwrite")
        or "read"
    )
    wanted = name or next(
        metric for metric, kind in PATHS.items() if kind in rw or rw == "rw"
    )
    if wanted not in PATHS and wanted not in CHARGES:
        raise RequestError(
            f"{wanted} is not counted with clock = instructions",
            place="--metric",
            remedy=", ".join([*PATHS, *CHARGES]),
        )
    return wanted


def exact(metric: str) -> float:
    """Share to within which two kernels agree that do not differ."""
    return CHARGE_EXACT if metric in CHARGES else EXACT
