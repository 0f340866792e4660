"""Views beside the verdicts, none of which changes a word: how each percentile of latency moved, where a depth sweep
saturates, and whether results became more erratic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.replay import EXACT_COINS, patterns
from iodelta.stats.shift import ShiftFunction, shift_function
from iodelta.stats.special import ndtri
from iodelta.stats.tails import MIN_BLOCKS, expanded_interval, resampling_weights
from iodelta.stats.total import Arms, bounds, log_total
from iodelta.trial import Finding, Histogram, Kind, Latency, Trial
from iodelta.verdict.metrics import Metric
from iodelta.verdict.model import Change, Word, relative
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Series, blocks_of, series_of
from iodelta.verdict.series_units import units_of

Floats = NDArray[np.float64]

STEPS = 48
"""Candidate knees per doubling of depth: 1.5 % apart."""

SHARPNESS = np.array([1.0, 1.4, 2.0, 3.0, 5.0, 12.0])
"""How abruptly IOPS stop growing: 1 is a single server with random arrivals, 12 a corner."""

WIDER = 0.5
"""Half as wide again: a smaller change of spread takes hundreds of blocks to show."""

FEWEST = 8
"""Blocks below which no spread is judged."""

WINDOW = 9
"""Blocks of the running mean: a shorter one would remove spread itself, a longer one would leave drift."""

POWER = 0.8
"""Probability with which a spread of ``WIDER`` is seen in the blocks that are said to be needed."""


class Knee(msgspec.Struct, frozen=True):
    """Where IOPS stop following the I/Os in flight, with its interval."""

    depth: float
    low: float
    high: float


class KneeMove(msgspec.Struct, frozen=True):
    """The knees of a depth sweep under two variants, and how far the knee moved. None: the sweep shows none, because
    it has fewer than five blocks, does not rise at all, or still rises at its end."""

    metric: Metric
    baseline: str
    variant: str
    before: Knee | None
    """The baseline's."""
    after: Knee | None
    """The variant's."""
    shift: Change | None
    """How far the variant's knee lies from the baseline's."""


class SpreadVerdict(msgspec.Struct, frozen=True):
    """Whether a variant's results vary more from block to block, apart from their level; ``regression``: they do.

    ``change`` is that of the mean absolute deviation of the metric's logarithm. ``needed`` are the blocks at which half
    as much again would be seen with a probability of 80 %. None: it could not be judged.
    """

    cell: str
    metric: Metric
    baseline: str
    variant: str
    word: Word
    phrase: str
    blocks: int
    change: Change | None = None
    needed: int | None = None
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
        rows = []
        for block in blocks:
            merged = [
                _histogram(block.get(name, ()), kind, family) for name in variants
            ]
            row = [histogram for histogram in merged if histogram is not None]
            if len(row) == len(variants):
                rows.append(row)
        if rows:
            return tuple(map(list, zip(*rows, strict=True)))
    return tuple([] for _ in variants)


