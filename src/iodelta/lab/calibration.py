"""Calibration: A against A through the whole pipeline, then known slow-downs, on this machine and this cell.

The A/A part is one experiment of identical cells, ordered and judged as every experiment of that workload is; what it
calls a change is a false alarm. A second experiment measures what trials that write more leave to the next trial
(``iodelta.lab.aftermath``). Where a throttle can be set, a third compares one rate with rates 1, 2 and 3.5 % lower.
What comes out is kept in the state directory, grows with every calibration of the same machine, disk and workload, and
is copied into the folder of every later experiment, so that its plan and reports can quote it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from iodelta.decoding import from_json
from iodelta.experiment import Cell, Experiment, Variant
from iodelta.jobfile import canonical
from iodelta.lab.aftermath import Aftermath
from iodelta.lab.folder import CALIBRATION
from iodelta.lab.plan import make_plan
from iodelta.plural import plural
from iodelta.stats.calibration import (
    Noise,
    alarms_beyond,
    false_alarm_bound,
    noise_sources,
    smallest_change,
)
from iodelta.stats.stalls import CONFIDENCE, excluded, stalled_trials
from iodelta.trial import Finding, Trial
from iodelta.verdict import Judgement, Metric, value_of

if TYPE_CHECKING:
    from iodelta.machine import Machine
    from iodelta.probe.topology import Target

INJECTED = (0.01, 0.02, 0.035)
"""Known slow-downs, of the size that mailing lists argue about."""

BLOCKS_EACH = 20
"""About how many blocks an A/A comparison takes until it is equivalent; decides how many comparisons a budget pays."""

SHARES = {"A/A": 0.5, "aftermath": 0.2, "injected": 0.3}
"""Of the budget; what cannot be measured here leaves its share to the others."""

CHANGES = ("regression", "improvement")

THROTTLE = 0.6
"""The injected experiment's base rate, as a share of the rate measured without a throttle."""


class MetricNoise(msgspec.Struct, frozen=True):
    """The noise of one metric, sd of logarithms, and the smallest change seen with 90 % power in a given time."""

    metric: Metric
    noise: Noise
    lag1: float
    """Correlation of a block's log difference with the next block's."""
    ten_minutes: float | None
    hour: float | None
    night: float | None


class Injection(msgspec.Struct, frozen=True):
    """A known slow-down and its verdict."""

    change: float
    word: str
    low: float | None
    high: float | None
    blocks: int


class Calibration(msgspec.Struct, frozen=True):
    """What A/A and known changes showed of one workload on one disk of one machine."""

    key: str
    """Machine, disk and workload in one digest."""
    workload: str
    disk: str
    """The disks that were measured; the type of the filesystem where there are none below it."""
    made: float
    """Unix seconds of the latest part."""
    comparisons: int
    alarms: int
    """How many of them, each judged as the only comparison of an experiment, were called a change."""
    metrics: tuple[MetricNoise, ...]
    """The noise of each metric."""
    injections: tuple[Injection, ...] = ()
    """What was said of known changes; empty where none was made."""
    trials: int = 0
    """Trials in which stalls were looked for; 0 in older calibrations."""
    stalled: int = 0
    """Those of them that stalled."""
    experiments: int = 0
    """Experiments that held the comparisons, each judged by the family rules of its plan; 0 in older calibrations."""
    raised: int = 0
    """Those of them that called any change."""
    aftermath: tuple[Aftermath, ...] = ()
    """What a trial that writes more leaves to the next trial; empty where that was not measured."""

    @property
    def bound(self) -> float:
        """95 % upper bound of the false-alarm rate (Clopper-Pearson)."""
        return false_alarm_bound(self.alarms, self.comparisons)

    @property
    def stall_bound(self) -> float:
        """95 % upper bound of the share of trials that stall: about 3 / trials where none did."""
        return excluded(self.stalled, self.trials, CONFIDENCE)


def shares(
    budget: float, *, aftermath: bool, injections: bool
) -> tuple[float, float, float]:
    """Seconds of the budget for A against A, for the aftermath and for known slow-downs."""
    wanted = (
        SHARES["A/A"],
        SHARES["aftermath"] * aftermath,
        SHARES["injected"] * injections,
    )
    first, second, third = (budget * share / sum(wanted) for share in wanted)
    return first, second, third


