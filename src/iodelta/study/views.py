"""What the trials show beyond the primary verdicts: spread, recommendation, knee, cost per I/O.

None of it changes a verdict or an exit code. It is computed from the trials that count, with the plan's seed, so a
folder always gives the same result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from statistics import median, quantiles

import msgspec

from iodelta.experiment import Experiment
from iodelta.experiment.model import PLACEBO
from iodelta.grouping import grouped
from iodelta.lab.plan import Plan
from iodelta.stats.cost import is_resolved, switches_per_io, system_ns_per_io
from iodelta.stats.shift import ShiftFunction
from iodelta.trial import Finding, Trial
from iodelta.verdict import Judgement, Metric, Series, Verdict, series_of
from iodelta.verdict.derived import (
    KneeMove,
    SpreadVerdict,
    judge_spread,
    knee_move,
    latency_shift,
)
from iodelta.verdict.recommend import Recommendation, recommend

SHIFTS = 24
"""Maximum number of shift functions, because each resamples blocks."""

SWEEP = 4
"""Minimum number of depths in a sweep."""


class Cost(msgspec.Struct, frozen=True):
    """Kernel CPU time (ns) and context switches per I/O of a cell's variant, medians over trials; None: unknown, or
    shorter than what the kernel counts in."""

    cell: str
    variant: str
    system_ns: float | None
    switches: float | None
    system_quartiles: tuple[float, float] | None = None
    """Between which the middle half of the trials' kernel times lies, ns; None for fewer than four trials."""


class Views(msgspec.Struct, frozen=True):
    """All of it."""

    spread: tuple[SpreadVerdict, ...]
    """Verdicts on run-to-run spread."""
    recommendation: Recommendation | None
    """Which variant to choose; None where there is nothing to choose from."""
    knees: tuple[KneeMove, ...]
    """How the knees of depth sweeps moved; empty without a sweep."""
    costs: tuple[Cost, ...]
    """CPU time and context switches per I/O, by cell and variant."""
    shifts: tuple[tuple[str, str, ShiftFunction], ...] = ()
    """Cell, variant, and how far each percentile of latency moved; of the first ``SHIFTS`` comparisons."""


