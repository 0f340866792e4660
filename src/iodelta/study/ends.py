"""What the rounds of both ends show beyond typical runs: stalls, and the total change, by the rules of ``iodelta run``.

A search compares typical runs, so an end that is bad only now and then looks good to it. Therefore these rounds are
judged before a search reports that its ends do not differ.
"""

from __future__ import annotations

import math
import operator

import msgspec

from iodelta.bisect.model import Run
from iodelta.bisect.question import Question
from iodelta.bisect.rises import STALLS
from iodelta.bisect.search import Search
from iodelta.plural import plural
from iodelta.stats.stalls import excluded, stalled_trials, trials_needed
from iodelta.study.words import interval, measured
from iodelta.verdict import Metric, Rules, Series, judge_series
from iodelta.verdict.model import Change


class Ends(msgspec.Struct, frozen=True):
    """Both ends in rounds of one run each, in an order drawn for every round."""

    rounds: int
    good_stalled: int
    """Runs of the good end that stalled."""
    bad_stalled: int
    """Runs of the bad end that stalled."""
    not_excluded: float
    """The share of stalls that the runs of the bad end do not exclude."""
    total: Change | None
    """The change of all work done, from good to bad."""
    worse: bool
    """Whether the total is shown to be worse."""

    @property
    def open(self) -> bool:
        """Return whether bad may still be worse in a way that typical runs do not show."""
        return self.worse or self.not_excluded > STALLS + 1e-9


def ends_of(search: Search, question: Question) -> Ends | None:
    """Judge the rounds; None without one, and where a measure repeats exactly."""
    rounds = search.rounds
    if not rounds or search.rules.exact:
        return None
    good, bad = (len(stalled_trials(values)) for values in _values(rounds))
    rules = Rules(
        metrics=(Metric(question.metric, question.better, question.unit),),
        margin=math.expm1(question.rules.margin),
        alpha=question.rules.alpha,
        reserve=0.0,
        looks=(len(rounds),),
        comparisons=1,
    )
    verdict = judge_series([_series(rounds, rules.metrics[0])], rules).verdicts[0]
    bound = excluded(bad, len(rounds))
    return Ends(
        rounds=len(rounds),
        good_stalled=good,
        bad_stalled=bad,
        not_excluded=bound,
        total=verdict.total,
        worse=verdict.word == "regression",
    )


def _values(
    rounds: list[tuple[Run, Run]], sign: float = 1.0
) -> tuple[list[float], list[float]]:
    """Return what the runs of the good end measured, and those of the bad one; logarithms, times ``sign``."""
    good, bad = zip(*rounds, strict=True)
    return [sign * run.value for run in good], [sign * run.value for run in bad]


def _series(rounds: list[tuple[Run, Run]], metric: Metric) -> Series:
    sign = -1.0 if metric.better == "higher" else 1.0
    good, bad = (tuple(map(math.exp, values)) for values in _values(rounds, sign))
    good_at = tuple(run.time for run, _ in rounds)
    bad_at = tuple(run.time for _, run in rounds)
    first = tuple(map(operator.lt, good_at, bad_at))
    blocks = tuple(range(len(rounds)))
    return Series(
        cell="ends",
        metric=metric,
        baseline="good",
        variant="bad",
        blocks=blocks,
        baseline_values=good,
        variant_values=bad,
        baseline_first=first,
        baseline_at=good_at,
        variant_at=bad_at,
    )


def beyond_typical(ends: Ends) -> str:
    """Return what the rounds show beyond typical runs, and how to search for it, in sentences."""
    sentences = []
    if ends.bad_stalled or ends.good_stalled:
        sentences.append(
            f"{ends.bad_stalled} of {plural(ends.rounds, 'run')} of bad stalled, and {ends.good_stalled} of good's"
        )
    total = ends.total
    if ends.worse and total is not None:
        size = measured(total.value, total.low, total.high)
        sentences.append(
            f"in total bad is worse: {size} ({interval(total.low, total.high)})"
        )
    if ends.not_excluded < 1.0:
        sentences.append(
            f"stalls in up to {100 * ends.not_excluded:.0f} % of the runs of bad are not excluded"
        )
    if ends.open or ends.bad_stalled > ends.good_stalled:
        share = max(STALLS, ends.bad_stalled / ends.rounds)
        sentences.append(
            f"to follow the total, a search needs several runs per visit: `--repeat {trials_needed(share)}`"
        )
    return "; ".join(sentences)
