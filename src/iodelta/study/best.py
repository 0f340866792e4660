"""Which values of a cell may be marked as the best, or tied with it: never more than the trials show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from iodelta.experiment.model import PLACEBO
from iodelta.lab.plan import Plan
from iodelta.trial import Trial
from iodelta.verdict import Judgement, Verdict
from iodelta.verdict.ranking import rank, sequential_level
from iodelta.verdict.series import blocks_of, finished_of, series_from


class Best(msgspec.Struct, frozen=True):
    """The variants of a cell that are best by one metric, or tied with the best. None if indistinguishable."""

    cell: str
    metric: str
    variants: tuple[str, ...]


def best(plan: Plan, judgement: Judgement, trials: Sequence[Trial]) -> tuple[Best, ...]:
    """The marks of every cell and metric that has some.

    Of two variants the verdict's word decides. Of several, all that no other is shown to beat, once one is beaten, by
    intervals that hold for all pairs, cells and metrics at once. An order trend or a hard finding leaves no mark.
    """
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in judgement.verdicts:
        if verdict.variant != PLACEBO:
            groups.setdefault((verdict.cell, verdict.metric.name), []).append(verdict)
    by_cell: dict[str, list[Trial]] = {}
    for trial in trials:
        by_cell.setdefault(trial.cell, []).append(trial)
    level = 1.0 - (1.0 - sequential_level(plan.rules)) / max(1, len(groups))
    ranked = []
    for (cell, metric), own in groups.items():
        if any(map(_doubtful, own)):
            continue
        names = (
            _of_two(own[0]) if len(own) == 1 else _of_several(own, by_cell, plan, level)
        )
        if names:
            ranked.append(Best(cell, metric, names))
    return tuple(ranked)


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
    own: Sequence[Verdict],
    trials: Mapping[str, Sequence[Trial]],
    plan: Plan,
    level: float,
) -> tuple[str, ...]:
    head = own[0]
    if all(verdict.word == "equivalent" for verdict in own):
        return (head.baseline, *(verdict.variant for verdict in own))
    if not any(verdict.word in ("regression", "improvement") for verdict in own):
        return ()
    blocks = blocks_of(trials.get(head.cell, ()))
    finished = finished_of(blocks)
    series = [
        series_from(
            blocks,
            head.metric,
            head.baseline,
            verdict.variant,
            cell=head.cell,
            finished=finished,
        )
        for verdict in own
    ]
    ranking = rank(series, plan.rules, level=level)
    if len(ranking.best) < len(ranking.variants):
        return ranking.best
    return ()
