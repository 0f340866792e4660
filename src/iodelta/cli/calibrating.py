"""The steps of ``iodelta calibrate``: A against A, then the aftermath of writes, then known slow-downs."""

from __future__ import annotations

import dataclasses
import statistics
import time
from itertools import chain
from pathlib import Path

import click
import msgspec

from iodelta.cli.contact import contact
from iodelta.cli.delivery import deliver
from iodelta.cli.own_command import of_file
from iodelta.cli.progress import say_line
from iodelta.cli.search_question import given_options
from iodelta.cli.turn import in_turn
from iodelta.cli.typed import SHOWING, typed
from iodelta.cli.watching import watcher
from iodelta.errors import MeasureError, RefusedError, RequestError
from iodelta.experiment import Experiment, parse, seconds, shorthand
from iodelta.experiment.source import COMMAND_LINE
from iodelta.knob import knob
from iodelta.lab.account import Account
from iodelta.lab.aftermath import (
    Aftermath,
    aftermath_experiment,
    aftermath_of,
    forbidden,
)
from iodelta.lab.calibration import (
    Injection,
    a_against_a,
    calibration_of,
    injected,
    injections_in,
    key_of,
    shares,
    store,
)
from iodelta.lab.folder import Folder
from iodelta.lab.judged import load_trials
from iodelta.lab.plan import make_plan
from iodelta.lab.progress import Control
from iodelta.lab.runner import Outcome
from iodelta.lab.session import go
from iodelta.lab.setup import survey
from iodelta.lab.signals import stop_on_signals
from iodelta.machine import Machine
from iodelta.report.stories.calibration import CalibrationAnswer
from iodelta.study.system import recorded_environment, system
from iodelta.trial import Trial

OF_COMMAND = "the workload is a command, and iodelta does not know what to throttle"
"""Why no known slow-down is measured."""

DEFAULT = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=1")


