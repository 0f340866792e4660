"""What is measured of one simulated experiment, and how often over many: a tally, which can be added to others."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from benchmarks.verdicts.experiments import Cell, Setup, cut, simulate, typical_truth
from benchmarks.verdicts.scenarios import Scenario
from iodelta.verdict import Change, Judgement, Series, Verdict, judge_series

CHANGED = ("regression", "improvement")
PROJECTED = "stops in the projected range"
ROUNDING = 1e-9


@dataclass(frozen=True)
class Seen:
    """One experiment: all verdicts, the first of which most measures are taken from, its truths and its trials."""

    setup: Setup
    judgement: Judgement
    typical: float
    projected: tuple[bool, float] | None
    """Whether it stopped in the range projected at the first look, and the share of futures that the range was said to
    hold; None where nothing was projected."""
    series: list[Series]
    cells: list[Cell]

    @property
    def verdict(self) -> Verdict:
        """The first verdict."""
        return self.judgement.verdicts[0]


def experiment(scenario: Scenario, seed: Sequence[int], typical: float) -> Seen:
    """Simulate and judge one experiment."""
    rng = np.random.default_rng([*seed])
    setup = scenario.setup.settled(rng)
    rules = setup.rules()
    series, cells = simulate(setup, rng)
    judged = judge_series(series, rules)
    held = None
    if PROJECTED in (*scenario.shown, *(bound.measure for bound in scenario.bounds)):
        early = judge_series([cut(series[0], rules.looks[0])], rules).verdicts[0]
        held = _projected(early, judged.verdicts[0])
    return Seen(setup, judged, typical, held, series, cells)


def seed_of(scenario: Scenario, seed: int, rep: int) -> tuple[int, int, int]:
    """The seed of one experiment: its scenario's name and its number, so that no other scenario or order matters."""
    return seed, zlib.crc32(scenario.key.encode()), rep


def truth_of(scenario: Scenario) -> float:
    """The true typical change of a scenario."""
    return typical_truth(scenario.setup)


def _projected(early: Verdict, final: Verdict) -> tuple[bool, float] | None:
    if early.word != "inconclusive" or early.open_share is None:
        return None
    never = final.word == "inconclusive"
    if early.needed is None:  # "at no planned look"
        return never, early.open_share
    if never:
        return early.needed.high is None, early.needed.share
    return early.needed.low <= final.stopped <= (early.needed.high or math.inf), early.needed.share


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
    if not seen.cells[0].stalled[: seen.verdict.stopped].any():
        return None
    return _covered(seen.verdict.total, seen.setup.total)


def _improvement_where_seen(seen: Seen) -> bool | None:
    """Whether it is called an improvement, where one of the variant's trials up to the look stalled."""
    if not seen.cells[0].stalled[: seen.verdict.stopped].any():
        return None
    return seen.verdict.word == "improvement"


def _wrong_sign(seen: Seen) -> bool:
    """A word against a total and a typical change of the other sign."""
    better = seen.setup.total > 0 if seen.verdict.metric.better == "higher" else seen.setup.total < 0
    return seen.verdict.word == ("regression" if better else "improvement")


def _in_spite(seen: Seen) -> bool:
    total, margin = seen.verdict.total, seen.setup.margin
    if seen.verdict.word != "equivalent" or total is None or total.low is None or total.high is None:
        return False
    return math.log1p(total.low) < -math.log1p(margin) - 1e-6 or total.high > margin + 1e-6


def _deployed_covered(seen: Seen) -> bool:
    """By what the verdict says the change becomes once the variant's state is reached; where it says nothing of it,
    by the change as measured."""
    return _covered(seen.verdict.deployed or seen.verdict.typical, seen.typical)


def _direct_alarm(seen: Seen) -> bool:
    direct = seen.verdict.direct
    return direct is not None and not _covered(direct, 0.0)


def _begins(seen: Seen) -> bool | None:
    """Whether the block in which the change begins is named, of the experiments that name one."""
    course = seen.verdict.course
    if course is None or not seen.setup.begins:
        return None
    return abs((course.last + 1 if course.starts else course.first) - seen.setup.begins) <= 2


def _beyond_bound(seen: Seen) -> bool:
    """Whether it is called equivalent although more trials stall, in runs as long as these, than its sentence says."""
    stalls, setup = seen.verdict.stalls, seen.setup
    if seen.verdict.word != "equivalent" or stalls is None:
        return False
    times = setup.runs if not stalls.longest else max(1.0, setup.runs / stalls.longest)
    return times * stalls.not_excluded < setup.stalls


