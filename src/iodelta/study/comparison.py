"""What two sets of runs allow to be said: verdicts from interleaved pairs, intervals from replicates, differences with
their resolution from single runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from iodelta.audit import audit
from iodelta.audit.model import where
from iodelta.experiment.order import in_order
from iodelta.ingest import Refusal, Run
from iodelta.ingest.layouts import Entry, Layout, order_finding, order_of
from iodelta.ingest.layouts.effective import spelt
from iodelta.ingest.layouts.order import Ordered, ended
from iodelta.plural import plural
from iodelta.study.confounders import Differing
from iodelta.study.confounders import differences as of_environments
from iodelta.study.runs import Number, number, point_of
from iodelta.study.sides import Side, differences, shared_cells, sides_of
from iodelta.study.system import system
from iodelta.trial import Finding, Kind, Latency, Trial
from iodelta.verdict import Metric, Rules, Verdict, metric, series_of
from iodelta.verdict.judge import judge_series
from iodelta.verdict.metrics import LARGE_BLOCK, latency_of
from iodelta.verdict.rules import smallest_blocks

Basis = Literal["blocks", "replicates", "single runs"]
Word = Literal["regression", "improvement", "equivalent", "inconclusive", "no verdict"]

NONE: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

KINDS: tuple[Kind, ...] = ("read", "write", "trim", "mixed")
POINTS = ("mean", "p99")

BEYOND = 100
"""I/Os beyond a percentile that make it usable."""

UNSOUND = "not to be believed: a hard finding"

ROUNDED = 5e-4
"""Changes nearer to each other than this read alike."""

NOT_RESOLVED = "not resolved: the source tells percentiles no finer"

NOT_DRAWN = "a drift, or what the first of a pair leaves behind, may be part of this"


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


class Comparison(msgspec.Struct, frozen=True):
    """Everything ``iodelta compare`` has to say."""

    schema: str
    baseline: str
    variants: tuple[str, ...]
    margin: float
    compared: tuple[Compared, ...]
    """One per cell, metric and variant."""
    differences: dict[str, tuple[Differing, ...]]
    """By variant."""
    unmatched: tuple[str, ...]
    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]
    paths: tuple[str, ...] = ()
    """As they were given."""
    lacking: dict[str, tuple[str, ...]] = {}
    """By variant, the cells of both sides that have no number in all of their runs, though some have numbers."""
    systems: dict[str, tuple[tuple[str, str], ...]] = {}
    """What the machine was, by side, where iodelta recorded it: name and value."""

    @property
    def exit_code(self) -> int:
        """0 nothing worse, 1 regression, 3 no or no conclusive verdict, 4 nothing to compare. A percentile that its
        source cannot resolve counts only where nothing else does."""
        words = {one.word for one in self.compared if one.resolved} or {one.word for one in self.compared}
        if "regression" in words:
            return 1
        lacking = any(self.lacking.values())
        if not words and not lacking:
            return 4
        return 3 if lacking or words & {"inconclusive", "no verdict"} else 0


def compare(
    layouts: Sequence[Layout],
    paths: Sequence[str],
    *,
    baseline: str | None = None,
    margin: float = 0.01,
    environments: Mapping[str, Mapping[str, Any]] = NONE,
) -> Comparison:
    """Compare the variants of one layout, or several layouts with the first. Raises RequestError for one side only.

    ``environments`` are the recorded ones of sides, by name: what differs between them is said too."""
    base, *others = sides_of(layouts, paths, baseline)
    jobs: list[tuple[Side, str, list[Entry], list[Entry]]] = []
    unmatched: list[str] = []
    differing: dict[str, tuple[Differing, ...]] = {}
    for other in others:
        cells, left = shared_cells(base, other)
        unmatched += left
        known = [environments[name] for name in (base.name, other.name) if name in environments]
        recorded = of_environments(*known) if len(known) == 2 else ()
        differing[other.name] = (*recorded, *differences(cells.values()))
        jobs += [(other, _with_syncs(name, *cells[name]), *cells[name]) for name in in_order(cells)]
    metrics = [_metrics(one, two) for _, _, one, two in jobs]
    family = sum(map(bool, metrics))
    findings: dict[Finding, None] = {}
    compared = []
    lacking: dict[str, tuple[str, ...]] = {}
    for (other, name, one, two), wanted in zip(jobs, metrics, strict=True):
        order = order_of(one, two)
        risk = order_finding(order, f"{name}, {other.name}") if len(one) + len(two) > 2 else None
        hard = _hard([entry.run for entry in (*one, *two)])
        findings |= dict.fromkeys((*hard, *([risk] if risk else ())))
        cell = _Cell(name, base.name, other.name, one, two, order, bool(hard), margin, wanted, family)
        made = [found for what in wanted if (found := cell.compare(what)) is not None]
        compared += made
        if not made and (lack := _lack([entry.run for entry in (*one, *two)], f"{name}, {other.name}")):
            lacking[other.name] = (*lacking.get(other.name, ()), name)
            findings[lack] = None
    for found in compared:
        findings |= dict.fromkeys(found.verdict.findings if found.verdict else ())
    return Comparison(
        "iodelta.compare/1",
        base.name,
        tuple(other.name for other in others),
        margin,
        tuple(compared),
        differing,
        tuple(dict.fromkeys(unmatched)),
        tuple(findings),
        tuple(refusal for layout in layouts for refusal in layout.refusals),
        tuple(paths),
        lacking,
        {name: system(environment) for name, environment in environments.items()},
    )


def _hard(runs: Sequence[Run]) -> tuple[Finding, ...]:
    found = [hit.finding for hit in audit(runs).hits if hit.finding.severity == "hard"]
    found += [finding for run in runs for finding in run.findings if finding.severity == "hard"]
    return tuple(dict.fromkeys(found))


def _lack(runs: Sequence[Run], place: str) -> Finding | None:
    """Why runs, some of which have numbers, have none that all have; None where no run has any."""
    bare = [run for run in runs if not run.directions]
    if len(bare) == len(runs):
        return None
    text = "there is no number that all runs have"
    if bare:
        text = f"{len(bare)} of {plural(len(runs), 'run')} without numbers, the first is {where(bare[0].place)}"
    remedy = "leave such runs out, with those they were paired with, and say so; or repeat them"
    return Finding("compare.lacking", "warning", place, text, remedy)


def _metrics(one: Sequence[Entry], other: Sequence[Entry]) -> tuple[Metric, ...]:
    """IOPS (bandwidth from 64 KiB on), mean and p99 latency of each direction that both sides have, and of syncs."""
    runs = [entry.run for entry in (*one, *other)]
    found = []
    for kind in KINDS:
        directions = [direction for run in runs if (direction := run.direction(kind)) is not None]
        beside = kind == "mixed" and any(len(run.directions) > 1 for run in runs)
        if len(directions) < len(runs) or beside:
            continue
        large = (runs[0].workload.bs or 0) >= LARGE_BLOCK
        names = [f"{kind}.bandwidth" if large else f"{kind}.iops"]
        for point in POINTS:
            name = next((one for one in _latencies(kind, point) if all(_has(run, one) for run in runs)), None)
            names += [name] if name else []
        rate = names[0].rpartition(".")[2]
        known_rates = all(number(getattr(direction, rate)) is not None for direction in directions)
        found += [_metric(name) for name in (names if known_rates else names[1:])]
    syncs = [f"sync.lat.{point}" for point in POINTS]
    return (*found, *(_metric(name) for name in syncs if all(_has(run, name) for run in runs)))


def _latencies(kind: str, point: str) -> tuple[str, str]:
    """Names of a latency: total, else completion."""
    return f"{kind}.lat.{point}", f"{kind}.clat.{point}"


def _metric(name: str) -> Metric:
    kind, _, what = name.partition(".")
    return msgspec.structs.replace(metric(f"read.{what}"), name=name) if kind == "mixed" else metric(name)


def _has(run: Run, name: str) -> bool:
    """Whether a latency has its mean, or a percentile that enough I/Os bear."""
    kind, family, point = name.split(".", 2)
    found = latency_of(run, kind, family)
    if found is None:
        return False
    if point == "mean":
        return number(found.mean) is not None
    percentile = point_of(found, float(point[1:]))
    return percentile is not None and (percentile.beyond is None or percentile.beyond >= BEYOND)


def _latency_value(found: Latency, point: str) -> Number | None:
    if point == "mean":
        return number(found.mean)
    percentile = point_of(found, float(point[1:]))
    if percentile is None:
        return None
    if found.histogram is None:
        return Number(percentile.value, percentile.low, percentile.high)
    from iodelta.stats import tails

    known = tails.percentile(found.histogram, percentile.percent / 100)
    if isinstance(known, Finding):
        return None
    half = 2 * known.resolution * known.value
    return Number(known.value, known.value - half, known.value + half)


def _value(run: Run, name: str) -> Number | None:
    kind, what, *point = name.split(".", 2)
    direction = next((d for d in run.directions if d.kind == kind), None)
    found = None
    if point:
        latency = latency_of(run, kind, what)
        found = _latency_value(latency, point[0]) if latency is not None else None
    elif direction is not None:
        found = number(direction.iops if what == "iops" else direction.bandwidth)
    return found if found is not None and found.value > 0 and found.low >= 0 else None


def _with_syncs(name: str, one: Sequence[Entry], other: Sequence[Entry]) -> str:
    """The cell, with the syncs that all of its runs make, where its name lacks them: most of a write is their time."""
    said = {spelt(entry.run, ("fsync", "fdatasync", "sync")) for entry in (*one, *other)}
    words = said.pop() if len(said) == 1 else ""
    return f"{name} {words}".strip() if words not in name else name


class _Cell(msgspec.Struct, frozen=True):
    """One cell of two sides, ready to be compared by any metric."""

    name: str
    baseline: str
    variant: str
    one: list[Entry]
    other: list[Entry]
    order: Ordered
    unsound: bool
    margin: float
    metrics: tuple[Metric, ...]
    """Metrics that all runs have: they are tested together, as one question."""
    family: int
    """Cells times variants: the questions asked."""

    def compare(self, what: Metric) -> Compared | None:
        """What the runs allow to be said about ``what``; None when a run has no usable value of it."""
        a, b = ([_value(entry.run, what.name) for entry in side] for side in (self.one, self.other))
        old, new = [value for value in a if value], [value for value in b if value]
        if len(old) + len(new) < len(a) + len(b):
            return None
        blocks = len(self.order.blocks)
        if self.order.order == "interleaved" and blocks >= smallest_blocks(0.05):
            found = self._blocks(what, old, new)
        elif len(old) > 1 or len(new) > 1:
            found = self._replicates(what, old, new)
        else:
            found = self._single(what, old[0], new[0])
        if self.unsound:
            why = "numbers that cannot be believed"
            found = msgspec.structs.replace(found, word="no verdict", says=UNSOUND, unsound=True, why=why)
        return found

    def _why(self, basis: Basis) -> str:
        """Why runs of this basis allow no verdict; empty where they do."""
        if basis == "blocks":
            return ""
        if basis == "single runs":
            return "one run on each side says nothing about scatter"
        if self.order.order == "interleaved":
            return f"{len(self.order.blocks)} interleaved pairs, {smallest_blocks(0.05)} are needed"
        if self.order.order == "unknown":
            return "the order of the runs is not known"
        return "the runs were not interleaved"

    def _compared(self, what: Metric, old: Sequence[Number], new: Sequence[Number], basis: Basis) -> Compared:
        return Compared(
            cell=self.name,
            metric=what.name,
            unit=what.unit,
            better=what.better,
            variant=self.variant,
            runs=(len(old), len(new)),
            values=(median(n.value for n in old), median(n.value for n in new)),
            spread=(_spread(old), _spread(new)),
            change=None,
            basis=basis,
            word="no verdict",
            says="",
            why=self._why(basis),
        )

    def _blocks(self, what: Metric, old: Sequence[Number], new: Sequence[Number]) -> Compared:
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
        series = [series_of(trials, one, "A", "B") for one in self.metrics]
        judged = judge_series(series, rules).verdicts
        verdict = next(one for one in judged if one.metric == what)
        verdict = msgspec.structs.replace(verdict, baseline=self.baseline, variant=self.variant)
        change = verdict.change
        interval = None
        if change is not None:
            low, high = (
                (-math.inf if change.low is None else change.low),
                math.inf if change.high is None else change.high,
            )
            interval = Number(change.value, low, high)
        word: Word = verdict.word
        says = f"{verdict.phrase}; {count} interleaved pairs, their order taken as drawn by lot"
        found = self._compared(what, old, new, "blocks")
        if verdict.baseline_value is not None and verdict.variant_value is not None:
            found = msgspec.structs.replace(found, values=(verdict.baseline_value, verdict.variant_value))
        if not _resolved(what, self, old, new):
            found = msgspec.structs.replace(found, word="no verdict", says=NOT_RESOLVED, resolved=False)
            return msgspec.structs.replace(found, change=interval, why="the source tells percentiles no finer")
        if not self.order.as_drawn:
            verdict = msgspec.structs.replace(verdict, word="inconclusive", alone="inconclusive", phrase=NOT_DRAWN)
            found = msgspec.structs.replace(found, says=f"{NOT_DRAWN}; {plural(count, 'pair')}", why=self._not_drawn())
            return msgspec.structs.replace(found, change=interval, verdict=verdict)
        return msgspec.structs.replace(found, change=interval, word=word, says=says, verdict=verdict)

    def _not_drawn(self) -> str:
        pairs, first = len(self.order.blocks), self.order.baseline_first
        most, leader = max((first, self.baseline), (pairs - first, self.variant))
        return f"{leader} went first in {most} of {plural(pairs, 'pair')}: the order was not drawn by lot"

    def _replicates(self, what: Metric, old: Sequence[Number], new: Sequence[Number]) -> Compared:
        """An interval that takes the runs as independent draws, which their order does not warrant."""
        from iodelta.stats.unpaired import MOST, shift

        logs = [[math.log(n.value) for n in side[:MOST]] for side in (old, new)]
        found = shift(logs[0], logs[1])
        change = Number(
            *(math.expm1(bound) if math.isfinite(bound) else bound for bound in (found.value, found.low, found.high))
        )
        if not math.isfinite(found.low):
            says = "too few runs for an interval"
            change = Number(median(n.value for n in new) / median(n.value for n in old) - 1, -math.inf, math.inf)
        elif found.low > 0 or found.high < 0:
            says = "differs beyond the runs' scatter"
        elif -self.margin < change.low and change.high < self.margin:
            says = f"within {100 * self.margin:g} % by the runs' scatter"
        else:
            says = "not told apart"
        resolved = _resolved(what, self, old, new)
        if not resolved:
            says = NOT_RESOLVED
        compared = self._compared(what, old, new, "replicates")
        says += _apart(compared.values, change) + self._drift(what, found.value)
        return msgspec.structs.replace(compared, change=change, says=says, resolved=resolved)

    def _drift(self, what: Metric, theta: float) -> str:
        """How much of the change a drift over the session could explain, where the order is known."""
        runs = [
            (ended(e.run), _value(e.run, what.name), side)
            for side, own in ((0, self.one), (1, self.other))
            for e in own
        ]
        if self.order.order == "unknown" or any(at is None or value is None for at, value, _ in runs):
            return ""
        from iodelta.stats.guards import order_trend

        runs.sort(key=lambda item: item[0] or 0.0)
        values = [value.value for _, value, _ in runs if value is not None]
        trend = order_trend(values, range(len(runs)), [side == 1 for *_, side in runs])
        if trend is None or not trend.could_explain(theta):
            return ""
        return "; a drift over the session could explain it"

    def _single(self, what: Metric, old: Number, new: Number) -> Compared:
        """One run on each side: a difference, and how finely it is known. Scatter between runs is not."""
        change = Number(new.value / old.value - 1, new.low / old.high - 1, _ratio(new.high, old.low) - 1)
        resolved = _resolved(what, self, [old], [new])
        if not resolved:
            says = NOT_RESOLVED
        elif change.low <= 0 <= change.high:
            says = "the same as finely as it is known"
        else:
            says = "one run on each side: no verdict"
        compared = self._compared(what, [old], [new], "single runs")
        return msgspec.structs.replace(compared, change=change, says=says, resolved=resolved)


def _resolved(what: Metric, cell: _Cell, old: Sequence[Number], new: Sequence[Number]) -> bool:
    """Whether a percentile differs by more than the grid it was printed on: what may have been there neither meets nor
    overlaps, which for bins of ns is two of them. Always, where the bins were kept."""
    kind, family, point = what.name.split(".", 2) if what.name.count(".") > 1 else (what.name, "", "")
    if not point.startswith("p"):
        return True
    latencies = [latency_of(entry.run, kind, family) for entry in (*cell.one, *cell.other)]
    if all(found is not None and found.histogram is not None for found in latencies):
        return True
    (low, high), (least, most) = ((median(n.low for n in side), median(n.high for n in side)) for side in (old, new))
    return low > most or least > high


def _apart(values: tuple[float, float], change: Number) -> str:
    """What the change is, where it is not that of the two medians in the row."""
    medians = values[1] / values[0] - 1
    if abs(medians - change.value) < ROUNDED * max(1.0, abs(medians)):
        return ""
    text = "; the change is the median over all pairs of runs"
    return f"{text}, the medians alone say {100 * medians:+.2g} %" if medians * change.value <= 0 else text


def _trials(order: Ordered, cell: str) -> list[Trial]:
    """Adjacent pairs as the blocks that judging speaks of."""
    found = []
    for block, pair in enumerate(order.blocks):
        first = min((ended(entry.run) or 0.0) for entry in pair)
        for name, entry in zip(("A", "B"), pair, strict=True):
            position = int((ended(entry.run) or 0.0) != first)
            found.append(
                Trial(
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
                )
            )
    return found


def _spread(values: Sequence[Number]) -> float | None:
    if len(values) < 2:
        return None
    mean = sum(n.value for n in values) / len(values)
    return math.sqrt(sum((n.value - mean) ** 2 for n in values) / (len(values) - 1)) / mean


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.inf
