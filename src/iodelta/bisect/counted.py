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
from iodelta.path.output import CellOutput, Output, read
from iodelta.path.plan import BootPlan, PathPlan, Purpose, make_plan, target
from iodelta.path.run import ATTEMPTS, mishap, started
from iodelta.path.sharing_job import refuse
from iodelta.trial import Kind
from iodelta.vm import guest
from iodelta.vm.boot import Ended

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
            ended, written = self._once(plan, boot, visit)
            if not mishap(plan, ended, written.printed):
                break
            if attempt < ATTEMPTS:
                self._say(
                    f"{ended.problem}; before the guest's script began, as qemu lets some guests of two CPUs do: boot "
                    f"{attempt + 1} of at most {ATTEMPTS}"
                )
        if ended.problem:
            times = f" in each of {attempt} boots" if attempt > 1 else ""
            raise Unbuildable(f"{ended.problem}{times}")
        return written

    def _once(
        self, plan: PathPlan, boot: BootPlan, visit: int
    ) -> tuple[Ended, Written]:
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
            counts, epochs = _read(Path(work, "counts")), _read(Path(work, "epochs"))
            return ended, Written(running.output, counts, epochs)

    def _record(self, plan: PathPlan) -> None:
        """The machine that is measured: the guest."""
        folder = SearchFolder(self._path)
        if folder.environment():
            return
        version = self._machine.run(
            [guest.find_program("fio"), "--version"]
        ).text.strip()
        folder.write(ENVIRONMENT, environment(plan, version))


def _read(file: Path) -> bytes:
    """Return the bytes of a file; empty if it does not exist."""
    return file.read_bytes() if file.is_file() else b""


def value_of(metric: PathMetric, written: Written, place: str) -> float:
    """Return the value of a metric in the first cell of its boot. Raises MeasureError, Unbuildable."""
    return _READERS[metric.source](metric.column, written, place)


def _median(kind: str, written: Written, place: str) -> float:
    return median(cast(Kind, kind), _output(written, place))


def median(kind: Kind, output: Output) -> float:
    """Median instructions per I/O of the first cell. Raises Unbuildable if no I/O had this direction."""
    counts = output.cells[0].latencies.get(kind)
    if counts is None:
        raise Unbuildable(f"the workload did no {kind}")
    return counts.median


def _charge(kind: str, written: Written, place: str) -> float:
    return charge(kind, _output(written, place), written.counts, place)


def charge(kind: str, output: Output, counts: bytes, place: str) -> float:
    """Instructions of a class that the kernel executes for an I/O of the first cell. Raises MeasureError."""
    try:
        cost = per_io(
            counts, Symbols(output.symbols), {0: output.cells[0].ios(place) // 2}
        )[0]
    except ValueError as error:
        raise MeasureError(f"the counts are damaged: {error}", place=place) from error
    return max(in_kernel(cost.classes.get(kind, {})), LEAST)


def _touched(name: str, written: Written, place: str) -> float:
    """Return a measure of the kernel's footprint, the median of the first cell. Raises MeasureError, Unbuildable."""
    ios = {0: _output(written, place).cells[0].ios(place) // 2}
    try:
        by_cell = footprint.read(written.epochs, ios)
    except ValueError as error:
        raise MeasureError(f"the epochs are damaged: {error}", place=place) from error
    if 0 not in by_cell:
        raise Unbuildable("no I/O called submit_bio, where its footprint begins")
    return max(by_cell[0].medians["kernel"][name], LEAST)


def _moved(column: str, written: Written, place: str) -> float:
    """Cache lines that move between two CPUs for an I/O, the median of the first cell. Raises MeasureError,
    Unbuildable."""
    made = read(written.printed, place).cells.get(0, CellOutput())
    if made.reason:
        raise Unbuildable(made.reason)
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


def _output(written: Written, place: str) -> Output:
    """Return the output of a guest that measured its cell. Raises MeasureError, Unbuildable."""
    output = read(written.printed, place)
    if output.cells[0].reason:
        raise Unbuildable(output.cells[0].reason)
    return output


_READERS: Mapping[Source, Callable[[str, Written, str], float]] = {
    "latency": _median,
    "bill": _charge,
    "footprint": _touched,
    "sharing": _moved,
}


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
