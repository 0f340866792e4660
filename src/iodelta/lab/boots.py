"""Variants that differ in what is booted: no cell has two trials in one boot, so that the boot is the unit.

A trial is the mean of one to four runs in its boot, as many as pay. Boots of the same kernel differ by more than runs
within a boot do (0.3 to 1.5 %), so runs of one boot are not replicates. A block is a boot of every variant, adjacent in
time, in random order.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Self

import msgspec
from msgspec.structs import replace

from iodelta.errors import (
    KnobError,
    LostError,
    MeasureError,
    RefusedError,
    RequestError,
)
from iodelta.experiment import Cell, Condition, Experiment, Variant
from iodelta.experiment.io_uring import TOOL
from iodelta.experiment.model import of_boot
from iodelta.knob import order
from iodelta.knob.kernel import Kernel
from iodelta.lab.bench import Bench
from iodelta.lab.folder import Folder, KnobSaved, Rebooted, Started, now
from iodelta.lab.guard import check_commands, check_write, refuse_at_once
from iodelta.lab.plan import Plan
from iodelta.lab.progress import Control
from iodelta.lab.setup import (
    Survey,
    check_same_target,
    opened_by_name,
    other_members,
    put_back,
    ready,
    survey,
)
from iodelta.lab.turns import alone, given
from iodelta.lab.undo import REBOOT, undo_log
from iodelta.lab.workdir import workdir
from iodelta.machine import Machine
from iodelta.machine.ssh import SshMachine
from iodelta.machine.vm import VmMachine, check_guests
from iodelta.probe.topology import resolve
from iodelta.stats.boots import runs_per_boot
from iodelta.trial import Finding, Trial
from iodelta.vm.spec import Spec, changed
from iodelta.workload.background import BackgroundLoad

Ready = tuple[Machine, Bench, Survey]
"""What is booted, its bench, and its survey."""

PILOT = 3
"""Boots of every variant of a cell by which the number of runs in a boot is chosen."""

RATE = re.compile(r"run\.\d+\.iops")


def within_boot(experiment: Experiment) -> Experiment:
    """Return the experiment as it is within one boot: without the settings that need a boot."""

    def rest(knobs: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in knobs.items() if not of_boot(name)}

    return replace(
        experiment,
        variants=tuple(
            replace(variant, knobs=rest(variant.knobs))
            for variant in experiment.variants
        ),
        conditions=tuple(
            replace(condition, knobs=rest(condition.knobs))
            for condition in experiment.conditions
        ),
    )


def of_variant(experiment: Experiment, variant: Variant) -> Experiment:
    """Return the experiment with one variant only, the one that is booted."""
    return replace(experiment, variants=(experiment.variant(variant.name),))


def settings_of(
    experiment: Experiment, variant: Variant, condition: str = ""
) -> dict[str, str]:
    """Return the settings of a variant's boot; its own replace those of the condition."""
    shared = next(
        (one.knobs for one in experiment.conditions if one.name == condition), {}
    )
    return {
        name: value
        for name, value in {**shared, **variant.knobs}.items()
        if of_boot(name)
    }


def _means(boots: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of each boot that has runs."""
    return [statistics.fmean(runs) for runs in boots if runs]


class Scatter:
    """How boots and the runs within them scatter, and so how many runs a boot is worth making.

    Two runs in each of a cell's first boots; from then on k = sqrt(boot cost / run cost) x run sd / boot sd (Kalibera
    and Jones 2013), 1 to 4. Sds are of logarithms of rates and pooled over variants, and no mean is looked at: the
    number of runs must not depend on which variant is better.
    """

    def __init__(self, variants: Sequence[str]) -> None:
        self._variants = variants
        self._rates: dict[tuple[str, str], list[list[float]]] = {}
        self._chosen: dict[str, int] = {}
        self._costs: list[tuple[float, float]] = []

    def add(
        self,
        cell: str,
        variant: str,
        rates: Sequence[float],
        boot_cost: float,
        run_cost: float,
    ) -> None:
        """A boot's runs; what the boot cost, and one run, in seconds."""
        self._rates.setdefault((cell, variant), []).append(
            [math.log(rate) for rate in rates if rate > 0]
        )
        self._costs.append((boot_cost, run_cost))

    def runs(self, cell: str, *, first: bool) -> int:
        """Runs to make in the next boot; a choice is made before the ``first`` boot of a block only."""
        if first and cell not in self._chosen:
            boots = [self._rates.get((cell, variant), []) for variant in self._variants]
            if min(map(len, boots)) >= PILOT:
                self._chosen[cell] = self._choice(boots)
        return self._chosen.get(cell, 2)

    def _choice(self, variants: Sequence[Sequence[Sequence[float]]]) -> int:
        within = [
            statistics.variance(runs)
            for runs in chain.from_iterable(variants)
            if len(runs) > 1
        ]
        run = statistics.fmean(within) if within else 0.0
        means = map(_means, variants)
        between = statistics.fmean(
            statistics.variance(boots) for boots in means if len(boots) > 1
        )
        boots, runs = zip(*self._costs, strict=True)
        # The mean, not the median, for boots: a boot that serves several cells costs all but one of them nothing.
        boot_cost, run_cost = statistics.fmean(boots), statistics.median(runs)
        return runs_per_boot(
            boot_cost, run_cost, math.sqrt(run), math.sqrt(max(0.0, between - run / 2))
        )


