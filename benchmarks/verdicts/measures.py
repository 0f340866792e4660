"""What is measured of one simulated experiment, and rates of it over many."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

from benchmarks.verdicts.experiments import Cell, Setup, cut, simulate, typical_truth
from benchmarks.verdicts.peers import RULES
from benchmarks.verdicts.scenarios import Bound, Scenario
from iodelta.verdict import Change, Judgement, Verdict, judge_series

Floats = NDArray[np.float64]

CHANGED = ("regression", "improvement")
CHANCE = 0.05
"""One-sided level of the limits of a rate."""

ROUNDING = 1e-9

FIXED = 0.05
"""The change at which a fixed threshold speaks."""


@dataclass(frozen=True)
class Seen:
    """One experiment: all verdicts, the first of which most measures are taken from, its truths and its trials."""

    setup: Setup
    judgement: Judgement
    typical: float
    range_held: bool | None
    """Whether it stopped in the range projected at the first look; None where nothing was projected."""
    cell: Cell

    @property
    def verdict(self) -> Verdict:
        """The first verdict."""
        return self.judgement.verdicts[0]


def experiment(scenario: Scenario, seed: Sequence[int], typical: float) -> Seen:
    """Simulate and judge one experiment."""
    setup, rules = scenario.setup, scenario.setup.rules()
    series, cells = simulate(setup, np.random.default_rng([*seed]))
    judged = judge_series(series, rules)
    held = None
    if any(bound.measure == "stops in the projected range" for bound in scenario.bounds):
        early = judge_series([cut(series[0], rules.looks[0])], rules).verdicts[0]
        held = _range_held(early, judged.verdicts[0])
    return Seen(setup, judged, typical, held, cells[0])


def seed_of(scenario: Scenario, seed: int, rep: int) -> tuple[int, int, int]:
    """The seed of one experiment: its scenario's name and its number, so that no other scenario or order matters."""
    return seed, zlib.crc32(f"{scenario.group}: {scenario.name}".encode()), rep


def truth_of(scenario: Scenario) -> float:
    """The true typical change of a scenario."""
    return typical_truth(scenario.setup)


def _range_held(early: Verdict, final: Verdict) -> bool | None:
    if early.word != "inconclusive":
        return None
    if early.needed is None:  # "cannot be settled in the planned blocks", or nothing was projected
        return None if early.reachable_margin is None else final.word == "inconclusive"
    if final.word == "inconclusive":
        return early.needed.high is None
    return early.needed.low <= final.blocks <= (early.needed.high or math.inf)


def _alarm(seen: Seen) -> bool:
    return any(verdict.word in CHANGED for verdict in seen.judgement.verdicts)


def _covered(change: Change | None, truth: float) -> bool:
    if change is None:
        return True
    low = -math.inf if change.low is None else change.low
    high = math.inf if change.high is None else change.high
    return low - ROUNDING <= truth <= high + ROUNDING


def _covered_where_seen(seen: Seen) -> bool | None:
    """Whether the total is covered, where one of the variant's trials up to the look stalled: no interval of what was
    measured can hold stalls that did not happen yet."""
    if not seen.cell.stalled[: seen.verdict.blocks].any():
        return None
    return _covered(seen.verdict.total, seen.setup.total)


def _wrong_sign(seen: Seen) -> bool:
    """A word against a total and a typical change of the other sign."""
    better = seen.setup.total > 0 if seen.verdict.metric.better == "higher" else seen.setup.total < 0
    return seen.verdict.word == ("regression" if better else "improvement")


def _in_spite(seen: Seen) -> bool:
    total, margin = seen.verdict.total, seen.setup.margin
    if seen.verdict.word != "equivalent" or total is None or total.low is None or total.high is None:
        return False
    return math.log1p(total.low) < -math.log1p(margin) - 1e-6 or total.high > margin + 1e-6


def _direct_alarm(seen: Seen) -> bool:
    direct = seen.verdict.direct
    return direct is not None and not _covered(direct, 0.0)


RATES: dict[str, Callable[[Seen], bool | None]] = {
    "alarm": _alarm,
    "exit code 1": lambda seen: any(verdict.word == "regression" for verdict in seen.judgement.verdicts),
    "alarm over all cells": lambda seen: any(verdict.word in CHANGED for verdict in seen.judgement.overall),
    "wrong sign": _wrong_sign,
    "typical covered": lambda seen: _covered(seen.verdict.typical, seen.typical),
    "total covered": lambda seen: _covered(seen.verdict.total, seen.setup.total),
    "total covered, a stall seen": _covered_where_seen,
    "regression": lambda seen: seen.verdict.word == "regression",
    "improvement": lambda seen: seen.verdict.word == "improvement",
    "equivalent": lambda seen: seen.verdict.word == "equivalent",
    "no word": lambda seen: seen.verdict.look is None,
    "equivalent in spite of the total": _in_spite,
    "direct alarm": _direct_alarm,
    "stops in the projected range": lambda seen: seen.range_held,
}


