"""What ``iodelta calibrate`` does: A against A, then known slow-downs."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from iodelta.cli.contact import contact
from iodelta.cli.turn import in_turn
from iodelta.cli.watching import watcher
from iodelta.errors import MeasureError
from iodelta.experiment import Experiment, parse, seconds, shorthand
from iodelta.knob import knob
from iodelta.lab.account import Account
from iodelta.lab.calibration import (
    Calibration,
    Injection,
    a_against_a,
    calibration_of,
    injected,
    injections_in,
    key_of,
    store,
)
from iodelta.lab.folder import Folder
from iodelta.lab.plan import make_plan
from iodelta.lab.progress import Watcher
from iodelta.lab.runner import Outcome, load_trials
from iodelta.lab.session import go
from iodelta.lab.setup import survey
from iodelta.lab.signals import stop_on_signals
from iodelta.machine import Machine
from iodelta.report.answers import CalibrationAnswer
from iodelta.report.calibration import lines
from iodelta.report.documents import written
from iodelta.trial import Trial

DEFAULT = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=1")


def calibrate(
    fio: tuple[str, ...],
    machine: str,
    target: str,
    size: str,
    trial: str,
    ramp: str,
    budget: str,
    margin: str,
    seed: int | None,
    destroy: tuple[str, ...],
    place: Path | None,
    format_: str,
) -> None:
    """Measure, print what was found, and keep it for later reports."""
    whole = seconds(budget)
    text = shorthand(
        variants=["a", "again"],
        fio=fio or DEFAULT,
        top={"machine": machine, "margin": margin},
        target={"path": target, "size": size},
        design={"trial": trial, "ramp": ramp, "budget": budget, "seed": seed},
    )
    experiment = parse(text, "command line", numbered=False)
    if len(experiment.cells) > 1:
        experiment = msgspec.structs.replace(experiment, cells=experiment.cells[:1])
        click.echo(f"calibrating the first cell only: {experiment.cells[0].name}", err=True)
    where = place or Path(time.strftime("iodelta-calibration-%Y%m%d-%H%M%S"))
    host = click.get_current_context().with_resource(contact(*experiment.machines))
    found = survey(host, experiment)
    throttle = knob("cgroup.io_max", host, found.target).available()
    share = whole if throttle else whole * 0.6
    with stop_on_signals() as stop, watcher(format_) as watching:

        def measure(name: str, question: Experiment) -> tuple[float, Outcome, list[Trial]]:
            return _measure(where / name, text, question, host, watching, stop, destroy)

        taken, outcome, trials = measure("a-against-a", a_against_a(experiment, share))
        label = " ".join(word.removeprefix("--") for word in (fio or DEFAULT))
        key = key_of(host, found.target, experiment.cells[0], experiment.variants[0])
        rates = [direction.iops.value for one in trials for direction in one.directions]
        injections: tuple[Injection, ...] = ()
        if not throttle and outcome.reason != "interrupted" and rates:
            slowed = injected(experiment, whole - share, statistics.median(rates))
            injections = injections_in(measure("injected", slowed)[1].judgement)
    calibration = calibration_of(key, label, found.target, outcome.judgement, trials, taken, injections)
    if not calibration.comparisons:
        raise MeasureError(
            "no comparison came to its first look", place=str(where), remedy="give a larger --budget or shorter trials"
        )
    _tell(calibration, throttle, format_)
    path = store(calibration)
    click.echo(f"kept in {path}; folders in {where}", err=True)


def _measure(
    path: Path,
    text: str,
    experiment: Experiment,
    machine: Machine,
    watching: Watcher,
    stop: Callable[[], bool],
    destroy: tuple[str, ...],
) -> tuple[float, Outcome, list[Trial]]:
    """Seconds that a trial took, all in all, how it ended, and the trials that count."""
    plan = make_plan(experiment)
    folder = Folder.begin(path, text, plan)
    outcome = in_turn(lambda: go(folder, machine, watching, stop=stop, destroy=destroy), stop, watching.note)
    journal = Account(folder.events())
    trials = load_trials(folder, journal.counted(v.name for v in experiment.variants))
    return journal.trial_seconds(plan.trial_seconds), outcome, list(trials.values())


def _tell(calibration: Calibration, throttle: str | None, format_: str) -> None:
    if format_ == "json":
        sys.stdout.buffer.write(written(CalibrationAnswer(calibration, calibration.bound)))
        return
    for line in lines(calibration):
        click.echo(line)
    if throttle:
        click.echo(f"No known slow-downs: {throttle}")