class NotBootedError(KnobError):
    """A variant's kernel did not come up, and the host is back in another: other variants can go on."""


class Boots(ABC):
    """Takes the place of a bench where variants differ in what is booted. Leaving its ``with`` ends what was booted."""

    def __init__(
        self,
        machine: Machine,
        plan: Plan,
        folder: Folder,
        control: Control,
    ) -> None:
        self._machine = machine
        self._experiment = plan.experiment
        self._inner = replace(plan, experiment=within_boot(plan.experiment))
        self._found: Survey | None = None
        self._folder = folder
        self._control = control
        self._scatter = Scatter([variant.name for variant in plan.experiment.variants])

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def booted(
        self, variant: Variant, condition: str = "", cell: str = ""
    ) -> contextlib.AbstractContextManager[Ready]:
        """A boot of a variant in which ``cell`` was not measured yet, ready for a trial, and what was found there.

        Raises IodeltaError.
        """

    @abstractmethod
    def check_target(self) -> None:
        """Raises MeasureError when the target is not what it was when it was booted."""

    def background(
        self, condition: Condition
    ) -> contextlib.AbstractContextManager[None]:
        """Started in each boot for itself."""
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
        """Return one trial; None when ``stop`` ended it. Raises KnobError, RefusedError, MeasureError."""
        if stop():
            return None
        condition = self._experiment.condition(cell.condition)
        inner = self._inner.experiment.variant(variant.name)
        begun = time.monotonic()
        try:
            with (
                self.booted(variant, cell.condition, cell.name) as (_, bench, _),
                contextlib.ExitStack() as stack,
            ):
                loaded = condition.background or condition.background_fio
                load = (
                    stack.enter_context(bench.background(condition)) if loaded else None
                )
                booted, runs = (
                    time.monotonic(),
                    self._scatter.runs(cell.name, first=identity.position == 0),
                )
                trial = bench.trial(
                    identity, cell, inner, load, stop=stop, on_tick=on_tick, runs=runs
                )
                if trial is not None:
                    rates = [
                        value
                        for name, value in trial.counters.items()
                        if RATE.fullmatch(name)
                    ]
                    cost = (time.monotonic() - booted) / runs
                    self._scatter.add(
                        cell.name, variant.name, rates, booted - begun, cost
                    )
                return trial
        except LostError as error:
            return self.lost(identity, error)

    def lost(self, identity: Started, error: LostError) -> Trial:
        """Return the trial of a boot that was lost. The loss of a host ends the run: raises LostError."""
        raise error


def look_at_guests(machine: VmMachine, experiment: Experiment) -> Survey:
    """``survey``, of a guest of every variant.

    A variant whose guest does not start, lacks a module or ends cannot run here; its reason has the last lines of the
    console. Raises RequestError, MeasureError when no variant can run.
    """
    check_here(machine.spec, experiment)
    unavailable, unmeasurable = dict[str, str](), dict[str, str]()
    surveys = list[Survey]()
    for variant in experiment.variants:
        try:
            with _booted(machine, experiment, variant) as guest:
                surveys.append(_survey(guest, experiment, variant))
                unavailable |= surveys[-1].unavailable
                unmeasurable |= surveys[-1].unmeasurable
        except MeasureError as error:
            unavailable[variant.name] = error.sentence
    if not surveys:
        raise MeasureError(
            "no variant can run here", remedy="\n  ".join(unavailable.values())
        )
    return replace(surveys[0], unavailable=unavailable, unmeasurable=unmeasurable)


def check_here(spec: Spec, experiment: Experiment) -> None:
    """Raises MeasureError that names all that this machine lacks to boot a guest of every variant."""
    specs = [
        changed(spec, settings_of(experiment, variant))
        for variant in experiment.variants
    ]
    check_guests(specs, tool=experiment.cells[0].option(TOOL) or "")


def _survey(guest: VmMachine, experiment: Experiment, variant: Variant) -> Survey:
    """Return what a variant's own guest offers it."""
    with guest.together("survey"):
        return survey(guest, of_variant(within_boot(experiment), variant))


