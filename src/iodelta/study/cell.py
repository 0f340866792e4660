"""What the runs of one cell show: interleaved pairs allow a verdict, replicates an interval, and single runs a
difference with its resolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Literal

import msgspec

from iodelta.ingest.layouts import Entry
from iodelta.ingest.layouts.order import Ordered, ended
from iodelta.plural import plural
from iodelta.study.measured import value_of
from iodelta.study.rows import Number, relative_spread
from iodelta.trial import Finding, Trial
from iodelta.verdict import Metric, Rules, Verdict, series_of
from iodelta.verdict.judge import judge_series
from iodelta.verdict.metrics import latency_of
from iodelta.verdict.rules import smallest_blocks

Basis = Literal["blocks", "replicates", "single runs"]
Word = Literal["regression", "improvement", "equivalent", "inconclusive", "no verdict"]

UNSOUND = "not credible: a hard finding"

ROUNDED = 5e-4
"""Changes that differ by less than this print as the same number."""

NOT_RESOLVED = "not resolved: the percentiles of the source are too coarse"

NOT_DRAWN = "a drift, or carry-over from the first of a pair, may be part of this"


class Compared(msgspec.Struct, frozen=True):
    """One metric of one cell, baseline against variant. ``change`` is relative (-0.02: 2 % less)."""

    cell: str
    metric: str
    unit: str
    better: str
    variant: str
    runs: tuple[int, int]
    """Runs of the baseline and of the variant."""
    values: tuple[float, float]
    """Medians."""
    spread: tuple[float | None, float | None]
    """Standard deviation of each side's runs as a share of their mean; None for one run."""
    change: Number | None
    """With the interval of the basis: None bounds are infinite."""
    basis: Basis
    word: Word
    says: str
    resolved: bool = True
    """False for a percentile that moved by less than its source can tell."""
    verdict: Verdict | None = None
    """The whole verdict of paired blocks; None where it does not rest on them or is not resolved."""
    unsound: bool = False
    """Whether a hard finding says that one of the numbers cannot be believed."""
    why: str = ""
    """Why the runs allow no verdict; empty where they do."""


