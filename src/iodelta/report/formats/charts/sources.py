"""From an account or a comparison to what charts are drawn from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from iodelta.ingest import Run
from iodelta.ingest.layouts import Entry, Layout
from iodelta.ingest.layouts.order import ended
from iodelta.plural import plural
from iodelta.report.formats.charts.model import Effect, Source, ends_of
from iodelta.report.stories.comparison import name_of, says_of
from iodelta.report.stories.evidence import apart
from iodelta.study.cell import Compared
from iodelta.study.comparison import Comparison, with_syncs
from iodelta.study.experiment import Account
from iodelta.study.sides import shared_cells, short_names, sides_of
from iodelta.study.timelines import timelines
from iodelta.study.values import of_entries, of_trials
from iodelta.study.views import SWEEP, sweeps
from iodelta.study.words import metric_name
from iodelta.trial import Trial
from iodelta.verdict import Metric, Verdict
from iodelta.verdict.metrics import Better


def of_account(
    account: Account,
    trials: Sequence[Trial],
    environment: Mapping[str, Any],
    sessions: Sequence[float] = (),
) -> Source:
    """Return an experiment: ``trials`` are those that count, ``environment`` is the recorded one, ``sessions`` are the
    Unix seconds at which each of its sessions began."""
    experiment = account.plan.experiment
    verdicts = account.judgement.verdicts
    several = len({verdict.metric.kind for verdict in verdicts}) > 1
    variants = [variant.name for variant in experiment.variants]
    names = tuple(dict.fromkeys((experiment.baseline, *variants)))
    loaded = {
        condition.name
        for condition in experiment.conditions
        if condition.background or condition.background_fio
    }
    return Source(
        baseline=experiment.baseline,
        variants=names,
        cells=tuple(cell.name for cell in experiment.cells),
        margin=experiment.margin,
        metrics=account.plan.rules.metrics,
        effects=tuple(_effect(verdict, several) for verdict in verdicts),
        trials=tuple(sorted(trials, key=lambda trial: trial.number)),
        knees=account.views.knees,
        shifts=account.views.shifts,
        sweeps=tuple(sweeps(experiment)),
        sessions=tuple(sessions),
        backgrounds={
            cell.name: cell.condition
            for cell in experiment.cells
            if cell.condition in loaded
        },
        values=of_trials(experiment, trials, names) if trials else None,
        prepared=account.prepared,
    )


def _effect(verdict: Verdict, several: bool) -> Effect:
    value, low, high = ends_of(verdict.change)
    return Effect(
        cell=verdict.cell,
        variant=verdict.variant,
        metric=verdict.metric,
        name=metric_name(verdict.metric, with_kind=several),
        values=(verdict.baseline_value, verdict.variant_value),
        change=value,
        low=low,
        high=high,
        word=verdict.word,
        says=verdict.phrase,
        counted=plural(verdict.blocks, "block"),
        apart=apart(verdict),
    )


def of_comparison(
    comparison: Comparison,
    layouts: Sequence[Layout],
    paths: Sequence[str],
    baseline: str | None,
) -> Source:
    """Results from anywhere: runs stand in for trials, in the order of their time stamps where all have one."""
    base, *others = sides_of(layouts, paths, baseline)
    measured: list[Measured] = []
    depths: dict[tuple[object, ...], dict[str, int]] = {}
    placed: set[tuple[str, str]] = set()
    for other in others:
        for work, sides in shared_cells(base, other)[0].items():
            of_both = list(chain.from_iterable(sides))
            cell = with_syncs(work, [entry.run for entry in of_both])
            for name, entries in zip((base.name, other.name), sides, strict=True):
                if (cell, name) not in placed:
                    placed.add((cell, name))
                    measured += [(cell, name, entry) for entry in entries]
            _note_depth(depths, cell, of_both)
    trials = _trials(measured)
    logs = _logs(layouts, paths, [side.name for side in (base, *others)])
    bare = verdicts_of(comparison)
    times = {trial.started for trial in trials}
    # 0 stands for an unknown time; two trials of one time have no order.
    ordered = bool(trials) and 0.0 not in times and len(times) == len(trials)
    if ordered:
        trials.sort(key=lambda trial: trial.started)
    return msgspec.structs.replace(
        bare,
        trials=tuple(trial for trial in trials if trial.cell in bare.cells),
        ordered=ordered,
        sweeps=tuple(
            sweep for sweep in depths.values() if len(set(sweep.values())) >= SWEEP
        ),
        values=of_entries(measured),
        timelines=timelines(logs),
    )


def _logs(
    layouts: Sequence[Layout], paths: Sequence[str], sides: Sequence[str]
) -> dict[str, tuple[Run, ...]]:
    """fio's logs by side, the baseline's first; of one path all together."""
    if len(layouts) == 1:
        return {"": layouts[0].logs}
    logs = {
        name: layout.logs
        for name, layout in zip(short_names(paths), layouts, strict=True)
    }
    return {name: logs[name] for name in sides}


def of_layout(layout: Layout) -> Source:
    """Foreign results of which nothing is compared."""
    variants = {entry.variant for entry in layout.entries}
    nameless = "other runs" if "runs" in variants else "runs"
    entries: list[Measured] = []
    for entry in layout.entries:
        parts = (with_syncs(entry.cell, [entry.run]), entry.condition)
        cell = ", ".join(filter(None, parts))
        entries.append((cell, entry.variant or nameless, entry))
    values = of_entries(entries)
    return Source(
        baseline=values.variants[0] if values.variants else "",
        variants=values.variants,
        cells=tuple(place.cell for place in values.places),
        margin=0.01,
        trials=tuple(_trials(entries)),
        ordered=False,
        values=values,
        timelines=timelines({"": layout.logs}),
    )


def verdicts_of(comparison: Comparison) -> Source:
    """Return what a comparison says, without the runs it says it of."""
    effects = tuple(_compared(comparison))
    return Source(
        baseline=comparison.baseline,
        variants=(comparison.baseline, *comparison.variants),
        cells=tuple(dict.fromkeys(row.cell for row in comparison.compared)),
        margin=comparison.margin,
        metrics=tuple(dict.fromkeys(effect.metric for effect in effects)),
        effects=effects,
    )


def _compared(comparison: Comparison) -> Iterable[Effect]:
    for variant in comparison.variants:
        rows = [row for row in comparison.compared if row.variant == variant]
        several = len({row.metric.partition(".")[0] for row in rows}) > 1
        for row in rows:
            yield _effect_of(row, name_of(row, several))


def _effect_of(row: Compared, name: str) -> Effect:
    value = low = high = resolution = None
    if row.change:
        value, low, high = row.change.value, row.change.low, row.change.high
        if row.basis == "single runs":
            # What the digits of single runs leave open is not an interval.
            resolution = _finite((high - low) / 2)
            low = high = None
    counted = f"{row.runs[0]} and {plural(row.runs[1], 'run')}"
    if row.runs == (1, 1):
        counted = "one run each"
    better: Better = "higher" if row.better == "higher" else "lower"
    return Effect(
        cell=row.cell,
        variant=row.variant,
        metric=Metric(row.metric, better, row.unit),
        name=name,
        values=row.values,
        change=value,
        low=_finite(low),
        high=_finite(high),
        word=row.word,
        says=says_of(row),
        counted=counted,
        resolution=resolution,
    )


def _finite(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return value


Measured = tuple[str, str, Entry]
"""Cell, variant, and a run of them."""


def _trials(measured: Iterable[Measured]) -> list[Trial]:
    """Runs as trials; those of one cell and variant are its blocks, in their order."""
    blocks: Counter[tuple[str, str]] = Counter()
    trials = []
    for cell, variant, entry in measured:
        trials.append(_trial(entry, cell, variant, blocks[cell, variant]))
        blocks[cell, variant] += 1
    return trials


def _trial(entry: Entry, cell: str, variant: str, block: int) -> Trial:
    run = entry.run
    return Trial(
        number=0,
        cell=cell,
        variant=variant,
        block=block,
        position=0,
        seed=0,
        started=ended(run) or 0.0,
        seconds=run.elapsed or 0.0,
        directions=run.directions,
        sync=run.sync,
        series=run.series,
    )


def _work(entry: Entry) -> tuple[object, ...]:
    """Return what a run does, and last its I/Os in flight."""
    work = entry.run.workload
    in_flight = (work.iodepth or 0) * (entry.run.jobs or work.numjobs or 1)
    return work.rw, work.bs, entry.condition, work.numjobs, in_flight


def _note_depth(
    depths: dict[tuple[object, ...], dict[str, int]],
    cell: str,
    entries: Sequence[Entry],
) -> None:
    """Cells of the same work at several depths make a sweep."""
    works = set(map(_work, entries))
    if len(works) == 1:
        (*work, depth) = works.pop()
        if isinstance(depth, int) and depth:
            depths.setdefault(tuple(work), {})[cell] = depth
