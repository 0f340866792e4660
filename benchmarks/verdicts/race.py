"""The race: every rule on the same noise, as published and with all false-alarm rates made equal."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.noise import Noise, experiments
from benchmarks.verdicts.noise import in_sessions
from benchmarks.verdicts.peers import RULES, Rule, arms
from iodelta.verdict import Rules, Series, Verdict, judge_series, metric

Floats = NDArray[np.float64]

CHANGES = (0.0, 0.01, 0.02, 0.035)
TARGET = 0.02
"""The change whose machine time is compared."""

SURE = 0.95
"""A rule that is right this often counts as able to answer; its false alarms are as rare as iodelta's."""

GRID = tuple(sorted({round(3 * 1.08**step) for step in range(59)}))
"""Runs per arm that a peer may plan: 3 to 260."""

MANY = 5
"""A/A experiments, and those of peers, per experiment of iodelta with a change."""

METRIC = metric("read.lat.mean")
RULES_USED = Rules(metrics=(METRIC,))


@dataclass(frozen=True)
class Result:
    """One rule on one noise. Shares of experiments: ``alarms`` either way without a change, ``found`` right answers for
    each change. ``sure`` and ``even`` are runs of both arms until 95 % and 50 % of experiments have the right answer to
    a 2 % change at the common false-alarm rate; infinite where no number of runs gets there."""

    rule: str
    order: str
    runs: str
    alarms: float
    found: tuple[float, float, float]
    typical: float
    sure: float
    even: float
    peer: bool


@dataclass(frozen=True)
class Heat:
    """All rules on one noise: iodelta first. ``rate`` is the false-alarm rate all were brought to; ``equivalent`` how
    often iodelta said so of no change, in ``blocks`` blocks (median)."""

    noise: str
    rate: float
    results: tuple[Result, ...]
    equivalent: float
    blocks: float

    @property
    def own(self) -> Result:
        """iodelta's."""
        return self.results[0]

    def best(self, quantile: str) -> Result:
        """The peer that needs the fewest runs."""
        return min((one for one in self.results[1:] if one.peer), key=lambda one: float(getattr(one, quantile)))


def race(name: str, model: Noise, *, seed: int, reps: int, cv: float) -> Heat:
    """Every rule on one noise: ``reps`` experiments of iodelta per change, ``MANY`` times as many of all else."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    words = {change: _iodelta(model, change, reps if change else MANY * reps, cv, rng) for change in CHANGES}
    own = _own(words)
    quiet = [verdict for verdict in words[0.0] if verdict.word == "equivalent"]
    rate = max(own.alarms, 0.01)
    peers = tuple(_peer(rule, model, rate, MANY * reps, cv, rng) for rule in RULES)
    blocks = float(np.median([verdict.stopped for verdict in quiet])) if quiet else math.inf
    return Heat(name, rate, (own, *peers), len(quiet) / len(words[0.0]), blocks)


def _iodelta(model: Noise, change: float, reps: int, cv: float, rng: np.random.Generator) -> list[Verdict]:
    blocks = RULES_USED.max_blocks
    old, new, first = experiments(
        in_sessions(model), blocks=blocks, series=reps, change=math.log1p(change), sd=cv, rng=rng
    )
    places, odd = tuple(range(blocks)), np.where(first, 0, 1) + 2 * np.arange(blocks)
    even = 4 * np.arange(blocks) + 1 - odd
    series = [
        Series(
            str(row),
            METRIC,
            "a",
            "b",
            places,
            tuple(old[row].tolist()),
            tuple(new[row].tolist()),
            tuple(first[row].tolist()),
            tuple(odd[row].tolist()),
            tuple(even[row].tolist()),
        )
        for row in range(reps)
    ]
    return list(judge_series(series, RULES_USED).verdicts)


def _own(words: dict[float, list[Verdict]]) -> Result:
    def share(change: float, *wanted: str) -> float:
        return sum(verdict.word in wanted for verdict in words[change]) / len(words[change])

    found = (share(CHANGES[1], "regression"), share(CHANGES[2], "regression"), share(CHANGES[3], "regression"))
    times = np.sort([2.0 * v.stopped if v.word == "regression" else math.inf for v in words[TARGET]])
    sure, even = (float(times[math.ceil(q * len(times)) - 1]) for q in (SURE, 0.5))
    alarms = share(0.0, "regression", "improvement")
    return Result("iodelta", "pairs", "16-160", alarms, found, even, sure, even, peer=False)


def _peer(rule: Rule, model: Noise, rate: float, reps: int, cv: float, rng: np.random.Generator) -> Result:
    said = [rule.signals(*_sessions(rule, model, rule.runs, change, reps, cv, rng), rng) for change in CHANGES]
    alarms = float(np.mean(said[0] != 0))
    found = tuple(float(np.mean(one > 0)) for one in said[1:])
    right: dict[int, float] = {}
    for runs in GRID:
        if rule.most is None or runs <= rule.most:
            still = np.abs(rule.score(*_sessions(rule, model, runs, 0.0, reps, cv, rng), rng))
            limit = np.quantile(still, 1.0 - rate, method="higher")
            right[runs] = float(np.mean(rule.score(*_sessions(rule, model, runs, TARGET, reps, cv, rng), rng) > limit))
    sure, even = (
        min((2.0 * runs for runs, share in right.items() if share >= needed), default=math.inf)
        for needed in (SURE, 0.5)
    )
    return Result(
        rule.name, rule.order, f"{2 * rule.runs}", alarms, (found[0], found[1], found[2]), sure, sure, even, rule.peer
    )


def _sessions(
    rule: Rule, model: Noise, runs: int, change: float, reps: int, cv: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """The arms of ``reps`` sessions of ``runs`` runs each, in the rule's order: noise as if one session held them all,
    which for drifts of a stated size in all is gentle to whoever runs longer."""
    a, b = arms(np.exp(cv * model(2 * runs, reps, rng)), rule.order)
    return a, b * (1.0 + change)