@contextlib.contextmanager
def _booted(
    machine: VmMachine, experiment: Experiment, variant: Variant, condition: str = ""
) -> Iterator[VmMachine]:
    """A new guest for one variant, its kernel verified. Raises RequestError, MeasureError, LostError."""
    spec: Spec = changed(machine.spec, settings_of(experiment, variant, condition))
    spec = replace(spec, budget=experiment.design.budget)
    with machine.other(spec) as guest:
        release = guest.run(["uname", "-r"]).text.strip()
        if release != guest.release:
            raise MeasureError(
                f"kernel {guest.release} was booted, but {release} is running",
                place=f"variant {variant.name}",
            )
        yield guest


class Guests(Boots):
    """A guest for every trial."""

    _machine: VmMachine

    def __enter__(self) -> Self:
        """Lock the devices of this machine that guests are given, from the first guest to the last."""
        pairs = itertools.product(
            self._experiment.variants,
            [condition.name for condition in self._experiment.conditions],
        )
        specs = [
            changed(self._machine.spec, settings_of(self._experiment, *pair))
            for pair in pairs
        ]
        here, targets = given(
            list(itertools.chain.from_iterable(spec.disks for spec in specs))
        )
        self._turn = contextlib.ExitStack()
        self._turn.enter_context(alone(here, targets, self._folder.path))
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left of a guest."""
        self._turn.close()

    @contextlib.contextmanager
    def booted(
        self, variant: Variant, condition: str = "", cell: str = ""
    ) -> Iterator[Ready]:
        """A new guest. Only the first one is surveyed: the others have the same devices."""
        with _booted(self._machine, self._experiment, variant, condition) as guest:
            for panic in guest.told:
                self._control.watcher.note(f"variant {variant.name}: {panic}")
            looked = self._found = self._found or _survey(
                guest, self._experiment, variant
            )
            making = ready(guest, self._inner, looked, self._folder, self._control)
            with making as bench:
                yield guest, bench, looked

    def check_target(self) -> None:
        """A guest's target is made with it."""

    def lost(self, identity: Started, error: LostError) -> Trial:
        """Return a guest that panics, hangs or floods its console is a spoilt trial that keeps its last lines."""
        # Its console's last lines, each behind a bar.
        lines = " ".join(error.what.split())
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
            findings=(Finding("vm.guest", "hard", error.place, lines, error.remedy),),
        )


CALM = 300.0
"""Seconds that a trial waits at most for the services of a booted host to start."""

APPEARING = 60.0
"""Seconds that a target may take to appear after its host did."""

SETTINGS = ("kernel", "kernel.cmdline")


class Reboots(Boots):
    """The boots of one host, by the knob ``kernel``; its original is in an undo log of its own, over all of them."""

    _machine: SshMachine

    def __enter__(self) -> Self:
        self._path = self._experiment.target.path or self._machine.directory
        self._kernel = Kernel(self._machine, resolve(self._machine, self._path), REBOOT)
        self._kernel.limit = self._experiment.design.boot
        self._boot = contextlib.ExitStack()
        self._bench: Bench | None = None
        self._present: tuple[str, Mapping[str, str]] = ("", {})
        self._cells: set[str] = set()  # those that were measured in the present boot
        with contextlib.ExitStack() as stack:
            self._log = stack.enter_context(
                undo_log(
                    self._machine,
                    f"{self._inner.identifier}-{REBOOT}",
                    self._folder.path,
                )
            )
            (saved,) = self._log.keep(lambda: [self._kernel.save()])
            self._folder.append(KnobSaved(now(), msgspec.to_builtins(saved)))
            stack.callback(self._go_back)
            stack.callback(self._leave)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def booted(
        self, variant: Variant, condition: str = "", cell: str = ""
    ) -> Iterator[Ready]:
        wanted = (variant.name, settings_of(self._experiment, variant, condition))
        if (
            self._bench is None
            or self._found is None
            or wanted != self._present
            or cell in self._cells
        ):
            self._leave()
            self._found = self._start(variant, wanted[1])
            found = self._found
            mine = replace(
                self._inner, experiment=of_variant(self._inner.experiment, variant)
            )
            self._bench = self._boot.enter_context(
                ready(self._machine, mine, found, self._folder, self._control)
            )
            self._present = wanted
        self._cells.add(cell)
        yield self._machine, self._bench, self._found

    def check_target(self) -> None:
        if self._bench is not None:
            self._bench.check_target()

    def _leave(self) -> None:
        """Put back what was set within the boot."""
        self._bench = None
        self._cells.clear()
        self._boot.close()

    def _start(self, variant: Variant, settings: Mapping[str, str]) -> Survey:
        """Boot a variant and survey it once its services have started."""
        try:
            started = self._kernel.boot(*(settings.get(name, "") for name in SETTINGS))
        except KnobError as error:
            raise NotBootedError(
                error.what, place=error.place, remedy=error.remedy
            ) from error
        # The reboot ended the process that held the lock.
        self._log.hold()
        name = self._machine.name
        self._folder.append(
            Rebooted(now(), name, variant.name, **msgspec.structs.asdict(started))
        )
        self._control.watcher.note(
            f"{name}: {started.release} was started by {started.way} in {started.seconds:.0f} s"
        )
        words = "[ ! -d /run/systemd/system ] || systemctl is-system-running --wait"
        self._machine.run(["sh", "-c", words], timeout=CALM)
        end = time.monotonic() + APPEARING
        while (
            self._machine.run(["test", "-e", self._path]).returncode
            and time.monotonic() < end
        ):
            time.sleep(0.5)
        with self._machine.together("survey"):
            looked = survey(
                self._machine,
                of_variant(self._inner.experiment, variant),
                engines=False,
            )
        if self._found is not None and not looked.scratch:
            check_same_target(self._found.target, looked.target)
        return looked

    def _go_back(self) -> None:
        for restored in put_back(self._log, self._folder, self._control.watcher):
            if restored.account:
                self._control.watcher.note(f"{self._machine.name}: {restored.account}")