@dataclasses.dataclass(frozen=True)
class Measured:
    """An experiment of a calibration: how it ended, the trials that count, seconds that a block took, the machine."""

    outcome: Outcome
    trials: tuple[Trial, ...]
    block_seconds: float
    system: tuple[tuple[str, str], ...]

    @property
    def complete(self) -> bool:
        """Return whether it was not interrupted."""
        return self.outcome.reason != "interrupted"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of ``iodelta calibrate``, as they were given."""

    fio: tuple[str, ...]
    workload: Path | None
    """The experiment file whose command is measured instead of fio."""
    allow_commands: bool
    machine: str
    target: str
    size: str
    trial: str
    ramp: str
    budget: str
    margin: str
    seed: int | None
    destroy: tuple[str, ...]
    place: Path | None
    format_: str
    output: Path | None
    force: bool

    def question(self) -> tuple[str, Experiment]:
        """Return the experiment as text, and its first cell under its baseline. Raises RequestError."""
        text, experiment = (
            self._by_fio() if self.workload is None else self._by_file(self.workload)
        )
        if len(experiment.cells) > 1:
            say_line(f"calibrating the first cell only: {experiment.cells[0].name}")
        base = experiment.variant(experiment.baseline)
        return text, msgspec.structs.replace(
            experiment, cells=experiment.cells[:1], variants=(base,)
        )

    def label(self, experiment: Experiment) -> str:
        """Return the name of the workload in later reports."""
        if experiment.of_command:
            return experiment.cells[0].name
        return " ".join(word.removeprefix("--") for word in (self.fio or DEFAULT))

    def _by_fio(self) -> tuple[str, Experiment]:
        text = shorthand(
            variants=["a", "again"],
            fio=self.fio or DEFAULT,
            top={"machine": self.machine, "margin": self.margin},
            target={"path": self.target, "size": self.size},
            design={
                "trial": self.trial,
                "ramp": self.ramp,
                "budget": self.budget,
                "seed": self.seed,
            },
        )
        return text, parse(text, COMMAND_LINE, numbered=False, strict=True, same=True)

    def _by_file(self, path: Path) -> tuple[str, Experiment]:
        """Return the design of the file, with the values of the command line."""
        given = given_options(("margin", "trial", "ramp"))
        if self.fio or "ramp" in given:
            what = "an option of fio" if self.fio else "--ramp"
            raise RequestError(
                f"{what} is not of a command", place="--workload", remedy="leave it out"
            )
        return of_file(
            path,
            top={
                "machine": self.machine,
                "margin": self.margin if "margin" in given else None,
            },
            target={"path": self.target, "size": self.size},
            design={
                "trial": self.trial if "trial" in given else None,
                "budget": self.budget,
                "seed": self.seed,
            },
            allowed=self.allow_commands,
        )


def calibrate(asked: Asked) -> None:
    """Measure, print the result, and store it for later reports."""
    whole = seconds(asked.budget)
    text, experiment = asked.question()
    where = asked.place or Path(time.strftime("iodelta-calibration-%Y%m%d-%H%M%S"))
    host = click.get_current_context().with_resource(contact(*experiment.machines))
    found = survey(host, experiment)
    throttle = (
        OF_COMMAND
        if experiment.of_command
        else knob("cgroup.io_max", host, found.target).available() or ""
    )
    unwritten = forbidden(host, experiment, found, asked.destroy)
    first, second, third = shares(
        whole, aftermath=not unwritten, injections=not throttle
    )
    with stop_on_signals() as stop, watcher(asked.format_) as watching:

        def measure(name: str, question: Experiment) -> Measured:
            control = Control(watching, stop, asked.destroy, asked.allow_commands)
            return _measure(where / name, text, question, host, control)

        alike = measure("a-against-a", a_against_a(experiment, first))
        metrics = alike.outcome.judgement.rules.metrics
        aftermath: tuple[Aftermath, ...] = ()
        if not unwritten and alike.complete:
            room = found.size or found.target.size_bytes
            try:
                after = measure(
                    "aftermath", aftermath_experiment(experiment, second, room)
                )
                aftermath = aftermath_of(after.trials, metrics)
            except (
                RefusedError
            ) as error:  # what was measured of reads holds all the same
                unwritten = f"{error.place}: {error.what}"
        directions = chain.from_iterable(trial.directions for trial in alike.trials)
        rates = [direction.iops.value for direction in directions]
        injections: tuple[Injection, ...] = ()
        if not throttle and alike.complete and rates:
            slowed = injected(experiment, third, statistics.median(rates))
            injections = injections_in(measure("injected", slowed).outcome.judgement)
    key = key_of(host, found.target, experiment.cells[0], experiment.variants[0])
    calibration = calibration_of(
        key,
        asked.label(experiment),
        found.target,
        alike.outcome.judgement,
        alike.trials,
        alike.block_seconds,
        injections,
        aftermath,
    )
    if not calibration.comparisons:
        raise MeasureError(
            "no comparison reached its first look",
            place=str(where),
            remedy="give a larger --budget or shorter trials",
        )
    answer = CalibrationAnswer(
        calibration,
        calibration.bound,
        unwritten,
        throttle,
        system=alike.system,
        again=typed(SHOWING | {"place"}),
    )
    deliver(answer, tuple, asked.format_, asked.output, force=asked.force)
    path = store(calibration)
    click.echo(f"kept in {path}; folders in {where}", err=True)


def _measure(
    path: Path,
    text: str,
    experiment: Experiment,
    machine: Machine,
    control: Control,
) -> Measured:
    plan = make_plan(experiment)
    folder = Folder.begin(path, text, plan)
    try:
        outcome = in_turn(
            lambda: go(folder, machine, control), control.stop, control.watcher.note
        )
    except RequestError:
        if not Account(folder.events()).sessions:
            folder.remove()
        raise
    journal = Account(folder.events())
    trials = load_trials(folder, journal.counted(v.name for v in experiment.variants))
    seconds_each = journal.trial_seconds(plan.trial_seconds)
    return Measured(
        outcome,
        tuple(trials.values()),
        plan.per_block * seconds_each,
        system(recorded_environment(folder)),
    )
