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
from iodelta.errors import RequestError
from iodelta.experiment import Experiment
from iodelta.machine import Machine
from iodelta.path.output import read
from iodelta.path.plan import PathPlan, make_plan
from iodelta.path.run import started
from iodelta.trial import Kind
from iodelta.vm import guest

EXACT = 0.001
"""Share to within which two kernels with the same path agree: irrelevant changes of layout move a median of several
thousand instructions by up to eight."""

UNIT = "instructions"
METRICS: dict[str, Kind] = {f"{kind}.instructions": kind for kind in ("read", "write", "trim")}
"""Metric -> direction: the median over all I/Os of one boot."""


class Counted:
    """One boot of the item's kernel for every value."""

    def __init__(self, machine: Machine, question: Question, path: Path, stop: Callable[[], bool]) -> None:
        self._machine, self._question, self._path, self._stop = machine, question, path, stop
        self._experiment = cell_experiment(question.experiment)

    def read(self, item: str, visit: int, values: Mapping[str, str]) -> Reading:
        begun = time.monotonic()
        plan = make_plan(with_knobs(self._experiment, self._question.knobs, values))
        self._record(plan)
        output = read(self._boot(plan, visit), f"boot of visit {visit}").cells[0]
        if output.reason:
            raise Unbuildable(output.reason)
        counts = output.latencies.get(METRICS[self._question.metric])
        if counts is None:
            raise Unbuildable(f"no I/O was a {METRICS[self._question.metric]}")
        return Reading(counts.median, time.monotonic() - begun)

    def close(self) -> None:
        """A guest does not outlive its visit."""

    def _boot(self, plan: PathPlan, visit: int) -> bytes:
        """What the guest said; its console is kept beside the outputs of commands."""
        with (
            tempfile.TemporaryDirectory(prefix="iodelta-vm-") as work,
            started(plan, plan.boots[0], Path(work)) as running,
        ):
            while (ended := running.poll()) is None:
                if self._stop():
                    raise Stopped
                time.sleep(0.05)
            for name, data in (("console", running.console), ("guest", running.output)):
                (self._path / OUTPUT / f"{visit:05d}.{name}").write_bytes(data)
            if ended.problem:
                raise Unbuildable(ended.problem)
            return running.output

    def _record(self, plan: PathPlan) -> None:
        """The machine that is measured: the guest."""
        folder = SearchFolder(self._path)
        if folder.environment():
            return
        version = self._machine.run([guest.find_program("fio"), "--version"]).text.strip()
        folder.write(ENVIRONMENT, environment(plan, version))


def environment(plan: PathPlan, fio: str) -> dict[str, dict[str, str]]:
    """The guest in the shape of a recorded environment."""
    arm = plan.arms[0]
    return {
        "host": {"product": f"{plan.qemu}; its clock counts instructions", "virtual": "yes"},
        "kernel": {"release": arm.kernel.release, "command_line": arm.cmdline},
        "cpu": {"model": "qemu64, emulated", "sockets": "1", "cores": "1", "threads": "1"},
        "memory": {"MemTotal": f"{arm.memory << 10} kB"},
        "fio": {"version": fio},
        "target": {"path": plan.experiment.target.path or "null_blk", "kind": "made in the guest"},
    }


def metric_of(experiment: Experiment, name: str) -> str:
    """The metric asked for, else that of the cell's direction. Raises RequestError for one that is not counted."""
    rw = experiment.cells[0].option("rw") or experiment.cells[0].option("readwrite") or "read"
    found = name or next(metric for metric, kind in METRICS.items() if kind in rw or rw == "rw")
    if found not in METRICS:
        raise RequestError(
            f"{found} is not counted with clock = instructions", place="--metric", remedy=", ".join(METRICS)
        )
    return found
