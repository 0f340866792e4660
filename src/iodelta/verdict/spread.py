"""Spread verdicts: whether a variant made results more erratic, apart from what it did to their level.

Judged once, when an experiment has ended: the looks spend alpha for the level only, and a spread tested at ten looks
would alarm more often than its alpha. Within-run jitter is a metric like any other and needs far fewer blocks.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from iodelta.stats.spread import Spread, blocks_needed, spread_change
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric
from iodelta.verdict.model import Word
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Series
from iodelta.verdict.series_units import units_of

MARGIN = 0.5
"""Half as wide again: a smaller change of spread takes hundreds of blocks to show."""

MIN_BLOCKS = 8


class SpreadVerdict(msgspec.Struct, frozen=True):
    """What one comparison says about run-to-run spread; ``word`` regression means more erratic.

    ``ratio`` is the variant's sd over the baseline's, of the metric's logarithm without level and drift, with its
    interval at ``level``; ``p_swap`` is the label-swap permutation p, which decides, ``p`` that of Brown-Forsythe.
    ``needed`` are the blocks at which a change by the margin would be seen with 80 % probability. None: unknown.
    """

    cell: str
    metric: Metric
    baseline: str
    variant: str
    word: Word
    phrase: str
    blocks: int
    ratio: float | None = None
    """The variant's standard deviation over the baseline's; None: unknown."""
    low: float | None = None
    high: float | None = None
    level: float | None = None
    p: float | None = None
    p_swap: float | None = None
    """Label-swap permutation p, which decides; None: unknown."""
    baseline_sd: float | None = None
    variant_sd: float | None = None
    needed: int | None = None
    margin: float = MARGIN
    findings: tuple[Finding, ...] = ()


def judge_spread(series: Series, rules: Rules) -> SpreadVerdict:
    """Return whether the spread of a series changed, from all its blocks at once, at ``rules.alpha``; exploratory, no
    part of the error rate of verdicts.

    Statistic: Brown-Forsythe (1974), deviations from the median, with a p value by swapping labels (``stats.spread``).
    Too few blocks, constant values or trials without I/O are findings of the result.
    """
    units = units_of(series, rules)
    refusal = units.refusal
    if refusal is None and len(units.d) < MIN_BLOCKS:
        refusal = Finding(
            "spread.few-blocks",
            "note",
            units.place,
            f"{len(units.d)} {units.unit} are too few to judge the spread; {MIN_BLOCKS} are the minimum, 40 are usual",
            "run more blocks, or judge the within-run jitter, which needs no more blocks than the level",
        )
    arms = units.baseline_values, units.variant_values
    if refusal is None and not all(
        (np.isfinite(arm) & (arm > 0)).all() for arm in arms
    ):
        refusal = Finding(
            "spread.nothing-done",
            "warning",
            units.place,
            "a trial did no I/O: the spread of the others would leave out the worst of all",
            "look at that trial separately",
        )
    logs = (np.log(arms[0]), np.log(arms[1])) if refusal is None else None
    if logs is not None and min(float(np.ptp(arm)) for arm in logs) <= 1e-12:
        refusal = Finding(
            "spread.constant",
            "hard",
            units.place,
            "one variant has no spread at all, which real measurements do not show",
            "check for a rate limit, and for rounded or copied results",
        )
    if logs is None or refusal is not None:
        return SpreadVerdict(
            series.cell,
            series.metric,
            series.baseline,
            series.variant,
            "inconclusive",
            "the spread could not be judged",
            len(units.d),
            findings=(*units.findings, *([refusal] if refusal else [])),
        )
    spread = spread_change(*logs, level=1.0 - rules.alpha, seed=rules.seed)
    word = _word(spread, rules.alpha)
    needed = blocks_needed(spread, 1.0 + MARGIN)
    return SpreadVerdict(
        series.cell,
        series.metric,
        series.baseline,
        series.variant,
        word,
        _phrase(word, spread, needed, units.unit),
        len(units.d),
        ratio=math.exp(spread.log_ratio),
        low=math.exp(spread.low),
        high=math.exp(spread.high),
        level=spread.level,
        p=spread.p,
        p_swap=spread.p_swap,
        baseline_sd=spread.baseline_sd,
        variant_sd=spread.variant_sd,
        needed=needed,
        findings=units.findings,
    )


def _word(spread: Spread, alpha: float) -> Word:
    """As for the level: inside the margin first, then a change that both the interval and the permutation show."""
    limit = math.log1p(MARGIN)
    if -limit < spread.low and spread.high < limit:
        return "equivalent"
    if spread.p_swap <= alpha and spread.low > 0:
        return "regression"
    if spread.p_swap <= alpha and spread.high < 0:
        return "improvement"
    return "inconclusive"


def _phrase(word: Word, spread: Spread, needed: int, unit: str) -> str:
    times = math.exp(spread.log_ratio)
    bounds = f"{math.exp(spread.low):.2f} to {math.exp(spread.high):.2f}"
    if word == "regression":
        return f"results are {times:.2f} times as spread ({bounds}): more erratic, regardless of their level"
    if word == "improvement":
        return f"results are {times:.2f} times as spread ({bounds}): steadier, regardless of their level"
    if word == "equivalent":
        return f"the spread is the same within a factor of {1 + MARGIN:g} ({bounds})"
    return (
        f"the spread changed by a factor of {bounds}: "
        f"{1 + MARGIN:g} takes about {needed} {unit} to see, {spread.blocks} were run"
    )
