"""Judge: series and rules to verdicts, one by one and over a whole experiment.

The four words, from the interval [L, U] of theta (log-ratio, positive = worse) at the look's level, margin d:

| interval                    | word         | phrase                                                             |
|-----------------------------|--------------|--------------------------------------------------------------------|
| L > -d and U < d (first)    | equivalent   | within the margin; "real but below the margin" if it excludes 0    |
| L > 0                       | regression   | regressed; "by at least the margin" if L > d                       |
| U < 0                       | improvement  | improved; "by at least the margin" if U < -d                       |
| otherwise                   | inconclusive | "not regressed" if U < d, "not improved" if L > -d, blocks needed  |

The intervals of regression and improvement mirror each other. The words need not: ``carried.SHOWN_WITHOUT`` requires
more of an improvement than of a regression. A comparison keeps the word of the look that decided it; later blocks, run
for other metrics of the cell, do not change it.

``Rules`` describes the correction for a family. Under ``screen``, stage 1 only chooses: a comparison goes on in the
direction it leans to, and a change is claimed from fresh blocks alone, in that direction, at alpha over the number of
claims kept. A comparison that it dropped can still be found equivalent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
from iodelta.stats.guards import balance
from iodelta.stats.sequential import Schedule
from iodelta.trial import Finding, Trial
from iodelta.verdict.account import accounts
from iodelta.verdict.decide import Claim, replay
from iodelta.verdict.family import (
    Job,
    jobs_of,
    plan_of,
    questions_of,
    resolve,
)
from iodelta.verdict.metrics import SYNC
from iodelta.verdict.model import FamilySummary, Judgement, Look, Step, Verdict
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Series, blocks_of, finished_of, series_from
from iodelta.verdict.series_units import units_of
from iodelta.verdict.stalled import with_others
from iodelta.verdict.surroundings import surroundings_of

KINDS = ("read", "write", "trim", SYNC)

ONE_SIDED = 0.01
"""Level at which too uneven a split of regressions and improvements becomes a finding."""


def judge(series: Series, rules: Rules, look: Look | None = None) -> Verdict:
    """Return the verdict of one series, without regard to others: at ``look`` when given, as if that were the only
    one, else at the one its looks so far lead to (the deciding one, or the latest)."""
    unit = units_of(series, rules)
    plan = plan_of(rules, ())
    if look is not None:
        unit = unit.part(0, look.blocks)
        plan = Schedule((look.blocks,), (min(1.0, look.alpha / rules.alpha),))
    return _verdicts([Job(unit, Claim(plan, rules.alpha / 2))], rules)[0]


def judge_series(
    series: Sequence[Series], rules: Rules, *, ended: Sequence[int] = ()
) -> Judgement:
    """As ``judge_all``, from series already drawn."""
    at = _trials_at(series)
    units = with_others(
        [units_of(pairs, rules, ended, trials_at=at[pairs.variant]) for pairs in series]
    )
    jobs, kept = jobs_of(units, rules, ended)
    verdicts = _verdicts(jobs, rules)
    worse = sum(verdict.word == "regression" for verdict in verdicts)
    better = sum(verdict.word == "improvement" for verdict in verdicts)
    p = balance(worse, better) if worse + better else None
    summary = FamilySummary(
        rules.family,
        max(rules.comparisons, questions_of(units)),
        kept,
        worse,
        better,
        p,
    )
    return Judgement(
        rules,
        tuple(verdicts),
        summary,
        _one_sided(summary),
    )


def judge_all(
    trials: Iterable[Trial],
    rules: Rules,
    *,
    baseline: str,
    variants: Sequence[str] | None = None,
    ended: Sequence[int] = (),
    boots: Mapping[int, str] | None = None,
    hosts: Mapping[int, str] | None = None,
) -> Judgement:
    """Return the judgement of an experiment from its trials and rules alone: every look is replayed, so a folder
    judged again gives the same words, whether during the run, after it or elsewhere.

    ``variants`` are those compared with ``baseline`` (default: all others seen; naming them makes a missing one a
    finding). ``ended`` are the numbers of the trials after which a run stopped for lack of budget (not because of
    what was seen): there a last, unplanned look spends what alpha is left. ``boots`` and ``hosts`` map trial
    numbers to boot and host ids. Untrustworthy input becomes findings; no exception, no verdict.
    """
    # Cells x variants x metrics, in first-seen order; metrics of a direction that a cell does not do are left
    # out.
    cells: dict[str, list[Trial]] = {}
    seen: dict[str, None] = {}
    for trial in trials:
        cells.setdefault(trial.cell, []).append(trial)
        seen[trial.variant] = None
    compared = [
        name for name in (seen if variants is None else variants) if name != baseline
    ]
    every_series = []
    around = surroundings_of(chain.from_iterable(cells.values()), hosts)
    for cell, cell_trials in cells.items():
        blocks = blocks_of(cell_trials)
        finished = finished_of(blocks)
        # The metrics of what the trials of a cell do.
        directions = chain.from_iterable(trial.directions for trial in cell_trials)
        kinds: set[str] = {direction.kind for direction in directions}
        if any(trial.sync is not None for trial in cell_trials):
            kinds.add(SYNC)
        for metric, name in product(
            (
                [
                    metric
                    for metric in rules.metrics
                    if metric.kind not in KINDS or metric.kind in kinds
                ]
            ),
            compared,
        ):
            pairs = series_from(
                blocks,
                metric,
                baseline,
                name,
                cell=cell,
                finished=finished,
                boots=boots,
                hosts=hosts,
                around=around[cell],
            )
            every_series.append(pairs)
    return judge_series(every_series, rules, ended=ended)


def next_step(verdicts: Iterable[Verdict]) -> Step:
    """Return what to do with a cell, from all its primary verdicts: ``continue`` while one of them is open,
    ``decided`` when all are decided, ``exhausted`` when what is open can be settled by no further planned block; ``waiting`` in stage 2
    of a screen while other cells make better use of the budget (a later judgement may turn it into ``continue``)."""
    steps = {verdict.step for verdict in verdicts}
    for step in ("continue", "waiting"):
        if step in steps:
            return step
    return "exhausted" if "exhausted" in steps or not steps else "decided"


def _verdicts(jobs: Sequence[Job], rules: Rules) -> list[Verdict]:
    units, claims = [job.unit for job in jobs], [job.claim for job in jobs]
    directed = any(job.standing == "dropped" or job.offset for job in jobs)
    traces = replay(units, claims, rules, joined=not directed)
    return accounts(jobs, traces, resolve(jobs, traces, rules), rules)


def _trials_at(series: Sequence[Series]) -> dict[str, NDArray[np.float64]]:
    """Return the numbers of every variant's trials in all cells, ascending."""
    by_variant: dict[str, set[int]] = {}
    for pairs in series:
        by_variant.setdefault(pairs.variant, set()).update(pairs.variant_at)
    return {
        name: np.array(sorted(numbers), dtype=float)
        for name, numbers in by_variant.items()
    }


def _one_sided(summary: FamilySummary) -> tuple[Finding, ...]:
    if summary.balance_p is None or summary.balance_p >= ONE_SIDED:
        return ()
    return (
        Finding(
            "verdict.one-sided",
            "note",
            "all comparisons",
            f"{plural(summary.regressions, 'regression')} against {plural(summary.improvements, 'improvement')} "
            f"(p {summary.balance_p:.2g}): right for a change that acts everywhere, suspicious where none was made",
            "run the baseline against itself (an A/A placebo) in the same order",
        ),
    )