class Cell(msgspec.Struct, frozen=True):
    """One cell of two sides, ready to be compared by any metric."""

    name: str
    baseline: str
    variant: str
    one: list[Entry]
    other: list[Entry]
    order: Ordered
    hard: tuple[Finding, ...]
    """Findings that say that a number cannot be believed."""
    margin: float
    metrics: tuple[Metric, ...]
    """Metrics that all runs have: they are tested together, as one question."""
    family: int = 1
    """Cells times variants: the questions asked."""

    def compare(self, what: Metric) -> Compared | None:
        """Return what the runs show about the metric ``what``; None if a run has no usable value of it."""
        old, new = _values(self.one, what), _values(self.other, what)
        if len(old) < len(self.one) or len(new) < len(self.other):
            return None
        blocks = len(self.order.blocks)
        if self.order.order == "interleaved" and blocks >= smallest_blocks(0.05):
            row = self._blocks(what, old, new)
        elif len(old) > 1 or len(new) > 1:
            # An interval that assumes independent runs, although their order does not guarantee that.
            from iodelta.stats.unpaired import MOST, shift

            estimate = shift(
                [math.log(n.value) for n in old[:MOST]],
                [math.log(n.value) for n in new[:MOST]],
            )
            compared = self._compared(what, old, new, "replicates")
            if math.isfinite(estimate.low):
                change = Number(
                    math.expm1(estimate.value),
                    math.expm1(estimate.low),
                    math.expm1(estimate.high),
                )
            else:
                change = Number(
                    compared.values[1] / compared.values[0] - 1, -math.inf, math.inf
                )
            resolved = _resolved(what, self, old, new)
            says = self._of_scatter(change) if resolved else NOT_RESOLVED
            # A note where the change is not that of the two medians in the row.
            medians = compared.values[1] / compared.values[0] - 1
            if abs(medians - change.value) < ROUNDED * max(1.0, abs(medians)):
                apart = ""
            else:
                text = "; the change is the median over all pairs of runs"
                if medians * change.value <= 0:
                    apart = f"{text}, the medians alone say {100 * medians:+.2g} %"
                else:
                    apart = text
            says += apart + self._drift(what, estimate.value)
            row = msgspec.structs.replace(
                compared, change=change, says=says, resolved=resolved
            )
        else:
            row = self._single(what, old[0], new[0])
        if self.hard:
            why = "numbers that are not credible"
            row = msgspec.structs.replace(
                row, word="no verdict", says=UNSOUND, unsound=True, why=why
            )
        return row

    def _why(self, basis: Basis) -> str:
        """Return why runs of this basis allow no verdict; empty where they do."""
        if basis == "blocks":
            return ""
        if basis == "single runs":
            return "one run on each side says nothing about scatter"
        if self.order.order == "interleaved":
            return f"{len(self.order.blocks)} interleaved pairs, {smallest_blocks(0.05)} are needed"
        if self.order.order == "unknown":
            return "the order of the runs is not known"
        return "the runs were not interleaved"

    def _compared(
        self, what: Metric, old: Sequence[Number], new: Sequence[Number], basis: Basis
    ) -> Compared:
        return Compared(
            cell=self.name,
            metric=what.name,
            unit=what.unit,
            better=what.better,
            variant=self.variant,
            runs=(len(old), len(new)),
            values=(median(n.value for n in old), median(n.value for n in new)),
            spread=(relative_spread(old), relative_spread(new)),
            change=None,
            basis=basis,
            word="no verdict",
            says="",
            why=self._why(basis),
        )

    def _blocks(
        self, what: Metric, old: Sequence[Number], new: Sequence[Number]
    ) -> Compared:
        """A verdict from pairs of runs, adjacent in time: one look at all of them."""
        count = len(self.order.blocks)
        rules = Rules(
            metrics=self.metrics,
            margin=self.margin,
            reserve=0.0,
            looks=(count,),
            family="holm",
            comparisons=self.family,
            order="independent",
        )
        trials = _trials(self.order, self.name)
        series = [series_of(trials, metric, "A", "B") for metric in self.metrics]
        judged = judge_series(series, rules).verdicts
        by_metric = {verdict.metric: verdict for verdict in judged}
        verdict = msgspec.structs.replace(
            by_metric[what], baseline=self.baseline, variant=self.variant
        )
        # The change of a verdict; missing bounds become infinite.
        change = verdict.change
        if change is None:
            interval = None
        else:
            low = -math.inf if change.low is None else change.low
            high = math.inf if change.high is None else change.high
            interval = Number(change.value, low, high)
        says = f"{verdict.phrase}; {count} interleaved pairs, assuming that their order was random"
        row = self._compared(what, old, new, "blocks")
        if verdict.baseline_value is not None and verdict.variant_value is not None:
            row = msgspec.structs.replace(
                row, values=(verdict.baseline_value, verdict.variant_value)
            )
        if not _resolved(what, self, old, new):
            row = msgspec.structs.replace(
                row, word="no verdict", says=NOT_RESOLVED, resolved=False
            )
            return msgspec.structs.replace(
                row,
                change=interval,
                why="the percentiles of the source are too coarse",
            )
        if not self.order.as_drawn:
            verdict = msgspec.structs.replace(
                verdict, word="inconclusive", alone="inconclusive", phrase=NOT_DRAWN
            )
            pairs, first = len(self.order.blocks), self.order.baseline_first
            most, leader = max((first, self.baseline), (pairs - first, self.variant))
            row = msgspec.structs.replace(
                row,
                says=f"{NOT_DRAWN}; {plural(count, 'pair')}",
                why=f"{leader} went first in {most} of {plural(pairs, 'pair')}: the order was not random",
            )
            return msgspec.structs.replace(row, change=interval, verdict=verdict)
        return msgspec.structs.replace(
            row, change=interval, word=verdict.word, says=says, verdict=verdict
        )

    def _of_scatter(self, change: Number) -> str:
        """Return what the interval of replicates says."""
        if not math.isfinite(change.low):
            return "too few runs for an interval"
        if not change.low <= 0 <= change.high:
            return "differs beyond the runs' scatter"
        if max(-change.low, change.high) < self.margin:
            return f"within {100 * self.margin:g} % by the runs' scatter"
        return "indistinguishable"

    def _drift(self, what: Metric, theta: float) -> str:
        """Return whether a drift over the session could explain the change, where the order of the runs is known."""
        if self.order.order == "unknown":
            return ""
        entries = [*self.one, *self.other]
        ended_at = (ended(entry.run) for entry in entries)
        ends = [end for end in ended_at if end is not None]
        values = [value.value for value in _values(entries, what)]
        if min(len(ends), len(values)) < len(entries):
            return ""
        from iodelta.stats.guards import order_trend

        places = range(len(entries))
        in_time = sorted(places, key=ends.__getitem__)
        is_variant = [place >= len(self.one) for place in in_time]
        trend = order_trend(list(map(values.__getitem__, in_time)), places, is_variant)
        if trend is None or not trend.could_explain(theta):
            return ""
        return "; a drift over the session could explain it"

    def _single(self, what: Metric, old: Number, new: Number) -> Compared:
        """Return one run on each side: a difference with its resolution. The scatter between runs is unknown."""
        change = Number(
            new.value / old.value - 1,
            new.low / old.high - 1,
            (new.high / old.low if old.low > 0 else math.inf) - 1,
        )
        resolved = _resolved(what, self, [old], [new])
        if not resolved:
            says = NOT_RESOLVED
        elif change.low <= 0 <= change.high:
            says = "the same, as far as the numbers are known"
        else:
            says = "one run on each side: no verdict"
        compared = self._compared(what, [old], [new], "single runs")
        return msgspec.structs.replace(
            compared, change=change, says=says, resolved=resolved
        )