def key_of(machine: Machine, target: Target, cell: Cell, variant: Variant) -> str:
    """Return one digest of machine, disk and what fio does there under the baseline: what a calibration holds for."""
    identity = machine.run(["cat", "/etc/machine-id"]).text.strip()
    disks = ",".join(target.disks)
    options = msgspec.json.encode(
        {canonical(name): value for name, value in (*cell.options, *variant.options)},
        order="deterministic",
    )
    command_text = (
        msgspec.json.encode(cell.command) if cell.command is not None else b""
    )
    return hashlib.sha256(
        f"{identity}/{disks}/".encode() + options + command_text
    ).hexdigest()[:16]


def a_against_a(experiment: Experiment, budget: float) -> Experiment:
    """As many identical cells as the budget pays for, each comparing the first cell's workload with itself.

    Judged without a screen (``family="holm"``): it would stop most comparisons before they could raise an alarm.
    """
    cell, variant = experiment.cells[0], experiment.variants[0]
    plan = make_plan(replace(experiment, cells=(cell,), variants=(variant, variant)))
    count = max(2, round(budget / (BLOCKS_EACH * plan.per_block * plan.trial_seconds)))
    return replace(
        experiment,
        question=f"What does iodelta say of {cell.name} against itself?",
        baseline="a",
        cells=tuple(
            Cell(f"comparison {n}", cell.condition, cell.options, cell.command)
            for n in range(1, count + 1)
        ),
        variants=(
            Variant("a", variant.knobs, variant.options),
            Variant("again", variant.knobs, variant.options),
        ),
        design=replace(experiment.design, budget=budget, family="holm"),
    )


def injected(experiment: Experiment, budget: float, iops: float) -> Experiment:
    """One cell under a throttle of ``THROTTLE`` x ``iops`` reads or writes a second, and ``INJECTED`` lower ones."""
    cell, variant = experiment.cells[0], experiment.variants[0]
    base = THROTTLE * iops

    def throttled(name: str, rate: float) -> Variant:
        limit = f"riops={round(rate)} wiops={round(rate)}"
        return Variant(name, {**variant.knobs, "cgroup.io_max": limit}, variant.options)

    return replace(
        experiment,
        question="Are known slow-downs found?",
        baseline="full",
        cells=(cell,),
        variants=(
            throttled("full", base),
            *(throttled(f"minus-{100 * x:g}", base * (1 - x)) for x in INJECTED),
        ),
        design=replace(experiment.design, budget=budget),
    )


def noise_of(
    trials: Sequence[Trial], metrics: Sequence[Metric], seconds_per_block: float
) -> tuple[MetricNoise, ...]:
    """Noise by source from an A/A stream of counted trials, in run order. Metrics without enough values are left out.

    ``seconds_per_block`` are those of all its trials, the conditioning ones of a superblock among them.
    """
    blocks: dict[tuple[str, int], list[Trial]] = {}
    for trial in sorted(trials, key=lambda done: done.number):
        blocks.setdefault((trial.cell, trial.block), []).append(trial)
    pairs = [pair for pair in blocks.values() if len(pair) == 2]
    noises = []
    for metric in metrics:
        values = np.array([_values(pair, metric) for pair in pairs])
        values = (
            values[np.all(np.isfinite(values) & (values > 0), axis=1)]
            if len(values)
            else values
        )
        if len(values) < 4:
            continue
        # Logarithms below, because verdicts are about ratios; the mean is removed, because a placebo has none.
        noise = noise_sources(values[:, 0], values[:, 1])
        differences = np.diff(np.log(values), axis=1)[:, 0]
        differences -= differences.mean()
        power = float(differences @ differences)
        lag1 = float(differences[1:] @ differences[:-1]) / power if power else 0.0
        visible = [
            smallest_change(int(time_ / seconds_per_block), noise.block_sd)
            for time_ in (600.0, 3600.0, 28800.0)
        ]
        noises.append(MetricNoise(metric, noise, lag1, *visible))
    return tuple(noises)


def _values(pair: Sequence[Trial], metric: Metric) -> list[float]:
    return [value_of(trial, metric)[0] for trial in pair]


def alarms_in(judgement: Judgement) -> tuple[int, int, bool]:
    """Comparisons judged, how many of them alone would have been called a change, and whether the experiment did so.

    The metrics of a comparison are tested together. Alone: as the one comparison of an experiment, at the full level.
    """
    judged = {(v.cell, v.variant) for v in judgement.verdicts if v.look is not None}
    alone = {(v.cell, v.variant) for v in judgement.verdicts if v.alone in CHANGES}
    return (
        len(judged),
        len(alone & judged),
        any(v.word in CHANGES for v in judgement.verdicts),
    )


