"""Variants that differ in what is booted: no cell has two trials in one boot, so that the boot is the unit.

A trial is the mean of one to four runs in its boot, as many as pay. Boots of the same kernel differ by more than runs
within a boot do (0.3 to 1.5 %), so runs of one boot are not replicates. A block is a boot of every variant, adjacent in
time, in random order.
"""

from __future__ import annotations

import contextlib
import math
import re
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Self

import msgspec

from iodelta.errors import KnobError, LostError
from iodelta.experiment import Cell, Condition, Experiment, Variant
from iodelta.experiment.model import of_boot
from iodelta.lab.bench import Bench
from iodelta.lab.folder import Folder, Started
from iodelta.lab.plan import Plan
from iodelta.lab.progress import Control
from iodelta.lab.setup import Survey
from iodelta.machine import Machine
from iodelta.stats.boots import runs_per_boot
from iodelta.trial import Trial
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

    return msgspec.structs.replace(
        experiment,
        variants=tuple(
            msgspec.structs.replace(variant, knobs=rest(variant.knobs))
            for variant in experiment.variants
        ),
        conditions=tuple(
            msgspec.structs.replace(condition, knobs=rest(condition.knobs))
            for condition in experiment.conditions
        ),
    )


def of_variant(experiment: Experiment, variant: Variant) -> Experiment:
    """Return the experiment with one variant only, the one that is booted."""
    return msgspec.structs.replace(
        experiment, variants=(experiment.variant(variant.name),)
    )


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
        self._inner = msgspec.structs.replace(
            plan, experiment=within_boot(plan.experiment)
        )
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
