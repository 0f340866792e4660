"""Variants that differ in what is booted: every trial has a guest of its own, so that the boot is the unit.

A trial is the mean of one to four runs in its boot, as many as pay. A boot differs from the next of the same kernel by
more than a run from the next run (0.3 to 1.5 %), so runs of one boot are no replicates. A block is a boot of every
variant, adjacent in time, in random order.
"""

from __future__ import annotations

import contextlib
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from iodelta.errors import LostError, MeasureError, RequestError
from iodelta.experiment import Cell, Condition, Experiment, Variant
from iodelta.experiment.model import of_boot
from iodelta.lab.bench import Bench
from iodelta.lab.folder import Folder, Started
from iodelta.lab.plan import Plan
from iodelta.lab.progress import Watcher
from iodelta.lab.setup import Survey, ready, survey
from iodelta.machine import Machine
from iodelta.machine.vm import VmMachine
from iodelta.stats.boots import runs_per_boot
from iodelta.trial import Finding, Trial
from iodelta.vm.spec import Spec, changed
from iodelta.workload.background import BackgroundLoad

PILOT = 3
"""Boots of every variant of a cell by which the number of runs in a boot is chosen."""

RATE = re.compile(r"run\.\d+\.iops")


def held(experiment: Experiment) -> Experiment:
    """The experiment as it is within one boot: without the settings that a boot has."""

    def rest(knobs: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in knobs.items() if not of_boot(name)}

    return msgspec.structs.replace(
        experiment,
        variants=tuple(msgspec.structs.replace(one, knobs=rest(one.knobs)) for one in experiment.variants),
        conditions=tuple(msgspec.structs.replace(one, knobs=rest(one.knobs)) for one in experiment.conditions),
    )


def look(machine: Machine, experiment: Experiment) -> Survey:
    """``survey``, of a guest of every variant where they differ in what is booted.

    A variant whose guest does not start, lacks a module or ends is one that cannot run here, with the reason and the
    last lines of its console. Raises RequestError, MeasureError when none can.
    """
    if not experiment.boots:
        with machine.together("survey"):
            return survey(machine, experiment)
    unavailable, found = dict[str, str](), list[Survey]()
    for variant in experiment.variants:
        try:
            with _booted(machine, experiment, variant) as guest:
                found.append(_survey(guest, experiment, variant))
                unavailable.update(found[-1].unavailable)
        except MeasureError as error:
            unavailable[variant.name] = str(error)
    if not found:
        raise MeasureError("no variant can run here", remedy="\n  ".join(unavailable.values()))
    return msgspec.structs.replace(found[0], unavailable=unavailable)


def _survey(guest: Machine, experiment: Experiment, variant: Variant) -> Survey:
    """What a variant's own guest offers it."""
    inner = held(experiment)
    with guest.together("survey"):
        return survey(guest, msgspec.structs.replace(inner, variants=(inner.variant(variant.name),)))


def settings_of(experiment: Experiment, variant: Variant, condition: str = "") -> dict[str, str]:
    """What a variant's boot sets, over what the condition does."""
    shared = next((one.knobs for one in experiment.conditions if one.name == condition), {})
    return {name: value for name, value in {**shared, **variant.knobs}.items() if of_boot(name)}


@contextlib.contextmanager
def _booted(machine: Machine, experiment: Experiment, variant: Variant, condition: str = "") -> Iterator[VmMachine]:
    """A new guest for one variant, its kernel verified. Raises RequestError, MeasureError, LostError."""
    if not isinstance(machine, VmMachine):
        raise RequestError(
            "kernels are variants in throw-away guests only",
            place=machine.name,
            remedy='say machine = "vm" (--machine vm); on a host of yours boot each kernel, and compare the folders',
        )
    spec: Spec = changed(machine.spec, settings_of(experiment, variant, condition))
    with machine.other(spec) as guest:
        release = guest.run(["uname", "-r"]).text.strip()
        if release != guest.release:
            raise MeasureError(f"{release} runs, and {guest.release} was booted", place=f"variant {variant.name}")
        yield guest