def injections_in(judgement: Judgement) -> tuple[Injection, ...]:
    """Return the verdict on each known slow-down, by the first metric (the rate)."""
    injections = []
    for change in INJECTED:
        verdicts = [
            v for v in judgement.verdicts if v.variant == f"minus-{100 * change:g}"
        ]
        if verdicts:
            v = verdicts[0]
            low, high = (v.change.low, v.change.high) if v.change else (None, None)
            injections.append(Injection(-change, v.word, low, high, v.blocks))
    return tuple(injections)


def doubt(calibrations: Sequence[Calibration], level: float) -> Finding | None:
    """Return why changes are only suspected: A/A comparisons here were called a change more often than ``level``
    explains.
    """
    for calibration in calibrations:
        if alarms_beyond(calibration.alarms, calibration.comparisons, level):
            text = (
                f"{calibration.alarms} of {plural(calibration.comparisons, 'comparison')} of a variant with itself "
                "were called a change, more "
                f"than the level of {100 * level:g} % explains: a change here is only suspected"
            )
            remedy = "find what disturbs this machine or what one trial leaves to the next, then calibrate again"
            return Finding(
                "calibration.false-alarms",
                "warning",
                calibration.workload,
                text,
                remedy,
            )
    return None


def merged(old: Calibration | None, new: Calibration) -> Calibration:
    """Return the latest noise, with the A/A comparisons of both."""
    if old is None:
        return new
    return replace(
        new,
        comparisons=old.comparisons + new.comparisons,
        alarms=old.alarms + new.alarms,
        injections=new.injections or old.injections,
        trials=old.trials + new.trials,
        stalled=old.stalled + new.stalled,
        experiments=old.experiments + new.experiments,
        raised=old.raised + new.raised,
        aftermath=new.aftermath or old.aftermath,
    )


def stored() -> Mapping[str, Calibration]:
    """Return all calibrations of this machine, by key; none where there is no file or it cannot be read."""
    from iodelta.lab.undo import state_directory

    try:
        return from_json(
            (state_directory() / CALIBRATION).read_bytes(), dict[str, Calibration]
        )
    except (OSError, msgspec.MsgspecError):
        return {}


def calibrations_for(
    machine: Machine, target: Target, experiment: Experiment
) -> tuple[Calibration, ...]:
    """Return what is known of an experiment's cells on this machine and disk: copied into its folder when it begins."""
    known = stored()
    baseline = experiment.variant(experiment.baseline)
    keys = (
        dict.fromkeys(
            key_of(machine, target, cell, baseline) for cell in experiment.cells
        )
        if known
        else ()
    )
    return tuple(known[key] for key in keys if key in known)


def store(calibration: Calibration) -> Path:
    """Keep a calibration with the others. Raises OSError."""
    from iodelta.lab.undo import state_directory

    path = state_directory() / CALIBRATION
    path.parent.mkdir(parents=True, exist_ok=True)
    everything = {
        **stored(),
        calibration.key: merged(stored().get(calibration.key), calibration),
    }
    temporary = path.with_name(f".{CALIBRATION}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.encode(everything))
    temporary.replace(path)
    return path


def calibration_of(
    key: str,
    workload: str,
    target: Target,
    judgement: Judgement,
    trials: Sequence[Trial],
    seconds_per_block: float,
    injections: tuple[Injection, ...] = (),
    aftermath: tuple[Aftermath, ...] = (),
) -> Calibration:
    """Return the calibration that an A/A experiment gives."""
    comparisons, alarms, raised = alarms_in(judgement)
    # Trials of one workload in run order, and how many of them stalled: cells and variants are all alike
    metric = judgement.rules.metrics[0]
    ordered = sorted(trials, key=lambda one: one.number)
    values = np.array([value_of(trial, metric)[0] for trial in ordered])
    known = values[np.isfinite(values) & (values > 0)]
    worse = -np.log(known) if metric.better == "higher" else np.log(known)
    seen, stalled = (
        len(values),
        len(stalled_trials(worse)) + int(np.count_nonzero(values == 0)),
    )
    return Calibration(
        key=key,
        workload=workload,
        disk=", ".join(target.disks) or target.fstype or target.path,
        made=time.time(),
        comparisons=comparisons,
        alarms=alarms,
        metrics=noise_of(trials, judgement.rules.metrics, seconds_per_block),
        injections=injections,
        trials=seen,
        stalled=stalled,
        experiments=int(comparisons > 0),
        raised=int(raised),
        aftermath=aftermath,
    )
