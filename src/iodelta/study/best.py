"""The values of a cell that may be marked as the best, or as tied with it: no more than the trials show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from iodelta.experiment.model import PLACEBO
from iodelta.grouping import grouped
from iodelta.lab.plan import Plan
from iodelta.trial import Trial
from iodelta.verdict import Judgement, Verdict
from iodelta.verdict.ranking import rank, sequential_level
from iodelta.verdict.series import blocks_of, finished_of, series_from


class Best(msgspec.Struct, frozen=True):
    """The variants of a cell that are best by one metric, or tied with the best."""

    cell: str
    metric: str
    variants: tuple[str, ...]


def best(plan: Plan, judgement: Judgement, trials: Sequence[Trial]) -> tuple[Best, ...]:
    """Return the marks of every cell and metric that has some.

    Of two variants the verdict's word decides. Of several, every variant is marked that no other is shown to beat, if
    at least one is beaten. The intervals hold for all pairs, cells and metrics at once. A cell with an order trend or a
    hard finding has no mark.
    """
    verdicts = [verdict for verdict in judgement.verdicts if verdict.variant != PLACEBO]
    groups = grouped(verdicts, lambda verdict: (verdict.cell, verdict.metric.name))
    by_cell = grouped(trials, lambda trial: trial.cell)
    level = 1.0 - (1.0 - sequential_level(plan.rules)) / max(1, len(groups))
    marks = []
    for (cell, metric), of_cell in groups.items():
        if any(map(_doubtful, of_cell)):
            continue
        if len(of_cell) == 1:
            names = _of_two(of_cell[0])
        else:
            names = _of_several(of_cell, by_cell, plan, level)
        marks.append(Best(cell, metric, names))
    return tuple(mark for mark in marks if mark.variants)


def _doubtful(verdict: Verdict) -> bool:
    return any(
        finding.severity == "hard" or finding.rule.startswith("verdict.order-trend")
        for finding in verdict.findings
    )


def _of_two(verdict: Verdict) -> tuple[str, ...]:
    return {
        "regression": (verdict.baseline,),
        "improvement": (verdict.variant,),
        "equivalent": (verdict.baseline, verdict.variant),
        "inconclusive": (),
    }[verdict.word]


def _of_several(
    verdicts: Sequence[Verdict],
    trials: Mapping[str, Sequence[Trial]],
    plan: Plan,
    level: float,
) -> tuple[str, ...]:
    first = verdicts[0]
    words = {verdict.word for verdict in verdicts}
    if words == {"equivalent"}:
        return (first.baseline, *(verdict.variant for verdict in verdicts))
    if words.isdisjoint(("regression", "improvement")):
        return ()
    blocks = blocks_of(trials.get(first.cell, ()))
    finished = finished_of(blocks)
    series = [
        series_from(
            blocks,
            first.metric,
            first.baseline,
            verdict.variant,
            cell=first.cell,
            finished=finished,
        )
        for verdict in verdicts
    ]
    ranking = rank(series, plan.rules, level=level)
    if len(ranking.best) < len(ranking.variants):
        return ranking.best
    return ()