RATES: dict[str, Callable[[Seen], bool | None]] = {
    "alarm": _alarm,
    "exit code 1": lambda seen: any(verdict.word == "regression" for verdict in seen.judgement.verdicts),
    "wrong sign": _wrong_sign,
    "typical covered": lambda seen: _covered(seen.verdict.typical, seen.typical),
    "total covered": lambda seen: _covered(seen.verdict.total, seen.setup.total),
    "total covered, a stall seen": _covered_where_seen,
    "deployed covered": _deployed_covered,
    "regression": lambda seen: seen.verdict.word == "regression",
    "improvement": lambda seen: seen.verdict.word == "improvement",
    "improvement, a stall seen": _improvement_where_seen,
    "equivalent": lambda seen: seen.verdict.word == "equivalent",
    "no word": lambda seen: seen.verdict.look is None,
    "equivalent in spite of the total": _in_spite,
    "direct alarm": _direct_alarm,
    "begins within 2 blocks": lambda seen: _begins(seen),
    "has a course": lambda seen: seen.verdict.course is not None,
    "equivalent beyond its stated bound": lambda seen: _beyond_bound(seen),
    PROJECTED: lambda seen: seen.projected[0] if seen.projected else None,
}


class Tally(msgspec.Struct, omit_defaults=True):
    """What was counted over experiments of one scenario."""

    count: int = 0
    """Experiments begun; those in which judging raised an error are in ``errors`` and nowhere else."""
    seconds: float = 0.0
    rates: dict[str, tuple[int, int]] = {}
    """By measure how often it was so, of how many experiments that have it."""
    values: dict[str, list[float]] = {}
    """What a measure that is not a rate was in every experiment that has it."""
    words: dict[str, int] = {}
    rivals: dict[str, tuple[int, int, int]] = {}
    """By rule the experiments in which it said worse, better, and either."""
    errors: list[str] = []


def tally_of(seen: Sequence[Seen], *, count: int, errors: Sequence[str] = ()) -> Tally:
    """All measures of some experiments."""
    rates = {}
    for measure, rate in RATES.items():
        known = [answer for answer in map(rate, seen) if answer is not None]
        rates[measure] = (sum(known), len(known))
    values = {
        measure: [value for one in seen for value in found(one)] for measure, found in {**VALUES, **MEANS}.items()
    }
    words = Counter[str](one.verdict.word for one in seen)
    return Tally(count, rates=rates, values=values, words=dict(words), errors=[*errors])


def merged(tallies: Iterable[Tally]) -> Tally:
    """The tally of all experiments behind ``tallies``."""
    found = Tally()
    for one in tallies:
        found.count += one.count
        found.seconds += one.seconds
        found.errors += one.errors
        for measure, (hits, known) in one.rates.items():
            before = found.rates.get(measure, (0, 0))
            found.rates[measure] = (before[0] + hits, before[1] + known)
        for measure, values in one.values.items():
            found.values[measure] = found.values.get(measure, []) + values
        for word, times in one.words.items():
            found.words[word] = found.words.get(word, 0) + times
        for rule, said in one.rivals.items():
            worse, better, either = found.rivals.get(rule, (0, 0, 0))
            found.rivals[rule] = (worse + said[0], better + said[1], either + said[2])
    return found


def _size_said(seen: Seen) -> list[float]:
    verdict = seen.verdict
    if verdict.word != "regression" or verdict.change is None or not seen.setup.total:
        return []
    return [round(verdict.change.value / seen.setup.total, 5)]


VALUES: dict[str, Callable[[Seen], list[float]]] = {
    "median blocks": lambda seen: [seen.verdict.stopped],
    "size said / true": _size_said,
    "corrected / true": lambda seen: (
        [round(seen.verdict.corrected / seen.setup.total, 5)]
        if seen.verdict.corrected is not None and seen.setup.total
        else []
    ),
}
"""Measures of which the median over experiments is shown."""

MEANS: dict[str, Callable[[Seen], list[float]]] = {
    "share said of the range": lambda seen: [round(seen.projected[1], 4)] if seen.projected else [],
    "stops there, less the share said": lambda seen: (
        [round(seen.projected[0] - seen.projected[1], 4)] if seen.projected else []
    ),
}
"""Measures of which the mean is shown, in percent or points."""