class Scatter:
    """How boots and the runs within them scatter, and so how many runs a boot is worth making.

    Two runs in each of a cell's first boots; from then on k = sqrt(boot cost / run cost) x run sd / boot sd (Kalibera
    and Jones 2013), 1 to 4. Sds are of logarithms of rates and pooled over variants; nothing looks at their level.
    """

    def __init__(self, variants: Sequence[str]) -> None:
        self._variants = variants
        self._rates: dict[tuple[str, str], list[list[float]]] = {}
        self._chosen: dict[str, int] = {}
        self._costs: list[tuple[float, float]] = []

    def add(self, cell: str, variant: str, rates: Sequence[float], boot_cost: float, run_cost: float) -> None:
        """A boot's runs; what the boot cost, and one run, in seconds."""
        self._rates.setdefault((cell, variant), []).append([math.log(rate) for rate in rates if rate > 0])
        self._costs.append((boot_cost, run_cost))

    def runs(self, cell: str, *, first: bool) -> int:
        """Runs to make in the next boot; a choice is made before the ``first`` boot of a block only."""
        if first and cell not in self._chosen:
            boots = [self._rates.get((cell, variant), []) for variant in self._variants]
            if min(map(len, boots)) >= PILOT:
                self._chosen[cell] = self._choice(boots)
        return self._chosen.get(cell, 2)

    def _choice(self, variants: Sequence[Sequence[Sequence[float]]]) -> int:
        within = [statistics.variance(runs) for boots in variants for runs in boots if len(runs) > 1]
        run = statistics.fmean(within) if within else 0.0
        means = [[statistics.fmean(runs) for runs in boots if runs] for boots in variants]
        between = statistics.fmean(statistics.variance(boots) for boots in means if len(boots) > 1)
        boot_cost, run_cost = (statistics.median(costs) for costs in zip(*self._costs, strict=True))
        return runs_per_boot(boot_cost, run_cost, math.sqrt(run), math.sqrt(max(0.0, between - run / 2)))


class Boots:
    """What a bench is where every trial has a boot of its own."""

    def __init__(
        self,
        machine: Machine,
        plan: Plan,
        folder: Folder,
        watcher: Watcher,
        destroy: Sequence[str],
        stop: Callable[[], bool],
    ) -> None:
        self._machine = machine
        self._experiment = plan.experiment
        self._found: Survey | None = None
        self._inner = msgspec.structs.replace(plan, experiment=held(plan.experiment))
        self._scatter = Scatter([variant.name for variant in plan.experiment.variants])
        self._rest = (folder, watcher, destroy, stop)

    @contextlib.contextmanager
    def booted(self, variant: Variant, condition: str = "") -> Iterator[tuple[VmMachine, Bench, Survey]]:
        """A guest of a variant, ready for a trial; the first one is looked at, and the others are like it."""
        with _booted(self._machine, self._experiment, variant, condition) as guest:
            found = self._found = self._found or _survey(guest, self._experiment, variant)
            with ready(guest, self._inner, found, *self._rest) as bench:
                yield guest, bench, found

    def check_target(self) -> None:
        """A guest's target is made with it."""

    def background(self, condition: Condition) -> contextlib.AbstractContextManager[None]:
        """Started in each guest for itself."""
        return contextlib.nullcontext()

    def trial(
        self,
        identity: Started,
        cell: Cell,
        variant: Variant,
        background: BackgroundLoad | None,
        *,
        stop: Callable[[], bool],
        on_tick: Callable[[float], None],
    ) -> Trial | None:
        """One trial in a boot of its own. A guest that panics, hangs or floods its console is a spoilt trial that keeps
        its last lines. Raises KnobError, MeasureError."""
        condition = self._experiment.condition(cell.condition)
        inner = self._inner.experiment.variant(variant.name)
        begun = time.monotonic()
        try:
            with self.booted(variant, cell.condition) as (_, bench, _), contextlib.ExitStack() as stack:
                loaded = condition.background or condition.background_fio
                load = stack.enter_context(bench.background(condition)) if loaded else None
                booted, runs = time.monotonic(), self._scatter.runs(cell.name, first=identity.position == 0)
                trial = bench.trial(identity, cell, inner, load, stop=stop, on_tick=on_tick, runs=runs)
                if trial is not None:
                    rates = [value for name, value in trial.counters.items() if RATE.fullmatch(name)]
                    cost = (time.monotonic() - booted) / runs
                    self._scatter.add(cell.name, variant.name, rates, booted - begun, cost)
                return trial
        except LostError as error:
            lines = " ".join(error.what.split())  # its console's last lines, each behind a bar
            finding = Finding("vm.guest", "hard", error.place, lines, error.remedy)
            return Trial(
                number=identity.trial,
                cell=identity.cell,
                variant=identity.variant,
                block=identity.block,
                position=identity.position,
                seed=identity.seed,
                started=identity.at,
                seconds=0.0,
                directions=(),
                attempt=identity.attempt,
                findings=(finding,),
            )
