"""``iodelta calibrate``: A against A, then the aftermath of writes, then known slow-downs."""

from __future__ import annotations

import statistics
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from iodelta.cli.commands import SHOWING, Asked, declared, fresh
from iodelta.cli.progress import say_line
from iodelta.errors import MeasureError, RefusedError, RequestError

if TYPE_CHECKING:
    from iodelta.experiment import Experiment
    from iodelta.lab.progress import Control
    from iodelta.lab.runner import Outcome
    from iodelta.machine import Machine
    from iodelta.trial import Trial

OF_COMMAND = "the workload is a command, and iodelta does not know what to throttle"
"""Why no known slow-down is measured."""

DEFAULT = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=1")


class Measured(NamedTuple):
    """An experiment of a calibration: how it ended, the trials that count, seconds that a block took, the machine."""

    outcome: Outcome
    trials: tuple[Trial, ...]
    block_seconds: float
    system: tuple[tuple[str, str], ...]


@declared(
    "calibrate",
    "[fio...]",
    """
--machine
--workload
--allow-commands
--target
--size
--trial
--ramp
--budget TIME [10m]   Total time.
--margin
--seed
--destroy
--wait
--folder
--format REPORT [console]
--output
--force
""",
    """
  iodelta calibrate --budget 10m
  iodelta calibrate --target /dev/sdb --budget 1h -- --rw=randread --bs=4k --ioengine=libaio --direct=1 --iodepth=32
  iodelta calibrate --target /dev/sdb --destroy /dev/sdb --budget 1h
  iodelta calibrate --machine ssh:storage1 --target /dev/nvme0n1 --budget 1h
  iodelta calibrate --workload store.toml --budget 1h     # what the numbers of your own command can show
""",
)
def command(asked: Asked) -> None:
    """Compare a workload with itself through the whole pipeline, then with known slow-downs.

    Prints the noise by source, bounds on the rates of false alarms and of stalls, and the smallest change that this
    machine can detect in ten minutes, an hour and a night. Every later plan and report on this machine, disk and
    workload quotes these figures; calibrating again refines them. Known slow-downs need a throttle (cgroup.io_max in
    `iodelta knobs`). Carry-over from trials that write is measured on a scratch file, or on a device or file that
    --destroy names.
    """
    from iodelta.cli.watching import watcher  # --help does without
    from iodelta.knob import knob
    from iodelta.lab import aftermath as after
    from iodelta.lab import calibration as lab
    from iodelta.lab.progress import Control
    from iodelta.lab.setup import survey
    from iodelta.lab.signals import stop_on_signals
    from iodelta.report.stories.calibration import CalibrationAnswer

    whole = asked.time_of("budget")
    text, experiment = _question(asked)
    where = asked.folder or fresh("iodelta-calibration")
    name = "".join(experiment.machines[:1])
    asked.machine = name
    host = click.get_current_context().with_resource(asked.contact())
    found = survey(host, experiment)
    throttle = (
        OF_COMMAND
        if experiment.of_command
        else knob("cgroup.io_max", host, found.target).available() or ""
    )
    unwritten = after.forbidden(host, experiment, found, asked.destroy)
    first, second, third = lab.shares(
        whole, aftermath=not unwritten, injections=not throttle
    )
    with stop_on_signals() as stop, watcher(asked.format) as watching:
        control = Control(watching, stop, asked.destroy, asked.allow_commands)

        def measure(name: str, question: Experiment) -> Measured:
            return _measure(where / name, text, question, host, control, asked)

        alike = measure("a-against-a", lab.a_against_a(experiment, first))
        complete = alike.outcome.reason != "interrupted"
        metrics = alike.outcome.judgement.rules.metrics
        aftermath: tuple[after.Aftermath, ...] = ()
        if not unwritten and complete:
            room = found.size or found.target.size_bytes
            try:
                wrote = after.aftermath_experiment(experiment, second, room)
                aftermath = after.aftermath_of(
                    measure("aftermath", wrote).trials, metrics
                )
            except RefusedError as error:  # what was measured of reads holds
                unwritten = f"{error.place}: {error.what}"
        directions = chain.from_iterable(trial.directions for trial in alike.trials)
        rates = [direction.iops.value for direction in directions]
        injections: tuple[lab.Injection, ...] = ()
        if not throttle and complete and rates:
            slowed = lab.injected(experiment, third, statistics.median(rates))
            judged = measure("injected", slowed).outcome.judgement
            injections = lab.injections_in(judged)
    cell = experiment.cells[0]
    options = " ".join(word.removeprefix("--") for word in (asked.fio or DEFAULT))
    calibration = lab.calibration_of(
        lab.key_of(host, found.target, cell, experiment.variants[0]),
        cell.name if experiment.of_command else options,
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
    asked.deliver(
        CalibrationAnswer(
            calibration,
            calibration.bound,
            unwritten,
            throttle,
            system=alike.system,
            again=asked.typed(SHOWING | {"folder"}),
        )
    )
    path = lab.store(calibration)
    click.echo(f"kept in {path}; folders in {where}", err=True)


def _question(asked: Asked) -> tuple[str, Experiment]:
    """Return the experiment as text, and its first cell under its baseline. Raises RequestError."""
    import msgspec

    from iodelta.api.own_command import of_file
    from iodelta.experiment import parse
    from iodelta.experiment.options import specs, tables
    from iodelta.experiment.shorthand import shorthand
    from iodelta.experiment.source import COMMAND_LINE

    given = {name: vars(asked).get(name) for name in specs()}
    found: dict[str, Any] = tables(given)
    found["top"]["machine"] = asked.machine
    if asked.workload is not None:
        if asked.fio or asked.ramp:
            what = "an option of fio" if asked.fio else "--ramp"
            raise RequestError(
                f"{what} is not of a command", place="--workload", remedy="leave it out"
            )
        text, experiment = of_file(
            asked.workload, **found, allowed=asked.allow_commands
        )
    else:
        text = shorthand(variants=["a", "again"], fio=asked.fio or DEFAULT, **found)
        experiment = parse(text, COMMAND_LINE, numbered=False, strict=True, same=True)
    if len(experiment.cells) > 1:
        say_line(f"calibrating the first cell only: {experiment.cells[0].name}")
    base = experiment.variant(experiment.baseline)
    return text, msgspec.structs.replace(
        experiment, cells=experiment.cells[:1], variants=(base,)
    )


def _measure(
    path: Path,
    text: str,
    experiment: Experiment,
    machine: Machine,
    control: Control,
    asked: Asked,
) -> Measured:
    from iodelta.lab.account import Account
    from iodelta.lab.folder import Folder
    from iodelta.lab.judged import load_trials
    from iodelta.lab.plan import make_plan
    from iodelta.lab.session import go
    from iodelta.study.system import recorded_environment, system

    plan = make_plan(experiment)
    folder = Folder.begin(path, text, plan)
    try:
        outcome = asked.in_turn(
            lambda: go(folder, machine, control), control.stop, control.watcher.note
        )
    except RequestError:
        if not Account(folder.events()).sessions:
            folder.remove()
        raise
    journal = Account(folder.events())
    trials = load_trials(folder, journal.counted(v.name for v in experiment.variants))
    return Measured(
        outcome,
        tuple(trials.values()),
        plan.per_block * journal.trial_seconds(plan.trial_seconds),
        system(recorded_environment(folder)),
    )
