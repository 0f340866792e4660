"""Measure one value of the item under test: a trial of an experiment cell, or the number that a command prints."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from iodelta.bisect.commands import Stopped, carry_out
from iodelta.bisect.question import Question, filled
from iodelta.bisect.tree import Unbuildable
from iodelta.errors import MeasureError, RequestError
from iodelta.experiment import Experiment, parse
from iodelta.experiment.model import variant
from iodelta.lab.commands import SetupError
from iodelta.lab.folder import Finished, Folder, Session, Started, now
from iodelta.lab.judged import read_plan
from iodelta.lab.plan import Plan, Slot, make_plan, primary_metrics, trial_seed
from iodelta.lab.progress import Control
from iodelta.lab.session import record_session, settle_pending
from iodelta.lab.setup import Survey, ready, survey, target_of
from iodelta.lab.turns import alone
from iodelta.machine import Machine, reach
from iodelta.probe.topology import Target, resolve
from iodelta.trial import Trial
from iodelta.verdict import Metric, metric, value_of

TRIES = 2
"""Number of trials if fio's result cannot be used; after that, the item counts as untestable."""


class Reading(msgspec.Struct, frozen=True):
    """A value in the metric's unit, how long it took, and the trial's number where there is one."""

    value: float
    seconds: float
    trial: int = 0


class Measure(Protocol):
    """Measures at the end of a visit."""

    def read(self, item: str, visit: int, values: Mapping[str, str]) -> Reading:
        """Return one run. Raises Unbuildable if this item cannot be measured, MeasureError if none can, Stopped."""

    def close(self) -> None:
        """End the measurements."""


class CommandMeasure:
    """The last line that the user's command prints, as a number above zero."""

    def __init__(
        self,
        machine: Machine,
        question: Question,
        output: Path,
        stop: Callable[[], bool],
    ) -> None:
        self._machine, self._question = machine, question
        self._output, self._stop = output, stop
        self.env: Mapping[str, str] = {}
        self.cwd = question.cwd

    def read(self, item: str, visit: int, values: Mapping[str, str]) -> Reading:
        steps = self._question.steps
        printed, seconds = carry_out(
            self._machine,
            filled(steps.measure, dict(values)),
            what="the measurement",
            timeout=steps.measure_timeout,
            output=self._output / f"{visit:05d}.measure",
            cwd=self.cwd,
            env=self.env,
            stop=self._stop,
        )
        last = printed.strip().rpartition("\n")[2].strip()
        is_number = re.fullmatch(r"[+]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", last)
        if not is_number or not 0 < float(last) < math.inf:
            raise Unbuildable(
                f"the measurement's last line is not a number above zero: {last[:60]!r}"
            )
        return Reading(float(last), seconds)

    def close(self) -> None:
        """Nothing to close."""