def _histogram(runs: Sequence[Trial], kind: Kind, family: str) -> Histogram | None:
    """Return the merged histogram of one variant's runs in one block; None when any is missing or empty."""
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
    (iodepth x jobs); only blocks in which both variants ran every depth count.

    The knee is where the two asymptotes of a closed queueing network meet (Denning and Buzen 1978): IOPS that grow
    with depth below it, a plateau above, and a corner of any sharpness between. Least squares on the logarithms; the
    intervals resample blocks, the same for both variants, so that what a block did to both cancels.
    """
    nothing = KneeMove(metric, baseline, variant, None, None, None)
    swept = [trial for trial in trials if trial.cell in depths]
    cells = sorted(depths, key=depths.__getitem__)
    series = [series_of(swept, metric, baseline, variant, cell=cell) for cell in cells]
    shared = (
        set.intersection(*(set(pairs.blocks) for pairs in series)) if series else set()
    )
    if len(shared) < MIN_BLOCKS:
        return nothing
    values = [
        [
            (old, new)
            for block, old, new in zip(
                pairs.blocks, pairs.baseline_values, pairs.variant_values, strict=True
            )
            if block in shared
        ]
        for pairs in series
    ]
    rates = np.array(values, dtype=float).transpose(2, 1, 0)  # (arms, blocks, depths)
    if not (np.isfinite(rates) & (rates > 0)).all():
        return nothing
    weights = resampling_weights(len(shared), seed) / len(shared)
    fits = [
        _bends(
            np.log([depths[cell] for cell in cells]),
            np.vstack([logs.mean(axis=0), weights @ logs]),
        )
        for logs in np.log(rates)
    ]

    def interval(drawn: Floats) -> tuple[float, float]:
        low, high = np.exp(expanded_interval(drawn, len(shared), level))
        return float(low), float(high)

    before, after = (
        None if fit is None else Knee(float(np.exp(fit[0])), *interval(fit[1:]))
        for fit in fits
    )
    shift = None
    if fits[0] is not None and fits[1] is not None:
        apart = fits[1] - fits[0]
        low, high = interval(apart[1:])
        shift = Change(relative(float(apart[0])), low - 1.0, high - 1.0, level)
    return KneeMove(metric, baseline, variant, before, after, shift)


def _bends(x: Floats, curves: Floats) -> Floats | None:
    """Return the logarithm of the knee of each row of ``curves`` (log IOPS at the log depths ``x``); None where the
    first one has none inside the sweep.

    Fitted is ``a + slope * bend`` with ``bend = log(x / knee) - log(1 + (x / knee)^q) / q``: slope 1 far below the knee,
    flat far above, and a corner that is the sharper the larger q.
    """
    count = max(int((x[-1] - x[0]) / math.log(2) * STEPS), 2) + 1
    knees = np.repeat(np.linspace(x[0], x[-1], count), len(SHARPNESS))
    sharp, away = np.tile(SHARPNESS, count)[:, None], x - knees[:, None]
    bend = away - np.logaddexp(0.0, sharp * away) / sharp
    bend -= bend.mean(axis=1, keepdims=True)
    bend /= np.sqrt((bend**2).sum(axis=1, keepdims=True))
    explained = (curves - curves.mean(axis=1, keepdims=True)) @ bend.T
    best = knees[np.argmax(explained, axis=1)]
    rises = explained[0].max() > 0 and x[0] < best[0] < x[-1]
    return np.asarray(best) if rises else None


def judge_spread(series: Series, rules: Rules) -> SpreadVerdict:
    """Return whether the spread of a series changed, from all its blocks at once, at ``rules.alpha``; no part of the
    error rate of verdicts, because looks spend alpha for the level only.

    Level and slow drift are removed first: from each arm its median, from each block the running mean of its
    neighbours. The absolute values of what is left are compared as totals are, by swapping the arms of blocks. Never by
    the F test, which calls 33-43 % of heavy-tailed A/A series a change. What cannot be judged is a finding.
    """
    units = units_of(series, rules)
    n, arms = len(units.d), np.array([units.baseline_values, units.variant_values])
    refused = units.refusal
    usable = refused is None and bool((np.isfinite(arms) & (arms > 0)).all())
    if refused is None and n < FEWEST:
        why = f"{n} {units.unit} are too few to judge the spread; {FEWEST} are the minimum, 40 are usual"
        remedy = "run more blocks, or judge the within-run jitter, which needs no more blocks than the level"
        refused = Finding("spread.few-blocks", "note", units.place, why, remedy)
    elif refused is None and not usable:
        why = "a trial did no I/O: the spread of the others would leave out the worst of all"
        remedy = "look at that trial separately"
        refused = Finding("spread.nothing-done", "warning", units.place, why, remedy)
    elif usable and min(np.ptp(np.log(arms), axis=1)) <= 1e-12:
        why = "one variant has no spread at all, which real measurements do not show"
        remedy = "check for a rate limit, and for rounded or copied results"
        refused = Finding("spread.constant", "hard", units.place, why, remedy)
    about = (series.cell, series.metric, series.baseline, series.variant)
    if refused is not None:
        findings = tuple(dict.fromkeys((*units.findings, refused)))
        phrase = "the spread could not be judged"
        return SpreadVerdict(*about, "inconclusive", phrase, n, findings=findings)
    logs = np.log(arms)
    logs -= np.median(logs, axis=1, keepdims=True)
    summed = np.concatenate([[0.0], np.cumsum(logs.mean(axis=0))])
    reach, at = min(WINDOW, n) // 2, np.arange(n)
    start, stop = np.maximum(at - reach, 0), np.minimum(at + reach + 1, n)
    old, new = np.abs(logs - (summed[stop] - summed[start]) / (stop - start))[:, None]
    both = Arms(old, new, np.ones_like(old), np.ones_like(old))
    value, level = float(log_total(both)[0][0]), 1.0 - rules.alpha
    low, high = bounds(
        both,
        patterns(units.coins, rules.seed),
        rules.alpha / 2,
        exact=len(set(units.coins)) <= EXACT_COINS,
    )
    limit = math.log1p(WIDER)
    word: Word = "inconclusive"
    if -limit < low and high < limit:
        word = "equivalent"
    elif low > 0 or high < 0:
        word = "regression" if low > 0 else "improvement"
    quantile = float(ndtri(1.0 - rules.alpha / 2))
    error = (high - low) / 2 / quantile
    asked = ((quantile + float(ndtri(POWER))) * error / limit) ** 2
    needed = max(math.ceil(n * asked), 1) if math.isfinite(asked) else None
    times, ends = math.exp(value), f"{math.exp(low):.2f} to {math.exp(high):.2f}"
    phrase = {
        "regression": f"results are {times:.2f} times as spread ({ends}): more erratic, regardless of their level",
        "improvement": f"results are {times:.2f} times as spread ({ends}): steadier, regardless of their level",
        "equivalent": f"the spread is the same within a factor of {1 + WIDER:g} ({ends})",
        "inconclusive": f"the spread changed by a factor of {ends}: {1 + WIDER:g} takes about {needed} {units.unit} "
        f"to see, {n} were run",
    }[word]
    change = Change(
        relative(value),
        relative(low) if math.isfinite(low) else None,
        relative(high) if math.isfinite(high) else None,
        level,
    )
    return SpreadVerdict(
        *about, word, phrase, n, change, needed, findings=units.findings
    )
