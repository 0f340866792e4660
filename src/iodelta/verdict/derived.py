"""Derived views of an experiment: shift function, knee of a depth sweep, whether IOPS and latency are one effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.knee import Knee, KneeShift, find_knee, knee_shift
from iodelta.stats.little import Together, together
from iodelta.stats.shift import ShiftFunction, shift_function
from iodelta.trial import Finding, Histogram, Kind, Latency, Trial
from iodelta.verdict.metrics import Metric
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Block, Series, blocks_of, series_of
from iodelta.verdict.series_units import units_of

Floats = NDArray[np.float64]


class KneeMove(msgspec.Struct, frozen=True):
    """The knees of a depth sweep under two variants and how far the knee moved; None where a finding gives the
    reason."""

    metric: Metric
    baseline: str
    variant: str
    before: Knee | None
    """The baseline's knee; None where a finding gives the reason."""
    after: Knee | None
    """The variant's knee; None where a finding gives the reason."""
    shift: KneeShift | None
    """How far it moved; None where a finding gives the reason."""
    findings: tuple[Finding, ...] = ()


def latency_shift(
    trials: Iterable[Trial],
    kind: Kind,
    baseline: str,
    variant: str,
    rules: Rules,
    *,
    cell: str,
) -> ShiftFunction:
    """Return the shift function of the total latency of ``cell``: the relative change of each percentile with a band
    that holds for all of them at once, from the blocks that hold histograms of both variants.

    Completion latency stands in where total latency was not kept everywhere. Method: Doksum (1974); resampling over
    blocks (``stats.shift``). Too few blocks or samples are findings of the result.
    """
    old, new = latency_histograms(trials, kind, (baseline, variant), cell=cell)
    place = f"cell {cell}, {kind} latency, {variant}"
    return shift_function(
        old, new, level=1.0 - rules.alpha, seed=rules.seed, place=place
    )


def latency_histograms(
    trials: Iterable[Trial], kind: Kind, variants: Sequence[str], *, cell: str
) -> tuple[list[Histogram], ...]:
    """Per variant a list of histograms (fio's bins, ns), one for each block that holds one of every variant, in run
    order; several runs in a block are merged.

    All are of total latency (lat), or all of completion latency (clat) where total latency was not kept everywhere.
    Lists of one length; empty where no block is complete.
    """
    blocks = blocks_of(trial for trial in trials if trial.cell == cell).values()
    for family in ("lat", "clat"):
        rows = [_histograms(block, variants, kind, family) for block in blocks]
        complete = [row for row in rows if len(row) == len(variants)]
        if complete:
            return tuple(map(list, zip(*complete, strict=True)))
    return tuple([] for _ in variants)


def _histograms(
    block: Block, variants: Sequence[str], kind: Kind, family: str
) -> list[Histogram]:
    """Return the histogram of each variant that has one in a block."""
    histograms = (_histogram(block.get(name, ()), kind, family) for name in variants)
    return [histogram for histogram in histograms if histogram is not None]


def _histogram(runs: Sequence[Trial], kind: Kind, family: str) -> Histogram | None:
    """The merged histogram of one variant's runs in one block; None when any is missing or empty."""
    parts = []
    for trial in runs:
        direction = trial.direction(kind)
        latency: Latency | None = (
            getattr(direction, family) if direction is not None else None
        )
        if latency is None or latency.histogram is None or not latency.histogram.total:
            return None
        parts.append(latency.histogram)
    return Histogram.merged(parts) if parts else None


def _no_sweep(place: str) -> Finding:
    return Finding(
        "knee.no-blocks",
        "warning",
        place,
        "no block holds the whole depth sweep under both variants",
        "sweep every depth in every block",
    )


def knee_move(
    trials: Iterable[Trial],
    depths: Mapping[str, int],
    metric: Metric,
    baseline: str,
    variant: str,
    *,
    level: float = 0.95,
    seed: int,
) -> KneeMove:
    """Return the saturation knee under both variants. ``depths`` maps the cells of one sweep to their I/Os in flight
    (iodepth x jobs); only blocks in which both variants ran every depth count."""
    place = f"{metric.name}, {variant}"
    sweep_trials = [trial for trial in trials if trial.cell in depths]
    cells = sorted(depths, key=lambda cell: depths[cell])
    series = [
        series_of(sweep_trials, metric, baseline, variant, cell=cell) for cell in cells
    ]
    shared = (
        set.intersection(*(set(pairs.blocks) for pairs in series)) if series else set()
    )
    if not shared:
        return KneeMove(
            metric, baseline, variant, None, None, None, (_no_sweep(place),)
        )
    before, after = (_sweep(series, shared, old=old) for old in (True, False))
    sweep = [float(depths[cell]) for cell in cells]
    knees = [
        find_knee(sweep, arm, level=level, seed=seed, place=f"{metric.name}, {name}")
        for arm, name in ((before, baseline), (after, variant))
    ]
    shift = knee_shift(sweep, before, after, level=level, seed=seed, place=place)
    refusals = [*knees, shift]
    refused = tuple(
        dict.fromkeys(refusal for refusal in refusals if isinstance(refusal, Finding))
    )
    return KneeMove(
        metric,
        baseline,
        variant,
        knees[0] if isinstance(knees[0], Knee) else None,
        knees[1] if isinstance(knees[1], Knee) else None,
        shift if isinstance(shift, KneeShift) else None,
        refused,
    )


def one_effect(iops: Series, latency: Series, rules: Rules) -> Together | Finding:
    """Return whether the IOPS change and the mean-latency change of one comparison are one effect or two (Little's
    law), or a Finding that says why this is not known.

    Both series are of the same cell and variants; only blocks complete for both count.
    """
    rates, other = units_of(iops, rules), units_of(latency, rules)
    for units in (rates, other):
        # A ratio that never varies gets no verdict, but here it is what Little's law predicts for a constant depth.
        if units.refusal is not None and units.refusal.rule != "verdict.constant":
            return units.refusal
    shared = [number for number in rates.numbers if number in set(other.numbers)]
    if not shared:
        return Finding(
            "little.no-blocks",
            "warning",
            rates.place,
            "no block holds both IOPS and latency of both variants",
            "keep total latency in the results",
        )
    columns = [
        units.d[np.isin(units.numbers, list(shared))] for units in (rates, other)
    ]
    return together(
        columns[0], columns[1], margin=rules.margin, level=1.0 - rules.alpha
    )


def _sweep(series: Sequence[Series], shared: set[int], *, old: bool) -> Floats:
    """Values of one variant, shape (blocks, depths), blocks in rising order."""
    columns = []
    for arms in series:
        values = dict(
            zip(
                arms.blocks,
                arms.baseline_values if old else arms.variant_values,
                strict=True,
            )
        )
        columns.append([values[block] for block in sorted(shared)])
    return np.array(columns, dtype=float).T