def _values(experiment: Experiment, variant: Variant) -> list[tuple[str, str]]:
    """Kernels and further boot parameters of a variant, under every condition."""
    settings = [
        settings_of(experiment, variant, condition.name)
        for condition in experiment.conditions
    ]
    return [
        (setting.get("kernel", ""), setting.get("kernel.cmdline", ""))
        for setting in settings
    ]


def look(machine: Machine, experiment: Experiment) -> Survey:
    """``survey``; where variants differ in what is booted, of guests of every variant, or of the host as it is.

    Raises RequestError, MeasureError when none can run here.
    """
    if not experiment.boots:
        with machine.together("survey"):
            return survey(machine, experiment)
    if isinstance(machine, VmMachine):
        return look_at_guests(machine, experiment)
    # `survey` under the running kernel, and whether the other kernels can be booted and left again. Boots nothing.
    machine = _host(machine)
    strange = [name for name in experiment.knob_names() if name.startswith("vm.")]
    if strange:
        raise RequestError(
            "a host has no such setting",
            place=strange[0],
            remedy="it is a setting of guests: --machine vm",
        )
    inner = within_boot(experiment)
    order(inner.knob_names())
    surveys: dict[str, Survey] = {}
    refused: dict[str, RequestError] = {}
    for variant in inner.variants:
        try:
            surveys[variant.name] = survey(machine, of_variant(inner, variant))
        except RequestError as error:
            refused[variant.name] = error
    if not surveys:
        raise next(iter(refused.values()))
    first = next(iter(surveys.values()))
    kernel = Kernel(machine, first.target, REBOOT)
    kernel.save()
    unavailable: dict[str, str] = {}
    for seen in surveys.values():
        unavailable |= seen.unavailable
    for variant in experiment.variants:
        try:
            releases = {
                kernel.image(*values).release for values in _values(experiment, variant)
            }
        except MeasureError as error:
            unavailable[variant.name] = error.sentence
        else:
            if variant.name in refused and releases == {kernel.read()}:
                raise refused[variant.name]
    return replace(first, unavailable=unavailable, reboots=kernel.way.name)


def refusal(
    machine: Machine,
    experiment: Experiment,
    found: Survey,
    destroy: Sequence[str],
    *,
    commands: bool = False,
) -> RefusedError | None:
    """Return the refusal that ``ready`` would raise for writes; None where it would not, as for a guest, whose disks
    end with it. ``commands``: those of the experiment may run.

    Raises RequestError for a ``--destroy`` that names nothing.
    """
    try:
        check_commands(experiment, commands)
        refuse_at_once(found.reasons)
        if found.writes and not isinstance(machine, VmMachine):
            _refuse(machine, experiment, found, destroy)
    except RefusedError as error:
        return error
    return None


def _refuse(
    machine: Machine, experiment: Experiment, found: Survey, destroy: Sequence[str]
) -> None:
    if not found.scratch:
        size = None if found.target.kind == "directory" else found.size
        with workdir(machine) as place:
            held_in = "" if opened_by_name(experiment) else place
            check_write(machine, found.target, destroy, size, place=held_in).close()
    for member in other_members(machine, experiment, found.target):
        check_write(machine, member, destroy).close()


def boots_of(machine: Machine) -> type[Boots]:
    """Return the boots that a machine has. Raises RequestError for one that has none."""
    if isinstance(machine, VmMachine):
        return Guests
    _host(machine)
    return Reboots


def _host(machine: Machine) -> SshMachine:
    if not isinstance(machine, SshMachine):
        raise RequestError(
            "iodelta cannot reboot the machine that it runs on",
            place="kernel",
            remedy="boot kernels in throw-away guests (--machine vm), or on a host over SSH (--machine ssh:HOST)",
        )
    return machine