def _values(entries: Sequence[Entry], what: Metric) -> list[Number]:
    """Return the values of the runs that have one."""
    numbers = (value_of(entry.run, what.name) for entry in entries)
    return [value for value in numbers if value is not None]


def _resolved(
    what: Metric, cell: Cell, old: Sequence[Number], new: Sequence[Number]
) -> bool:
    """Return whether a percentile changed by more than the resolution of its source: the ranges that the printed
    values stand for do not touch, so with fio's bins it moved by two of them or more. True if all runs kept their bins."""
    kind, _, latency = what.name.partition(".")
    family, _, point = latency.partition(".")
    if not point.startswith("p"):
        return True
    entries = (*cell.one, *cell.other)
    if all(_has_bins(entry, kind, family) for entry in entries):
        return True
    above = median(n.low for n in new) > median(n.high for n in old)
    below = median(n.high for n in new) < median(n.low for n in old)
    return above or below


def _has_bins(entry: Entry, kind: str, family: str) -> bool:
    latency = latency_of(entry.run, kind, family)
    return latency is not None and latency.histogram is not None


def _trials(order: Ordered, cell: str) -> list[Trial]:
    """Adjacent pairs as trials in blocks, which the verdict rules expect."""
    trials = []
    for block, pair in enumerate(order.blocks):
        first = min((ended(entry.run) or 0.0) for entry in pair)
        for name, entry in zip(("A", "B"), pair, strict=True):
            position = int((ended(entry.run) or 0.0) != first)
            measured = {
                metric: number.quantity for metric, number in entry.run.measured.items()
            }
            trial = Trial(
                number=2 * block + position,
                cell=cell,
                variant=name,
                block=block,
                position=position,
                seed=0,
                started=entry.run.started or 0.0,
                seconds=entry.run.elapsed or 0.0,
                directions=entry.run.directions,
                sync=entry.run.sync,
                measured=measured,
            )
            trials.append(trial)
    return trials