def values_of(measure: str, seen: Sequence[Seen]) -> Floats:
    """What a measure that is not a rate was in every experiment that has it."""
    if measure == "median blocks":
        return np.array([one.verdict.blocks for one in seen], dtype=float)
    said = [one.verdict.change.value for one in seen if one.verdict.word == "regression" and one.verdict.change]
    return np.array(said) / seen[0].setup.total


def middle(values: Floats, chance: float) -> tuple[float, float, float]:
    """The median and its distribution-free limits, each beyond the truth with at most probability ``chance``."""
    if not len(values):
        return math.nan, math.nan, math.nan
    ordered = np.sort(values)
    below = int(binom.ppf(chance, len(ordered), 0.5))
    low, high = (ordered[below - 1], ordered[-below]) if below else (-math.inf, math.inf)
    return float(np.median(ordered)), float(low), float(high)


@dataclass(frozen=True)
class Line:
    """One measure of one scenario against its bound. ``low`` and ``high`` are one-sided limits."""

    measure: str
    value: float
    low: float
    high: float
    count: int
    bound: Bound | None

    @property
    def held(self) -> str:
        """``yes``; ``FAILS`` where chance does not explain the distance; ``?`` where it does."""
        if self.bound is None:
            return ""
        if math.isnan(self.value):
            return "no data"
        least, most = self.bound.least, self.bound.most
        if (most is not None and self.low > most) or (least is not None and self.high < least):
            return "FAILS"
        beyond = (most is not None and self.value > most) or (least is not None and self.value < least)
        return "?" if beyond else "yes"


def lines_of(scenario: Scenario, seen: Sequence[Seen], chance: float = CHANCE) -> list[Line]:
    """All measures of a scenario."""
    bounds = {bound.measure: bound for bound in scenario.bounds}
    return [_line(name, seen, bounds.get(name), chance) for name in dict.fromkeys((*bounds, *scenario.shown))]


def _line(measure: str, seen: Sequence[Seen], bound: Bound | None, chance: float) -> Line:
    if measure not in RATES:
        values = values_of(measure, seen)
        return Line(measure, *middle(values, chance), len(values), bound)
    answers = [RATES[measure](one) for one in seen]
    known = [answer for answer in answers if answer is not None]
    if not known:
        return Line(measure, math.nan, math.nan, math.nan, 0, bound)
    low, high = limits(sum(known), len(known), chance)
    return Line(measure, sum(known) / len(known), low, high, len(known), bound)


def limits(hits: int, count: int, chance: float = CHANCE) -> tuple[float, float]:
    """Exact one-sided limits of a rate (Clopper and Pearson), each beyond the truth with probability ``chance``."""
    low = float(beta.ppf(chance, hits, count - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - chance, hits + 1, count - hits)) if hits < count else 1.0
    return low, high


def rivals(seen: Sequence[Seen]) -> dict[str, float]:
    """Alarms of other rules on the same noise: on the very trials that were judged, and in the order their tools use,
    all of the baseline and then all of the variant."""
    rng = np.random.default_rng(1)
    machine = 1 / np.array([one.cell.machine for one in seen])
    half = machine.shape[1] // 2
    same = 1 / np.array([one.cell.baseline for one in seen]), 1 / np.array([one.cell.variant for one in seen])
    after = machine[:, :half], machine[:, half:]
    found: dict[str, float] = {}
    for rule in (rule for rule in RULES if rule.name in ("Welch t", "benchstat U")):
        found[f"{rule.name}, same trials"] = float(np.mean(rule.signals(*same, rng) != 0))
        found[f"{rule.name}, A then B"] = float(np.mean(rule.signals(*after, rng) != 0))
    for name, (a, b) in {"same trials": same, "A then B": after}.items():
        found[f"fixed 5 %, {name}"] = float(np.mean(np.abs(b.mean(axis=1) / a.mean(axis=1) - 1) > FIXED))
    split = next(rule for rule in RULES if rule.name == "otava split")
    window = min(half, split.most or half)
    near = after[0][:, half - window :], after[1][:, :window]
    found["otava split, A then B"] = float(np.mean(split.signals(*near, rng) != 0))
    return found
