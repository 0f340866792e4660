"""The aftermath of writes: what a trial that writes more than the workload leaves to a trial of the workload.

Every block has two trials of the workload and one of a writer, in an order drawn for the block. In some blocks one of
the two follows the writer and the other does not: the contrast of their order gives the carry-over, from neighbours in
time and without the noise of the writer's own trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from iodelta.experiment import Cell, Experiment, Option, Variant, size_bytes
from iodelta.experiment.io_uring import TOOL
from iodelta.stats.carry import MEMORIES, Levels, carry_over
from iodelta.stats.effect import log_ratios
from iodelta.trial import Trial
from iodelta.verdict import Metric, series_of
from iodelta.verdict.model import relative
from iodelta.verdict.surroundings import Counts, surroundings_of

if (
    TYPE_CHECKING
):  # every report reads what a calibration found; it does not survey a machine
    from iodelta.lab.setup import Survey
    from iodelta.machine import Machine

ITSELF, AGAIN, WRITER = "a", "again", "writer"

LEAST = 256 << 10
"""Bytes that a request of the writer has at least."""

TIMES = 4
"""How many times a request of the workload it is."""

THROTTLES = ("rate", "rate_iops", "rate_min", "rate_iops_min", "thinktime")
"""Options that limit a workload's rate; the writer runs without them."""


class Aftermath(msgspec.Struct, frozen=True):
    """What a trial that writes more left to the trial after it, by one metric: relative, positive = worse."""

    metric: Metric
    value: float
    low: float
    high: float
    """Ends of the 95 % interval, whatever the memory of the machine (see ``stats.carry``)."""
    blocks: int


def forbidden(
    machine: Machine, experiment: Experiment, survey: Survey, destroy: Sequence[str]
) -> str:
    """Return why the target must not be written to for this; empty where it may be, as for what iodelta made itself."""
    if experiment.of_command:
        return "the workload is a command, and iodelta does not know how to make it write more"
    if experiment.cells[0].option(TOOL):
        return "t/io_uring only reads here"
    if survey.target.kind == "directory" and not survey.scratch:
        return "the target is a directory of files"
    from iodelta.probe.made import made

    if survey.scratch or survey.writes or made(machine, survey.target) or destroy:
        return ""
    return f"it needs trials that write; --destroy {survey.target.path} allows them"


def aftermath_experiment(
    experiment: Experiment, budget: float, size: int | None
) -> Experiment:
    """Return the first cell's workload twice and a writer, in plain blocks: the question is what one trial leaves to
    the next."""
    cell, variant = experiment.cells[0], experiment.variants[0]
    more = dict(variant.options) | dict(writer(cell, variant, size))
    return replace(
        experiment,
        question=f"How large is the carry-over of writes to a trial of {cell.name}?",
        baseline=ITSELF,
        cells=(cell,),
        variants=(
            Variant(ITSELF, variant.knobs, variant.options),
            Variant(AGAIN, variant.knobs, variant.options),
            Variant(WRITER, variant.knobs, tuple(more.items())),
        ),
        design=replace(experiment.design, budget=budget, carry_over="tested"),
    )


def writer(cell: Cell, variant: Variant, size: int | None) -> tuple[Option, ...]:
    """Return the options by which a trial of this workload writes, and writes more than the workload: larger requests,
    as fast as they go. ``size`` is that of the target in bytes, where it is known."""
    given = dict((*cell.options, *variant.options))
    name = "readwrite" if "readwrite" in given else "rw"
    scattered = (given.get(name) or "read").startswith("rand")
    options: list[Option] = [(name, "randwrite" if scattered else "write")]
    options += [(option, "0") for option in THROTTLES if option in given]
    if not {"bsrange", "bssplit"} & given.keys():
        spelled = "blocksize" if "blocksize" in given else "bs"
        block_size = _bytes(given.get(spelled))
        wanted = max(LEAST, TIMES * block_size)
        fits = size is None or wanted <= size
        options.append((spelled, str(wanted if fits else block_size)))
    return tuple(options)


def _bytes(text: str | None) -> int:
    try:
        return size_bytes((text or "4k").partition(",")[0])
    except ValueError:
        return 4096


def aftermath_of(
    trials: Sequence[Trial], metrics: Sequence[Metric]
) -> tuple[Aftermath, ...]:
    """Return the carry-over by each metric that has enough blocks, from the trials of such an experiment."""
    carried = []
    workload_trials = [trial for trial in trials if trial.variant != WRITER]
    before = (
        surroundings_of(trials)[workload_trials[0].cell].before
        if workload_trials
        else {}
    )
    after = {number: _after_writes(counts) for number, counts in before.items()}
    for metric in metrics:
        series = series_of(workload_trials, metric, ITSELF, AGAIN)
        values = np.array([series.baseline_values, series.variant_values])
        usable = np.all(np.isfinite(values) & (values > 0), axis=0)
        if not usable.any():
            continue
        higher = metric.better == "higher"
        d = log_ratios(*values[:, usable], higher_is_better=higher)
        level = (-1.0 if higher else 1.0) * np.log(values[:, usable]).mean(axis=0)
        places = np.array([series.baseline_at, series.variant_at])[:, usable]
        exposed = np.array(
            [list(map(after.__getitem__, row)) for row in places.astype(int).tolist()]
        ).transpose(2, 0, 1)
        contrast = exposed[:, 1] - exposed[:, 0]
        levels = Levels(level, exposed.mean(axis=1), places.mean(axis=0))
        carry = carry_over(d, contrast, contrast.mean(axis=1), levels)
        if carry.known:
            value, low, high = (
                relative(end)
                for end in (carry.value[carry.best], carry.low, carry.high)
            )
            carried.append(Aftermath(metric, value, low, high, len(d)))
    return tuple(carried)


def _after_writes(counts: Counts) -> tuple[float, ...]:
    """Return the exposures to the writer, less a third of the exposures to all trials."""
    # A third of all trials are the writer's, so all exposures grow over the first trials as their history does: less
    # that third, the growth does not pass for a trend.
    none = (0.0,) * len(MEMORIES)
    wrote, itself, other = (counts.get(name, none) for name in (WRITER, ITSELF, AGAIN))
    return tuple(
        [
            2 / 3 * (w - (a + b) / 2)
            for w, a, b in zip(wrote, itself, other, strict=True)
        ]
    )