class CellMeasure:
    """Trials of the one cell of an experiment, kept in their own experiment folder."""

    def __init__(
        self,
        machine: Machine,
        question: Question,
        path: Path,
        stop: Callable[[], bool],
        say: Callable[[str], None],
        tick: Callable[[float], None],
    ) -> None:
        self._here, self._question = machine, question
        self._stop, self._say, self._tick = stop, say, tick
        self._path = path
        self._machine: Machine | None = None
        self._connection = contextlib.ExitStack()
        self._turn = contextlib.ExitStack()
        self._session = False
        self._surveyed: Survey | None = None
        if path.exists():
            self.folder = Folder.open(path)
            self._plan = read_plan(self.folder)
        else:
            self._plan = make_plan(cell_experiment(question.experiment))
            self.folder = Folder.begin(path, question.experiment, self._plan)
        self._metric = cell_metric(self._plan.experiment, question.metric)
        starts = [
            event.trial for event in self.folder.events() if isinstance(event, Started)
        ]
        self._next = max(starts, default=0) + 1
        if (target := self._present()) is not None:
            self._keep(machine, target)

    def _present(self) -> Target | None:
        """Return the target, if it is on this machine and exists already: --put may create it."""
        if self._plan.experiment.machines or self._plan.experiment.target.none:
            return None
        try:
            return target_of(self._here, self._plan.experiment)
        except RequestError:
            return None

    def _keep(self, machine: Machine, target: Target) -> None:
        """Reserve a device until the search or the connection ends, also during builds. Raises BusyError,
        MeasureError."""
        self._turn.enter_context(alone(machine, [target], self._path))

    def read(self, item: str, visit: int, values: Mapping[str, str]) -> Reading:
        begun = time.monotonic()
        problem = ""
        machine = self._there()
        for left in reversed(range(TRIES)):
            try:
                trial = self._trial(machine, visit, values)
            except SetupError as error:
                raise Unbuildable(error.what[:300]) from error
            value = value_of(trial, self._metric)[0]
            problem = trial.problem
            if not problem and math.isfinite(value) and value > 0:
                return Reading(value, time.monotonic() - begun, trial.number)
            problem = problem or f"{self._metric.name} has no value in this trial"
            if left:
                self._say(f"trial {trial.number}: {problem[:300]}; once more")
        tool = "the command" if self._plan.experiment.of_command else "fio"
        raise Unbuildable(f"{tool}: {problem}"[:300])

    def close(self) -> None:
        """Leave the machine."""
        self._turn.close()
        self._connection.close()
        self._machine = None

    def _there(self) -> Machine:
        """Return the machine that is measured. A host is connected anew after an item was put under test, which may
        have rebooted it."""
        names = self._plan.experiment.machines
        if not names:
            return self._here
        if self._machine is not None and not self._question.steps.put:
            return self._machine
        self.close()
        self._machine = self._connection.enter_context(reach(names[0]))
        if not self._session:
            settle_pending(self._machine, Silent(self._say))
        return self._machine

    def _trial(self, machine: Machine, visit: int, values: Mapping[str, str]) -> Trial:
        plan = self._with_knobs(values)
        cell, variant = plan.experiment.cells[0], plan.experiment.variants[0]
        number, self._next = self._next, self._next + 1
        seed = trial_seed(
            plan.seed,
            Slot(cell.name, visit, ()),
            0,
            f"{variant.name}/{number}",
            fresh=True,
        )
        identity = Started(now(), number, cell.name, visit, 0, 0, variant.name, seed)
        begun = time.monotonic()
        offers = self._survey(machine, plan)
        self._keep(machine, offers.target)
        for reason in (*offers.unavailable.values(), *offers.unmeasurable.values()):
            raise MeasureError(reason, place=cell.name, remedy="choose another engine")
        with self.folder.writing():
            control = Control(
                Silent(self._say),
                self._stop,
                self._question.destroy,
                self._question.commands,
            )
            with ready(machine, plan, offers, self.folder, control) as bench:
                if not self._session:
                    self._begin_session(machine, bench.target)
                self.folder.append(identity, sync=False)
                condition = plan.experiment.condition(cell.condition)
                with contextlib.ExitStack() as stack:
                    background = None
                    if condition.load:
                        load = bench.background(condition)
                        background = stack.enter_context(load)
                    trial = bench.trial(
                        identity,
                        cell,
                        variant,
                        background,
                        stop=self._stop,
                        on_tick=self._tick,
                    )
                if trial is None:
                    raise Stopped
                self.folder.append(
                    Finished(now(), number, time.monotonic() - begun, trial.problem)
                )
        return trial

    def _begin_session(self, machine: Machine, target: Target) -> None:
        """Record the environment and the session."""
        # Numbered by sessions, not trials: a file that the journal has sealed is never written again.
        before = sum(isinstance(event, Session) for event in self.folder.events())
        record_session(self.folder, machine, target, earlier=before)
        self._session = True

    def _survey(self, machine: Machine, plan: Plan) -> Survey:
        """Return what the machine offers: surveyed once, and again if the item under test has another target."""
        path = plan.experiment.target.path or machine.directory
        surveyed = self._surveyed
        if surveyed is not None and (
            surveyed.scratch or resolve(machine, path) == surveyed.target
        ):
            return surveyed
        self._surveyed = survey(machine, plan.experiment)
        return self._surveyed

    def _with_knobs(self, values: Mapping[str, str]) -> Plan:
        """Return the plan with the question's knobs set for this item."""
        experiment = with_knobs(self._plan.experiment, self._question.knobs, values)
        return msgspec.structs.replace(self._plan, experiment=experiment)


class Silent:
    """A watcher of the lab that only passes on notes: the search has its own progress."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.note = say

    def begin(self, plan: object, folder: str, done: int) -> None: ...
    def trial(self, slot: object, variant: str, number: int) -> None: ...
    def tick(self, seconds: float) -> None: ...
    def measured(self, trial: object) -> None: ...
    def judged(self, judgement: object, spent: float, left: float) -> None: ...
    def preparing(self, what: str, share: float) -> None: ...


def with_knobs(
    experiment: Experiment, knobs: Mapping[str, str], values: Mapping[str, str]
) -> Experiment:
    """Return the experiment whose variants are all the baseline, with knobs and options of the workload set in which
    ``{item}`` and the like are replaced by ``values``."""
    texts = filled(tuple(knobs.values()), dict(values))
    base = experiment.variant(experiment.baseline)
    own = variant(
        base.name, dict(zip(knobs, texts, strict=True)), experiment.option_prefix
    )
    options = tuple({**dict(base.options), **dict(own.options)}.items())
    alike = msgspec.structs.replace(
        base, knobs={**base.knobs, **own.knobs}, options=options
    )
    variants = tuple(
        msgspec.structs.replace(alike, name=each.name) for each in experiment.variants
    )
    return msgspec.structs.replace(experiment, variants=variants)


def cell_experiment(text: str) -> Experiment:
    """Return the experiment of a search's cell. Raises RequestError unless it has one cell."""
    experiment = parse(text, "the measured cell", numbered=False)
    if len(experiment.cells) != 1:
        raise RequestError(
            f"a search measures one cell, and these options make {len(experiment.cells)}",
            place="workload",
            remedy="give every option one value, and one condition",
        )
    return experiment


def cell_metric(experiment: Experiment, name: str) -> Metric:
    """Return the metric of this name, else the first one of the cell; for a command, that of its file.

    Raises RequestError for an unknown name.
    """
    if experiment.of_command or not name:
        return primary_metrics(experiment)[0]
    return metric(name)
