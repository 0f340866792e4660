"""The value of a kernel: what an I/O of the cell takes, counted in one boot of a throw-away guest (path mode).

A kernel that does not boot, panics, hangs or cannot create the target cannot be tested. A count repeats exactly.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import msgspec

from iodelta.bisect.commands import Stopped
from iodelta.bisect.log import ENVIRONMENT, OUTPUT, SearchFolder
from iodelta.bisect.measure import Reading, cell_experiment, with_knobs
from iodelta.bisect.question import Question
from iodelta.bisect.tree import Unbuildable
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import Experiment
from iodelta.machine import Machine
from iodelta.path import footprint, sharing
from iodelta.path.functions import Symbols, in_kernel, per_io
from iodelta.path.judge import BLIND
from iodelta.path.metrics import LEAST, METRICS, SHORT, PathMetric, Source, path_metric
from iodelta.path.moved import phases
from iodelta.path.output import CellOutput, read
from iodelta.path.plan import PathPlan, Purpose, make_plan, target
from iodelta.path.run import ATTEMPTS, mishap, started
from iodelta.path.sharing_job import refuse
from iodelta.trial import Kind
from iodelta.vm import guest

PURPOSES: Mapping[Source, Purpose] = {
    "latency": "exact",
    "bill": "functions",
    "footprint": "anatomy",
    "sharing": "exact",
}
"""The boot in which a metric is counted."""

ANATOMIES: Mapping[Source, str] = {"footprint": "path", "sharing": "sharing"}
"""The anatomy that an experiment must have for a metric to be counted."""


class Written(msgspec.Struct, frozen=True):
    """The output of a boot."""

    printed: bytes
    """By the guest."""
    counts: bytes
    epochs: bytes


class Counted:
    """One boot of the item's kernel for every value."""

    def __init__(
        self,
        machine: Machine,
        question: Question,
        path: Path,
        stop: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self._machine, self._question, self._path = machine, question, path
        self._stop, self._say = stop, say
        self._experiment = cell_experiment(question.experiment)

    def read(self, item: str, visit: int, values: Mapping[str, str]) -> Reading:
        begun = time.monotonic()
        plan = make_plan(with_knobs(self._experiment, self._question.knobs, values))
        self._record(plan)
        metric, place = METRICS[self._question.metric], f"boot of visit {visit}"
        if metric.source in ("bill", "footprint") and plan.functions:
            raise MeasureError(
                plan.functions,
                place=metric.name,
                remedy="omit --metric: the length of the path needs no compiler",
            )
        written = self._boot(plan, visit, PURPOSES[metric.source])
        value = value_of(metric, written, place)
        return Reading(value, time.monotonic() - begun)

    def close(self) -> None:
        """A guest does not outlive its visit."""

    def _boot(self, plan: PathPlan, visit: int, purpose: Purpose) -> Written:
        """Boot the guest; return its output and the plugin's counts. Saves the console to the folder of command
        outputs. Reports each boot that panicked under qemu, and repeats it."""
        boot = next(boot for boot in plan.boots if boot.purpose == purpose)
        for attempt in range(1, ATTEMPTS + 1):
            with (
                tempfile.TemporaryDirectory(prefix="iodelta-vm-") as work,
                started(plan, boot, Path(work)) as running,
            ):
                while (state := running.poll()) is None:
                    if self._stop():
                        raise Stopped
                    time.sleep(0.05)
                ended, printed, console = state, running.output, running.console
                # The plugin writes no file in a boot that is not for it.
                files = [Path(work, name) for name in ("counts", "epochs")]
                counts, epochs = (
                    file.read_bytes() if file.is_file() else b"" for file in files
                )
            for name, data in (("console", console), ("guest", printed)):
                (self._path / OUTPUT / f"{visit:05d}.{name}").write_bytes(data)
            if not mishap(plan, ended, printed):
                break
            if attempt < ATTEMPTS:
                self._say(
                    f"{ended.problem}; before the guest's script began, as qemu lets some guests of two CPUs do: boot "
                    f"{attempt + 1} of at most {ATTEMPTS}"
                )
        if ended.problem:
            times = f" in each of {attempt} boots" if attempt > 1 else ""
            raise Unbuildable(f"{ended.problem}{times}")
        return Written(printed, counts, epochs)

    def _record(self, plan: PathPlan) -> None:
        """The machine that is measured: the guest."""
        folder = SearchFolder(self._path)
        if folder.environment():
            return
        version = self._machine.run(
            [guest.find_program("fio"), "--version"]
        ).text.strip()
        folder.write(ENVIRONMENT, environment(plan, version))


def value_of(metric: PathMetric, written: Written, place: str) -> float:
    """Return the value of a metric in the first cell of its boot. Raises MeasureError, and Unbuildable for a kernel that
    did not measure its cell."""
    output = read(written.printed, place)
    made = output.cells.get(0, CellOutput())
    if made.reason:
        raise Unbuildable(made.reason)
    if metric.source == "latency":
        latencies = made.latencies.get(cast(Kind, metric.column))
        if latencies is None:
            raise Unbuildable(f"the workload did no {metric.column}")
        return latencies.median
    if metric.source == "sharing":
        phase = phases(written.counts, place).get(1)
        if phase is None or not phase.ios:
            raise Unbuildable("no I/O was counted")
        if made.tags in sharing.BY_CHANCE:
            raise MeasureError(
                sharing.BY_CHANCE[made.tags],
                place=place,
                remedy="add --set null_blk.submit_queues=2, or build with CONFIG_DEBUG_FS=y and CONFIG_BLK_DEBUG_FS=y",
            )
        return max(sharing.median(phase), LEAST)
    ios = {0: made.ios(place) // 2}
    try:
        if metric.source == "bill":
            cost = per_io(written.counts, Symbols(output.symbols), ios)[0]
            return max(in_kernel(cost.classes.get(metric.column, {})), LEAST)
        by_cell = footprint.read(written.epochs, ios)
    except ValueError as error:
        what = "counts" if metric.source == "bill" else "epochs"
        raise MeasureError(f"the {what} are damaged: {error}", place=place) from error
    if 0 not in by_cell:
        raise Unbuildable("no I/O called submit_bio, where its footprint begins")
    return max(by_cell[0].medians["kernel"][metric.column], LEAST)


def environment(plan: PathPlan, fio: str) -> dict[str, dict[str, str]]:
    """Return the guest in the shape of a recorded environment."""
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


def metric_of(experiment: Experiment, name: str) -> PathMetric:
    """Return the metric of this name, else that of the cell's direction. Raises RequestError for one that is not
    counted.
    """
    cell = experiment.cells[0]
    rw = cell.option("rw") or cell.option("readwrite") or "read"
    if not name:
        paths = [each for each in METRICS.values() if each.source == "latency"]
        return next(path for path in paths if path.column in rw or rw == "rw")
    metric = path_metric(name)
    if metric is None:
        raise RequestError(
            f"{name} is not counted with clock = instructions",
            place="--metric",
            remedy=", ".join([*METRICS, *SHORT]),
        )
    if metric.source == "sharing":
        refuse(experiment, target(experiment))
    return metric


def blind(metric: str) -> str:
    """Return what counts of a metric cannot see; empty for a metric that is not counted."""
    if metric not in METRICS:
        return ""
    return sharing.BLIND if METRICS[metric].source == "sharing" else BLIND