def views(plan: Plan, judgement: Judgement, trials: Sequence[Trial]) -> Views:
    """Return every view of the ``trials`` that count (complete blocks of usable trials)."""
    experiment = plan.experiment
    baseline = experiment.baseline
    metrics = plan.rules.metrics
    rates = [
        metric for metric in metrics if metric.name.endswith((".iops", ".bandwidth"))
    ]
    by_cell = grouped(trials, lambda trial: trial.cell)
    names = [variant.name for variant in experiment.variants]
    others = [name for name in names if name != baseline]
    series = {
        (cell, metric.name, other): series_of(of_cell, metric, baseline, other)
        for (cell, of_cell), metric, other in product(by_cell.items(), metrics, others)
    }
    of_rates = [pairs for pairs in series.values() if pairs.metric in rates]
    rated = filter(_measured, of_rates)
    shown = list(by_cell.items())[: SHIFTS // max(1, len(others))]
    costs = [
        _cost(cell, name, of_cell)
        for (cell, of_cell), name in product(by_cell.items(), (baseline, *others))
    ]
    return Views(
        spread=tuple(judge_spread(pairs, plan.rules) for pairs in rated),
        recommendation=_recommendation(plan, judgement, series, rates, others),
        knees=tuple(_knee_moves(plan, trials, rates, others)),
        shifts=tuple(_shifts(shown, plan, others)),
        costs=tuple(costs),
    )


def _knee_moves(
    plan: Plan, trials: Sequence[Trial], rates: Sequence[Metric], others: Sequence[str]
) -> Iterator[KneeMove]:
    """Yield how the knee of each sweep moved under each variant; the placebo has no knee of its own."""
    baseline, seed = plan.experiment.baseline, plan.rules.seed
    ranked = [name for name in others if name != PLACEBO]
    for depths in sweeps(plan.experiment):
        swept = [trial for trial in trials if trial.cell in depths]
        for rate, other in product(rates, ranked):
            yield knee_move(swept, depths, rate, baseline, other, seed=seed)


def _shifts(
    shown: Iterable[tuple[str, Sequence[Trial]]], plan: Plan, others: Sequence[str]
) -> Iterator[tuple[str, str, ShiftFunction]]:
    """Yield how far each percentile of latency moved."""
    baseline = plan.experiment.baseline
    for cell, own in shown:
        kinds = dict.fromkeys(direction.kind for direction in own[0].directions)
        for kind, other in product(kinds, others):
            yield (
                cell,
                other,
                latency_shift(own, kind, baseline, other, plan.rules, cell=cell),
            )


def _measured(pairs: Series) -> bool:
    return any(map(math.isfinite, pairs.baseline_values))


def _recommendation(
    plan: Plan,
    judgement: Judgement,
    series: Mapping[tuple[str, str, str], Series],
    rates: Sequence[Metric],
    others: Sequence[str],
) -> Recommendation | None:
    """By the rate, where there is something to choose: several cells or more than two variants."""
    ranked = [name for name in others if name != PLACEBO]
    cells = {cell: None for cell, _, _ in series}
    groups = []
    for cell, rate in product(cells, rates):
        arms = [series[cell, rate.name, name] for name in ranked]
        group = list(filter(_measured, arms))
        if group:
            groups.append(group)
    if not groups or (len(cells) < 2 and len(ranked) < 2):
        return None
    weights = plan.experiment.design.weights
    planned = len(plan.experiment.cells)
    # An order trend anywhere, or a placebo that was called a change: then no winner is named.
    every = chain.from_iterable(verdict.findings for verdict in judgement.verdicts)
    findings = [
        finding for finding in every if finding.rule.startswith("verdict.order-trend")
    ]
    remedy = "find what differs between equal trials"
    for verdict in changed_placebos(judgement):
        what = f"the placebo, the baseline under another name, was called {verdict.word} in {verdict.cell}"
        findings.append(Finding("report.placebo", "hard", verdict.cell, what, remedy))
    return recommend(
        groups,
        plan.rules,
        weights=weights,
        forbidden=findings,
        planned=planned,
    )


def changed_placebos(judgement: Judgement) -> list[Verdict]:
    """Return the verdicts that call a placebo a change, although it is the baseline under another name."""
    of_placebo = [each for each in judgement.verdicts if each.variant == PLACEBO]
    return [verdict for verdict in of_placebo if is_change(verdict)]


def is_change(verdict: Verdict) -> bool:
    """Return whether the word is that of a change."""
    return verdict.word in ("regression", "improvement")


def sweeps(experiment: Experiment) -> list[dict[str, int]]:
    """Depth sweeps among the cells: cells that differ in iodepth alone, with their I/Os in flight."""
    groups: dict[tuple[object, ...], dict[str, int]] = {}
    for cell in experiment.cells:
        depth, jobs = cell.option("iodepth") or "1", cell.option("numjobs") or "1"
        if depth.isdigit() and jobs.isdigit():
            in_flight = int(depth) * int(jobs)
        else:
            in_flight = None
        rest = [option for option in cell.options if option[0] != "iodepth"]
        if in_flight is not None:
            group = groups.setdefault((cell.condition, tuple(rest)), {})
            group[cell.name] = in_flight
    return [depths for depths in groups.values() if len(set(depths.values())) >= SWEEP]


def _cost(cell: str, variant: str, trials: Sequence[Trial]) -> Cost:
    own = [trial for trial in trials if trial.variant == variant]
    times = list(filter(math.isfinite, map(system_ns_per_io, own)))
    switches = list(filter(math.isfinite, map(switches_per_io, own)))
    resolved = is_resolved(times)
    cuts = quantiles(times, method="inclusive") if len(times) >= 4 else ()
    return Cost(
        cell=cell,
        variant=variant,
        system_ns=median(times) if resolved else None,
        switches=median(switches) if switches else None,
        system_quartiles=(cuts[0], cuts[2]) if cuts and resolved else None,
    )
